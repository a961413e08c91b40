"""From slices to the windows of one query among many: each window by a few combines.

A scan goes through all slices for each query.  Where many queries cut them finely and a query has
few windows, it reads much to answer little.  A pyramid is built once over the slices of each group,
and answers any range of them.  Slices are cut into chunks of CHUNK; the chunks are the slices of
the next level, and so on.  Each slice of each level has two partials: of its chunk up to it, and of
its chunk from it on.

    level 1   |-------------------|-------------------|-------------------|----
    level 0   |----|----|----|----|----|----|----|----|----|----|----|----|----
    a window           [--)(------)(------------------)(--]
                    from   from          up to       up to

So a window takes two partials of each level, until it begins and ends in the same chunk, whose
slices between are combined one by one.  The order of combining is that of time.

Time: at most 3 combines for a slice and level to build, a level having one in CHUNK of those below;
for a window of n slices 2 for each level, of which there are log n to the base CHUNK, and at most
CHUNK more.  Space: two partials for a slice and level.

Alon and Schieber, "Optimal preprocessing for answering on-line product queries" (1987), have the
same with levels that grow faster.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import (
    Memory,
    Outputs,
    Partials,
    combine,
    get,
    item,
    load,
    lower,
    put,
    set_item,
    store,
)
from ..slicing.slices import CYCLE, SLICES, first_window, last_window, window_end, window_start
from .scan_kernel import ANSWERS, GROUP, NEXT, count_group, seek

__all__ = ["AGAIN", "ASKED", "ASKING", "CHUNK", "PYRAMID", "QUERY"]

CHUNK = 8  # a power of two
SHIFT = 3
LEFT, RIGHT, NEW = 0, 1, 2  # slots
#: Header fields, in the places of some that a scan has: the query, and 1 if the next call is to go
#: on in the middle of its windows.  ASKED fields from CYCLE on are a query's windows.
QUERY, AGAIN = 17, 18
ASKED = 8


def build_level(
    m: Memory, partials: Partials, bounds: Any, count: int, at: int, ups: Partials, downs: Partials
) -> None:
    """Fill a level of the pyramid, from its place `at` on: of each slice its chunk up to it (`ups`)
    and its chunk from it on (`downs`).  Group g has the slices from bounds[g] to bounds[g + 1]."""
    for g in range(count):
        begin = item(bounds, g)
        n = item(bounds, g + 1) - begin
        for i in range(n):
            load(m, NEW, partials, begin + i)
            if i & (CHUNK - 1) == 0:
                load(m, LEFT, partials, begin + i)
            else:
                combine(m, LEFT, LEFT, NEW)
            store(m, LEFT, ups, at + begin + i)
        for i in range(n - 1, -1, -1):
            if i == n - 1 or i & (CHUNK - 1) == CHUNK - 1:
                load(m, RIGHT, partials, begin + i)
            else:
                load(m, NEW, partials, begin + i)
                combine(m, RIGHT, NEW, RIGHT)
            store(m, RIGHT, downs, at + begin + i)


def fold_between(m: Memory, dst: int, partials: Partials, first: int, last: int) -> None:
    """Combine the partials from `first` up to `last` into a slot, behind what it holds."""
    for i in range(first, last):
        load(m, NEW, partials, i)
        combine(m, dst, dst, NEW)


def answer_range(
    m: Memory,
    partials: Partials,
    ups: Partials,
    downs: Partials,
    places: Any,
    g: int,
    count: int,
    low: int,
    high: int,
) -> None:
    """Combine the slices from `low` up to `high`, at least one, of a group into LEFT; its first
    slice has the number 0.  places[level * count + g] is where a group's level begins."""
    at = item(places, g)
    if low >> SHIFT == (high - 1) >> SHIFT:
        if low & (CHUNK - 1) == 0:
            load(m, LEFT, ups, at + high - 1)
        else:
            load(m, LEFT, partials, at + low)
            fold_between(m, LEFT, partials, at + low + 1, at + high)
        return
    load(m, LEFT, downs, at + low)
    load(m, RIGHT, ups, at + high - 1)
    low = (low >> SHIFT) + 1
    high = (high - 1) >> SHIFT
    level = count
    while low < high:
        below = at
        at = item(places, level + g)
        if low >> SHIFT == (high - 1) >> SHIFT:
            if low & (CHUNK - 1) == 0:
                load(m, NEW, ups, at + high - 1)
                combine(m, LEFT, LEFT, NEW)
            else:  # a slice of this level is all of its chunk below
                for i in range(low, high):
                    load(m, NEW, ups, below + (i << SHIFT) + CHUNK - 1)
                    combine(m, LEFT, LEFT, NEW)
            break
        load(m, NEW, downs, at + low)
        combine(m, LEFT, LEFT, NEW)
        load(m, NEW, ups, at + high - 1)
        combine(m, RIGHT, NEW, RIGHT)
        low = (low >> SHIFT) + 1
        high = (high - 1) >> SHIFT
        level += count
    combine(m, LEFT, LEFT, RIGHT)


