"""B-Int, base intervals: a dyadic pyramid of partials over a circular buffer.

    order      first in, first out; also answers over any number of the youngest values
    operator   any associative
    time       amortised 1 combine an insert (worst case log2 n), none an evict,
               at most 2·log2 n a query
    space      2c partials for a capacity of c, between n and 4n
    paper      Arasu, Widom: Resource sharing in continuous sliding-window aggregates
               (VLDB 2004); FlatFIT, section 2.2

Level k holds the aggregates of the aligned runs of 2^k elements.  An insert computes only the
runs that end with it; a query covers the window with as few runs as it can.  In the papers the
window is fixed; here the pyramid grows and shrinks with it, and no run is computed twice for that.
"""

from __future__ import annotations

from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    clear,
    combine,
    drop,
    get,
    lift,
    put,
)
from ..operators.contract import same
from .many_sizes import ManySizes, kernel_of_sizes

__all__ = ["BInt"]

ANSWER, RING = 0, 1


def run_at(m: Memory, level: int, index: int) -> int:
    """The slot of the aligned run with this index on its level."""
    capacity = get(m, CAPACITY)
    wide = capacity >> level
    return RING + 2 * capacity - 2 * wide + (index & (wide - 1))


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    start = get(m, START)
    lift(m, run_at(m, 0, end), columns, row)
    level = 0
    index = end
    while index & 1 and (index - 1) << level >= start:
        combine(
            m,
            run_at(m, level + 1, index >> 1),
            run_at(m, level, index - 1),
            run_at(m, level, index),
        )
        level += 1
        index >>= 1
    put(m, END, end + 1)


def evict(m: Memory) -> None:
    start = get(m, START)
    drop(m, run_at(m, 0, start))
    put(m, START, start + 1)


def youngest(m: Memory, size: int) -> int:
    end = get(m, END)
    at = end - size
    found = -1
    while at < end:
        level = 0
        while (at >> level) & 1 == 0 and at + (2 << level) <= end:
            level += 1
        run = run_at(m, level, at >> level)
        if found < 0:
            found = run
        else:
            combine(m, ANSWER, found, run)
            found = ANSWER
        at += 1 << level
    if found < 0:
        clear(m, ANSWER)
        return ANSWER
    return found


def query(m: Memory) -> int:
    return youngest(m, get(m, END) - get(m, START))


class BInt(ManySizes):
    """In-order aggregation over dyadic runs, in logarithmic time.

    >>> from sash.operators import concat
    >>> BInt(concat).slide(["a", "b", "c", "d", "e"], 3)
    ['a', 'ab', 'abc', 'bcd', 'cde']
    """

    _kernel = kernel_of_sizes("b_int", run_at, insert, evict, youngest, query, scratch=1, each=2)

    def _move(self, capacity: int) -> None:
        core = self._core
        old = core.get(CAPACITY)
        blocks = []
        for level in range(min(old, capacity).bit_length()):
            wide_old, wide_new = old >> level, capacity >> level
            at = -(-core.get(START) >> level)
            end = core.get(END) >> level
            while at < end:
                i, j = at & (wide_old - 1), at & (wide_new - 1)
                n = min(end - at, wide_old - i, wide_new - j)
                to = RING + 2 * capacity - 2 * wide_new + j
                blocks.append((to, RING + 2 * old - 2 * wide_old + i, n))
                at += n
        core.resize(capacity, blocks)

    def _check(self) -> None:
        super()._check()
        core, op = self._core, self.operator
        join, capacity = op.python_combine(), core.get(CAPACITY)
        start, end = core.get(START), core.get(END)

        def slot(level: int, index: int) -> int:
            wide = capacity >> level
            return RING + 2 * capacity - 2 * wide + (index & (wide - 1))

        for level in range(1, capacity.bit_length()):
            for index in range(-(-start >> level), end >> level):
                halves = (core.peek(slot(level - 1, 2 * index + i)) for i in (0, 1))
                wanted = join(*halves)
                got = core.peek(slot(level, index))
                assert (op.equal or same)(got, wanted), f"run {index} of level {level}"
