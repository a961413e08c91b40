"""A query over a table whose slices Spark makes.

rows → Spark: one row for each key and slice, with the partials' words in columns
     → if each slice is a window: answers by Spark's expressions, and no Python at all
     → else: to tasks, by keys and stretches → Python: windows from slices
"""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..engine.run import compute_from_slices
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import cuts_of
from ..tables.arrow import one_array
from ..windows import Aligned
from ..windows.contract import UTC
from .arithmetic import SPARK, in_range
from .combining import partials_from
from .native import Native, Words, answers_of, partials_of
from .sampling import PLACE, TIME, rows_per_slice
from .types import micros, quoted, time_from

__all__ = [
    "SliceWork",
    "WordWork",
    "is_window",
    "rows_in_slices",
    "sliced",
    "tumbled",
    "tumbled_stream",
]

_TIME, _SLICE, _AT = "time", "slice", "__sash_at"


def is_window(window: Aligned) -> bool:
    """True if each slice is one window, on the UTC clock, so that Spark can make the windows."""
    cycle, utc = window.cycle, window.clock is UTC
    return utc and cycle.windows == 1 and cycle.longest == cycle.length


def sliced(df: DataFrame, plan: Plan, groups: list[list[Native]]) -> DataFrame:
    """One row for each key and slice, for Python: the keys as `key_0`, …, a time in the slice, and
    the columns from which Python makes partials as `word_0`, …

    Each column costs time in the second shuffle and on the way to Python, so there are only those
    that Python reads."""
    query = plan.query
    keys = [F.col(f"key_{i}") for i in range(len(query.by))]
    natives = [native for natives in groups for native in natives]
    sent = [
        column
        for native, columns in zip(natives, _columns_of(natives), strict=True)
        for column in native.sent(columns)
    ]
    words = [column.alias(f"word_{i}") for i, column in enumerate(sent)]
    return _by_slice(df, plan, groups).select(*keys, _time_in(query).alias(_TIME), *words)


def _by_slice(df: DataFrame, plan: Plan, groups: list[list[Native]]) -> DataFrame:
    """One row for each key and slice: the keys as `key_0`, …, the number of the slice, and the
    aggregates of each leaf as `word_0`, …"""
    query = plan.query
    number = _number(query, F.col(_AT))
    keys = [quoted(k).alias(f"key_{i}") for i, k in enumerate(query.by)]
    return _with_time(df, query).groupBy(*keys, number.alias(_SLICE)).agg(*_words(groups))


def _time_in(query: Query) -> Column:
    """A time in a slice, found by the slice's number: its start, or the first time in the clock's
    range."""
    low, _ = query.aligned.clock.limits
    start = cuts_of(query.aligned).time(F.col(_SLICE), SPARK)
    return F.greatest(start, F.lit(low + 1))


def _columns_of(natives: list[Native]) -> list[list[Column]]:
    """For each leaf, the columns of its aggregates."""
    made, at = [], 0
    for native in natives:
        made.append([F.col(f"word_{at + j}") for j in range(len(native.aggregates))])
        at += len(native.aggregates)
    return made


def _with_time(df: DataFrame, query: Query) -> DataFrame:
    """The columns that the query reads, and the time in microseconds."""
    at = micros(quoted(query.time), df.schema[query.time].dataType)
    return df.select(*[quoted(n) for n in dict.fromkeys(query.columns)], at.alias(_AT))


def _number(query: Query, time: Column) -> Column:
    """The number of a time's slice; the expression raises if the time is null or out of range."""
    bad = F.raise_error(
        F.concat(
            F.lit(f"a row cannot be used: its time, in column {query.time!r}, is "),
            F.coalesce(F.concat(time.cast("string"), F.lit(", out of range")), F.lit("null")),
            F.lit("; leave such rows out, or give bad='drop'"),
        )
    ).cast("long")
    return F.coalesce(_usable_number(query, time), bad)


def _usable_number(query: Query, time: Column) -> Column:
    """The number of a time's slice; null if the time is null or out of range, as arithmetic with it
    might overflow.  With the clock of a calendar, it is the number of a slice close by."""
    clock = query.aligned.clock
    shown, _ = clock.around(F.when(in_range(time, clock), time), SPARK)
    return cast(Column, cuts_of(query.aligned).number(shown, SPARK))


def rows_in_slices(df: DataFrame, query: Query, enough: float, at_once: int | None = None) -> float:
    """The average number of rows of a slice that a task meets (`sampling.rows_per_slice`)."""
    place = F.xxhash64(*[quoted(k) for k in query.by], _usable_number(query, F.col(_AT)))
    rows = _with_time(df, query).select(place.alias(PLACE), F.col(_AT).alias(TIME))
    return rows_per_slice(rows, enough, at_once)


