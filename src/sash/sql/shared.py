"""Statements of SQL that share what they can over one table or stream: `sash.share`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..engine.shared_stream import SharedStream
from ..query.query import Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..stores.contract import Store
from ..tables.arrow import as_arrow, as_given, kind_of
from .statement import Statement

__all__ = ["SharedStatements"]


@dataclass(frozen=True)
class SharedStatements(Shared):
    """Queries and statements over the same events; made by `sash.share`.

    The columns that statements compute before their queries are computed once if they are the same.

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
        """What some queries and statements share."""
        inner = {n: q.query if isinstance(q, Statement) else q for n, q in given.items()}
        made = cls(inner, dict(given))
        made._check()
        return made

    @property
    def _statements(self) -> dict[str, Statement]:
        return {n: q for n, q in self.given.items() if isinstance(q, Statement)}

    def _check(self) -> None:
        """Refuse statements that compute different things under one name."""
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
        """The results of each query and statement over a whole table, by name."""
        raw = as_arrow(table)
        columns = dict(zip(raw.column_names, raw.columns, strict=True))
        computed: set[str] = set()
        for statement in self._statements.values():
            ready = statement.prepared(raw)
            columns |= dict(zip(ready.column_names, ready.columns, strict=True))
            computed |= {*statement.computed}
        found = super().run(pa.table(columns), threads=threads)
        made = {}
        for name, result in found.items():
            given = self.given[name]
            if isinstance(given, Statement):
                made[name] = given.projected(result, table, hidden=computed)
            else:
                kept = [n for n in result.column_names if n not in computed]
                made[name] = as_given(result.select(kept), kind_of(table))
        return made

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
        """Streams of statements do not share: a row for which an expression of one fails would be
        late for the others, too."""
        raise ValueError(
            "statements of SQL share tables, and not streams; start a stream of each, or share "
            "their queries: sash.share({'a': a.query, 'b': b.query})"
        )
