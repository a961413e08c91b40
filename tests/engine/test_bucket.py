"""A bucket of keys whose state lives in a store, against brute force.

The store is a dict of bytes, and what stands between two batches is taken through JSON, so that
nothing is carried over in memory.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.engine.bucket import Bucket, Mark, Outcome
from sash.engine.run import results
from sash.kernels.program import jit_enabled
from sash.query.plan import make_plan
from sash.state.tile import Positions, Tile, decode_tile, encode_tile, open_sealed, seal
from sash.state.tile_store import TileTree
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.streams import STREAMS, WINDOWS, batches, stream
from sash.windows.sliding import LATEST, Sliding

SECOND = 1_000_000
Row = dict[str, Any]

#: Streams of many rows, about what is moved and not about kernels: minutes with the JIT off.
compiled_only = pytest.mark.skipif(not jit_enabled(), reason="too long with SASH_JIT=0")


class Store(dict[tuple[int, int], bytes]):
    """Bytes by level and number, with a count of what is moved."""

    records = moved = 0

    def get(self, level: int, number: int) -> bytes | None:  # type: ignore[override]
        found = dict.get(self, (level, number))
        self._count(found or b"")
        return found

    def put(self, level: int, number: int, data: bytes) -> None:
        self._count(data)
        self[level, number] = data

    def drop(self, level: int, number: int) -> None:
        self._count(b"")
        self.pop((level, number), None)

    def _count(self, data: bytes) -> None:
        self.records += 1
        self.moved += len(data)


@dataclass
class Fed:
    """What came out of a stream of batches."""

    query: sash.Query
    rows: list[Row] = field(default_factory=list)  # with `revision`, as given
    late: list[tuple[Row, list[int]]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    store: Store = field(default_factory=Store)
    mark: Mark = field(default_factory=Mark)
    rows_in: int = 0

    def last(self) -> list[Row]:
        """The last revision of each window, in the order of the oracle; they are counted from 0."""
        found: dict[str, Row] = {}
        for row in self.rows:
            where = repr([row[k] for k in (*self.query.by, "window_start")])
            assert row["revision"] == (found[where]["revision"] + 1 if where in found else 0)
            found[where] = row
        return list(found.values())


def feed(
    query: sash.Query,
    cut: Iterable[pa.Table],
    *,
    mode: str = "final",
    lateness: int = 0,
    close: bool = True,
) -> Fed:
    """A bucket fed with batches; the watermark moves after each as it does in `replay`."""
    fed = Fed(query)
    bucket: Bucket | None = None
    newest: int | None = None

    def step(batch: pa.Table | None, watermark: int | None) -> None:
        assert bucket is not None
        fed.mark = Mark(**json.loads(json.dumps(asdict(fed.mark))))
        outcome = bucket.process(fed.mark, fed.store, batch, watermark)
        fed.outcomes.append(outcome)
        for given in outcome.given:
            table = results(bucket.plan, given.keys, given.windows)
            numbers = given.revisions
            made = rows_of(table)
            numbers = np.zeros(len(made), np.int64) if numbers is None else numbers
            for row, number in zip(made, numbers.tolist(), strict=True):
                fed.rows.append({**row, "revision": number})
        if batch is not None:
            rows, late = rows_of(batch), outcome.late
            fed.rows_in += len(rows)
            for at, first, last in zip(late.rows, late.first, late.last, strict=True):
                missed = list(range(int(first), int(last) + 1, query.window.every))
                fed.late.append((rows[at], missed))

    for batch in cut:
        if bucket is None:
            bucket = Bucket(make_plan(query, batch.schema), mode)
        if query.where is not None:
            batch = batch.filter(query.where)
        batch = batch.select(bucket.plan.schema.names)
        step(batch, None if newest is None else newest - lateness)
        times = [t for t in rows_of(batch.select([query.time])) if t[query.time] is not None]
        usable = [t[query.time] for t in times if abs(t[query.time]) < LATEST]
        newest = max([*usable, *([] if newest is None else [newest])], default=None)
    if close and bucket is not None:
        step(None, LATEST)
    return fed


def asked(window: Sliding, **more: Any) -> sash.Query:
    select = {
        "n": sash.count(),
        "known": sash.count("x"),
        "top": sash.max("x"),
        "low": sash.min("i"),
        "sum": sash.sum("i"),
        "mean": sash.mean("x"),
        "spread": sash.stddev("x"),
    }
    given: dict[str, Any] = {"time": "t", "by": ["k"], "window": window, "select": select}
    return sash.Query(**(given | more))


ORDERED = {
    "all": sash.collect("n"),
    "first": sash.first("x"),
    "last": sash.last("x"),
    "who": sash.arg_max("n", by="i"),
    "n": sash.count(),
}


def judge(fed: Fed, cut: Sequence[pa.Table], lateness: int) -> None:
    """Equal to brute force: rows, late rows, and nothing lost."""
    right, late = replay(fed.query, cut, lateness)
    assert not differences(fed.query, right, fed.last(), ordered=False)
    columns = fed.query.columns
    assert [(str({c: row[c] for c in columns}), m) for row, m in late] == [
        (str(row), m) for row, m in fed.late
    ]
    wholly = sum(
        not missed or len(missed) == len(_windows(fed.query, row)) for row, missed in fed.late
    )
    assert sum(o.rows for o in fed.outcomes) + wholly == fed.rows_in
    assert not fed.store, "all windows are closed, and nothing is kept"


def _windows(query: sash.Query, row: Row) -> range:
    w, t = query.window, row[query.time]
    return range(w.first_of(t), w.last_of(t) + 1, w.every)


# Equal to brute force


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("kind", STREAMS)
def test_windows_are_those_of_brute_force(kind: str, mode: str) -> None:
    for seed, window in enumerate(WINDOWS):
        events = stream(kind, seed=seed)
        lateness = (0, 3 * SECOND, 60 * SECOND)[seed % 3]
        q = asked(window) if seed % 2 else asked(window, by=["f", "b"])
        cut = list(batches(events, seed=seed, most=(40, 15, 120)[seed % 3]))
        fed = feed(q, cut, mode=mode, lateness=lateness)
        judge(fed, cut, lateness)
        if mode == "final":
            assert len(fed.last()) == len(fed.rows), "each window is given once"


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("kind", STREAMS)
def test_order_matters_across_batches(kind: str, mode: str) -> None:
    for seed, window in enumerate(WINDOWS[:5]):
        events = stream(kind, seed=seed)
        lateness = (40 * SECOND, 0)[seed % 2]
        cut = list(batches(events, seed=seed, most=12))
        q = asked(window, select=ORDERED, tie=(None, "i", "x", "w")[seed % 4])
        judge(feed(q, cut, mode=mode, lateness=lateness), cut, lateness)


@pytest.mark.parametrize("kind", STREAMS)
def test_changes_only(kind: str) -> None:
    for seed, window in enumerate(WINDOWS):
        events = stream(kind, seed=seed)
        cut = list(batches(events, seed=seed))
        for select in ({"top": sash.max("i"), "n": sash.count()}, {"s": sash.collect("s")}):
            q = asked(window, select=select, emit="changes")
            judge(feed(q, cut, lateness=5 * SECOND), cut, 5 * SECOND)


@compiled_only
def test_any_cutting_gives_the_same_rows() -> None:
    events = stream("disorder", 200)
    q = asked(sash.sliding("7 seconds", "3 seconds"), select=ORDERED, tie="n")
    right = answers(q, events)
    for mode in ("final", "live"):
        for seed in range(8):
            cut = list(batches(events, seed=seed, most=(1, 3, 20, 200)[seed % 4] + seed))
            fed = feed(q, cut, mode=mode, lateness=3600 * SECOND)
            assert not fed.late
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
        for name, chosen in select.items():
            q = asked(sash.sliding("7 seconds", "3 seconds"), select={name: chosen}, tie="n")
            judge(feed(q, cut, mode="live", lateness=SECOND), cut, SECOND)
        q = asked(sash.sliding("10 seconds", "2 seconds"), select=select)
        judge(feed(q, cut, lateness=20 * SECOND), cut, 20 * SECOND)


@compiled_only
def test_random_windows_and_times() -> None:
    for seed in range(60):
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


def test_rows_that_cannot_be_used_are_told_and_the_stream_goes_on() -> None:
    times = [1_000, None, 2_000, LATEST, -LATEST, 2**63 - 1, -(2**63), 3_000]
    table = pa.table({"t": pa.array(times, pa.int64()), "k": ["a"] * 8, "n": range(8)})
    q = asked(sash.sliding(1000, 500), select={"n": sash.count()})
    for mode in ("final", "live"):
        fed = feed(q, [table, table.slice(7)], mode=mode, lateness=10_000)
        late = fed.outcomes[0].late
        assert late.rows.tolist() == [1, 3, 4, 5, 6]
        assert set(late.reasons) == {"its time is null or out of range"}
        assert all(missed == [] for _, missed in fed.late)
        assert fed.outcomes[0].rows == 3
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
    assert [(row["x"], missed) for row, missed in fed.late] == [("c", [10]), ("d", [5, 10])]
    assert fed.outcomes[1].late.reasons == [
        "some of its windows were closed",
        "its windows were closed",
    ]
    assert fed.outcomes[1].late.lost.tolist() == [False, True]
    assert [o.rows for o in fed.outcomes] == [2, 2, 0]
    assert [(r["window_start"], r["xs"]) for r in fed.rows] == [
        (-5, ["a"]),
        (0, ["a"]),
        (15, ["c", "b"]),
        (20, ["b"]),
        (35, ["e"]),
        (40, ["e"]),
    ]


def test_live_gives_a_window_again_when_it_changes_and_only_then() -> None:
    q = asked(sash.tumbling(10), by=[], select={"n": sash.count()})
    cut = [pa.table({"t": t}) for t in ([3], [12, 14], [5], [25], [6, 13], [31])]
    fed = feed(q, cut, mode="live", lateness=100, close=False)
    given = [(r["window_start"], r["n"], r["revision"]) for r in fed.rows]
    assert given == [(0, 1, 0), (0, 2, 1), (10, 2, 0), (0, 3, 2), (10, 3, 1), (20, 1, 0)]
    assert [o.corrections for o in fed.outcomes] == [0, 0, 1, 0, 2, 0]


def test_the_late_record_of_cbix_figure_1_corrects_two_windows() -> None:
    """Windows of 4 records, sliding by 2: the late record 19 is in two that were given."""
    times = [*range(5, 19), *range(20, 27)]
    q = asked(sash.sliding(4, 2, offset=1), by=[], select={"sum": sash.sum("x")})
    in_order = pa.table({"t": times, "x": times})
    fed = feed(q, [in_order, pa.table({"t": [19], "x": [19]})], mode="live", lateness=100, close=0)
    corrections = [r for r in fed.rows if r["revision"]]
    assert [(r["window_start"], r["sum"]) for r in corrections] == [
        (17, 17 + 18 + 19 + 20),
        (19, 19 + 20 + 21 + 22),
    ]


# What a batch touches


def _steady(count: int, *, per: int = 10) -> Iterable[pa.Table]:
    """Batches of ten keys, each with one event a second, `per` seconds a batch."""
    for b in range(count):
        at = np.repeat(np.arange(b * per, (b + 1) * per), 10) * SECOND + 1_700_000_000 * SECOND
        keys = np.tile(np.arange(10), per)
        yield pa.table({"t": at, "k": keys, "x": (at // SECOND * 7919 % 1009).astype(float)})


@compiled_only
@pytest.mark.parametrize("mode", ["final", "live"])
def test_what_is_touched_does_not_grow_with_size_over_slide(mode: str) -> None:
    touched = {}
    for ratio in (60, 600, 3600, 86_400):
        q = asked(sash.sliding(ratio * SECOND, SECOND), select={"m": sash.max("x")})
        fed = Fed(q)
        bucket: Bucket | None = None
        most_records = most_bytes = 0
        # the window is full for most of the batches, with 86,400 it is filled at once
        whole = pa.concat_tables(_steady(1, per=ratio + 1000))
        bucket = Bucket(make_plan(q, whole.schema), mode)
        bucket.process(fed.mark, fed.store, whole, None)
        newest = 1_700_000_000 + ratio + 999
        for b in range(30):
            at = np.repeat(np.arange(newest + 1, newest + 11), 10) * SECOND
            batch = pa.table({"t": at, "k": np.tile(np.arange(10), 10), "x": at % 7 * 1.0})
            fed.store.records = fed.store.moved = 0
            outcome = bucket.process(fed.mark, fed.store, batch, (newest - 5) * SECOND)
            newest += 10
            if b:
                assert sum(len(g.windows.starts) for g in outcome.given) == 100
                most_records = max(most_records, fed.store.records)
                most_bytes = max(most_bytes, fed.store.moved)
        touched[ratio] = (most_records, most_bytes)
    # a level of the tree comes in as the window grows: no more than that
    records = [r for r, _ in touched.values()]
    moved = [b for _, b in touched.values()]
    assert max(records) <= 16, touched
    assert max(moved) <= 2.5 * moved[0], touched


@compiled_only
def test_what_is_touched_is_proportional_to_what_arrives() -> None:
    """Events of n different stretches of time, into a window that holds 86,400 slices."""
    q = asked(sash.sliding(86_400 * SECOND, SECOND), select={"m": sash.max("x")})
    whole = pa.concat_tables(_steady(1, per=86_400)).slice(0)
    bucket = Bucket(make_plan(q, whole.schema), "final")
    mark, store = Mark(), Store()
    bucket.process(mark, store, whole, None)
    counts = {}
    for n in (1, 4, 16, 64):
        at = (1_700_000_000 + np.arange(n) * 64 * 20 + 7) * SECOND
        batch = pa.table({"t": at, "k": np.zeros(n, np.int64), "x": np.ones(n)})
        store.records = store.moved = 0
        bucket.process(mark, store, batch, None)
        counts[n] = store.records
    assert counts[1] <= 6
    assert all(counts[n] <= n * counts[1] for n in counts), counts


@compiled_only
def test_late_rows_in_live_mode_touch_what_they_change_only() -> None:
    """A row long after its time changes the windows that hold it; those between it and now are
    not even read."""
    q = asked(sash.sliding(10 * SECOND, SECOND), select={"n": sash.count()})
    whole = pa.concat_tables(_steady(1, per=20_000))
    for ago in (100, 10_000):
        bucket, mark, store = Bucket(make_plan(q, whole.schema), "live"), Mark(), Store()
        bucket.process(mark, store, whole, None)
        old = (1_700_000_000 + 20_000 - ago) * SECOND
        now = (1_700_000_000 + 20_000) * SECOND
        batch = pa.table({"t": [old, now], "k": [3, 4], "x": [1.0, 2.0]})
        store.records = store.moved = 0
        outcome = bucket.process(mark, store, batch, None)
        assert outcome.corrections == 10
        assert store.records <= 24, (ago, store.records)


@compiled_only
def test_state_levels_off_and_is_empty_in_the_end() -> None:
    """200 batches, in which keys come and go."""
    for mode in ("final", "live"):
        q = asked(sash.sliding("60 seconds", "1 second"), select={"m": sash.max("x")})
        sizes, marks = [], []
        bucket, mark, store, newest = None, Mark(), Store(), None
        for b in range(200):
            source = random.Random(b)
            at = [(1_000_000 + b * 10 + source.randint(-6, 9)) * SECOND for _ in range(60)]
            keys = [f"key {b // 10 + source.randrange(5)}" for _ in at]
            batch = pa.table({"t": at, "k": keys, "x": [1.0] * 60})
            bucket = bucket or Bucket(make_plan(q, batch.schema), mode)
            bucket.process(mark, store, batch, newest and newest - 8 * SECOND)
            newest = max(newest or 0, *at)
            sizes.append(sum(map(len, store.values())))
            marks.append(len(json.dumps(asdict(mark))))
        assert max(sizes[100:]) <= 1.5 * max(sizes[20:100])
        assert max(marks) < 400
        kept = b"".join(store.values())
        assert b"key 3" not in kept, "a key that is gone leaves no trace"
        assert bucket is not None
        assert bucket.next_close(mark) is not None
        bucket.process(mark, store, None, LATEST)
        assert not store
        assert bucket.next_close(mark) is None


@pytest.mark.parametrize("ratio", [2**12, 2**18, 2**24])
def test_the_longest_windows_touch_no_more(ratio: int) -> None:
    q = asked(sash.sliding(ratio * SECOND, SECOND), select={"m": sash.max("x")})
    start = 1_700_000_000
    at = (start + np.linspace(0, ratio, 300).astype(np.int64)) * SECOND
    whole = pa.table({"t": at, "k": np.zeros(300, np.int64), "x": np.ones(300)})
    bucket, mark, store = Bucket(make_plan(q, whole.schema), "final"), Mark(), Store()
    # the windows before were given
    bucket.process(mark, store, whole, (start + ratio - 6) * SECOND)
    most = 0
    for b in range(20):
        now = (start + ratio + b) * SECOND
        store.records = 0
        batch = pa.table({"t": [now], "k": [0], "x": [2.0]})
        bucket.process(mark, store, batch, now - 5 * SECOND)
        most = max(most, store.records) if b else 0
    assert 0 < most <= 12


def test_a_window_without_an_answer_does_not_stop_a_stream() -> None:
    """A sum beyond int64: null in that window, as on a stream in this process."""
    q = asked(
        sash.sliding(20, 10),
        select={"sum": sash.sum("i"), "all": sash.collect("i"), "n": sash.count()},
    )
    most = 2**63 - 1
    table = pa.table({"t": [0, 1, 12, 35, 2], "k": [*"aaaab"], "i": [most, 5, -9, 1, 1]})
    fed = feed(q, [table])
    found = {(r["k"], r["window_start"]): r["sum"] for r in fed.rows}
    sums = {("a", -10): None, ("a", 0): most - 4, ("a", 10): -9, ("a", 20): 1, ("a", 30): 1}
    assert found == {**sums, ("b", -10): 1, ("b", 0): 1}
    assert sum(int(g.windows.lacking.sum()) for o in fed.outcomes for g in o.given) == 1
    embedded = q.stream()
    with pytest.warns(RuntimeWarning, match="leaves int64"):
        rows = embedded.push(table).to_pylist()
    rows += embedded.close().to_pylist()
    assert {(r["k"], r["window_start"]): r["sum"] for r in rows} == found


def test_a_record_that_is_missing_is_told() -> None:
    q = asked(sash.sliding(100 * SECOND, SECOND), select={"n": sash.count()})
    table = pa.concat_tables(_steady(1, per=300))
    for level, number in feed(q, [table], close=False).store:
        bucket, mark, store = Bucket(make_plan(q, table.schema), "final"), Mark(), Store()
        bucket.process(mark, store, table, None)
        del store[level, number]

        def close(bucket: Bucket = bucket, mark: Mark = mark, store: Store = store) -> None:
            for watermark in ((1_700_000_000 + 250) * SECOND, LATEST):
                bucket.process(mark, store, None, watermark)

        with pytest.raises(ValueError, match="the state is damaged: its record"):
            close()


# Tiles as bytes


def _tiles() -> Iterable[tuple[Tile, TileTree]]:
    for q in (
        asked(WINDOWS[1]),
        asked(WINDOWS[2], by=["f", "b", "s"], select=ORDERED, tie="n"),
        asked(WINDOWS[2], by=[], select={"s": sash.max("s"), "b": sash.bloom("i", bits=64)}),
    ):
        events = stream("short")
        fed = feed(q, [events], close=False)
        tree = TileTree(make_plan(q, events.schema))
        for (level, number), data in fed.store.items():
            if level == 0:
                yield tree.decode(open_sealed(data, b"0 %d" % number), level), tree


def _decode(tree: TileTree, data: bytes) -> Tile:
    widths = [r.width for r in tree.runs]
    return decode_tile(data, tree.key_schema, tree.operators, widths, tree.marks)


def test_tiles_are_the_same_after_a_round_trip() -> None:
    for tile, tree in _tiles():
        data = encode_tile(tile, tree.operators)
        again = _decode(tree, data)
        assert [str(k.to_pylist()) for k in again.keys] == [str(k.to_pylist()) for k in tile.keys]
        assert again.counts.tolist() == tile.counts.tolist()
        assert again.at.tolist() == tile.at.tolist()
        assert [m.tolist() for m in again.marks] == [m.tolist() for m in tile.marks]
        assert encode_tile(again, tree.operators) == data


def test_damaged_bytes_are_refused() -> None:
    source = random.Random(5)
    for tile, tree in _tiles():
        data = seal(encode_tile(tile, tree.operators))
        for _ in range(200):
            at = source.randrange(len(data))
            broken = data[:at] + bytes([data[at] ^ (1 << source.randrange(8))]) + data[at + 1 :]
            with pytest.raises(ValueError, match=r"state is not of version|is damaged"):
                open_sealed(broken)
        for size in (0, 1, 4, 16, 17, len(data) - 1):
            with pytest.raises(ValueError, match=r"state is not of version|is damaged"):
                open_sealed(data[:size])
        with pytest.raises(ValueError, match="state is not of version 1"):
            open_sealed(data[:4] + b"\x02" + data[5:])
        with pytest.raises(ValueError, match="is damaged"):
            open_sealed(data, b"0 1")  # of another place


def test_slices_are_numbered_in_order() -> None:
    for window in WINDOWS:
        positions = Positions(window)
        numbers = np.arange(-300, 300)
        starts = positions.start(numbers)
        assert (np.diff(starts) > 0).all()
        assert positions.of(starts).tolist() == numbers.tolist()
        assert positions.of(starts[1:] - 1).tolist() == numbers[:-1].tolist()
        for k in (-3, 0, 5):
            start = window.offset + k * window.every
            last = np.array([positions.last(start)])
            assert positions.of(np.array([start])).tolist() == [positions.first(start)]
            assert positions.start(last)[0] < start + window.size <= positions.start(last + 1)[0]


def test_live_and_changes_do_not_go_together() -> None:
    q = asked(WINDOWS[0], emit="changes")
    with pytest.raises(ValueError, match="use mode='final'"):
        Bucket(make_plan(q, stream("ties").schema), "live")
