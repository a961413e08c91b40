"""Several queries over a streaming DataFrame, in one stateful operator.

    rows → packed by lane and bucket (mapInArrow) → a bucket's batch (transformWithState) → results

The results of all queries travel in the same columns; after the operator, Spark puts them into one
struct for each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ..engine.bundles import Bundle, same_condition, shared_plan
from ..query.plan import Plan
from ..query.query import Query
from ..query.signatures import Mode
from ..windows import Driven, Merging
from .batch import Slices
from .buckets import BUCKET, PAYLOAD, bucket_names, key_columns
from .packer import Combines, Packer, SharedPacker
from .processor import Lane, Processor, SharedOutput, SharedWork
from .results import kept_columns, result_fields
from .shared_batch import QUERY
from .shipping import shipped
from .streaming import check_time, combines, delay_of, metrics, named
from .types import Carried, arrow_schema, carried, quoted, time_from

__all__ = ["aggregate_shared_stream"]

_LONG = LongType()
#: With up to so many queries, each query has its own metrics; Spark computes a sum for each metric.
_TOLD = 32


def aggregate_shared_stream(
    df: DataFrame,
    plans: Mapping[str, Plan],
    *,
    mode: Mode,
    late: bool,
    buckets: int | None,
    name: str,
    trust: tuple[str, ...],
    slices: Slices,
) -> DataFrame:
    """The results of several queries over a stream; with `late` also the rows that missed
    windows."""
    queries = {name: plan.query for name, plan in plans.items()}
    schema = df.schema
    for query in queries.values():
        check_time(df, query)
        key_columns(query, schema)  # raises for a key that has a collation
    lanes = _lanes(queries, df.columns, late=late)
    travels = list(dict.fromkeys(column for lane in lanes for column in lane.travels))
    any_where = any(query.where is not None for query in queries.values())
    columns = df.columns if any_where else travels
    plain = [quoted(c).alias(f"column_{i}") for i, c in enumerate(columns)]
    called = bucket_names() if buckets is None else bucket_names(buckets)
    # a checkpoint numbers its bundles by the order of names, whatever the order of the dict
    bundles = shared_plan(dict(sorted(queries.items()))).bundles
    packers = []
    for lane in lanes:
        combining, bundle = _combines(lane, bundles, plans, slices, late=late)
        query = queries[lane.names[0]]
        given = query, tuple(columns), lane.travels, called, buckets, combining, bundle
        packers.append(Packer(*given))
    packed = df.select(*plain).mapInArrow(
        shipped(SharedPacker(tuple(packers))), f"{BUCKET} int, {PAYLOAD} binary"
    )
    shape = _Shape(plans, schema, tuple(travels), lanes, mode, late)
    fields = shape.travelling()
    made = arrow_schema(StructType(fields))
    output = SharedOutput(tuple(made.names), tuple(made.types), shape.slots, shape.kept, late)
    first = next(iter(queries.values()))
    work = SharedWork(
        queries,
        tuple(bundle.names for bundle in bundles),
        lanes,
        arrow_schema(StructType([schema[column] for column in travels])),
        mode,
        buckets,
        output,
        trust,
        delay_of(df, first.time),
    )
    out = packed.groupBy(BUCKET).transformWithStateInPandas(
        statefulProcessor=Processor(work),
        outputStructType=StructType(fields),
        outputMode="Append",
        timeMode="EventTime",
        eventTimeColumnName="event_time",
    )
    told = metrics(len(queries) if len(queries) <= _TOLD else 0)
    out = named(out, name, told).where(F.col("metric").isNull())
    return out.select(*shape.columns())


def _lanes(queries: Mapping[str, Query], columns: list[str], *, late: bool) -> tuple[Lane, ...]:
    """Group the queries whose rows travel together into lanes, with the columns of the rows.  With
    `late`, the rows of all lanes have the columns of all queries."""
    together: list[list[str]] = []
    for name, query in queries.items():
        for names in together:
            other = queries[names[0]]
            if tuple(query.by) == tuple(other.by) and same_condition(query.where, other.where):
                names.append(name)
                break
        else:
            together.append([name])

    def read(names: list[str]) -> tuple[str, ...]:
        if any(isinstance(queries[name].window, Driven) for name in names):
            return tuple(columns)
        return tuple(dict.fromkeys(c for name in names for c in queries[name].columns))

    every = read(list(queries))
    return tuple(Lane(tuple(names), every if late else read(names)) for names in together)


def _combines(
    lane: Lane,
    bundles: tuple[Bundle, ...],
    plans: Mapping[str, Plan],
    slices: Slices,
    *,
    late: bool,
) -> tuple[Combines, Bundle | None]:
    """When tasks combine the rows of a lane into slices before the shuffle, and the bundle of these
    slices.  They do so only if all queries of the lane share slices, and each alone could do it."""
    members = [bundle for bundle in bundles if bundle.names[0] in lane.names]
    shared = len(members) == 1 and members[0].composite is not None
    if not shared or any(combines(plans[n], slices, late=late) == "never" for n in lane.names):
        return "never", None
    return "auto", members[0]


@dataclass(frozen=True)
class _Shape:
    """The columns of the output: those that the operator returns, and those that the user sees."""

    plans: Mapping[str, Plan]
    schema: StructType
    travels: tuple[str, ...]
    lanes: tuple[Lane, ...]
    mode: Mode
    late: bool

    @cached_property
    def kept(self) -> dict[str, tuple[str, ...]]:
        """The columns of events that the results of each query contain."""
        rows = {name: list(lane.travels) for lane in self.lanes for name in lane.names}
        return {
            name: tuple(kept_columns(plan.query, rows[name])) for name, plan in self.plans.items()
        }

    def _results(self, name: str) -> StructType:
        lane = next(lane for lane in self.lanes if name in lane.names)
        rows = StructType([self.schema[column] for column in lane.travels])
        return result_fields(self.plans[name], rows)

    def _typed(self, name: str) -> dict[str, Carried]:
        """A query's own columns: their names in the operator, and how their types travel."""
        result, plan = self._results(name), self.plans[name]
        made = {
            f"kept_{i}": carried(self.schema[c].dataType) for i, c in enumerate(self.kept[name])
        }
        return made | {
            f"value_{i}": carried(result[c].dataType) for i, c in enumerate(plan.query.select)
        }

    @cached_property
    def _placed(self) -> tuple[dict[str, dict[str, str]], list[DataType]]:
        types: list[DataType] = []
        slots: dict[str, dict[str, str]] = {}
        for name in self.plans:
            free = list(range(len(types)))
            slots[name] = {}
            for column, how in self._typed(name).items():
                at = next((i for i in free if types[i] == how.travels), None)
                if at is None:
                    at = len(types)
                    types.append(how.travels)
                else:
                    free.remove(at)
                slots[name][column] = f"slot_{at}"
        return slots, types

    @property
    def slots(self) -> dict[str, dict[str, str]]:
        """For each query, the slot in which each of its columns travels."""
        return self._placed[0]

    @cached_property
    def _withdraws(self) -> list[str]:
        """The queries that may withdraw emitted windows, by rows marked `deleted`."""
        if self.mode != "live":
            return []
        return [n for n, plan in self.plans.items() if isinstance(plan.query.window, Merging)]

    def travelling(self) -> list[StructField]:
        """The columns that the operator returns."""
        fields = [StructField("event_time", TimestampType()), StructField(QUERY, IntegerType())]
        fields += [StructField("start", _LONG), StructField("end", _LONG)]
        fields += [StructField(f"slot_{i}", kind) for i, kind in enumerate(self._placed[1])]
        if self.mode == "live":
            fields.append(StructField("revision", _LONG))
        if self._withdraws:
            fields.append(StructField("deleted", BooleanType()))
        if self.late:
            fields.append(StructField("reason", StringType()))
            fields.append(StructField("queries", ArrayType(StringType())))
            fields.append(StructField("missed_start", _LONG))
            fields.append(StructField("missed_end", _LONG))
            for i, name in enumerate(self.travels):
                travels = carried(self.schema[name].dataType).travels
                fields.append(StructField(f"late_{i}", travels))
        return [*fields, StructField("metric", IntegerType()), StructField("amount", _LONG)]

    def columns(self) -> list[Column]:
        """The columns that the user sees: the name of the query, a struct for each query, the event
        time, and late rows."""
        names = F.array(*(F.lit(name) for name in self.plans))
        columns = [F.get(names, F.col(QUERY)).alias(QUERY)]
        for number, name in enumerate(self.plans):
            own = F.struct(*self._columns_of(name))
            columns.append(F.when(F.col(QUERY) == F.lit(number), own).alias(name))
        columns.append(F.col("event_time"))
        if self.late:
            row = [
                carried(self.schema[name].dataType).back(F.col(f"late_{i}")).alias(name)
                for i, name in enumerate(self.travels)
            ]
            missed = self._span("missed_start", "missed_end")
            about = F.struct(
                F.col("reason"),
                F.when(F.col("missed_start").isNotNull(), missed).alias("missed"),
                F.struct(*row).alias("row"),
                F.col("queries"),
            )
            columns.append(F.when(F.col("reason").isNotNull(), about).alias("late"))
        return columns

    def _columns_of(self, name: str) -> list[Column]:
        """The columns of one query's result."""
        slots, typed, result = self.slots[name], self._typed(name), self._results(name)

        def back(column: str, called: str) -> Column:
            return typed[column].back(F.col(slots[column])).alias(called)

        made = [back(f"kept_{i}", column) for i, column in enumerate(self.kept[name])]
        # null in the rows of other queries
        window = F.when(F.col("start").isNotNull(), self._span("start", "end"))
        made.append(window.alias("window", metadata=result["window"].metadata))
        select = self.plans[name].query.select
        made += [back(f"value_{i}", column) for i, column in enumerate(select)]
        if self.mode == "live":
            made.append(F.col("revision"))
        if name in self._withdraws:
            made.append(F.col("deleted"))
        return made

    def _span(self, start: str, end: str) -> Column:
        time = self.schema[next(iter(self.plans.values())).query.time].dataType
        edges = zip((start, end), ("start", "end"), strict=True)
        return F.struct(*(time_from(F.col(column), time).alias(name) for column, name in edges))
