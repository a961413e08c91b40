"""`sash.spark.aggregate`: checks a query against a DataFrame, and chooses how to run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from ..engine.bundle_plans import plan_alone
from ..engine.identity import check_trust
from ..engine.results import with_types
from ..engine.supported import Asked, check
from ..query.plan import Plan, make_plan
from ..query.query import RESERVED, Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..tables.arrow import filtered, kind_name
from ..windows import Aligned, Driven, Merging
from .batch import Slices, Way, aggregate_batch, is_usable, way_for
from .buckets import check_buckets
from .by_events import aggregate_by_events
from .call_sites import without_call_sites
from .names import check_result_names, is_case_sensitive, with_names
from .sessions import check_stream
from .shared_batch import aggregate_sized
from .streaming import STREAM_RESERVED, aggregate_stream
from .types import arrow_schema, from_entries, has_map, normal, quoted, quoted_name

if TYPE_CHECKING:
    from ..sql.statement import Statement

__all__ = ["aggregate", "planned", "schema_for", "typed_plan", "way"]

#: What to do with rows of a table whose time is null or out of range.
Bad: TypeAlias = Literal["error", "drop"]


@without_call_sites
def aggregate(
    df: DataFrame,
    query: Query | Statement | Shared,
    mode: Mode = "final",
    late: bool = False,
    buckets: int | None = None,
    name: str = "sash",
    trust: Sequence[str] = (),
    bad: Bad = "error",
    slices: Slices = "auto",
) -> DataFrame:
    """The results of a query over a batch or streaming DataFrame, as a DataFrame: the keys,
    `window` (a struct of start and end), the values.  A driven window has a row for each event that
    fires, with all columns of the event instead of the keys.

    For several queries (`sash.share`) there is one result, computed in one pass, and on a stream in
    one stateful operator.  Its column `query` has the name of the query to which a row belongs, and
    for each query it has a struct of that query's result columns, which is null in the rows of
    other queries.  `split` separates them.  Queries with the same keys and `where` share slices;
    others share only the intake.  In the metrics, counts of rows are those of the first query, and
    counts of late rows and results are sums over all queries; up to 32 queries also have their own
    counts in `queries`.

    A stream needs `withWatermark`.  In mode "final", it emits each window once, when the window is
    closed.  In mode "live", it emits a window as soon as stream time has passed its end, and again
    with a higher `revision` whenever late rows change it.  `event_time`, for stateful operators
    that follow, is the window's last moment, or the time of the event that fired.  With
    `late=True`, the output also has the rows that missed windows or are unusable, in the column
    `late`: see `split`.  (A row whose time is far in the future moves Spark's watermark there
    before sash sees the row, and all later rows are late.  If that can happen, filter such rows
    before `withWatermark`.)

    In a table, a row whose time is null or out of range is an error; with `bad="drop"` sash drops
    it, as Spark's `window()` does.  A stream never stops for such a row.

    sash combines rows into slices before the shuffle if the order of events does not matter and
    slices have several rows.  For a table it reads a sample to find that out; Spark makes the
    slices if it has the operators, else Python does.  On a stream without `late`, Python makes them
    if the first rows of a task show that it pays.  `slices` chooses who makes slices ("spark",
    "python"), or that nobody does ("rows"); for a table, `way` returns the choice of "auto".  On a
    stream, "spark" is for tumbling windows only: Spark's own operators do all the work, and they
    drop late rows without counting them.

    Keys are spread over `buckets`: of a stream, one for each partition of a shuffle, and at most
    64, unless you give their number; of a table, over as many tasks as Spark sees fit.  A stream's
    checkpoint is tied to it.

    An operator of your own must be the one with which the checkpoint was written.  If you have
    corrected it, and its partials mean the same as before, name the aggregate in `trust`.

    Spark reports the metrics of each micro-batch in the query's progress, as observed metrics with
    the name `name`; if one streaming query has several sash operators, their names must differ.
    The metrics are: `rows_in`, the sum of `rows_counted` (in some window) and `rows_late` (in
    none); `rows_unusable`, the rows among `rows_late` with a time or value that sash cannot use;
    `rows_partly_late`, counted but not in all their windows; `corrections`, `rows_out`,
    `open_windows`; `state_records` and `state_bytes`, read and written; `watermark`; and
    `lateness`, how many rows came in order, and how many in each of 24 buckets of lateness, which
    double from one second on.
    """
    if not isinstance(df, DataFrame):
        raise TypeError(
            f"sash.spark.aggregate takes a Spark DataFrame, not {kind_name(df)}; for a table "
            "in this process, of pandas, Polars or Arrow, use q.run(table)"
        )
    if isinstance(query, Shared):
        from .shared import aggregate_shared

        if bad not in ("error", "drop"):
            raise ValueError(f"bad is 'error' or 'drop', not {bad!r}")
        return aggregate_shared(
            df,
            query,
            mode=mode,
            late=late,
            buckets=buckets,
            name=name,
            trust=tuple(trust),
            drop=bad == "drop",
            slices=slices,
        )
    if not isinstance(query, Query):
        return _of_statement(df, query, mode, late, buckets, name, trust, bad, slices)
    if mode not in ("final", "live"):
        raise ValueError(f"mode is 'final' or 'live', not {mode!r}")
    if bad not in ("error", "drop"):
        raise ValueError(f"bad is 'error' or 'drop', not {bad!r}")
    check_buckets(buckets)
    streaming = df.isStreaming
    sensitive = is_case_sensitive(df)
    own = (*RESERVED, *(STREAM_RESERVED if streaming else ()))
    if streaming and mode == "live" and isinstance(query.window, Merging):
        own += ("deleted",)
    check_result_names([*query.by, *query.select], own, sensitive=sensitive)
    df = with_names(df, query.columns, sensitive=sensitive)
    if isinstance(query.window, Driven):  # its results have all columns
        more = STREAM_RESERVED if streaming else ()
        check_result_names([*df.columns, *query.select], more, sensitive=sensitive)
    df, maps = _without_maps(df, query)
    schema = schema_for(df, query)
    plan = typed_plan(query, schema)
    check_trust(query, trust)
    if query.where is not None:
        filtered(schema.empty_table(), query.where)  # raises if the condition is invalid
    check_slices(plan, slices, streaming=streaming)
    if streaming:
        check_stream(df.sparkSession)
        out = aggregate_stream(
            df,
            plan,
            mode=mode,
            late=late,
            buckets=buckets,
            name=name,
            trust=tuple(trust),
            slices=slices,
        )
    else:
        check("Spark batch", Asked(query, plan, mode, late=late))
        if bad == "drop":
            given, clock = df.schema[query.time].dataType, query.window.clock
            df = df.where(is_usable(quoted(query.time), given, clock))
        if isinstance(query.window, Aligned) and query.several:
            out = aggregate_sized(df, plan, buckets)
        elif isinstance(query.window, Aligned):
            out = aggregate_batch(df, plan, buckets, slices)
        else:
            out = aggregate_by_events(df, plan, buckets)
    return _with_maps(out, maps)


def _of_statement(df: DataFrame, given: Any, mode: Mode, late: bool, *more: Any) -> DataFrame:
    """The results of an SQL statement, over a DataFrame instead of its FROM."""
    from ..sql.statement import Statement, check_stream

    if not isinstance(given, Statement):
        raise TypeError(f"aggregate takes a sash.Query or a sash.Statement, not {given!r}")
    from .statements import aggregated, prepared_frame, projected_frame

    planned = given._planned
    if df.isStreaming:
        check_stream(planned, mode)
    found = aggregated(planned, prepared_frame(given, df), mode, late, *more)
    return projected_frame(planned, found, df.columns, streaming=df.isStreaming, mode=mode)


def way(df: DataFrame, query: Query, slices: Slices = "auto") -> Way:
    """How `aggregate` runs a query over a table, and why: its `name` is "tumbled", "spark",
    "python" or "rows".  If that depends on a sample of the table, Spark reads the sample now."""
    if df.isStreaming:
        raise TypeError("way is for a table; for a stream, sash.spark.explain says how it runs")
    df, plan = planned(df, query)
    check_slices(plan, slices)
    if not isinstance(query.window, Aligned):
        return Way("rows", "events make the windows")
    if query.several:
        return Way("rows", "its aggregates have several sizes")
    return way_for(df, plan, slices)


def planned(df: DataFrame, query: Query) -> tuple[DataFrame, Plan]:
    """Rename columns to the names that a query uses, make its keys comparable, and plan it."""
    df = with_names(df, query.columns, sensitive=is_case_sensitive(df))
    df, _ = _without_maps(df, query)
    return df, typed_plan(query, schema_for(df, query))


def check_slices(plan: Plan, slices: Slices, *, streaming: bool = False) -> None:
    """Refuse `slices` that there are not, or that the query cannot have before the shuffle."""
    if slices not in get_args(Slices):
        raise ValueError(f"slices is one of {', '.join(get_args(Slices))}, not {slices!r}")
    window = plan.query.window
    if slices in ("auto", "rows"):
        return
    if not isinstance(window, Aligned):
        why = "events make its windows, and only windows that are aligned to the clock have slices"
    elif plan.query.several and not streaming:
        why = "its aggregates have several sizes, and rows travel as they are"
    else:
        return
    raise ValueError(f"slices={slices!r} cannot be had for {window!r}: {why}")


def _without_maps(df: DataFrame, query: Query) -> tuple[DataFrame, dict[str, DataType]]:
    """Turn the keys that are maps, or have maps inside, into lists of sorted entries, as the order
    of a map's entries does not matter; and return their types.  `_with_maps` turns them back."""
    found = {}
    for key in dict.fromkeys(query.by):
        if key not in df.columns or not has_map(df.schema[key].dataType):
            continue
        if any(key in chosen.columns for chosen in query.select.values()):
            raise TypeError(
                f"column {key!r} is a key with a map in it, and is aggregated as well; copy it "
                f"first: df.withColumn('copy', F.col({key!r}))"
            )
        found[key] = df.schema[key].dataType
    made = {key: normal(quoted(key), kind, key) for key, kind in found.items()}
    return df.withColumns(made) if made else df, found


