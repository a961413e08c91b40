"""The windows of several queries over one copy of the slices in a store, and what a step asks of
each.

    fast    sliding(4, 2)          [-------)
                                       [-------)
    slow    tumbling(6)        [-----------)
    joint                      [-----------)         as long as the longest, and one ends wherever
                                   [-----------)     a window of one of them ends

A part of the state must be visited when a joint window ends, and is dropped when the last joint
window that holds it is closed, so the index needs one number for all queries.
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
    """The windows of several queries as one, numbered by their ends.  `windows` reach as far back
    as the longest aggregate of each query.

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
        """What all the windows are regular by."""
        return self.windows[0].clock

    @cached_property
    def longest(self) -> int:
        """How long the longest window is, in what the clock shows."""
        return max(window.cycle.longest for window in self.windows)

    @cached_property
    def _ends(self) -> Edges:
        return union(*dict.fromkeys(_ends_of(window) for window in self.windows))

    def start(self, number: Any) -> Any:
        """When a window starts."""
        return self.clock.time(self._ends.time(number) - self.longest)

    def end(self, number: Any) -> Any:
        """When a window ends."""
        return self.clock.time(self._ends.time(number))

    def first(self, time: Any) -> Any:
        """The first window that ends after a time."""
        return self._ends.number(self.clock.reading(time)) + 1

    def last(self, time: Any) -> Any:
        """The last window that starts by a time."""
        return self._ends.number(self.clock.reading(time) + self.longest)

    def numbered(self, window: Aligned, number: Any) -> Any:
        """The joint window that ends when a window of one of the queries ends."""
        return self._ends.number(window.cycle.end(number))


def _ends_of(window: Aligned) -> Periodic:
    """When windows end, in what the clock shows."""
    c = window.cycle
    ends = {(c.shortest + k * c.step) % c.length for k in range(c.windows)}
    first = min(ends)
    cuts = tuple(sorted(end - first for end in ends))
    return Periodic(c.length, cuts, (c.offset + first) % c.length)


@dataclass(frozen=True)
class Ask:
    """What one query asks of a step: its windows; the same under the same numbers, but as long as
    its longest aggregate (`reach`), and as long as each aggregate of another size (`sizes`); and
    which of them are due."""

    window: Aligned
    reach: Aligned
    sizes: tuple[Aligned, ...]
    step: Step

    @classmethod
    def of(cls, window: Aligned, step: Step) -> Ask:
        """A query whose aggregates are all over its own windows."""
        return cls(window, window, (), step)


def joint_step(joint: Joint, asks: Sequence[Ask]) -> Step:
    """The step of all queries, in numbers of joint windows."""

    def first(which: str) -> int:
        """The joint window after the last one that ends with a window before this."""
        lasts = (joint.numbered(ask.window, getattr(ask.step, which) - 1) for ask in asks)
        return int(max(lasts)) + 1

    numbers = first("opened"), first("fresh"), first("due"), first("keep")
    return Step(*numbers, among=asks[0].step.among)
