"""From slices to windows: one scan over the slices of each group, oldest first.

A group is the slices of one key, or of one key in a stretch of time.  The slices go through a queue
of two stacks; a window is answered when a slice comes that starts at the window's end or later.
Each slice is inserted once and evicted once, and each window is answered once.  So the cost is
constant for each event and for each row, whatever size/slide is.

`windows_of_events` cuts events into slices on the way; `windows_of_slices` takes slices that were
cut before.  `windows_of_slices` notes all that it must know before it computes an answer: if that
raises an error, the next call goes on after that window.
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

#: Header fields, after those of `slices`: the next window, and its end; whether to leave out
#: windows with the same slices as the window before; the last window to answer; the group, its next
#: slice, and the number of rows so far (while the slices of row r are combined, -1 - r); while
#: `lower` runs, the slot that it works on, plus 1, otherwise 0.
NEXT, DUE, CHANGES, LAST, GROUP, SLICE, MADE, ANSWERS = 12, 13, 14, 15, 16, 17, 18, 19
NEW, RING = 2, 3  # slots: a row that is being added to a slice; the first slot of the queue
UNBOUNDED = 2**62  # after all times and all windows


def begin(m: Memory, group: int, first: Any, last: Any, t: int) -> bool:
    """Begin a group, whose first slice is at time t, with an empty queue.  Return whether any of
    the group's windows from `first` to `last` can hold a slice."""
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
    """Insert the next slice, whose partial is in the slot `place`, into the queue."""
    at = place(m)
    set_link(m, at, start)
    combine(m, BACK, BACK, at)
    if get(m, DUE) <= start:  # then the queue is empty
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
    """Answer the windows that end by the limit and hold a slice, and return the new number of rows.
    The limit is the start of the next slice; windows that end later hold that slice."""
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
            # the next window that loses the oldest slice, or that holds the next slice
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
    """Answer the windows from first[g] to last[g] of each group g, whose events are those from
    bounds[g] up to bounds[g + 1], in order of time.  Write the place after the group's windows to
    ends[g].  Return the number of windows."""
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
    """Answer the windows from first[g] to last[g] of each group g, whose slices are those from
    bounds[g] up to bounds[g + 1], in order of time.  A slice may be longer than the window's edges
    would cut it, if none of these windows starts or ends within it.  Return the number of windows.
    """
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
    """Answer spans of time of each group g: those from ask_bounds[g] up to ask_bounds[g + 1].  A
    span goes from a low time up to but not including a high one; within a group, neither falls from
    one span to the next.  Return the number of spans."""
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
    """The first place from i up to n whose start is at time t or later; n if there is none.  The
    steps double, so a place near i is found after few steps."""
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
    """The number of windows that hold one of the times from i up to n."""
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
    """The number of windows of all these groups that hold one of their times."""
    found = 0
    for g in range(count):
        found += count_group(m, times, item(bounds, g), item(bounds, g + 1))
    return found


#: Counting reads the header, which is the same for all operators, so one compiled function serves
#: all scans of compiled operators.
COUNTS = Kernel("counts", (*SLICES, seek, count_group, count_windows), ("count_windows",))

#: The kernel; `Scan` in `state.scan` prepares its memory.
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
