"""Builds the kernels of a job before it runs, for images and executors.

Kernels are compiled when they are first called, so made-up rows of the job's own types go through
the states that a run has: one in memory, as with --local, and one of records, as on Spark.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ..query import Query
from ..query.plan import Plan, make_plan
from ..windows import Aligned, duration
from .check import Ready, arrives_by_tie, columns_of, query_of
from .errors import RunError

__all__ = ["made_up", "warm"]

ROWS = 24


def warm(ready: Ready, *, local: bool) -> Iterator[tuple[str, float]]:
    """Build the kernels of each query; what was built, and in how many seconds."""
    schema = ready.source.schema
    if schema is None:
        raise RunError(
            "the columns of the source are not known without Spark, and kernels are built for "
            'their types: add schema = "…" to [source]'
        )
    for name, given in ready.queries.items():
        query, columns = query_of(given), columns_of(given, schema)
        plan = make_plan(query, columns)
        for state in ("memory",) if local else ("tiles", "slices"):
            started = time.perf_counter()
            if state == "slices":
                if not _slice(query, plan, columns):
                    continue
            else:
                _stream(ready, query, plan, columns, state)
            yield f"{name}: {_CALLED[state]}", time.perf_counter() - started


_CALLED = {
    "memory": "a stream in this process",
    "tiles": "a stream on Spark",
    "slices": "slices before the shuffle",
}


def _stream(ready: Ready, query: Query, plan: Plan, schema: pa.Schema, state: str) -> None:
    """Push a few batches, in order, out of order and late, and close all windows."""
    import dataclasses

    from ..testing.stored import open_stream

    if state == "memory" and arrives_by_tie(plan, ready.mode):
        query = dataclasses.replace(query, tie=None)
    lateness = duration(ready.job.tables.source.lateness)
    stream = open_stream(state, query, lateness=lateness, mode=ready.mode, schema=schema)
    step = _step(query, lateness)
    for start in (0, 2 * ROWS, ROWS, 8 * ROWS, 0):
        stream.push(made_up(schema, query.time, start * step, step))
    stream.close()


def _slice(query: Query, plan: Plan, schema: pa.Schema) -> bool:
    """Combine rows into slices; False if they are not, or if Spark is not installed."""
    try:
        import numpy as np

        from sash.spark.combining import combinable
        from sash.spark.payloads import Buckets, packed_slices
    except ImportError:
        return False
    if not isinstance(query.window, Aligned) or not combinable(plan):
        return False
    rows = made_up(schema, query.time, 0, _step(query, 0)).select(list(query.columns))
    packed_slices(query, rows.combine_chunks(), Buckets(np.array([0], np.int32)))
    return True


def _step(query: Query, lateness: int) -> int:
    """How far apart the times of made-up rows are, such that windows close."""
    if isinstance(query.window, Aligned):
        number = query.window.first(0)
        return max(int(query.window.end(number) - query.window.start(number)) // 4, lateness, 1)
    return max(lateness, 1_000_000)


def made_up(schema: pa.Schema, time_column: str, start: int, step: int) -> pa.Table:
    """Rows of these types whose times begin somewhere."""
    columns = {}
    for field in schema:
        if field.name == time_column:
            times = pa.array([start + i * step for i in range(ROWS)], pa.int64())
            columns[field.name] = _as_time(times, field.type)
        else:
            values = [_value(field.type, i) for i in range(ROWS)]
            columns[field.name] = pa.array(values, field.type)
    return pa.table(columns)


def _as_time(micros: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_timestamp(kind):
        return micros.cast(kind)
    return micros.cast(pa.timestamp("us", kind.tz)).cast(kind)


def _value(kind: pa.DataType, i: int) -> Any:
    """A value of a type."""
    types = pa.types
    number = i % 3
    if types.is_integer(kind) or types.is_floating(kind):
        return number
    if types.is_boolean(kind):
        return bool(number)
    if types.is_string(kind) or types.is_large_string(kind):
        return str(number)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return str(number).encode()
    if types.is_timestamp(kind):
        zone = dt.UTC if kind.tz else None
        return dt.datetime(2024, 1, 1 + number, tzinfo=zone)
    if types.is_date(kind):
        return dt.date(2024, 1, 1 + number)
    if types.is_decimal(kind):
        return Decimal(number if kind.precision > kind.scale else 0)
    if types.is_list(kind) or types.is_large_list(kind):
        return [_value(kind.value_type, i)]
    if types.is_struct(kind):
        return {field.name: _value(field.type, i) for field in kind}
    return None
