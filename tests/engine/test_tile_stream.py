"""Streams whose state is tiles in a store, against brute force, and what they move.

The properties of `test_stream` run over tiles as well; here is what is about tiles: ties, keys of
many types, the records and bytes that a batch touches, and damage.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.kernels.program import jit_enabled
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.stored import TileStream
from sash.testing.streams import STREAMS, WINDOWS, batches, stream
from sash.windows import Aligned
from sash.windows.contract import LATEST
from thinning import crossed, first_of

SECOND = 1_000_000
Row = dict[str, Any]

#: Streams of many rows, about what is moved and not about kernels: minutes with the JIT off.
compiled_only = pytest.mark.skipif(not jit_enabled(), reason="too long with SASH_JIT=0")


@dataclass
class Fed:
    """What came out of a stream of batches."""

    stream: TileStream
    rows: list[Row] = field(default_factory=list)

    @property
    def query(self) -> sash.Query:
        return self.stream._query

    def last(self) -> list[Row]:
        """The last revision of each window, in the order of the oracle; they are counted from 0."""
        found: dict[str, Row] = {}
        for row in self.rows:
            where = repr([row[k] for k in (*self.query.by, "window_start", "window_end")])
            number = row.get("revision", 0)
            assert number == (found[where]["revision"] + 1 if where in found else 0)
            found[where] = {**row, "revision": number}
        return list(found.values())


def feed(
    query: sash.Query, cut: Iterable[pa.Table], *, mode: Any = "final", lateness: int = 0
) -> Fed:
    """A stream over tiles, fed with batches and closed."""
    fed = Fed(TileStream(query, lateness=lateness, mode=mode))
    for batch in cut:
        fed.rows += rows_of(fed.stream.push(batch))
    fed.rows += rows_of(fed.stream.close())
    return fed


def asked(window: Aligned, **more: Any) -> sash.Query:
    """A query of what `test_stream` asks for, whose kernels are there already."""
    given: dict[str, Any] = {
        "time": "t",
        "by": ["k"],
        "window": window,
        "select": SELECTS["numbers"],
    }
    return sash.Query(**(given | more))


TOP = {"n": sash.count(), "m": sash.max("x")}
ORDERED = SELECTS["in order"] | {"all": sash.collect("n")}


def judge(fed: Fed, cut: Sequence[pa.Table], lateness: int) -> None:
    """Equal to brute force: rows, late rows, and nothing lost."""
    right, late = replay(fed.query, cut, lateness)
    assert not differences(fed.query, right, fed.last(), ordered=False)
    columns, found, counts = fed.query.columns, rows_of(fed.stream.late), fed.stream.counts
    assert [str({c: row[c] for c in columns}) for row, _ in late] == [
        str({c: row[c] for c in columns}) for row in found
    ]
    for row, (_, missed) in zip(found, late, strict=True):
        span = (missed[0][0], missed[-1][1]) if missed else (None, None)
        assert (row["missed"], row["missed_start"], row["missed_end"]) == (len(missed), *span)
    assert counts["rows"] == counts["counted"] + counts["late"]
    assert len(found) == counts["late"] + counts["partly_late"]
    assert not len(fed.stream.store), "all windows are closed, and nothing is kept"


# Equal to brute force


@pytest.mark.thin
@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("kind", STREAMS)
def test_order_matters_across_batches(kind: str, mode: str) -> None:
    for seed, window in enumerate(WINDOWS[:5]):
        events = stream(kind, 60, seed=seed)
        lateness = (40 * SECOND, 0)[seed % 2]
        cut = list(batches(events, seed=seed, most=12))
        q = asked(window, select=ORDERED, tie=(None, "i", "x", "w")[seed % 4])
        judge(feed(q, cut, mode=mode, lateness=lateness), cut, lateness)


@pytest.mark.parametrize("kind", STREAMS)
def test_changes_only(kind: str) -> None:
    selects = ({"top": sash.max("i"), "n": sash.count()}, {"s": sash.collect("s")})
    for window, select in crossed(WINDOWS, selects, turn=list(STREAMS).index(kind)):
        seed = WINDOWS.index(window)
        cut = list(batches(stream(kind, 60, seed=seed), seed=seed, most=20))
        q = asked(window, select=select, emit="changes")
        judge(feed(q, cut, lateness=5 * SECOND), cut, 5 * SECOND)


@compiled_only
def test_any_cutting_gives_the_same_rows() -> None:
    events = stream("disorder", 100)
    q = asked(sash.sliding("7 seconds", "3 seconds"), select=ORDERED, tie="n")
    right = answers(q, events)
    for mode in ("final", "live"):
        for seed in first_of(range(8), 4):
            cut = list(batches(events, seed=seed, most=(1, 3, 20, 100)[seed % 4] + seed))
            fed = feed(q, cut, mode=mode, lateness=3600 * SECOND)
            assert not fed.stream.late.num_rows
            assert not differences(q, right, fed.last(), ordered=False)


def test_text_vectors_structs_and_operators_of_ones_own() -> None:
    alternate = sash.operator(  # not commutative: + for the first, - for the second, ...
        identity=(0, 0.0),
        lift=lambda x: (1, x),
        combine=lambda a, b: (a[0] + b[0], a[1] + (b[1] if a[0] % 2 == 0 else -b[1])),
        lower=lambda p: p[1],
        name="alternate",
    )
    joined = sash.operator(
        identity="",
        lift=lambda s: s,
        combine=lambda a, b: a + b,
        encode=lambda p: p.encode(),
        decode=lambda b: b.decode(),
        name="joined",
    )
    select = {
        "top": sash.max("s"),
        "bloom": sash.bloom("i", bits=64),
        "m4": sash.m4("w", "x"),
        "different": sash.count_distinct("s"),
        "distinct": sash.collect_distinct("i"),
        "own": sash.aggregate(alternate, "x"),
        "text": sash.aggregate(joined, "s"),
    }
    for kind in ("disorder", "ties"):
        cut = list(batches(stream(kind, plain=True), most=15))
        # each by itself, but for those that would only take a kernel more
        alone = [{name: chosen} for name, chosen in select.items() if name not in ("m4", "own")]
        for chosen in (*alone, select):
            q = asked(sash.sliding("7 seconds", "3 seconds"), select=chosen, tie="n")
            judge(feed(q, cut, mode="live", lateness=SECOND), cut, SECOND)
        q = asked(sash.sliding("10 seconds", "2 seconds"), select=select)
        judge(feed(q, cut, lateness=20 * SECOND), cut, 20 * SECOND)


@compiled_only
def test_random_windows_and_times() -> None:
    for seed in first_of(range(60), 20):
        source = random.Random(seed)
        size = source.randint(1, 400)
        window = sash.sliding(size, source.randint(1, size), source.randint(-50, 50))
        count, lateness = source.randint(1, 120), source.randint(0, 300)
        span = source.choice((500, 3000, 200_000, 30_000_000))
        at = sorted(source.randint(-span // 3, span) for _ in range(count))
        late = sorted(at, key=lambda t: t + source.randint(0, source.choice((1, 2)) * lateness))
        events = pa.table(
            {
                "t": pa.array(late, pa.int64()),
                "k": [source.choice("abc") for _ in late],
                "n": range(count),
                "x": [float(source.randint(0, 5)) for _ in late],
                "i": [source.randint(0, 5) for _ in late],
            }
        )
        cut = list(batches(events, seed=seed))
        q = asked(window, select=ORDERED if seed % 3 else {"n": sash.count(), "m": sash.max("i")})
        for mode in ("final", "live"):
            judge(feed(q, cut, mode=mode, lateness=lateness), cut, lateness)


def test_no_keys_and_a_condition() -> None:
    import pyarrow.compute as pc

    events = stream("disorder", plain=True)
    cut = list(batches(events))
    for mode in ("final", "live"):
        q = asked(sash.sliding("10 seconds", "2 seconds"), by=[], where=pc.field("b"))
        judge(feed(q, cut, mode=mode, lateness=SECOND), cut, SECOND)


def test_keys_of_many_types() -> None:
    from datetime import date, timedelta
    from decimal import Decimal

    events = stream("disorder", plain=True)
    n = events.num_rows
    keys = {
        "date": pa.array([date(2024, 1, 1) + timedelta(i % 3) for i in range(n)]),
        "bytes": pa.array([bytes([i % 3]) for i in range(n)]),
        "decimal": pa.array([Decimal(i % 3) for i in range(n)], pa.decimal128(10, 2)),
        "time": events["w"],
        "struct": pa.array([{"a": i % 2, "b": None if i % 3 else "z"} for i in range(n)]),
        "list": pa.array([[1] * (i % 3) if i % 4 else None for i in range(n)]),
        "small": pa.array([i % 3 for i in range(n)], pa.int8()),
    }
    for name, column in keys.items():
        table = events.append_column(name, column)
        q = asked(sash.sliding("10 seconds", "4 seconds"), by=[name, "k"])
        for mode in ("final", "live"):
            cut = list(batches(table))
            judge(feed(q, cut, mode=mode), cut, 0)


# Late rows


def test_rows_that_cannot_be_used_are_late_and_the_stream_goes_on() -> None:
    times = [1_000, None, 2_000, LATEST, -LATEST, 2**63 - 1, -(2**63), 3_000]
    table = pa.table({"t": pa.array(times, pa.int64()), "k": ["a"] * 8, "n": range(8)})
    q = asked(sash.sliding(1000, 500), select={"n": sash.count()})
    for mode in ("final", "live"):
        fed = feed(q, [table, table.slice(7)], mode=mode, lateness=10_000)
        assert fed.stream.late["n"].to_pylist() == [1, 3, 4, 5, 6]
        assert set(fed.stream.late["reason"].to_pylist()) == {
            "its time is null",
            "its time is out of range",
        }
        good = pa.concat_tables([table.take([0, 2, 7]), table.slice(7)])
        assert not differences(q, answers(q, good), fed.last(), ordered=False)


def test_a_row_that_misses_some_windows_is_counted_in_the_others() -> None:
    #   sliding(10, 5), watermark 20     [5 ... 15) [10 ... 20) are closed, [15 ... 25) is open
    q = asked(sash.sliding(10, 5), by=[], select={"xs": sash.collect("x")})
    cut = [
        pa.table({"t": [3, 20], "x": ["a", "b"]}),
        pa.table({"t": [16, 14, 40], "x": ["c", "d", "e"]}),
    ]
    fed = feed(q, cut)
    late = fed.stream.late.select(["x", "missed_start", "missed_end", "reason"]).to_pylist()
    assert [tuple(r.values()) for r in late] == [
        ("c", 10, 20, "some of its windows were closed before it came"),
        ("d", 5, 20, "all its windows were closed before it came"),
    ]
    assert fed.stream.counts == {
        "rows": 5,
        "counted": 4,
        "late": 1,
        "partly_late": 1,
        "emitted": 6,
    }
    assert [(r["window_start"], r["xs"]) for r in fed.rows] == [
        (-5, ["a"]),
        (0, ["a"]),
        (15, ["c", "b"]),
        (20, ["b"]),
        (35, ["e"]),
        (40, ["e"]),
    ]


def test_live_emits_a_window_again_when_it_changes_and_only_then() -> None:
    q = asked(sash.tumbling(10), by=[], select={"n": sash.count()})
    s = TileStream(q, mode="live", lateness=100)
    rows = [
        (r["window_start"], r["n"], r["revision"])
        for t in ([3], [12, 14], [5], [25], [6, 13], [31])
        for r in rows_of(s.push(pa.table({"t": t})))
    ]
    assert rows == [(0, 1, 0), (0, 2, 1), (10, 2, 0), (0, 3, 2), (10, 3, 1), (20, 1, 0)]


# What a batch touches


def _steady(count: int, *, per: int = 10) -> Iterable[pa.Table]:
    """Batches of ten keys, each with one event a second, `per` seconds a batch."""
    for b in range(count):
        at = np.repeat(np.arange(b * per, (b + 1) * per), 10) * SECOND + 1_700_000_000 * SECOND
        keys = np.tile(np.arange(10), per)
        yield pa.table({"t": at, "k": keys, "x": (at // SECOND * 7919 % 1009).astype(float)})


@compiled_only
@pytest.mark.parametrize("mode", ["final", "live"])
def test_what_is_touched_does_not_grow_with_size_over_slide(mode: Any) -> None:
    touched = {}
    for ratio in (60, 600, 3600, 86_400):
        q = asked(sash.sliding(ratio * SECOND, SECOND), select=TOP)
        s = TileStream(q, lateness=5 * SECOND, mode=mode)
        most_records = most_bytes = 0
        # the window is full for most of the batches, with 86,400 it is filled at once
        s.push(pa.concat_tables(_steady(1, per=ratio + 1000)))
        newest = 1_700_000_000 + ratio + 999
        for b in range(30):
            at = np.repeat(np.arange(newest + 1, newest + 11), 10) * SECOND
            batch = pa.table({"t": at, "k": np.tile(np.arange(10), 10), "x": at % 7 * 1.0})
            s.store.reset()
            made = s.push(batch)
            newest += 10
            if b:
                assert made.num_rows == 100
                most_records = max(most_records, s.store.records)
                most_bytes = max(most_bytes, s.store.bytes)
        touched[ratio] = (most_records, most_bytes)
    # a level of the tree comes in as the window grows: no more than that; at 60, all is one record
    records = [r for r, _ in touched.values()]
    moved = [b for _, b in touched.values()]
    assert max(records) <= 16, touched
    assert max(moved) <= 2.5 * moved[1], touched


@compiled_only
def test_what_is_touched_is_proportional_to_what_arrives() -> None:
    """Events of n different stretches of time, into a window that holds 86,400 slices."""
    q = asked(sash.sliding(86_400 * SECOND, SECOND), select=TOP)
    s = TileStream(q, lateness="400 days")
    s.push(pa.concat_tables(_steady(1, per=86_400)))
    counts = {}
    for n in (1, 4, 16, 64):
        at = (1_700_000_000 + np.arange(n) * 64 * 20 + 7) * SECOND
        s.store.reset()
        s.push(pa.table({"t": at, "k": np.zeros(n, np.int64), "x": np.ones(n)}))
        counts[n] = s.store.records
    assert counts[1] <= 10
    assert all(counts[n] <= n * counts[1] for n in counts), counts


@compiled_only
def test_late_rows_in_live_mode_touch_what_they_change_only() -> None:
    """A row long after its time changes the windows that hold it; those between it and now are
    not even read."""
    q = asked(sash.sliding(10 * SECOND, SECOND), select={"n": sash.count()})
    for ago in (100, 10_000):
        s = TileStream(q, lateness="400 days", mode="live")
        s.push(pa.concat_tables(_steady(1, per=20_000)))
        old = (1_700_000_000 + 20_000 - ago) * SECOND
        now = (1_700_000_000 + 20_000) * SECOND
        s.store.reset()
        made = s.push(pa.table({"t": [old, now], "k": [3, 4], "x": [1.0, 2.0]}))
        assert sum(r > 0 for r in made["revision"].to_pylist()) == 10
        assert s.store.records <= 24, (ago, s.store.records)


@compiled_only
def test_state_levels_off_and_is_empty_in_the_end() -> None:
    """200 batches, in which keys come and go."""
    for mode in ("final", "live"):
        q = asked(sash.sliding("60 seconds", "1 second"), select=TOP)
        s, sizes = TileStream(q, lateness=8 * SECOND, mode=mode), []
        for b in range(200):
            source = random.Random(b)
            at = [(1_000_000 + b * 10 + source.randint(-6, 9)) * SECOND for _ in range(60)]
            keys = [f"key {b // 10 + source.randrange(5)}" for _ in at]
            s.push(pa.table({"t": at, "k": keys, "x": [1.0] * 60}))
            sizes.append(s.store.size())
        assert max(sizes[100:]) <= 1.5 * max(sizes[20:100])
        kept = b"".join(data for _, data in s.store.scan())
        assert b"key 3" not in kept, "a key that is gone leaves no trace"
        assert s._state.next_visit() is not None
        s.close()
        assert not len(s.store)
        assert s._state.next_visit() is None


@pytest.mark.parametrize("ratio", [2**12, 2**18, 2**24])
def test_the_longest_windows_touch_no_more(ratio: int) -> None:
    q = asked(sash.sliding(ratio * SECOND, SECOND), select=TOP)
    start = 1_700_000_000
    at = (start + np.linspace(0, ratio, 300).astype(np.int64)) * SECOND
    s = TileStream(q, lateness=6 * SECOND)
    s.advance((start + ratio - 6) * SECOND)  # the windows before are closed
    s.push(pa.table({"t": at, "k": np.zeros(300, np.int64), "x": np.ones(300)}))
    most = 0
    for b in range(20):
        now = (start + ratio + b) * SECOND
        s.store.reset()
        s.push(pa.table({"t": [now], "k": [0], "x": [2.0]}))
        most = max(most, s.store.records) if b else 0
    assert 0 < most <= 12


def test_a_window_without_an_answer_does_not_stop_a_stream() -> None:
    """A sum beyond int64: null in that window, over both states."""
    q = asked(
        sash.sliding(20, 10),
        select={"sum": sash.sum("i"), "all": sash.collect("i"), "n": sash.count()},
    )
    most = 2**63 - 1
    table = pa.table({"t": [0, 1, 12, 35, 2], "k": [*"aaaab"], "i": [most, 5, -9, 1, 1]})
    sums = {("a", -10): None, ("a", 0): most - 4, ("a", 10): -9, ("a", 20): 1, ("a", 30): 1}
    for s in (TileStream(q), q.stream()):
        with pytest.warns(RuntimeWarning, match="1 window.*leaves int64"):
            rows = s.push(table).to_pylist()
        rows += s.close().to_pylist()
        found = {(r["k"], r["window_start"]): r["sum"] for r in rows}
        assert found == {**sums, ("b", -10): 1, ("b", 0): 1}
        whole = {(r["k"], r["window_start"]): (r["all"], r["n"]) for r in rows}
        assert whole["a", -10] == ([most, 5], 2), "only the sum does not exist"


def test_a_record_that_is_missing_is_reported() -> None:
    q = asked(sash.sliding(100 * SECOND, SECOND), select={"n": sash.count()})
    table = pa.concat_tables(_steady(1, per=300))
    whole = TileStream(q)
    whole.push(table)
    for name in [name for name, _ in whole.store.scan()]:
        s = TileStream(q)
        s.push(table)
        s.store.delete_many([name])
        # without its root a state is empty
        if name == min(n for n, _ in whole.store.scan()):
            continue
        with pytest.raises(ValueError, match="the state is damaged"):
            s.close()


def test_a_stream_without_keys_and_events_closes() -> None:
    s = TileStream(asked(sash.sliding(12, 4), by=[]))
    empty = pa.table({"t": pa.array([], pa.int64()), "k": [], "i": pa.array([], pa.int64())})
    assert s.push(empty.append_column("x", pa.array([], pa.float64()))).num_rows == 0
    assert s.close().num_rows == 0
