"""Several queries, or a query with several sizes, over a DataFrame that is no stream.

    rows ─→ for each lane, the task of its key ─→ the task runs the lane's queries over a portion

Queries with the same keys are one lane: their rows travel once.  For queries that share slices
(`engine.bundles`), a task reads, orders and cuts the rows once.  Lanes share the pass over the
DataFrame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from ..engine.bundle_plans import plan_bundle
from ..engine.bundles import shared_plan
from ..engine.run import run_arrow
from ..engine.shared_run import results_of_bundle
from ..query.plan import Plan
from ..query.query import Query
from ..tables.arrow import one_array, times_of
from ..windows import Aligned, Driven
from .buckets import key_columns, key_hash, sent_by
from .portions import EVENTS, InPortions, Portions, windows_held
from .results import result_fields
from .shipping import shipped
from .types import arrow_schema, quoted

__all__ = ["QUERY", "aggregate_several", "aggregate_sized", "lanes_of"]

#: The column with the name of a row's query.
QUERY = "query"
_LANE, _HASH = "__sash_lane", "__sash_hash"  # a lane of a row, and the hash of its key there


def lanes_of(queries: Mapping[str, Query]) -> list[tuple[str, ...]]:
    """Group queries by their keys: the rows of queries with the same keys travel together."""
    made: dict[tuple[str, ...], list[str]] = {}
    for name, query in queries.items():
        made.setdefault(tuple(query.by), []).append(name)
    return [tuple(names) for names in made.values()]


def aggregate_sized(df: DataFrame, plan: Plan, tasks: int | None) -> DataFrame:
    """The results of one aligned query whose aggregates have several sizes."""
    return aggregate_several(df, {"one": plan}, tasks).select("one.*")


def aggregate_several(
    df: DataFrame, plans: Mapping[str, Plan], tasks: int | None, *, drop: bool = False
) -> DataFrame:
    """The results of several queries: a column `query`, and a struct for each query.  With `drop`,
    each query leaves out the rows whose times its own clock cannot show; else they are errors."""
    queries = {name: plan.query for name, plan in plans.items()}
    lanes = lanes_of(queries)
    every = any(isinstance(q.window, Driven) or q.where is not None for q in queries.values())
    read = dict.fromkeys(column for q in queries.values() for column in q.columns)
    names = df.columns if every else list(read)
    plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
    each = []
    for number, lane in enumerate(lanes):
        keys = key_columns(queries[lane[0]], df.schema)
        each.append(F.struct(F.lit(number).alias("lane"), key_hash(keys).alias("hash")))
    tagged = df.select(*plain, F.explode(F.array(*each)).alias("__sash_to"))
    to = F.col("__sash_to")
    tagged = tagged.select(
        *[f"column_{i}" for i in range(len(names))],
        to.getField("lane").alias(_LANE),
        to.getField("hash").alias(_HASH),
    )
    results = {name: _nullable(result_fields(plan, df.schema)) for name, plan in plans.items()}
    columns = [StructField(QUERY, StringType(), nullable=False)]
    columns += [StructField(name, made, nullable=True) for name, made in results.items()]
    work = _Work(queries, lanes, tuple(names), results, StructType(columns), drop)
    places = [len(names), len(names) + 1]
    held = sum(
        windows_held(query.aligned)
        for query in queries.values()
        if isinstance(query.window, Aligned)
    )
    task = InPortions(Portions(places, max(held, EVENTS), 0), work)
    sent = sent_by(tagged, [F.col(_LANE), F.col(_HASH)], tasks)
    return sent.mapInArrow(shipped(task), StructType(columns))


def _nullable(result: StructType) -> StructType:
    """Make all columns nullable, as they are null in the rows of other queries."""
    return StructType(
        [StructField(f.name, f.dataType, nullable=True, metadata=f.metadata) for f in result]
    )


@dataclass(frozen=True)
class _Work:
    """What a task does with a portion of its rows, which are of some lanes."""

    queries: Mapping[str, Query]
    lanes: list[tuple[str, ...]]
    names: tuple[str, ...]
    results: Mapping[str, StructType]
    columns: StructType
    drop: bool

    def __call__(self, table: pa.Table) -> pa.Table:
        table = table.rename_columns([*self.names, _LANE, _HASH])
        numbers = one_array(table.column(_LANE)).to_numpy()
        made = []
        for number in np.unique(numbers).tolist():
            here = numbers == number
            rows = table.select(self.names)
            some = rows if here.all() else rows.filter(pa.array(here))
            made += self._of_lane(self.lanes[number], some)
        return pa.concat_tables(made)

    def _of_lane(self, lane: tuple[str, ...], given: pa.Table) -> list[pa.Table]:
        """What the queries of a lane make of its rows."""
        made = []
        for bundle in shared_plan({name: self.queries[name] for name in lane}).bundles:
            own = given
            if self.drop:  # the queries of a bundle have one clock
                own = _usable(given, self.queries[bundle.names[0]])
            if bundle.composite is not None and (len(bundle.queries) > 1 or _sized(bundle.queries)):
                found = results_of_bundle(plan_bundle(bundle, own.schema, whole=True), own)
            else:
                found = {name: run_arrow(q, own, 1) for name, q in bundle.queries.items()}
            made += [self._rows(name, rows) for name, rows in found.items()]
        return made

    def _rows(self, name: str, found: pa.Table) -> pa.Table:
        """The result rows of one query, with nulls in the columns of the others."""
        result = self.results[name]
        edges = [one_array(found.column(f"window_{edge}")) for edge in ("start", "end")]
        window = pa.StructArray.from_arrays(edges, names=["start", "end"])
        columns = [window if n == "window" else found.column(n) for n in result.names]
        own = pa.table(columns, names=result.names).cast(arrow_schema(result))
        struct = pa.StructArray.from_arrays(
            [one_array(column) for column in own.columns], fields=list(own.schema)
        )
        made = arrow_schema(self.columns)
        rows = found.num_rows
        arrays = [
            pa.array([name] * rows, field.type)
            if field.name == QUERY
            else struct.cast(field.type)
            if field.name == name
            else pa.nulls(rows, field.type)
            for field in made
        ]
        return pa.Table.from_arrays(arrays, schema=made)


def _usable(rows: pa.Table, query: Query) -> pa.Table:
    """The rows whose times the clock of a query can show."""
    _, unusable = times_of(one_array(rows.column(query.time)), query.window.clock)
    return rows.filter(pa.array(~unusable)) if unusable.any() else rows


def _sized(queries: Mapping[str, Query]) -> bool:
    return any(query.several for query in queries.values())
