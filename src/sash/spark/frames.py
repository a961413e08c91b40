"""`sash.spark.aggregate`: what is checked before any work, for both kinds of DataFrame."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ..engine.identity import check_trust
from ..engine.supported import Asked, check
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..state.scan import Scan
from .batch import aggregate_batch
from .buckets import how_many
from .streaming import aggregate_stream
from .types import arrow_schema

__all__ = ["aggregate"]


def aggregate(
    df: DataFrame,
    query: Query,
    mode: Mode = "final",
    late: bool = False,
    buckets: int | None = None,
    name: str = "sash",
    trust: Sequence[str] = (),
) -> DataFrame:
    """The results of a query over a DataFrame, bounded or streaming, as a DataFrame: the keys,
    `window` (a struct of start and end), the values.

    On a stream, which needs `withWatermark`, mode "final" gives each window once, when it is
    closed; "live" gives it as soon as the stream has passed its end, and again with a higher
    `revision` whenever late rows change it.  `event_time` is the window's last moment, for
    stateful operators that follow.  With `late=True`, rows that missed windows or could not be
    used come in the same output, in the column `late`: see `split`.  (A row whose time is far in
    the future moves Spark's watermark there, before it comes here, and all that follows is late:
    where that can happen, leave out such rows before `withWatermark`.)

    Keys are spread over `buckets`; a stream's checkpoint is tied to their number.  An operator of
    your own must be the one that the checkpoint was written with; where you have mended it, and its
    partials mean the same as before, name the aggregate in `trust`.

    The metrics of each micro-batch are in the query's progress, as the observed metrics named
    `name`, which must differ where one streaming query has several sash operators: `rows_in`, which
    is `rows_counted` (in some window) and `rows_late` (in none); `rows_partly_late`, counted but
    not in all their windows; `corrections`, `rows_out`, `open_windows`; `state_records` and
    `state_bytes` read and written; `watermark`.
    """
    if not isinstance(df, DataFrame):
        raise TypeError(f"aggregate takes a Spark DataFrame, not {type(df).__name__}")
    if not isinstance(query, Query):
        raise TypeError(f"aggregate takes a sash.Query, not {query!r}")
    if mode not in ("final", "live"):
        raise ValueError(f"mode is 'final' or 'live', not {mode!r}")
    count = how_many(df, buckets)
    plan = with_types(make_plan(query, _schema_for(df, query)))
    check_trust(query, trust)
    if df.isStreaming:
        return aggregate_stream(
            df, plan, mode=mode, late=late, buckets=count, name=name, trust=tuple(trust)
        )
    check("Spark batch", Asked(query, plan, mode, late=late))
    return aggregate_batch(df, plan, count)


def _schema_for(df: DataFrame, query: Query) -> pa.Schema:
    """The Arrow types of a DataFrame's columns; what is not read may have none."""
    held = []
    for field in df.schema:
        try:
            arrow_schema(StructType([field]))
        except PySparkTypeError as error:
            if query.where is None and field.name not in query.columns:
                continue
            raise TypeError(
                f"column {field.name!r} is {field.dataType.simpleString()}, which Arrow cannot "
                f"hold; leave it out with df.drop, or cast it ({error})"
            ) from None
        held.append(field)
    return arrow_schema(StructType(held))


def with_types(plan: Plan) -> Plan:
    """The plan with the types of all answers that can be known before there are any."""
    if None not in plan.types.values():
        return plan
    types = dict(plan.types)
    for group in plan.groups:
        found = Scan(group, plan.query.window, plan.types).answer_types()
        types |= {name: t for name, t in found.items() if types[name] is None}
    return dataclasses.replace(plan, types=types)
