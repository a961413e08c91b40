"""The windows of several queries over one copy of the slices in a store, and which of them a step
emits.

    fast    sliding(4, 2)          [-------)
                                       [-------)
    slow    tumbling(6)        [-----------)
    joint                      [-----------)         as long as the longest window; a joint window
                                   [-----------)     ends wherever a window of a query ends

A step must visit a part of the state when a joint window ends, and can drop the part when the last
joint window that holds one of its slices is closed.  So the index needs one number for all queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..slicing.edges import Edges, Periodic, union
from ..windows import Aligned
from ..windows.contract import Clock
from .contract import Step

__all__ = ["Ask", "Joint", "joint_step"]


@dataclass(frozen=True)
class Joint:
    """The joint windows of several queries, numbered by their ends.  `windows` has the windows of
    each query, as long as the query's longest aggregate.

    >>> from sash.windows import sliding, tumbling
    >>> both = Joint((sliding(4, 2), tumbling(6)))
    >>> [(both.start(n), both.end(n)) for n in (both.first(3), both.last(3))]
    [(-2, 4), (2, 8)]
    >>> both.first(3) == both.numbered(sliding(4, 2), 0)
    True
    """

    windows: tuple[Aligned, ...]

    @property
    def clock(self) -> Clock:
        """The clock of all the windows."""
        return self.windows[0].clock

    @cached_property
    def longest(self) -> int:
        """The length of the longest window, in readings of the clock."""
        return max(window.cycle.longest for window in self.windows)

    @cached_property
    def _ends(self) -> Edges:
        return union(*dict.fromkeys(_ends_of(window) for window in self.windows))

    def start(self, number: Any) -> Any:
        """The start of a window."""
        return self.clock.time(self._ends.time(number) - self.longest)

    def end(self, number: Any) -> Any:
        """The end of a window."""
        return self.clock.time(self._ends.time(number))

    def first(self, time: Any) -> Any:
        """The first window that ends after a time."""
        return self._ends.number(self.clock.reading(time)) + 1

    def last(self, time: Any) -> Any:
        """The last window that starts by a time."""
        return self._ends.number(self.clock.reading(time) + self.longest)

    def numbered(self, window: Aligned, number: Any) -> Any:
        """The joint window that ends with this window of one of the queries."""
        return self._ends.number(window.cycle.end(number))


def _ends_of(window: Aligned) -> Periodic:
    """The ends of windows, in readings of their clock."""
    c = window.cycle
    ends = {(c.shortest + k * c.step) % c.length for k in range(c.windows)}
    first = min(ends)
    cuts = tuple(sorted(end - first for end in ends))
    return Periodic(c.length, cuts, (c.offset + first) % c.length)


@dataclass(frozen=True)
class Ask:
    """What one query asks of a step: its windows, and which of them the step emits.  `reach` are
    the same windows, as long as the query's longest aggregate; `sizes` are the same windows in each
    other size of its aggregates.  All have the same numbers and ends."""

    window: Aligned
    reach: Aligned
    sizes: tuple[Aligned, ...]
    step: Step

    @classmethod
    def of(cls, window: Aligned, step: Step) -> Ask:
        """The ask of a query whose aggregates are all over its own windows."""
        return cls(window, window, (), step)


def joint_step(joint: Joint, asks: Sequence[Ask]) -> Step:
    """The step of all queries, in numbers of joint windows."""

    def first(which: str) -> int:
        """The joint window after the last one that ends with a query's window before this
        number."""
        lasts = (joint.numbered(ask.window, getattr(ask.step, which) - 1) for ask in asks)
        return int(max(lasts)) + 1

    numbers = first("opened"), first("fresh"), first("due"), first("keep")
    return Step(*numbers, among=asks[0].step.among)
