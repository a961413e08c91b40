"""A query over a DataFrame that is no stream.

Rows are grouped by a bucket of keys, not by key: what a group costs is paid once for many.  A long
stream of one key would be one group's work all the same, so windows are cut, by their numbers, into
stretches of many windows, and a key's stretches go to buckets of their own.  An event that is in
windows of two stretches goes to both, so that each answers its windows by itself; a stretch has at
least 16 times as many windows as hold one event, so that few events do.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType, TimestampNTZType, TimestampType

from ..engine.run import compute
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.registry import is_nullable
from ..windows import Aligned
from ..windows.contract import LATEST, Cycle
from .arithmetic import SPARK
from .buckets import bucket_of
from .shipping import shipped
from .types import arrow_schema, micros, quoted, spark_type

__all__ = ["aggregate_batch", "is_usable", "result_fields", "window_metadata"]

_STRETCH, _BUCKET = "__sash_stretch", "__sash_bucket"


def aggregate_batch(df: DataFrame, plan: Plan, buckets: int) -> DataFrame:
    """The results over all rows of a DataFrame."""
    query, window = plan.query, plan.query.window
    held = window.last(window.start(0)) - window.first(window.start(0)) + 1  # by one time, at most
    length = max(1024, 16 * (held + 1))
    schema = df.schema
    time = micros(quoted(query.time), schema[query.time].dataType)
    # only changes: the first window of a stretch is compared with the last of the one before
    after = 1 if query.emit == "changes" else 0
    first, last = _stretches(time, window.cycle, length, after)
    names = df.columns if query.where is not None else list(query.columns)
    at = F.explode(F.sequence(first, last)) if held > 1 or after else last
    # not every way through Spark takes names with dots
    plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
    tagged = df.select(*[quoted(n) for n in names], at.alias(_STRETCH))
    bucket = bucket_of(query, schema, buckets, F.col(_STRETCH)).alias(_BUCKET)
    tagged = tagged.select(*plain, _STRETCH, bucket)
    result = result_fields(plan, schema)
    work = _Work(query, [*names, _STRETCH, _BUCKET], length, result)
    return tagged.groupBy(_BUCKET).applyInArrow(shipped(work), result)


def _stretches(time: Column, cycle: Cycle, length: int, after: int) -> tuple[Column, Column]:
    """The first and last stretch of so many windows that have windows which hold a time, or come
    so many after one that does."""
    usable = F.when(_in_range(time), time)
    first, last = cycle.first(usable, SPARK), cycle.last(usable, SPARK) + F.lit(after)
    # a time that is null or out of range is for the first task to report
    none = F.lit(0).cast("long")
    return (
        F.coalesce(SPARK.div(first, length), none),
        F.coalesce(SPARK.div(last, length), none),
    )


def is_usable(time: Column, given: DataType) -> Column:
    """Whether a row's time is there and in range, for Spark to filter by."""
    return F.coalesce(_in_range(micros(time, given)), F.lit(False))


def _in_range(time: Column) -> Column:
    return (time > F.lit(-LATEST)) & (time < F.lit(LATEST))


def window_metadata(time: DataType) -> dict[str, Any]:
    """What Spark's own operators write beside a window, so that `F.window` and `F.window_time`
    take ours as well; a window of plain numbers is not one to Spark."""
    return {"spark.timeWindow": True} if isinstance(time, TimestampType | TimestampNTZType) else {}


def result_fields(plan: Plan, schema: StructType) -> StructType:
    """The columns of the result: keys, window, values."""
    query = plan.query
    time = schema[query.time].dataType
    edges = StructType([StructField("start", time), StructField("end", time)])
    fields = [StructField(k, schema[k].dataType, schema[k].nullable) for k in query.by]
    fields.append(StructField("window", edges, nullable=False, metadata=window_metadata(time)))
    for name, chosen in query.select.items():
        made = plan.types[name]
        if made is None:
            raise TypeError(
                f"{name} = {chosen}: Spark needs the type of its answers beforehand; say it with "
                "sash.aggregate(…, returns=pyarrow.float64()), or another Arrow type"
            )
        fields.append(StructField(name, spark_type(made), is_nullable(chosen.operator)))
    return StructType(fields)


class _Work:
    """What a task does with the rows of a bucket."""

    def __init__(self, query: Query, names: list[str], length: int, result: StructType) -> None:
        self._query = query
        self._names = names
        self._length = length
        self._result = result

    def __call__(self, table: pa.Table) -> pa.Table:
        query = self._query
        table = table.rename_columns(self._names)
        plan = make_plan(query, table.schema, extra=(_STRETCH,))
        keys, windows = compute(plan, table, self._wanted)
        begins = keys.pop().to_numpy(zero_copy_only=False) * self._length
        if query.emit == "changes":
            windows = windows.where(windows.numbers >= begins[windows.groups])
        groups = pa.array(windows.groups)
        columns: list[Any] = [k.take(groups) for k in keys]
        columns.append(window_struct(query.window, windows.numbers, plan.time_type))
        columns += [windows.values[name] for name in query.select]
        made = pa.table(dict(zip(self._result.names, columns, strict=True)))
        return made.cast(arrow_schema(self._result))

    def _wanted(self, keys: list[pa.Array]) -> tuple[Array, Array]:
        """The first and last window that a stretch answers; for changes, the one before as well."""
        begins = keys[-1].to_numpy(zero_copy_only=False) * self._length
        before = 1 if self._query.emit == "changes" else 0
        return begins - before, begins + self._length - 1


def window_struct(window: Aligned, numbers: Array, time: pa.DataType) -> pa.Array:
    """Windows as structs of start and end."""
    edges = [pa.array(window.start(numbers)), pa.array(window.end(numbers))]
    if pa.types.is_timestamp(time):
        edges = [e.cast(pa.timestamp("us", time.tz)) for e in edges]
    return pa.StructArray.from_arrays(edges, names=["start", "end"])
