"""Explain how the queries of a job run, without running them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import sash

from ..explain import Explanation
from ..explain.shared import SharedExplanation
from ..query.plan import make_plan
from ..windows import duration
from .check import Ready, arrives_by_tie, columns_of, query_of
from .errors import RunError
from .writing import shares

__all__ = ["explained", "explained_together", "run_together"]


def explained_together(ready: Ready, *, local: bool) -> Iterator[SharedExplanation]:
    """Explain what the queries of a job share, if they share a stream."""
    for names in run_together(ready, local=local):
        if len(names) > 1:
            where = "in this process" if local else "in one streaming query on Spark"
            shared = sash.share({name: query_of(ready.queries[name]) for name in names})
            found = shared.explain()
            # the warnings are in the explanation of each query
            each = {n: dataclasses.replace(e, warnings=()) for n, e in found.queries.items()}
            place = f"({', '.join(names)}) {where}"
            yield dataclasses.replace(found, place=place, queries=each)


def run_together(ready: Ready, *, local: bool) -> list[tuple[str, ...]]:
    """The names of the queries that share a stream in a run of the job."""
    names, schema = tuple(ready.queries), ready.source.schema
    alone: list[tuple[str, ...]] = [(name,) for name in names]
    if local:
        plans = [make_plan(query_of(q), columns_of(q, schema)) for q in ready.queries.values()]
        return alone if any(arrives_by_tie(plan, ready.mode) for plan in plans) else [names]
    try:
        from sash.spark.together import groups
    except ImportError:  # without pyspark
        return alone
    return groups(ready.queries) if shares(ready, remote=False) else alone


def explained(ready: Ready, *, local: bool) -> Iterator[tuple[str, Explanation]]:
    """The explanation of each query, for this process or for Spark; neither needs Java."""
    schema = ready.source.schema
    if schema is None:
        raise RunError(
            "how a query runs depends on the types of its columns, which only Spark knows: add "
            'schema = "…" to [source]'
        )
    lateness = duration(ready.job.tables.source.lateness)
    late = ready.job.tables.sink.late is not None
    for name, given in ready.queries.items():
        query, columns = query_of(given), columns_of(given, schema)
        plan = make_plan(query, columns)
        if local:
            from ..explain.streams import explain_stream

            if arrives_by_tie(plan, ready.mode):
                query = dataclasses.replace(query, tie=None)
            yield name, explain_stream(query, columns, lateness=lateness, mode=ready.mode)
        else:
            try:
                from sash.spark.explaining import explain_streaming
            except ImportError as error:
                raise RunError(f"{error}; or explain --local") from None
            yield name, explain_streaming(plan, ready.mode, late, "auto", lateness, None)
