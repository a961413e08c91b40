"""Where the nodes of a stored window's pages are in memory.

`stored_kernel` has a drawing of pages and levels.  Behind the slots beside levels come the middle
page, and then, for each level that has the leaves of pages, a ring of pages at the head and one at
the tail.  In a ring the nodes of each level above the leaves follow those below them:

    | slots beside levels | middle | head | tail | head | tail | …
                                     leaves on     leaves on
                                     level 0       level BITS - 2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index as as_index
from typing import Any

from ..kernels.layout import Layout
from .stored_kernel import FEWEST, HEADS, PLACES, STEP, STORED, TAILS

__all__ = ["PageSlots", "bits_for", "bits_of"]

#: A page has so many bytes, unless a cache is given.  Each stop of `slide` at a page's end costs
#: some 50 µs; in memory are twelve pages and nodes above them, at each of two or three levels.
_PAGE = 1 << 17
_OBJECTS = 256  # in a page: how many bytes they take is not known
_LARGEST = 16  # bits

#: From a level, a page, and how many levels above the leaves, to the first of its slots there.
SlotOf = Callable[[int, int, int], int]


@dataclass(frozen=True)
class PageSlots:
    """The slots of pages with 2^bits leaves."""

    bits: int

    @property
    def high(self) -> int:
        """The levels of a page: so many levels above its leaves are the leaves of another page."""
        return self.bits - FEWEST

    def room(self, count: int) -> int:
        """The slots of the middle page, and of `count` levels that have leaves."""
        return (2 + PLACES * count) << self.bits

    def leaves(self, levels: int) -> range:
        """Of so many levels, those that have the leaves of pages."""
        return range(0, levels, self.high)

    def page(self, index: int, level: int) -> int:
        """The page of a level, among those that have leaves, that a value is in."""
        return (index >> level) >> self.bits

    def base(self, level: int) -> int:
        """Where the pages begin that have their leaves on a level."""
        return STORED + self.room(level // self.high)

    def head(self, level: int, page: int, above: int = 0) -> int:
        """Where the nodes of a page begin at the head, some levels above its leaves."""
        return self.base(level) + self._in_ring(HEADS, page, above)

    def tail(self, level: int, page: int, above: int = 0) -> int:
        """The same at the tail."""
        return self.base(level) + (2 * HEADS << self.bits) + self._in_ring(TAILS, page, above)

    def middle(self, level: int, page: int, above: int = 0) -> int:
        """The same in the middle."""
        return STORED + self._in_ring(1, 0, above)

    def _in_ring(self, pages: int, page: int, above: int) -> int:
        """Where the nodes of a page begin in a ring of pages."""
        ring, page = pages << self.bits, page & (pages - 1)
        return 2 * (ring - (ring >> above)) + (page << self.bits - above)

    def stored(self, slot: SlotOf, level: int, page: int) -> list[tuple[int, int]]:
        """The runs of slots with the nodes of a page that its record has: first slot, how many."""
        above = range(0, self.high, STEP)
        return [(slot(level, page, some), 1 << self.bits - some) for some in above]

    def in_tails(self, start: int, end: int) -> list[tuple[int, int]]:
        """The runs of slots at the tails that hold something of a window: first slot, how many."""
        bits, runs = self.bits, []
        for level in self.leaves((end - start).bit_length() + 1):
            last = self.page(end, level)
            for page in (last - 1, last):
                for above in range(self.high):
                    after = max(end - 1 >> level + above, -1) + 1
                    count = min(after - (page << bits - above), 1 << bits - above)
                    if count > 0 and page >= self.page(start, level):
                        runs.append((self.tail(level, page, above), count))
        return runs


def bits_of(cache: Any) -> int:
    """How many bits number the nodes of a page, for a number of nodes that a cache has."""
    try:
        whole = as_index(cache)
    except TypeError:
        whole = 0
    if whole < 16 or whole & (whole - 1):
        raise ValueError(
            "cache is a number of nodes at a level's head, a power of two from 16 on, not "
            f"{cache!r}"
        )
    return whole.bit_length() - 2


def bits_for(layout: Layout | None) -> int:
    """How many bits number the nodes of a page of some bytes."""
    nodes = _OBJECTS if layout is None else _PAGE // (8 * max(layout.words, 1))
    return min(max(nodes.bit_length() - 1, 3), _LARGEST)
