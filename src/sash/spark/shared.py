"""`sash.spark.aggregate` for several queries: checks them against a DataFrame, and runs them."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import get_args

from pyspark.sql import DataFrame

from ..engine.members import check_trusted
from ..engine.supported import Asked, Place, check
from ..query.plan import Plan
from ..query.query import RESERVED, Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..tables.arrow import filtered
from ..windows import Driven, Merging
from .batch import Slices, is_usable
from .buckets import check_buckets
from .frames import schema_for, typed_plan
from .names import check_result_names, is_case_sensitive, with_names
from .sessions import check_stream
from .shared_batch import QUERY, aggregate_several
from .shared_stream import aggregate_shared_stream
from .streaming import STREAM_RESERVED
from .types import has_map, quoted

__all__ = ["aggregate_shared", "plans_for"]


def aggregate_shared(
    df: DataFrame,
    shared: Shared,
    *,
    mode: Mode,
    late: bool,
    buckets: int | None,
    name: str,
    trust: tuple[str, ...],
    drop: bool,
    slices: Slices,
) -> DataFrame:
    """The results of several queries as one DataFrame: see `sash.spark.aggregate`."""
    if type(shared) is not Shared:
        raise ValueError(
            "statements of SQL share tables in this process, and not on Spark: run each, or share "
            "their queries: sash.share({'a': a.query, 'b': b.query})"
        )
    if mode not in ("final", "live"):
        raise ValueError(f"mode is 'final' or 'live', not {mode!r}")
    if slices not in get_args(Slices):
        raise ValueError(f"slices is one of {', '.join(get_args(Slices))}, not {slices!r}")
    if slices not in ("auto", "rows"):
        raise ValueError(
            f"slices={slices!r} cannot be had for several queries: where they share slices, the "
            "first rows say whether Python makes them before the shuffle; leave it out"
        )
    check_buckets(buckets)
    check_trusted(shared, trust)
    df, plans = plans_for(df, shared, mode, late)
    if df.isStreaming:
        check_stream(df.sparkSession)
        return aggregate_shared_stream(
            df,
            plans,
            mode=mode,
            late=late,
            buckets=buckets,
            name=name,
            trust=trust,
            slices=slices,
        )
    clocks = {plan.query.window.clock for plan in plans.values()}
    if drop:
        time = next(iter(plans.values())).query.time
        given = df.schema[time].dataType
        df = df.where(reduce(or_, (is_usable(quoted(time), given, clock) for clock in clocks)))
    # a calendar has fewer times than UTC
    return aggregate_several(df, plans, buckets, drop=drop and len(clocks) > 1)


def plans_for(
    df: DataFrame, shared: Shared, mode: Mode = "final", late: bool = False
) -> tuple[DataFrame, dict[str, Plan]]:
    """Rename columns to the names that the queries use, and plan each query for the DataFrame."""
    sensitive, streaming = is_case_sensitive(df), df.isStreaming
    own = (QUERY, "window", *(STREAM_RESERVED if streaming else ()))
    check_result_names(list(shared.queries), own, sensitive=sensitive)
    read = dict.fromkeys(c for query in shared.queries.values() for c in query.columns)
    df = with_names(df, list(read), sensitive=sensitive)
    plans = {}
    for name, query in shared.queries.items():
        try:
            plans[name] = _plan_for(df, query, mode, late, sensitive=sensitive)
        except (KeyError, TypeError, ValueError) as error:
            text = error.args[0] if error.args else error
            raise type(error)(f"query {name!r}: {text}") from None
    return df, plans


def _plan_for(df: DataFrame, query: Query, mode: Mode, late: bool, *, sensitive: bool) -> Plan:
    """Plan one of the queries; raise if it cannot run."""
    streaming = df.isStreaming
    own: tuple[str, ...] = tuple(RESERVED)
    if streaming and mode == "live":
        own += ("revision", *(["deleted"] if isinstance(query.window, Merging) else []))
    check_result_names([*query.by, *query.select], own, sensitive=sensitive)
    if isinstance(query.window, Driven):  # its results have all columns
        check_result_names([*df.columns, *query.select], ("window",), sensitive=sensitive)
    for key in query.by:
        if key in df.columns and has_map(df.schema[key].dataType):
            raise TypeError(
                f"key {key!r} has a map in it, by which queries cannot share a pass; run the query "
                "by itself, or take map_entries of the key"
            )
    schema = schema_for(df, query)
    plan = typed_plan(query, schema)
    place: Place = "Spark stream" if streaming else "Spark batch"
    check(place, Asked(query, plan, mode, late=late))
    if query.where is not None:
        filtered(schema.empty_table(), query.where)  # raises if the condition is invalid
    return replace(plan, query=query)
