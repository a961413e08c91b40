"""From events in order to windows, with slices that are cut only where windows start (Cutty).

A window may end within a slice.  It is answered when the first event after it comes; it reads the
open slice as it is then, and the slice goes on:

    sliding(5, 2)   0   1   2   3   4   5   6   7
    slices          |       |       |       |
    events              x       x     x   x      when the event at 5.5 comes, window 0 reads two
    window 0        [-------------------)        slices, and the event at 4.5 in the open one

The rest works as in `scan_kernel`: slices go through a queue of two stacks.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.two_stacks_lite import evict, flip, query
from ..kernels.program import Kernel
from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    combine,
    get,
    item,
    link,
    lower,
    put,
    set_item,
)
from ..slicing.slices import (
    SLICES,
    first_window,
    gather,
    last_window,
    slice_of,
    window_end,
    window_start,
)
from .scan_kernel import (
    ANSWERS,
    CHANGES,
    DUE,
    LAST,
    MADE,
    NEW,
    NEXT,
    RING,
    UNBOUNDED,
    begin,
    enter,
    place,
)

__all__ = ["CUTTY"]

# slots: an answer; events that are being added to the open slice; the first slot of the queue
ANSWER, PIECE, SLICES_FROM = 1, 3, 4
NONE = -UNBOUNDED  # no slice is open


def answer_due(
    m: Memory,
    limit: int,
    opened: int,
    outputs: Outputs,
    numbers: Any,
    covered: Any,
    row: int,
) -> int:
    """Answer the windows that hold an event and end by the limit, which is the time of the next
    event.  Return the new number of rows.  `opened` is the start of the open slice, which all these
    windows hold."""
    mask = get(m, CAPACITY) - 1
    last = get(m, LAST)
    w = get(m, NEXT)
    end = get(m, DUE)
    while end <= limit and w <= last:
        start = window_start(m, w)
        while get(m, START) < get(m, END) and link(m, RING + (get(m, START) & mask)) < start:
            evict(m)
        oldest = opened
        if get(m, START) < get(m, END):
            oldest = link(m, RING + (get(m, START) & mask))
        if oldest == NONE:
            break
        set_item(numbers, row, w)
        w += 1
        if get(m, CHANGES):
            # the next window that loses the oldest slice, or that holds the next event
            w = last_window(m, oldest) + 1
            if limit < UNBOUNDED:
                w = min(w, first_window(m, limit))
            set_item(covered, row, min(w - 1, last))
        end = window_end(m, w)
        put(m, NEXT, w)
        put(m, DUE, end)
        put(m, MADE, -1 - row)
        slot = place(m)
        if get(m, START) < get(m, END):
            slot = query(m)
            if opened != NONE:
                combine(m, ANSWER, slot, place(m))
                slot = ANSWER
        put(m, MADE, row + 1)
        put(m, ANSWERS, slot + 1)
        lower(m, slot, outputs, row)
        put(m, ANSWERS, 0)
        row += 1
    if end <= limit and limit < UNBOUNDED:  # then there is no slice
        w = first_window(m, limit)
        put(m, NEXT, w)
        put(m, DUE, window_end(m, w))
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
    """The same as `scan_kernel.windows_of_events`."""
    made = 0
    for g in range(count):
        i = item(bounds, g)
        n = item(bounds, g + 1)
        if i < n and begin(m, g, first, last, item(times, i)):
            while i < n and get(m, NEXT) <= get(m, LAST):
                start, end = slice_of(m, item(times, i))
                made = answer_due(m, item(times, i), NONE, outputs, numbers, covered, made)
                i = gather(m, place(m), NEW, columns, times, i, n, min(end, get(m, DUE)))
                while i < n and item(times, i) < end:
                    made = answer_due(m, item(times, i), start, outputs, numbers, covered, made)
                    i = gather(m, PIECE, NEW, columns, times, i, n, min(end, get(m, DUE)))
                    combine(m, place(m), place(m), PIECE)
                enter(m, start)
            made = answer_due(m, UNBOUNDED, NONE, outputs, numbers, covered, made)
        set_item(ends, g, made)
    return made


def count_windows(m: Memory, times: Any, bounds: Any, count: int) -> int:
    """The number of windows of all these groups that hold an event."""
    found = 0
    for g in range(count):
        first = 0  # the first window that is not counted
        first_end = -UNBOUNDED
        for i in range(item(bounds, g), item(bounds, g + 1)):
            t = item(times, i)
            if first_end <= t:
                first = first_window(m, t)
            last = last_window(m, t)
            if last >= first:
                found += last - first + 1
                first = last + 1
                first_end = window_end(m, first)
    return found


#: The kernel; `Scan` in `state.scan` prepares its memory.
CUTTY = Kernel(
    "cutty",
    (
        *SLICES,
        flip,
        evict,
        query,
        begin,
        place,
        enter,
        answer_due,
        windows_of_events,
        count_windows,
    ),
    ("windows_of_events", "count_windows"),
    scratch=4,
    link=True,
    constants=(("RING", SLICES_FROM),),
)
