"""The stage before the shuffle of a streaming query: it packs rows by bucket.

It runs in Python workers, and each worker imports all that this module imports, while the first
micro-batch waits.  So the module does without the lifecycle, the state and the kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from ..engine.bundles import Bundle
from ..query.query import Query
from ..tables.arrow import filtered
from .buckets import BUCKET, PAYLOAD, for_stream
from .payloads import Buckets, packed_rows, worth_combining

__all__ = ["LANE", "Combines", "Packer", "SharedPacker"]

Combines: TypeAlias = Literal["always", "auto", "never"]

#: The number of a lane, at the start of a payload of `SharedPacker`.  It takes eight bytes, as the
#: bucket reads Arrow's buffers in the payload, and their addresses must be multiples of eight.
LANE = struct.Struct("<Q")

#: Rows that the packer packs at a time, while Spark prepares the next ones.  Packing a million rows
#: at once took 23 ms after the last row had come; in eight pieces it took 2 ms.
_MANY = 131_072


@dataclass(frozen=True)
class Packer:
    """Packs the rows of each bucket into one value (a payload), in Arrow's stream format.  `names`
    are the columns of the batches.

    Spark passes pandas to a stateful operator in Python.  pandas has no null integers and cannot
    tell NaN from null, and each row costs time.  Bytes arrive unchanged, and few rows are cheap.

    The first task adds an empty payload for every bucket.  So Spark calls each bucket in every
    micro-batch that has a task here, and the bucket knows the watermark of the micro-batch before.
    Spark judges lateness by that watermark: rows that an operator upstream emits when the watermark
    moves lie between the watermark before and the present one.
    """

    query: Query
    names: tuple[str, ...]
    travels: tuple[str, ...]  # the columns to pack, once the condition has chosen rows
    called: tuple[int, ...]  # names for buckets; with fewer buckets, only the first names are used
    buckets: int | None
    combines: Combines = "never"  # combine rows into slices; "auto": if a slice has several rows
    bundle: Bundle | None = None  # the queries, or sizes of one query, that share the slices

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        buckets = Buckets(np.array(self.called[: for_stream(self.buckets)], np.int32))
        yield from _empty(buckets)
        for held in _gathered(batches):
            yield from self.packed(buckets, held)

    def packed(self, buckets: Buckets, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the rows of some batches."""
        query = self.query
        table = pa.Table.from_batches(batches).rename_columns(list(self.names))
        if query.where is not None:
            table = filtered(table, query.where)
        if not table.num_rows:
            return
        table = table.select(self.travels).combine_chunks()
        if self.combines == "always" or (self.combines == "auto" and self._worth(table)):
            from .payload_slices import packed_slices  # a worker that packs rows does without

            yield packed_slices(query, table, buckets, self.bundle)
        else:
            yield packed_rows(query, table, buckets)

    def _worth(self, table: pa.Table) -> bool:
        edges = None
        if self.bundle is not None and self.bundle.composite is not None:
            edges = self.bundle.composite.edges
        return worth_combining(self.query, table, edges)


@dataclass(frozen=True)
class SharedPacker:
    """Packs the rows for several lanes of queries (`processor.Lane`), for each lane by its own
    keys.  A payload begins with the number of its lane."""

    lanes: tuple[Packer, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = self.lanes[0]
        buckets = Buckets(np.array(first.called[: for_stream(first.buckets)], np.int32))
        yield from _empty(buckets)
        for held in _gathered(batches):
            for number, lane in enumerate(self.lanes):
                mark = LANE.pack(number)
                for made in lane.packed(buckets, held):
                    marked = [mark + payload for payload in made.column(PAYLOAD).to_pylist()]
                    yield pa.record_batch(
                        {BUCKET: made.column(BUCKET), PAYLOAD: pa.array(marked, pa.binary())}
                    )


def _empty(buckets: Buckets) -> Iterator[pa.RecordBatch]:
    """In the first task, an empty payload for every bucket."""
    if _task(0) == 0:
        empty = pa.array([b""] * len(buckets.called), pa.binary())
        yield pa.record_batch({BUCKET: pa.array(buckets.called), PAYLOAD: empty})


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Gather batches into lists with many rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _MANY:
            yield held
            held, rows = [], 0
    if held:
        yield held


def _task(default: int) -> int:
    """The number of this task among those of its stage."""
    context = TaskContext.get()
    return default if context is None else context.partitionId()
