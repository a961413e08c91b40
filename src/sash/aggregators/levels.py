"""The levels of a binary tree over a window, each of them a queue.

Node `index` of level k is the aggregate of the 2^k elements from position `index << k` on, so that
its children are nodes `2 * index` and `2 * index + 1` of the level below.  Nodes are pushed at a
level's tail, looked at anywhere in it, mostly at its head, and dropped from its head:

    tail(m, level, index)    where the next node of a level is put, and the last five are found
    look(m, level, index)    where a node is found
    sweep(m, most)           lets go of nodes that have left, a few at a time

What has left follows from START alone: no element is touched when many of them leave at once.  With
a store behind it, a level keeps only what is near its ends in memory; nothing else would change.

A level of a memory with room for c elements is a ring of c / 2^k slots.  Beside the levels there
is one slot for each of them, and one more, which the aggregators use as their algorithms need it.
"""

from __future__ import annotations

from ..kernels.slots import CAPACITY, START, Memory, drop, get, put

__all__ = [
    "ANSWER",
    "BACK",
    "LONGER",
    "PREFIX",
    "RING",
    "SWEPT",
    "beside",
    "level_blocks",
    "levels",
    "look",
    "sweep",
    "tail",
]

SWEPT = 3  # header: up to which position nodes that have left were let go of

# Slots: the aggregate of the younger part, an answer, what a policy looks at, the levels.
BACK, ANSWER, PREFIX, LONGER, RING = 0, 1, 2, 3, 4


def look(m: Memory, level: int, index: int) -> int:
    """The slot of a node."""
    capacity = get(m, CAPACITY)
    wide = capacity >> level
    return RING + 2 * capacity - 2 * wide + (index & (wide - 1))


def tail(m: Memory, level: int, index: int) -> int:
    """The slot for the next node of a level, or of one of the last five."""
    return look(m, level, index)


def beside(m: Memory, level: int) -> int:
    """The slot beside a level."""
    return RING + 2 * get(m, CAPACITY) + level


def levels(m: Memory) -> int:
    """How many levels there is room for."""
    capacity = get(m, CAPACITY)
    count = 0
    while capacity >> count:
        count += 1
    return count


def sweep(m: Memory, most: int) -> None:
    """Let go of what the oldest of the elements that have left hold, and of the nodes that begin
    with them.  Called with at least one for each insertion, it stays ahead of the tails, which
    come round to the same slots."""
    start = get(m, START)
    capacity = get(m, CAPACITY)
    at = get(m, SWEPT)
    while at < start and most > 0:
        level = 0
        while (at >> level) << level == at and capacity >> level:
            drop(m, look(m, level, at >> level))
            level += 1
        at += 1
        most -= 1
    put(m, SWEPT, at)


def level_blocks(start: int, end: int, old: int, new: int) -> list[tuple[int, int, int]]:
    """Which runs of slots (to, from, how many) move when the capacity changes."""
    blocks = [(0, 0, RING)]
    for level in range(min(old, new).bit_length()):
        wide_old, wide_new = old >> level, new >> level
        at, stop = -(-start >> level), ((end - 1) >> level) + 1
        while at < stop:
            i, j = at & (wide_old - 1), at & (wide_new - 1)
            n = min(stop - at, wide_old - i, wide_new - j)
            blocks.append((RING + 2 * new - 2 * wide_new + j, RING + 2 * old - 2 * wide_old + i, n))
            at += n
    sides = min(old, new).bit_length() + 1
    blocks.append((RING + 2 * new, RING + 2 * old, sides))
    return blocks
