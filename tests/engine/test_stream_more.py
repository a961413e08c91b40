"""Streams: worked examples, state, snapshots, and input that is no good."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.aggregators.nodes import MERGES, MOVES, SPLITS
from sash.engine.stream import Stream
from sash.kernels.program import jit_enabled
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import WINDOWS, batches, stream

from .test_stream import SELECTS, feed, joined, last_revisions, query

#: Few kernels, as each takes a while to compile.
COUNT = {"n": sash.count()}
TOTAL = {"total": sash.sum("v")}


def given(table: Any) -> list[tuple[Any, ...]]:
    """Rows as tuples of their values."""
    return [tuple(row.values()) for row in rows_of(table)]


def count_query(size: int = 10, every: int = 10, **more: Any) -> sash.Query:
    return sash.Query(time="t", window=sash.sliding(size, every), select=COUNT, **more)


@pytest.mark.plain
def test_cbix_figure_1_a_late_record_corrects_exactly_two_past_windows() -> None:
    """Windows of 18 seconds every 2, at odd seconds; each record is its time and its value.  Record
    19 comes a second time, when the windows up to second 22 have been given:

        [3, 21)   3 … 20       given at the first event from 21 on
        [5, 23)   5 … 22       given at the first event from 23 on
        [7, 25)   7 … 24       not yet
    """
    q = sash.Query(time="t", window=sash.sliding(18, 2, offset=1), select=TOTAL)
    s = q.stream(lateness=6, mode="live")
    s.push([{"t": t, "v": t} for t in range(5, 24)])
    assert given(s.push([{"t": 19, "v": 19}, {"t": 24, "v": 24}])) == [
        (3, 21, sum(range(5, 21)) + 19, 1),
        (5, 23, sum(range(5, 23)) + 19, 1),
    ]
    # Figure 7b: 298 at second 24
    assert given(s.push({"t": 25, "v": 25})) == [(7, 25, 298, 0)]


def test_live_gives_a_window_that_was_empty_for_the_first_time() -> None:
    s = count_query(10, 5).stream(lateness=100, mode="live")
    assert given(s.push([{"t": 2}, {"t": 41}])) == [(-5, 5, 1, 0), (0, 10, 1, 0)]
    assert given(s.push([{"t": 3}, {"t": 22}])) == [
        (-5, 5, 2, 1),
        (0, 10, 2, 1),
        (15, 25, 1, 0),
        (20, 30, 1, 0),
    ]
    assert given(s.push([{"t": 4}, {"t": 16}])) == [
        (-5, 5, 3, 2),
        (0, 10, 3, 2),
        (10, 20, 1, 0),
        (15, 25, 2, 1),
    ]


def test_early_gives_the_window_that_ends_next() -> None:
    s = count_query().stream(lateness=100, mode="live", early=True)
    assert given(s.push({"t": 2})) == [(0, 10, 1, 0)]
    assert given(s.push({"t": 4})) == [(0, 10, 2, 1)]
    assert given(s.push({"t": 11})) == [(0, 10, 2, 2), (10, 20, 1, 0)]
    assert given(s.push({"t": 5})) == [(0, 10, 3, 3), (10, 20, 1, 1)]
    assert given(s.close()) == [(10, 20, 1, 2)]


def test_a_watermark_can_be_told() -> None:
    for mode, more in (("final", ()), ("live", (0,))):
        s = count_query().stream(lateness=1000, mode=mode)
        assert s.advance(5).num_rows == 0
        assert given(s.push({"t": 12})) == []
        assert given(s.advance(19)) == []
        assert given(s.advance(datetime(1970, 1, 1, 0, 0, 0, 20, tzinfo=UTC))) == [
            (10, 20, 1, *more)
        ]
        assert given(s.advance(3)) == []
        assert s.watermark == s.time == 20
        assert given(s.push({"t": 13})) == []
        assert s.late["missed_start"].to_pylist() == [10]


def test_an_event_counts_in_its_windows_that_are_open() -> None:
    s = count_query(30, 10).stream()
    s.push([{"t": 5}, {"t": 21}])
    assert given(s.push([{"t": 4}, {"t": 40}])) == [(0, 30, 3), (10, 40, 1)]
    assert rows_of(s.late) == [
        {
            "t": 4,
            "reason": "some of its windows were closed before it came",
            "missed": 2,
            "missed_start": -20,
            "missed_end": 20,
        }
    ]
    assert s.counts == {"rows": 4, "counted": 4, "late": 0, "partly_late": 1, "emitted": 4}
    assert s.take_late().num_rows == 1
    assert s.late.num_rows == 0
    assert s.counts["partly_late"] == 1


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("how", ["final", "live", "changes"])
def test_a_stream_goes_on_from_its_snapshot(select: str, how: str) -> None:
    emit, mode = ("changes", "final") if how == "changes" else ("all", how)
    q = query(select, WINDOWS[2], emit=emit)
    parts = list(batches(stream("keys come and go", 120, plain=True), seed=2, most=15))
    s = q.stream(lateness="3 seconds", mode=mode)
    for part in parts:
        again = Stream.from_bytes(s.to_bytes(), q)
        again._check()
        assert again.counts == s.counts
        assert again.state_size()["slices"] == s.state_size()["slices"]
        expected = s.push(part)
        assert again.push(part).equals(expected)
        assert again.late.equals(s.late)
        s = Stream.from_bytes(again.to_bytes(), q) if part.num_rows % 2 else again
    rows, _ = replay(q, parts, "3 seconds")
    assert given(s.close()) == given(again.close())
    assert s.counts["emitted"] >= len(rows)


def test_a_snapshot_of_something_else_is_refused() -> None:
    q = query("numbers", WINDOWS[2])
    s = q.stream(lateness=5)
    s.push(stream("ties", 20))
    data = s.to_bytes()
    with pytest.raises(ValueError, match="window was sliding"):
        Stream.from_bytes(data, query("numbers", WINDOWS[1]))
    with pytest.raises(ValueError, match="select was many, "):
        Stream.from_bytes(data, query("in order", WINDOWS[2]))
    with pytest.raises(ValueError, match="damaged"):
        Stream.from_bytes(data[:-1] + b"?", q)
    with pytest.raises(ValueError, match="no window of sash"):
        Stream.from_bytes(b"what", q)
    from sash.aggregators import Fiba

    with pytest.raises(ValueError, match="hold a Fiba"):
        Stream.from_bytes(Fiba(sash.operators.sum.of(float)).to_bytes(), q)
    fresh = Stream.from_bytes(q.stream(lateness=5).to_bytes(), q)
    assert fresh.push(stream("ties", 20)).num_rows == s.counts["emitted"]


def test_state_levels_off_and_quiet_keys_leave() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(60, 5), select=COUNT)
    source = np.random.default_rng(1)
    s = q.stream(lateness=20)
    sizes = []
    for i in range(200):
        times = 10 * i + source.integers(-15, 10, 50)
        # a few keys for some batches each, and then others
        keys = [f"key {i // 10 * 5 + k}" for k in source.integers(0, 5, 50).tolist()]
        s.push({"t": times, "k": keys})
        sizes.append(s.state_size())
    assert max(z["keys"] for z in sizes) <= 15
    for what in ("slices", "bytes"):
        assert max(z[what] for z in sizes[100:]) <= 1.1 * max(z[what] for z in sizes[:100])
    assert s._state._grove.keys.most < 128
    s._check()
    s.close()
    assert s.state_size()["keys"] == s.state_size()["slices"] == 0


def test_a_large_batch_grows_memory_and_rows_in_the_middle() -> None:
    source = np.random.default_rng(2)
    n = 20_000 if jit_enabled() else 600
    table = pa.table(
        {
            "t": pa.array(source.integers(0, 40_000, n) * 1_000_000),
            "k": pa.array(source.integers(0, 3, n).astype(str)),
            "x": pa.array(source.standard_normal(n)),
            "i": pa.array(source.integers(-9, 9, n)),
        }
    )
    q = query("numbers", sash.sliding("50 seconds", "7 seconds"))
    run = q.run(table)
    for mode in ("final", "live"):
        s = q.stream(lateness="400 days", mode=mode)
        first, second = s.push(table[: n // 2]), s.push(table[n // 2 :])
        s._check()
        rest = s.close()
        if mode == "live":
            assert min(first.num_rows, second.num_rows) > n // 2
        got = joined([first, second, rest]).to_pandas()
        got = got.groupby(["k", "window_start"], as_index=False).last()
        assert len(got) == run.num_rows
        assert (got["total"].to_numpy() == run["total"].to_numpy()).all()
        assert np.allclose(got["mean"], run["mean"])


def test_any_range_of_the_state() -> None:
    rows = [
        {"t": t, "k": k, "i": t, "x": 0.5, "s": f"{t}{k}", "n": t}
        for t in range(0, 50, 3)
        for k in "ab"
    ]
    for select in ("in order",) if jit_enabled() else SELECTS:
        q = query(select, sash.sliding(20, 4, offset=1))
        s = q.stream(lateness=10)
        s.push(rows)
        begin = q.window.start(q.window.first(s.watermark))
        for lo, hi in ((begin, 41), (begin, 53), (33, 37), (37, 49), (29, 29 + 20)):
            wide = query(select, sash.tumbling(hi - lo, offset=lo))
            held = [r for r in rows if lo <= r["t"] < hi]
            for key in "ab":
                expected = [r for r in answers(wide, held) if r["k"] == key]
                found = s.query(key, lo, hi)
                assert all(found[name] == expected[0][name] for name in q.select), (lo, hi)
        assert s.query("nobody") == s.query("a", 10_001) == s.query("a", 45, 45)
        assert s.query("a") == s.query("a", begin)
        with pytest.raises(ValueError, match="is evicted"):
            s.query("a", begin - 4)
        with pytest.raises(ValueError, match="older to a younger"):
            s.query("a", 45, 41)
        with pytest.raises(TypeError, match=r"a key has 1 value\(s\), not 2"):
            s.query(("a", "b"))
    q = query("numbers", sash.sliding(20, 4, offset=1))
    s = q.stream()
    with pytest.raises(ValueError, match="nothing was pushed"):
        s.query("a")
    s.push(rows)
    with pytest.raises(ValueError, match="within the slice that starts at 45"):
        s.query("a", 33, 46)


def test_keys_of_all_kinds() -> None:
    table = stream("disorder", 90)
    for by in ([], ["f"], ["k", "f"], ["b", "i"], ["w"], "k"):
        q = sash.Query(time="t", by=by, window=WINDOWS[2], select=COUNT)
        s = q.stream(lateness="400 days")
        got = joined(feed(s, batches(table, seed=5, most=30)))
        assert not differences(q, answers(q, table), got, ordered=False)
    nested = table.append_column("z", pa.array([[i % 3] for i in range(90)]))
    q = sash.Query(time="t", by=["z"], window=WINDOWS[2], select=COUNT)
    got = joined(feed(q.stream(lateness="400 days"), batches(nested, seed=5, most=30)))
    assert not differences(q, answers(q, nested), got, ordered=False)


def test_the_kind_that_is_pushed_comes_back() -> None:
    q = count_query()
    columns = {"t": [1, 12]}
    for batch in (pa.table(columns), pa.record_batch(columns), columns):
        assert isinstance(q.stream().push(batch), pa.Table)
    s = q.stream()
    assert list(s.push(pd.DataFrame(columns))["n"]) == [1]
    assert isinstance(s.close(), pd.DataFrame)
    s = q.stream()
    assert s.push(pl.DataFrame(columns))["n"].to_list() == [1]
    assert isinstance(s.advance(100), pl.DataFrame)
    zoned = pa.table({"t": pa.array([1, 12], pa.timestamp("us", "Europe/Paris"))})
    assert q.stream().push(zoned).schema.field("window_end").type == zoned["t"].type


@pytest.mark.plain
def test_rows_that_cannot_be_used_do_not_stop_a_stream() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select=TOTAL)
    s = q.stream()
    s.push([{"t": 1, "k": "a", "v": 1}])
    s.push(
        [
            {"t": None, "k": "a", "v": 1},
            {"t": 2**62, "k": "a", "v": 1},
            {"t": 3, "k": "a", "v": "much"},
            {"t": 4, "k": "a", "v": 3, "note": "of another kind"},
            {"t": "noon", "k": "a", "v": 2},
        ]
    )
    assert s.late["reason"].to_pylist() == [
        "its time is null",
        "its time is out of range",
        "column 'v': 'much' is no int64",
        "column 't': 'noon' is no int64",
    ]
    s.push({"t": [5, 6], "k": ["a", "a"], "v": ["1.25", "x"]})
    assert s.late["reason"].to_pylist()[4:] == [
        "column 'v': '1.25' is no int64",
        "column 'v': 'x' is no int64",
    ]
    assert s.late["v"].to_pylist() == ["1", "1", None, "2", "1.25", "x"]
    assert given(s.close()) == [("a", 0, 10, 4)]
    assert s.counts == {"rows": 8, "counted": 2, "late": 6, "partly_late": 0, "emitted": 1}


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
def test_values_that_an_operator_refuses_are_late(state: str) -> None:
    def positive(x: Any) -> Any:
        if x < 0:
            raise ValueError(f"{x} is negative")
        return (x,)

    kept = sash.operator(
        identity=(),
        lift=positive,
        combine=lambda a, b: a + b,
        lower=list,
        compile=False,
        name="kept",
        encode=lambda a: repr(a).encode(),
        decode=lambda b: ast.literal_eval(b.decode()),
    )
    q = sash.Query(
        time="t", window=sash.tumbling(10), select={"all": sash.aggregate(kept, "v"), **COUNT}
    )
    s = open_stream(state, q)
    s.push({"t": [3, 1, 2, 5, 4], "v": [3, -1, 2, -5, 4]})
    assert s.late.select(["t", "reason"]).to_pylist() == [
        {"t": 1, "reason": "-1 is negative"},
        {"t": 5, "reason": "-5 is negative"},
    ]
    assert given(s.close()) == [(0, 10, [2, 3, 4], 3)]
    big = pa.table({"t": [1, 2], "v": pa.array([7, 2**63 + 1], pa.uint64())})
    s = open_stream(state, sash.Query(time="t", window=sash.tumbling(10), select=TOTAL))
    s.push(big)
    assert s.late["t"].to_pylist() == [2]
    assert given(s.close()) == [(0, 10, 7)]


@pytest.mark.parametrize("state", STATES)
def test_a_combine_that_raises_names_aggregate_key_and_window(state: str) -> None:
    def combined(a: Any, b: Any) -> Any:
        if len(a + b) > 3:
            raise ValueError("too many")
        return a + b

    few = sash.operator(
        identity=(),
        lift=lambda x: (x,),
        combine=combined,
        lower=list,
        commutative=True,
        compile=False,
        name="few",
        encode=lambda a: repr(a).encode(),
        decode=lambda b: ast.literal_eval(b.decode()),
    )
    q = sash.Query(
        time="t",
        by=["k"],
        window=sash.tumbling(10),
        select={"some": sash.aggregate(few, "v"), **COUNT},
    )
    said = r"combine of some.* raised ValueError: too many, in the window from 20 to 30 of k = b"
    # in one batch
    s = open_stream(state, q, lateness=100)
    s.push({"t": [3, 21, 22], "k": ["a", "b", "b"], "v": [1, 2, 3]})
    with pytest.raises(RuntimeError, match=said):
        s.push({"t": [1, 24, 25, 26, 27], "k": ["a", "b", "b", "b", "b"], "v": [4, 5, 6, 7, 8]})
    assert s.counts["rows"] == 3
    # with what is in the state
    s = open_stream(state, q, lateness=100)
    s.push({"t": [3, 21, 22], "k": ["a", "b", "b"], "v": [1, 2, 3]})
    with pytest.raises(RuntimeError, match=said):
        s.push({"t": [1, 24, 25], "k": ["a", "b", "b"], "v": [4, 5, 6]})
    assert s.counts["rows"] == 3


@pytest.mark.parametrize("state", STATES)
def test_a_combine_that_raises_across_slices_is_named_and_nothing_goes_on(state: str) -> None:
    def unlucky(a: int, b: int) -> int:
        if a + b == 13:
            raise ValueError("unlucky")
        return a + b

    own = sash.operator(
        identity=0,
        lift=lambda x: x,
        combine=unlucky,
        commutative=True,
        compile=False,
        name="own",
        encode=lambda a: repr(a).encode(),
        decode=lambda b: int(b.decode()),
    )
    q = sash.Query(
        time="t", by=["k"], window=sash.sliding(30, 10), select={"s": sash.aggregate(own, "v")}
    )
    for values in ([1, 1, 5, 7], [1, 1, 1, 12]):
        s = open_stream(state, q, lateness=100)
        s.push({"t": [5], "k": ["a"], "v": [4]})

        def to_the_end(s: Any = s, values: Any = values) -> None:
            s.push({"t": [5, 15, 25, 35], "k": ["b"] * 4, "v": values})
            s.close()

        with pytest.raises(RuntimeError, match=r"s raised ValueError: unlucky.* of k = b"):
            to_the_end()
        if state == "memory":
            for use in (s.to_bytes, lambda s=s: s.query("a")):
                with pytest.raises(RuntimeError, match="not sound any more"):
                    use()


@pytest.mark.plain
def test_an_answer_that_does_not_exist_is_null_and_the_rest_goes_on() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select=TOTAL)
    for mode in ("final", "live"):
        s = q.stream(mode=mode)
        s.push({"t": [1, 2, 3], "k": ["a", "a", "b"], "v": [2**63 - 1, 1, 5]})
        with pytest.warns(RuntimeWarning, match=r"1 window\(s\) have no answer.*leaves int64"):
            made = s.push({"t": [11, 21], "k": ["a", "a"], "v": [3, 1]})
        assert made["total"].to_pylist() == [None, 3, 5]
        s._check()
        assert s.close()["total"].to_pylist() == [1]


def test_where_leaves_rows_out_before_they_are_events() -> None:
    q = count_query(where=pc.field("x") > 0)
    s = q.stream()
    s.push([{"t": 1, "x": 1}, {"t": 500, "x": -1}, {"t": None, "x": -3}, {"t": None, "x": 3}])
    assert s.time == 1
    assert s.counts == {"rows": 2, "counted": 1, "late": 1, "partly_late": 0, "emitted": 0}
    assert s.late["x"].to_pylist() == [3]


def test_what_cannot_be_is_refused() -> None:
    q = count_query()
    with pytest.raises(ValueError, match="mode is 'final' or 'live'"):
        q.stream(mode="append")
    with pytest.raises(ValueError, match="the lateness is how long the stream waits"):
        q.stream(lateness="-1 second")
    with pytest.raises(ValueError, match="early=True"):
        q.stream(early=True)
    with pytest.raises(ValueError, match="emit='changes' needs mode='final'"):
        count_query(emit="changes").stream(mode="live")
    s = q.stream()
    with pytest.raises(KeyError, match="reads column 't', which is not there"):
        s.push({"x": 1})
    with pytest.raises(TypeError, match="an event is a dict"):
        s.push([1, 2])
    with pytest.raises(TypeError, match="a stream takes a table"):
        s.push(7)
    frame = pd.DataFrame({"t": [1], "x": [2]})
    with pytest.raises(TypeError, match=r"not Series; if it is an event, push its to_dict\(\)"):
        s.push(frame.iloc[0])
    with pytest.raises(TypeError, match=r"not Pandas; if it is an event, push its _asdict\(\)"):
        s.push(next(frame.itertuples()))
    with pytest.raises(TypeError, match="must hold timestamps"):
        s.push({"t": "noon"})
    with pytest.raises(TypeError, match="nothing but nulls"):
        sash.Query(time="t", window=sash.tumbling(10), select={"m": sash.max("x")}).stream().push(
            {"t": 1, "x": None}
        )
    s.push({"t": 1})
    with pytest.raises(KeyError, match="the batch has: x"):
        s.push(pa.table({"x": [1]}))
    with pytest.raises(TypeError, match="the batches before had int64"):
        s.push(pa.table({"t": [[1]]}))
    with pytest.raises(ValueError, match="out of range"):
        s.advance(2**62)
    s.close()
    for use in (lambda: s.push({"t": 1}), lambda: s.advance(1), s.close):
        with pytest.raises(ValueError, match="this stream is closed"):
            use()
    tied = sash.Query(
        time="t", tie="x", window=sash.tumbling(10), select={"all": sash.collect("x")}
    )
    with pytest.raises(ValueError, match="in the order of their arrival"):
        tied.stream().push({"t": [1], "x": [2]})


@pytest.mark.plain
def test_types_can_be_told_before_the_first_batch() -> None:
    q = sash.Query(time="t", window=sash.tumbling(10), select=TOTAL)
    s = q.stream(schema=pa.schema({"t": pa.int64(), "v": pa.int64()}))
    assert s.push([]).column_names == ["window_start", "window_end", "total"]
    s.push({"t": 1, "v": None})
    s.push({"t": 2, "v": 3})
    assert given(s.close()) == [(0, 10, 3)]
    live = q.stream(mode="live", schema=s._plan.schema if s._plan else None)
    assert last_revisions(q, feed(live, [[{"t": 2, "v": 3}]]))[0]["total"] == 3


@pytest.mark.parametrize("after", [0, 3])
def test_a_kernel_without_progress_is_an_error_and_not_a_loop(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel stalls at once, or after calls that ran short of memory or rows."""
    s = count_query().stream(lateness=100)
    s.push({"t": [1, 2]})
    core = s._state._grove.forests[0]._core
    calls = 0

    class Stalling:
        def __getattr__(self, name: str) -> Any:
            return getattr(run, name)

        def step(self, m: Any, call: Any, *rest: Any) -> int:
            nonlocal calls
            calls += 1
            if calls <= after:
                s._state._grove.forests[0]._call[7] += 1  # another key was visited
            return 0

    run = core.run
    monkeypatch.setattr(core, "run", Stalling())
    for said in (r"internal error.*no progress.*report the query", "not sound any more"):
        with pytest.raises(RuntimeError, match=said):
            s.push({"t": [3]})
        assert calls == after + 1


