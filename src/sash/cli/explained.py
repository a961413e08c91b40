"""How the queries of a job run, in words, without running them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..explain import Explanation
from ..query.plan import make_plan
from ..windows import duration
from .check import Ready, arrives_by_tie, columns_of, query_of
from .errors import RunError

__all__ = ["explained"]


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
