"""Runs queries and SQL statements over one stream in one stateful operator, and separates their
results.

    rows ─→ before: expressions, WHERE (Spark, once) ─→ the queries (`shared_stream`)
         ─→ after: SELECT list, HAVING of each statement (Spark, a micro-batch at a time)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..query.query import Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..sql.shared_stream import grouped
from ..sql.statement import Statement
from ..windows import Driven
from .frames import aggregate
from .shared_batch import QUERY
from .sink import split
from .statements import prepared_frame, projected_frame, query_of
from .streaming import STREAM_RESERVED
from .types import quoted

__all__ = ["Part", "Together", "groups", "together"]

#: The most queries that share an operator: with up to so many, each has its own metrics.
MOST = 32


def groups(given: Mapping[str, Query | Statement]) -> list[tuple[str, ...]]:
    """Group the queries, and the statements that compute the same columns under the same condition,
    that can share an operator.  A query is alone if sash reserves its name in the results of
    several queries, or if to Spark another query has the same name."""
    taken = {QUERY, "window", *STREAM_RESERVED}
    usable: dict[str, Query | Statement] = {}
    for name, one in given.items():
        if name.lower() not in taken:
            taken.add(name.lower())
            usable[name] = one
    found = []
    for names in grouped(usable):
        found += [names[i : i + MOST] for i in range(0, len(names), MOST)]
    return [*found, *((name,) for name in given if name not in usable)]


@dataclass(frozen=True)
class Part:
    """The rows of a micro-batch for one query: results, and late rows, if the stream has them."""

    name: str
    results: DataFrame
    late: DataFrame | None


@dataclass(frozen=True)
class Together:
    """Several queries over a streaming DataFrame, and the DataFrame `out` of all their results."""

    given: Mapping[str, Query | Statement]
    kept: Mapping[str, Sequence[str]]  # the columns of events in the late rows of each query
    mode: Mode
    out: DataFrame

    def parts(self, batch: DataFrame) -> Iterator[Part]:
        """Separate a micro-batch of `out` by query."""
        return parts(batch, self.given, self.kept, self.mode)


def together(
    df: DataFrame,
    given: Mapping[str, Query | Statement],
    *,
    mode: Mode,
    late: bool,
    buckets: int | None = None,
) -> Together:
    """Run the queries of one group over a streaming DataFrame.  Raise if they cannot share an
    operator."""
    statements = [one for one in given.values() if isinstance(one, Statement)]
    if statements:
        df = prepared_frame(statements[0], df, *statements[1:])
    inner = {n: query_of(q._planned) if isinstance(q, Statement) else q for n, q in given.items()}
    out = aggregate(df, Shared(inner), mode, late, buckets)
    kept = {
        name: df.columns if isinstance(query.window, Driven) else query.columns
        for name, query in inner.items()
    }
    return Together(dict(given), kept, mode, out)


def parts(
    batch: DataFrame,
    given: Mapping[str, Query | Statement],
    kept: Mapping[str, Sequence[str]],
    mode: Mode,
) -> Iterator[Part]:
    """Separate a micro-batch of several queries by query."""
    results, rows = split(batch) if "late" in batch.columns else (batch, None)
    for name, one in given.items():
        made: Any = split(results, name).drop("event_time")
        if isinstance(one, Statement):
            made = projected_frame(one._planned, made, [], streaming=True, mode=mode)
        missed = None
        if rows is not None:
            missed = rows.where(F.array_contains("late_queries", name))
            own = [quoted(column) for column in kept[name]]
            missed = missed.select(*own, "late_reason", "late_missed")
        yield Part(name, made, missed)
