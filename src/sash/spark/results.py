"""The columns of a query's result on Spark, and tables with these columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, StructField, StructType, TimestampNTZType, TimestampType

from ..engine.results import check_answers
from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.query import Query
from ..query.registry import is_nullable
from ..state.scan import Windows
from ..tables.arrow import one_array
from ..windows import Aligned, Driven
from .types import arrow_schema, spark_type

__all__ = [
    "as_results",
    "kept_columns",
    "result_fields",
    "result_table",
    "value_fields",
    "window_metadata",
    "window_struct",
]


def window_metadata(time: DataType) -> dict[str, Any]:
    """The metadata that Spark's own operators give to a window column, so that `F.window` and
    `F.window_time` accept sash's windows as well.  A window of plain numbers gets none, as it is no
    window to Spark."""
    return {"spark.timeWindow": True} if isinstance(time, TimestampType | TimestampNTZType) else {}


def kept_columns(query: Query, names: list[str]) -> list[str]:
    """The columns of events that results contain: the keys, or all columns for driven windows."""
    return names if isinstance(query.window, Driven) else list(query.by)


def result_fields(plan: Plan, schema: StructType) -> StructType:
    """The columns of the result: keys, or all columns of an event; window; values."""
    query = plan.query
    time = schema[query.time].dataType
    edges = StructType([StructField("start", time), StructField("end", time)])
    fields = [schema[name] for name in kept_columns(query, schema.names)]
    if isinstance(query.window, Aligned):  # without metadata, as in slices that Spark makes
        fields = [StructField(f.name, f.dataType, f.nullable) for f in fields]
    # a driven window includes its end, and Spark's windows do not
    beside = {} if isinstance(query.window, Driven) else window_metadata(time)
    fields.append(StructField("window", edges, nullable=False, metadata=beside))
    return StructType([*fields, *value_fields(plan)])


def as_results(made: pa.Table, result: StructType) -> pa.Table:
    """Turn a result table of `Query.run` into a table with the columns of the result on Spark."""
    edges = [one_array(made.column(f"window_{edge}")) for edge in ("start", "end")]
    window = pa.StructArray.from_arrays(edges, names=["start", "end"])
    columns: list[Any] = [
        window if name == "window" else made.column(name) for name in result.names
    ]
    return pa.table(columns, names=result.names).cast(arrow_schema(result))


def value_fields(plan: Plan) -> list[StructField]:
    """The columns of the values."""
    check_answers(plan)
    fields = []
    window = plan.query.window
    empty = isinstance(window, Aligned) and window.empty is not None
    for name, chosen in plan.query.select.items():
        made = plan.types[name]
        # over no events, a user's operator may have no answer
        nullable = is_nullable(chosen.operator) or (empty and not chosen.operator.ready)
        fields.append(StructField(name, spark_type(made), nullable))
    return fields


def result_table(
    plan: Plan, keys: list[pa.Array], windows: Windows, result: StructType
) -> pa.Table:
    """Turn windows into a table with the columns of the result."""
    query = plan.query
    groups = pa.array(windows.groups)
    columns: list[Any] = [k.take(groups) for k in keys]
    columns.append(window_struct(query.aligned, windows.numbers, plan.time_type))
    columns += [windows.values[name] for name in query.select]
    made = pa.table(dict(zip(result.names, columns, strict=True)))
    return made.cast(arrow_schema(result))


def window_struct(window: Aligned, numbers: Array, time: pa.DataType) -> pa.Array:
    """Turn windows, by number, into structs of start and end."""
    edges = [pa.array(window.start(numbers)), pa.array(window.end(numbers))]
    if pa.types.is_timestamp(time):
        edges = [e.cast(pa.timestamp("us", time.tz)) for e in edges]
    return pa.StructArray.from_arrays(edges, names=["start", "end"])
