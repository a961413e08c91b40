"""The levels of a window whose middle is in a store: what kernels need of them.

A level is cut into pages of 2^BITS nodes.  In memory are the pages at its head and at its tail:

    head                                                        tail
    | page | page |   pages that are in the store alone   | page | page |
      ^ START >> level                                            END >> level ^

The head has room for four pages: the one that START is in and the next must be there, one more may
be fetched ahead, and the last one may still be in use.  The tail has the page that END is in and
the one before.  Kernels never call a store.  Where one would need another page, it comes back
first, to say what it lacks, and goes on when Python has seen to it:

    LAST     END has to stay below, until the page that leaves the tail is saved
    FIRST    START has to stay below, until the page that comes next at the head is there
    WANTED   the level and page that a descent in the tree needs, which is put into MIDDLE
    GOAL     where START is to go, until the pages there are those of the head
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import (
    END,
    START,
    Columns,
    Memory,
    Outputs,
    combine,
    copy,
    drop,
    get,
    holds,
    lower,
    put,
)
from .in_order import ask, evict, insert, query
from .levels import LONGER, PREFIX, RING, SWEPT

__all__ = [
    "BITS",
    "FIRST",
    "GOAL",
    "LAST",
    "LEVELS",
    "MIDDLE_LEVEL",
    "MIDDLE_PAGE",
    "PHASE",
    "READY",
    "SIDES",
    "STORED",
    "WANTED_LEVEL",
    "WANTED_PAGE",
    "stored_kernels",
]

# Header, after the fields of the algorithms.
BITS, LEVELS, LAST, FIRST = 9, 10, 11, 12
WANTED_LEVEL, WANTED_PAGE, MIDDLE_LEVEL, MIDDLE_PAGE = 13, 14, 15, 16
GOAL, READY = 17, 18
# What the enforcement of a policy has come to: nothing, evictions one by one, a descent, a jump.
PHASE, EVICTED, AT, LEVEL_AT = 19, 20, 21, 22
IDLE, SINGLE, DESCENT, JUMP = 0, 1, 2, 3

SINGLY = 1  # whether the first values that a policy wants to go are evicted one by one

SIDES = 64  # slots beside levels
STORED = RING + SIDES  # where the middle page begins, behind which come the levels


def look(m: Memory, level: int, index: int) -> int:
    """The slot of a node at the head or the tail."""
    bits = get(m, BITS)
    base = STORED + (1 << bits) + level * (6 << bits)
    if (index >> bits) + 1 >= (get(m, END) >> level) >> bits:
        return base + (4 << bits) + (index & ((2 << bits) - 1))
    return base + (index & ((4 << bits) - 1))


def tail(m: Memory, level: int, index: int) -> int:
    """The slot for the next node of a level."""
    bits = get(m, BITS)
    return STORED + (5 << bits) + level * (6 << bits) + (index & ((2 << bits) - 1))


def beside(m: Memory, level: int) -> int:
    """The slot beside a level."""
    return RING + level


def levels(m: Memory) -> int:
    """How many levels there is room for."""
    return get(m, LEVELS)


def sweep(m: Memory, most: int) -> None:
    """What has left is written over."""
    put(m, SWEPT, get(m, START))


def leave(m: Memory, count: int) -> None:
    """Evict so many at once (declared here, made by each algorithm)."""


def jump(m: Memory, count: int) -> None:
    """Evict so many, without a look at those in between (declared here, made by each algorithm)."""


def whole(m: Memory) -> int:
    """The slot with the aggregate of the whole window (declared here, made by each algorithm)."""
    return 0


def held(m: Memory, level: int, index: int) -> int:
    """The slot of a node that is whole, or -1 (declared here, made by each algorithm)."""
    return 0


def found(m: Memory, level: int, index: int) -> int:
    """The slot of a node that is whole, -1 if there is none, -2 if its page is not in memory."""
    node = held(m, level, index)
    bits = get(m, BITS)
    page = index >> bits
    ahead = page - ((get(m, START) >> level) >> bits)
    if node < 0 or ahead == 0 or ahead == 1 or page + 1 >= (get(m, END) >> level) >> bits:
        return node
    if level == get(m, MIDDLE_LEVEL) and page == get(m, MIDDLE_PAGE):
        return STORED + (index & ((1 << bits) - 1))
    put(m, WANTED_LEVEL, level)
    put(m, WANTED_PAGE, page)
    return -2


def descend(m: Memory, total: int) -> int:
    """Where the longest prefix ends for which the rule holds, or -1 if a page is wanted: up through
    larger and larger nodes while it holds with them, then down.

    The header has where a descent has come to: in AT the end of the prefix, twice, and one more if
    its aggregate is in LONGER; in LEVEL_AT the level, as a negative number on the way down."""
    end = get(m, END)
    state = get(m, AT)
    at = state >> 1
    old = PREFIX
    new = LONGER
    if state & 1:
        old = LONGER
        new = PREFIX
    level = get(m, LEVEL_AT)
    rising = level >= 0
    if not rising:
        level = -2 - level
    while level >= 0:
        node = -1
        if at < end:
            node = found(m, level, at >> level)
        if node == -2:
            put(m, AT, 2 * at + (1 if old == LONGER else 0))
            put(m, LEVEL_AT, level if rising else -2 - level)
            return -1
        more = False
        if node >= 0:
            combine(m, new, old, node)
            more = holds(m, total, new)
        if more:
            old, new = new, old
            at += 1 << level
            if rising and (at >> level) & 1 == 0:
                level += 1
        else:
            rising = False
            level -= 1
    return at


def enforce(m: Memory) -> int:
    """Evict what the rule wants to go until it wants nothing more, as in memory: 1 if that is done,
    0 if Python must see to something first."""
    if get(m, PHASE) == IDLE:
        put(m, EVICTED, 0)
        put(m, PHASE, SINGLE)
    while get(m, START) < get(m, END):
        start = get(m, START)
        if get(m, PHASE) == DESCENT:
            goal = descend(m, whole(m))
            if goal < 0:
                return 0
            put(m, GOAL, goal)
            put(m, PHASE, JUMP)
        if get(m, PHASE) == JUMP:
            if get(m, READY) != get(m, GOAL):
                return 0
            put(m, PHASE, SINGLE)
            jump(m, get(m, GOAL) - start)
            drop(m, PREFIX)
            drop(m, LONGER)
        else:
            total = whole(m)
            head = look(m, 0, start)
            if not holds(m, total, head):
                put(m, PHASE, IDLE)
                return 1
            evicted = get(m, EVICTED)
            if SINGLY and 1 << evicted <= get(m, END) - start + evicted:
                if start + 1 >= get(m, FIRST):
                    return 0
                evict(m)
                put(m, EVICTED, evicted + 1)
            else:
                copy(m, PREFIX, head)
                put(m, AT, 2 * (start + 1))
                put(m, LEVEL_AT, 0)
                put(m, PHASE, DESCENT)
    put(m, PHASE, IDLE)
    return 1


def make_way(m: Memory, size: int) -> int:
    """Evict until there is room for one more: 1, or 0 if Python must see to something first, or if
    the next value would need another page."""
    while get(m, END) - get(m, START) >= size:
        if get(m, START) + 1 >= get(m, FIRST):
            return 0
        evict(m)
    if get(m, END) + 1 >= get(m, LAST):
        return 0
    return 1


def slide(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int) -> int:
    """For each row: make room, insert, answer.  Returns the row before which Python must see to
    something."""
    for row in range(first, rows):
        if not make_way(m, size):
            return row
        insert(m, columns, row)
        lower(m, query(m), outputs, row)
    return rows


def slide_under(
    m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int
) -> int:
    """For each row: make room, insert, enforce, answer.  Returns the row at which Python must see
    to something; in the middle of an enforcement, the row is in."""
    for row in range(first, rows):
        if get(m, PHASE) == IDLE:
            if not make_way(m, size):
                return row
            insert(m, columns, row)
        if not enforce(m):
            return row
        lower(m, query(m), outputs, row)
    return rows


def stored_kernels(name: str, *functions: Any, singly: int = 1) -> tuple[Kernel, Kernel]:
    """An algorithm's kernel over levels with a store, and the same for operators with a rule."""
    own = (look, tail, beside, levels, sweep, *functions, ask, make_way)
    brief = ("insert", "evict", "ask", "leave", "jump")
    shape: dict[str, Any] = {"scratch": STORED, "each": 1}
    plain = Kernel(f"{name}_stored", (*own, slide), (*brief, "slide"), brief, **shape)
    ruled = Kernel(
        f"{name}_stored_under",
        (*own, found, descend, enforce, slide_under),
        (*brief, "enforce", "slide_under"),
        (*brief, "enforce"),
        constants=(("SINGLY", singly),),
        **shape,
    )
    return plain, ruled
