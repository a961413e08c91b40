"""A query over a streaming DataFrame.

    rows → packed by bucket (mapInArrow) → a bucket's batch (transformWithState) → results
    rows → Spark's own windows → results                                    slices="spark"

A result never changes once it is out; a revision of a window is a new row.  So the output mode is
append.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ..engine.bundles import bundle_alone
from ..engine.delays import BUCKETS
from ..engine.supported import Asked, check
from ..query.plan import Plan
from ..query.query import Query
from ..query.signatures import Mode
from ..windows import Aligned, Driven, Merging
from ..windows.contract import UTC
from .batch import Slices, is_usable
from .buckets import BUCKET, PAYLOAD, bucket_names, key_columns
from .combining import combinable
from .native import Native, native_groups
from .packer import Combines, Packer
from .processor import EACH, METRICS, Output, Processor, Work
from .results import kept_columns, result_fields
from .shipping import shipped
from .sink import BATCH
from .sliced import is_window, tumbled_stream
from .types import Carried, arrow_schema, carried, quoted, time_from

__all__ = [
    "STREAM_RESERVED",
    "aggregate_stream",
    "check_time",
    "combines",
    "delay_of",
    "has_watermark",
    "metrics",
    "named",
    "native_windows",
]

_LONG = LongType()
#: The key in a column's metadata for the delay of its watermark, in milliseconds.
_DELAY = "spark.watermarkDelayMs"
#: Column names that sash reserves in the results of a stream, besides those of all results.
STREAM_RESERVED = ("event_time", "late", BATCH)


def aggregate_stream(
    df: DataFrame,
    plan: Plan,
    *,
    mode: Mode,
    late: bool,
    buckets: int | None,
    name: str,
    trust: tuple[str, ...],
    slices: Slices,
) -> DataFrame:
    """The results of a query over a stream; with `late` also the rows that missed windows."""
    query, schema = plan.query, df.schema
    _check(df, plan, mode, late)
    if slices == "spark":
        return _by_spark(df, plan, mode=mode, late=late, name=name)
    # the columns that travel through the shuffle; a condition may read more columns before it
    travels = df.columns if isinstance(query.window, Driven) else list(query.columns)
    columns = df.columns if query.where is not None else travels
    # some parts of Spark refuse names with dots
    plain = [quoted(c).alias(f"column_{i}") for i, c in enumerate(columns)]
    called = bucket_names() if buckets is None else bucket_names(buckets)
    combining = combines(plan, slices, late=late)
    sized = isinstance(query.window, Aligned) and query.several
    bundle = bundle_alone(query) if sized else None
    packer = Packer(query, tuple(columns), tuple(travels), called, buckets, combining, bundle)
    packed = df.select(*plain).mapInArrow(shipped(packer), f"{BUCKET} int, {PAYLOAD} binary")
    shape = _Shape(plan, schema, tuple(travels), mode, late)
    fields = shape.travelling()
    made = arrow_schema(StructType(fields))
    output = Output(tuple(made.names), tuple(made.types), tuple(shape.kept), late)
    rows = arrow_schema(StructType([schema[name] for name in travels]))
    work = Work(query, rows, mode, buckets, output, trust, delay_of(df, query.time))
    processor = Processor(work)
    out = packed.groupBy(BUCKET).transformWithStateInPandas(
        statefulProcessor=processor,
        outputStructType=StructType(fields),
        outputMode="Append",
        timeMode="EventTime",
        eventTimeColumnName="event_time",
    )
    out = named(out, name, metrics()).where(F.col("metric").isNull())
    return out.select(*shape.columns())


def _by_spark(df: DataFrame, plan: Plan, *, mode: Mode, late: bool, name: str) -> DataFrame:
    """The results of a query by Spark's own windows.  sash never chooses this way by itself,
    because Spark drops late rows without counting them."""
    query, schema = plan.query, df.schema
    groups = native_windows(df, plan, mode=mode, late=late)
    rows = df.where(is_usable(quoted(query.time), schema[query.time].dataType))
    out = tumbled_stream(rows, plan, groups, result_fields(plan, schema))
    return named(out, name, [F.count(F.lit(1)).alias("rows_out")])


def native_windows(df: DataFrame, plan: Plan, *, mode: Mode, late: bool) -> list[list[Native]]:
    """The aggregates by which Spark's own windows make the results of a stream; each slice must be
    a window.  Raise if Spark cannot make them."""
    query = plan.query
    groups = native_groups(plan, {field.name: field.dataType for field in df.schema})
    if query.aligned.clock is not UTC:
        why = "the slices of a calendar are made by Python"
    elif not is_window(query.aligned) or query.emit != "all" or query.aligned.empty:
        why = "the slices of a stream are Spark's only where each is a window that is emitted"
    elif mode == "live" or late:
        why = "Spark has no revisions, and drops late rows"
    elif query.several:
        why = "its aggregates have several sizes"
    elif groups is None or plan.ordered or query.where is not None:
        why = "it has a condition, or an operator that Spark does not have"
    else:
        return groups
    raise ValueError(f"slices='spark' cannot be had for this query: {why}")


def combines(plan: Plan, slices: Slices, *, late: bool) -> Combines:
    """When tasks combine rows into slices before the shuffle.  With `late` they never do, because
    the result has the late rows themselves."""
    if not isinstance(plan.query.window, Aligned):
        return "never"
    possible = combinable(plan) and not late
    if slices == "python" and not possible:
        why = "late rows are wanted" if late else "an aggregate needs order, or Python objects"
        raise ValueError(f"slices='python' cannot be had for this query: {why}")
    if slices == "rows" or not possible:
        return "never"
    return "always" if slices == "python" else "auto"


def _check(df: DataFrame, plan: Plan, mode: str, late: bool) -> None:
    query = plan.query
    check("Spark stream", Asked(query, plan, mode, late=late))
    key_columns(query, df.schema)  # raises for a key that has a collation
    check_time(df, query)


def check_time(df: DataFrame, query: Query) -> None:
    """Refuse a stream without a watermark on the query's time."""
    if not isinstance(df.schema[query.time].dataType, TimestampType):
        raise TypeError(
            f"the time of a stream must be a timestamp, as Spark's watermarks are for those only; "
            f"{query.time!r} is {df.schema[query.time].dataType.simpleString()}"
        )
    if not has_watermark(df, query.time):
        raise ValueError(
            f"a stream needs a watermark, which says how late events may be: call "
            f"df.withWatermark({query.time!r}, '10 minutes') before sash.spark.aggregate"
        )


