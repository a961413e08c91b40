"""Panes, pairs and Cutty: three ways to cut a stream into slices, each from its definition.

    sliding(5, 2)   0   1   2   3   4   5   6   7
                    [-------------------)
                            [-------------------)
    panes           |   |   |   |   |   |   |   |     every gcd(size, slide): all slices alike
    pairs           |   |   |   |   |   |   |   |     where a window starts or ends
    Cutty           |       |       |       |         where a window starts

    technique   slices a window reads, of size r and slide s     paper
    panes       r / gcd(r, s)                                    Li et al., SIGMOD Record 2005
    pairs       2 ⌊r / s⌋ + 1, or r / s if s divides r           Krishnamurthy et al., SIGMOD 2006
    Cutty       ⌊r / s⌋ + 1, or r / s if s divides r             Carbone et al., CIKM 2016

Cutty has half as many slices as pairs, and answers in the middle of a slice: a window that ends
there reads the partial of the open slice so far.  That is sound only if the slice holds all events
before the window's end and none after it, so only for events in order of time.  Panes and pairs
answer at edges, and take events in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Literal, TypeAlias, get_args

from ..windows.contract import UTC, Aligned
from ..windows.months import Months
from .edges import Edges, OnClock, Periodic, cuts_of

__all__ = ["Slicing", "Technique", "choose_slicing", "cutty", "pairs", "panes"]

Technique: TypeAlias = Literal["panes", "pairs", "cutty"]


@dataclass(frozen=True)
class Slicing:
    """Where a technique cuts the stream for a window, in readings of the window's clock;
    `reads_open` says that a window may end within a slice.

    >>> from sash.windows import sliding
    >>> window = sliding(5, 2)
    >>> [made(window).per_window(window) for made in (panes, pairs, cutty)]
    [5, 5, 3]
    """

    name: Technique
    edges: Periodic
    reads_open: bool = False

    def on_clock(self, window: Aligned) -> Edges:
        """The edges, in times."""
        return self.edges if window.clock is UTC else OnClock(window.clock, self.edges)

    def per_window(self, window: Aligned) -> int:
        """The largest number of slices that a window reads, the open slice included."""
        cycle = window.cycle  # the last window of a cycle is the longest
        longest = (cycle.windows - 1, 2 * cycle.windows - 1)
        spans = [(cycle.start(n), cycle.end(n)) for n in longest]
        return max(int(self.edges.number(b - 1) - self.edges.number(a)) + 1 for a, b in spans)


def panes(window: Aligned) -> Slicing:
    """Cut at equal distances, so that every window starts and ends at a cut.

    >>> from sash.windows import sliding
    >>> panes(sliding(10, 4)).edges
    Periodic(cycle=2, cuts=(0,), offset=0)
    """
    cycle = window.cycle
    if isinstance(cycle, Months):  # these windows may end on any day
        return Slicing("panes", cuts_of(window))
    step = gcd(cycle.length, cycle.shortest, cycle.step if cycle.windows > 1 else 0)
    return Slicing("panes", Periodic(step, (0,), cycle.offset % step))


def pairs(window: Aligned) -> Slicing:
    """Cut where a window starts or ends.

    >>> from sash.windows import sliding
    >>> pairs(sliding(10, 4)).edges
    Periodic(cycle=4, cuts=(0, 2), offset=0)
    """
    return Slicing("pairs", cuts_of(window))


def cutty(window: Aligned) -> Slicing:
    """Cut where a window starts.

    >>> from sash.windows import sliding
    >>> cutty(sliding(10, 4)).edges
    Periodic(cycle=4, cuts=(0,), offset=0)
    """
    cycle = window.cycle
    return Slicing("cutty", Periodic(cycle.length, (0,), cycle.offset), reads_open=True)


_MADE = {"panes": panes, "pairs": pairs, "cutty": cutty}


def choose_slicing(window: Aligned, asked: str = "auto", *, in_order: bool) -> Slicing:
    """The slicing for a window: the technique `asked`, or by default pairs.

    Of the techniques that take events in any order, pairs have the fewest slices.  If events are in
    order, pairs need as many combines as Cutty: Cutty saves combines on slices, and spends them on
    reading the open slice.  So pairs are the default; Cutty is for users who want a smaller state.

    >>> from sash.windows import sliding
    >>> choose_slicing(sliding(10, 4), in_order=True).name
    'pairs'
    """
    if asked == "auto":
        return pairs(window)
    if asked not in get_args(Technique):
        raise ValueError(f"slicing is 'auto', 'panes', 'pairs' or 'cutty', not {asked!r}")
    if asked == "cutty" and not in_order:
        raise ValueError(
            "slicing='cutty' reads open slices, which is sound only for events in order of time; "
            "use 'pairs', which has two slices a slide at most, or 'panes'"
        )
    return _MADE[asked](window)
