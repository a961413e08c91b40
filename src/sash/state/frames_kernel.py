"""From rows in order to the answers of frames: the ranges of rows that driven windows hold.

A frame is a range of rows, `[first, last)`.  Frames come in an order in which neither end goes
back, so that each row is inserted and evicted once, through two stacks in one queue.  Rows that no
frame holds are never looked at, and a frame that shares nothing with those before it starts anew:
that is how the frames of one key follow those of another.

    rows     0  1  2  3  4  5  6  7
    frames   [-----)
                [--------)
                         [-----)           of the next key

`state.measures` finds the frames.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.two_stacks_lite import BACK, MID, query
from ..kernels.program import Kernel
from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    Partials,
    accumulate,
    clear,
    combine,
    fold_rows,
    get,
    item,
    lift,
    load,
    lower,
    put,
    store,
)

__all__ = ["ANSWERS", "FRAME", "FRAMES", "HOLDS", "NEW", "RING", "begin_at", "end_at", "place"]

#: Header fields: the frame, one more than the slot that `lower` works on while it runs, else 0;
#: whether rows must be kept because some will be evicted; the group of rows.
FRAME, ANSWERS, HOLDS, GROUP = 4, 5, 6, 7
ANSWER, NEW, PEERS, RING = 1, 2, 3, 4  # slots: an answer, a row, peers before a row, the rows


def place(m: Memory, row: int) -> int:
    """The slot of a row."""
    return RING + (row & (get(m, CAPACITY) - 1))


def begin_at(m: Memory, first: int) -> None:
    """Evict the rows before `first`."""
    if first <= get(m, START):
        return
    if first >= get(m, END):
        put(m, START, first)
        put(m, MID, first)
        put(m, END, first)
        clear(m, BACK)
    elif first < get(m, MID):
        put(m, START, first)
    else:
        end = get(m, END)
        put(m, BUSY, 1)
        accumulate(m, RING, get(m, CAPACITY) - 1, first, end - 1)
        put(m, BUSY, 0)
        put(m, START, first)
        put(m, MID, end)
        clear(m, BACK)


def end_at(m: Memory, columns: Columns, last: int) -> None:
    """Insert the rows before `last`."""
    row = get(m, END)
    while row < last:
        at = NEW
        if get(m, HOLDS):
            at = place(m, row)
        lift(m, at, columns, row)
        combine(m, BACK, BACK, at)
        row += 1
        put(m, END, row)


def answer(m: Memory, slot: int, outputs: Outputs, row: int) -> None:
    """Answer a frame whose partial is in a slot."""
    put(m, ANSWERS, slot + 1)
    lower(m, slot, outputs, row)
    put(m, ANSWERS, 0)


def frames(
    m: Memory, columns: Columns, first: Any, last: Any, count: int, outputs: Outputs
) -> None:
    """Answer the frames `[first[f], last[f])`."""
    for f in range(count):
        put(m, FRAME, f)
        begin_at(m, item(first, f))
        end_at(m, columns, item(last, f))
        answer(m, query(m), outputs, f)


def frames_in_time(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    older: int,
    younger: int,
    outputs: Outputs,
) -> int:
    """The same for one frame a row of `count` groups, which are in order of time: it holds the rows
    of its group whose times are from `older` before its own up to `younger` before it, which is not
    included.  Returns 0 if there is no room for a row, and goes on from there when it is called
    again, else 1.

    The ends are found on the way: which row is the first that is kept is hard to foresee for a
    processor, and once is enough.
    """
    g = get(m, GROUP)
    while g < count:
        n = item(bounds, g + 1)
        i = max(get(m, FRAME), item(bounds, g))
        low = max(get(m, START), item(bounds, g))
        high = max(get(m, END), low)
        while i < n:
            t = item(times, i)
            while low < n and item(times, low) < t - older:
                low += 1
            begin_at(m, low)
            high = max(high, low)
            while high < n and item(times, high) < t - younger:
                if high - low == get(m, CAPACITY) and get(m, HOLDS):
                    put(m, FRAME, i)
                    put(m, GROUP, g)
                    return 0
                high += 1
                end_at(m, columns, high)
            put(m, FRAME, i)
            answer(m, query(m), outputs, i)
            i += 1
        g += 1
    return 1


def frames_apart(
    m: Memory, columns: Columns, first: Any, last: Any, count: int, outputs: Outputs
) -> None:
    """Answer frames that hold something, and no row of which is in another."""
    for f in range(count):
        put(m, FRAME, f)
        fold_rows(m, ANSWER, NEW, columns, item(first, f), item(last, f))
        answer(m, ANSWER, outputs, f)


def frames_excluding(
    m: Memory,
    columns: Columns,
    first: Any,
    last: Any,
    ends: Any,
    count: int,
    ties: int,
    after: Partials,
    outputs: Outputs,
) -> None:
    """The same for one frame a row, where the rows `[last[f], ends[f])` are the peers of row f.
    With `ties`, the frame holds of them row f alone, else all but row f.

    The peers after a row are folded from the last one on, when the first of them comes, and
    kept in `after`; those before a row are folded on the way.
    """
    for f in range(count):
        put(m, FRAME, f)
        begin_at(m, item(first, f))
        peers = item(last, f)
        end = item(ends, f)
        end_at(m, columns, peers)
        if f == peers and not ties:
            fold_after(m, columns, f, end, after)
        slot = query(m)
        lift(m, NEW, columns, f)
        if ties:
            combine(m, ANSWER, slot, NEW)
        else:
            combine(m, ANSWER, slot, PEERS)
            combine(m, PEERS, PEERS, NEW)
            if f + 1 < end:
                load(m, NEW, after, f + 1 - peers)
                combine(m, ANSWER, ANSWER, NEW)
        answer(m, ANSWER, outputs, f)


def fold_after(m: Memory, columns: Columns, first: int, end: int, after: Partials) -> None:
    """Of the peers from row `first` to the end: after[i] = those from the i-th on combined, but for
    the first.  No peer is before the first one."""
    clear(m, PEERS)
    for i in range(end - 1 - first, 0, -1):
        lift(m, NEW, columns, first + i)
        combine(m, PEERS, NEW, PEERS)
        store(m, PEERS, after, i)
    clear(m, PEERS)


#: The kernel; its memory is filled by `answer_frames` in `state.frames`.
FRAMES = Kernel(
    "frames",
    (
        query,
        place,
        begin_at,
        end_at,
        answer,
        frames,
        frames_in_time,
        frames_apart,
        fold_after,
        frames_excluding,
    ),
    ("frames", "frames_in_time", "frames_apart", "frames_excluding"),
    scratch=4,
    constants=(("RING", RING),),
)
