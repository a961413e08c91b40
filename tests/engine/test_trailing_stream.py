"""Streams with a window for each event, against brute force and the run over a table."""

from __future__ import annotations

import copy
import dataclasses
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_run import OWN

import sash
from sash.testing.queries import differences, replay, rows_of
from sash.testing.streams import STREAMS, batches, stream

SECOND = 1_000_000
WINDOWS = (
    sash.trailing("5 seconds"),
    sash.trailing("3 seconds", closed="left"),
    sash.trailing("2 seconds", closed="right"),
    sash.trailing("5 seconds", exclude="group"),
    sash.trailing("4 seconds", delay="2 seconds"),
    sash.trailing("1 day"),
    sash.trailing(1),
    sash.lifetime(),
    sash.lifetime(closed="left"),
)
LATENESS = ("0 seconds", "3 seconds", "1 day")
SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": WINDOWS[0], "select": SELECT} | given)


def feed(s: Any, events: pa.Table, *, seed: int = 0, most: int = 17) -> list[Any]:
    """All that a stream emits, batch by batch."""
    made = []
    for batch in batches(events, seed=seed, most=most):
        made.append(s.push(batch))
        s._check()
    made.append(s.close())
    s._check()
    return [part for part in made if part.num_columns]


def in_order(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row["n"])


def judge(q: sash.Query, events: pa.Table, lateness: Any, seed: int, **given: Any) -> None:
    """Feed a stream in batches; its last rows are those of the judge, and so are its late rows."""
    s = q.stream(lateness=lateness, **given)
    parts = feed(s, events, seed=seed)
    rows = [row for part in parts for row in rows_of(part)]
    expected, late = replay(q, batches(events, seed=seed, most=17), lateness)
    last = {row["n"]: row for row in rows}  # the last revision
    if given.get("mode") == "live":
        for row in rows:
            before = [r["revision"] for r in rows if r["n"] == row["n"]]
            assert before == list(range(len(before))), "revisions are numbered from 0 on"
    else:
        assert len(last) == len(rows), "a row is emitted once"
    assert not differences(q, in_order(expected), in_order(list(last.values())))
    missed = [row["n"] for row in s.late.to_pylist()]
    assert sorted(missed) == sorted(row["n"] for row, _ in late)
    assert s.counts["late"] == len(late)
    assert s.counts["counted"] == len(expected)
    assert s.counts["emitted"] == len(rows)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_final(kind: str, window: Any) -> None:
    seed = list(STREAMS).index(kind) + WINDOWS.index(window)
    judge(query(window=window), stream(kind, 50), LATENESS[seed % 3], seed)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", WINDOWS[:7], ids=repr)
def test_live(kind: str, window: Any) -> None:
    seed = list(STREAMS).index(kind) + WINDOWS.index(window)
    judge(query(window=window), stream(kind, 50), LATENESS[seed % 3], seed, mode="live")


@pytest.mark.parametrize("closed", ["both", "left", "right", "none"])
@pytest.mark.parametrize("size", [1, 2**60])
@pytest.mark.parametrize("mode", ["final", "live"])
def test_the_least_and_the_greatest_size(closed: Any, size: int, mode: Any) -> None:
    q = query(by=[], window=sash.trailing(size, closed=closed), select={"sum": sash.sum("x")})
    events = {"t": [1, 2, 3, 3], "x": [1, 2, 4, 8]}
    s = q.stream(mode=mode, lateness=5)
    made = [s.push(events), s.close()]
    s._check()
    assert [x for part in made for x in part["sum"].to_pylist()] == q.run(events)["sum"].to_pylist()


@pytest.mark.parametrize("by", [[], ["f"], ["k", "b"]], ids=repr)
@pytest.mark.parametrize("mode", ["final", "live"])
def test_keys_and_conditions(by: list[str], mode: Any) -> None:
    events = stream("disorder")
    judge(query(by=by), events, "4 seconds", 1, mode=mode)
    judge(query(by=by, where=pc.field("i") > 0), events, "4 seconds", 2, mode=mode)


def test_a_tie_puts_events_in_order_behind_the_watermark() -> None:
    events = stream("ties")
    backwards = events.take(list(range(119, -1, -1)))
    judge(query(tie="n"), backwards, "1 day", 1)
    with pytest.raises(ValueError, match="unless events drive the window in final mode"):
        feed(query(tie="n").stream(mode="live"), backwards)


def test_every_cutting_into_batches_gives_the_rows_of_the_table() -> None:
    events = stream("disorder", 80)
    for window in (WINDOWS[0], WINDOWS[4], WINDOWS[7]):
        q = query(window=window)
        whole = in_order(rows_of(q.run(events)))
        for seed in range(4):
            s = q.stream(lateness="1 day")
            parts = feed(s, events, seed=seed, most=random.Random(seed).randrange(1, 60))
            found = in_order([row for part in parts for row in rows_of(part)])
            assert [repr(row) for row in found] == [repr(row) for row in whole]


