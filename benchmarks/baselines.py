"""What one would do without an out-of-order aggregator, and what the papers compare with.

Both are plain numba on float64, with the operator compiled in, and take a time a value.  They are
for operators that commute: the tree's root is taken for the answer even where the ring wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit

__all__ = ["FlatFatInPlace", "TwoStacksRecomputed"]

START, MID, END = 0, 1, 2  # of two stacks
OLDEST, NEWEST = 0, 1  # of the tree

COMBINES = {
    "sum": (0.0, lambda a, b: a + b),
    "max": (-np.inf, lambda a, b: a if a > b else b),
}


class TwoStacksRecomputed:
    """Two stacks in one array in order of time; a late value is put in its place, and the
    aggregates that it is part of are made anew: O(n)."""

    def __init__(self, operator: str, room: int) -> None:
        self._run = _two_stacks(operator)
        self._at = np.zeros(3, dtype=np.int64)
        self._times = np.empty(4 * room, dtype=np.int64)
        self._values, self._aggregates = np.empty(4 * room), np.empty(4 * room)
        self._all = (self._at, self._times, self._values, self._aggregates)

    def insert(self, time: int, value: float) -> None:
        self._run.insert(*self._all, time, value)

    def evict(self, time: int) -> None:
        self._run.evict(*self._all, time)

    def query(self) -> float:
        return self._run.query(*self._all)

    def bulk_insert(self, times: Any, values: Any) -> None:
        self.slide(times, values, span=1 << 62)

    def slide(self, times: Any, values: Any, *, span: int) -> Any:
        return self._run.slide(*self._all, times, values, span)


class FlatFatInPlace:
    """A complete binary tree with a leaf for each unit of time, as a ring; every change updates
    the path to the root: O(log n)."""

    def __init__(self, operator: str, room: int) -> None:
        self._run = _flat_fat(operator)
        self._at = np.array([0, -1], dtype=np.int64)
        self._tree = np.full(2 * room, COMBINES[operator][0])

    def insert(self, time: int, value: float) -> None:
        self._run.insert(self._at, self._tree, time, value)

    def evict(self, time: int) -> None:
        self._run.evict(self._at, self._tree, time)

    def query(self) -> float:
        return float(self._tree[1])

    def bulk_insert(self, times: Any, values: Any) -> None:
        self.slide(times, values, span=len(self._tree) // 2 - 1)

    def slide(self, times: Any, values: Any, *, span: int) -> Any:
        return self._run.slide(self._at, self._tree, times, values, span)


@cache
def _two_stacks(operator: str) -> SimpleNamespace:
    identity, written = COMBINES[operator]
    combine: Callable[..., Any] = njit(inline="always")(written)

    @njit
    def find(at, times, t):  # type: ignore[no-untyped-def]
        """The first position that is not before t."""
        low, high = at[START], at[END]
        while low < high:
            middle = (low + high) >> 1
            if times[middle] < t:
                low = middle + 1
            else:
                high = middle
        return low

    @njit
    def make_room(at, times, values, aggregates):  # type: ignore[no-untyped-def]
        """Back to the front of the array."""
        start, n = at[START], at[END] - at[START]
        for i in range(n):
            times[i] = times[start + i]
            values[i] = values[start + i]
            aggregates[i] = aggregates[start + i]
        at[START], at[MID], at[END] = 0, at[MID] - start, n

    @njit
    def restack(at, values, aggregates, i):  # type: ignore[no-untyped-def]
        """Make the aggregates anew that what is at i is part of."""
        if i < at[MID]:
            for k in range(i, at[START] - 1, -1):
                if k + 1 == at[MID]:
                    aggregates[k] = values[k]
                else:
                    aggregates[k] = combine(values[k], aggregates[k + 1])
        else:
            for k in range(i, at[END]):
                if k == at[MID]:
                    aggregates[k] = values[k]
                else:
                    aggregates[k] = combine(aggregates[k - 1], values[k])

    @njit
    def insert(at, times, values, aggregates, t, value):  # type: ignore[no-untyped-def]
        if at[END] == len(times):
            make_room(at, times, values, aggregates)
        i = at[END]
        if i > at[START] and t < times[i - 1]:
            i = find(at, times, t)
            for k in range(at[END], i, -1):
                times[k] = times[k - 1]
                values[k] = values[k - 1]
                aggregates[k] = aggregates[k - 1]
            if i < at[MID]:
                at[MID] += 1
        times[i] = t
        values[i] = value
        at[END] += 1
        restack(at, values, aggregates, i)

    @njit
    def evict_oldest(at, values, aggregates):  # type: ignore[no-untyped-def]
        if at[START] == at[MID]:
            at[MID] = at[END]
            restack(at, values, aggregates, at[END] - 1)
        at[START] += 1

    @njit
    def evict(at, times, values, aggregates, t):  # type: ignore[no-untyped-def]
        i = find(at, times, t)
        if i == at[END] or times[i] != t:
            return
        if i == at[START]:
            evict_oldest(at, values, aggregates)
            return
        for k in range(i, at[END] - 1):
            times[k] = times[k + 1]
            values[k] = values[k + 1]
            aggregates[k] = aggregates[k + 1]
        at[END] -= 1
        if i < at[MID]:
            at[MID] -= 1
            restack(at, values, aggregates, i - 1)
        else:
            restack(at, values, aggregates, i)

    @njit
    def query(at, times, values, aggregates):  # type: ignore[no-untyped-def]
        found = identity
        if at[START] < at[MID]:
            found = aggregates[at[START]]
        if at[MID] < at[END]:
            found = combine(found, aggregates[at[END] - 1])
        return found

    @njit
    def slide(at, times, values, aggregates, when, given, span):  # type: ignore[no-untyped-def]
        answers = np.empty(len(when))
        for row in range(len(when)):
            insert(at, times, values, aggregates, when[row], given[row])
            while times[at[START]] < times[at[END] - 1] - span:
                evict_oldest(at, values, aggregates)
            answers[row] = query(at, times, values, aggregates)
        return answers

    return SimpleNamespace(insert=insert, evict=evict, query=query, slide=slide)


@cache
def _flat_fat(operator: str) -> SimpleNamespace:
    identity, written = COMBINES[operator]
    combine: Callable[..., Any] = njit(inline="always")(written)

    @njit
    def write(tree, t, value):  # type: ignore[no-untyped-def]
        """Set the leaf of a time, and all above it."""
        room = len(tree) >> 1
        v = room + (t & (room - 1))
        tree[v] = value
        while v > 1:
            v >>= 1
            tree[v] = combine(tree[2 * v], tree[2 * v + 1])

    @njit
    def insert(at, tree, t, value):  # type: ignore[no-untyped-def]
        if t > at[NEWEST]:
            at[NEWEST] = t
        room = len(tree) >> 1
        write(tree, t, combine(tree[room + (t & (room - 1))], value))

    @njit
    def evict(at, tree, t):  # type: ignore[no-untyped-def]
        write(tree, t, identity)

    @njit
    def slide(at, tree, when, given, span):  # type: ignore[no-untyped-def]
        answers = np.empty(len(when))
        for row in range(len(when)):
            t = when[row]
            while at[OLDEST] < t - span:  # before its place in the ring is taken again
                evict(at, tree, at[OLDEST])
                at[OLDEST] += 1
            insert(at, tree, t, given[row])
            answers[row] = tree[1]
        return answers

    return SimpleNamespace(insert=insert, evict=evict, slide=slide)