def tumbled(df: DataFrame, plan: Plan, groups: list[list[Native]], result: StructType) -> DataFrame:
    """The results of a query whose slices are windows: Spark computes everything."""
    query, cycle = plan.query, plan.query.aligned.cycle
    made = _by_slice(df, plan, groups)
    time = df.schema[query.time].dataType
    number = F.col(_SLICE)
    edges = [
        time_from(edge, time).alias(name)
        for name, edge in (
            ("start", cycle.start(number, SPARK)),
            ("end", cycle.end(number, SPARK)),
        )
    ]
    return made.select(*_results(plan, groups, result, F.struct(*edges)))


def tumbled_stream(
    df: DataFrame, plan: Plan, groups: list[list[Native]], result: StructType
) -> DataFrame:
    """Like `tumbled`, for a stream: with Spark's own windows, and the column `event_time`."""
    query, cycle = plan.query, plan.query.aligned.cycle
    size = f"{cycle.length} microseconds"
    offset = f"{cycle.start(0) % cycle.length} microseconds"
    keys = [quoted(k).alias(f"key_{i}") for i, k in enumerate(query.by)]
    window = F.window(quoted(query.time), size, startTime=offset)
    made = df.groupBy(*keys, window.alias("window")).agg(*_words(groups))
    edges = F.struct(F.col("window.start"), F.col("window.end"))
    fields = _results(plan, groups, result, edges, lacking=True)
    return made.select(*fields, F.window_time("window").alias("event_time"))


def _words(groups: list[list[Native]]) -> list[Column]:
    """The aggregates of each leaf as `word_0`, …"""
    aggregates = [a for natives in groups for native in natives for a in native.aggregates]
    return [a.alias(f"word_{i}") for i, a in enumerate(aggregates)]


def _results(
    plan: Plan,
    groups: list[list[Native]],
    result: StructType,
    window: Column,
    *,
    lacking: bool = False,
) -> list[Column]:
    """The columns of the result, computed from `key_0`, … and `word_0`, …"""
    query = plan.query
    columns: dict[str, Column] = {k: F.col(f"key_{i}") for i, k in enumerate(query.by)}
    columns["window"] = window
    held = iter(_columns_of([native for natives in groups for native in natives]))
    for group, natives in zip(plan.groups, groups, strict=True):
        leaves = [next(held) for _ in natives]
        found = answers_of(group, natives, leaves, lacking=lacking)
        columns |= zip(group.names, found, strict=True)
    fields = []
    for field in result.fields:
        column = columns[field.name]
        if field.name in query.select:
            wanted = field.dataType
            column = (
                time_from(column, wanted) if _is_time(plan, field.name) else column.cast(wanted)
            )
        fields.append(column.alias(field.name, metadata=field.metadata))
    return fields


def _is_time(plan: Plan, name: str) -> bool:
    """True if an aggregate's answers are times."""
    kind = plan.types[name]
    return kind is not None and pa.types.is_timestamp(kind)


class SliceWork:
    """Computes windows from slices that Spark made."""

    def __init__(
        self, query: Query, schema: pa.Schema, groups: list[list[Native]], columns: list[str]
    ) -> None:
        self._query = query
        self._schema = schema
        self._groups: list[list[tuple[int, Words]]] = [
            [(native.width, native.words) for native in natives] for natives in groups
        ]
        self._columns = columns

    def windows(self, table: pa.Table, extra: str, wanted: Any) -> Any:
        """Return the plan, the keys with the column `extra` last, and their windows."""
        table = table.rename_columns(self._columns)
        partials, at = [], 0
        for leaves in self._groups:
            count = sum(n for n, _ in leaves)
            columns = [one_array(table.column(f"word_{at + j}")) for j in range(count)]
            partials.append(partials_of(leaves, columns))
            at += count
        plan = make_plan(self._query, self._schema)
        return _windows(plan, table, partials, extra, wanted)


class WordWork:
    """Computes windows from slices that Python made (`combining.combined`)."""

    def __init__(self, query: Query, schema: pa.Schema, columns: list[str]) -> None:
        self._query = query
        self._schema = schema
        self._columns = columns

    def windows(self, table: pa.Table, extra: str, wanted: Any) -> Any:
        """Return the plan, the keys with the column `extra` last, and their windows."""
        table = table.rename_columns(self._columns)
        plan = make_plan(self._query, self._schema)
        partials = [
            partials_from(group.operator, one_array(table.column(f"partials_{i}")))
            for i, group in enumerate(plan.groups)
        ]
        return _windows(plan, table, partials, extra, wanted)


def _windows(plan: Plan, table: pa.Table, partials: list[Any], extra: str, wanted: Any) -> Any:
    names = [*(f"key_{i}" for i in range(len(plan.query.by))), extra]
    keys = [one_array(table.column(name)) for name in names]
    times = one_array(table.column(_TIME)).to_numpy(zero_copy_only=False)
    return plan, *compute_from_slices(plan, keys, times, partials, wanted)
