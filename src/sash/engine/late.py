"""Late rows: rows that missed some or all of their windows, or that cannot be used, with the
reason."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.outside import level_outside
from ..tables.arrow import as_time, times_of
from ..windows import Aligned
from ..windows.contract import UTC, Clock

__all__ = [
    "ADDED",
    "ALL_CLOSED",
    "LATE_LIMIT",
    "SOME_CLOSED",
    "Late",
    "LateOutput",
    "Spanned",
    "check_names",
    "joined_late",
    "late_rows",
    "late_table",
    "refused_times",
]

ALL_CLOSED = "all its windows were closed before it came"
SOME_CLOSED = "some of its windows were closed before it came"

#: How many late rows a stream keeps by default.
LATE_LIMIT = 1_000_000

#: The columns that a late row has besides its own.
ADDED = ("reason", "missed", "missed_start", "missed_end")


class Spanned(Protocol):
    """Numbered windows with starts and ends."""

    def start(self, n: Any) -> Any:
        """The times at which windows start, by number."""

    def end(self, n: Any) -> Any:
        """The times at which windows end, by number."""


@dataclass
class Late:
    """The late rows of a batch, in its order: their places, the reasons, a mask of those that are
    in no window at all (`lost`), and the numbers of the first and last window that each missed.
    A row missed all windows between these two as well.  For a row that cannot be used, the last
    is before the first."""

    rows: Array
    reasons: list[str]
    lost: Array
    first: Array
    last: Array

    @classmethod
    def none(cls) -> Late:
        """No late rows."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, [], empty.astype(bool), empty, empty)

    @property
    def missed(self) -> Array:
        """How many windows each row missed."""
        return self.last - self.first + 1

    def spans(self, window: Spanned, time: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """For each row, the start of the first window that it missed, and the end of the last; null
        for a row that cannot be used."""
        none = pa.array(self.missed == 0)
        edges = (window.start(self.first), window.end(np.maximum(self.last, self.first)))
        start, end = (as_time(edge, time) for edge in edges)
        return (
            pa.compute.if_else(none, pa.scalar(None, start.type), start),
            pa.compute.if_else(none, pa.scalar(None, end.type), end),
        )


def refused_times(
    column: pa.Array, refused: dict[int, str], clock: Clock = UTC
) -> tuple[Array, dict[int, str]]:
    """The times of a column, and reasons by row for those that cannot be used: the rows in
    `refused`, and rows with unusable times."""
    times, unusable = times_of(column, clock)
    why = {
        row: f"its time is {clock.beyond if column[row].is_valid else 'null'}"
        for row in np.flatnonzero(unusable).tolist()
    }
    return times, why | refused


def late_rows(
    window: Aligned, watermark: int | None, times: Array, refused: dict[int, str]
) -> tuple[Array, Late]:
    """Judge rows by the watermark: a mask of the rows that are in an open window, and the late
    rows."""
    usable = np.ones(len(times), dtype=bool)
    if not refused and (watermark is None or not len(times) or times.min() >= watermark):
        return usable, Late.none()  # from the watermark on, no window is closed
    usable[list(refused)] = False
    reasons = dict(refused)
    first, last = np.zeros(len(times), np.int64), np.full(len(times), -1, np.int64)
    if watermark is not None:
        opened = window.first(watermark)
        old = np.flatnonzero(usable & (times < watermark))
        begin, end = window.first(times[old]), window.last(times[old])
        late = begin < opened
        old, begin, end = old[late], begin[late], end[late]
        first[old], last[old] = begin, np.minimum(end, opened - 1)
        gone = end < opened
        usable[old] = ~gone
        reasons |= dict.fromkeys(old[gone].tolist(), ALL_CLOSED)
        reasons |= dict.fromkeys(old[~gone].tolist(), SOME_CLOSED)
    rows = np.array(sorted(reasons), dtype=np.int64)
    why = [reasons[row] for row in rows.tolist()]
    return usable, Late(rows, why, ~usable[rows], first[rows], last[rows])


def check_names(names: list[str], added: Sequence[str] = ADDED) -> None:
    """Refuse a batch with a column named like one that late rows get."""
    for name in names:
        if name in added:
            raise ValueError(
                f"late rows have a column {name!r} of their own besides those they came with; "
                f"rename or leave out the batch's column {name!r}"
            )


def late_table(batch: pa.Table, late: Late, window: Spanned, time: pa.DataType) -> pa.Table:
    """The table of a batch's late rows, with the reason and the missed windows of each."""
    there = np.zeros(batch.num_rows, dtype=bool)
    there[late.rows] = True
    # not `take`, which unites the dictionaries of all chunks, and so may fail
    made = batch.filter(pa.array(there)).replace_schema_metadata(None)
    start, end = late.spans(window, time)
    added = (pa.array(late.reasons, pa.string()), pa.array(late.missed), start, end)
    for name, column in zip(ADDED, added, strict=True):
        made = made.append_column(name, column)
    return made


class LateOutput:
    """A stream's second output: it keeps late rows until the caller takes them.

    It keeps at most the newest `limit` rows; `dropped` counts the rows that it dropped unread.
    """

    added: tuple[str, ...] = ADDED  # the columns that a late row has besides its own

    def __init__(self, limit: int | None = LATE_LIMIT) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise TypeError(f"keep_late is a number of rows, or None for all, not {limit!r}")
        if limit is not None and limit < 0:
            raise ValueError(f"keep_late is a number of rows from 0 on, not {limit}")
        self._parts: list[pa.Table] = []
        self.limit = limit
        self.dropped = 0
        self._said = 0  # how many dropped rows the user was warned of

    def __deepcopy__(self, memo: Any) -> LateOutput:
        """A copy with its own list; the tables in it never change."""
        made = LateOutput(self.limit)
        made._parts, made.dropped, made._said = list(self._parts), self.dropped, self._said
        return made

    def add(self, batch: pa.Table, late: Late, window: Spanned, time: pa.DataType) -> None:
        """Keep the late rows of a batch, with the reason and the missed windows of each."""
        if len(late.rows):
            self.keep(late_table(batch, late, window, time))

    def keep(self, rows: pa.Table) -> None:
        """Keep late rows that already have the columns `ADDED`."""
        self._parts.append(rows)
        self._drop()

    def _drop(self) -> None:
        """Drop the oldest rows beyond the limit."""
        if self.limit is None:
            return
        over = sum(part.num_rows for part in self._parts) - self.limit
        if over <= 0:
            return
        self.dropped += over
        while over > 0:
            first = self._parts[0].num_rows
            if first <= over:
                del self._parts[0]
            else:
                self._parts[0] = self._parts[0].slice(over)
            over -= first

    @property
    def unsaid(self) -> bool:
        """True if there are dropped rows that the user was not warned of."""
        return self.dropped > self._said

    def warn(self) -> None:
        """Warn of dropped rows; as a warning may raise, callers do this at the end of a call."""
        self._said = self.dropped
        warnings.warn(
            f"a stream keeps {self.limit:,} late rows, and {self.dropped:,} older ones left its "
            "late output unread; take them out in time with stream.take_late(), or keep more with "
            "keep_late=…",
            RuntimeWarning,
            stacklevel=level_outside(),
        )

    def table(self, time: pa.DataType | None) -> pa.Table:
        """All kept rows."""
        if len(self._parts) > 1:
            self._parts = [joined_late(self._parts)]
        if self._parts:
            return self._parts[0]
        edge = as_time(np.zeros(0, np.int64), time or pa.int64())
        none = (pa.array([], pa.string()), pa.array([], pa.int64()), edge, edge)
        return pa.table(dict(zip(ADDED, none, strict=True)))

    def take(self, time: pa.DataType | None) -> pa.Table:
        """Remove and return all kept rows."""
        taken = self.table(time)
        self._parts = []
        return taken

    def load(self, rows: pa.Table, dropped: int) -> None:
        """Replace the kept rows, and the count of dropped rows."""
        self._parts = [rows] if rows.num_rows else []
        self.dropped = self._said = dropped


def joined_late(parts: list[pa.Table]) -> pa.Table:
    """Join tables of late rows.  A column that has types without a common type becomes text."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.concat_tables(_as_text(parts), promote_options="permissive")


def _as_text(parts: list[pa.Table]) -> list[pa.Table]:
    """The tables, with each column that has different types in them as text."""
    types: dict[str, set[Any]] = {}
    for field in (f for part in parts for f in part.schema):
        types.setdefault(field.name, set()).add(field.type)
    made = []
    for part in parts:
        for i, name in enumerate(part.column_names):
            if len(types[name]) > 1:
                items = [None if x is None else str(x) for x in part.column(i).to_pylist()]
                part = part.set_column(i, name, pa.array(items, pa.string()))
        made.append(part)
    return made
