"""Compile the kernels of a job before it runs, in images and on executors.

The first call of a kernel compiles it.  So `warm` pushes made-up rows of the job's own types
through both states that a run can have: one in memory, as with --local, and one of records, as on
Spark.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

import sash

from ..query import Query
from ..query.plan import Plan, make_plan
from ..stores import MemoryStore
from ..windows import Aligned, duration
from .check import Ready, arrives_by_tie, columns_of, query_of
from .errors import RunError
from .explained import run_together

__all__ = ["made_up", "warm"]

ROWS = 24


def warm(ready: Ready, *, local: bool) -> Iterator[tuple[str, float]]:
    """Compile the kernels of each query; yields what was compiled, and the seconds it took."""
    schema = ready.source.schema
    if schema is None:
        raise RunError(
            "the columns of the source are not known without Spark, and kernels are built for "
            'their types: add schema = "…" to [source]'
        )
    for names in run_together(ready, local=local):
        if len(names) == 1:
            yield from _warm_one(ready, names[0], schema, local=local)
            continue
        given = {name: ready.queries[name] for name in names}
        started = time.perf_counter()
        if local:
            stream = sash.share(given).stream(**_settings(ready), schema=schema)
            _push(stream, schema, max(_step(query_of(q), 0) for q in given.values()), ready)
        else:
            _stream_together(ready, given, schema)
        yield f"{', '.join(names)}: {_CALLED['memory' if local else 'tiles']}", _since(started)


def _warm_one(
    ready: Ready, name: str, schema: pa.Schema, *, local: bool
) -> Iterator[tuple[str, float]]:
    """Compile the kernels of a query that shares with no other."""
    given = ready.queries[name]
    query, columns = query_of(given), columns_of(given, schema)
    plan = make_plan(query, columns)
    for state in ("memory",) if local else ("tiles", "slices"):
        started = time.perf_counter()
        if state == "slices":
            if not _slice(query, plan, columns):
                continue
        else:
            _stream(ready, query, plan, columns, state)
        yield f"{name}: {_CALLED[state]}", _since(started)


def _since(started: float) -> float:
    return time.perf_counter() - started


_CALLED = {
    "memory": "a stream in this process",
    "tiles": "a stream on Spark",
    "slices": "slices before the shuffle",
}


def _settings(ready: Ready) -> dict[str, Any]:
    return {"lateness": duration(ready.job.tables.source.lateness), "mode": ready.mode}


def _stream_together(ready: Ready, given: Mapping[str, Any], schema: pa.Schema) -> None:
    """Run queries over one stream whose state is records, as on Spark, and build their slices."""
    import numpy as np

    from sash.spark.combining import combinable
    from sash.spark.payload_slices import packed_slices
    from sash.spark.payloads import Buckets

    columns = pa.unify_schemas([columns_of(q, schema) for q in given.values()])
    inner = {n: dataclasses.replace(query_of(q), where=None) for n, q in given.items()}
    shared = sash.share(inner)
    step = max(_step(query, 0) for query in inner.values())
    stream = shared.stream(**_settings(ready), schema=columns, store=MemoryStore(), name="warm")
    _push(stream, columns, step, ready)
    for bundle in shared.plan.bundles:
        first = inner[bundle.names[0]]
        plans = [make_plan(query, columns) for query in bundle.queries.values()]
        if bundle.composite is not None and all(map(combinable, plans)):
            rows = made_up(columns, first.time, 0, step)
            buckets = Buckets(np.array([0], np.int32))
            packed_slices(first, rows.combine_chunks(), buckets, bundle)


def _push(stream: Any, schema: pa.Schema, step: int, ready: Ready) -> None:
    """Push a few batches, in order, out of order and late, and close all windows."""
    source = ready.job.tables.source
    step = max(step, duration(source.lateness), 1)
    for start in (0, 2 * ROWS, ROWS, 8 * ROWS, 0):
        stream.push(made_up(schema, source.time, start * step, step))
    stream.close()


def _stream(ready: Ready, query: Query, plan: Plan, schema: pa.Schema, state: str) -> None:
    """Run one query over a stream of its own."""
    from ..testing.stored import open_stream

    if state == "memory" and arrives_by_tie(plan, ready.mode):
        query = dataclasses.replace(query, tie=None)
    stream = open_stream(state, query, **_settings(ready), schema=schema)
    _push(stream, schema, _step(query, 0), ready)


def _slice(query: Query, plan: Plan, schema: pa.Schema) -> bool:
    """Combine rows into slices; returns False if the query needs none, or without Spark."""
    try:
        import numpy as np

        from sash.spark.combining import combinable
        from sash.spark.payload_slices import packed_slices
        from sash.spark.payloads import Buckets
    except ImportError:
        return False
    if not isinstance(query.window, Aligned) or not combinable(plan):
        return False
    rows = made_up(schema, query.time, 0, _step(query, 0)).select(list(query.columns))
    packed_slices(query, rows.combine_chunks(), Buckets(np.array([0], np.int32)))
    return True


def _step(query: Query, lateness: int) -> int:
    """The distance between the times of made-up rows, large enough for windows to close."""
    if isinstance(query.window, Aligned):
        number = query.window.first(0)
        return max(int(query.window.end(number) - query.window.start(number)) // 4, lateness, 1)
    return max(lateness, 1_000_000)


def made_up(schema: pa.Schema, time_column: str, start: int, step: int) -> pa.Table:
    """Made-up rows of these types, from a start time on."""
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
    """Some value of a type."""
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
