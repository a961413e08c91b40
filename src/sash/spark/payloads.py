"""Packs the rows of a bucket into one value for the shuffle.

`payload_slices` packs slices instead, and unpacks values of both kinds.  To import what it needs
takes a new worker 0.18 s of processor time; to pack a thousand rows takes 1 ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.query import Query
from ..slicing.edges import Edges, edges_of
from ..state.key_hash import hash_keys
from ..tables.arrow import one_array, times_of
from .buckets import BUCKET, PAYLOAD

__all__ = [
    "REFUSED",
    "Buckets",
    "by_bucket",
    "packed_rows",
    "record",
    "worth_combining",
    "written",
]

#: A key in the metadata of a payload's schema.  It marks a payload of slices, and its value is the
#: number of rows that the packer could not use.
REFUSED = b"refused"
_SAMPLE, _FEW = 16_384, 3  # rows of the sample, and the least rows per slice there
#: Fewer rows than this travel as rows: slices would save only a few bytes of the shuffle, and a
#: worker must load numba to make them.
_LEAST = 4_096


@dataclass(frozen=True)
class Buckets:
    """Finds the bucket of a key by the key's hash; `called` has the names of all buckets.  Python
    computes the hash (for slices only once per key), because each column that Spark sends to Python
    adds a fifth to the cost of a row."""

    called: Array

    def of(self, keys: list[pa.Array], rows: int) -> Array:
        """The name of the bucket of each row's key."""
        found: Array = self.called[hash_keys(keys, rows) % np.uint64(len(self.called))]
        return found


def worth_combining(query: Query, table: pa.Table, edges: Edges | None = None) -> bool:
    """True if a table has many rows, and a sample of the first ones has several per slice."""
    if table.num_rows < _LEAST:
        return False
    some = table.slice(0, _SAMPLE)
    times, _ = times_of(one_array(some.column(query.time)))
    numbers = np.asarray((edges or edges_of(query.aligned)).number(times), dtype=np.int64)
    with np.errstate(over="ignore"):
        places = hash_keys(_keys(query, some), some.num_rows).view(np.int64) ^ (
            numbers * np.int64(0x1E3779B97F4A7C15)
        )
    return _FEW * len(np.unique(places)) <= len(times)


def _keys(query: Query, table: pa.Table) -> list[pa.Array]:
    return [one_array(table.column(k)) for k in query.by]


def packed_rows(query: Query, table: pa.Table, buckets: Buckets) -> pa.RecordBatch:
    """Pack the rows of each bucket into one value."""
    of_rows = buckets.of(_keys(query, table), table.num_rows)
    return by_bucket(table, of_rows)


def by_bucket(table: pa.Table, buckets: Array, refused: int | None = None) -> pa.RecordBatch:
    """Pack the rows of a table into one value per bucket.  The first value has the number of
    refused rows, the others 0."""
    order = np.argsort(buckets, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    found, first = np.unique(buckets[order], return_index=True)
    ends = [*first[1:].tolist(), len(order)]
    counts = [refused, *[None if refused is None else 0] * (len(found) - 1)]
    return record(
        found,
        (
            written(table.slice(a, b - a), count)
            for a, b, count in zip(first.tolist(), ends, counts, strict=True)
        ),
    )


def written(table: pa.Table, refused: int | None = None) -> bytes:
    """Write a table as bytes in Arrow's stream format; a number of refused rows marks it as a table
    of slices."""
    if refused is not None:
        table = table.replace_schema_metadata({REFUSED: str(refused).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def record(buckets: Array, payloads: Iterable[bytes]) -> pa.RecordBatch:
    return pa.record_batch(
        {BUCKET: pa.array(buckets, pa.int32()), PAYLOAD: pa.array(list(payloads), pa.binary())}
    )
