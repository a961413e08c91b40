"""Late rows of several queries: each names the queries whose windows it missed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import pyarrow as pa

from .late import ADDED, LateOutput

__all__ = ["QUERIES", "NamedLate", "check_no_queries", "named"]

#: The column with the names of the queries.
QUERIES = "queries"


def named(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Late rows, with the names of the queries for which they are late."""
    each = pa.array([list(names)], pa.list_(pa.string()))
    return rows.append_column(QUERIES, each.take(pa.array([0] * rows.num_rows, pa.int64())))


def check_no_queries(batch: Any) -> None:
    """Refuse a batch that already has the column `queries`."""
    have: Any = ()
    if isinstance(batch, Mapping):
        have = batch
    elif isinstance(batch, list):
        have = [QUERIES] if any(isinstance(e, Mapping) and QUERIES in e for e in batch) else ()
    elif hasattr(batch, "collect_schema"):  # a frame of Polars, which may be lazy
        have = list(batch.collect_schema())
    else:
        found = getattr(batch, "column_names", None) or getattr(batch, "columns", ())
        have = list(found) if isinstance(found, Iterable) else ()  # an index, in pandas
    if QUERIES in have:
        raise ValueError(
            f"late rows of shared queries have a column {QUERIES!r} of their own; rename or leave "
            f"out the batch's column {QUERIES!r}"
        )


class NamedLate(LateOutput):
    """The late output of some queries, which passes its rows on to the output of all queries."""

    added = (*ADDED, QUERIES)

    def __init__(self, into: LateOutput, names: Sequence[str]) -> None:
        super().__init__(None)
        self.into, self._names = into, tuple(names)

    def __deepcopy__(self, memo: Any) -> NamedLate:
        """A copy that passes rows on to a copy of the output."""
        return NamedLate(deepcopy(self.into, memo), self._names)

    def keep(self, rows: pa.Table) -> None:
        """Keep late rows in the output of all queries."""
        self.into.keep(named(rows, self._names))

    def load(self, rows: pa.Table, dropped: int) -> None:
        """Do nothing: the output of all queries has the rows."""