def has_watermark(df: DataFrame, time: str) -> bool:
    """True if a DataFrame has a watermark on a column."""
    return _DELAY in df.schema[time].metadata


def delay_of(df: DataFrame, time: str) -> int:
    """The delay of a column's watermark behind stream time, in microseconds."""
    return 1000 * int(df.schema[time].metadata[_DELAY])


@dataclass(frozen=True)
class _Shape:
    """The columns of a stream's output: those that the stateful operator returns, and those that
    the user sees.  `travels` are the columns of the rows that reach the operator."""

    plan: Plan
    schema: StructType
    travels: tuple[str, ...]
    mode: Mode
    late: bool

    @property
    def kept(self) -> list[str]:
        """The columns of events that the results contain."""
        return kept_columns(self.plan.query, list(self.travels))

    @property
    def withdraws(self) -> bool:
        """True if the stream may withdraw an emitted window, by a row marked `deleted`."""
        return self.mode == "live" and isinstance(self.plan.query.window, Merging)

    @property
    def _result(self) -> StructType:
        return result_fields(self.plan, StructType([self.schema[name] for name in self.travels]))

    def _carried(self, name: str) -> Carried:
        return carried(self.schema[name].dataType)

    def travelling(self) -> list[StructField]:
        """The columns that the operator returns."""
        result = self._result
        fields = [StructField("event_time", TimestampType())]
        fields += [StructField("start", _LONG), StructField("end", _LONG)]
        for i, name in enumerate(self.kept):
            fields.append(StructField(f"kept_{i}", self._carried(name).travels))
        for i, name in enumerate(self.plan.query.select):
            fields.append(StructField(f"value_{i}", carried(result[name].dataType).travels))
        if self.mode == "live":
            fields.append(StructField("revision", _LONG))
        if self.withdraws:
            fields.append(StructField("deleted", BooleanType()))
        if self.late:
            fields.append(StructField("reason", StringType()))
            fields.append(StructField("missed_start", _LONG))
            fields.append(StructField("missed_end", _LONG))
            for i, name in enumerate(self.travels):
                fields.append(StructField(f"late_{i}", self._carried(name).travels))
        fields += [StructField("metric", IntegerType()), StructField("amount", _LONG)]
        return fields

    def columns(self) -> list[Column]:
        """Cast the operator's columns to the types of the result."""
        query, result = self.plan.query, self._result
        columns = [
            self._carried(name).back(F.col(f"kept_{i}")).alias(name)
            for i, name in enumerate(self.kept)
        ]
        window = self._span("start", "end")
        if self.late:  # late rows have no window
            window = F.when(F.col("reason").isNull(), window)
        columns.append(window.alias("window", metadata=result["window"].metadata))
        columns += [
            carried(result[name].dataType).back(F.col(f"value_{i}")).alias(name)
            for i, name in enumerate(query.select)
        ]
        if self.mode == "live":
            columns.append(F.col("revision"))
        if self.withdraws:
            columns.append(F.col("deleted"))
        columns.append(F.col("event_time"))
        if self.late:
            row = [
                self._carried(name).back(F.col(f"late_{i}")).alias(name)
                for i, name in enumerate(self.travels)
            ]
            missed = self._span("missed_start", "missed_end")
            about = F.struct(
                F.col("reason"),
                F.when(F.col("missed_start").isNotNull(), missed).alias("missed"),
                F.struct(*row).alias("row"),
            )
            columns.append(F.when(F.col("reason").isNotNull(), about).alias("late"))
        return columns

    def _span(self, start: str, end: str) -> Column:
        time = self.schema[self.plan.query.time].dataType
        edges = zip((start, end), ("start", "end"), strict=True)
        return F.struct(*(time_from(F.col(column), time).alias(name) for column, name in edges))