def test_rows_come_out_in_the_order_of_their_arrival() -> None:
    q = query(by=[], window=sash.trailing(10), select={"all": sash.collect("x")})
    s = q.stream(lateness=5)
    given = [{"t": 7, "x": "a"}, {"t": 3, "x": "b"}, {"t": 9, "x": "c"}]
    assert s.push(given).to_pylist() == [
        {"t": 3, "x": "b", "window_start": -7, "window_end": 3, "all": ["b"]}
    ]
    found = s.push({"t": 20, "x": "d"})
    assert found["all"].to_pylist() == [["b", "a"], ["b", "a", "c"]]
    assert found["x"].to_pylist() == ["a", "c"]


def test_columns_that_a_batch_lacks_or_adds() -> None:
    q = query(by=[], window=sash.trailing(10), select={"sum": sash.sum("x")})
    s = q.stream(lateness=100)
    s.push({"t": [1], "x": [1], "more": ["a"]})
    s.push({"t": [2], "x": [2]})  # lacks one that is only kept
    s.push([{"t": 3, "x": 3}])
    s.push({"t": [4], "x": [4], "more": ["b"], "other": [1]})
    with pytest.raises(KeyError, match="the query reads column 'x', which is not there"):
        s.push({"t": [5], "more": ["c"]})
    found = s.close()
    assert found.column_names == ["t", "x", "more", "window_start", "window_end", "sum"]
    assert found["more"].to_pylist() == ["a", None, None, "b"]
    assert found["sum"].to_pylist() == [1, 3, 6, 10]


def test_a_late_event_is_kept_with_the_window_it_missed() -> None:
    q = query(by=[], window=sash.trailing(10), select={"all": sash.collect("x")})
    s = q.stream()
    s.push({"t": 20, "x": "a"})
    s.push({"t": 19, "x": "b"})
    assert s.push({"t": None, "x": "c"}).num_rows == 0
    late = s.take_late()
    assert late["x"].to_pylist() == ["b", "c"]
    assert late["missed_start"].to_pylist() == [9, None]
    assert late["missed_end"].to_pylist() == [19, None]
    assert late["reason"].to_pylist()[0].startswith("its time is before the watermark")
    assert s.close()["all"].to_pylist() == [["a"]]


@pytest.mark.parametrize("mode", ["final", "live"])
def test_a_snapshot_in_the_middle(mode: Any) -> None:
    events = stream("disorder", 90)
    typed = {name: SELECT[name] for name in ("rows", "top", "newest")}
    for window in (WINDOWS[0], *([WINDOWS[7]] if mode == "final" else [])):
        q = query(window=window, select=typed)
        s = q.stream(lateness="6 seconds", mode=mode)
        t = q.stream(lateness="6 seconds", mode=mode)
        for batch in batches(events, seed=3, most=9):
            wanted = s.push(batch)
            t = sash.Stream.from_bytes(t.to_bytes(), q)
            copied = copy.deepcopy(t)
            assert repr(t.push(batch).to_pylist()) == repr(wanted.to_pylist())
            assert repr(copied.push(batch).to_pylist()) == repr(wanted.to_pylist())
        assert repr(t.close().to_pylist()) == repr(s.close().to_pylist())


def test_operators_of_the_users_own() -> None:
    select = {name: sash.aggregate(op, "i") for name, op in OWN.items()}
    for mode in ("final", "live"):
        judge(query(select=select), stream("disorder", 60), "3 seconds", 0, mode=mode)


def test_state_levels_off() -> None:
    typed = {name: SELECT[name] for name in ("rows", "top", "newest")}  # a kernel that is there

    def batch(i: int, keys: list[str]) -> dict[str, Any]:
        many = len(keys)
        x, n = [1.0] * many, [1] * many
        return {"t": range(50 * i, 50 * i + many), "k": keys, "x": x, "i": n}

    three = [str(j % 3) for j in range(50)]
    q = query(window=sash.trailing(100), select=typed)
    s, sizes = q.stream(lateness=10), []
    for i in range(40):
        s.push(batch(i, three))
        sizes.append(s.state_size())
    assert max(size["slices"] for size in sizes) <= 2 * 110
    assert sizes[-1]["bytes"] <= 2 * sizes[10]["bytes"]
    life = query(window=sash.lifetime(), select=typed).stream()
    for i in range(20):
        life.push(batch(i, three))
    assert life.state_size()["slices"] == 3
    gone = q.stream()
    for i in range(40):
        gone.push(batch(20 * i, [f"key {i}"]))
        gone._check()
    assert gone.state_size()["keys"] <= 2
    coded = q.stream()
    every = pa.array([f"key {i}" for i in range(40)])
    for i in range(40):
        one = pa.table(batch(20 * i, ["", ""]))
        keys = pa.DictionaryArray.from_arrays(pa.array([i, i]), every)
        coded.push(one.set_column(1, "k", keys))
        coded._check()
    assert coded.state_size()["keys"] <= 2
    assert coded.close()["k"].to_pylist() == ["key 39"]


