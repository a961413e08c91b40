"""The values of a query as of given moments, over DataFrames that are no streams.

One shuffle (`cogroup`) brings the events and the questions of a bucket of keys to one task, which
answers them as `Query.at` does in one process.  The long history of a key is cut into stretches of
time (`by_events`): a question goes to its own stretch, and an event goes to each stretch whose
questions may need it.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..engine.as_of import check_window, values_at
from ..engine.results import with_types
from ..engine.supported import Asked, check
from ..query.names import did_you_mean
from ..query.plan import make_plan
from ..query.query import Query
from ..tables.arrow import kind_name
from .buckets import bucket_of, check_buckets, for_batch, key_columns
from .by_events import Stretches
from .frames import schema_for
from .names import check_result_names, is_case_sensitive, with_names
from .results import value_fields
from .shipping import shipped
from .types import arrow_schema, micros, quoted

__all__ = ["at"]

_STRETCH, _BUCKET = "__sash_stretch", "__sash_bucket"


def at(
    events: DataFrame,
    questions: DataFrame,
    query: Query,
    *,
    time: str,
    known: str | None = None,
    buckets: int | None = None,
) -> DataFrame:
    """The values of a query at moments of your choice: the rows of `questions`, each with the
    values for its key as of its time, which is in the column `time`.

    It is `Query.at` on Spark: the query's window is `trailing` or `lifetime`, of one size or of
    several (`Aggregate.over`).  With `known`, a column of the events that says when each became
    known, only events that were known by a question's time count.
    """
    for df in (events, questions):
        if not isinstance(df, DataFrame):
            raise TypeError(f"sash.spark.at takes Spark DataFrames, not {kind_name(df)}")
        if df.isStreaming:
            raise ValueError("sash.spark.at is for tables, and one of these is a stream")
    if not isinstance(query, Query):
        raise TypeError(f"at takes a sash.Query, not {query!r}")
    check_buckets(buckets)
    check_window(query)
    sensitive = is_case_sensitive(events)
    read = [*query.columns, *([known] if known else [])]
    events = with_names(events, read, sensitive=sensitive)
    questions = with_names(questions, [*query.by, time], sensitive=sensitive)
    check_result_names([*questions.columns, *query.select], (), sensitive=sensitive)
    for name, df in ((time, questions), *((k, questions) for k in query.by)):
        if name not in df.columns:
            have = ", ".join(df.columns) or "none"
            meant = did_you_mean(name, df.columns)
            raise KeyError(f"the questions have no column {name!r}; they have: {have}{meant}")
    if known and known not in events.columns:
        raise KeyError(f"the events have no column {known!r}, which says when each became known")
    plan = with_types(make_plan(query, schema_for(events, query)))
    check("Spark batch", Asked(query, plan))
    stretches = Stretches.of(query)
    result = StructType([*questions.schema.fields, *value_fields(plan)])
    many = for_batch(events, buckets)

    def grouped(df: DataFrame, names: list[str], when: str, *, asks: bool) -> object:
        moment = micros(quoted(when), df.schema[when].dataType)
        stretch = stretches.own_of(moment) if asks else stretches.at(moment)
        tagged = df.select(*[quoted(n) for n in names], stretch.alias(_STRETCH))
        bucket = bucket_of([*key_columns(query, df.schema), F.col(_STRETCH)], many)
        plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
        return tagged.select(*plain, _STRETCH, bucket.alias(_BUCKET)).groupBy(_BUCKET)

    for key in query.by:  # equal keys have the same hash only if they have the same type
        wanted = events.schema[key].dataType
        if questions.schema[key].dataType != wanted:
            kept = questions.schema[key].dataType
            raise TypeError(
                f"the key {key!r} is {wanted.simpleString()} in the events and "
                f"{kept.simpleString()} in the questions; cast one of them"
            )
    names = events.columns if query.where is not None else list(dict.fromkeys(read))
    left = grouped(events, names, query.time, asks=False)
    right = grouped(questions, questions.columns, time, asks=True)
    work = _Work(query, names, questions.columns, time, known, result)
    sent = shipped(work)
    made = left.cogroup(right)  # type: ignore[attr-defined]
    found: DataFrame = made.applyInArrow(lambda a, b: sent((a, b)), result)
    return found


class _Work:
    """The work of a task: answer the questions of a bucket."""

    def __init__(
        self,
        query: Query,
        names: list[str],
        asked: list[str],
        time: str,
        known: str | None,
        result: StructType,
    ) -> None:
        self._query = dataclasses.replace(query, by=[*query.by, _STRETCH])
        self._names, self._asked = [[*some, _STRETCH, _BUCKET] for some in (names, asked)]
        self._time, self._known = time, known
        self._result = result

    def __call__(self, tables: tuple[pa.Table, pa.Table]) -> pa.Table:
        events = tables[0].rename_columns(self._names)
        questions = tables[1].rename_columns(self._asked)
        values = values_at(self._query, events, questions, self._time, self._known)
        made = questions.drop_columns([_STRETCH, _BUCKET])
        for name, column in values.items():
            made = made.append_column(name, column)
        return made.cast(arrow_schema(self._result))
