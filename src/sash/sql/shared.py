"""Statements of SQL that share slices over one table or stream: `sash.share`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..query.query import Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..stores.contract import Store
from ..tables.arrow import as_arrow, as_given, kind_of
from .statement import Statement

if TYPE_CHECKING:
    from ..explain.shared import SharedExplanation
    from .shared_stream import SharedSqlStream

__all__ = ["SharedStatements"]


@dataclass(frozen=True)
class SharedStatements(Shared):
    """Queries and statements over the same events; `sash.share` builds it.

    If statements compute the same columns before their queries, sash computes them once.

    >>> import sash
    >>> text = "SELECT max(2 * x) AS m FROM t GROUP BY window(t, '{} microseconds')"
    >>> both = sash.share({"fast": sash.sql(text.format(2)), "slow": sash.sql(text.format(10))})
    >>> found = both.run({"t": [1, 2, 6], "x": [5, 3, 4]})
    >>> found["fast"]["m"].to_pylist(), found["slow"]["m"].to_pylist()
    ([10, 6, 8], [10])
    """

    given: Mapping[str, Query | Statement] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SharedStatements:
        """Let queries and statements share a table or stream."""
        inner = {n: q.query if isinstance(q, Statement) else q for n, q in given.items()}
        return cls(inner, dict(given))

    @property
    def _statements(self) -> dict[str, Statement]:
        return {n: q for n, q in self.given.items() if isinstance(q, Statement)}

    def _check(self) -> None:
        """Refuse statements that compute different columns of one name, because `run` puts them
        into one table.  In a stream each statement has its own columns, unless all computed columns
        are equal."""
        known: dict[str, tuple[str, Any]] = {}
        for name, statement in self._statements.items():
            for column, expression in statement.computed.items():
                other, before = known.setdefault(column, (name, expression))
                if before != expression:
                    raise ValueError(
                        f"statements {other!r} and {name!r} compute different columns that would "
                        f"both be called {column!r}; write one of the expressions in another way"
                    )

    def run(self, table: Any, *, threads: int | None = None) -> dict[str, Any]:
        """Run each query and statement over a whole table; returns the results by name."""
        computed = {name for s in self._statements.values() for name in s.computed}
        found = super().run(self._prepared(table), threads=threads)
        made = {}
        for name, result in found.items():
            given = self.given[name]
            if isinstance(given, Statement):
                made[name] = given.projected(result, table, hidden=computed)
            else:
                kept = [n for n in result.column_names if n not in computed]
                made[name] = as_given(result.select(kept), kind_of(table))
        return made

    def _prepared(self, table: Any) -> pa.Table:
        """The table for the queries, with all columns that the statements compute."""
        self._check()
        raw = as_arrow(table)
        columns = dict(zip(raw.column_names, raw.columns, strict=True))
        for statement in self._statements.values():
            ready = statement.prepared(raw)
            columns |= dict(zip(ready.column_names, ready.columns, strict=True))
        return pa.table(columns)

    def stream(  # type: ignore[override]
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
    ) -> SharedSqlStream:
        """Start one stream of all statements and queries, into which you push batches; see
        `sash.SharedSqlStream`.

        >>> import sash
        >>> s = sash.sql("SELECT max(x) AS m FROM t GROUP BY window(t, '1 hour')")
        >>> sash.share({"s": s}).stream(lateness="1 minute").state_size()
        {'keys': 0, 'slices': 0, 'bytes': 0}
        """
        from .shared_stream import SharedSqlStream

        if store is not None or name is not None:
            raise ValueError(
                "statements of SQL that share a stream keep their state in memory: leave out store "
                "and name, or share their queries: sash.share({'a': a.query, 'b': b.query})"
            )
        return SharedSqlStream(
            self, lateness=lateness, mode=mode, early=early, schema=schema, keep_late=keep_late
        )

    def explain(self, schema: Any = None, *, data: Any = None) -> SharedExplanation:
        """Explain what the queries share when they run over a table, like `Shared.explain`.

        >>> import sash
        >>> text = "SELECT max(2 * x) AS m FROM t GROUP BY window(t, '{}')"
        >>> both = {"a": sash.sql(text.format("1 hour")), "b": sash.sql(text.format("2 hours"))}
        >>> sash.share(both).explain({"t": [1], "x": [1]}).bundles[0].names
        ('a', 'b')
        """
        if schema is not None:
            given = schema if isinstance(schema, pa.Schema) else as_arrow(schema).schema
            schema = self._prepared(given.empty_table()).schema
        return super().explain(schema, data=None if data is None else self._prepared(data))
