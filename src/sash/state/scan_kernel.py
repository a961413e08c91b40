"""From slices to windows: one pass over the slices of each group, oldest first.

A group is what belongs to one key (or a stretch of time of one).  Its slices go through two stacks
in one queue; a window is given when a slice comes that is not in it any more.  Each slice
is inserted and evicted once, each window asked for once, so that the cost is one per
event and one per row given, whatever size/slide is.

Slices are made from events on the way (`windows_of_events`), or were made before
(`windows_of_slices`); `slices_of_events` stops half-way.  All that `windows_of_slices` must know is
noted before an answer is asked for: should it raise, the next call goes on after that window.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.two_stacks_lite import BACK, MID, evict, flip, query
from ..kernels.program import Kernel
from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    Partials,
    clear,
    combine,
    get,
    item,
    link,
    load,
    lower,
    put,
    set_item,
    set_link,
    store,
)
from ..slicing.slices import (
    EVERY,
    SIZE,
    SLICES,
    first_start,
    gather,
    last_start,
    slice_of,
)

__all__ = ["CHANGES", "GROUP", "MADE", "SLICE", "SWEEP", "UNBOUNDED"]

#: Header fields: the next window to give; the last that is known to hold something; whether only
#: windows whose content differs from the one before are wanted; the last window wanted; the group,
#: its next slice, and the rows made.
NEXT, COVERED, CHANGES, LAST, GROUP, SLICE, MADE = 8, 9, 10, 11, 12, 13, 14
NEW, RING = 2, 3  # slots: a row on its way into a slice, the slices
UNBOUNDED = 2**62  # after all times, and windows


def begin(m: Memory, group: int, first: Any, last: Any) -> None:
    """An empty queue for a group, and the first and last window that are wanted of it."""
    put(m, GROUP, group)
    put(m, START, get(m, END))
    put(m, MID, get(m, END))
    clear(m, BACK)
    put(m, NEXT, item(first, group))
    put(m, COVERED, item(first, group) - get(m, EVERY))
    put(m, LAST, item(last, group))


def place(m: Memory) -> int:
    """The slot for the next slice."""
    return RING + (get(m, END) & (get(m, CAPACITY) - 1))


def enter(m: Memory, start: int) -> None:
    """The next slice, which is in its slot, comes in."""
    at = place(m)
    set_link(m, at, start)
    combine(m, BACK, BACK, at)
    if get(m, NEXT) + get(m, SIZE) <= start:  # then nothing is held
        put(m, NEXT, first_start(m, start))
    put(m, END, get(m, END) + 1)


def fire(
    m: Memory,
    limit: int,
    outputs: Outputs,
    starts: Any,
    fresh: Any,
    row: int,
) -> int:
    """Give the windows that end by the limit and hold something; how many rows there are then.
    The limit is the start of the next slice: windows that end later hold it."""
    every = get(m, EVERY)
    size = get(m, SIZE)
    mask = get(m, CAPACITY) - 1
    last = get(m, LAST)
    w = get(m, NEXT)
    while w + size <= limit and w <= last:
        while get(m, START) < get(m, END) and link(m, RING + (get(m, START) & mask)) < w:
            evict(m)
        if get(m, START) == get(m, END):
            break
        set_item(starts, row, w)
        if get(m, CHANGES):
            set_item(fresh, row, 1 if w - every > get(m, COVERED) else 0)
        w += every
        if get(m, CHANGES):
            # the next that loses its oldest slice, or that holds the next one
            w = max(w, last_start(m, link(m, RING + (get(m, START) & mask))) + every)
            if limit < UNBOUNDED:
                w = min(w, max(get(m, NEXT) + every, first_start(m, limit)))
        put(m, NEXT, w)
        put(m, COVERED, w - every)
        put(m, MADE, row + 1)
        lower(m, query(m), outputs, row)
        row += 1
    return row


def windows_of_events(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    first: Any,
    last: Any,
    count: int,
    outputs: Outputs,
    ends: Any,
    starts: Any,
    fresh: Any,
) -> int:
    """The windows from first[g] to last[g] of each group; it has the rows from bounds[g] to
    bounds[g + 1], in order of time, and its windows end before ends[g].  Returns how many there
    are."""
    made = 0
    for g in range(count):
        begin(m, g, first, last)
        i = item(bounds, g)
        n = item(bounds, g + 1)
        while i < n:
            start, end = slice_of(m, item(times, i))
            made = fire(m, start, outputs, starts, fresh, made)
            i = gather(m, place(m), NEW, columns, times, i, n, end)
            enter(m, start)
        made = fire(m, UNBOUNDED, outputs, starts, fresh, made)
        set_item(ends, g, made)
    return made


def windows_of_slices(
    m: Memory,
    partials: Partials,
    slices: Any,
    bounds: Any,
    first: Any,
    last: Any,
    count: int,
    outputs: Outputs,
    ends: Any,
    starts: Any,
    fresh: Any,
) -> int:
    """The windows from first[g] to last[g] of each group; its slices, by their starts, are those
    from bounds[g] to bounds[g + 1].  A slice may be longer than the windows' edges would cut it, if
    none of these windows starts or ends within it."""
    made = get(m, MADE)
    g = get(m, GROUP)
    i = get(m, SLICE)
    while g < count:
        n = item(bounds, g + 1)
        if i < 0:
            i = item(bounds, g)
            begin(m, g, first, last)
        while i < n:
            put(m, SLICE, i)
            start = item(slices, i)
            made = fire(m, start, outputs, starts, fresh, made)
            load(m, place(m), partials, i)
            enter(m, start)
            i += 1
        put(m, SLICE, n)
        made = fire(m, UNBOUNDED, outputs, starts, fresh, made)
        set_item(ends, g, made)
        g += 1
        i = -1
    return made


def count_windows(m: Memory, times: Any, bounds: Any, count: int) -> int:
    """How many windows of these groups hold something."""
    every = get(m, EVERY)
    size = get(m, SIZE)
    found = 0
    for g in range(count):
        before = -UNBOUNDED  # the last window counted
        edge = -UNBOUNDED
        for i in range(item(bounds, g), item(bounds, g + 1)):
            t = item(times, i)
            if t >= edge:
                start, edge = slice_of(m, t)
                last = last_start(m, t)
                first = before + every
                if first + size <= start:
                    first = first_start(m, start)
                # a division is to be had for some of the slices only
                if last == first:
                    found += 1
                elif last > first:
                    found += (last - first) // every + 1
                before = last
    return found


def slices_of_events(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    groups: Any,
    starts: Any,
    partials: Partials,
) -> int:
    """The slices of each group, with their starts.  Returns how many there are."""
    made = 0
    for g in range(count):
        i = item(bounds, g)
        n = item(bounds, g + 1)
        while i < n:
            start, end = slice_of(m, item(times, i))
            i = gather(m, RING, NEW, columns, times, i, n, end)
            store(m, RING, partials, made)
            set_item(groups, made, g)
            set_item(starts, made, start)
            made += 1
    return made


#: The kernel; its memory is filled by `Pass` in `engine.passes`.
SWEEP = Kernel(
    "sweep",
    (
        *SLICES,
        flip,
        evict,
        query,
        begin,
        place,
        enter,
        fire,
        windows_of_events,
        windows_of_slices,
        count_windows,
        slices_of_events,
    ),
    ("windows_of_events", "windows_of_slices", "count_windows", "slices_of_events"),
    scratch=3,
    link=True,
    constants=(("RING", RING),),
)
