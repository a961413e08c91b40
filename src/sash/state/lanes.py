"""Rows of all keys in a few columns, where a step reads and writes those of the keys it touches.

    key 0    key 2       key 1   key 0 again
    [x x x]  [x x x x]   [x x]   [x x x x]          the rows that key 0 had before are dead

A key's rows lie side by side, in order.  Those that it gets anew go to the end; when there is no
room, the rows that are not dead move together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.columns import Array
from .ragged import ragged

__all__ = ["Lanes", "objects"]


def objects(items: Sequence[Any]) -> Array:
    """Python objects as an array, whatever they are."""
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
        self._columns = [np.array(column) for column in columns]  # longer than what is used
        self._used = self._live = 0
        self._starts = self._counts = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        """How many rows there are."""
        return self._live

    def __deepcopy__(self, memo: Any) -> Lanes:
        """The same with columns of its own; what is in them never changes."""
        made = Lanes(self._columns)
        made._used, made._live = self._used, self._live
        made._starts, made._counts = self._starts.copy(), self._counts.copy()
        return made

    def counts(self, numbers: Array) -> Array:
        """How many rows each of these keys has."""
        self._make_room(numbers)
        return self._counts[numbers]

    def get(self, numbers: Array) -> tuple[Array, list[Array]]:
        """The rows of some keys: how many each has, and their columns."""
        counts = self.counts(numbers)
        at = ragged(self._starts[numbers], counts)
        return counts, [column[at] for column in self._columns]

    def put(self, numbers: Array, counts: Array, columns: Sequence[Array]) -> None:
        """Give rows to keys, instead of those that they have."""
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
        """Have a place for each number."""
        most = int(numbers.max(initial=-1)) + 1
        if most > len(self._counts):
            more = np.zeros(max(most, 2 * len(self._counts)) - len(self._counts), dtype=np.int64)
            self._starts = np.append(self._starts, more)
            self._counts = np.append(self._counts, more)

    def _gather(self, new: int) -> None:
        """Move all rows together, with room for as many more, and for the new ones."""
        at = ragged(self._starts, self._counts)
        room = max(2 * (len(at) + new), 16)
        for i, column in enumerate(self._columns):
            made = np.empty((room, *column.shape[1:]), dtype=column.dtype)
            made[: len(at)] = column[at]
            self._columns[i] = made
        self._starts = np.cumsum(self._counts) - self._counts
        self._used = len(at)

    def held(self, column: int) -> tuple[Array, Array]:
        """A whole column, and the places of the rows there that keys have."""
        return self._columns[column], ragged(self._starts, self._counts)

    def renumber(self, kept: Array) -> None:
        """The keys have new numbers: the old ones by the new ones."""
        self._make_room(kept)
        self._starts, self._counts = self._starts[kept], self._counts[kept]
        self._live = int(self._counts.sum())

    def all(self, keys: int) -> tuple[Array, list[Array]]:
        """How many rows each of so many keys has, by its number, and their columns."""
        return self.get(np.arange(keys))

    def nbytes(self) -> int:
        """How many bytes the columns take."""
        return sum(column.nbytes for column in self._columns)
