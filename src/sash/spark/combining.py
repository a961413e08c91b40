"""Rows combined into slices by Python, before they are shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..state.scan import Scan
from ..tables.arrow import check_times, filtered, one_array, times_of
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time
from .shipping import shipped
from .types import arrow_schema, quoted

__all__ = ["combined", "words_from"]

_ROWS = 262_144  # combined at a time


def combined(df: DataFrame, plan: Plan) -> DataFrame:
    """Rows with the keys as `key_0`, …, a time, and for each group the words of a partial as bytes,
    `words_0`, …; each has the partial of some rows of one slice."""
    query = plan.query
    names = df.columns if query.where is not None else list(dict.fromkeys(query.columns))
    plain = df.select(*[quoted(n).alias(f"column_{i}") for i, n in enumerate(names)])
    fields = [StructField(f"key_{i}", df.schema[k].dataType) for i, k in enumerate(query.by)]
    fields.append(StructField("time", LongType(), nullable=False))
    fields += [
        StructField(f"words_{i}", BinaryType(), nullable=False) for i in range(len(plan.groups))
    ]
    made = StructType(fields)
    return plain.mapInArrow(shipped(_Combine(query, names, made)), made)


class _Combine:
    """What a task does with its rows."""

    def __init__(self, query: Query, names: list[str], result: StructType) -> None:
        self._query = query
        self._names = names
        self._result = result

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scans: list[Scan] = []
        for table in _gathered(batches):
            table = table.rename_columns(self._names)
            if self._query.where is not None:
                table = filtered(table, self._query.where)
            plan = make_plan(self._query, table.schema)
            if not scans:
                scans = [Scan(group, self._query.window, plan.types) for group in plan.groups]
            yield from self._slices(plan, scans, table).to_batches()

    def _slices(self, plan: Plan, scans: list[Scan], table: pa.Table) -> pa.Table:
        query = self._query
        column = one_array(table.column(query.time))
        times, bad = times_of(column)
        check_times(query.time, column, bad)
        codes, keys = key_codes([one_array(table.column(k)) for k in query.by], table.num_rows)
        rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times))
        columns: list[Any] = []
        starts = ends = np.empty(0, dtype=np.int64)
        for scan in scans:
            starts, partials, ends = scan.cut(
                scan.columns(table), rows, times[rows], bounds, whole=True
            )
            columns.append(_as_bytes(partials))
        groups = pa.array(np.repeat(np.arange(len(ends) - 1), np.diff(ends)))
        made = [*(k.take(groups) for k in keys), pa.array(starts), *columns]
        return pa.table(dict(zip(self._result.names, made, strict=True))).cast(
            arrow_schema(self._result)
        )


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to tables of many rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= _ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _as_bytes(words: Array) -> pa.Array:
    """Rows of words as bytes, one value a row."""
    count, width = words.shape
    offsets = np.arange(count + 1, dtype=np.int32) * (8 * width)
    data = pa.py_buffer(np.ascontiguousarray(words, dtype="<i8"))
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), data])


def words_from(column: pa.Array, width: int) -> Array:
    """The rows of words again."""
    if not len(column):
        return np.empty((0, width), dtype=np.int64)
    _, offsets, data = column.buffers()
    first = int(np.frombuffer(offsets, dtype=np.int32)[column.offset])
    words = np.frombuffer(data, dtype="<i8", count=len(column) * width, offset=first)
    return np.asarray(words, dtype=np.int64).reshape(len(column), width)
