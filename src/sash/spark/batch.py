"""A query over a bounded DataFrame.

Rows are grouped by a bucket of keys, not by key: what a group costs is paid once for many.  A long
stream of one key would be one group's work all the same, so time is cut into stretches of many
windows, and a key's stretches go to buckets of their own.  An event that is in windows of two
stretches goes to both, so that each gives its windows by itself; a stretch is at least 16 times
as long as a window, so that few do.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ..engine.run import compute
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.registry import is_nullable
from ..windows import Sliding
from .buckets import bucket_of
from .types import arrow_schema, micros, quoted, spark_type

__all__ = ["aggregate_batch", "result_fields"]

_STRETCH, _BUCKET = "__sash_stretch", "__sash_bucket"


def aggregate_batch(df: DataFrame, plan: Plan, buckets: int) -> DataFrame:
    """The results over all rows of a DataFrame."""
    query, window = plan.query, plan.query.window
    length = stretch(window)
    schema = df.schema
    time = micros(quoted(query.time), schema[query.time].dataType)
    # only changes: the first window of a stretch is compared with the last of the one before
    after = window.every if query.emit == "changes" else 0
    first, last = _stretches(time, window, length, after)
    names = df.columns if query.where is not None else list(query.columns)
    several = window.every < window.size or after
    at = F.explode(F.sequence(first, last)) if several else last
    # not every way through Spark takes names with dots
    plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
    tagged = df.select(*[quoted(n) for n in names], at.alias(_STRETCH))
    bucket = bucket_of(query, schema, buckets, F.col(_STRETCH)).alias(_BUCKET)
    tagged = tagged.select(*plain, _STRETCH, bucket)
    result = result_fields(plan, schema)
    work = _Work(query, [*names, _STRETCH, _BUCKET], length, result)
    return tagged.groupBy(_BUCKET).applyInArrow(lambda table: work(table), result)


def stretch(window: Sliding) -> int:
    """How long a stretch of time is that one task works on for a key."""
    windows = max(1024, 16 * (window.size // window.every + 1))
    return windows * window.every


def _stretches(time: Column, window: Sliding, length: int, after: int) -> tuple[Column, Column]:
    """The first and last stretch in which windows that hold a time start, or do so a little
    after."""
    last = time - F.pmod(time - F.lit(window.offset), F.lit(window.every))
    into = last + F.lit(window.size - 1) - time
    first = last - (into - F.pmod(into, F.lit(window.every)))

    def number(start: Column) -> Column:
        begin = start - F.pmod(start, F.lit(length))
        # a time that is null or beyond all is for the first task to report
        return F.coalesce((begin / F.lit(length)).cast("long"), F.lit(0).cast("long"))

    return number(first), number(last + F.lit(after))


def result_fields(plan: Plan, schema: StructType) -> StructType:
    """The columns of the result: keys, window, values."""
    query = plan.query
    time = schema[query.time].dataType
    edges = StructType([StructField("start", time), StructField("end", time)])
    fields = [StructField(k, schema[k].dataType) for k in query.by]
    fields.append(StructField("window", edges, nullable=False))
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
            windows = windows.where(windows.starts >= begins[windows.groups])
        groups = pa.array(windows.groups)
        columns: list[Any] = [k.take(groups) for k in keys]
        columns.append(window_struct(windows.starts, query.window.size, plan.time_type))
        columns += [windows.values[name] for name in query.select]
        made = pa.table(dict(zip(self._result.names, columns, strict=True)))
        return made.cast(arrow_schema(self._result))

    def _wanted(self, keys: list[pa.Array]) -> tuple[Array, Array]:
        """The first and last window that a stretch gives; for changes, the one before as well."""
        window = self._query.window
        begins = keys[-1].to_numpy(zero_copy_only=False) * self._length
        first = begins + (window.offset - begins) % window.every
        last = window.last_of(begins + self._length - 1)
        return (first - window.every if self._query.emit == "changes" else first), last


def window_struct(starts: Any, size: int, time: pa.DataType) -> pa.Array:
    """Windows as structs of start and end."""
    edges = [pa.array(starts), pa.array(starts + size)]
    if pa.types.is_timestamp(time):
        edges = [e.cast(pa.timestamp("us", time.tz)) for e in edges]
    return pa.StructArray.from_arrays(edges, names=["start", "end"])
