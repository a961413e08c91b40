"""The Amortized Monoid Tree Aggregator: constant time on average, and bulk eviction.

    order      first in, first out
    operator   any associative
    time       amortised 2 combines an insert, 1 an evict, 1 a query; worst case O(log n) each;
               O(log n) for the eviction of any number of elements at once
    space      2c + log2 c partials for a capacity of c, between n and 4n
    paper      Villalba, Berral, Carrera: Constant-Time Sliding Window Framework with Reduced Memory
               Footprint and Efficient Bulk Evictions (TPDS 2019)

A forest of binary trees as `levels`: a node is made when the pair after its children begins, so
that the last pair of each level is the root of a tree.  The pair of results is the aggregate of the
first tree, the front, and of all the others, the back:

    START        SPLIT                 END
      |   front    |        back        |

The stack has, for each level on which the head is the left one of two, the aggregate from its
sibling to SPLIT.  Positions are those of the stream, so these levels are the zero bits of START: an
eviction makes START's lowest run of ones zeros and the zero above it a one.  That one's stack entry
is the new front, and the ones' levels get new entries, one combine each.

In the paper trees start anew at each level's first node; here nodes stay at their places in the
stream, and no level needs a head and a tail of its own.  The printed algorithms have wrong lines: 5
must start from an empty back and leave the first tree out, and 6 must compute the front, too, when
the first tree is gone.  Both are `refresh` here, which is put off until an answer is asked for.

In memory, `amta_rounds` has other code for `push`, `restack` and the rounds of a slide, which keeps
partials in registers; the code here is for vectors, and for windows in a store.
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
    clear,
    combine,
    copy,
    drop,
    get,
    lift,
    put,
    zeros,
)
from .amta_rounds import (
    ASKED,
    FRESH,
    FRONT,
    GROWN,
    IN_REGISTERS,
    NEXT,
    SPLIT,
    STALE,
    STATE,
    rounds,
    rounds_alike,
)
from .daba import slide
from .guard import alone
from .in_order import slide as slide_by_rounds
from .level_window import LevelWindow, kernels
from .levels import ANSWER, BACK, SWEPT, beside, levels, look, sweep, tail
from .stored_kernel import stored_kernels

__all__ = ["Amta"]


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    if OBJECTS:
        sweep(m, 2)
    at = tail(m, 0, end)
    lift(m, at, columns, row)
    combine(m, BACK, BACK, at)
    put(m, END, end + 1)
    put(m, ASKED, 0)
    if not end & 1:
        push(m, end + 2)
    if end + 1 >= get(m, NEXT) and get(m, STATE) == FRESH:
        put(m, STATE, GROWN)


def push(m: Memory, after: int) -> None:
    """Push the nodes that are due when position `after - 1` is the end."""
    start = get(m, START)
    level = 1
    index = (after >> 1) - 2
    put(m, BUSY, 1)
    while index << level >= start:  # else it has left in part, and is never looked at
        below = tail(m, level - 1, 2 * index)
        combine(m, tail(m, level, index), below, tail(m, level - 1, 2 * index + 1))
        if index & 1:
            break
        level += 1
        index = (after >> level) - 2
    put(m, BUSY, 0)


def evict(m: Memory) -> None:
    start = get(m, START) + 1
    put(m, START, start)
    put(m, ASKED, 0)
    if OBJECTS:
        sweep(m, 2)
    state = get(m, STATE)
    if state == STALE:
        return
    split = get(m, SPLIT)
    if start >= split:
        put(m, STATE, STALE)
        return
    level = zeros(start)
    drop(m, beside(m, get(m, FRONT)))
    put(m, FRONT, level + 1)
    if level:
        put(m, STATE, STALE)
        restack(m, start, split, level)
        put(m, STATE, state)


def restack(m: Memory, start: int, split: int, level: int) -> None:
    """New entries of the stack for all levels below one whose bit has become one."""
    above = level
    if start + (1 << level) < split:
        while (start >> above) & 1:
            above += 1
        above += 1
        level -= 1
        combine(m, beside(m, level + 1), look(m, level, (start >> level) + 1), beside(m, above))
    else:
        level -= 1
        copy(m, beside(m, level + 1), look(m, level, (start >> level) + 1))
    while level:
        level -= 1
        right = look(m, level, (start >> level) + 1)
        combine(m, beside(m, level + 1), right, beside(m, level + 2))


def refresh(m: Memory) -> None:
    """Compute the pair of results and the stack from the forest."""
    start = get(m, START)
    end = get(m, END)
    put(m, STATE, STALE)
    level = 0
    if OBJECTS:
        while level < levels(m):
            drop(m, beside(m, level + 1))
            level += 1
        level = 0
    put(m, FRONT, 0)
    if start == end:
        clear(m, beside(m, 0))
        clear(m, BACK)
        put(m, SPLIT, start)
        put(m, NEXT, start + 1)
        put(m, STATE, FRESH)
        return
    while ((end + 1) >> (level + 1)) - (start >> (level + 1)) >= 2:
        level += 1
    head = start >> level
    split = (head + 1) << level
    if head & 1 == 0 and ((end + 1) >> level) - head >= 3:
        split = (head + 2) << level
    if split != get(m, SPLIT):
        put(m, SPLIT, -1)
        refresh_back(m, split, level, end)
        put(m, SPLIT, split)
        put(m, NEXT, next_split(start, split, level))
    found = -1
    while level >= 0:
        index = (start >> level) + 1
        if index & 1 and index << level < split:
            if found < 0:
                copy(m, beside(m, level + 1), look(m, level, index))
            else:
                combine(m, beside(m, level + 1), look(m, level, index), found)
            found = beside(m, level + 1)
        level -= 1
    if found < 0:
        copy(m, beside(m, 0), look(m, 0, start))
    else:
        combine(m, beside(m, 0), look(m, 0, start), found)
    put(m, STATE, FRESH)


def refresh_back(m: Memory, split: int, level: int, end: int) -> None:
    """The aggregate from a position on, which is a node's on this level."""
    clear(m, BACK)
    at = split
    while at < end:
        while at >> level >= ((end + 1) >> level) - 1:
            level -= 1
        if at == split:
            copy(m, BACK, look(m, level, at >> level))
        else:
            combine(m, BACK, BACK, look(m, level, at >> level))
        at += 1 << level


