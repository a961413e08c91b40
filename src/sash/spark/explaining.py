"""`sash.spark.explain`: how a query runs on Spark, and why."""

from __future__ import annotations

import dataclasses
from typing import Any, overload

import pyarrow as pa
from pyspark.sql import DataFrame

from ..engine.supported import Asked, check
from ..explain import Explanation
from ..explain.bundles import in_shared_records
from ..explain.cautions import cautions
from ..explain.explanation import Step
from ..explain.shared import BundleExplanation, SharedExplanation, explain_shared
from ..explain.streams import explain_stream, in_records
from ..explain.tables import explain_table
from ..query.plan import Plan
from ..query.query import Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..windows import Aligned, duration
from . import batch, by_events, split_sessions
from .batch import Slices
from .frames import check_slices, planned, way
from .shared import plans_for
from .streaming import combines, delay_of, has_watermark, native_windows

__all__ = ["explain", "explain_streaming"]

_WAYS = {
    "tumbled": "Spark's own aggregates make the windows",
    "spark": "Spark's own aggregates make slices, which are sent to tasks by key",
    "python": "Python combines rows into slices, which are sent to tasks by key",
    "rows": "rows are sent to tasks by key",
}
_COMBINES = {
    "always": "rows are combined into slices before the shuffle",
    "auto": "rows are combined into slices before the shuffle where first rows say that it pays",
    "never": "rows are shuffled as they are",
}


@overload
def explain(
    df: DataFrame,
    query: Query,
    mode: Mode = "final",
    late: bool = False,
    slices: Slices = "auto",
    lateness: Any = None,
    data: Any = None,
) -> Explanation: ...
@overload
def explain(
    df: DataFrame,
    query: Shared,
    mode: Mode = "final",
    late: bool = False,
    slices: Slices = "auto",
    lateness: Any = None,
    data: Any = None,
) -> SharedExplanation: ...
def explain(
    df: DataFrame,
    query: Query | Shared,
    mode: Mode = "final",
    late: bool = False,
    slices: Slices = "auto",
    lateness: Any = None,
    data: Any = None,
) -> Any:
    """How `aggregate` runs a query over a batch or streaming DataFrame, why, and what it costs; see
    `sash.Explanation`.

    `mode`, `late` and `slices` are those of `aggregate`.  `lateness` is the delay of the stream's
    watermark; without it, `explain` takes the delay that the DataFrame's own watermark has, or 0.
    `data` is a sample, a table in this process, over which sash runs the query here and counts
    combines.  If the way depends on a
    sample of the DataFrame, Spark reads that sample now.  For several queries (`sash.share`) the
    explanation also says what they share: see `sash.SharedExplanation`.
    """
    if isinstance(query, Shared):
        return _explain_shared(df, query, mode, late, lateness, data)
    df, plan = planned(df, query)
    if df.isStreaming:
        behind = _behind(df, query.time, lateness)
        check_slices(plan, slices, streaming=True)
        if slices == "spark":
            native_windows(df, plan, mode=mode, late=late)
        return explain_streaming(plan, mode, late, slices, behind, data)
    check("Spark batch", Asked(query, plan, mode, late=late))
    found = way(df, query, slices)
    made = explain_table(query, plan.schema, data)
    if found.name == "tumbled":
        steps: tuple[Step, ...] = (Step(_WAYS[found.name], found.why),)
    else:
        task = Step(
            "each task works on many of its keys at once, in Python",
            "as Query.run works on a table",
        )
        steps = (Step(_WAYS[found.name], found.why), task, *made.steps[1:])
    return dataclasses.replace(
        made,
        place="sash.spark.aggregate, over a table",
        steps=steps,
        warnings=cautions(query, plan, "Spark batch", unsplit=_unsplit(query, found.name)),
    )


