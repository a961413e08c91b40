"""Statements that share a stream: each has the rows, the late rows and the counts that it has by
itself, over every cutting, and what they have in common is kept once."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.sql.shared_stream import SharedSqlStream, grouped
from sash.testing.queries import rows_of
from sash.testing.streams import stream

pytestmark = pytest.mark.plain

GROUPED = (
    "SELECT k, window.start AS s, window.end AS e, sum(i / x) AS r, count(*) * 2 AS n FROM t "
    "GROUP BY k, window(t, '{}') {}"
)
GIVEN: dict[str, Any] = {
    "fast": sash.sql(GROUPED.format("4 seconds", "HAVING count(*) > 1")),
    "slow": sash.sql(GROUPED.format("10 seconds", "")),
    "safe": sash.sql("SELECT k, window, max(i) AS m FROM t GROUP BY k, window(t, '4 s')"),
    "spelt": sash.sql("SELECT K, window, min(X) AS m FROM T GROUP BY K, window(t, '8 s')"),
    "some": sash.sql(
        "SELECT k, window, max(i) AS m FROM t WHERE x > 0 GROUP BY k, window(t, '4 s')"
    ),
    "session": sash.sql(
        "SELECT k, session_window, sum(i / x) AS r FROM t GROUP BY k, session_window(t, '2 s')"
    ),
    "each": sash.sql(
        "SELECT *, sum(i + 1) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '3' SECOND "
        "PRECEDING AND CURRENT ROW) AS up FROM t"
    ),
    "query": sash.Query(
        time="t", by=["k"], window=sash.tumbling("5 seconds"), select={"n": sash.count()}
    ),
}


def bag(tables: list[pa.Table]) -> list[str]:
    """The rows of all tables, floats up to rounding: a stream adds those of a slice as they come,
    a shared one by their times."""
    rows = [row for table in tables if table.num_columns for row in rows_of(table)]
    return sorted(str({name: up_to_rounding(value) for name, value in r.items()}) for r in rows)


def up_to_rounding(value: object) -> object:
    return f"{value:.12g}" if isinstance(value, float) else value


def late_of(table: pa.Table, name: str) -> list[str]:
    """The late rows of one statement: when they came, and why they were late."""
    rows = [r for r in table.to_pylist() if name in r.get("queries", [name])]
    return sorted(f"{r['n']} {r['reason']} {r['missed_start']}" for r in rows)


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("cut", ["tables", "dicts"])
def test_each_statement_has_what_it_has_by_itself(mode: Any, cut: str) -> None:
    table = stream("disorder", 60, plain=True)
    parts = [table.slice(0, 11), table.slice(11, 1), table.slice(12, 20), table.slice(32)]
    given: list[Any] = [part.to_pylist() if cut == "dicts" else part for part in parts]
    more: dict[str, Any] = {"lateness": "2 seconds", "mode": mode, "schema": table.schema}
    shared = sash.share(GIVEN)
    together = shared.stream(**more)
    assert isinstance(together, SharedSqlStream)
    found = []
    for i, part in enumerate(given):
        found.append(together.push(part))
        if i == 1:
            together = SharedSqlStream.from_bytes(together.to_bytes(), shared)
    before = together.watermark
    at: dict[str, Any] = {name: {} for name in GIVEN if name != "session"}
    at["each"] = {"at": together.time}
    asked = {name: together.query(name, "a", **when) for name, when in at.items()}
    with pytest.raises(KeyError, match="there is no statement 'other' here; there are: fast"):
        together.query("other")
    found.append(together.close())
    late = together.late
    for name, one in GIVEN.items():
        alone = one.stream(**more)
        own = [alone.push(part) for part in given]
        assert before is not None
        assert before <= alone.watermark
        assert name not in at or asked[name] == alone.query("a", **at[name]), name
        own.append(alone.close())
        assert bag([each[name] for each in found]) == bag(own) != [], name
        assert together.counts[name] == alone.counts, name
        assert together.delays[name] == alone.delays, name
        assert late_of(late, name) == late_of(alone.late, name), name
    assert late.num_rows == together.take_late().num_rows > together.late.num_rows == 0


def test_statements_share_slices_if_they_compute_the_same() -> None:
    assert grouped(GIVEN) == [
        ("fast", "slow", "session"),
        ("safe", "spelt"),
        ("some",),
        ("each",),
        ("query",),
    ]
    table = stream("disorder", 60, plain=True)
    few = {name: GIVEN[name] for name in ("slow", "fast")}
    shared = sash.share(few).stream(lateness="1 day", schema=table.schema)
    shared.push(table)
    alone = [one.stream(lateness="1 day", schema=table.schema) for one in few.values()]
    for one in alone:
        one.push(table)
    assert shared.state_size()["keys"] == alone[0].state_size()["keys"]
    assert shared.time == alone[0].time
    assert shared.advance(alone[0].time)["fast"].num_columns == 5


def test_a_row_is_late_for_those_that_fail() -> None:
    text = "SELECT {} AS m FROM t GROUP BY window(ts, '{} microseconds')"
    given = {
        "a": sash.sql(text.format("sum(6 / x)", 10)),
        "b": sash.sql(text.format("sum(6 / x)", 20)),
        "c": sash.sql(text.format("max(x)", 10)),
    }
    s = sash.share(given).stream()
    s.push([{"ts": 1, "x": 0}, {"ts": 2, "x": 3}])
    made = s.push({"ts": 25, "x": 1})
    assert {n: t["m"].to_pylist() for n, t in made.items()} == {"a": [2.0], "b": [2.0], "c": [3]}
    late = [(r["ts"], r["reason"], name) for r in s.late.to_pylist() for name in r["queries"]]
    assert late == [(1, "6 / x: division by zero", name) for name in ("a", "b")]
    assert s.late.column_names == ["ts", "x", *(["reason", "missed", "missed_start", "missed_end"]),
                                   "queries"]  # fmt: skip


def test_late_rows_of_two_types_are_text() -> None:
    """Only a reads x, so only a knows its type."""
    text = "SELECT {} AS m FROM t {} GROUP BY window(ts, '10 microseconds')"
    given = {
        "a": sash.sql(text.format("max(x)", "")),
        "b": sash.sql(text.format("count(*)", "WHERE k > 0")),
    }
    s = sash.share(given).stream()
    s.push([{"ts": 1, "x": 1, "k": 1}, {"ts": 50, "x": 2, "k": 1}])
    s.push([{"ts": 2, "x": 7, "k": 1}])
    s.push([{"ts": 3, "x": "abc", "k": 1}])
    for late in (s.late, s.take_late()):
        found = [(r["ts"], r["x"], r["queries"]) for r in late.to_pylist()]
        assert found == [(2, "7", ["a"]), (3, None, ["a"]), (2, "7", ["b"]), (3, "abc", ["b"])]
    assert not s.late.num_rows


def test_late_rows_that_cannot_be_shown_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    s = sash.share({"a": GIVEN["fast"], "b": GIVEN["safe"]}).stream()
    s.push([{"t": 10**8, "k": "a", "i": 1, "x": 1}])
    s.push([{"t": 1, "k": "a", "i": 1, "x": 1}])

    def failing(parts: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(sash.sql.shared_stream, "_together", failing)
        with pytest.raises(MemoryError):
            s.take_late()
    assert s.take_late().num_rows == 2


def _summed(size: int) -> sash.Query:
    return sash.Query(time="ts", window=sash.tumbling(size), select={"s": sash.sum("x")})


_OVER = "SELECT {} AS m FROM t {} GROUP BY window(ts, '{} microseconds')"
_INVERSE = sash.sql(_OVER.format("1 / sum(x)", "", 10))


@pytest.mark.parametrize(
    "given",
    [
        _INVERSE,
        sash.share({"a": _INVERSE, "b": sash.sql(_OVER.format("1 / sum(x)", "", 20))}),
        sash.share({"a": _INVERSE, "b": sash.sql(_OVER.format("count(*)", "WHERE x > 0", 10))}),
        sash.sql(_OVER.format("sum(x)", "", 10)),
        sash.share({"a": sash.sql(_OVER.format("sum(x)", "", 10))}),
        sash.share({"a": _summed(10), "b": _summed(20)}),
        _summed(10),
    ],
)
def test_warnings_name_the_line_that_called(given: Any) -> None:
    """Sums of zero have no inverse, others are too large, and late rows are dropped."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        s = given.stream(keep_late=0)
        s.push([{"ts": 1, "x": 0}])
        s.push([{"ts": 30, "x": 2**62}, {"ts": 31, "x": 2**62}])
        s.push([{"ts": 2, "x": 0}])
        s.advance(100)
        s.push([{"ts": 200, "x": 0}])
        s.close()
    assert len({str(w.message) for w in seen}) > 1
    assert {w.filename for w in seen} == {__file__}