def _with_maps(out: DataFrame, maps: dict[str, DataType]) -> DataFrame:
    """Turn lists of entries in the result back into maps."""
    made = {key: from_entries(quoted(key), kind) for key, kind in maps.items()}
    if maps and "late" in out.columns:
        late = F.col("late")
        for key, kind in maps.items():
            part = late.getField("row").getField(key)
            late = late.withField(f"row.{quoted_name(key)}", from_entries(part, kind))
        made["late"] = late
    return out.withColumns(made) if made else out


def schema_for(df: DataFrame, query: Query) -> pa.Schema:
    """The Arrow types of a DataFrame's columns.  Columns that the query does not read are left out
    if Arrow cannot hold them."""
    held = []
    for field in df.schema:
        try:
            arrow_schema(StructType([field]))
        except PySparkTypeError as error:
            kept = isinstance(query.window, Driven)  # its results have all columns
            if query.where is None and not kept and field.name not in query.columns:
                continue
            raise TypeError(
                f"column {field.name!r} is {field.dataType.simpleString()}, which Arrow cannot "
                f"hold; leave it out with df.drop, or cast it ({error})"
            ) from None
        held.append(field)
    return arrow_schema(StructType(held))


def typed_plan(query: Query, schema: pa.Schema) -> Plan:
    """Plan a query, with the types of all answers that are known before any answer is computed."""
    aligned = isinstance(query.window, Aligned)
    return with_types((plan_alone if aligned else make_plan)(query, schema))
