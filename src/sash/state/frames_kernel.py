"""From rows in order to the answers of frames: the ranges of rows that driven windows hold.

A frame is a range of rows, `[first, last)`.  Frames come in an order in which neither end goes
back, so each row is inserted and evicted once, in a queue of two stacks.  The kernel never reads a
row that no frame holds.  If a frame shares no row with the frames before it, the queue starts
empty; so the frames of one key follow those of another.

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
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    Partials,
    clear,
    combine,
    combined,
    fold_rows,
    get,
    item,
    lift,
    load,
    partial,
    put,
    set_partial,
    store,
)
from . import vector_frames
from .frame_steps import (
    ANSWER,
    FRAME,
    GROUP,
    HOLDS,
    NEW,
    PEERS,
    RING,
    answer,
    begin_at,
    end_at,
    place,
)

__all__ = ["FRAMES"]


def frames(
    m: Memory, columns: Columns, first: Any, last: Any, count: int, outputs: Outputs, to: int
) -> None:
    """Answer the frames `[first[f], last[f])` into the outputs from `to` on.  The partial of the
    rows that were inserted since the last flip stays in registers, and the queue's fields in local
    variables: a step that reads memory which the step before has written must wait for it."""
    mask, holds = get(m, CAPACITY) - 1, get(m, HOLDS)
    start, mid, end = get(m, START), get(m, MID), get(m, END)
    x = partial(m, BACK)
    for f in range(count):
        put(m, FRAME, f)
        low, high = item(first, f), item(last, f)
        if low > start:
            if low >= mid:
                put(m, START, start)
                put(m, END, end)
                begin_at(m, low)
                mid, end = get(m, MID), get(m, END)
                x = partial(m, BACK)
            start = low
        while end < high:
            at = NEW
            if holds:
                at = RING + (end & mask)
            lift(m, at, columns, end)
            x = combined(x, partial(m, at))
            end += 1
        if start < mid:
            set_partial(m, ANSWER, combined(partial(m, RING + (start & mask)), x))
        else:
            set_partial(m, ANSWER, x)
        answer(m, ANSWER, outputs, to + f)


def frames_in_time(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    older: int,
    younger: int,
    outputs: Outputs,
    to: int,
) -> int:
    """Answer one frame for each row of `count` groups, which are in order of time: the rows of its
    group whose times are at most `older` and more than `younger` before the row's own time.  The
    first row to answer is the one in the header's FRAME.  Return 1 when done, 0 if there is no room
    for a row; the next call goes on from there.

    The function finds the ends of frames on the way.  A processor cannot predict well how many rows
    leave when one comes.  So the loop counts how many of the four oldest rows leave, and repeats
    only if all of them do.
    """
    mask, holds = get(m, CAPACITY) - 1, get(m, HOLDS)
    start, mid, end = get(m, START), get(m, MID), get(m, END)
    x = partial(m, BACK)
    g = get(m, GROUP)
    while g < count:
        n = item(bounds, g + 1)
        low = max(start, item(bounds, g))
        for i in range(max(get(m, FRAME), item(bounds, g)), n):
            put(m, FRAME, i)
            t = item(times, i)
            edge = t - older
            gone = 4
            while gone == 4 and low + 4 <= n:
                gone = int(item(times, low) < edge) + int(item(times, low + 1) < edge)
                gone += int(item(times, low + 2) < edge) + int(item(times, low + 3) < edge)
                low += gone
            if gone == 4:
                while low < n and item(times, low) < edge:
                    low += 1
            if low >= mid and low > start:
                put(m, START, start)
                put(m, END, end)
                begin_at(m, low)
                mid, end = get(m, MID), get(m, END)
                x = partial(m, BACK)
            start = low
            while end < n and item(times, end) < t - younger:
                at = NEW
                if holds:
                    if end - start > mask:
                        put(m, START, start)
                        put(m, END, end)
                        put(m, GROUP, g)
                        set_partial(m, BACK, x)
                        return 0
                    at = RING + (end & mask)
                lift(m, at, columns, end)
                x = combined(x, partial(m, at))
                end += 1
            if start < mid:
                set_partial(m, ANSWER, combined(partial(m, RING + (start & mask)), x))
            else:
                set_partial(m, ANSWER, x)
            answer(m, ANSWER, outputs, to + i)
        g += 1
    return 1


def frames_of_rows(
    m: Memory, columns: Columns, bounds: Any, count: int, size: int, outputs: Outputs, to: int
) -> None:
    """Answer one frame for each row of `count` groups: the row and the rows of its group before it,
    at most `size` in all.  The first row to answer is the one in the header's FRAME."""
    mask = get(m, CAPACITY) - 1
    start, mid, end = get(m, START), get(m, MID), get(m, END)
    x = partial(m, BACK)
    for g in range(count):
        begin = item(bounds, g)
        for i in range(max(get(m, FRAME), begin), item(bounds, g + 1)):
            put(m, FRAME, i)
            low = max(begin, i + 1 - size)
            if low >= mid and low > start:
                put(m, START, start)
                put(m, END, end)
                begin_at(m, low)
                mid, end = get(m, MID), get(m, END)
                x = partial(m, BACK)
            start = low
            while end <= i:
                at = RING + (end & mask)
                lift(m, at, columns, end)
                x = combined(x, partial(m, at))
                end += 1
            if start < mid:
                set_partial(m, ANSWER, combined(partial(m, RING + (start & mask)), x))
            else:
                set_partial(m, ANSWER, x)
            answer(m, ANSWER, outputs, to + i)


def frames_apart(
    m: Memory, columns: Columns, first: Any, last: Any, count: int, outputs: Outputs, to: int
) -> None:
    """Answer frames that are not empty, and share no rows."""
    for f in range(count):
        put(m, FRAME, f)
        fold_rows(m, ANSWER, NEW, columns, item(first, f), item(last, f))
        answer(m, ANSWER, outputs, to + f)


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
    to: int,
) -> None:
    """Answer one frame for each row f: the rows `[first[f], last[f])`, and some of its peers, which
    are the rows `[last[f], ends[f])`: with `ties` row f alone, otherwise all of them but row f.

    When the first peer comes, the peers after each one are combined, from the last peer backwards,
    and kept in `after`; the peers before a row are combined on the way.
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
        answer(m, ANSWER, outputs, to + f)


def fold_after(m: Memory, columns: Columns, first: int, end: int, after: Partials) -> None:
    """Combine the peers from row first + i up to `end` into after[i], for each i from 1 on.  Then
    clear the slot PEERS, because no peer is before the first one."""
    clear(m, PEERS)
    for i in range(end - 1 - first, 0, -1):
        lift(m, NEW, columns, first + i)
        combine(m, PEERS, NEW, PEERS)
        store(m, PEERS, after, i)
    clear(m, PEERS)


#: The kernel; `Frames.answer` in `state.frames` prepares its memory.
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
        frames_of_rows,
        frames_apart,
        fold_after,
        frames_excluding,
    ),
    ("frames", "frames_in_time", "frames_of_rows", "frames_apart", "frames_excluding"),
    scratch=4,
    constants=(("RING", RING),),
    for_vectors=(
        vector_frames.frames,
        vector_frames.frames_in_time,
        vector_frames.frames_of_rows,
    ),
)
