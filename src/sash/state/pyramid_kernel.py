"""From slices to the windows of one query among many: each window by a few combines.

A scan goes through all slices for each query.  If the edges of many queries cut the slices finely
and a query has few windows, a scan reads much to answer little.  A pyramid is built once over the
slices of each group, and answers any range of them.  Slices are cut into chunks of CHUNK; the
chunks are the slices of the next level, and so on.  Each slice of each level has two partials: of
its chunk up to the slice, and of its chunk from the slice on.

    level 1   |-------------------|-------------------|-------------------|----
    level 0   |----|----|----|----|----|----|----|----|----|----|----|----|----
    a window           [--)(------)(------------------)(--]
                    from   from          up to       up to

So a window takes two partials of each level, up to the level at which it begins and ends in the
same chunk; there it combines the slices between one by one.  Partials are combined in order of
time.

A table says which slices a window holds: windows are listed once for all groups, each by the
numbers of its two edges.  Before the kernel answers a group's windows, it notes the group's first
slice at each edge, so that no window has to search for its slices.

Time: to build, at most 3 combines for each slice of each level, and a level has one slice for CHUNK
slices of the level below; for a window of n slices, 2 combines for each of log n levels, to the
base CHUNK, and at most CHUNK more.  Space: two partials for each slice of each level.

Alon and Schieber, "Optimal preprocessing for answering on-line product queries" (1987), describe
the same structure with levels that grow faster.
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
from .scan_kernel import ANSWERS, GROUP, NEXT

__all__ = ["AGAIN", "ASKING", "CHUNK", "PYRAMID", "QUERY"]

CHUNK = 8  # a power of two
SHIFT = 3
LEFT, RIGHT, NEW = 0, 1, 2  # slots
#: Header fields besides those of a scan: the query, and 1 if the next call must go on in the middle
#: of its windows.
QUERY, AGAIN = 17, 18


def build_level(
    m: Memory, partials: Partials, bounds: Any, count: int, at: int, ups: Partials, downs: Partials
) -> None:
    """Fill a level of the pyramid, from place `at` on: for each slice the partial of its chunk up
    to the slice (`ups`), and of its chunk from the slice on (`downs`).  The slices of group g are
    those from bounds[g] up to bounds[g + 1]."""
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
    """Combine the partials from `first` up to `last` into a slot, after the partial that it
    holds."""
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
    """Combine the slices from `low` up to `high` of a group, at least one, into LEFT.  The slices
    of a group are numbered from 0.  places[level * count + g] is the place at which a level of
    group g begins."""
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
            else:  # the partial of a slice of this level is that of its whole chunk below
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


def place_edges(times: Any, many: int, starts: Any, begin: int, n: int, firsts: Any) -> None:
    """For each edge find the first of the slices from `begin` up to n that starts at the edge or
    later, counted from `begin`.  If slices are cut at these edges, the next edge is at most one
    slice further: then no branch depends on the data."""
    i = begin
    for e in range(many):
        t = item(times, e)
        if i < n:
            i += (item(starts, i) < t) * 1
            while i < n and item(starts, i) < t:
                i += 1
        set_item(firsts, e, i - begin)


def count_asked(
    m: Memory,
    starts: Any,
    bounds: Any,
    count: int,
    times: Any,
    many: int,
    lists: Any,
    lows: Any,
    highs: Any,
    changes: Any,
    queries: int,
    firsts: Any,
    found: Any,
) -> None:
    """Add up the number of windows of each query that hold a slice; see `windows_of_pyramid`."""
    for g in range(count):
        place_edges(times, many, starts, item(bounds, g), item(bounds, g + 1), firsts)
        for q in range(queries):
            more = 0
            before = 0
            before_high = 0
            for i in range(item(lists, q), item(lists, q + 1)):
                low = item(firsts, item(lows, i))
                high = item(firsts, item(highs, i))
                if item(changes, q) == 0:
                    more += (low < high) * 1
                elif low < high and (low != before or high != before_high):
                    more += 1
                    before = low
                    before_high = high
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
    times: Any,
    many: int,
    lists: Any,
    lows: Any,
    highs: Any,
    changes: Any,
    queries: int,
    firsts: Any,
    rows: Any,
    outputs: Outputs,
    ends: Any,
    windows: Any,
    covered: Any,
) -> int:
    """Answer all windows of several queries that hold a slice.  The windows of query q are those
    from lists[q] up to lists[q + 1]; `lows` and `highs` have the numbers of a window's two edges in
    `times`.  rows[q] is the next row of query q; its rows of group g end before ends[q * count +
    g].  A row has the place of its window in the lists and, if only changes are wanted, the place
    of the last window with the same slices.

    The kernel answers all queries for a group while the group's slices are in the cache.  It
    returns 1; if an answer raises an error, the next call goes on after that answer's window."""
    again = get(m, AGAIN)
    q = get(m, QUERY)
    for g in range(get(m, GROUP), count):
        begin = item(bounds, g)
        put(m, GROUP, g)
        place_edges(times, many, starts, begin, item(bounds, g + 1), firsts)
        while q < queries:
            put(m, QUERY, q)
            i = item(lists, q)
            if again:
                i = get(m, NEXT)
            again = 0
            last = item(lists, q + 1)
            row = item(rows, q)
            while i < last:
                low = item(firsts, item(lows, i))
                high = item(firsts, item(highs, i))
                if low < high:
                    set_item(windows, row, i)
                    if item(changes, q):
                        while (
                            i + 1 < last
                            and item(firsts, item(lows, i + 1)) == low
                            and item(firsts, item(highs, i + 1)) == high
                        ):
                            i += 1
                        set_item(covered, row, i)
                    answer_range(m, partials, ups, downs, places, g, count, low, high)
                    put(m, NEXT, i + 1)
                    set_item(rows, q, row + 1)
                    put(m, AGAIN, 1)
                    put(m, ANSWERS, LEFT + 1)
                    lower(m, LEFT, outputs, row)
                    put(m, ANSWERS, 0)
                    put(m, AGAIN, 0)
                    row += 1
                i += 1
            set_item(ends, q * count + g, row)
            q += 1
        q = 0
    return 1


#: The kernel; `Pyramid` in `state.pyramid` prepares its memory.
PYRAMID = Kernel(
    "pyramid",
    (build_level, fold_between, answer_range, place_edges, count_asked, windows_of_pyramid),
    ("build_level", "count_asked", "windows_of_pyramid"),
    scratch=3,
)

#: Counting reads no partials, so one compiled function serves all compiled operators.
ASKING = Kernel("asking", (place_edges, count_asked), ("count_asked",))
