"""From slices to windows: one scan over the slices of each group, oldest first.

A group is what belongs to one key (or a stretch of time of one).  Its slices go through two stacks
in one queue; a window is answered when a slice comes that is not in it any more.  Each slice is
inserted and evicted once, each window asked for once, so that the cost is one per event and one per
row, whatever size/slide is.

Slices are made from events on the way (`windows_of_events`), or were made before
(`windows_of_slices`).  All that `windows_of_slices` must know is noted before an answer is asked
for: should it raise, the next call goes on after that window.
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
)
from ..slicing.cut import cut
from ..slicing.slices import (
    SLICES,
    first_window,
    gather,
    last_window,
    slice_of,
    window_end,
    window_start,
)

__all__ = [
    "ANSWERS",
    "CHANGES",
    "COUNTS",
    "GROUP",
    "MADE",
    "NEW",
    "NEXT",
    "RING",
    "SCAN",
    "SLICE",
    "UNBOUNDED",
    "count_group",
    "seek",
]

#: Header fields, after those of `slices`: the next window, and when it ends; whether windows that
#: have the same slices as the one before are left out; the last window wanted; the group, its next
#: slice, and the rows made (-1 less the row, while its slices are combined); one more than the slot
#: that `lower` works on while it runs, else 0.
NEXT, DUE, CHANGES, LAST, GROUP, SLICE, MADE, ANSWERS = 12, 13, 14, 15, 16, 17, 18, 19
NEW, RING = 2, 3  # slots: a row on its way into a slice, the slices
UNBOUNDED = 2**62  # after all times, and windows


def begin(m: Memory, group: int, first: Any, last: Any, t: int) -> bool:
    """Start with the first slice of a group, which is at a time: an empty queue.  Return whether
    any of the windows wanted can hold something."""
    w = max(item(first, group), first_window(m, t))
    if w > item(last, group):
        return False
    put(m, GROUP, group)
    put(m, START, get(m, END))
    put(m, MID, get(m, END))
    clear(m, BACK)
    put(m, NEXT, w)
    put(m, DUE, window_end(m, w))
    put(m, LAST, item(last, group))
    return True


def place(m: Memory) -> int:
    """The slot for the next slice."""
    return RING + (get(m, END) & (get(m, CAPACITY) - 1))


def enter(m: Memory, start: int) -> None:
    """The next slice, which is in its slot, comes in."""
    at = place(m)
    set_link(m, at, start)
    combine(m, BACK, BACK, at)
    if get(m, DUE) <= start:  # then nothing is held
        w = first_window(m, start)
        put(m, NEXT, w)
        put(m, DUE, window_end(m, w))
    put(m, END, get(m, END) + 1)


def fire(
    m: Memory,
    limit: int,
    outputs: Outputs,
    numbers: Any,
    covered: Any,
    row: int,
) -> int:
    """Answer the windows that end by the limit and hold something; how many rows there are then.
    The limit is the start of the next slice: windows that end later hold it."""
    mask = get(m, CAPACITY) - 1
    last = get(m, LAST)
    w = get(m, NEXT)
    end = get(m, DUE)
    while end <= limit and w <= last:
        start = window_start(m, w)
        while get(m, START) < get(m, END) and link(m, RING + (get(m, START) & mask)) < start:
            evict(m)
        if get(m, START) == get(m, END):
            break
        set_item(numbers, row, w)
        w += 1
        if get(m, CHANGES):
            # the next that loses its oldest slice, or that holds the next one
            w = last_window(m, link(m, RING + (get(m, START) & mask))) + 1
            if limit < UNBOUNDED:
                w = min(w, first_window(m, limit))
            set_item(covered, row, min(w - 1, last))
        end = window_end(m, w)
        put(m, NEXT, w)
        put(m, DUE, end)
        put(m, MADE, -1 - row)
        slot = query(m)
        put(m, MADE, row + 1)
        put(m, ANSWERS, slot + 1)
        lower(m, slot, outputs, row)
        put(m, ANSWERS, 0)
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
    numbers: Any,
    covered: Any,
) -> int:
    """The windows from first[g] to last[g] of each group; it has the rows from bounds[g] to
    bounds[g + 1], in order of time, and its windows end before ends[g].  Returns how many there
    are."""
    made = 0
    for g in range(count):
        i = item(bounds, g)
        n = item(bounds, g + 1)
        if i < n and begin(m, g, first, last, item(times, i)):
            while i < n:
                start, end = slice_of(m, item(times, i))
                made = fire(m, start, outputs, numbers, covered, made)
                if get(m, NEXT) > get(m, LAST):
                    break
                i = gather(m, place(m), NEW, columns, times, i, n, end)
                enter(m, start)
            made = fire(m, UNBOUNDED, outputs, numbers, covered, made)
        set_item(ends, g, made)
    return made


def windows_of_slices(
    m: Memory,
    partials: Partials,
    starts: Any,
    bounds: Any,
    first: Any,
    last: Any,
    count: int,
    outputs: Outputs,
    ends: Any,
    numbers: Any,
    covered: Any,
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
            if i == n or not begin(m, g, first, last, item(starts, i)):
                set_item(ends, g, made)
                g += 1
                i = -1
                continue
        while i < n:
            put(m, SLICE, i)
            start = item(starts, i)
            made = fire(m, start, outputs, numbers, covered, made)
            if get(m, NEXT) > get(m, LAST):
                break
            load(m, place(m), partials, i)
            enter(m, start)
            i += 1
        put(m, SLICE, n)
        made = fire(m, UNBOUNDED, outputs, numbers, covered, made)
        set_item(ends, g, made)
        g += 1
        i = -1
    return made


def spans_of_slices(
    m: Memory,
    partials: Partials,
    starts: Any,
    bounds: Any,
    ask_bounds: Any,
    lows: Any,
    highs: Any,
    count: int,
    outputs: Outputs,
) -> int:
    """The answers over spans of time of each group: those from ask_bounds[g] to ask_bounds[g + 1],
    from a low time up to a high one, which is not included, neither of which falls."""
    mask = get(m, CAPACITY) - 1
    made = get(m, MADE)
    g = get(m, GROUP)
    i = get(m, SLICE)
    while g < count:
        if i < 0:
            i = item(bounds, g)
            put(m, START, get(m, END))
            put(m, MID, get(m, END))
            clear(m, BACK)
            put(m, GROUP, g)
        while made < item(ask_bounds, g + 1):
            while i < item(bounds, g + 1) and item(starts, i) < item(highs, made):
                at = place(m)
                load(m, at, partials, i)
                set_link(m, at, item(starts, i))
                combine(m, BACK, BACK, at)
                put(m, END, get(m, END) + 1)
                i += 1
            low = item(lows, made)
            while get(m, START) < get(m, END) and link(m, RING + (get(m, START) & mask)) < low:
                evict(m)
            put(m, SLICE, i)
            slot = query(m)
            made += 1
            put(m, MADE, made)
            put(m, ANSWERS, slot + 1)
            lower(m, slot, outputs, made - 1)
            put(m, ANSWERS, 0)
        g += 1
        i = -1
    return made


def seek(starts: Any, i: int, n: int, t: int) -> int:
    """The first place from i on, before n, whose start is not before a time; n if there is none.
    Steps double, so that what is near is found at once."""
    if i >= n or item(starts, i) >= t:
        return i
    step = 1
    while i + step < n and item(starts, i + step) < t:
        i += step
        step += step
    high = min(i + step, n)
    while high - i > 1:
        mid = (i + high) >> 1
        if item(starts, mid) < t:
            i = mid
        else:
            high = mid
    return high


def count_group(m: Memory, times: Any, i: int, n: int) -> int:
    """How many windows hold something of a group, which has the times from i up to n."""
    found = 0
    first = 0  # the first window that is not counted
    first_end = -UNBOUNDED
    while i < n:
        t = item(times, i)
        start, edge = slice_of(m, t)
        if first_end <= start:
            first = first_window(m, start)
        last = last_window(m, t)
        if last >= first:
            found += last - first + 1
            first = last + 1
            first_end = window_end(m, first)
        i = seek(times, i, n, edge)
    return found


def count_windows(m: Memory, times: Any, bounds: Any, count: int) -> int:
    """How many windows of these groups hold something."""
    found = 0
    for g in range(count):
        found += count_group(m, times, item(bounds, g), item(bounds, g + 1))
    return found


#: Counting reads the header, which is the same for all operators, so one compiled function serves
#: all scans of compiled operators.
COUNTS = Kernel("counts", (*SLICES, seek, count_group, count_windows), ("count_windows",))

#: The kernel; its memory is filled by `Scan` in `state.scan`.
SCAN = Kernel(
    "scan",
    (
        *SLICES,
        cut,
        flip,
        evict,
        query,
        begin,
        place,
        enter,
        fire,
        windows_of_events,
        windows_of_slices,
        spans_of_slices,
        seek,
        count_group,
        count_windows,
    ),
    ("windows_of_events", "windows_of_slices", "spans_of_slices", "count_windows", "cut"),
    scratch=3,
    link=True,
    constants=(("RING", RING),),
)
