"""The edges of aligned windows, numbered: where a stream is cut into slices.

An edge is a time at which a window starts or ends.  All events between two neighbouring edges are
in the same windows, so sash keeps them as one partial: a slice.  A slice has the number of the edge
at which it starts.  Tiles in a store, stretches of a Spark batch and the slices that Spark itself
computes all use these numbers.

If `every` divides the size, each end of a sliding window is also a start, and each slide is one
slice (panes: Li et al., SIGMOD Record 2005); otherwise each slide is two slices (pairs:
Krishnamurthy, Wu, Franklin, SIGMOD 2006):

    sliding(5, 2)      0   1   2   3   4   5   6   7
                       [-------------------)
                               [-------------------)
                       |   |   |   |   |   |   |   |     ends at odd times, starts at even ones

The edges of calendar windows repeat in readings of the calendar's clock (`windows.contract.Clock`);
`OnClock` converts between readings and times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from math import gcd, lcm
from typing import Any

import numpy as np

from ..windows.contract import PLAIN, UTC, Aligned, Arithmetic, Clock
from ..windows.months import Months

__all__ = [
    "Edges",
    "Listed",
    "OnClock",
    "Periodic",
    "Union",
    "cuts_of",
    "edges_of",
    "starts_of",
    "union",
    "written_out",
]

#: A union with more edges in its cycle than this is not listed.
_MOST = 4096
_FAR = 2**61
_AT_ONCE = 1 << 16  # divisions at once, in the processor's cache
_FEW = 1024  # list up to this many edges, however few the numbers are


class Edges(ABC):
    """Edges in order of time.  Numbers rise with the time, but need not be dense."""

    @abstractmethod
    def number(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        """The number of the slice that holds a time, or of each time's slice in an array."""

    @abstractmethod
    def time(self, number: Any) -> Any:
        """The start of a slice, by the slice's number."""

    def start(self, time: Any) -> Any:
        """The start of the slice that holds a time: the last edge at or before the time."""
        return self.time(self.number(time))


