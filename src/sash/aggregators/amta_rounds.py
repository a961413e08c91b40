"""What Amta does in most rounds, with partials in registers: for windows in memory.

`push` and `restack` are those of `amta`, with the same combines in the same order.  A chain keeps
the partial that it has just made, and goes from the ring of a level to that of the next without a
look at the header.  `rounds` does an `evict`, an `insert` and a `query` for each row as long as the
first tree stays what it is, which is for about half of the window.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    OBJECTS,
    START,
    Columns,
    Memory,
    Outputs,
    combined,
    drop,
    get,
    lift,
    lower,
    partial,
    put,
    set_partial,
    short,
    zeros,
)
from .levels import ANSWER, BACK, RING, beside, sweep

__all__ = [
    "ASKED",
    "FRESH",
    "FRONT",
    "GROWN",
    "IN_REGISTERS",
    "NEXT",
    "SPLIT",
    "STALE",
    "STATE",
    "rounds",
    "rounds_alike",
]

# Header.  FRONT is the level whose stack entry the front is in, plus one; 0 if it is in a slot of
# its own.  NEXT is where END must come for the first tree to grow.
SPLIT, NEXT, STATE, FRONT, ASKED = 4, 5, 6, 7, 8

FRESH, GROWN, STALE = 0, 1, 2  # states: all is well, the first tree has grown, all must be computed


# Both are one expression, so that they are written into their callers and cost nothing to compile.
def push(m: Memory, after: int) -> Any:
    """Push the nodes that are due when position `after - 1` is the end."""
    return push_from(m, get(m, CAPACITY), get(m, START), after)


def restack(m: Memory, start: int, split: int, level: int) -> Any:
    """New entries of the stack for all levels below one whose bit has become one."""
    return restack_from(m, get(m, CAPACITY), start, split, level)


def push_from(m: Memory, capacity: int, start: int, after: int) -> Any:
    """`push`, if the capacity and the start are these."""
    ring = RING  # of the level below, which has `wide` slots
    wide = capacity
    left = after - 4
    first = left  # the first position that the node covers
    put(m, BUSY, 1)
    while first >= start:  # else it has left in part, and is never looked at
        at = ring + (left & (wide - 1))
        x = combined(partial(m, at), partial(m, at + 1))
        ring += wide
        wide >>= 1
        left >>= 1
        set_partial(m, ring + (left & (wide - 1)), x)
        if left & 1:
            break
        left -= 2
        first = 2 * first - after
    put(m, BUSY, 0)


def restack_from(m: Memory, capacity: int, start: int, split: int, level: int) -> Any:
    """`restack`, if the capacity is this one."""
    stack = RING + 2 * capacity
    wide = capacity >> (level - 1)
    ring = stack - 2 * wide  # of the level below, which has `wide` slots
    x = partial(m, ring + (((start >> (level - 1)) + 1) & (wide - 1)))
    if start + (1 << level) < split:
        above = zeros(~(start | ((1 << level) - 1)))
        x = combined(x, partial(m, stack + above + 1))
    set_partial(m, stack + level, x)
    while level > 1:
        level = short(level - 1)
        wide *= 2
        ring -= wide
        x = combined(partial(m, ring + (((start >> (level - 1)) + 1) & (wide - 1))), x)
        set_partial(m, stack + level, x)


def rounds_alike(m: Memory) -> int:
    """How many rounds from now on leave the first tree what it is."""
    if get(m, STATE) != FRESH:
        return 0
    return min(get(m, SPLIT) - get(m, START), get(m, NEXT) - get(m, END)) - 1


def rounds(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int) -> None:
    """Rounds over a full window: what `evict`, `insert` and `query` do, where the first tree
    neither leaves nor grows."""
    capacity = get(m, CAPACITY)
    start = get(m, START)
    end = get(m, END)
    split = get(m, SPLIT)
    stack = beside(m, 0)
    back = partial(m, BACK)
    for row in range(first, rows):
        start += 1
        put(m, START, start)
        put(m, ASKED, 0)
        if OBJECTS:
            sweep(m, 2)
            drop(m, beside(m, get(m, FRONT)))
        if start & 1:
            put(m, FRONT, 1)
            front = partial(m, stack + 1)
        else:
            level = zeros(start)
            put(m, FRONT, level + 1)
            front = partial(m, stack + level + 1)
            put(m, STATE, STALE)
            restack_from(m, capacity, start, split, level)
            put(m, STATE, FRESH)
        if OBJECTS:
            sweep(m, 2)
        at = RING + (end & (capacity - 1))
        lift(m, at, columns, row)
        back = combined(back, partial(m, at))
        set_partial(m, BACK, back)
        end += 1
        put(m, END, end)
        if end & 1:
            push_from(m, capacity, start, end + 1)
        set_partial(m, ANSWER, combined(front, back))
        put(m, ASKED, 1)
        lower(m, ANSWER, outputs, row)


#: In the place of the functions of the same names in `amta`.
IN_REGISTERS = (push, push_from, restack, restack_from)
