"""Functions that the kernels of frames of several sizes share: the slots of rows and chunks, and
how chunks come and go; see `over_kernel`."""

from __future__ import annotations

from typing import Any

from ..kernels.slots import BUSY, Memory, accumulate, clear, combine, copy, get, item, put, set_item

__all__ = [
    "ANSWER",
    "BEGIN",
    "BETWEEN",
    "CHUNK",
    "EMPTY",
    "MASKS",
    "OPEN",
    "PREFIX",
    "RING",
    "RING_MASK",
    "SCRATCH",
    "SUFFIX",
    "TAIL",
    "between",
    "close_chunk",
    "row_slot",
    "stack_slot",
]

CHUNK = 128  # rows; a power of two
#: Header fields: the first slots of the sizes' stacks and of rows, and their masks; the first row
#: of the group, and of its open chunk.
STACKS, RING, STACK_MASK, RING_MASK, BEGIN, OPEN = 4, 5, 6, 7, 8, 9
MASKS = (STACKS, RING, STACK_MASK, RING_MASK)
#: Slots: the identity; an answer; the back stack of frames that begin in the open chunk; the chunks
#: between; the open chunk up to each row; the open chunk from each row on.
EMPTY, ANSWER, TAIL, BETWEEN, PREFIX = 0, 1, 2, 3, 4
SUFFIX = PREFIX + CHUNK + 1
SCRATCH = SUFFIX + CHUNK


def row_slot(m: Memory, row: int) -> int:
    """The slot of a row."""
    return get(m, RING) + (row & get(m, RING_MASK))


def stack_slot(m: Memory, size: int, chunk: int) -> int:
    """The slot of a chunk in the stacks of a size; chunk -1 stands for the whole back stack."""
    width = get(m, STACK_MASK) + 2
    at = get(m, STACKS) + size * width
    return at if chunk < 0 else at + 1 + (chunk & get(m, STACK_MASK))


def between(m: Memory, mids: Any, size: int, low: int) -> int:
    """Combine the chunks after a row's chunk and before the open one into the slot BETWEEN.  Return
    the end of the row's chunk.  `mids` has, for each size, the first chunk of the back stack."""
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
    """Close the open chunk, which is full: each of its rows gets the aggregate from the row to the
    chunk's end, and the chunk enters the stacks of all sizes."""
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
