"""The cycles of several windows together: each method works on all of them at once.

The formulas are those of `windows.contract.Cycle`, over arrays with an entry for each cycle, so
that a hundred queries take the time of a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from ..windows.contract import Cycle
from ..windows.months import Months

__all__ = ["Cycles"]


class Cycles:
    """Several cycles; times are readings of their clock.

    >>> both = Cycles([Cycle(length=5, shortest=10, longest=10), Cycle(4, 4, 4)])
    >>> both.first(12), both.end(both.first(12))
    (array([1, 3]), array([15, 16]))
    """

    def __init__(self, each: Sequence[Cycle]) -> None:
        self.each = each
        regular = np.array([(c.length, c.offset, c.longest) for c in each], dtype=np.int64)
        self.length, self.offset, self.longest = regular.T
        #: Cycles with several windows, or whose windows differ in length.
        self.others = [q for q, c in enumerate(each) if c.windows > 1 or isinstance(c, Months)]

    def __len__(self) -> int:
        return len(self.each)

    def some(self, which: Any) -> Cycles:
        """The cycles at some places: a slice, or an array."""
        made = copy(self)
        places = np.arange(len(self))[which].tolist()
        made.each = [self.each[q] for q in places]
        made.length, made.offset, made.longest = (
            a[which] for a in (self.length, self.offset, self.longest)
        )
        made.others = [i for i, q in enumerate(places) if q in self.others]
        return made

    def first(self, time: int) -> Any:
        """The first window of each cycle that ends after a time."""
        made = (time - self.offset - self.longest) // self.length + 1
        for q in self.others:
            made[q] = self.each[q].first(time)
        return made

    def last(self, time: int) -> Any:
        """The last window of each cycle that starts at or before a time."""
        made = (time - self.offset) // self.length
        for q in self.others:
            made[q] = self.each[q].last(time)
        return made

    def start(self, numbers: Any) -> Any:
        """The start of one window of each cycle."""
        made = numbers * self.length + self.offset
        for q in self.others:
            made[q] = self.each[q].start(int(numbers[q]))
        return made

    def end(self, numbers: Any) -> Any:
        """The end of one window of each cycle."""
        made = numbers * self.length + (self.offset + self.longest)
        for q in self.others:
            made[q] = self.each[q].end(int(numbers[q]))
        return made

    def spans(self, counts: Any, numbers: Any) -> tuple[Any, Any]:
        """The starts and ends of windows by number; `counts` says how many of the numbers belong to
        each cycle, in order of the cycles."""
        length, offset, longest = (
            np.repeat(a, counts) for a in (self.length, self.offset, self.longest)
        )
        starts = numbers * length
        starts += offset
        ends = starts + longest
        bounds = np.concatenate([[0], np.cumsum(counts)]) if self.others else ()
        for q in self.others:
            own = slice(int(bounds[q]), int(bounds[q + 1]))
            starts[own], ends[own] = (
                self.each[q].start(numbers[own]),
                self.each[q].end(numbers[own]),
            )
        return starts, ends
