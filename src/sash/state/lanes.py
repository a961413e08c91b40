"""Rows of all keys in a few columns.  A step reads and writes only the rows of the keys it touches.

    key 0    key 2       key 1   key 0 again
    [x x x]  [x x x x]   [x x]   [x x x x]          the earlier rows of key 0 are dead

A key's rows lie side by side, in order.  New rows of a key go to the end.  When there is no room,
the rows that are not dead move together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.columns import Array
from .ragged import ragged

__all__ = ["Lanes", "objects"]


def objects(items: Sequence[Any]) -> Array:
    """An array of Python objects, of any types."""
    return np.fromiter(items, dtype=object, count=len(items))


class Lanes:
    """Columns of rows, by the numbers of keys.

    >>> lanes = Lanes([np.zeros(0, np.int64)])
    >>> lanes.put(np.array([1, 0]), np.array([2, 1]), [np.array([5, 6, 7])])
    >>> counts, (column,) = lanes.get(np.array([0, 1, 2]))
    >>> counts, column
    (array([1, 2, 0]), array([7, 5, 6]))
    """

    def __init__(self, columns: Sequence[Array]) -> None:
        self._columns = [np.array(column) for column in columns]  # longer than `_used`
        self._used = self._live = 0
        self._starts = self._counts = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        """The number of rows of all keys."""
        return self._live

    def __deepcopy__(self, memo: Any) -> Lanes:
        """A copy with columns of its own; the objects in them never change."""
        made = Lanes(self._columns)
        made._used, made._live = self._used, self._live
        made._starts, made._counts = self._starts.copy(), self._counts.copy()
        return made

    def counts(self, numbers: Array) -> Array:
        """The number of rows of each of these keys."""
        self._make_room(numbers)
        return self._counts[numbers]

    def get(self, numbers: Array) -> tuple[Array, list[Array]]:
        """The rows of some keys: the number of each key's rows, and their columns."""
        counts = self.counts(numbers)
        at = ragged(self._starts[numbers], counts)
        return counts, [column[at] for column in self._columns]

    def put(self, numbers: Array, counts: Array, columns: Sequence[Array]) -> None:
        """Replace the rows of some keys."""
        self._live -= int(self.counts(numbers).sum())
        self._counts[numbers] = 0
        new = int(counts.sum())
        if self._used + new > len(self._columns[0]):
            self._gather(new)
        for column, given in zip(self._columns, columns, strict=True):
            column[self._used : self._used + new] = given
        self._starts[numbers] = self._used + np.cumsum(counts) - counts
        self._counts[numbers] = counts
        self._used += new
        self._live += new

    def _make_room(self, numbers: Array) -> None:
        """Make room for keys with these numbers."""
        most = int(numbers.max(initial=-1)) + 1
        if most > len(self._counts):
            more = np.zeros(max(most, 2 * len(self._counts)) - len(self._counts), dtype=np.int64)
            self._starts = np.append(self._starts, more)
            self._counts = np.append(self._counts, more)

    def _gather(self, new: int) -> None:
        """Move all rows together, with room for twice as many rows as these and `new` ones."""
        at = ragged(self._starts, self._counts)
        room = max(2 * (len(at) + new), 16)
        for i, column in enumerate(self._columns):
            made = np.empty((room, *column.shape[1:]), dtype=column.dtype)
            made[: len(at)] = column[at]
            self._columns[i] = made
        self._starts = np.cumsum(self._counts) - self._counts
        self._used = len(at)

    def held(self, column: int) -> tuple[Array, Array]:
        """A whole column, and the places in it that hold the rows of keys."""
        return self._columns[column], ragged(self._starts, self._counts)

    def renumber(self, kept: Array) -> None:
        """Renumber the keys; `kept` has the old number of each new number."""
        self._make_room(kept)
        self._starts, self._counts = self._starts[kept], self._counts[kept]
        self._live = int(self._counts.sum())

    def all(self, keys: int) -> tuple[Array, list[Array]]:
        """The rows of the keys with numbers below `keys`: the number of each key's rows, and their
        columns."""
        return self.get(np.arange(keys))

    def nbytes(self) -> int:
        """The bytes that the columns take."""
        return sum(column.nbytes for column in self._columns)
