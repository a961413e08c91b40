"""From rows in order to the answers of frames of several sizes that end together.

Each row is lifted once, whatever the number of sizes.  A group's rows are cut into chunks of CHUNK
rows.  The chunk in which the current frames end is open; in the chunks before it, each row's slot
has the aggregate from the row to the end of its chunk.  So a frame combines three partials: from
its first row to the end of that row's chunk, the chunks between, and the open chunk up to the
frame's end.

    chunks     |----------|----------|----------|-----
    a frame          [----)(--------------------)(--]
                     slot         between        open

The partials of the open chunk serve all sizes.  The chunks between are in two stacks of chunks for
each size, which change once for each chunk.  Frames that begin in the open chunk use two stacks of
their own.

Time: two combines for each row and size, and one, amortised, for each chunk and size; three for a
frame that is shorter than a chunk.  The kernel answers together the rows whose frames end in one
chunk.  First it finds where their frames begin, row by row: each beginning depends on that of the
row before, and while a processor waits for one size, it works on the others.  Then it answers
frames size by size, so that the data of a size stay in registers, and no frame waits for the one
before.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import (
    Columns,
    Memory,
    Outputs,
    below,
    clear,
    combine,
    combined,
    get,
    item,
    lift,
    lower,
    partial,
    put,
    set_item,
    set_partial,
)
from . import vector_over
from .over_steps import (
    ANSWER,
    BEGIN,
    BETWEEN,
    CHUNK,
    EMPTY,
    OPEN,
    PREFIX,
    RING,
    RING_MASK,
    SCRATCH,
    SUFFIX,
    between,
    close_chunk,
    row_slot,
    stack_slot,
)

__all__ = ["OVER"]


def fill(m: Memory, columns: Columns, row: int, last: int) -> int:
    """Lift the rows before `last` into the open chunk."""
    opened = get(m, OPEN)
    x = partial(m, PREFIX + row - opened)
    while row < last:
        at = row_slot(m, row)
        lift(m, at, columns, row)
        row += 1
        x = combined(x, partial(m, at))
        set_partial(m, PREFIX + row - opened, x)
    return row


def find_firsts(
    m: Memory,
    times: Any,
    olders: Any,
    sizes: int,
    lows: Any,
    first: int,
    last: int,
    end: int,
    firsts: Any,
) -> None:
    """Find the first row of each frame from `first` up to `last`, for each size; the group ends at
    `end`.  A processor cannot predict well how many rows leave when one comes.  So the loop counts
    how many of the eight oldest rows leave, and repeats only if all of them do."""
    for f in range(first, last):
        t = item(times, f)
        for s in range(sizes):
            low = item(lows, s)
            if low >= 0:
                bound = t - item(olders, s)
                gone = 8
                while gone == 8 and low + 8 <= end:
                    gone = below(times, low, bound)
                    low += gone
                if gone == 8:
                    while low < end and item(times, low) < bound:
                        low += 1
                set_item(lows, s, low)
                set_item(firsts, s * CHUNK + f - first, low)


def long_frames(
    m: Memory,
    firsts: Any,
    own: int,
    ends: Any,
    f: int,
    count: int,
    chunk_end: int,
    at: int,
    step: int,
    outputs: Outputs,
) -> int:
    """Answer the frames of a size from `f` on that begin before the end of a closed chunk.  The
    first rows of the size's frames are in `firsts` from `own` on.  Return the next frame."""
    opened, ring, mask = get(m, OPEN), get(m, RING), get(m, RING_MASK)
    x = partial(m, BETWEEN)
    while f < count and item(firsts, own + f) < chunk_end:
        y = combined(partial(m, ring + (item(firsts, own + f) & mask)), x)
        set_partial(m, ANSWER, combined(y, partial(m, PREFIX + item(ends, f) - opened)))
        lower(m, ANSWER, outputs, at + f * step)
        f += 1
    return f