def named(df: DataFrame, name: str, metrics: list[Column]) -> DataFrame:
    """Observe metrics under a name that is unique in the Spark query."""
    try:
        observed = df.observe(name, *metrics)
        _ = observed.schema  # Spark Connect analyses a query only now
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise ValueError(
            f"another result in this query has its metrics under the name {name!r} already; give "
            "this one a name of its own: sash.spark.aggregate(…, name='hours')"
        ) from None
    return observed


def metrics(queries: int = 0) -> list[Column]:
    """The metrics of a micro-batch, computed from the metrics of its buckets.  If there are several
    `queries`, the column `queries` has each query's own metrics."""

    def amount(i: int) -> Column:
        return F.when(F.col("metric") == F.lit(i), F.col("amount"))

    def total(i: int) -> Column:
        # if no bucket has anything to do in a micro-batch, there is nothing to sum
        return F.coalesce(F.sum(amount(i)), F.lit(0))

    made = [
        (F.max(amount(i)) if name == "watermark" else total(i)).alias(name)
        for i, name in enumerate(METRICS)
    ]
    made.append(_lateness().alias("lateness"))
    if queries:
        behind = len(METRICS) + BUCKETS + 1
        own = [
            F.struct(*(total(behind + at * len(EACH) + i).alias(n) for i, n in enumerate(EACH)))
            for at in range(queries)
        ]
        made.append(F.array(*own).alias("queries"))
    return made


def _lateness() -> Column:
    """The histogram of lateness, computed by one aggregate.  One sum for each place of the
    histogram took 0.17 µs per row, because Spark calls each aggregate for every output row."""
    place = F.col("metric") - F.lit(len(METRICS))
    here = place.between(0, BUCKETS)
    came = F.collect_list(F.when(here, F.struct(place.alias("place"), "amount")))
    none = F.array_repeat(F.lit(0).cast("long"), BUCKETS + 1)

    def added(counts: Column, one: Column) -> Column:
        return F.transform(
            counts,
            lambda count, i: count + F.when(i == one["place"], one["amount"]).otherwise(0),
        )

    return F.aggregate(came, none, added)
