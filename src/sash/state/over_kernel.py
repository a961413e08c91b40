"""From rows in order to the answers of frames of several sizes that end together.

Each row is lifted once, whatever sizes there are.  A group's rows are cut into chunks of CHUNK.  Of
the chunks before the open one, in which the frames end just now, each row's slot has the aggregate
from the row to the end of its chunk.  So a frame is three parts, which are combined: from its first
row to the end of that row's chunk, the chunks between, and the open chunk up to the frame's end.

    chunks     |----------|----------|----------|-----
    a frame          [----)(--------------------)(--]
                     slot         between        open

What is in the open chunk is the same for all sizes.  The chunks between are two stacks of chunks
for each size, which change once in a chunk.  A frame that begins in the open chunk goes through two
stacks of its own.

Time: for a row and size two combines, and one amortised for each chunk; three for a frame that is
shorter than a chunk.  Frames are answered size by size for as many rows as end in one chunk, so
that what a size needs stays in registers.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import (
    BUSY,
    Columns,
    Memory,
    Outputs,
    accumulate,
    clear,
    combine,
    combined,
    copy,
    get,
    item,
    lift,
    lower,
    partial,
    put,
    set_item,
    set_partial,
)
from . import vector_frames

__all__ = ["CHUNK", "MASKS", "OVER", "SCRATCH"]

CHUNK = 64  # rows; a power of two
#: Header fields: where the slots of sizes and of rows begin, and their masks; where the group
#: begins, and its open chunk.
STACKS, RING, STACK_MASK, RING_MASK, BEGIN, OPEN = 4, 5, 6, 7, 8, 9
MASKS = (STACKS, RING, STACK_MASK, RING_MASK)
#: Slots: the identity; an answer; the rows of the open chunk behind a frame's own stacks; the
#: chunks between; the open chunk up to each row; suffixes of the open chunk.
EMPTY, ANSWER, TAIL, BETWEEN, PREFIX = 0, 1, 2, 3, 4
SUFFIX = PREFIX + CHUNK + 1
SCRATCH = SUFFIX + CHUNK


def row_slot(m: Memory, row: int) -> int:
    """The slot of a row."""
    return get(m, RING) + (row & get(m, RING_MASK))


def stack_slot(m: Memory, size: int, chunk: int) -> int:
    """The slot of a chunk in the stacks of a size; -1 stands for all chunks behind the front."""
    width = get(m, STACK_MASK) + 2
    at = get(m, STACKS) + size * width
    return at if chunk < 0 else at + 1 + (chunk & get(m, STACK_MASK))


def between(m: Memory, mids: Any, size: int, low: int) -> int:
    """Put the chunks after that of a row, and before the open one, into their slot.  Returns where
    the row's chunk ends.  `mids` have the chunk behind the front of each size."""
    begin = get(m, BEGIN)
    first = (low - begin) // CHUNK + 1
    last = (get(m, OPEN) - begin) // CHUNK
    back = stack_slot(m, size, -1)
    if first >= last:
        set_item(mids, size, last)
        clear(m, back)
        clear(m, BETWEEN)
    else:
        if first >= item(mids, size):
            put(m, BUSY, 1)
            copy(m, stack_slot(m, size, last - 1), row_slot(m, begin + (last - 1) * CHUNK))
            for n in range(last - 2, first - 1, -1):
                new = stack_slot(m, size, n)
                combine(m, new, row_slot(m, begin + n * CHUNK), stack_slot(m, size, n + 1))
            put(m, BUSY, 0)
            set_item(mids, size, last)
            clear(m, back)
        combine(m, BETWEEN, stack_slot(m, size, first), back)
    return begin + first * CHUNK


