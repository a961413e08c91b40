"""The pages of a stored window that are in memory, and how others take their places.

Kernels never call a store.  Where one would need a page that is not there, it returns, and `_serve`
sees to it: a page that leaves the tails is saved, the pages at the heads move on with START, and
the page that a policy's descent needs comes into the middle.

    _make_room    END comes to LAST: pages leave the tails, for the store
    _move_head    START comes to FIRST: the next pages come to the heads
    _load_heads   START goes elsewhere: the pages there come to the heads
    _load_middle  a descent needs a page
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import END, START
from .level_window import LevelWindow
from .page_slots import PageSlots
from .pages import Pages, Place
from .stored_kernel import (
    BITS,
    FIRST,
    GOAL,
    HEADS,
    LAST,
    LEVELS,
    MIDDLE_LEVEL,
    MIDDLE_PAGE,
    PHASE,
    READY,
    STORED,
    WANTED,
    WHOLE,
)
from .stored_root import framed, unframed

__all__ = ["DELETED_AT_ONCE", "Resident"]

_DESCENT, _JUMP = 2, 3  # phases of `enforce`
_FEW_LEVELS = 4
_AHEAD = 3  # pages of each level that are read ahead
#: Pages that have left are deleted so many at a time, while there is no root that needs them.
DELETED_AT_ONCE = 32


class Resident(LevelWindow):
    """A window in levels of which some pages are in memory, and all others in a store."""

    _pages: Pages
    _at: PageSlots  # where pages are in memory
    _tags: dict[Place, int]  # the page at each place of a head: level, place
    _bare: set[Place]  # pages of heads without the nodes that records do not have
    _deleted: list[int]  # pages of each level that are gone from the store
    _rooted: bool  # whether there may be a root, which needs pages that have left since

    def _begin_memory(self, core: Any, bits: int) -> None:
        """Make the header of a new memory that of an empty window."""
        header = core.header
        header[BITS], header[LEVELS] = bits, self._first_levels() * self._at.high
        header[LAST], header[FIRST] = 2 << bits, 1 << bits
        header[MIDDLE_LEVEL], header[WHOLE] = -1, 1

    def _first_levels(self) -> int:
        """How many levels with leaves a new window has room for."""
        return -(-(self._at.bits + _FEW_LEVELS) // self._at.high)

    def _leaves(self, levels: int | None = None) -> range:
        """The levels that have the leaves of pages."""
        return self._at.leaves(self._core.get(LEVELS) if levels is None else levels)

    def _young(self, level: int) -> int:
        """The first page of a level that is not saved: from here on they are in the tail alone."""
        return max((-(-self._core.get(LAST) >> level + self._at.bits)) - 2, 0)

    def _has(self, level: int, page: int) -> bool:
        """True if a page is at the head."""
        return self._tags.get((level, page & (HEADS - 1))) == page

    def _serve(self) -> None:
        """See to what a kernel has come back for."""
        header = self._core.header
        if header[PHASE] == _DESCENT:
            self._load_middle(header[WANTED] & 63, header[WANTED] >> 6)
        elif header[PHASE] == _JUMP:
            self._load_heads(header[GOAL])
            header[READY] = header[GOAL]
        else:
            page = 1 << self._at.bits
            if header[START] + page >= header[FIRST]:
                self._move_head()
            if header[END] + 1 >= header[LAST]:
                self._make_room()

    # the tails

    def _make_room(self) -> None:
        """Save the pages that leave the tails when END comes to LAST."""
        core, slots = self._core, self._at
        self._pages.check()
        start, last = core.get(START), core.get(LAST)
        if (last + (1 << slots.bits) - start).bit_length() + 2 > core.get(LEVELS):
            self._add_levels()
        for level in self._leaves():
            if last & ((1 << slots.bits + level) - 1):
                break
            page, head = slots.page(last, level) - 2, slots.page(start, level)
            if page >= head and page >= 0:
                runs = slots.stored(slots.tail, level, page)
                self._pages.save((level, page), framed(core.pack_slots(*run) for run in runs))
                if page <= head + 2:
                    self._copy_to_head(level, page)
        core.header[LAST] = last + (1 << slots.bits)
        if not self._rooted and slots.page(start, 0) - self._deleted[0] >= DELETED_AT_ONCE:
            self._delete_old()  # here, where all that grows comes by, whichever way values leave

    def _copy_to_head(self, level: int, page: int) -> None:
        """Copy a page that leaves the tail and is soon needed at the head."""
        core, slots = self._core, self._at
        self._tags.pop((level, page & (HEADS - 1)), None)
        for above in range(slots.high):
            to, at = slots.head(level, page, above), slots.tail(level, page, above)
            core.copy_slots(to, at, 1 << slots.bits - above)
        self._bare.discard((level, page))
        self._tags[level, page & (HEADS - 1)] = page

    def _add_levels(self) -> None:
        """Make room for more levels."""
        core, slots = self._core, self._at
        count = core.get(LEVELS) // slots.high
        more = count + -(-_FEW_LEVELS // slots.high)
        self._replace(core.resize, slots.room(more), [(0, 0, STORED + slots.room(count))])
        core.header[LEVELS] = more * slots.high

    # the heads

    def _move_head(self) -> None:
        """Load the pages that are needed when START comes to FIRST, and have those behind them
        read ahead."""
        bits, header = self._at.bits, self._core.header
        first = header[FIRST]
        needed, ahead = [], []
        for level in self._leaves():
            if first & ((1 << bits + level) - 1):
                break
            head = self._at.page(first, level)
            self._pages.first[level] = head - 1  # which START may still be in
            young = self._young(level)
            needed += [(level, p) for p in (head, head + 1) if p < young]
            ahead += [(level, p) for p in range(head + 2, min(head + 2 + _AHEAD, young))]
        lacking = [place for place in needed if not self._has(*place)]
        if lacking:
            self._put(lacking, self._pages.load(lacking))
        if self._bare:
            self._make_whole()
        if ahead:
            self._pages.fetch([place for place in ahead if not self._has(*place)])
        header[FIRST] = first + (1 << bits)

    def _load_heads(self, goal: int) -> None:
        """Load the pages at the heads of all levels for a START that is elsewhere."""
        bits, header = self._at.bits, self._core.header
        needed = []
        for level in self._leaves():
            head, young = self._at.page(goal, level), self._young(level)
            needed += [(level, p) for p in (head, head + 1) if p < young]
        needed = [place for place in needed if not self._has(*place)]
        found = self._pages.load(needed)
        self._pages.forget_fetched()
        self._changing = True  # until START is there
        header[WHOLE] = 0
        self._put(needed, found)
        header[FIRST] = ((goal >> bits) + 1) << bits

    def _put(self, places: list[Place], found: list[Any]) -> None:
        """Put pages of the store into the heads."""
        for (level, page), data in zip(places, found, strict=True):
            self._tags.pop((level, page & (HEADS - 1)), None)
            self._unpack(self._at.stored(self._at.head, level, page), data)
            self._tags[level, page & (HEADS - 1)] = page
            self._bare.add((level, page))

    def _make_whole(self) -> None:
        """Compute all nodes of the pages at the heads."""
        core, slots = self._core, self._at
        for level, page in sorted(self._bare):
            if self._has(level, page) and page >= slots.page(core.get(START), level):
                core.run.rebuild(core.m, slots.base(level), HEADS << slots.bits, level, page)
        self._bare.clear()
        core.header[WHOLE] = 1

    # the middle

    def _load_middle(self, level: int, page: int) -> None:
        """Load a page into the middle."""
        header = self._core.header
        (data,) = self._pages.load([(level, page)])
        header[MIDDLE_LEVEL] = -1
        self._unpack(self._at.stored(self._at.middle, level, page), data)
        header[MIDDLE_LEVEL], header[MIDDLE_PAGE] = level, page

    def _load_whole(self, level: int, page: int) -> None:
        """The same with all nodes above the leaves."""
        self._load_middle(level, page)
        self._core.run.rebuild(self._core.m, STORED, 1 << self._at.bits, level, page)

    def _unpack(self, runs: list[tuple[int, int]], data: Any) -> None:
        """Put what a page's record has into runs of slots."""
        for run, blob in zip(runs, unframed(data), strict=True):
            self._core.unpack_slots(*run, blob)

    # what has left

    def _delete_old(self) -> None:
        """Have the pages deleted of values that have left, if no root needs them."""
        start, gone, deleted = self._core.get(START), [], list(self._deleted)
        for level in self._leaves(len(deleted)):
            page = self._at.page(start, level)
            gone += [(level, p) for p in range(deleted[level], page)]
            deleted[level] = self._pages.first[level] = page
        self._pages.delete(gone)
        self._deleted = deleted  # only now: if that is interrupted, they are deleted once more
