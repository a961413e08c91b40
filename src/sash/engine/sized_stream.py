"""A stream of one aligned query with aggregates of several sizes: a bundle of one query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..query.query import Query
from ..query.signatures import Mode
from .asked import refuse_at
from .bundle_stream import BundleStream
from .bundles import ALONE, bundle_alone
from .identity import fingerprint
from .late import LATE_LIMIT, LateOutput, late_table
from .turns import in_turn

__all__ = ["SizedStream"]


class SizedStream(BundleStream):
    """A stream that keeps one copy of the slices for all sizes."""

    def __init__(
        self,
        query: Query,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
        keep_late: int | None = LATE_LIMIT,
    ) -> None:
        late = LateOutput(keep_late)
        super().__init__(
            bundle_alone(query),
            late=late,
            lateness=lateness,
            mode=mode,
            early=early,
            schema=schema,
        )
        self._fingerprint = fingerprint(query)

    def _as_given(self) -> Query:
        return self._bundle.queries[ALONE]

    def _add_late(self, table: pa.Table, outcome: Any) -> None:
        late, plan = outcome[ALONE].late, self._made.plans[ALONE]
        if len(late.rows):
            self._late.keep(late_table(table, late, plan.query.aligned, plan.time_type))

    def _as_pushed(self, outcome: Any) -> Any:
        made = super()._as_pushed(outcome)[ALONE]
        if isinstance(self._nothing, dict):
            self._nothing = self._nothing[ALONE]
        return made

    @in_turn
    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The values over the times `[lo, hi)` of one key; see `Stream.query`."""
        refuse_at(self._query, at)
        return self.ask(ALONE, key, lo, hi)