def close_chunk(m: Memory, lows: Any, mids: Any, sizes: int) -> None:
    """Close the open chunk, which is full: its rows get suffixes, and the sizes the chunk."""
    opened = get(m, OPEN)
    put(m, BUSY, 1)
    accumulate(m, get(m, RING), get(m, RING_MASK), opened, opened + CHUNK - 1)
    put(m, BUSY, 0)
    for s in range(sizes):
        back = stack_slot(m, s, -1)
        if item(lows, s) < opened:
            combine(m, back, back, row_slot(m, opened))
        else:
            set_item(mids, s, (opened - get(m, BEGIN)) // CHUNK + 1)
            clear(m, back)
    put(m, OPEN, opened + CHUNK)


def fill(m: Memory, columns: Columns, row: int, last: int) -> int:
    """Lift the rows before `last` into the open chunk."""
    opened = get(m, OPEN)
    while row < last:
        at = row_slot(m, row)
        lift(m, at, columns, row)
        combine(m, PREFIX + row - opened + 1, PREFIX + row - opened, at)
        row += 1
    return row


def join(m: Memory, dst: int, a: int, b: int, c: int) -> None:
    """Combine three slots, in registers."""
    set_partial(m, dst, combined(combined(partial(m, a), partial(m, b)), partial(m, c)))


def frames_of_size(
    m: Memory,
    times: Any,
    older: int,
    size: int,
    lows: Any,
    mids: Any,
    first: int,
    last: int,
    ends: Any,
    at: int,
    step: int,
    outputs: Outputs,
) -> None:
    """Answer the frames from `first` up to `last` of one size, which end in the open chunk.  A low
    row below 0 says that frames hold all rows of their group up to their end."""
    opened = get(m, OPEN)
    low = item(lows, size)
    if low < 0:
        for f in range(first, last):
            combine(m, ANSWER, stack_slot(m, size, -1), PREFIX + item(ends, f - first) - opened)
            lower(m, ANSWER, outputs, at + f * step)
        return
    # header fields that stay the same are loaded once
    ring = get(m, RING)
    mask = get(m, RING_MASK)
    # the chunks between are asked for when the first frame has found its first row: rows that no
    # frame holds may be many, and their slots used again
    chunk_end = get(m, BEGIN)
    mid = opened  # of the frame's own stacks
    behind = opened
    for f in range(first, last):
        bound = item(times, f) - older
        end = item(ends, f - first)
        # which row is the first is hard to foresee for a processor: four are counted at once
        ahead = 4
        while ahead == 4 and low + 4 <= end:
            ahead = 0
            if item(times, low) < bound:
                ahead += 1
            if item(times, low + 1) < bound:
                ahead += 1
            if item(times, low + 2) < bound:
                ahead += 1
            if item(times, low + 3) < bound:
                ahead += 1
            low += ahead
        while low < end and item(times, low) < bound:
            low += 1
        if low < opened:
            if low >= chunk_end:
                chunk_end = between(m, mids, size, low)
            join(m, ANSWER, ring + (low & mask), BETWEEN, PREFIX + end - opened)
            lower(m, ANSWER, outputs, at + f * step)
        elif low >= end:
            lower(m, EMPTY, outputs, at + f * step)
        else:
            if low >= mid:
                copy(m, SUFFIX + end - 1 - opened, ring + ((end - 1) & mask))
                for p in range(end - 2, low - 1, -1):
                    combine(m, SUFFIX + p - opened, ring + (p & mask), SUFFIX + p + 1 - opened)
                clear(m, TAIL)
                mid = end
                behind = end
            while behind < end:
                combine(m, TAIL, TAIL, ring + (behind & mask))
                behind += 1
            combine(m, ANSWER, SUFFIX + low - opened, TAIL)
            lower(m, ANSWER, outputs, at + f * step)
    set_item(lows, size, low)


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
    skip: int,
    at: int,
    step: int,
    apart: int,
    outputs: Outputs,
) -> None:
    """Answer one frame a row and size, from row `skip` on, of `count` groups, which are in order of
    time: the rows of its group whose times are from `older` before its own up to `younger` before
    it, which is not included; or all up to there, if `older` is below 0.  The answers of a size are
    `step` rows of the output after each other, from `at` on for row 0, and those of two sizes are
    so many rows `apart`.
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
                for s in range(sizes):
                    older = item(olders, s)
                    to = at + s * apart
                    frames_of_size(m, times, older, s, lows, mids, i, j, ends, to, step, outputs)
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
        join,
        frames_of_size,
        frames_over,
    ),
    ("frames_over",),
    scratch=SCRATCH,
    for_vectors=(vector_frames.join,),
)
