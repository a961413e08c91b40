"""Small operations on runs of rows in numpy arrays."""

from __future__ import annotations

import numpy as np

from ..kernels.columns import Array

__all__ = [
    "Places",
    "in_pairs",
    "merged_ranges",
    "places_among",
    "ragged",
    "run_starts",
    "unique_pairs",
]


def ragged(starts: Array, counts: Array) -> Array:
    """The numbers from each start on, as many as its count says, one range after the other.

    >>> ragged(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    made: Array = np.arange(ends[-1] if len(ends) else 0)
    made += np.repeat(starts - (ends - counts), counts)
    return made


def run_starts(*columns: Array) -> Array:
    """Where runs of equal rows start.

    >>> run_starts(np.array([1, 1, 2, 2]), np.array([7, 7, 7, 8])).tolist()
    [0, 2, 3]
    """
    change = np.zeros(len(columns[0]), dtype=bool)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(change)


def unique_pairs(a: Array, b: Array) -> tuple[Array, Array]:
    """The distinct pairs of two columns, in order.

    >>> unique_pairs(np.array([2, 1, 2]), np.array([5, 9, 5]))
    (array([1, 2]), array([9, 5]))
    """
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    at = run_starts(a, b)
    return a[at], b[at]


def in_pairs(a: Array, b: Array, others: tuple[Array, Array]) -> Array:
    """True where a pair is one of the other pairs.

    >>> in_pairs(np.array([1, 1]), np.array([5, 6]), (np.array([1]), np.array([6])))
    array([False,  True])
    """
    ranks, at = np.unique(np.concatenate([b, others[1]]), return_inverse=True)
    flat = np.concatenate([a, others[0]]) * len(ranks) + at
    found: Array = np.isin(flat[: len(a)], flat[len(a) :])
    return found


def merged_ranges(owners: Array, lows: Array, highs: Array) -> tuple[Array, Array, Array]:
    """Merge the ranges of numbers, both ends inclusive, of one owner that overlap or touch.

    >>> merged_ranges(np.array([1, 1, 0]), np.array([4, 1, 1]), np.array([6, 3, 2]))
    (array([0, 1]), array([1, 1]), array([2, 6]))
    """
    if not len(owners):
        return owners, lows, highs
    order = np.lexsort((lows, owners))
    owners, lows, highs = owners[order], lows[order], highs[order]
    # The furthest end so far of the same owner: the ranks of an owner are above those of all owners
    # before.
    ends, ranks = np.unique(highs, return_inverse=True)
    reach = ends[np.maximum.accumulate(owners * len(ends) + ranks) % len(ends)]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (owners[1:] != owners[:-1]) | (lows[1:] > reach[:-1] + 1)
    at = np.flatnonzero(new)
    last = np.append(at[1:], len(order)) - 1
    return owners[at], lows[at], reach[last]


def places_among(many: Array, some: Array) -> Array:
    """The place of each number of `some` in `many`, whose numbers are distinct.

    >>> places_among(np.array([5, 9, 2]), np.array([2, 5]))
    array([2, 0])
    """
    order = np.argsort(many)
    return order[np.searchsorted(many[order], some)]


class Places:
    """Pairs of an owner and a number, in order, in which other pairs are looked up.

    >>> Places(np.array([0, 0, 2]), np.array([5, 9, 1])).find(np.array([0, 2]), np.array([6, 0]))
    array([1, 2])
    """

    def __init__(self, owners: Array, numbers: Array) -> None:
        # Turn a pair into one number, in the same order: with the number itself if that fits int64,
        # otherwise with its rank.
        self._low, self._high = int(numbers.min(initial=0)), int(numbers.max(initial=0)) + 1
        self._owners = int(owners.max(initial=-1)) + 1
        self._ranks: Array | None = None
        self._span = self._high - self._low + 1
        if (self._owners + 1) * self._span >= 2**63:
            self._ranks = np.unique(numbers)
            self._span = len(self._ranks) + 1
        self._flat = owners.astype(np.int64) * self._span + self._within(numbers)

    def find(self, owners: Array, numbers: Array) -> Array:
        """For each of these pairs the place of the first pair at or after it."""
        # numbers of groups are int32, which the product would overflow
        flat = owners.astype(np.int64) * self._span + self._within(numbers)
        end = self._owners * self._span
        return np.searchsorted(self._flat, np.where(owners < self._owners, flat, end))

    def _within(self, numbers: Array) -> Array:
        if self._ranks is not None:
            return np.searchsorted(self._ranks, numbers)
        within: Array = np.clip(numbers, self._low, self._high) - self._low
        return within