def test_a_batch_is_in_or_out_as_a_whole() -> None:
    text = "SELECT max({}) AS m FROM t GROUP BY window(ts, '10 microseconds')"
    s = sash.share({"a": sash.sql(text.format("x")), "b": sash.sql(text.format("y + 1"))}).stream()
    with pytest.raises(sash.SqlError, match="column y is not there"):
        s.push([{"ts": 1, "x": 0}])
    s.push([{"ts": 1, "x": "text", "y": 1}])
    assert s.close()["a"].to_pylist() == [{"m": "text"}]


_EACH = (
    "SELECT k, max(x) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL 5 MICROSECONDS PRECEDING) "
    "AS m FROM t"
)
_MAX = sash.sql("SELECT max(x) AS m FROM t GROUP BY window(ts, '10 microseconds')")


def _max_of(column: str, *by: str) -> sash.Query:
    return sash.Query(time="ts", by=by, window=sash.tumbling(10), select={"m": sash.max(column)})


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        sash.share({"a": _MAX, "b": _max_of("y", "k")}),
        sash.share(
            {"a": _MAX, "b": sash.sql("SELECT k, max(y) AS m FROM t GROUP BY k, window(ts, '1 d')")}
        ),
        sash.share({"a": sash.sql(_EACH), "b": _max_of("y", "k")}),
        sash.share({"a": _max_of("x"), "b": _max_of("y", "k")}),
    ],
    ids=["query", "statement", "each", "queries"],
)
def test_a_batch_that_one_refuses_leaves_all_as_they_were(given: Any, first: bool) -> None:
    good = {"ts": [1], "x": [3], "y": [4], "k": ["a"]}
    unfit: list[Any] = [
        pa.table({**good, "reason": ["mine"]}),
        pa.table([[1], [3], [4], [4], ["a"]], names=["ts", "x", "y", "y", "k"]),
        pa.table({"ts": [1], "x": [3], "k": ["a"]}),
        {"ts": [1], "x": [3], "k": ["a"]},
    ]
    if first:
        unfit += [[{"ts": 1, "x": 3, "y": object(), "k": "a"}]]
    else:
        unfit += [pa.table({**good, "y": [[1]]}), pa.table({**good, "k": [[1]]})]
        unfit += [pa.table({**good, "y": pa.array([1], pa.timestamp("us"))})]
    for batch in unfit:
        s = given.stream()
        if not first:
            s.push(good)
        with pytest.raises((KeyError, TypeError, ValueError)):
            s.push(batch)
        s.push(pa.table(good))
        assert all(s.counts[name]["rows"] == 2 - first for name in "ab")
        assert [t["m"].to_pylist()[-1] for t in s.close().values()] == [3, 4]


