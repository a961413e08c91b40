"""What a bucket makes of several queries, without Spark: the rows of a shared stream in memory,
whether rows or slices travel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.bundles import shared_plan
from sash.engine.lifecycle import Progress
from sash.query.plan import make_plan
from sash.state import portions
from sash.stores import MemoryStore
from sash.testing.queries import rows_of
from sash.testing.streams import batches
from shared_sets import drawn

pytest.importorskip("pyspark")

import sash.spark.arrivals
import sash.spark.packer
import sash.state.keyed
from sash.spark.buckets import BUCKET, PAYLOAD, bucket_names
from sash.spark.combining import combinable
from sash.spark.packer import Packer, SharedPacker
from sash.spark.payload_slices import sliced_plan
from sash.spark.processor import Lane, SharedOutput, SharedWork
from sash.spark.shared_bucket import SharedWindows

from .test_shared import QUERIES, query
from .test_streaming import events

pytestmark = pytest.mark.plain
LATE = 2_000_000


@pytest.mark.parametrize("combining", ["never", "always"])
@pytest.mark.parametrize("mode", ["final", "live"])
def test_packed_rows_and_slices(mode: Any, combining: Any) -> None:
    names = ("sizes", "slow") if combining == "always" else tuple(QUERIES)
    # rows of `each` have no order between buckets, and `other keys` move time by what they choose
    names = tuple(n for n in names if n not in ("each", "other keys"))
    queries = {name: QUERIES[name] for name in names}
    if combining == "always":  # rows with text are never combined, see below
        queries["slow"] = replace(queries["slow"], select={"rows": sash.count()})
    compare(queries, mode, combining, seed=4)


def test_rows_with_text_are_not_combined() -> None:
    """Partials that hold numbers for values mean nothing to another process."""
    queries = {name: QUERIES[name] for name in ("sizes", "slow")}
    (bundle,) = shared_plan(queries).bundles
    union, _ = sliced_plan(bundle, events("disorder", 9).schema)
    assert not combinable(union)
    text = QUERIES["slow"]
    assert not combinable(make_plan(text, events("disorder", 9).schema))


@pytest.mark.parametrize("combining", ["never", "always"])
@pytest.mark.parametrize("seed", range(3))
def test_generated_sets(seed: int, combining: Any) -> None:
    left_out = ("trailing", "some", "all keys")
    queries = {name: q for name, q in drawn(seed).items() if name not in left_out}
    if combining == "always":
        del queries["session"]
    compare(queries, "final", combining, seed=seed)


def test_ticks_beside_a_query_of_other_columns() -> None:
    ticks = sash.window(keep=sash.delta("i", 40), every="2 seconds")
    compare({"ticks": query(ticks), "slow": QUERIES["slow"]}, "final", "never", seed=4)


@pytest.mark.parametrize("mode", ["final", "live"])
def test_in_portions(mode: Any, monkeypatch: pytest.MonkeyPatch, files: list[Any]) -> None:
    queries = {name: QUERIES[name] for name in QUERIES if name not in ("each", "other keys")}
    whole, most = compare(queries, mode, "never", seed=4)
    assert most == len(shared_plan(queries).bundles), "each in one piece"
    monkeypatch.setattr(sash.spark.packer, "_MANY", 8)
    monkeypatch.setattr(sash.spark.arrivals, "_NEWEST", 2)
    for module in (portions, sash.state.keyed):
        monkeypatch.setattr(module, "PAGE", 500)
    monkeypatch.setattr(portions, "MOST", 8)
    held, steps = compare(queries, mode, "never", seed=4)
    assert held == whole
    assert steps > most
    monkeypatch.setattr(sash.spark.arrivals, "_BYTES", 1)
    monkeypatch.setattr(sash.spark.arrivals, "_CHUNK", 1000)
    assert compare(queries, mode, "never", seed=4)[0] == whole
    assert files
    assert all(file.closed for file in files)


def compare(
    queries: dict[str, sash.Query], mode: Any, combining: Any, *, seed: int
) -> tuple[list[Any], int]:
    """Compare the rows that buckets make of several queries with those of a shared stream in
    memory.  Return the rows and counts of each query by batch and bucket, and the largest number
    of steps that a batch of a bucket took."""
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
    newest, log, most = None, [], 0
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
            steps = list(windows[bucket].in_portions(progress[bucket], rows, newest - LATE))
            rows.close()
            most = max(most, len(steps))
            counts: dict[str, Any] = {name: np.zeros(4, np.int64) for name in queries}
            here: dict[str, list[Any]] = {name: [] for name in queries}
            for name, one in ((n, o) for _, made in steps for n, o in made.items()):
                here[name] += _rows(queries[name], one.results)
                counts[name] += [one.rows, one.lost, one.partly_late, one.corrections]
            for name in queries:
                found[name] += here[name]
                log.append((name, sorted(map(str, here[name])), counts[name].tolist()))
        if mode == "final":
            for name, q in queries.items():
                wanted = [_row(q, row) for row in rows_of(right[name])]
                assert sorted(map(str, found[name])) == sorted(map(str, wanted)), name
    ends = [w.next_visit() for w in windows.values()]
    assert all(end is None or end > newest - LATE for end in ends)
    assert all(sum(w.open_windows(progress[b]).values()) > 0 for b, w in windows.items())
    return log, most


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
