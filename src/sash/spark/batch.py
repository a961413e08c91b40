"""A query over a DataFrame that is no stream.

There are four ways, and all return the same rows:

    spark     Spark makes the slices, if it has the operators; Python makes windows from slices
    python    Python makes the slices before the shuffle, if the operators commute
    rows      rows go to Python, if order matters, or if a slice has hardly more than one row
    tumbled   like "spark", but each slice is a window, so that Python has nothing to do

Spark sends rows, or slices, to tasks by a hash of their key, and a task answers all its keys at
once: Spark makes no groups of keys, and sorts nothing.  But one key with a long history would still
be the work of one task.  So sash cuts windows, by their numbers, into stretches of many windows,
and different tasks answer different stretches of a key.  Rows and slices that are in windows of two
stretches go to both, so that each stretch is answered without the other.  These are few, as a
stretch has at least 16 times as many windows as hold one event.  If the query asks for empty
windows, a key's windows depend on all its events, so each key has only one stretch.

A task goes through its keys in portions (`portions`), so that it holds a bounded number of rows and
of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from ..engine.failures import noting_failure
from ..engine.run import compute
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..state.scan import unlimited
from ..windows import Aligned
from ..windows.contract import UTC, Clock
from .arithmetic import SPARK, in_range
from .buckets import key_columns, sent_by
from .combining import COMBINED, combinable, combined
from .native import Native, native_groups
from .portions import AT_ONCE, Portions, windows_held
from .results import result_fields, result_table
from .shipping import shipped
from .sliced import SliceWork, WordWork, is_window, rows_in_slices, sliced, tumbled
from .types import micros, normal, quoted

__all__ = ["Slices", "Stretches", "Way", "aggregate_batch", "is_usable", "way_for"]

_STRETCH = "__sash_stretch"
_ALL = 0  # the length of a stretch that has all windows
_FEW = 3.0  # rows of a slice, below which it is not worth its making

#: Who makes slices before the shuffle: Spark, Python, or nobody (`rows`).
Slices: TypeAlias = Literal["auto", "spark", "python", "rows"]


@dataclass(frozen=True)
class Way:
    """How a query runs over a table, and why."""

    name: Literal["tumbled", "spark", "python", "rows"]
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def way_for(df: DataFrame, plan: Plan, slices: Slices = "auto") -> Way:
    """Choose the way of a query over a table.  Where that depends on the data, read a sample of the
    table to find out whether slices are worth their cost."""
    return _way(df, plan, slices, _natives(df, plan) is not None)


def _way(df: DataFrame, plan: Plan, slices: Slices, native: bool) -> Way:
    """Choose the way; `native` is true if Spark can make the slices."""
    query = plan.query
    if plan.ordered:
        found = Way("rows", "the order of events matters to an aggregate")
    elif not combinable(plan):
        found = Way("rows", "an aggregate has partials that are Python objects, or large")
    elif native and is_window(query.aligned) and query.emit == "all" and not query.aligned.empty:
        found = Way("tumbled", "Spark has all of the operators, and a slice is a window")
    else:
        name: Literal["spark", "python"] = "spark" if native else "python"
        why = "Spark has all of the operators" if native else "the operators commute"
        found = Way(name, why)
    if slices == "rows":
        return Way("rows", "rows were asked for")
    if slices == "python" and found.name in ("tumbled", "spark"):
        return Way("python", "slices by Python were asked for")
    if slices != "auto" and {"tumbled": "spark"}.get(found.name, found.name) != slices:
        why = found.why if found.name == "rows" else _not_by_spark(query)
        raise ValueError(f"slices={slices!r} cannot be had for this query: {why}")
    if slices == "auto" and found.name in ("spark", "python"):
        rows = rows_in_slices(df, query, _FEW, COMBINED if found.name == "python" else None)
        if rows < _FEW:
            return Way("rows", f"a slice has {rows:.1f} rows of a sample")
        return Way(found.name, f"{found.why}, and a slice has {rows:.1f} rows of a sample")
    return found


def _not_by_spark(query: Query) -> str:
    """Why Spark cannot make the slices of a query, where Python can."""
    if query.where is not None:
        return "it has a condition"
    if query.aligned.clock is not UTC:
        return "the slices of a calendar are made by Python"
    return "Spark lacks one of the operators, for the type of its column, or one of the conditions"


def _natives(df: DataFrame, plan: Plan) -> list[list[Native]] | None:
    """The aggregates by which Spark makes slices, or None if it cannot make them.  Spark must have
    the operators, and an expression for the slice of a time.  For calendars it has none, as its
    time zone rules may be older or newer than Python's."""
    query = plan.query
    if query.where is not None or query.aligned.clock is not UTC:
        return None
    return native_groups(plan, {field.name: field.dataType for field in df.schema})