def test_copies_have_their_own_state() -> None:
    for given in (_MAX, sash.share({"a": _MAX, "b": _max_of("x")})):
        s = given.stream()
        s.push([{"ts": 1, "x": 3, "k": "a"}])
        for made in (copy.copy(s), copy.deepcopy(s)):
            made.push([{"ts": 2, "x": 4, "k": "a"}])
            made.close()
        found = s.close()
        each = [found] if given is _MAX else list(found.values())
        assert [t["m"].to_pylist() for t in each] == [[3]] * len(each)
        own = f"sash.{type(s).__name__}.from_bytes"
        with pytest.raises(TypeError, match=f"a stream cannot be pickled; .*{own}"):
            pickle.dumps(s)


def test_other_statements_are_refused() -> None:
    text = "SELECT max(x) AS m FROM t GROUP BY window(ts, '{} microseconds')"
    shared = sash.share({"a": sash.sql(text.format(10))})
    data = shared.stream().to_bytes()
    with pytest.raises(ValueError, match="these bytes are of other statements"):
        SharedSqlStream.from_bytes(data, sash.share({"a": sash.sql(text.format(20))}))
    with pytest.raises(sash.SqlError, match="ORDER BY is for tables"):
        sash.share({"a": sash.sql(text.format(10) + " ORDER BY m")}).stream()


def test_explain_says_which_statements_share() -> None:
    text = "SELECT k, max({} * x) AS m FROM t GROUP BY k, window(t, '{} microseconds')"
    frame = (
        "(PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW)"
    )
    given = {
        "each": sash.sql(f"SELECT k, sum(x) OVER {frame} AS s FROM t"),
        "short": sash.sql(text.format(2, 2)),
        "other": sash.sql(text.format(3, 10)),
        "long": sash.sql(text.format(2, 10)),
    }
    s = sash.share(given).stream(5)
    sample = {"t": [1, 6], "k": ["a", "b"], "x": [5, 4]}
    assert list(s.explain().queries) == list(given)
    each, both, other = s.explain(data=sample).bundles
    assert both.names == ("short", "long")
    assert both.measured.rows == 4
    assert other.why == "no other statement computes the same columns under the same WHERE"
    assert each.why.startswith("events make the windows of trailing(")
    assert s.explain(sample).bundles[1].kept.bytes > 0
    s.push(sample)
    assert s.explain().bundles[1].kept.bytes > 0