def short_frames(
    m: Memory,
    firsts: Any,
    own: int,
    ends: Any,
    first: int,
    count: int,
    at: int,
    step: int,
    outputs: Outputs,
) -> None:
    """Answer the frames from `first` on, which begin in the open chunk."""
    opened, ring, mask = get(m, OPEN), get(m, RING), get(m, RING_MASK)
    x = partial(m, EMPTY)
    mid = opened
    behind = opened
    for f in range(first, count):
        low, end = item(firsts, own + f), item(ends, f)
        if low >= end:
            lower(m, EMPTY, outputs, at + f * step)
        else:
            if low >= mid:
                y = partial(m, ring + ((end - 1) & mask))
                set_partial(m, SUFFIX + end - 1 - opened, y)
                for p in range(end - 2, low - 1, -1):
                    y = combined(partial(m, ring + (p & mask)), y)
                    set_partial(m, SUFFIX + p - opened, y)
                x = partial(m, EMPTY)
                mid = end
                behind = end
            while behind < end:
                x = combined(x, partial(m, ring + (behind & mask)))
                behind += 1
            set_partial(m, ANSWER, combined(partial(m, SUFFIX + low - opened), x))
            lower(m, ANSWER, outputs, at + f * step)


def frames_of_size(
    m: Memory,
    size: int,
    lows: Any,
    mids: Any,
    firsts: Any,
    ends: Any,
    count: int,
    at: int,
    step: int,
    outputs: Outputs,
) -> None:
    """Answer `count` frames of one size, which end in the open chunk.  If the size's low row is
    below 0, its frames hold all rows of their group up to their end."""
    opened = get(m, OPEN)
    if item(lows, size) < 0:
        for f in range(count):
            combine(m, ANSWER, stack_slot(m, size, -1), PREFIX + item(ends, f) - opened)
            lower(m, ANSWER, outputs, at + f * step)
        return
    own = size * CHUNK
    f = 0
    while f < count and item(firsts, own + f) < opened:
        chunk_end = between(m, mids, size, item(firsts, own + f))
        f = long_frames(m, firsts, own, ends, f, count, chunk_end, at, step, outputs)
    short_frames(m, firsts, own, ends, f, count, at, step, outputs)


def frames_over(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    olders: Any,
    sizes: int,
    younger: int,
    lows: Any,
    mids: Any,
    ends: Any,
    firsts: Any,
    skip: int,
    at: int,
    step: int,
    apart: int,
    outputs: Outputs,
) -> None:
    """Answer one frame for each row and size, from row `skip` on, of `count` groups, which are in
    order of time.  A frame holds the rows of its group whose times are at most `older` and more
    than `younger` before the row's own time; if `older` is below 0, it also holds all rows before
    them.  The answer of row r goes to row `at` + r * `step` of the output for the first size, and
    `apart` rows further for each later size.
    """
    for g in range(count):
        begin = item(bounds, g)
        n = item(bounds, g + 1)
        put(m, BEGIN, begin)
        put(m, OPEN, begin)
        for s in range(sizes):
            set_item(lows, s, begin if item(olders, s) >= 0 else -1)
            set_item(mids, s, 0)
            clear(m, stack_slot(m, s, -1))
        row = begin
        high = begin
        i = max(begin, skip)
        while i < n:
            opened = get(m, OPEN)
            full = opened + CHUNK
            j = i
            while j < n and j - i < CHUNK and high <= full:
                t = item(times, j)
                while high < n and item(times, high) < t - younger:
                    high += 1
                if high <= full:
                    set_item(ends, j - i, high)
                    j += 1
            if j > i:
                row = fill(m, columns, row, max(row, item(ends, j - i - 1)))
                find_firsts(m, times, olders, sizes, lows, i, j, n, firsts)
                for s in range(sizes):
                    to = at + s * apart + i * step
                    frames_of_size(m, s, lows, mids, firsts, ends, j - i, to, step, outputs)
                i = j
            if high > full:
                row = fill(m, columns, row, full)
                close_chunk(m, lows, mids, sizes)


#: The kernel that answers frames of several sizes.
OVER = Kernel(
    "frames_over",
    (
        row_slot,
        stack_slot,
        between,
        close_chunk,
        fill,
        find_firsts,
        long_frames,
        short_frames,
        frames_of_size,
        frames_over,
    ),
    ("frames_over",),
    scratch=SCRATCH,
    for_vectors=(vector_over.fill, vector_over.long_frames, vector_over.short_frames),
)
