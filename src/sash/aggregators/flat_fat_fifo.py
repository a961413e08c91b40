"""A first-in, first-out window on FlatFAT, as the Reactive Aggregator keeps one.

    order      first in, first out; also answers over any number of the youngest values
    operator   any associative
    time       log2 n combines an insert and an evict, at most 2·log2 n a query;
               none a query while the window does not wrap around the end of the leaves
    space      2c partials for a capacity of c, between n and 4n
    paper      Tangwongsan, Hirzel, Schneider, Wu: General incremental sliding-window
               aggregation (VLDB 2015), section 5

The leaves are a circular buffer: full, it doubles; less than a quarter full, it halves.  When the
window wraps around, the tree's order is not the window's, and the answer is the suffix from the
oldest leaf with the prefix up to the youngest.
"""

from __future__ import annotations

from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    clear,
    combine,
    get,
    lift,
    put,
)
from .flat_fat import between, build, check_tree, climb, prefix, suffix
from .many_sizes import ManySizes, kernel_of_sizes

__all__ = ["FlatFatFifo"]

ANSWER, RIGHT, TREE = 0, 1, 2


def insert(m: Memory, columns: Columns, row: int) -> None:
    capacity = get(m, CAPACITY)
    end = get(m, END)
    location = end & (capacity - 1)
    lift(m, TREE + capacity + location, columns, row)
    put(m, BUSY, 1)
    climb(m, location)
    put(m, BUSY, 0)
    put(m, END, end + 1)


def evict(m: Memory) -> None:
    capacity = get(m, CAPACITY)
    start = get(m, START)
    location = start & (capacity - 1)
    clear(m, TREE + capacity + location)
    put(m, BUSY, 1)
    climb(m, location)
    put(m, BUSY, 0)
    put(m, START, start + 1)


def query(m: Memory) -> int:
    mask = get(m, CAPACITY) - 1
    start = get(m, START)
    end = get(m, END)
    if start == end or (start & mask) <= ((end - 1) & mask):
        return TREE + 1
    older = suffix(m, start & mask, RIGHT)
    combine(m, ANSWER, older, prefix(m, (end - 1) & mask))
    return ANSWER


def youngest(m: Memory, size: int) -> int:
    mask = get(m, CAPACITY) - 1
    end = get(m, END)
    if size == end - get(m, START):
        return query(m)
    first = (end - size) & mask
    last = (end - 1) & mask
    if first <= last:
        return between(m, first, last)
    older = suffix(m, first, RIGHT)
    combine(m, ANSWER, older, prefix(m, last))
    return ANSWER


class FlatFatFifo(ManySizes):
    """In-order aggregation on a FlatFAT, in logarithmic time.

    >>> from sash.operators import concat
    >>> FlatFatFifo(concat).slide(["4", "7", "3", "2", "9"], 4)
    ['4', '47', '473', '4732', '7329']
    """

    _kernel = kernel_of_sizes(
        "flat_fat_fifo",
        build,
        climb,
        prefix,
        suffix,
        between,
        insert,
        evict,
        query,
        youngest,
        entries=("build",),
        scratch=2,
        each=2,
    )

    def _move(self, capacity: int) -> None:
        core = self._core
        old = core.get(CAPACITY)
        leaves = [
            (TREE + capacity + j, TREE + old + i, n) for j, i, n in core.places(old, capacity)
        ]
        core.resize(capacity, leaves)
        core.run.build(core.m)

    def _check(self) -> None:
        super()._check()
        check_tree(self._core, self.operator)
