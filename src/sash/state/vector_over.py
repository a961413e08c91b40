"""The functions of `over_kernel` for partials that are vectors: they stay in their slots, and are
never in local variables."""

from __future__ import annotations

from typing import Any

from ..kernels.slots import Columns, Memory, Outputs, clear, combine, copy, get, item, lift, lower
from .over_steps import (
    ANSWER,
    BETWEEN,
    EMPTY,
    OPEN,
    PREFIX,
    RING,
    RING_MASK,
    SUFFIX,
    TAIL,
    row_slot,
)

__all__ = ["fill", "long_frames", "short_frames"]


def fill(m: Memory, columns: Columns, row: int, last: int) -> int:
    """Lift the rows before `last` into the open chunk."""
    opened = get(m, OPEN)
    while row < last:
        at = row_slot(m, row)
        lift(m, at, columns, row)
        row += 1
        combine(m, PREFIX + row - opened, PREFIX + row - 1 - opened, at)
    return row


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
    while f < count and item(firsts, own + f) < chunk_end:
        combine(m, ANSWER, ring + (item(firsts, own + f) & mask), BETWEEN)
        combine(m, ANSWER, ANSWER, PREFIX + item(ends, f) - opened)
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
    mid = opened
    behind = opened
    for f in range(first, count):
        low, end = item(firsts, own + f), item(ends, f)
        if low >= end:
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