def _explain_shared(
    df: DataFrame, shared: Shared, mode: Mode, late: bool, lateness: Any, data: Any
) -> SharedExplanation:
    """Explain how several queries run over a DataFrame."""
    df, plans = plans_for(df, shared, mode, late)
    schema = pa.schema({field.name: field.type for p in plans.values() for field in p.schema})
    if not df.isStreaming:
        each = {name: explain_table(plan.query, plan.schema) for name, plan in plans.items()}
        made = explain_shared(shared, schema, data, each=each)
        return dataclasses.replace(made, place="over a table on Spark, in one pass")
    behind = _behind(df, next(iter(shared.queries.values())).time, lateness)
    each = {
        name: explain_streaming(plan, mode, late, "auto", behind, None)
        for name, plan in plans.items()
    }
    plain = Shared({name: _without_tie(query) for name, query in shared.queries.items()})
    made = explain_shared(plain, schema, data, lateness=behind, mode=mode, each=each)
    return dataclasses.replace(
        made,
        place=f"in one stateful operator of Spark, mode={mode!r}",
        bundles=tuple(_in_one_operator(bundle) for bundle in made.bundles),
    )


def _behind(df: DataFrame, time: str, lateness: Any) -> int:
    """The delay of a stream's watermark in microseconds: as the user says or, if the user does not,
    as the DataFrame says."""
    if lateness is not None:
        return duration(lateness, "the lateness")
    return delay_of(df, time) if has_watermark(df, time) else 0


def _in_one_operator(bundle: BundleExplanation) -> BundleExplanation:
    """Adapt the explanation of queries that share slices, which is for one process, to Spark."""
    if bundle.kept is None or bundle.costs is None:
        return bundle
    steps, kept, costs = in_shared_records(
        bundle.steps,
        bundle.kept,
        bundle.costs,
        "Spark's state store",
        "a micro-batch",
        ", of one stateful operator",
    )
    return dataclasses.replace(bundle, steps=steps, kept=kept, costs=costs)


def _unsplit(query: Query, way: str) -> str:
    """The reason why all rows of a key go to one task; empty if they do not."""
    if isinstance(query.window, Aligned):
        if way == "rows" and batch.Stretches.of(query).whole:
            return "empty windows depend on all events of a key, so they are one task's"
        return ""
    if by_events.Stretches.of(query).whole and not split_sessions.splits(query):
        return f"what {query.window!r} holds goes by all earlier events of a key"
    return ""


def explain_streaming(
    plan: Plan, mode: Mode, late: bool, slices: Slices, lateness: int, data: Any
) -> Explanation:
    """Explain how a plan runs over a stream on Spark.  This needs no Spark session."""
    query = plan.query
    check("Spark stream", Asked(query, plan, mode, late=late))
    made = explain_stream(_without_tie(query), plan.schema, data, lateness=lateness, mode=mode)
    how = "spark" if slices == "spark" else combines(plan, slices, late=late)
    if how == "spark":
        first = Step("Spark's own windows make the results", "slices='spark'")
    elif how == "never" and not isinstance(query.window, Aligned):
        first = Step(_COMBINES[how], "events make the windows, which have no slices")
    elif how == "never":
        why = (
            "late rows are wanted as they came" if late else "an aggregate needs order, or objects"
        )
        first = Step(_COMBINES[how], "rows were asked for" if slices == "rows" else why)
    else:
        first = Step(_COMBINES[how], "the aggregates commute, and their partials are small")
    made = in_records(made, query, "Spark's state store", "a micro-batch")
    unsplit = "" if how != "never" else "a key is in one bucket, and so in one task"
    return dataclasses.replace(
        made,
        place=f"sash.spark.aggregate, micro-batch by micro-batch, mode={mode!r}",
        steps=(first, *made.steps[1:]),
        warnings=cautions(query, plan, "Spark stream", lateness, unsplit),
    )


def _without_tie(query: Query) -> Query:
    """The query without its tie: a stream in this process orders ties by arrival."""
    return dataclasses.replace(query, tie=None)
