"""Queries and statements of SQL over one stream, in one stateful operator: what goes into it, and
the results of each, as it would have them alone.

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

#: So many share an operator at most: up to so many its metrics are those of each query too.
MOST = 32


def groups(given: Mapping[str, Query | Statement]) -> list[tuple[str, ...]]:
    """The names of those that can share an operator: queries, and statements that compute the same
    columns under the same condition.  One whose name the results of several have for themselves, or
    which Spark takes for another's, is by itself."""
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
    """What a micro-batch has for one query: results, and late rows if they are wanted."""

    name: str
    results: DataFrame
    late: DataFrame | None


@dataclass(frozen=True)
class Together:
    """Several queries over a streaming DataFrame, and their results in one."""

    given: Mapping[str, Query | Statement]
    kept: Mapping[str, Sequence[str]]  # the columns of events that late rows have, by query
    mode: Mode
    out: DataFrame

    def parts(self, batch: DataFrame) -> Iterator[Part]:
        """What a micro-batch of `out` has for each query."""
        return parts(batch, self.given, self.kept, self.mode)


def together(
    df: DataFrame,
    given: Mapping[str, Query | Statement],
    *,
    mode: Mode,
    late: bool,
    buckets: int | None = None,
) -> Together:
    """Run queries of one group over a streaming DataFrame.  Those that cannot share an operator
    raise what is wrong with them."""
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
    """What a micro-batch has for each of several queries."""
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