@dataclass(frozen=True)
class Periodic(Edges):
    """Edges that repeat: in each cycle at the same distances, `cuts`, from the cycle's start.

    >>> pairs = Periodic(cycle=2, cuts=(0, 1))
    >>> [pairs.number(t) for t in (-1, 0, 1, 2)], pairs.time(3)
    ([-1, 0, 1, 2], 3)
    """

    cycle: int
    cuts: tuple[int, ...] = (0,)
    offset: int = 0

    def number(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        into = time - self.offset if self.offset else time
        cycle = on.div(into, self.cycle)
        if len(self.cuts) == 1:
            return cycle
        within = into - cycle * self.cycle
        if len(self.cuts) > 4 and on is PLAIN:
            place = np.searchsorted(self.cuts, within, side="right") - 1
            return cycle * len(self.cuts) + (place if np.ndim(place) else int(place))
        return cycle * len(self.cuts) + sum(on.at_least(within, cut) for cut in self.cuts[1:])

    def time(self, number: Any, on: Arithmetic = PLAIN) -> Any:
        if len(self.cuts) == 1:
            return number * self.cycle + self.offset
        cycle = on.div(number, len(self.cuts))
        if on is not PLAIN:
            place = number - cycle * len(self.cuts)
            steps = [b - a for a, b in pairwise(self.cuts)]
            within = sum(on.at_least(place, i) * step for i, step in enumerate(steps, start=1))
            return cycle * self.cycle + within + self.offset
        cut = np.asarray(self.cuts)[number - cycle * len(self.cuts)]
        return cycle * self.cycle + (cut if np.ndim(cut) else int(cut)) + self.offset


@dataclass(frozen=True)
class OnClock(Edges):
    """Edges that repeat in readings of a clock.  A reading cannot be computed on Spark's columns.

    >>> from sash.windows import tumbling
    >>> months = edges_of(tumbling("1 month", timezone="Europe/Berlin"))
    >>> months.number(0), months.time(0) // 3_600_000_000
    (0, -1)
    """

    clock: Clock
    edges: Edges

    def number(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        assert on is PLAIN, "a calendar's edges are numbered in Python"
        return self.edges.number(self.clock.reading(time))

    def time(self, number: Any) -> Any:
        return self.clock.time(self.edges.time(number))


@dataclass(frozen=True)
class Union(Edges):
    """The union of several sets of edges, whose common cycle has too many edges to list.  The
    number of a slice is the sum of the numbers that the sets have at its start.

    Each cut of a set adds one to the number in each of its cycles, so a number is also a sum over
    all cuts, which takes one operation on arrays (`_sums`) for all sets.
    """

    parts: tuple[Periodic, ...]

    def number(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        if on is not PLAIN:
            return sum(part.number(time, on) for part in self.parts)
        if not np.ndim(time):
            return int(self._sums(np.asarray(time)))
        if time.size * len(self._cuts[0]) > _AT_ONCE:
            # number all edges in range, if they are fewer, and look the times up among them
            listed = written_out(self, int(time.min()), int(time.max()), time.size // 4)
            if listed is not None:
                return self._sums(listed.times)[listed.number(time)]
        return self._sums(time)

    def time(self, number: Any) -> Any:
        if not np.ndim(number):
            return int(self._first(np.array([number]))[0])
        wanted = np.asarray(number, dtype=np.int64)
        if not wanted.size:
            return wanted
        # list all edges in range, if they are few, and look the numbers up in the list
        first, last = self._first(np.array([wanted.min(), wanted.max()])).tolist()
        listed = written_out(self, first, last, max(4 * wanted.size, _FEW))
        if listed is not None:
            at = np.searchsorted(self._sums(listed.times), wanted)
            return listed.times[np.minimum(at, len(listed.times) - 1)]
        return self._first(wanted)

    def start(self, time: Any) -> Any:
        """The start of the slice that holds a time: the last edge of any set at or before it."""
        cycles, firsts, _ = self._cuts
        times = np.asarray(time)
        if not np.ndim(time) or times.size * len(cycles) <= _AT_ONCE:
            since = ((times[..., None] - firsts) % cycles).min(axis=-1)
            return times - since if np.ndim(time) else int(times - since)
        listed = written_out(self, int(times.min()), int(times.max()), times.size // 4)
        if listed is not None:
            return listed.start(times)
        latest = self.parts[0].start(times)
        for part in self.parts[1:]:
            latest = np.maximum(latest, part.start(times))
        return latest

    @cached_property
    def _cuts(self) -> tuple[Any, Any, int]:
        """The cycle of each cut of all sets, one time at which it cuts, and what the sum over all
        cuts lacks."""
        every = [(part.cycle, part.offset + cut) for part in self.parts for cut in part.cuts]
        cycles, firsts = np.array(every, dtype=np.int64).T
        return cycles, firsts, len(every) - len(self.parts)

    def _sums(self, times: Any) -> Any:
        """The number of the slice of each time, by the sum over all cuts."""
        cycles, firsts, lacking = self._cuts
        if times.size * len(cycles) <= _AT_ONCE:
            return ((times[..., None] - firsts) // cycles).sum(axis=-1) + lacking
        made = np.full(times.shape, lacking, dtype=np.int64)
        for cycle, first in zip(cycles, firsts, strict=True):
            made += (times - first) // cycle
        return made

    def _first(self, numbers: Any) -> Any:
        """The first time whose number is at least this, for each number."""
        cycles, firsts, lacking = self._cuts
        rate = (1.0 / cycles).sum()
        # where each number would be if cuts did not lower it to whole cycles, each by less than one
        low = np.clip((numbers - lacking + (firsts / cycles).sum()) / rate, -_FAR, _FAR)
        high = np.clip(low + len(cycles) / rate, -_FAR, _FAR)
        reach = 1.0 + 1e-12 * np.abs(low)  # floats round, too
        low, high = self._limit(numbers, low, -reach), self._limit(numbers, high, reach)
        while (high - low > 1).any():  # the number at `low` is less, and at `high` it is not
            middle = low + (high - low) // 2
            less = self._sums(middle) < numbers
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return high

    def _limit(self, numbers: Any, near: Any, reach: Any) -> Any:
        """Times beyond which the first time of each number is not: `near`, and as far from there as
        necessary, on the side of `reach`."""
        while True:
            at = np.clip(near + reach, -_FAR, _FAR).astype(np.int64)
            beyond = (self._sums(at) >= numbers) == (reach > 0)
            if (beyond | (np.abs(at) == _FAR)).all():
                return at
            reach = 2 * reach


class Listed(Edges):
    """A list of the edges in a span of time; an edge's number is its place in the list.

    All edges lie on a grid, whose cells are as long as the greatest common divisor of the edges'
    distances.  If the grid has few cells, a table holds the number of each cell, so that numbering
    a time takes one division, however many windows the edges come from.

    >>> edges = Listed(np.array([0, 4, 6, 8, 12]), 2, 100)
    >>> edges.number(np.array([0, 5, 6, 13])), edges.time(np.array([2]))
    (array([0, 1, 2, 4]), array([6]))
    """

    def __init__(self, times: Any, grid: int, cells: int) -> None:
        self.times = times
        self._grid = grid
        self._table = None
        if (int(times[-1]) - int(times[0])) // grid < cells:
            marks = np.zeros((int(times[-1]) - int(times[0])) // grid + 1, dtype=np.int64)
            marks[(times - times[0]) // grid] = 1
            self._table = np.cumsum(marks) - 1

    def number(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        if self._table is None:
            return np.searchsorted(self.times, time, side="right") - 1
        cell = (time - self.times[0]) // self._grid
        return self._table[np.minimum(cell, len(self._table) - 1)]

    def time(self, number: Any) -> Any:
        return self.times[number]


@cache
def edges_of(window: Aligned) -> Edges:
    """The edges of a window.

    >>> from sash.windows import cumulate, sliding
    >>> edges_of(sliding(5, 2)), edges_of(cumulate(6, 2))
    (Periodic(cycle=2, cuts=(0, 1), offset=0), Periodic(cycle=2, cuts=(0,), offset=0))
    """
    cuts = cuts_of(window)
    return cuts if window.clock is UTC else OnClock(window.clock, cuts)


@cache
def cuts_of(window: Aligned) -> Periodic:
    """The edges of a window, in readings of its clock."""
    c = window.cycle
    if isinstance(c, Months):  # these windows may end on any day
        return Periodic(c.day)
    if c.windows > 1 and c.length % c.step == 0 and c.shortest % c.step == 0:
        return Periodic(c.step, (0,), c.offset % c.step)
    ends = {(c.shortest + k * c.step) % c.length for k in range(c.windows)}
    return Periodic(c.length, tuple(sorted({0} | ends)), c.offset)


def starts_of(window: Aligned) -> Periodic:
    """The starts of windows that have one window in a cycle, in readings of their clock.

    >>> from sash.windows import sliding
    >>> starts_of(sliding(5, 2, offset=1))
    Periodic(cycle=2, cuts=(0,), offset=1)
    """
    c = window.cycle
    return Periodic(c.length, (0,), c.offset % c.length)


def union(*edges: Periodic) -> Periodic | Union:
    """The union of several sets of edges.

    >>> union(Periodic(4), Periodic(6, (0, 1)))
    Periodic(cycle=12, cuts=(0, 1, 4, 6, 7, 8), offset=0)
    """
    if len(edges) == 1:
        return edges[0]
    cycle = lcm(*(e.cycle for e in edges))
    if sum(cycle // e.cycle * len(e.cuts) for e in edges) <= _MOST:
        found = {
            (e.offset + turn * e.cycle + cut) % cycle
            for e in edges
            for turn in range(cycle // e.cycle)
            for cut in e.cuts
        }
        offset = min(found)
        return Periodic(cycle, tuple(sorted(t - offset for t in found)), offset)
    return Union(tuple(_regular(e) for e in edges))


def _regular(edges: Periodic) -> Periodic:
    """The same edges, with the same numbers: as cycles of one cut if all distances are equal."""
    step, left = divmod(edges.cycle, len(edges.cuts))
    if not left and edges.cuts == tuple(range(0, edges.cycle, step)):
        return Periodic(step, (0,), edges.offset)
    return edges


def written_out(edges: Edges, low: int, high: int, most: int) -> Listed | None:
    """List the edges from the last one at or before `low` to the last one at or before `high`; None
    if there are more than `most`, or if they are not periodic.

    >>> written_out(union(Periodic(4), Periodic(6)), 5, 13, 100).times
    array([ 4,  6,  8, 12])
    """
    parts = edges.parts if isinstance(edges, Union) else (edges,)
    periodic = [part for part in parts if isinstance(part, Periodic)]
    if len(periodic) < len(parts):
        return None
    begin = edges.start(low)
    cuts = {(p.cycle, (p.offset + cut - begin) % p.cycle) for p in periodic for cut in p.cuts}
    count = sum((high - begin) // cycle + 1 for cycle, _ in cuts)
    if count > most:
        return None
    grid = gcd(*(n for cut in cuts for n in cut))
    cells = (high - begin) // grid + 1
    if cells > 4 * count:
        # not by the bounds of a range: numpy computes the length of one in floats
        marks = [
            np.arange((high - begin - first) // cycle + 1) * cycle + (begin + first)
            for cycle, first in cuts
        ]
        return Listed(np.unique(np.concatenate(marks)), grid, most)
    # a grid of few cells yields the edges in order, without sorting
    marked = np.zeros(cells, dtype=bool)
    for cycle, first in cuts:
        marked[first // grid :: cycle // grid] = True
    return Listed(np.flatnonzero(marked) * grid + begin, grid, most)
