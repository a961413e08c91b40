"""Conditions of aggregates, SQL's FILTER: over tables and streams, against brute force."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.identity import fingerprint
from sash.query.conditions import Condition
from sash.query.plan import make_plan
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import batches, stream

from .test_stored_events import judge

SOME = pc.field("s") == "x"
LARGE = (pc.field("i") > 0) | pc.field("b")
NEVER = pc.field("n") < 0
#: Aggregates that skip nulls and that keep them, compiled and on objects, and a vector.
SELECT = {
    "rows": sash.count(),
    "some": sash.count(where=SOME),
    "known": sash.count("x", where=SOME),
    "total": sash.sum("i", where=SOME),
    "mean": sash.mean("x", where=LARGE),
    "plain": sash.mean("x"),
    "top": sash.max("x", where=LARGE),
    "first": sash.first("x", where=SOME),
    "last": sash.last("s", where=LARGE),
    "who": sash.arg_max("s", "x", where=LARGE),
    "all": sash.collect("n", where=SOME),
    "two": sash.last_n("x", 2, where=LARGE),
    "held": sash.bloom("n", 64, 2, where=SOME),
    "none": sash.sum("x", where=NEVER),
}
WINDOWS = (
    sash.sliding("7 seconds", "3 seconds"),
    sash.cumulate("6 seconds", "2 seconds"),
    sash.trailing("5 seconds"),
    sash.rows(4),
    sash.session("2 seconds"),
    sash.window(keep=sash.rows(3), every="4 seconds"),
)


def query(window: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": SELECT} | more)


@pytest.mark.plain
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_table_has_the_rows_of_brute_force(window: Any) -> None:
    for kind in ("disorder", "ties"):
        table, q = stream(kind, 80), query(window)
        assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_stream_has_the_rows_of_brute_force(window: Any, state: str) -> None:
    q = query(window)
    parts = list(batches(stream("disorder", 70), seed=1, most=20))
    rows, _ = replay(q, parts, "4 seconds")
    if state == "tiles" and q.window.kind != "aligned":
        judge(q, "final", parts, 4_000_000)
        return
    s = open_stream(state, q, lateness="4 seconds")
    given = [s.push(part) for part in parts]
    got = pa.concat_tables([*given, s.close()], promote_options="permissive")
    assert not differences(q, rows, got, ordered=False)


@pytest.mark.once
def test_compiled() -> None:
    compiled = ("rows", "some", "known", "total", "mean", "first", "held")
    q = query(WINDOWS[0], select={name: SELECT[name] for name in compiled})
    table = stream("disorder", 200)
    assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.plain
def test_windows_in_which_no_row_satisfies_a_condition_are_emitted() -> None:
    q = query(sash.tumbling(10), by=[], select={"n": sash.count(where=NEVER)})
    assert q.run({"t": [1, 25], "n": [1, 2]})["n"].to_pylist() == [0, 0]


def test_equal_conditions_are_evaluated_once_and_share_a_partial() -> None:
    again = pc.field("s") == "x"
    select = {"a": sash.sum("i", where=SOME), "b": sash.mean("i", where=again), "c": sash.sum("i")}
    (group,) = make_plan(query(WINDOWS[0], select=select), stream("ties", 1).schema).groups
    assert [str(c) for c in group.conditions] == ['(s == "x")']
    assert [part.shares is None for part in group.operator.parts].count(True) == 2


def test_a_condition_is_known_by_what_it_says() -> None:
    chosen = Condition.of(SOME)
    assert chosen == Condition.of(pc.field("s") == "x") != Condition.of(pc.field("s") == "y")
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    long = [pc.field("i").isin(range(end)) for end in (50, 51)]
    said = {
        fingerprint(query(WINDOWS[0], select={"n": sash.count(where=w)}))["n: where"] for w in long
    }
    assert len(said) == 2
    inside = pc.field("place", "city", "name") == pc.field("s")
    assert Condition.of(inside & (pc.field("x y") > 0)).columns == ("place", "s", "x y")


def test_what_is_no_condition_is_refused() -> None:
    with pytest.raises(TypeError, match="where is an Arrow expression"):
        sash.count(where="x > 0")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="names columns by their number"):
        sash.count(where=pc.field(0) > 0)
    table = stream("ties", 3)
    with pytest.raises(ValueError, match="is no condition"):
        query(WINDOWS[0], select={"n": sash.count(where=pc.field("i"))}).run(table)
    with pytest.raises(ValueError, match="cannot be used on this table"):
        query(WINDOWS[0], select={"n": sash.count(where=pc.field("s") > 3)}).run(table)
    with pytest.raises(KeyError, match="reads column 'z'"):
        query(WINDOWS[0], select={"n": sash.count(where=pc.field("z") > 3)}).run(table)


@pytest.mark.plain
def test_a_row_that_a_condition_fails_on_is_late_on_a_stream() -> None:
    odd = pc.divide(pc.scalar(12), pc.field("i")) > 3
    q = query(sash.tumbling(10), by=[], select={"n": sash.count(where=odd)})
    s = q.stream()
    s.push(pa.table({"t": [1, 2, 3], "i": [1, 0, 9]}))
    assert rows_of(s.close())[0]["n"] == 1
    assert [row["t"] for row in rows_of(s.late)] == [2]


@pytest.mark.plain
def test_another_condition_is_another_query() -> None:
    q = query(sash.tumbling(10), by=[], select={"n": sash.count(where=SOME)})
    s = q.stream()
    s.push(pa.table({"t": [1], "s": ["x"]}))
    other = query(sash.tumbling(10), by=[], select={"n": sash.count(where=pc.field("s") == "y")})
    with pytest.raises(ValueError, match="n: where was"):
        sash.Stream.from_bytes(s.to_bytes(), other)


@pytest.mark.plain
def test_a_dictionary_without_an_index_to_spare() -> None:
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, 127, None], pa.int8()), pa.array([f"v{i}" for i in range(128)])
    )
    select = {"n": sash.count(where=pc.field("s") == "v127")}
    q = sash.Query(time="t", window=sash.tumbling(10), select=select)
    assert q.run(pa.table({"t": [1, 2, 3], "s": values}))["n"].to_pylist() == [1]


def test_conditions_on_dictionaries_are_those_on_their_values() -> None:
    """Whether all entries but one satisfy a condition, one alone, several, all or none."""
    texts = pa.array(["a", "b", None, "c", "a", "d"])
    for where in (
        *(pc.field("s") == "b", pc.field("s") != "b", pc.field("s") == "z"),
        *(pc.field("s") > "b", pc.field("s").is_null(), pc.field("s").is_valid()),
    ):
        condition = Condition.of(where)
        right = condition.holds(pa.table({"s": texts})).tolist()
        assert condition.holds(pa.table({"s": texts.dictionary_encode()})).tolist() == right


@pytest.mark.plain
def test_equal_conditions_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By aggregates that are compiled, on objects, or over ranges of rows, by parts of the keys."""
    monkeypatch.setattr("sash.tables.threads.PIECE", 64)
    seen: list[int] = []
    holds = Condition._holds

    def counted(self: Condition, table: pa.Table) -> Any:
        seen.append(table.num_rows)
        return holds(self, table)

    monkeypatch.setattr(Condition, "_holds", counted)
    select = {
        "some": sash.count(where=pc.field("i") > 0),
        "middle": sash.median("x", where=pc.field("i") > 0),
        "often": sash.mode("s", where=pc.field("i") > 0),
    }
    table = stream("disorder", 400, plain=True)
    for window in (sash.tumbling("5 seconds"), sash.trailing("5 seconds")):
        seen.clear()
        q = query(window, select=select)
        found = q.run(table)
        assert [rows for rows in seen if rows] == [400]
        assert not differences(q, answers(q, table), found)


@pytest.mark.plain
def test_a_full_dictionary_without_nulls() -> None:
    values = pa.array([f"{i:03}" for i in range(256)])
    table = pa.table({"t": list(range(256)), "k": values.dictionary_encode().cast(
        pa.dictionary(pa.uint8(), pa.string()))})  # fmt: skip
    select = {
        "there": sash.count(where=pc.is_valid(pc.field("k"))),
        "null": sash.count(where=pc.is_null(pc.field("k"))),
    }
    q = sash.Query(time="t", window=sash.tumbling(1000), select=select)
    assert q.run(table).select(["there", "null"]).to_pylist() == [{"there": 256, "null": 0}]
