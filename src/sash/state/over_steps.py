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
    "CHUNKS",
    "DIGITS",
    "EMPTY",
    "LINES",
    "MASKS",
    "OPEN",
    "PREFIX",
    "RING",
    "RING_MASK",
    "SCRATCH",
    "TABLE",
    "TABLED",
    "TAIL",
    "WIDE",
    "between",
    "close_chunk",
    "row_slot",
    "stack_slot",
]

CHUNK = 128  # rows; a power of two
WIDE = CHUNK + 8  # the first rows of a size's frames, and eight that end them
DIGITS = CHUNK.bit_length() - 1
#: Header fields: the first slots of the sizes' stacks and of rows, and their masks; the first row
#: of the group, and of its open chunk; the number of rows in the table of the open chunk.
STACKS, RING, STACK_MASK, RING_MASK, BEGIN, OPEN, TABLED = 4, 5, 6, 7, 8, 9, 10
MASKS = (STACKS, RING, STACK_MASK, RING_MASK)
CHUNKS = 16  # the most chunks in which the frames begin that are answered together; a power of two
#: Slots: an answer; for each of CHUNKS chunks, those after it and before the open one; the open
#: chunk up to each row, and up to the end of each frame; slots that stay empty; the table of the
#: open chunk, with a line of slots for each binary digit.
ANSWER, BETWEEN = 0, 1
PREFIX = BETWEEN + CHUNKS
TAIL = PREFIX + CHUNK + 1
EMPTY = TAIL + CHUNK
TABLE = EMPTY + CHUNK
SCRATCH = TABLE + DIGITS * CHUNK
#: For each number below CHUNK, the first slot of the table's line for its highest binary digit.
LINES = [EMPTY] + [TABLE + (i.bit_length() - 1) * CHUNK for i in range(1, CHUNK)]


def row_slot(m: Memory, row: int) -> int:
    """The slot of a row."""
    return get(m, RING) + (row & get(m, RING_MASK))


def stack_slot(m: Memory, size: int, chunk: int) -> int:
    """The slot of a chunk in the stacks of a size; chunk -1 stands for the whole back stack."""
    width = get(m, STACK_MASK) + 2
    at = get(m, STACKS) + size * width
    return at if chunk < 0 else at + 1 + (chunk & get(m, STACK_MASK))


def between(m: Memory, mids: Any, size: int, chunk: int) -> None:
    """Combine the chunks after this one and before the open one into the chunk's slot of BETWEEN.
    `mids` has, for each size, the first chunk of the back stack."""
    begin = get(m, BEGIN)
    first = chunk + 1
    last = (get(m, OPEN) - begin) // CHUNK
    back = stack_slot(m, size, -1)
    to = BETWEEN + (chunk & (CHUNKS - 1))
    if first >= last:
        set_item(mids, size, last)
        clear(m, back)
        clear(m, to)
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
        combine(m, to, stack_slot(m, size, first), back)


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
    put(m, TABLED, 0)
