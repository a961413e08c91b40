"""A query over a DataFrame that is no stream, with windows that depend on events.

Rows go to tasks by their key, and a task does a `Query.run` on each portion of its keys.  A window
of a span of time (`trailing`) needs a key's rows of that span alone, so a long stream of one key is
cut into stretches of time, which go to tasks of their own: each has the rows that its own rows'
windows hold from the stretch before as well, and answers for its own.

    stretches    |----------- 1 -----------|----------- 2 -----------|
    of 2                             [rows held][ own rows           ]

If one key has too many rows for a task, sessions are cut at gaps: see `split_sessions`.  Other
windows depend on all earlier events of a key, so all rows of a key go to one task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..engine.driven import driven_results
from ..engine.failures import noting_failure
from ..engine.sessions import session_results, tick_results
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..tables.arrow import one_array, times_of
from ..windows import Driven, Ticked, Trailing
from ..windows.contract import LATEST, Count, Span
from .arithmetic import SPARK, in_range
from .buckets import for_batch, key_columns, sent_by
from .portions import EVENTS, InPortions, Portions
from .results import as_results, result_fields
from .shipping import shipped
from .split_sessions import has_hot_key, sessions_at_gaps, splits
from .types import micros, quoted

__all__ = ["Stretches", "aggregate_by_events"]

_STRETCH = "__sash_stretch"
_LEAST = 60_000_000  # microseconds in a stretch
_TIMES = 16  # as long as the windows, so that few rows are in windows of two stretches


@dataclass(frozen=True)
class Stretches:
    """Cuts time into stretches so long that few rows go to two stretches; or one for all time."""

    length: int | None  # in microseconds; None for one stretch
    older: int  # how much older than an event the oldest rows in its window may be

    @classmethod
    def of(cls, query: Query) -> Stretches:
        window = query.window
        if query.several:
            assert isinstance(window, Trailing)
            lasting = None in query.sizes.values()
            window = window.of_length(
                None if lasting else max(size for size in query.sizes.values() if size)
            )
        if isinstance(window, Driven) and isinstance(window.keeps, Span):
            older = window.keeps.older
            if older is not None and window.fires == Count(1):
                length = max(_TIMES * older, _LEAST)
                if length < LATEST:
                    return cls(length, older)
        return cls(None, 0)

    @property
    def whole(self) -> bool:
        """True if all rows of a key are in one stretch."""
        return self.length is None

    def at(self, time: Column) -> Column:
        """The stretches that need a row: its own, and the next one if a window there holds it."""
        none = F.lit(0).cast("long")  # an unusable time goes to stretch 0, whose task raises
        if self.length is None:
            return none
        usable = F.when(in_range(time), time)
        first = F.coalesce(SPARK.div(usable, self.length), none)
        last = F.coalesce(SPARK.div(usable + F.lit(self.older), self.length), none)
        return F.explode(F.sequence(first, last))

    def own_of(self, time: Column) -> Column:
        """The stretch of a time."""
        none = F.lit(0).cast("long")
        if self.length is None:
            return none
        return F.coalesce(SPARK.div(F.when(in_range(time), time), self.length), none)

    def own(self, times: Array, stretches: Array) -> Array | None:
        """Mark the rows that are in their own stretch; None if all are."""
        if self.length is None:
            return None
        found: Array = times // self.length == stretches
        return found


def aggregate_by_events(df: DataFrame, plan: Plan, tasks: int | None) -> DataFrame:
    """The results over all rows of a DataFrame, made by so many tasks; if no number is given, by as
    many as Spark sees fit."""
    query, schema = plan.query, df.schema
    if splits(query) and has_hot_key(df, query, for_batch(df, tasks)):
        return sessions_at_gaps(df, plan, tasks)
    every = isinstance(query.window, Driven) or query.where is not None
    names = df.columns if every else list(query.columns)
    stretches = Stretches.of(query)
    time = micros(quoted(query.time), schema[query.time].dataType)
    # some parts of Spark refuse names with dots
    plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
    tagged = df.select(*[quoted(n) for n in names], stretches.at(time).alias(_STRETCH))
    sent = sent_by(tagged, [*key_columns(query, schema), F.col(_STRETCH)], tasks)
    result = result_fields(plan, schema)
    work = task_of(query, names, stretches, result)
    return sent.select(*plain, _STRETCH).mapInArrow(shipped(work), result)


def task_of(query: Query, names: list[str], stretches: Stretches, result: StructType) -> InPortions:
    """What a task does with its rows, which have columns of these names, and their stretch."""
    places = [*(names.index(key) for key in query.by), len(names)]
    work = _Work(query, [*names, _STRETCH], stretches, result)
    return InPortions(Portions(places, EVENTS, 0), work)


class _Work:
    """What a task does with a portion."""

    def __init__(
        self, query: Query, names: list[str], stretches: Stretches, result: StructType
    ) -> None:
        self._query = query
        self._names = names
        self._stretches = stretches
        self._result = result

    def __call__(self, table: pa.Table) -> pa.Table:
        query, result = self._query, self._result
        table = table.rename_columns(self._names)
        if isinstance(query.window, Driven):
            plan = make_plan(query, table.schema, extra=(_STRETCH,), by_sizes=True)
            with noting_failure(plan, table):
                made = driven_results(plan, table)
            made = self._own(made)
        else:
            plan = make_plan(query, table.schema)
            ticked = isinstance(query.window, Ticked)
            with noting_failure(plan, table):
                made = tick_results(plan, table) if ticked else session_results(plan, table)
        return as_results(made, result)

    def _own(self, made: pa.Table) -> pa.Table:
        """The results for the stretch's own rows."""
        times = times_of(one_array(made.column(self._query.time)))[0]
        own = self._stretches.own(times, np.asarray(made.column(_STRETCH)))
        return made if own is None else made.filter(pa.array(own))
