"""The edges of several aligned windows together: the shared plan of FlatFIT, section 2.3.

Queries over one stream can share their slices if the stream is cut at the edges of all of them.  An
edge that several windows have is a common edge: the more common edges, the more the queries share.

    fast    sliding(6, 2)      0   2   4   6   8   10  12
    daily   sliding(8, 4)      0       4       8       12
                               |   |   |   |   |   |   |       slices
                                           f   f   f   f       windows of `fast` close
                                               d       d       windows of `daily` close

The pattern of starts and ends repeats after the composite slide, the least common multiple of all
slides: 4 here.  For slides without a common divisor it is huge (for slides of 1 to 100 seconds it
is longer than the age of the universe), so the code lists edges only for a limited span of time.

Paper: Shein, Chrysanthis, Labrinidis, "FlatFIT: Accelerated Incremental Sliding-Window Aggregation
For Real-Time Analytics", SSDBM 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np

from ..windows.contract import UTC, Aligned, Clock
from .edges import Edges, OnClock, Periodic, cuts_of, union, written_out

__all__ = ["Composite", "Edge"]

#: The most edges to count in a composite slide; above it, the count is None.
_MOST = 1 << 20
_FEW = 1 << 10  # list up to this many edges, however few the times are
_LOOKED_AT = 64  # windows to look at, to find the one that holds the most slices


@dataclass(frozen=True)
class Edge:
    """A time at which slices are cut.  `marked_by` names the queries' windows with an edge there.
    `closes` has the numbers of the first and the last window that close there, by name."""

    time: int
    marked_by: tuple[str, ...]
    closes: Mapping[str, tuple[int, int]]

    @property
    def common(self) -> bool:
        """True if several windows have the edge."""
        return len(self.marked_by) > 1


@dataclass(frozen=True)
class Composite:
    """Several aligned windows, by name, all on one clock.

    >>> from sash.windows import sliding
    >>> both = Composite({"fast": sliding(6, 2), "daily": sliding(8, 4)})
    >>> both.slide, both.slices, both.common
    (4, 2, 1)
    >>> both.held("fast"), both.held("daily"), both.longest
    (3, 4, 'daily')
    >>> [(e.time, list(e.closes)) for e in both.between(4, 9)]
    [(4, ['fast', 'daily']), (6, ['fast']), (8, ['fast', 'daily'])]
    """

    windows: Mapping[str, Aligned]
    more: tuple[Periodic, ...] = ()  # further edges, in readings of the clock

    def __post_init__(self) -> None:
        if any(window.clock != self.clock for window in self.windows.values()):
            raise ValueError(
                "windows share edges if they are regular by one clock, and these are not: "
                f"{', '.join(map(repr, self.windows.values()))}"
            )

    @property
    def clock(self) -> Clock:
        """The clock of all the windows."""
        return next(iter(self.windows.values())).clock

    @cached_property
    def slide(self) -> int:
        """The composite slide, in readings: the edges of all windows repeat after it."""
        return lcm(*(window.cycle.length for window in self.windows.values()))

    @cached_property
    def cuts(self) -> Edges:
        """All edges, in readings of the clock."""
        each = [cuts_of(window) for window in self.windows.values()]
        return union(*dict.fromkeys([*each, *self.more]))

    @cached_property
    def edges(self) -> Edges:
        """All edges, in times."""
        return self.cuts if self.clock is UTC else OnClock(self.clock, self.cuts)

    @cached_property
    def slices(self) -> int | None:
        """The number of slices in a composite slide; None if they are too many to list."""
        counts = self._counts
        return None if counts is None else len(counts)

    @cached_property
    def common(self) -> int | None:
        """The number of common edges in a composite slide; None if there are too many edges to
        list."""
        counts = self._counts
        return None if counts is None else int((counts > 1).sum())

    @cached_property
    def _counts(self) -> Any:
        """For each edge of a composite slide, the number of windows that have it."""
        each = [cuts_of(window) for window in self.windows.values()]
        if sum(self.slide // cuts.cycle * len(cuts.cuts) for cuts in each) > _MOST:
            return None
        found = [_marks(cuts, 0, self.slide) for cuts in (*each, *self.more)]
        return np.unique(np.concatenate(found), return_counts=True)[1]

    def has(self, cuts: Periodic) -> bool:
        """True if each of these edges is also an edge of this composite."""
        mine = [cuts_of(window) for window in self.windows.values()]
        pairs = [
            (one.cycle, (one.offset + cut) % one.cycle)
            for one in (*mine, *self.more)
            for cut in one.cuts
        ]
        return all(
            any(
                cuts.cycle % cycle == 0 and (cuts.offset + cut) % cycle == first
                for cycle, first in pairs
            )
            for cut in cuts.cuts
        )

    @property
    def longest(self) -> str:
        """The name of the window that holds events for the longest time."""
        return max(self.windows, key=lambda name: self.windows[name].cycle.longest)

    def held(self, name: str) -> int | None:
        """The number of slices in one of the windows; see `slices_in`."""
        return self.slices_in(self.windows[name])

    def slices_in(self, window: Aligned, more: int = 0) -> int | None:
        """The number of slices in a window whose edges are among these, and in the time `more`
        after it: the largest number over the first windows after 1970.  None if the edges are too
        many to list."""
        cycle = window.cycle
        numbers = np.arange(cycle.first(0), cycle.first(0) + _LOOKED_AT)
        starts, ends = cycle.start(numbers), cycle.end(numbers) + more
        listed = written_out(self.cuts, int(starts.min()), int(ends.max()), _MOST)
        if listed is None:
            return None
        return int((listed.number(ends - 1) - listed.number(starts) + 1).max())

    def between(self, low: int, high: int) -> list[Edge]:
        """The edges in the times `[low, high)`, with the windows that close at each."""
        marked: dict[int, list[str]] = {}
        shown = self.clock.reading(low), self.clock.reading(high)
        for cuts in self.more:
            for time in np.atleast_1d(self.clock.time(_marks(cuts, *shown))).tolist():
                marked.setdefault(time, [])
        for name, window in self.windows.items():
            times = _marks(cuts_of(window), *shown)
            for time in np.atleast_1d(self.clock.time(times)).tolist():
                marked.setdefault(time, []).append(name)
        made = []
        for time in sorted(marked):
            closes = {}
            for name, window in self.windows.items():
                first, last = window.first(time - 1), window.first(time) - 1
                if first <= last:
                    closes[name] = (int(first), int(last))
            made.append(Edge(time, tuple(marked[time]), closes))
        return made

    def starts(self, shown: Any) -> Any:
        """The start of the slice of each time; starts and times are readings.  If there are many
        more edges than times, each time stands for its own start: that never merges two slices."""
        return self.starter(int(shown.min()), int(shown.max()), len(shown))(shown)

    def starter(self, low: int, high: int, count: int) -> Callable[[Any], Any]:
        """A function of some of so many times, from one to another, that gives these starts."""
        if isinstance(self.cuts, Periodic) and len(self.cuts.cuts) <= 2:
            return self.cuts.start
        listed = written_out(self.cuts, low, high, max(4 * count, _FEW))
        return (lambda shown: shown) if listed is None else listed.start

    def numbered(self, low: int, high: int, most: int) -> Edges | None:
        """The edges between two times, in a form that numbers many times cheaply; None if there are
        more than `most` edges, so that slices hardly pay."""
        if isinstance(self.cuts, Periodic) and len(self.cuts.cuts) <= 2:
            return self.edges
        shown = self.clock.reading(low), self.clock.reading(high)
        listed = written_out(self.cuts, *shown, most)
        if listed is None:
            return None
        return listed if self.clock is UTC else OnClock(self.clock, listed)


def _marks(cuts: Periodic, low: int, high: int) -> Any:
    """The edges in `[low, high)`, in readings of the clock."""
    begins = [low + (cuts.offset + cut - low) % cuts.cycle for cut in cuts.cuts]
    # numpy computes the length of a range in floats, so not by the range's bounds
    marks = [np.arange(-(-(high - b) // cuts.cycle)) * cuts.cycle + b for b in begins]
    return np.sort(np.concatenate(marks))
