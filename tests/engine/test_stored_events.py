"""Streams whose windows events make, with their state in a store, as Spark runs them: against brute
force, with nothing carried over but bytes; and what they move."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.lifecycle import Progress
from sash.engine.stored_events import StoredEvents
from sash.state import keyed, layout
from sash.testing.queries import differences, replay, rows_of
from sash.testing.stored import CountingStore, open_stream
from sash.testing.streams import STREAMS, batches, stream
from sash.windows import Driven
from thinning import FULL

SECOND = 1_000_000
SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}
WINDOWS = (
    (sash.trailing("5 seconds"), "final"),
    (sash.trailing("5 seconds"), "live"),
    (sash.trailing("2 seconds", closed="left"), "final"),
    (sash.trailing("4 seconds", delay="2 seconds"), "live"),
    (sash.trailing("3 seconds", exclude="row"), "final"),
    (sash.lifetime(), "final"),
    (sash.lifetime(closed="left", delay="1 second"), "final"),
    (sash.lifetime(exclude="ties"), "final"),
    (sash.session("1 second"), "final"),
    (sash.session("2 seconds", max_size="5 seconds"), "live"),
    (sash.session("gap"), "live"),
    (sash.session("gap", max_size="5 seconds"), "final"),
    (sash.rows(4, every=2), "final"),
    (sash.delta("i", 3, every=2), "final"),
    (sash.punctuated("b"), "final"),
    (sash.policies.at_most(3), "final"),
    (sash.window(keep="5 seconds", every=sash.rows(3)), "final"),
    (sash.window(keep=sash.rows(3), every="2 seconds"), "final"),
    (sash.window(keep=sash.delta("x", 3.0), every="2 seconds"), "final"),
)


def query(window: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": SELECT} | more)


def with_gaps(events: pa.Table) -> pa.Table:
    gaps = [None if n % 11 == 0 else (n * 7919) % 3_000_000 for n in range(events.num_rows)]
    return events.append_column("gap", pa.array(gaps, pa.int64()))


class Micro:
    """Micro-batches as on Spark: rows are judged by the watermark of the one before."""

    def __init__(self, q: sash.Query, mode: Any, lateness: int, schema: pa.Schema) -> None:
        self.query, self.mode, self.lateness, self.schema = q, mode, lateness, schema
        self.store, self.progress = CountingStore(), Progress()
        self.newest: int | None = None
        self.rows: list[Any] = []
        self.late = 0

    def push(self, batch: pa.Table) -> None:
        # nothing is carried over but bytes
        self.progress = Progress(**json.loads(json.dumps(asdict(self.progress))))
        events = StoredEvents(self.query, self.schema, self.mode, self.store, b"x")
        watermark = None if self.newest is None else self.newest - self.lateness
        given = batch if self.query.where is None else batch.filter(self.query.where)
        names = self.schema.names if isinstance(self.query.window, Driven) else self.query.columns
        found = events.process(self.progress, given.select(names), watermark)
        self.rows += rows_of(found.made)
        self.late += len(found.late.rows)
        merging = isinstance(self.query.window, sash.windows.Merging)
        read = (*(self.query.window.columns if merging else ()), "t")
        times = [row["t"] for row in rows_of(batch) if None not in [row[c] for c in read]]
        times = [t for t in times if t < 2**60]
        self.newest = max([*times, *([] if self.newest is None else [self.newest])], default=None)


def judge(q: sash.Query, mode: str, cut: list[pa.Table], lateness: int) -> Micro:
    """Run micro-batches to the end: the last rows are those of the judge, and so are late rows."""
    names = cut[0].schema.names if isinstance(q.window, Driven) else q.columns
    micro = Micro(q, mode, lateness, pa.schema([cut[0].schema.field(n) for n in names]))
    for batch in cut:
        micro.push(batch)
    right, missed = replay(q, cut, lateness, behind=1)
    micro.newest = 2**60  # closes all
    micro.push(cut[0].slice(0, 0))
    rows = micro.rows
    if isinstance(q.window, Driven):
        last = {row["n"]: row for row in rows}
        if mode == "live":
            for n in last:
                numbers = [row["revision"] for row in rows if row["n"] == n]
                assert numbers == list(range(len(numbers)))
        else:
            assert len(last) == len(rows), "a row is emitted once"
        rows, right = (sorted(some, key=lambda r: r["n"]) for some in (last.values(), right))
    elif mode == "live":  # a session is known by its start
        sessions = {(row["k"], row["window_start"]): row for row in rows}
        rows = [row for row in sessions.values() if not row["deleted"]]
    assert not differences(q, right, rows, ordered=isinstance(q.window, Driven))
    assert micro.late == len(missed)
    assert micro.progress.counted == micro.progress.rows - len(missed)
    return micro


@pytest.mark.plain
@pytest.mark.parametrize(("window", "mode"), WINDOWS, ids=repr)
def test_the_rows_of_brute_force(window: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over small pages, so that parts are divided, and over pages that hold all."""
    turn = WINDOWS.index((window, mode))
    for seed, kind in list(enumerate(STREAMS))[0 if FULL else turn % 3 :: 1 if FULL else 3]:
        monkeypatch.setattr(keyed, "PAGE", (800, 32_768)[seed % 2])
        events = with_gaps(stream(kind, 50, seed=seed))
        cut = list(batches(events, seed=seed, most=17))
        micro = judge(query(window), mode, cut, (0, 3 * SECOND)[seed // 2 % 2])
        goes = isinstance(window, sash.windows.Merging | sash.windows.Trailing)
        if goes and "lifetime" not in repr(window):
            assert not len(micro.store), "all is emitted, and nothing is kept"


@pytest.mark.plain
def test_keys_conditions_and_ties() -> None:
    events = stream("ties", 60)
    backwards = events.take(list(range(59, -1, -1)))
    for by in ([], ["f"], ["k", "b"]):
        cut = list(batches(events, seed=1))
        judge(query(sash.session("1 second"), by=by), "final", cut, SECOND)
        judge(query(sash.trailing("3 seconds"), by=by, tie="n"), "final", [backwards], 0)
    odd = query(sash.trailing("5 seconds"), by=[], where=pc.field("n") != 7)
    judge(odd, "live", [events.slice(0, 30), events.slice(30)], 86_400 * SECOND)


@pytest.mark.plain
def test_rows_that_cannot_be_used_are_late() -> None:
    table = pa.table({"t": [5, None, 2**61, 7], "k": ["a", "a", "b", None], "n": [0, 1, 2, 3]})
    for window in (sash.trailing(10), sash.session(10)):
        q = query(window, select={"all": sash.collect("n")})
        micro = judge(q, "final", [table], 0)
        assert micro.late == 2


# What a batch touches

HOUR = 3_600 * SECOND
ROWS = 10
NUMBERS = {name: SELECT[name] for name in ("rows", "top", "newest")}  # a kernel that is there


def touched(window: Any, keys: int) -> list[tuple[int, int]]:
    """Records and bytes moved by batches of ten rows, of ten keys, with so many keys in state."""
    s = open_stream("tiles", query(window, select=NUMBERS), lateness="1 hour")

    def batch(t: int, k: Any) -> pa.Table:
        return pa.table({"t": np.full(len(k), t), "k": k, "i": k, "x": k / 2})

    s.push(batch(0, np.arange(keys)))
    s.push(batch(2 * HOUR, np.arange(1)))  # all of them are behind the watermark
    found = []
    for number in range(5):
        at = (np.arange(ROWS) * (keys // ROWS) + 7 * number) % keys
        s._store.reset()
        s.push(batch(2 * HOUR, at))
        found.append((s._store.records, s._store.bytes))
    return found


@pytest.mark.once
@pytest.mark.parametrize(
    "window",
    [sash.trailing("1 day"), sash.lifetime(), sash.rows(4), sash.session("1 day")],
    ids=repr,
)
def test_ten_rows_cost_no_more_with_a_hundred_thousand_keys_in_state(window: Any) -> None:
    """Each row costs at most its part, read and written, and a node of the index on the way to it;
    with few keys, rows share parts.  The root of the index comes on top."""
    cost = {keys: touched(window, keys) for keys in (1_000, 10_000, 100_000)}
    print(cost)
    for found in cost.values():
        for records, moved in found:
            assert records <= 3 * ROWS + 2
            assert moved <= (ROWS + 1) * 2 * layout.PAGE
    most = {keys: np.max(found, axis=0) for keys, found in cost.items()}
    # a level of the index comes in between: a record more for each row
    assert (most[100_000] <= most[10_000] + [ROWS + 1, ROWS * layout.PAGE]).all(), cost


@pytest.mark.plain
@pytest.mark.parametrize("window", [sash.trailing("1 minute"), sash.session("4 seconds")], ids=repr)
def test_state_levels_off_and_keys_that_are_gone_leave_no_trace(window: Any) -> None:
    s = open_stream("tiles", query(window, select=NUMBERS), lateness="8 seconds")
    sizes = []
    for number in range(60):
        at = [(1_000_000 + 10 * number + (7 * i) % 15 - 5) * SECOND for i in range(20)]
        keys = [f"key {number // 5 + i % 4}" for i in range(20)]
        s.push(pa.table({"t": at, "k": keys, "n": range(20), "i": range(20), "x": [0.5] * 20}))
        sizes.append(s._store.size())
    assert max(sizes[30:]) <= 1.3 * max(sizes[10:30])
    assert b"key 3" not in b"".join(data for _, data in s._store.scan())
    s.close()
    assert not len(s._store)


@pytest.mark.plain
@pytest.mark.parametrize(
    "window",
    [
        sash.lifetime(),
        sash.rows(4),
        sash.delta("n", 9),
        sash.punctuated("b"),
        sash.window(keep="20 seconds", every=sash.rows(3)),
        sash.window(keep=sash.rows(4), every="5 seconds"),
        sash.policies.at_most(3),
    ],
    ids=repr,
)
def test_state_levels_off_where_keys_stay(window: Any) -> None:
    """What a key keeps does not grow with what it had."""
    s = open_stream("tiles", query(window, select=NUMBERS), lateness="8 seconds")
    sizes = []
    for number in range(40):
        at = [(1_000_000 + 10 * number + (7 * i) % 15 - 5) * SECOND for i in range(20)]
        numbers = range(20 * number, 20 * number + 20)
        marks = [n % 5 == 0 for n in numbers]
        keys = [f"key {i % 4}" for i in range(20)]
        given = {"t": at, "k": keys, "n": numbers, "i": numbers, "x": [0.5] * 20, "b": marks}
        s.push(pa.table(given))
        sizes.append(s._store.size())
    assert max(sizes[20:]) <= 1.2 * max(sizes[5:20])


@pytest.mark.plain
@pytest.mark.parametrize(
    "window", [sash.tumbling(9), sash.trailing(9), sash.rows(3), sash.session(9)], ids=repr
)
def test_sums_and_means_know_one_zero(window: Any) -> None:
    """A sum or a mean of -0.0 is 0.0, as on Spark, wherever values are added."""
    select = {"mean": sash.mean("x"), "sum": sash.sum("x")}
    query = sash.Query(time="t", window=window, select=select)
    table = pa.table({"t": [1, 2], "x": [-0.0, -0.0]})
    in_memory = query.stream()
    stored = query.stream(store=sash.stores.memory(), name="s")
    found = [query.run(table)]
    for each in (in_memory, stored):
        each.push(table)
        found.append(each.close())
    for one in found:
        for name in select:
            assert str(one[name].to_pylist()[-1]) == "0.0"
