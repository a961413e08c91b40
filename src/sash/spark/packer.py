"""The stage before the shuffle of a streaming query: rows packed by bucket.

It runs in Python workers, of which each imports what this module imports: no pandas, which takes as
long as all of the rest.
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
from .payloads import Buckets, packed_rows, packed_slices, worth_combining

__all__ = ["LANE", "Combines", "Packer", "SharedPacker"]

Combines: TypeAlias = Literal["always", "auto", "never"]

#: The number of a lane, before the value.
LANE = struct.Struct("<H")

#: Rows that are packed at a time, while Spark makes the next ones ready.  Of a million rows in one
#: piece 23 ms were left to do when the last had come, of eight pieces 2 ms.
_MANY = 131_072


@dataclass(frozen=True)
class Packer:
    """Packs the rows of each bucket into one value, in Arrow's own format.  The columns of the
    batches are `names`.

    A stateful operator in Python receives pandas, which has no null integers and cannot tell NaN
    from null; and it receives each row at a price.  Bytes pass unharmed, and a few of them
    cheaply.

    The first task adds an empty value for every bucket.  So each bucket is called in every
    micro-batch that has a task here, and knows the watermark of the micro-batch before, by which
    Spark judges lateness: rows that an operator upstream emits on the watermark lie between
    that one and the present one.
    """

    query: Query
    names: tuple[str, ...]
    travels: tuple[str, ...]  # the columns that go on, when the condition has chosen rows
    called: tuple[int, ...]  # what buckets are called; the first of them, if there are fewer
    buckets: int | None
    combines: Combines = "never"  # rows into slices; "auto": where a slice has several rows
    bundle: Bundle | None = None  # the queries, or sizes of one, whose slices those are

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        buckets = Buckets(np.array(self.called[: for_stream(self.buckets)], np.int32))
        yield from _empty(buckets)
        for held in _gathered(batches):
            yield from self.packed(buckets, held)

    def packed(self, buckets: Buckets, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of some batches, packed."""
        query = self.query
        table = pa.Table.from_batches(batches).rename_columns(list(self.names))
        if query.where is not None:
            table = filtered(table, query.where)
        if not table.num_rows:
            return
        table = table.select(self.travels).combine_chunks()
        if self.combines == "always" or (self.combines == "auto" and self._worth(table)):
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
    """Packs the rows of several lanes of queries (`processor.Lane`), each by its own keys.  A value
    begins with the number of its lane."""

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
    """An empty value for every bucket, from the first task."""
    if _task(0) == 0:
        empty = pa.array([b""] * len(buckets.called), pa.binary())
        yield pa.record_batch({BUCKET: pa.array(buckets.called), PAYLOAD: empty})


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches, so many at a time as have many rows."""
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
