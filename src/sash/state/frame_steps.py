"""Functions that the kernels of frames share: they insert and evict rows in a queue of two stacks
(`aggregators.two_stacks_lite`)."""

from __future__ import annotations

from ..aggregators.two_stacks_lite import BACK, MID
from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    accumulate,
    clear,
    combine,
    get,
    lift,
    lower,
    put,
)

__all__ = [
    "ANSWER",
    "ANSWERS",
    "FRAME",
    "GROUP",
    "HOLDS",
    "NEW",
    "PEERS",
    "RING",
    "answer",
    "begin_at",
    "end_at",
    "place",
]

#: Header fields: the frame; while `lower` runs, the slot that it works on, plus 1, otherwise 0;
#: whether to keep rows in the queue, because some will be evicted; the group of rows.
FRAME, ANSWERS, HOLDS, GROUP = 4, 5, 6, 7
# slots: an answer; a row; the peers before a row; the first slot of the queue of rows
ANSWER, NEW, PEERS, RING = 1, 2, 3, 4


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
