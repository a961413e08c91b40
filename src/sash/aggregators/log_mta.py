"""The logarithmic Monoid Tree Aggregator: a binary tree with bulk eviction.

    order      first in, first out
    operator   any associative
    time       at most log2 n + 3 combines an insert, log2 n + 1 an evict, 1 a query; as many as an
               evict for the eviction of any number of elements at once
    space      2c + log2 c partials for a capacity of c, between n and 4n
    paper      Villalba, Berral, Carrera: Constant-Time Sliding Window Framework with Reduced Memory
               Footprint and Efficient Bulk Evictions (TPDS 2019), section 4.1

The tree's `levels` go up to the first that has at most two nodes: these are the root pair.  An
insertion computes the last node of each level again, an eviction the first one:

    level 2    6           3
    level 1    3     3     3
    level 0    1  2  1  2  1  2

The first node of a level stands beside it, because its elements may have left in part and the last
node may then need its slot.  In the paper's Algorithm 1 the first pair is lost, and line 7 of
Algorithm 2 is the wrong way round; here what has left follows from START.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import (
    BUSY,
    END,
    OBJECTS,
    START,
    Columns,
    Memory,
    clear,
    combine,
    copy,
    drop,
    get,
    lift,
    put,
)
from .guard import alone
from .level_window import LevelWindow, kernels
from .levels import ANSWER, SWEPT, beside, look, sweep, tail
from .stored_kernel import stored_kernels

__all__ = ["LogMta"]

TOP = 4  # header: the level of the root pair


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    start = get(m, START)
    if OBJECTS:
        sweep(m, 2)
    lift(m, tail(m, 0, end), columns, row)
    put(m, BUSY, 1)
    put(m, END, end + 1)
    top = get(m, TOP)
    level = 1
    while level <= top:
        join(m, level, end >> level)
        level += 1
    if (end >> top) - (start >> top) > 1:
        put(m, TOP, level)
        join(m, level, end >> level)
        if end >> level != start >> level:
            join(m, level, start >> level)
    put(m, BUSY, 0)


def node(m: Memory, level: int, index: int) -> int:
    """The slot of a node: the first one of a level is beside it."""
    if level > 0 and index == get(m, START) >> level:
        return beside(m, level)
    return look(m, level, index)


def join(m: Memory, level: int, index: int) -> None:
    """Compute a node from its children, or from the one that is there."""
    below = level - 1
    left = 2 * index
    if left < get(m, START) >> below:
        copy(m, node(m, level, index), node(m, below, left + 1))
    elif left + 1 > (get(m, END) - 1) >> below:
        copy(m, node(m, level, index), node(m, below, left))
    else:
        combine(m, node(m, level, index), node(m, below, left), node(m, below, left + 1))


def leave(m: Memory, count: int) -> None:
    """Evict so many, and compute the first node of each level again."""
    start = get(m, START) + count
    last = get(m, END) - 1
    put(m, BUSY, 1)
    put(m, START, start)
    if OBJECTS:
        sweep(m, 2)
    top = 0
    while (last >> top) - (start >> top) > 1:
        top += 1
        join(m, top, start >> top)
    if OBJECTS:
        level = top + 1
        while level <= get(m, TOP):
            drop(m, beside(m, level))
            level += 1
        drop(m, ANSWER)
    put(m, TOP, top)
    put(m, BUSY, 0)


def evict(m: Memory) -> None:
    leave(m, 1)


def jump(m: Memory, count: int) -> None:
    """Evict so many."""
    leave(m, count)


def query(m: Memory) -> int:
    start = get(m, START)
    last = get(m, END) - 1
    if start > last:
        clear(m, ANSWER)
        return ANSWER
    top = get(m, TOP)
    first = node(m, top, start >> top)
    if start >> top == last >> top:
        return first
    combine(m, ANSWER, first, node(m, top, last >> top))
    return ANSWER


def whole(m: Memory) -> int:
    """The aggregate of the window in a slot that evictions leave alone."""
    found = query(m)
    if found != ANSWER:
        copy(m, ANSWER, found)
    return ANSWER


def held(m: Memory, level: int, index: int) -> int:
    """The slot of a node that is there as a whole, or -1."""
    if level <= get(m, TOP) and (index + 1) << level <= get(m, END):
        return node(m, level, index)
    return -1


class LogMta(LevelWindow):
    """In-order aggregation in logarithmic time, with bulk eviction and window policies.

    >>> from sash.operators import max
    >>> window = LogMta(max)
    >>> for x in [9, 3, 5, 1, 4]:
    ...     window.insert(x)
    >>> window.query()
    9
    >>> window.bulk_evict(3)
    >>> window.query(), len(window)
    (4, 2)
    """

    _own = (insert, node, join, leave, evict, jump, query, whole, held)
    _kernels = kernels("log_mta", *_own, singly=0)
    _stored_kernels = stored_kernels("log_mta", *_own, singly=0)

    @alone
    def levels(self) -> list[list[Any]]:
        """The nodes of each level, from the leaves to the root pair."""
        core = self._core
        start, last = core.get(START), core.get(END) - 1
        if start > last:
            return []
        return [
            [self._at(level, index) for index in range(start >> level, (last >> level) + 1)]
            for level in range(core.get(TOP) + 1)
        ]

    def _at(self, level: int, index: int) -> Any:
        core = self._core
        if level and index == core.get(START) >> level:
            return core.peek(self._beside(level))
        return self._node(level, index)

    def _check(self) -> None:
        super()._check()
        core = self._core
        start, end = core.get(START), core.get(END)
        assert core.get(SWEPT) <= start
        levels = self.levels()
        assert [len(nodes) > 2 for nodes in levels] == [True] * core.get(TOP) + [False] * (
            len(self) > 0
        )
        for level, nodes in enumerate(levels):
            for index, found in enumerate(nodes, start >> level):
                wanted = self._fold(max(index << level, start), min((index + 1) << level, end))
                assert self._equal(found, wanted), f"node {index} of level {level}"