def aggregate_batch(df: DataFrame, plan: Plan, tasks: int | None, slices: Slices) -> DataFrame:
    """The results over all rows of a DataFrame, computed by so many tasks; if `tasks` is None,
    Spark chooses the number."""
    query = plan.query
    natives = _natives(df, plan)
    way = _way(df, plan, slices, natives is not None).name
    groups = natives or []
    result = result_fields(plan, df.schema)
    if way == "tumbled":
        return tumbled(df, plan, groups, result)
    stretches = Stretches.of(query)
    if way == "rows":
        return _by_rows(df, plan, tasks, stretches, result)
    made = sliced(df, plan, groups) if way == "spark" else combined(df, plan)
    columns = [*made.columns, _STRETCH]
    keys = [normal(F.col(f"key_{i}"), df.schema[k].dataType, k) for i, k in enumerate(query.by)]
    tagged = made.select("*", stretches.at(F.col("time")).alias(_STRETCH))
    inner = (
        SliceWork(query, plan.schema, groups, columns)
        if way == "spark"
        else WordWork(query, plan.schema, columns)
    )
    work = _Work(inner.windows, [*range(len(keys)), len(columns) - 1], stretches, result)
    return sent_by(tagged, [*keys, F.col(_STRETCH)], tasks).mapInArrow(shipped(work), result)


def _by_rows(
    df: DataFrame, plan: Plan, tasks: int | None, stretches: Stretches, result: StructType
) -> DataFrame:
    query, schema = plan.query, df.schema
    time = micros(quoted(query.time), schema[query.time].dataType)
    names = df.columns if query.where is not None else list(query.columns)
    tagged = df.select(*[quoted(n) for n in names], stretches.at(time).alias(_STRETCH))
    # some parts of Spark refuse names with dots
    plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
    sent = sent_by(tagged, [*key_columns(query, schema), F.col(_STRETCH)], tasks)
    sent = sent.select(*plain, _STRETCH)
    places = [*(names.index(key) for key in query.by), len(names)]
    work = _Work(_RowWork(query, [*names, _STRETCH]).windows, places, stretches, result)
    return sent.mapInArrow(shipped(work), result)


@dataclass(frozen=True)
class Stretches:
    """Cuts windows into stretches of `length` windows each."""

    window: Aligned
    length: int
    held: int  # the number of windows that hold one time
    several: bool  # True if a time may belong to several stretches
    before: int  # 1 if a stretch also reads the window before it, to find changes; else 0

    @classmethod
    def of(cls, query: Query) -> Stretches:
        window = query.aligned
        held = windows_held(window)
        if window.empty:
            return cls(window, _ALL, held, False, 0)
        before = 1 if query.emit == "changes" else 0
        several = held > 1 or before > 0 or window.clock is not UTC
        return cls(window, max(1024, 16 * (held + 1)), held, several, before)

    @property
    def whole(self) -> bool:
        """True if a key has one stretch with all its rows."""
        return self.length == _ALL

    def at(self, time: Column) -> Column:
        """The stretches that read windows with this time: one row for each.  For the clock of a
        calendar there may be one stretch more than needed."""
        if self.whole:
            return F.lit(0).cast("long")
        cycle, clock = self.window.cycle, self.window.clock
        low, high = clock.around(F.when(in_range(time, clock), time), SPARK)
        first, last = cycle.among(low, high, SPARK)
        last = last + F.lit(self.before)
        # a time that is null or out of range goes to stretch 0, whose task raises
        none = F.lit(0).cast("long")
        end = F.coalesce(SPARK.div(last, self.length), none)
        if not self.several:
            return end
        return F.explode(F.sequence(F.coalesce(SPARK.div(first, self.length), none), end))

    def wanted(self, keys: list[pa.Array]) -> tuple[Array, Array]:
        """For each key, whose last column is the stretch: the first and the last window that the
        stretch reads."""
        if self.whole:
            return unlimited(len(keys[-1]))
        begins = self.begins(keys)
        return begins - self.before, begins + self.length - 1

    def begins(self, keys: list[pa.Array]) -> Array:
        """For each key, whose last column is the stretch: the first window that the stretch
        answers."""
        begins: Array = keys[-1].to_numpy(zero_copy_only=False) * self.length
        return begins


def is_usable(time: Column, given: DataType, clock: Clock = UTC) -> Column:
    """A condition for Spark: true if a row's time is not null and in range."""
    return F.coalesce(in_range(micros(time, given), clock), F.lit(False))


class _Work:
    """The work of a task: turn rows or slices into windows, in one of the ways, and return them as
    rows of the result.  `places` are the places of the key columns and of the stretch column."""

    def __init__(
        self,
        windows: Callable[..., Any],
        places: list[int],
        stretches: Stretches,
        result: StructType,
    ) -> None:
        self._windows = windows
        self._portions = Portions(places, stretches.held, stretches.length)
        self._stretches = stretches
        self._result = result

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stretches = self._stretches
        for table in self._portions.of(batches):
            plan, keys, windows = self._windows(table, _STRETCH, stretches.wanted)
            if stretches.before:
                windows = windows.where(windows.numbers >= stretches.begins(keys)[windows.groups])
            made = result_table(plan, keys[:-1], windows, self._result)
            yield from made.to_batches(max_chunksize=AT_ONCE)


class _RowWork:
    """Computes windows from rows."""

    def __init__(self, query: Query, names: list[str]) -> None:
        self._query = query
        self._names = names

    def windows(self, table: pa.Table, extra: str, wanted: Any) -> Any:
        """Return the plan, the keys with the column `extra` last, and their windows."""
        table = table.rename_columns(self._names)
        plan = make_plan(self._query, table.schema, extra=(extra,), whole=True)
        with noting_failure(plan, table):
            return plan, *compute(plan, table, wanted)