def test_a_stream_rebalances_little_whatever_comes_and_leaves_at_its_old_end() -> None:
    """Late slices fill the oldest nodes of the tree while the oldest slices leave."""
    every, size = 10, 10 * (1092 if jit_enabled() else 400)
    for late in ([], [3], [1, 3, 5, 7], [9, 7, 5, 3, 1, 11, 13]):
        q = sash.Query(time="t", window=sash.sliding(size, every), select=COUNT)
        s = q.stream(lateness=20)
        s.push({"t": list(range(0, 2 * size, 2 * every))})
        core = s._state._grove.forests[0]._core
        before = [core.get(field) for field in (SPLITS, MERGES, MOVES)]
        changes = 0
        for now in range(2 * size, 3 * size, 2 * every):
            first = now - size
            s.push({"t": [now, *(first + every * place for place in late)]})
            changes += 2 * (1 + len(late))
        steps = sum(core.get(f) - n for f, n in zip((SPLITS, MERGES, MOVES), before, strict=True))
        assert 0 < steps <= 1.25 * changes
        s._check()


# Late rows


def test_late_rows_are_kept_up_to_a_limit_and_can_be_taken() -> None:
    s = count_query().stream(keep_late=5)
    s.push({"t": 100})
    s.push({"t": [1, 2, 3]})
    with pytest.warns(RuntimeWarning, match=r"keeps 5 late rows, and 2 older.*take_late\(\)"):
        s.push({"t": [4, 5, 6, 7]})
    assert s.late["t"].to_pylist() == [3, 4, 5, 6, 7]
    assert (s.late_dropped, s.counts["late"]) == (2, 7)
    assert s.take_late()["t"].to_pylist() == [3, 4, 5, 6, 7]
    s.push({"t": [8, 9]})
    assert s.late["t"].to_pylist() == [8, 9]
    with pytest.warns(RuntimeWarning, match="late rows"):
        s.push({"t": list(range(12))})
    assert s.late["t"].to_pylist() == [7, 8, 9, 10, 11]


