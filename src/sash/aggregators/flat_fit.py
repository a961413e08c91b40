"""FlatFIT, the flat and fast index traverser: answers remembered as jumps.

    order      first in, first out; also answers over any number of the youngest values
    operator   any associative
    time       amortised 3 combines a slide with one query; n - 1 with all n sizes,
               longest first; worst case n
    space      c + 2 partials and c links for a capacity of c, between n and 5n/4 while it grows;
               `slide` takes just the size it slides over
    paper      Shein, Chrysanthis, Labrinidis: FlatFIT: accelerated incremental sliding-window
               aggregation for real-time analytics (SSDBM 2017)

Each element has a partial and a link to a younger element (or the end); the partial is the
aggregate of all before the link.  A query hops along links from its start to the end, then goes
back over the elements it visited and makes each of them reach to the end, so that later queries
skip what this one combined.  The start itself is left alone: it is about to leave.

The paper keeps the visited elements on a stack, of at most two entries except when the whole
window is visited, which it treats apart.  Here the way back is kept in the links themselves,
each turned round on the way out and set on the way back, so there is no stack at all.

The ring need not be a power of two: LAP is the position that lies in its first place, on the lap
that the oldest element is on, and the places of the next lap start over.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    combine,
    combined,
    drop,
    get,
    item,
    lift,
    link,
    lower,
    partial,
    put,
    set_link,
    set_partial,
)
from . import many_sizes
from .guard import alone
from .in_order import SMALLEST
from .in_order import slide as slide_by_rounds
from .many_sizes import ManySizes, kernel_of_sizes

__all__ = ["FlatFit"]

EMPTY, ANSWER, RING = 0, 1, 2
NONE = -1  # before the first element visited
LAP = 3  # header: the position in the first place


def element(m: Memory, position: int) -> int:
    """The slot of a position in the window, or of the next one."""
    place = position - get(m, LAP)
    if place >= get(m, CAPACITY):
        place -= get(m, CAPACITY)
    return RING + place


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    at = element(m, end)
    lift(m, at, columns, row)
    set_link(m, at, end + 1)
    put(m, END, end + 1)


def evict(m: Memory) -> None:
    start = get(m, START)
    drop(m, element(m, start))
    put(m, START, start + 1)
    if start + 1 - get(m, LAP) == get(m, CAPACITY):
        put(m, LAP, start + 1)


def youngest(m: Memory, size: int) -> int:
    """The slot with the aggregate of this many of the youngest elements."""
    end = get(m, END)
    at = end - size
    if at == end:
        return EMPTY
    slot = element(m, at)
    after = link(m, slot)
    if after == end:
        return slot
    second = element(m, after)
    third = link(m, second)
    if third == end:
        combine(m, ANSWER, slot, second)
        return ANSWER
    found = element(m, third)
    if link(m, found) == end:
        combine(m, second, second, found)
        set_link(m, second, end)
        combine(m, ANSWER, slot, second)
        return ANSWER
    return walk(m, at, end)


def walk(m: Memory, at: int, end: int) -> int:
    """The same over any number of jumps: `youngest` takes up to three, which are nearly all, in one
    go, without turning links."""
    put(m, BUSY, 1)  # until the links are turned back
    first = at
    while at != end and link(m, element(m, at)) == at + 1:
        at += 1
    if at == end:  # nothing is jumped over: the way back is plain, without a link to wait for
        slot = element(m, end - 1)
        set_link(m, slot, end)
        for i in range(end - 2, first, -1):
            found = slot
            slot = element(m, i)
            combine(m, slot, slot, found)
            set_link(m, slot, end)
        combine(m, ANSWER, element(m, first), slot)
        put(m, BUSY, 0)
        return ANSWER
    at = first
    before = NONE
    while at != end:
        slot = element(m, at)
        after = link(m, slot)
        set_link(m, slot, before)
        before = at
        at = after
    at = before
    slot = element(m, at)
    before = link(m, slot)
    set_link(m, slot, end)
    while True:
        after = at
        found = slot
        at = before
        slot = element(m, at)
        before = link(m, slot)
        if before == NONE:
            set_link(m, slot, after)
            combine(m, ANSWER, slot, found)
            put(m, BUSY, 0)
            return ANSWER
        combine(m, slot, slot, found)
        set_link(m, slot, end)


def answer_sizes(m: Memory, outputs: Outputs, row: int, sizes: Any, count: int) -> None:
    """The answers over several sizes, which fall, from a row of the outputs on.  Ways of up to
    three jumps are those of `youngest`, with partials in registers."""
    end = get(m, END)
    held = end - get(m, START)
    for i in range(count):
        size = min(item(sizes, i), held)
        slot = element(m, end - size)
        after = link(m, slot)
        if after == end:
            lower(m, slot, outputs, row + i)
            continue
        second = element(m, after)
        third = link(m, second)
        x = partial(m, second)
        if third != end:
            found = element(m, third)
            if link(m, found) != end:
                lower(m, walk(m, end - size, end), outputs, row + i)
                continue
            x = combined(x, partial(m, found))
            set_partial(m, second, x)
            set_link(m, second, end)
        set_partial(m, ANSWER, combined(partial(m, slot), x))
        lower(m, ANSWER, outputs, row + i)


def slide(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int) -> None:
    """For each row from `first` on: make room, insert, answer.  Of a full window, many rounds in a
    row are alike, and go with positions and an aggregate in registers."""
    row = first
    while row < rows:
        while get(m, END) - get(m, START) > size:
            evict(m)
        if get(m, END) - get(m, START) == size:
            last = min(row + rounds_alike(m), rows)
            done = extend(m, columns, outputs, row, last)
            if done > row:
                row = done
                continue
            evict(m)
        insert(m, columns, row)
        lower(m, query(m), outputs, row)
        row += 1


def rounds_alike(m: Memory) -> int:
    """How many rounds from now on may have two jumps each, the first to the element that the
    oldest one jumps to now, and begin nowhere a new lap."""
    start = get(m, START)
    end = get(m, END)
    old = element(m, start)
    to = link(m, old)
    if to == end or link(m, element(m, to)) != end:
        return 0
    return min(to - start - 1, get(m, CAPACITY) + RING - max(old + 1, element(m, end)))


def extend(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int) -> int:
    """Rounds with two jumps each: a new row is combined into the element that all jump to.  Returns
    the first row for which the oldest element jumps elsewhere."""
    start = get(m, START)
    end = get(m, END)
    old = element(m, start)
    new = element(m, end)
    to = link(m, old)
    total = element(m, to)
    x = partial(m, total)
    for row in range(first, rows):
        if link(m, old + 1) != to:
            return row
        drop(m, old)
        old += 1
        start += 1
        put(m, START, start)
        lift(m, new, columns, row)
        end += 1
        set_link(m, new, end)
        put(m, END, end)
        x = combined(x, partial(m, new))
        set_partial(m, total, x)
        set_link(m, total, end)
        new += 1
        set_partial(m, ANSWER, combined(partial(m, old), x))
        lower(m, ANSWER, outputs, row)
    return rows


def query(m: Memory) -> int:
    return youngest(m, get(m, END) - get(m, START))


class FlatFit(ManySizes):
    """In-order aggregation in amortised constant time, for many sizes of window at once, each of
    which takes one combine at most if all are asked for.

    >>> from sash.operators import max
    >>> window = FlatFit(max)
    >>> for x in [9, 3, 5, 1]:
    ...     window.insert(x)
    >>> window.query(), window.query(3), window.query(1)
    (9, 5, 1)
    >>> window.queries([1, 2, 4])
    [1, 5, 9]
    """

    _kernel = kernel_of_sizes(
        "flat_fit",
        *(element, insert, evict, walk, youngest, query),
        *(answer_sizes, rounds_alike, extend, slide),
        scratch=2,
        link=True,
        for_vectors=(slide_by_rounds, many_sizes.answer_sizes),
    )

    @alone
    def jumps(self) -> list[tuple[int, Any]]:
        """For each value from the oldest: how many positions its link jumps, and its partial."""
        core = self._core
        start, end = core.get(START), core.get(END)
        slots = [RING + place for _, place, n in self._runs() for place in range(place, place + n)]
        return [
            (core.peek_link(slot) - i, core.peek(slot))
            for i, slot in zip(range(start, end), slots, strict=True)
        ]

    def _runs(self) -> list[tuple[int, int, int]]:
        """The elements from the oldest on, as runs: how many come before, the first place, how
        many places."""
        core, length = self._core, self._length()
        at = core.get(START) - core.get(LAP)
        first = min(length, core.get(CAPACITY) - at)
        return [(0, at, first), (first, 0, length - first)]

    @staticmethod
    def _capacity_for(elements: int) -> int:
        return max(elements, SMALLEST)

    @staticmethod
    def _larger(capacity: int) -> int:
        return capacity + max(capacity // 4, SMALLEST)

    def _move(self, capacity: int) -> None:
        """Move to a memory of another capacity, with the oldest element in the first place."""
        core = self._core
        blocks = [(RING + to, RING + place, n) for to, place, n in self._runs()]
        core.resize(capacity, [(0, 0, RING), *blocks])
        core.header[LAP] = core.get(START)

    def _check(self) -> None:
        super()._check()
        core = self._core
        assert 0 <= core.get(START) - core.get(LAP) < core.get(CAPACITY), "the lap is wrong"
        length = len(self)
        for i, (jump, _) in enumerate(self.jumps()):
            assert 1 <= jump <= length - i, f"element {i} jumps {jump}"
