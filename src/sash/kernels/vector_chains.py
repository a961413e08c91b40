"""The functions of `chains` for vectors: a vector stays in its slot and is never a value."""

from __future__ import annotations

from .slots import (
    AHEAD,
    END,
    START,
    WIDTH,
    Columns,
    Memory,
    Outputs,
    combine,
    copy,
    drop,
    get,
    lift,
    lower,
    put,
)

__all__ = ["accumulate", "advance", "fold", "splice", "weave"]


def accumulate(m: Memory, ring: int, mask: int, first: int, last: int) -> None:
    """Replace each slot of a ring from `first` to `last` by the aggregate of it and all slots
    after it up to `last`."""
    for i in range(last - 1, first - 1, -1):
        at = ring + (i & mask)
        combine(m, at, at, ring + ((i + 1) & mask))


def advance(
    m: Memory,
    ring: int,
    mask: int,
    total: int,
    answer: int,
    columns: Columns,
    outputs: Outputs,
    row: int,
    rows: int,
) -> None:
    """Evict, insert and answer for each row.  The answer combines the oldest slot with slot
    `total`, the partial of all rows inserted since that slot was computed."""
    start = get(m, START) + 1
    end = get(m, END)
    for i in range(rows):
        drop(m, ring + ((start + i - 1) & mask))
        put(m, AHEAD, 2 * i + 1)
        at = ring + ((end + i) & mask)
        lift(m, at, columns, row + i)
        combine(m, total, total, at)
        put(m, AHEAD, 2 * i + 2)
        combine(m, answer, ring + ((start + i) & mask), total)
        lower(m, answer, outputs, row + i)
    put(m, START, start + rows - 1)
    put(m, END, end + rows)
    put(m, AHEAD, 0)


def fold(m: Memory, dst: int, first: int, count: int) -> None:
    """Combine neighbouring slots."""
    copy(m, dst, first)
    for i in range(1, count):
        combine(m, dst, dst, first + WIDTH * i)


def splice(m: Memory, dst: int, first: int, count: int, at: int, new: int) -> None:
    """Combine neighbouring slots with a new one between them."""
    if at > 0:
        fold(m, dst, first, at)
        combine(m, dst, dst, new)
    else:
        copy(m, dst, new)
    for i in range(at, count):
        combine(m, dst, dst, first + WIDTH * i)


def weave(
    m: Memory, dst: int, between: int, first: int, count: int, head: int, tail: int, at: int
) -> None:
    """Combine two runs of slots, one slot of each run in turn."""
    if head != 0:
        combine(m, dst, between, first)
    else:
        copy(m, dst, first)
    for i in range(1, count):
        combine(m, dst, dst, between + WIDTH * i)
        combine(m, dst, dst, first + WIDTH * i)
    if tail != 0:
        combine(m, dst, dst, between + WIDTH * count)
