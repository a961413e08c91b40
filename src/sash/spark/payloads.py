"""The rows of a bucket as one value, on their way through a shuffle: as they are, or as slices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..engine.failures import name_failure
from ..engine.lifecycle import Sliced
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import edges_of
from ..state.contract import Slices
from ..tables.arrow import one_array, times_of
from ..tables.intake import bad_rows, some_rows
from .combining import Cut, Cutter, joined_slices

__all__ = [
    "BUCKET",
    "HASH",
    "PAYLOAD",
    "packed_rows",
    "packed_slices",
    "unpacked",
    "worth_combining",
]

BUCKET, HASH, PAYLOAD = "bucket", "hash", "payload"
_REFUSED = b"refused"  # in a schema's metadata: it has slices, and so many rows were refused
_SAMPLE, _FEW = 16_384, 3  # rows to look at, and how many a slice must have


def worth_combining(query: Query, table: pa.Table, hashes: Array) -> bool:
    """True if a slice has several of the first rows.  `hashes` has those of the keys."""
    some = table.slice(0, _SAMPLE)
    times, _ = times_of(one_array(some.column(query.time)))
    numbers = np.asarray(edges_of(query.aligned).number(times), dtype=np.int64)
    with np.errstate(over="ignore"):
        places = hashes[: len(times)] ^ (numbers * np.int64(0x1E3779B97F4A7C15))
    return _FEW * len(np.unique(places)) <= len(times)


def packed_rows(table: pa.Table, buckets: Array) -> pa.RecordBatch:
    """A value for each bucket, with its rows."""
    order = np.argsort(buckets, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    found, first = np.unique(buckets[order], return_index=True)
    ends = [*first[1:].tolist(), len(order)]
    return _record(
        found, (_written(table.slice(a, b - a)) for a, b in zip(first.tolist(), ends, strict=True))
    )


def packed_slices(query: Query, table: pa.Table, buckets: Array) -> pa.RecordBatch:
    """A value for each bucket, with the slices of its rows."""
    plan = make_plan(query, table.schema)
    cut, refused = _cut_usable(plan, table)
    if cut is None:
        return _record(buckets[:1], [_written(pa.table({}), refused)])
    of_slices = buckets[cut.firsts][cut.codes]
    order = np.argsort(of_slices, kind="stable")
    slices = _as_table(cut, order)
    found, first = np.unique(of_slices[order], return_index=True)
    ends = [*first[1:].tolist(), len(order)]
    # what cannot be used is counted once, in any of the buckets
    counts = [refused, *[0] * (len(found) - 1)]
    return _record(
        found,
        (
            _written(slices.slice(a, b - a), count)
            for a, b, count in zip(first.tolist(), ends, counts, strict=True)
        ),
    )


def unpacked(plan: Plan, payloads: Iterable[bytes]) -> pa.Table | Sliced:
    """The batch that the values of a bucket have: rows, unless some come as slices."""
    rows, slices = [], []
    refused, sliced = 0, False
    for payload in payloads:
        with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
            table = reader.read_all()
        said = (table.schema.metadata or {}).get(_REFUSED)
        if said is None:
            rows.append(table.cast(plan.schema))
            continue
        sliced = True
        refused += int(said)
        if table.num_rows:
            slices.append(table.cast(_slice_schema(plan, table.schema)))
    if not sliced:
        return pa.concat_tables(rows)
    if rows:
        cut, more = _cut_usable(plan, pa.concat_tables(rows))
        refused += more
        if cut is not None:
            table = _as_table(cut, np.arange(len(cut.codes)))
            slices.append(table.cast(_slice_schema(plan, table.schema)))
    if not slices:
        none = np.empty(0, dtype=np.int64)
        return Sliced(Slices([], np.zeros(1, dtype=np.int64), none, []), none, none, refused)
    return joined_slices(plan, slices, refused)


def _cut_usable(plan: Plan, table: pa.Table) -> tuple[Cut | None, int]:
    """The slices of the rows that can be used, by their places in the table, and how many cannot:
    they have no time, or a value that `lift` refuses."""
    times, unusable = times_of(one_array(table.column(plan.query.time)))
    rows = np.flatnonzero(~unusable)
    cutter = Cutter(plan)
    while len(rows):
        held = some_rows(table, rows)
        try:
            cut = cutter.cut(held, times[rows])
        except Exception as error:
            wrong = bad_rows(lambda part: cutter.cut(part, np.zeros(len(part), np.int64)), held)
            if not wrong:
                raise name_failure(plan, held, times[rows], error) from error
            rows = np.delete(rows, list(wrong))
            continue
        return replace(cut, firsts=rows[cut.firsts]), table.num_rows - len(rows)
    return None, table.num_rows


def _as_table(cut: Cut, order: Array) -> pa.Table:
    columns = cut.columns() | {"rows": pa.array(cut.rows), "newest": pa.array(cut.newest)}
    return pa.table(columns).take(pa.array(order))


def _slice_schema(plan: Plan, given: pa.Schema) -> pa.Schema:
    """The schema of slices, with the keys in the query's types."""
    keys = {f"key_{i}": plan.schema.field(k).type for i, k in enumerate(plan.query.by)}
    return pa.schema([(f.name, keys.get(f.name, f.type)) for f in given])


def _written(table: pa.Table, refused: int | None = None) -> bytes:
    """A table in Arrow's own format; with a number of rows refused, one of slices."""
    if refused is not None:
        table = table.replace_schema_metadata({_REFUSED: str(refused).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _record(buckets: Array, payloads: Iterable[bytes]) -> pa.RecordBatch:
    return pa.record_batch(
        {BUCKET: pa.array(buckets, pa.int32()), PAYLOAD: pa.array(list(payloads), pa.binary())}
    )