def turn_to(m: Memory, asked: Any, query: int) -> None:
    """Write the windows of a query into the header."""
    for i in range(ASKED):
        put(m, CYCLE + i, item(asked, query * ASKED + i))


def count_asked(
    m: Memory, starts: Any, bounds: Any, count: int, asked: Any, queries: int, found: Any
) -> None:
    """Add up how many windows of each query hold something."""
    for g in range(count):
        for q in range(queries):
            turn_to(m, asked, q)
            more = count_group(m, starts, item(bounds, g), item(bounds, g + 1))
            set_item(found, q, item(found, q) + more)


def windows_of_pyramid(
    m: Memory,
    partials: Partials,
    ups: Partials,
    downs: Partials,
    places: Any,
    starts: Any,
    bounds: Any,
    count: int,
    asked: Any,
    changes: Any,
    queries: int,
    rows: Any,
    outputs: Outputs,
    ends: Any,
    numbers: Any,
    covered: Any,
) -> int:
    """All windows of several queries, as `scan_kernel.windows_of_slices` has those of one; rows[q]
    is the next row for query q, whose windows of group g end before ends[q * count + g].  All
    queries are answered for a group while the processor's cache has its slices.  Returns 1; should
    an answer raise, the next call goes on after its window."""
    again = get(m, AGAIN)
    q = get(m, QUERY)
    for g in range(get(m, GROUP), count):
        begin = item(bounds, g)
        n = item(bounds, g + 1)
        put(m, GROUP, g)
        while q < queries:
            turn_to(m, asked, q)
            put(m, QUERY, q)
            low = begin
            high = begin
            w = get(m, NEXT)
            if not again and begin < n:
                w = first_window(m, item(starts, begin))
            again = 0
            put(m, AGAIN, 0)
            while low < n:
                low = seek(starts, low, n, window_start(m, w))
                if low == n:
                    break
                end = window_end(m, w)
                if item(starts, low) >= end:
                    w = first_window(m, item(starts, low))
                    continue
                high = seek(starts, max(low, high), n, end)
                row = item(rows, q)
                set_item(numbers, row, w)
                w += 1
                if item(changes, q):
                    # the next that loses its oldest slice, or that holds the next one
                    w = last_window(m, item(starts, low)) + 1
                    if high < n:
                        w = min(w, first_window(m, item(starts, high)))
                    set_item(covered, row, w - 1)
                answer_range(m, partials, ups, downs, places, g, count, low - begin, high - begin)
                put(m, NEXT, w)
                set_item(rows, q, row + 1)
                put(m, AGAIN, 1)
                put(m, ANSWERS, LEFT + 1)
                lower(m, LEFT, outputs, row)
                put(m, ANSWERS, 0)
                put(m, AGAIN, 0)
            set_item(ends, q * count + g, item(rows, q))
            q += 1
        q = 0
    return 1


#: The kernel; its memory is filled by `Pyramid` in `state.pyramid`.
PYRAMID = Kernel(
    "pyramid",
    (
        *SLICES,
        seek,
        count_group,
        build_level,
        fold_between,
        answer_range,
        turn_to,
        count_asked,
        windows_of_pyramid,
    ),
    ("build_level", "count_asked", "windows_of_pyramid"),
    scratch=3,
)

#: Counting reads the header, which is the same for all operators.
ASKING = Kernel("asking", (*SLICES, seek, count_group, turn_to, count_asked), ("count_asked",))
