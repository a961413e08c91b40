"""What a bucket makes of several queries, without Spark: the rows of a shared stream in memory,
whether rows or slices travel."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.bundles import shared_plan
from sash.engine.lifecycle import Progress
from sash.stores import MemoryStore
from sash.testing.queries import rows_of
from sash.testing.streams import batches
from shared_sets import drawn

pytest.importorskip("pyspark")

from sash.spark.buckets import BUCKET, PAYLOAD, bucket_names
from sash.spark.packer import Packer, SharedPacker
from sash.spark.processor import Lane, SharedOutput, SharedWork
from sash.spark.shared_bucket import SharedWindows

from .test_shared import QUERIES
from .test_streaming import events

pytestmark = pytest.mark.plain
LATE = 2_000_000


@pytest.mark.parametrize("combining", ["never", "always"])
@pytest.mark.parametrize("mode", ["final", "live"])
def test_packed_rows_and_slices(mode: Any, combining: Any) -> None:
    names = ("sizes", "slow") if combining == "always" else tuple(QUERIES)
    # rows of `each` have no order between buckets, and `other keys` move time by what they choose
    names = tuple(n for n in names if n not in ("each", "other keys"))
    compare({name: QUERIES[name] for name in names}, mode, combining, seed=4)


@pytest.mark.parametrize("combining", ["never", "always"])
@pytest.mark.parametrize("seed", range(3))
def test_generated_sets(seed: int, combining: Any) -> None:
    left_out = ("trailing", "some", "all keys")
    queries = {name: q for name, q in drawn(seed).items() if name not in left_out}
    if combining == "always":
        del queries["session"]
    compare(queries, "final", combining, seed=seed)


def compare(queries: dict[str, sash.Query], mode: Any, combining: Any, *, seed: int) -> None:
    """The rows that buckets make of several queries, and those of a shared stream in memory."""
    table = events("disorder", 150)
    bundles = shared_plan(dict(sorted(queries.items()))).bundles
    lanes = [Lane(bundle.names, tuple(table.column_names)) for bundle in bundles]
    called = bucket_names(2)
    packer = SharedPacker(
        tuple(
            Packer(
                queries[lane.names[0]], lane.travels, lane.travels, called, 2, combining,
                bundle if combining == "always" else None,
            )
            for lane, bundle in zip(lanes, bundles, strict=True)
        )
    )  # fmt: skip
    output = SharedOutput((), (), {}, {name: tuple(q.by) for name, q in queries.items()}, False)
    work = SharedWork(
        queries, tuple(b.names for b in bundles), tuple(lanes), table.schema, mode, 2, output
    )
    stores = {bucket: MemoryStore() for bucket in called}
    windows = {bucket: SharedWindows(work, store) for bucket, store in stores.items()}
    progress = {bucket: {name: Progress() for name in queries} for bucket in called}
    memory = sash.share(queries).stream(lateness=LATE, mode=mode)
    newest = None
    for part in batches(table, seed=seed, least=10, most=30):
        right = memory.push(part)
        newest = max(t for t in (newest, _latest(part)) if t is not None)
        found: dict[str, list[Any]] = {name: [] for name in queries}
        payloads: dict[int, list[bytes]] = {bucket: [] for bucket in called}
        for batch in packer(iter(part.to_batches())):
            for row in batch.to_pylist():
                payloads[row[BUCKET]] += [row[PAYLOAD]] if row[PAYLOAD] else []
        for bucket in called:
            rows = windows[bucket].arrivals()
            for payload in payloads[bucket]:
                rows.add(payload)
            # stream time is over all keys, and in live mode a window is due by a bucket's own
            steps = windows[bucket].in_portions(progress[bucket], rows, newest - LATE)
            for name, one in ((n, o) for _, made in steps for n, o in made.items()):
                found[name] += _rows(queries[name], one.results)
        if mode == "final":
            for name, q in queries.items():
                wanted = [_row(q, row) for row in rows_of(right[name])]
                assert sorted(map(str, found[name])) == sorted(map(str, wanted)), name
    ends = [w.next_visit() for w in windows.values()]
    assert all(end is None or end > newest - LATE for end in ends)
    assert all(sum(w.open_windows(progress[b]).values()) > 0 for b, w in windows.items())


def _latest(part: pa.Table) -> int | None:
    found = pc.max(part["t"]).as_py()
    return None if found is None else int(found.timestamp() * 1_000_000 + 0.5)


def _rows(q: sash.Query, results: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The columns of results, row by row."""
    made = {name: values.to_pylist() for name, values in results.items()}
    columns = ["start", *(f"kept_{i}" for i in range(len(q.by)))]
    columns += [f"value_{i}" for i in range(len(q.select))]
    starts = results["start"].cast(pa.int64()).to_pylist()
    rest = zip(*(made[name] for name in columns[1:]), strict=True)
    return [(start, *more) for start, more in zip(starts, rest, strict=True)]


def _row(q: sash.Query, row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["window_start"], *(row[name] for name in (*q.by, *q.select)))
