"""A stream's second output: rows that missed windows or could not be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..windows import Sliding

__all__ = ["LateRows", "check_names"]

ALL = "all its windows were closed before it came"
SOME = "some of its windows were closed before it came"


#: Columns that a late row has besides those it came with.
ADDED = ("reason", "missed", "missed_first", "missed_last")


def check_names(names: list[str]) -> None:
    """Refuse a batch with columns that late rows have of their own."""
    for name in names:
        if name in ADDED:
            raise ValueError(
                f"late rows have a column {name!r} of their own besides those they came with; "
                f"rename or leave out the batch's column {name!r}"
            )


class LateRows:
    """Late rows, kept until they are taken off.

    To the columns a row came with are added the reason, how many windows it missed, and the starts
    of the first and the last of them (there are none that it did not miss in between).
    """

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self.count = 0  # of all rows that ever came here

    def note(
        self,
        table: pa.Table,
        times: Array,
        reasons: dict[int, str],
        window: Sliding,
        watermark: int | None,
    ) -> None:
        """Of a batch, the rows that cannot be used, and why; and of the others those of which some
        or all windows are closed."""
        if reasons:
            rows = np.array(list(reasons), dtype=np.int64)
            none = np.zeros(len(rows), dtype=np.int64)
            self._add(table, rows, list(reasons.values()), none, none - 1, 1)
        if watermark is not None:
            old = np.flatnonzero(times < watermark)  # from it on, no window is closed
            self._miss(table, np.setdiff1d(old, list(reasons)), times, window, watermark)

    def _miss(
        self, table: pa.Table, rows: Array, times: Array, window: Sliding, watermark: int
    ) -> None:
        first, last = window.first_of(times[rows]), window.last_of(times[rows])
        missed = first + window.size <= watermark
        rows, first, last = rows[missed], first[missed], last[missed]
        if not len(rows):
            return
        gone = last + window.size <= watermark
        last = np.minimum(last, window.first_of(watermark) - window.every)
        why = [ALL if g else SOME for g in gone.tolist()]
        self._add(table, rows, why, first, last, window.every)

    def _add(
        self,
        table: pa.Table,
        rows: Array,
        reasons: list[str],
        first: Array,
        last: Array,
        every: int,
    ) -> None:
        missed = (last - first) // every + 1
        none = missed == 0
        made = table.take(pa.array(rows))
        for name, column in _more(
            pa.array(reasons, pa.string()),
            pa.array(missed),
            pa.array(first, mask=none),
            pa.array(last, mask=none),
        ).items():
            made = made.append_column(name, column)
        self._parts.append(made)
        self.count += len(rows)

    def table(self) -> pa.Table:
        """All rows that are here."""
        if len(self._parts) > 1:
            try:
                made = pa.concat_tables(self._parts, promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid):  # columns of one name, and two types
                made = pa.concat_tables(_alike(self._parts), promote_options="permissive")
            self._parts = [made]
        if self._parts:
            return self._parts[0]
        none = pa.array([], pa.int64())
        return pa.table(_more(pa.array([], pa.string()), none, none, none))

    def take(self) -> pa.Table:
        """All rows that are here, which are then taken off."""
        taken = self.table()
        self._parts = []
        return taken

    def restore(self, rows: pa.Table, count: int) -> None:
        """Have these rows again."""
        self._parts, self.count = [rows] if rows.num_rows else [], count


def _alike(parts: list[pa.Table]) -> list[pa.Table]:
    """Tables with columns as text where they have different types."""
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


def _more(
    reason: pa.Array, missed: pa.Array, first: pa.Array, last: pa.Array
) -> dict[str, pa.Array]:
    return dict(zip(ADDED, (reason, missed, first, last), strict=True))
