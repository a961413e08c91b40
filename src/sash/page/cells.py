"""The cells of the heat map: all revisions of a value for each key and window, as columns.

    key   start   revision   value
      0   10:00          0      12      a cell: the rows of one key and start, by revision
      0   10:00          1      15
      0   10:01          0       9

A job emits many rows between two looks at the map, so numpy sorts them, and no row becomes a Python
object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..kernels.columns import Array

__all__ = ["Cells"]

#: The number of revisions that a cell keeps.
REVISIONS = 20


class Cells:
    """Revisions of cells, ordered by key, start and revision."""

    def __init__(self) -> None:
        whole = np.zeros(0, np.int64)
        self.keys, self.starts, self.revisions = whole, whole, whole
        self.values = np.zeros(0)  # NaN stands for none
        self._last = np.zeros(0, bool)

    def add(self, keys: Array, starts: Array, revisions: Array, values: Array) -> None:
        """Add rows in order of arrival; a repeated revision replaces the earlier one."""
        self.keys = np.concatenate([self.keys, keys])
        self.starts = np.concatenate([self.starts, starts])
        self.revisions = np.concatenate([self.revisions, revisions])
        self.values = np.concatenate([self.values, values])
        self._take(np.lexsort((self.revisions, self.starts, self.keys)))
        next_cell = self._is_next(self.keys, self.starts)
        self._take(np.flatnonzero(next_cell | self._is_next(self.revisions)))
        self._last = self._is_next(self.keys, self.starts)
        ends = np.flatnonzero(self._last)
        to_end = ends[np.cumsum(self._last) - self._last] - np.arange(len(self.keys))
        if len(to_end) and to_end.max() >= REVISIONS:
            kept = to_end < REVISIONS
            self._take(np.flatnonzero(kept))
            self._last = self._last[kept]

    @staticmethod
    def _is_next(*columns: Array) -> Array:
        """True for each row whose successor has other values in the columns, and for the last
        row."""
        made = np.zeros(len(columns[0]), bool)
        for column in columns:
            made[:-1] |= column[1:] != column[:-1]
        made[-1:] = True
        return made

    def keep(self, first: int, keys: Array) -> None:
        """Drop windows that start before a time, and all keys but some."""
        kept = (self.starts >= first) & np.isin(self.keys, keys)
        if not kept.all():
            self._take(np.flatnonzero(kept))
            self._last = self._is_next(self.keys, self.starts)

    def _take(self, rows: Array) -> None:
        self.keys, self.starts = self.keys[rows], self.starts[rows]
        self.revisions, self.values = self.revisions[rows], self.values[rows]

    def sizes(self, many: int) -> Array:
        """For each key below a number, the sum of the absolute values that its cells show."""
        shown = np.abs(np.nan_to_num(self.values[self._last]))
        return np.bincount(self.keys[self._last], shown, many)

    def shown(self, keys: Array, starts: Array) -> tuple[Array, Array]:
        """The last values of some keys and windows (NaN for none), and whether each was
        corrected."""
        values = np.full((len(keys), len(starts)), np.nan)
        order = np.argsort(keys)
        rows = np.flatnonzero(self._last & np.isin(self.keys, keys))
        i = order[np.searchsorted(keys, self.keys[rows], sorter=order)]
        j = np.searchsorted(starts, self.starts[rows])
        values[i, j] = self.values[rows]
        again = self.revisions[rows] > 0
        corrected = np.stack([i[again], j[again]], axis=1)
        return values, corrected[np.lexsort((corrected[:, 1], corrected[:, 0]))]

    def of(self, key: int, start: int) -> list[tuple[int, float | None]]:
        """The revisions of a cell and their values; empty if there is no such cell."""
        rows = np.flatnonzero((self.keys == key) & (self.starts == start))
        values = [None if value != value else value for value in self.values[rows].tolist()]
        return list(zip(self.revisions[rows].tolist(), values, strict=True))
