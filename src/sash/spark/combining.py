"""Combines rows into slices in Python, before the shuffle.

For a table, each output row is a slice of one key: the key, a time in the slice, and the partials
as bytes.  For a stream, the slices of a bucket travel together, and each slice also has the number
of its rows and the youngest of their times, so that sash can count late rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from ..engine.failures import noting_failure
from ..engine.lifecycle import Sliced
from ..kernels.columns import Array
from ..kernels.core import decoder, encoder
from ..kernels.layout import words_of
from ..operators.contract import Operator
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import Edges, edges_of
from ..state.folds import Folds
from ..state.joining import join_slices
from ..state.ragged import run_starts
from ..state.scan import Scan
from ..tables.arrow import check_times, filtered, one_array, times_of
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time
from .shipping import shipped
from .types import arrow_schema, quoted

__all__ = ["COMBINED", "Cutter", "combinable", "combined", "joined_slices", "partials_from"]

COMBINED = 262_144  # the rows that a task combines at a time
_WORDS = 80  # the most words of a partial: a larger one takes more bytes than its rows


def combinable(plan: Plan) -> bool:
    """True if tasks may combine the rows of a slice in any order, into small partials that can
    travel as bytes.

    An Arrow array of bytes holds up to 2^31: a million partials of 80 words are a third of that.
    """
    operators = [group.operator for group in plan.groups]
    small = all(o.shape != "object" and words_of(o) <= _WORDS for o in operators)
    labelled = any(group.labelled for group in plan.groups)  # numbers mean nothing elsewhere
    return small and not labelled and not plan.ordered


@dataclass
class Cut:
    """Slices of rows, in order of key and time.  Each slice has the number of its key, a time in
    it, the partials, the number of its rows, and the youngest of their times."""

    keys: list[pa.Array]
    codes: Array
    times: Array
    partials: list[Any]
    rows: Array
    newest: Array
    operators: list[Operator]

    def columns(self) -> dict[str, pa.Array]:
        """The columns of the slices: the keys, a time, and the partials as bytes."""
        codes = pa.array(self.codes)
        made = {f"key_{i}": key.take(codes) for i, key in enumerate(self.keys)}
        made["time"] = pa.array(self.times)
        for i, (operator, partials) in enumerate(zip(self.operators, self.partials, strict=True)):
            made[f"partials_{i}"] = _as_bytes(operator, partials)
        return made


class Cutter:
    """Cuts the rows of a query into slices, at the edges of its window, or at the edges that the
    caller passes."""

    def __init__(self, plan: Plan, edges: Edges | None = None) -> None:
        query = plan.query
        self._query = query
        self._whole = edges is None
        self._edges = edges or edges_of(query.aligned)
        self._least = query.aligned.clock.limits[0] + 1  # the first slice may begin before this
        self._scans = [Scan(group, query.aligned, plan.types) for group in plan.groups]

    def cut(self, table: pa.Table, times: Array) -> Cut:
        """Cut the rows of a table, which have these times, into slices."""
        query = self._query
        codes, keys = key_codes([one_array(table.column(k)) for k in query.by], table.num_rows)
        rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times))
        at, codes = times[rows], codes[rows]
        starts = np.empty(0, dtype=np.int64)
        partials = []
        for scan in self._scans:
            marks = at if self._whole else self._edges.start(at)
            starts, words, _ = scan.cut(table, rows, marks, bounds, self._whole)
            partials.append(words)
        heads = run_starts(codes, self._edges.number(at))
        ends = np.append(heads[1:], len(at))
        return Cut(
            keys,
            codes[heads],
            np.maximum(starts, self._least),
            partials,
            ends - heads,
            at[ends - 1],
            [scan.group.operator for scan in self._scans],
        )


def combined(df: DataFrame, plan: Plan) -> DataFrame:
    """Combine the rows of a DataFrame.  An output row has the partials of some rows of one slice:
    the keys as `key_0`, …, a time, and for each group a partial as bytes, `partials_0`, …"""
    query = plan.query
    names = df.columns if query.where is not None else list(dict.fromkeys(query.columns))
    plain = df.select(*[quoted(n).alias(f"column_{i}") for i, n in enumerate(names)])
    fields = [StructField(f"key_{i}", df.schema[k].dataType) for i, k in enumerate(query.by)]
    fields.append(StructField("time", LongType(), nullable=False))
    fields += [
        StructField(f"partials_{i}", BinaryType(), nullable=False) for i in range(len(plan.groups))
    ]
    made = StructType(fields)
    return plain.mapInArrow(shipped(_Combine(query, names, made)), made)


class _Combine:
    """The work of a task: combine its rows of a table."""

    def __init__(self, query: Query, names: list[str], result: StructType) -> None:
        self._query = query
        self._names = names
        self._result = result

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        query, plan, cutter = self._query, None, None
        for table in _gathered(batches):
            table = table.rename_columns(self._names)
            if query.where is not None:
                table = filtered(table, query.where)
            if not table.num_rows:
                continue
            plan = plan or make_plan(query, table.schema)
            cutter = cutter or Cutter(plan)
            column = one_array(table.column(query.time))
            clock = query.window.clock
            times, bad = times_of(column, clock)
            check_times(query.time, column, bad, clock)
            with noting_failure(plan, table):
                made = pa.table(cutter.cut(table, times).columns())
            yield from made.cast(arrow_schema(self._result)).to_batches()


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches into tables of many rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= COMBINED:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def joined_slices(
    plan: Plan, tables: list[pa.Table], refused: int, edges: Edges | None = None
) -> Sliced:
    """Join slices from several tasks into one batch, and combine those of one key and slice.  The
    tables have the columns of `Cut.columns`, and `rows` and `newest`."""
    table = pa.concat_tables(tables)
    columns = [one_array(table.column(f"key_{i}")) for i in range(len(plan.query.by))]
    times, rows, newest = (
        one_array(table.column(name)).to_numpy() for name in ("time", "rows", "newest")
    )
    partials = [
        partials_from(group.operator, one_array(table.column(f"partials_{i}")))
        for i, group in enumerate(plan.groups)
    ]
    slices, order, heads = join_slices(plan, columns, times, partials, edges)
    return Sliced(
        slices,
        np.add.reduceat(rows[order], heads),
        np.maximum.reduceat(newest[order], heads),
        refused,
    )


def _as_bytes(operator: Operator, partials: Any) -> pa.Array:
    """Turn each partial into bytes: its words, or the result of the operator's `encode`."""
    if isinstance(partials, list):
        encode = encoder(operator)
        return pa.array([encode(p) for p in partials], pa.binary())
    count, width = partials.shape
    offsets = np.arange(count + 1, dtype=np.int32) * (8 * width)
    data = pa.py_buffer(np.ascontiguousarray(partials, dtype="<i8"))
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), data])


def partials_from(operator: Operator, column: pa.Array) -> Any:
    """Turn the bytes of `_as_bytes` into partials."""
    width = Folds(operator).width
    if not width:
        decode = decoder(operator)
        return [decode(data) for data in column.to_pylist()]
    if not len(column):
        return np.empty((0, width), dtype=np.int64)
    _, offsets, data = column.buffers()
    first = int(np.frombuffer(offsets, dtype=np.int32)[column.offset])
    words = np.frombuffer(data, dtype="<i8", count=len(column) * width, offset=first)
    return np.asarray(words, dtype=np.int64).reshape(len(column), width)