def next_split(start: int, split: int, level: int) -> int:
    """Where the end must come for the first tree, whose root is on this level, to grow."""
    while (start >> level) & 1 or ((start >> level) + 1) << level < split:
        level += 1
    return (((start >> level) + 3) << level) - 1


def whole(m: Memory) -> int:
    """The slot with the aggregate of the window, for which the first tree need not be the one that
    it ought to be."""
    if get(m, STATE) == STALE:
        refresh(m)
    if not get(m, ASKED):
        combine(m, ANSWER, beside(m, get(m, FRONT)), BACK)
        put(m, ASKED, 1)
    return ANSWER


def query(m: Memory) -> int:
    if get(m, STATE) != FRESH:
        refresh(m)
    if not get(m, ASKED):
        combine(m, ANSWER, beside(m, get(m, FRONT)), BACK)
        put(m, ASKED, 1)
    return ANSWER


def leave(m: Memory, count: int) -> None:
    """Evict so many: one by one if they are few, else by what is computed for the next answer."""
    start = get(m, START)
    if count < 62 and 1 << count <= get(m, END) - start:
        for _ in range(count):
            evict(m)
        return
    jump(m, count)


def jump(m: Memory, count: int) -> None:
    """Evict so many, and leave the rest to the next answer."""
    put(m, START, get(m, START) + count)
    put(m, ASKED, 0)
    put(m, STATE, STALE)
    if OBJECTS:
        sweep(m, 2)


def held(m: Memory, level: int, index: int) -> int:
    """The slot of a node that is there, or -1."""
    if index < ((get(m, END) + 1) >> level) - 1:
        return look(m, level, index)
    return -1


class Amta(LevelWindow):
    """In-order aggregation in amortised constant time, with bulk eviction and window policies.

    >>> from sash.operators import max
    >>> window = Amta(max)
    >>> for x in [9, 3, 5, 1, 4]:
    ...     window.insert(x)
    >>> window.query()
    9
    >>> window.bulk_evict(3)
    >>> window.query(), len(window)
    (4, 2)
    """

    _own = (
        *(insert, evict, refresh, refresh_back, next_split, whole, query),
        *(leave, jump, held),
    )
    _kernels = kernels(
        "amta",
        *(*_own, *IN_REGISTERS),
        slides=(rounds_alike, rounds, slide),
        inline=("push_from", "restack_from"),  # calls would take as long as what they do
        for_vectors=(push, restack, slide_by_rounds),
    )
    _stored_kernels = stored_kernels("amta", *_own, push, restack)

    @alone
    def results(self) -> tuple[Any, Any]:
        """The pair of results, of the first tree and of all the others."""
        core = self._core
        core.run.ask(core.m, core.answer, 0)
        return core.peek(self._beside(core.get(FRONT))), core.peek(BACK)

    @alone
    def stack(self) -> list[Any]:
        """The stack, its top first: aggregates of the first tree without its head on each level."""
        core = self._core
        core.run.ask(core.m, core.answer, 0)
        return [self._core.peek(self._beside(level + 1)) for level in self._stacked()]

    def _stacked(self) -> list[int]:
        """The levels that have an entry in the stack."""
        start, split = self._core.get(START), self._core.get(SPLIT)
        return [
            level
            for level in range(self._levels())
            if not (start >> level) & 1 and ((start >> level) + 1) << level < split
        ]

    def _check(self) -> None:
        super()._check()
        core = self._core
        start, end, split = core.get(START), core.get(END), core.get(SPLIT)
        assert core.get(SWEPT) <= start
        for level in range(1, core.get(CAPACITY).bit_length()):
            for index in range(-(-start >> level), ((end + 1) >> level) - 1):
                halves = (self._node(level - 1, 2 * index + i) for i in (0, 1))
                wanted = self._join(*halves)
                assert self._equal(self._node(level, index), wanted), f"node {index} of {level}"
        state = core.get(STATE)
        if state == STALE or start == end:
            return
        if split > start:
            assert core.get(SPLIT) <= end
            front = core.peek(self._beside(core.get(FRONT)))
            assert self._equal(front, self._fold(start, split)), "the front's aggregate"
            for level in self._stacked():
                rest = self._fold(((start >> level) + 1) << level, split)
                entry = core.peek(self._beside(level + 1))
                assert self._equal(entry, rest), f"the stack's entry of level {level}"
        assert self._equal(core.peek(BACK), self._fold(max(split, start), end)), "the back"
        if core.get(ASKED):
            assert self._equal(core.peek(ANSWER), self._fold(start, end)), "the kept answer"
        if state == FRESH:
            assert end < core.get(NEXT)
            assert (split, core.get(NEXT)) == _first_tree(start, end)


def _first_tree(start: int, end: int) -> tuple[int, int]:
    """Where the first tree ends, and the end with which it grows, by looking."""

    def split(end: int) -> int:
        level = 0
        while (start >> (level + 1)) < ((end + 1) >> (level + 1)) - 1:
            level += 1
        pair = start >> (level + 1)
        return min(2 * pair + 2, ((end + 1) >> level) - 1) << level

    grown = end
    while split(grown) == split(end):
        grown += 1
    return split(end), grown
