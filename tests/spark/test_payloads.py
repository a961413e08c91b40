"""Rows that travel as slices are the same to a stream as rows that travel as they are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.engine.lifecycle import Lifecycle, Outcome, Progress
from sash.query.plan import Plan, make_plan
from sash.state.tiles import TileState
from sash.stores import MemoryStore
from sash.testing.queries import rows_of
from sash.testing.streams import STREAMS, batches, stream

pytest.importorskip("pyspark")
import sash.spark.packer
from sash.spark.arrivals import Arrivals
from sash.spark.buckets import BUCKET, PAYLOAD
from sash.spark.packer import Packer
from sash.spark.payload_slices import Unpacker, packed_slices
from sash.spark.payloads import Buckets, packed_rows, worth_combining

SECOND = 1_000_000

#: The greatest distance from zero; it cannot be had of infinity.
finite = sash.operator(
    identity=0.0,
    lift=lambda x: abs(x) if abs(x) < 1e300 else [][0],  # type: ignore[misc]
    combine=lambda a, b: a if a > b else b,
    commutative=True,
    name="finite",
    compile=False,
)
SELECT = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x")}


def unpacked(plan: Plan, payloads: list[bytes]) -> Any:
    """The batch that the values of a bucket have."""
    arrivals = Arrivals(Unpacker(plan.schema, plan.query, plan))
    for payload in payloads:
        arrivals.add(payload)
    return arrivals.whole()


def shown(q: sash.Query, outcome: Outcome) -> Any:
    emitted = outcome.emitted
    at = pa.array(emitted.codes)
    columns = {k: keys.take(at) for k, keys in zip(q.by, emitted.keys, strict=True)}
    rows = rows_of(pa.table({**columns, "window": pa.array(emitted.windows), **emitted.values}))
    revisions = None if outcome.revisions is None else outcome.revisions.tolist()
    counts = outcome.rows, outcome.counted, outcome.lost, outcome.partly_late
    return [repr(row) for row in rows], revisions, counts, outcome.corrections


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("kind", STREAMS)
def test_slices_are_as_good_as_rows(kind: str, mode: Any) -> None:
    table = stream(kind, 150, seed=3)
    nulls = np.arange(150) % 29 == 7  # rows without a time
    times = pa.compute.if_else(pa.array(nulls), pa.scalar(None, table["t"].type), table["t"])
    table = table.set_column(0, "t", times)
    window = sash.sliding("7 seconds", "3 seconds", offset="-1.5 seconds")
    q = sash.Query(time="t", by=["k"], window=window, select=SELECT)
    table = table.select(q.columns)
    plan = make_plan(q, table.schema)
    lives = [Lifecycle(plan, mode=mode, lateness=4 * SECOND) for _ in range(3)]
    states = [TileState(plan, MemoryStore()) for _ in range(3)]
    progress = [Progress() for _ in range(3)]
    source, one = random.Random(kind), Buckets(np.zeros(1, dtype=np.int32))
    for batch in batches(table, seed=5, least=1, most=40):
        cut = source.randint(0, batch.num_rows)
        parts = [p for p in (batch.slice(0, cut), batch.slice(cut)) if p.num_rows]
        payloads: list[list[bytes]] = [[], [], []]
        for i, part in enumerate(parts):
            rows, slices = (
                pack(q, part.combine_chunks(), one) for pack in (packed_rows, packed_slices)
            )
            for mine, record in zip(payloads, (rows, slices, (rows, slices)[i % 2]), strict=True):
                mine += record.column(1).to_pylist()
        got = [
            shown(q, life.process(at, state, unpacked(plan, given)))
            for life, state, at, given in zip(lives, states, progress, payloads, strict=True)
        ]
        assert got[0] == got[1] == got[2]
        assert progress[0] == progress[1] == progress[2]


def test_each_bucket_has_its_keys_and_what_is_refused_is_counted_once() -> None:
    q = sash.Query(
        time="t", by=["k"], window=sash.tumbling(10), select={"far": sash.aggregate(finite, "x")}
    )
    table = pa.table(
        {
            "t": pa.array([1, 2, None, 3, 4, 5]),
            "k": [1, 2, 1, 3, 2, 3],
            "x": [1.0, -2.0, 3.0, 1e301, -5.0, 7.0],
        }
    )
    plan = make_plan(q, table.schema)
    assert plan.groups[0].operator.shape != "object"
    buckets = Buckets(np.array([10, 20, 30, 40, 50], dtype=np.int32))
    of_keys = buckets.of([pa.array([1, 2, 3])], 3).tolist()
    assert len(set(of_keys)) == 3
    record = packed_slices(q, table, buckets)
    assert record.column(0).to_pylist() == sorted(of_keys)
    assert packed_rows(q, table, buckets).column(0) == record.column(0)
    made = {row[BUCKET]: unpacked(plan, [row[PAYLOAD]]) for row in record.to_pylist()}
    batches = [made[bucket] for bucket in of_keys]
    assert [b.slices.keys[0].to_pylist() for b in batches] == [[1], [2], [3]]
    assert [b.rows.tolist() for b in batches] == [[1], [2], [1]]
    assert [b.newest.tolist() for b in batches] == [[1], [4], [5]]
    assert sum(b.refused for b in batches) == 2
    none = packed_slices(q, table.slice(2, 1), buckets)
    assert none.to_pylist()[0][BUCKET] == 10
    (left,) = (unpacked(plan, [row[PAYLOAD]]) for row in none.to_pylist())
    assert (left.refused, len(left.rows)) == (1, 0)


@pytest.mark.parametrize("combines", ["always", "never"])
def test_pieces_of_a_task_are_one_batch(combines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are packed piece by piece are the bucket's batch that they are in one piece."""
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.count()})
    table = pa.table({"t": np.arange(1000) // 3, "k": np.arange(1000) % 7})
    packer = Packer(q, ("t", "k"), ("t", "k"), (0,), 1, combines)
    plan = make_plan(q, table.schema)
    made = []
    for many in (10_000, 128):
        monkeypatch.setattr(sash.spark.packer, "_MANY", many)
        records = packer(iter(table.to_batches(max_chunksize=50)))
        payloads = [p for r in records for p in r.column(PAYLOAD).to_pylist() if p]
        assert len(payloads) == (1 if many > 1000 else 7)
        batch = unpacked(plan, payloads)
        if combines == "always":
            words = [held.tolist() for held in batch.slices.partials]
            batch = batch.rows.tolist(), batch.newest.tolist(), batch.slices.starts.tolist(), words
        made.append(batch)
    assert made[0] == made[1]


def test_what_is_worth_combining() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.count()})
    at = np.arange(5000)
    assert worth_combining(q, pa.table({"t": at, "k": at % 2}))
    assert not worth_combining(q, pa.table({"t": at, "k": at % 8}))
    assert not worth_combining(q, pa.table({"t": at[:500], "k": at[:500] % 2})), "they are few"
