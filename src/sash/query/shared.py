"""Several queries over one stream or table that share slices and intake: `sash.share`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .query import Query
from .signatures import Mode

if TYPE_CHECKING:
    from ..engine.bundles import SharedPlan
    from ..engine.shared_stream import SharedStream
    from ..explain.shared import SharedExplanation
    from ..sql.statement import Statement
    from ..stores.contract import Store

__all__ = ["Shared", "check_queries", "share"]


def check_queries(queries: Any) -> dict[str, Query]:
    """Check that `queries` maps names to queries with the same time column; raise an error if
    not."""
    if not isinstance(queries, Mapping) or not queries:
        raise TypeError(
            "sash.share takes a name and a query for each result, such as {'fast': q1, 'daily': "
            f"q2}}, not {queries!r}"
        )
    for name, query in queries.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"a query's name is text, not {name!r}")
        if not isinstance(query, Query):
            raise TypeError(f"the query {name!r} must be a sash.Query, not {query!r}")
    times = {query.time: name for name, query in queries.items()}
    if len(times) > 1:
        said = ", ".join(f"{time!r} for {name!r}" for time, name in times.items())
        raise ValueError(
            f"queries that share a stream must read one time column, and these read {said}; share "
            "only queries with the same time column"
        )
    return dict(queries)


@dataclass(frozen=True)
class Shared:
    """Several queries over the same events; `sash.share` builds it.

    Each query gives the same results as when it runs alone.  Aligned queries with the same keys,
    `where` and `tie` share one copy of the slices, and equal aggregates share one partial.  Other
    queries share the intake.  `plan` says which queries share what.

    >>> import sash
    >>> def over(size, every):
    ...     return sash.Query(
    ...         time="t", window=sash.sliding(size, every), select={"n": sash.count()}
    ...     )
    >>> both = sash.share({"fast": over(6, 2), "daily": over(8, 4)})
    >>> {name: table["n"].to_pylist() for name, table in both.run({"t": [1, 2, 6]}).items()}
    {'fast': [1, 2, 2, 2, 1, 1], 'daily': [2, 3, 1]}
    >>> both.plan.bundles[0].composite.slide
    4
    """

    queries: Mapping[str, Query]

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", check_queries(self.queries))

    def __deepcopy__(self, memo: Any) -> Shared:
        """The queries themselves, which never change."""
        return self

    @cached_property
    def plan(self) -> SharedPlan:
        """Which queries share slices and partials, as data."""
        from ..engine.bundles import shared_plan

        return shared_plan(self.queries)

    def run(self, table: Any, *, threads: int | None = None) -> dict[str, Any]:
        """Run every query over a whole table; returns the result of `Query.run` for each name.

        >>> import sash
        >>> n = {"n": sash.count()}
        >>> daily = sash.Query(time="t", window=sash.tumbling(10), select=n)
        >>> each = sash.Query(time="t", window=sash.trailing(5), select=n)
        >>> made = sash.share({"daily": daily, "each": each}).run({"t": [1, 4, 12]})
        >>> made["daily"]["n"].to_pylist(), made["each"]["n"].to_pylist()
        ([2, 1], [1, 2, 1])
        """
        from ..engine.shared_run import run

        return run(self, table, threads)

    def stream(
        self,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: Any = None,
        keep_late: int | None = 1_000_000,
        *,
        store: Store | None = None,
        name: str | None = None,
        trust: Sequence[str] = (),
    ) -> SharedStream:
        """Start one stream of all queries, into which you push batches; see `sash.SharedStream`.

        With a `store` the state lives there under a `name`, as for `Query.stream`: a stream of that
        name continues from its last `sync`, and the store refuses another set of queries.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = sash.share({"q": q}).stream(lateness="5 seconds", mode="live")
        >>> s.state_size()
        {'keys': 0, 'slices': 0, 'bytes': 0}
        """
        from ..engine import oracle
        from ..engine.shared_stream import SharedStream

        given: dict[str, Any] = {"lateness": lateness, "mode": mode, "early": early}
        given |= {"schema": schema, "keep_late": keep_late}
        if store is None and name is None:
            return SharedStream(self, **given)
        if oracle.asked_for():
            raise ValueError("SASH_ORACLE=1 runs streams in memory alone: leave out store and name")
        from ..engine.stored_shared import open_shared

        return open_shared(SharedStream, self, store, name, trust, **given)  # type: ignore[arg-type]

    def explain(self, schema: Any = None, *, data: Any = None) -> SharedExplanation:
        """Explain what the queries share when they run over a table, why, and what it costs; see
        `sash.SharedExplanation`.

        `schema` is a pyarrow.Schema, or a table that has one.  `data` is a sample of some thousands
        of rows: `explain` runs the queries over it and measures the costs.  For a stream, call
        `shared.stream(…).explain()`.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> sash.share({"a": q, "b": q}).explain().bundles[0].shared
        {'count()': ('a.n', 'b.n')}
        """
        from ..explain.shared import explain_shared

        return explain_shared(self, schema, data)


def share(queries: Mapping[str, Query | Statement]) -> Shared:
    """Run several queries, or statements of SQL, with the same time column over one table or
    stream.

    >>> import sash
    >>> n = {"n": sash.count()}
    >>> fast = sash.Query(time="t", window=sash.sliding("1 hour", "1 minute"), select=n)
    >>> daily = sash.Query(time="t", window=sash.tumbling("1 day"), select=n)
    >>> sash.share({"fast": fast, "daily": daily}).plan.bundles[0].names
    ('fast', 'daily')
    """
    if isinstance(queries, Mapping) and any(hasattr(q, "query") for q in queries.values()):
        from ..sql.shared import SharedStatements

        return SharedStatements.of(queries)
    return Shared(queries)  # type: ignore[arg-type]