def test_how_many_late_rows_to_keep_is_a_number() -> None:
    every = count_query().stream(keep_late=None)
    every.push({"t": 10**6})
    every.push({"t": list(range(1000))})
    assert every.late.num_rows == 1000
    none = count_query().stream(keep_late=0)
    none.push({"t": 100})
    with pytest.warns(RuntimeWarning, match="keeps 0 late rows"):
        none.push({"t": 1})
    assert none.late.num_rows == 0
    for wrong, error in ((-1, ValueError), ("many", TypeError), (True, TypeError)):
        with pytest.raises(error, match="keep_late is a number of rows"):
            count_query().stream(keep_late=wrong)


def test_a_stream_comes_back_from_bytes_only() -> None:
    q = count_query()
    for wrong in (None, "text", 7):
        with pytest.raises(TypeError, match=r"from the bytes that to_bytes\(\) gave, not"):
            Stream.from_bytes(wrong, q)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"comes back with its sash\.Query, not None"):
        Stream.from_bytes(q.stream().to_bytes(), None)  # type: ignore[arg-type]
    assert Stream.from_bytes(bytearray(q.stream().to_bytes()), q).counts["rows"] == 0


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["many values", "nulls"])
def test_dictionaries_that_cannot_be_one(kind: str) -> None:
    """Arrow unites neither dictionaries with nulls inside nor more values than an index counts."""

    def text(first: int) -> pa.DictionaryArray:
        items = [f"v{first + i}" for i in range(100)]
        values = pa.array(items if kind == "many values" else [*items[:-1], None])
        return pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), values)

    words = pa.chunked_array([text(0), text(100)])
    given = pa.table({"t": list(range(200)), "s": words, "more": words})
    plain = given.select(["t"])
    for name in ("s", "more"):
        plain = plain.append_column(
            name, pa.chunked_array([c.dictionary_decode() for c in words.chunks])
        )
    select = {"n": sash.count(), "least": sash.min("s")}
    for window in (sash.tumbling(10), sash.trailing(5), sash.session(2)):
        q = sash.Query(time="t", by=["s"], window=window, select=select)
        assert q.run(given).to_pylist() == q.run(plain).to_pylist()
        s = q.stream(lateness=5)
        for _ in range(2):
            s.push(given)
        late = s.late
        assert late.num_rows > 100
        again = Stream.from_bytes(s.to_bytes(), q)
        assert again.late.to_pylist() == late.to_pylist()
        assert again.close() == s.close()