@pytest.mark.parametrize("oracle", ["", "1"])
@pytest.mark.parametrize("how", ["push", "advance", "close"])
def test_an_answer_that_does_not_exist_is_null_with_a_warning(
    oracle: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = query(by=[], window=sash.trailing(5), select={"sum": sash.sum("x"), "rows": sash.count()})
    monkeypatch.setenv("SASH_ORACLE", oracle)
    s = q.stream(lateness=0)
    s.push({"t": [1, 2], "x": [2**62, 2**62]})
    given = {"push": [{"t": [3], "x": [0]}], "advance": [3], "close": []}
    with pytest.warns(RuntimeWarning, match="1 window") as warned:
        found = getattr(s, how)(*given[how])
    assert (found["sum"].to_pylist(), found["rows"].to_pylist()) == ([None], [2])
    assert [w.filename for w in warned] == [__file__]


def test_columns_that_the_query_does_not_read_decide_nothing() -> None:
    q = query(by=[], window=sash.trailing(10), select={"sum": sash.sum("x")})
    for where in (None, pc.field("i") > 0):
        s = dataclasses.replace(q, where=where).stream(lateness=100)
        s.push([{"t": 1, "x": 1, "i": 1, "more": 7, "none": None}])
        s.push([{"t": 2, "x": 2, "i": 1, "more": "no number", "none": "text"}])
        s.push(pa.table({"t": [3], "x": [3], "i": [1], "more": ["no number"], "none": ["more"]}))
        s.push(pa.table({"t": [4], "x": [4], "i": [1], "more": [[1]], "none": [None]}))
        s.push(iter([{"t": 5, "x": "no number", "i": 1, "more": "no number"}]))
        s.push([{"t": 6, "x": 6, "i": "no number", "more": 8}])
        found = s.close()
        late = [5] if where is None else [5, 6]
        assert s.late["t"].to_pylist() == late
        assert found["sum"].to_pylist() == [1, 3, 6, 10, 16][: 6 - len(late)]
        assert found["more"].to_pylist() == [7, None, None, None, 8][: 6 - len(late)]
        assert found["none"].to_pylist() == [None, "text", "more", None, None][: 6 - len(late)]
    s = dataclasses.replace(q, where=pc.field("i") > 0).stream()
    with pytest.raises(TypeError, match="column 'i' has nothing but nulls"):
        s.push([{"t": 1, "x": 1, "i": None}])


def test_a_column_may_have_any_name() -> None:
    q = query(by=[], window=sash.trailing(10), select={"sum": sash.sum("x")})
    for mode in ("final", "live"):
        s = q.stream(lateness=5, mode=mode)
        s.push({"t": [1, 2], "x": [1, 2], "__revision": ["a", "b"]})
        again = sash.Stream.from_bytes(s.to_bytes(), q)
        late = {"t": [1], "x": [4], "__revision": ["c"]}
        assert again.push(late) == s.push(late)
        assert again.close() == s.close()


def test_a_row_that_lift_refuses_is_late() -> None:
    root = sash.operator(
        identity=0.0, lift=lambda x: 1.0 / x, combine=lambda a, b: a + b, name="inverses"
    )
    q = query(by=[], select={"y": sash.aggregate(root, "s")}, window=sash.trailing(10))
    s = q.stream(lateness=5, schema=pa.schema({"t": pa.int64(), "s": pa.string()}))
    s.push([{"t": 1, "s": None}, {"t": 2, "s": "x"}])
    assert s.late["t"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("window", "given", "message"),
    [
        (sash.trailing(5, exclude="row"), {}, "exclude='row' or 'ties' would take it apart"),
        (sash.lifetime(delay=3), {}, "a lifetime is one partial a key, which has no delay"),
        (sash.lifetime(), {"mode": "live"}, "use mode='final', or sash.trailing"),
        (sash.trailing(5), {"mode": "live", "early": True}, "early=True is for windows that end"),
        (sash.rows(5), {}, "run over tables, in this process and on Spark; streams take"),
        (sash.delta("x", 5), {}, "run over tables, in this process and on Spark; streams take"),
    ],
    ids=repr,
)
def test_what_is_not_supported_is_refused_when_it_is_set_up(
    window: Any, given: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        query(window=window).stream(**given)
    with pytest.raises(ValueError, match="answers for its events"):
        query().stream().query("a")


def test_the_oracle_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    events = stream("disorder", 60)
    for mode in ("final", "live"):
        s = query().stream(lateness="2 seconds", mode=mode)
        monkeypatch.setenv("SASH_ORACLE", "1")
        oracle = query().stream(lateness="2 seconds", mode=mode)
        monkeypatch.delenv("SASH_ORACLE")
        with pytest.raises(ValueError, match="under SASH_ORACLE=1 has no bytes"):
            oracle.to_bytes()
        for one, other in zip(feed(s, events), feed(oracle, events), strict=True):
            assert one.schema == other.schema
            # which of two zeros is the greatest is open
            one, other = one.drop(["top"]), other.drop(["top"])
            assert repr(one.to_pylist()) == repr(other.to_pylist())
