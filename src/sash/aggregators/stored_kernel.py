"""The levels of a window whose middle is in a store: what kernels need of them.

Levels are cut into pages.  A page has 2^BITS neighbouring nodes of a level, its leaves, and the
nodes above them on the next BITS - 3 levels; the nodes above those are leaves of other pages:

    level 5       o       o       o …     leaves of other pages
    levels 1…4    nodes above the leaves
    level 0     | 128 leaves | 128 leaves | …                  with BITS = 7

A store has the leaves of a page, and every third level above them: 1.14 partials a value instead
of two.  Where values leave one by one, the other nodes of a page are computed when it comes back,
in one go.  After a bulk eviction each is computed when it is looked at, with at most three
combines, until START comes to the next page; WHOLE says which.  On each level a page has at least
eight nodes, so what kernels look at near END is in the last two pages.

In memory are the pages at the head and at the tail of the levels:

    head                                                        tail
    | page | page |   pages that are in the store alone   | page | page |
      ^ START                                                     END ^

The head has room for four pages: the one that START is in and the next must be there, one more may
be fetched ahead, and the last one may still be in use.  The tail has the page that END is in and
the one before.  Both are rings with their levels one after the other, as a window in memory is.
Kernels never call a store.  Where one would need another page, it comes back first, to say what it
lacks, and goes on when Python has seen to it:

    LAST     END has to stay below, until the page that leaves the tail is saved
    FIRST    START has to stay below, until the page that comes next at the head is there
    WANTED   the page and level that a descent in the tree needs, which is put into MIDDLE
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
    "FEWEST",
    "FIRST",
    "GOAL",
    "HEADS",
    "LAST",
    "LEVELS",
    "MIDDLE_LEVEL",
    "MIDDLE_PAGE",
    "PHASE",
    "PLACES",
    "READY",
    "SIDES",
    "STEP",
    "STORED",
    "TAILS",
    "WANTED",
    "WHOLE",
    "stored_kernels",
]

# Header, after the fields of the algorithms.
BITS, LEVELS, LAST, FIRST = 9, 10, 11, 12
WANTED, WHOLE, MIDDLE_LEVEL, MIDDLE_PAGE = 13, 14, 15, 16
GOAL, READY = 17, 18
# What the enforcement of a policy has come to: nothing, evictions one by one, a descent, a jump.
PHASE, EVICTED, AT, LEVEL_AT = 19, 20, 21, 22
IDLE, SINGLE, DESCENT, JUMP = 0, 1, 2, 3

SINGLY = 1  # whether the first values that a policy wants to go are evicted one by one

SIDES = 64  # slots beside levels
STORED = RING + SIDES  # where the middle page begins, behind which come the head and tail of pages

# A ring of p pages takes 2p times the slots of p pages' leaves.
HEADS, TAILS = 4, 2  # pages
PLACES = 2 * (HEADS + TAILS)
FEWEST = 2  # a page has twice as many nodes on its highest level as 2 to this power
STEP = 3  # a store has the leaves of a page, and of the levels above them every third


def look(m: Memory, level: int, index: int) -> int:
    """The slot of a node at the head or the tail."""
    bits = get(m, BITS)
    if level >= bits - FEWEST:
        return look_above(m, level, index)
    if ((index << level) >> bits) + 1 >= get(m, END) >> bits:
        return tail(m, level, index)
    if level and not get(m, WHOLE):
        return look_above(m, level, index)
    wide = (HEADS << bits) >> level
    return STORED + ((2 + 2 * HEADS) << bits) - 2 * wide + (index & (wide - 1))


def look_above(m: Memory, level: int, index: int) -> int:
    """The same, also of pages whose leaves are not values, and of those that are not whole."""
    bits = get(m, BITS)
    high = bits - FEWEST
    end = get(m, END) >> bits
    base = STORED + (2 << bits)
    while level >= high:
        level -= high
        end >>= high
        base += PLACES << bits
    ring = HEADS << bits
    if (index >> (bits - level)) + 1 >= end:
        base += 2 * ring
        ring = TAILS << bits
    elif not get(m, WHOLE) and level % STEP:
        return risen(m, base, ring, level, index)
    wide = ring >> level
    return base + 2 * (ring - wide) + (index & (wide - 1))


def risen(m: Memory, base: int, ring: int, level: int, index: int) -> int:
    """The slot of a node of a page that came back from the store, on a level that it does not
    have: computed from the level below that it has."""
    below = level - level % STEP
    while below < level:
        below += 1
        wide = ring >> below
        to = base + 2 * (ring - wide)
        children = to - 2 * wide
        first = index << (level - below)
        end = first + (1 << (level - below))
        while first < end:
            left = children + ((2 * first) & (2 * wide - 1))
            combine(m, to + (first & (wide - 1)), left, left + 1)
            first += 1
    wide = ring >> level
    return base + 2 * (ring - wide) + (index & (wide - 1))


def tail(m: Memory, level: int, index: int) -> int:
    """The slot for the next node of a level, or of one of the last five."""
    bits = get(m, BITS)
    if level >= bits - FEWEST:
        return tail_above(m, level, index)
    wide = (TAILS << bits) >> level
    return STORED + ((2 + PLACES) << bits) - 2 * wide + (index & (wide - 1))


def tail_above(m: Memory, level: int, index: int) -> int:
    """The same of pages whose leaves are not values."""
    bits = get(m, BITS)
    high = bits - FEWEST
    base = STORED + (2 << bits)
    while level >= high:
        level -= high
        base += PLACES << bits
    wide = (TAILS << bits) >> level
    return base + (PLACES << bits) - 2 * wide + (index & (wide - 1))


def rebuild(m: Memory, base: int, ring: int, level: int, page: int) -> None:
    """Compute all nodes above the leaves of a page, which are on a level, in a ring; but for those
    that have left in part, which nobody looks at."""
    bits = get(m, BITS)
    start = get(m, START)
    above = 1
    while above < bits - FEWEST:
        wide = ring >> above
        to = base + 2 * (ring - wide)
        children = to - 2 * wide
        index = page << (bits - above)
        end = index + (1 << (bits - above))
        whole = -(-start >> (level + above))
        if whole > index:
            index = whole
        while index < end:
            left = children + ((2 * index) & (2 * wide - 1))
            combine(m, to + (index & (wide - 1)), left, left + 1)
            index += 1
        above += 1


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
    bits = get(m, BITS)
    high = bits - FEWEST
    leaves = 0
    above = level
    while above >= high:
        above -= high
        leaves += high
    page = index >> (bits - above)
    ahead = page - ((get(m, START) >> leaves) >> bits)
    if ahead == 0 or ahead == 1 or page + 1 >= (get(m, END) >> leaves) >> bits:
        return held(m, level, index)
    if leaves == get(m, MIDDLE_LEVEL) and page == get(m, MIDDLE_PAGE):
        return risen(m, STORED, 1 << bits, above, index)
    put(m, WANTED, page << 6 | leaves)
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
    above = (look_above, risen, tail_above)
    own = (look, tail, *above, beside, levels, sweep, *functions, ask, rebuild, make_way)
    brief = ("insert", "evict", "ask", "leave", "jump", "rebuild")
    # left to the compiler these are calls, and a round of count takes 10.8 ns instead of 6.9
    shape: dict[str, Any] = {"scratch": STORED, "each": 1, "inline": ("look", "tail", "make_way")}
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
