"""FiBA, the finger B-tree aggregator: a window in any order of arrival.

    order      any; values of one time are combined as they arrive
    operator   any associative
    time       amortised O(log d) an insert or evict at distance d from the nearer end, O(1)
               in order; at most 2 combines a query, O(log d1 + log d2 + log k) one over k times;
               bulk eviction of any number O(log n)
    space      36 to 48 bytes a time for partials of one word
    paper      Tangwongsan, Hirzel, Schneider: Optimal and general out-of-order sliding-window
               aggregation (VLDB 2019); bulk operations: Tangwongsan, Hirzel, Schneider:
               Out-of-order sliding-window aggregation with efficient bulk evictions and
               insertions (VLDB 2023)

A B-tree of times, entered at its first and last leaf, the fingers.  Its aggregates are kept
so that a change is repaired by walking to the nearer finger and not to the root: `nodes` says how
they lie, `balance` how they stay right.  The paper stores one aggregate in a node; here a spine
node has its own part apart as well, so that walking down a spine takes one combine a node.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import (
    BUSY,
    Columns,
    Memory,
    Outputs,
    clear,
    combine,
    copy,
    drop,
    fold,
    get,
    item,
    lift,
    lower,
    put,
    splice,
)
from .balance import BALANCE, carry, grow, refill, settle_apart
from .bulk import BULK
from .nodes import (
    COUNT,
    ENTRIES,
    FINGERS,
    LEAF,
    LEFT,
    NODES,
    RIGHT,
    ROOT,
    ROW,
    VISITS,
    agg_at,
    answer_slot,
    below_at,
    child,
    close_entries,
    copy_entries,
    copy_entry,
    entries,
    first_after,
    first_not_before,
    fix_own,
    hand_up,
    has,
    new_slot,
    open_entry,
    own_at,
    parent,
    part_slot,
    room,
    seek,
    set_entries,
    set_time,
    time_of,
    up_left,
    up_right,
    value_at,
)
from .timed import LEAST
from .tree_window import TreeWindow

__all__ = ["Fiba"]


def insert(m: Memory, t: int, columns: Columns, row: int) -> None:
    if FINGERS:
        n = get(m, RIGHT)
        i = entries(m, n)
        if i > 0 and t > time_of(m, n, i - 1):  # younger than all there are
            put(m, VISITS, get(m, VISITS) + 1)
            set_time(m, n, i, t)
            lift(m, value_at(m, n, i), columns, row)
            put(m, BUSY, 1)
            set_entries(m, n, i + 1)
            put(m, COUNT, get(m, COUNT) + 1)
            if i + 1 >= ENTRIES:
                settle_apart(m, grow(m, n))
                put(m, BUSY, 0)
                return
            own = own_at(m, n)
            combine(m, own, own, value_at(m, n, i))
            p = parent(m, n)
            if p == get(m, ROOT):
                copy(m, agg_at(m, n), own)
            elif p != 0:
                combine(m, agg_at(m, n), agg_at(m, p), own)
            put(m, BUSY, 0)
            return
    new = new_slot(m)
    lift(m, new, columns, row)  # before anything is changed: it may refuse the value
    put(m, BUSY, 1)
    n = seek(m, t)
    i = first_not_before(m, n, t)
    count = entries(m, n)
    if i < count and time_of(m, n, i) == t:
        combine(m, value_at(m, n, i), value_at(m, n, i), new)
        settle_apart(m, n)
    else:
        put(m, COUNT, get(m, COUNT) + 1)
        full = count + 1 >= ENTRIES
        if not full:  # before the others move: it need not wait for that
            put(m, VISITS, get(m, VISITS) + 1)
            own = own_at(m, n)
            if i == count and i > 0:
                combine(m, own, own, new)
            else:
                splice(m, own, value_at(m, n, 0), count, i, new)
        open_entry(m, n, i)
        set_time(m, n, i, t)
        copy(m, value_at(m, n, i), new)
        if full:
            settle_apart(m, grow(m, n))
        else:
            carry(m, n, hand_up(m, n))
    put(m, BUSY, 0)


def evict_at(m: Memory, n: int, i: int) -> None:
    """Take out an entry."""
    put(m, BUSY, 1)
    put(m, COUNT, get(m, COUNT) - 1)
    if has(m, n, LEAF):
        close_entries(m, n, i, 1)
        settle_apart(m, refill(m, n))
    else:
        evict_inner(m, n, i)
    put(m, BUSY, 0)


def evict_inner(m: Memory, n: int, i: int) -> None:
    """Take out an entry of an inner node."""
    # it gets the next younger or older entry, from a leaf, in its stead
    older = entries(m, child(m, n, i + 1)) < ENTRIES // 2
    leaf = child(m, n, i if older else i + 1)
    height = 1
    while not has(m, leaf, LEAF):
        put(m, VISITS, get(m, VISITS) + 1)
        leaf = child(m, leaf, entries(m, leaf) if older else 0)
        height += 1
    j = entries(m, leaf) - 1 if older else 0
    copy_entry(m, n, i, leaf, j)
    close_entries(m, leaf, j, 1)
    top = refill(m, leaf)
    place = fix_own(m, top)
    reached = level(m, top)
    while reached < height and parent(m, top) != 0:  # up to the entry that was replaced
        top = parent(m, top)
        place = fix_own(m, top)
        reached += 1
    carry(m, top, place)


def level(m: Memory, n: int) -> int:
    """How far a node is from the leaves."""
    found = 0
    while not has(m, n, LEAF):
        n = child(m, n, 0)
        found += 1
    return found


def evict(m: Memory, t: int) -> int:
    """Take out a time; 0 if there is no such time."""
    n = seek(m, t)
    i = first_not_before(m, n, t)
    if i < entries(m, n) and time_of(m, n, i) == t:
        evict_at(m, n, i)
        return 1
    return 0


def evict_oldest(m: Memory) -> None:
    n = get(m, LEFT)
    if not FINGERS:
        evict(m, time_of(m, n, 0))
        return
    p = parent(m, n)
    count = entries(m, n)
    if p == 0 or count < ENTRIES // 2:
        evict_at(m, n, 0)
        return
    put(m, VISITS, get(m, VISITS) + 1)
    put(m, BUSY, 1)
    put(m, COUNT, get(m, COUNT) - 1)
    own = own_at(m, n)
    fold(m, own, value_at(m, n, 1), count - 1)  # before they move: it need not wait for that
    # as many as there is room for: a move of constant size is a few instructions
    copy_entries(m, n, 0, n, 1, ENTRIES - 1)
    drop(m, value_at(m, n, count - 1))
    set_entries(m, n, count - 1)
    if p == get(m, ROOT):
        copy(m, agg_at(m, n), own)
    else:
        combine(m, agg_at(m, n), own, agg_at(m, p))
    put(m, BUSY, 0)


def query(m: Memory) -> int:
    """The slot with the aggregate of the whole window."""
    root = get(m, ROOT)
    if not FINGERS or has(m, root, LEAF):
        return own_at(m, root)
    answer = answer_slot(m)
    combine(m, answer, agg_at(m, get(m, LEFT)), own_at(m, root))
    combine(m, answer, answer, agg_at(m, get(m, RIGHT)))
    return answer


def between(m: Memory, lo: int, hi: int) -> int:
    """The slot with the aggregate of all times from lo to hi, both in.

    The least node that has them all below is found from the nearer finger.  What it holds of the
    range itself comes first; then, on the way down to lo, each node adds what it has after lo,
    and on the way down to hi what it has before.
    """
    answer = answer_slot(m)
    part = part_slot(m)
    n = get(m, ROOT)
    if FINGERS and not has(m, n, LEAF):
        if lo > time_of(m, n, entries(m, n) - 1):
            n = up_right(m, lo)
        elif hi < time_of(m, n, 0):
            n = up_left(m, hi)
    i = first_not_before(m, n, lo)
    j = first_after(m, n, hi)
    while i == j and not has(m, n, LEAF):
        put(m, VISITS, get(m, VISITS) + 1)
        n = child(m, n, i)
        i = first_not_before(m, n, lo)
        j = first_after(m, n, hi)
    put(m, VISITS, get(m, VISITS) + 1)
    if i >= j:
        clear(m, answer)
        return answer
    leaf = has(m, n, LEAF)
    copy(m, answer, value_at(m, n, i))
    for k in range(i + 1, j):
        if not leaf:
            combine(m, answer, answer, below_at(m, n, k))
        combine(m, answer, answer, value_at(m, n, k))
    top = n
    while not has(m, n, LEAF):
        n = child(m, n, i)
        put(m, VISITS, get(m, VISITS) + 1)
        i = first_not_before(m, n, lo)
        count = entries(m, n)
        leaf = has(m, n, LEAF)
        if i < count:
            copy(m, part, value_at(m, n, i))
            for k in range(i + 1, count):
                if not leaf:
                    combine(m, part, part, below_at(m, n, k))
                combine(m, part, part, value_at(m, n, k))
            if not leaf:
                combine(m, part, part, below_at(m, n, count))
            combine(m, answer, part, answer)
    n = top
    while not has(m, n, LEAF):
        n = child(m, n, j)
        put(m, VISITS, get(m, VISITS) + 1)
        j = first_after(m, n, hi)
        leaf = has(m, n, LEAF)
        for k in range(j):
            if not leaf:
                combine(m, answer, answer, below_at(m, n, k))
            combine(m, answer, answer, value_at(m, n, k))
    return answer


def slide_count(
    m: Memory, times: Any, columns: Columns, outputs: Outputs, first: int, rows: int, count: int
) -> int:
    """For each row: insert, evict the oldest beyond the count, answer.  Returns the row where
    memory ran short."""
    for row in range(first, rows):
        if not room(m):
            return row
        put(m, ROW, row)
        insert(m, item(times, row), columns, row)
        while get(m, COUNT) > count:
            evict_oldest(m)
        lower(m, query(m), outputs, row)
    return rows


def slide_span(
    m: Memory, times: Any, columns: Columns, outputs: Outputs, first: int, rows: int, span: int
) -> int:
    """For each row: insert, evict what is older than the youngest time less the span, answer.
    Returns the row where memory ran short."""
    for row in range(first, rows):
        if not room(m):
            return row
        put(m, ROW, row)
        insert(m, item(times, row), columns, row)
        n = get(m, RIGHT)
        youngest = time_of(m, n, entries(m, n) - 1)
        if youngest >= LEAST + span:
            while time_of(m, get(m, LEFT), 0) < youngest - span:
                evict_oldest(m)
        lower(m, query(m), outputs, row)
    return rows


def ask(m: Memory, outputs: Outputs, row: int) -> None:
    lower(m, query(m), outputs, row)


def ask_between(m: Memory, outputs: Outputs, lo: int, hi: int) -> None:
    lower(m, between(m, lo, hi), outputs, 0)


FUNCTIONS = (
    *NODES,
    *BALANCE,
    *BULK,
    insert,
    evict_at,
    evict_inner,
    level,
    evict,
    evict_oldest,
    query,
    between,
    slide_count,
    slide_span,
    ask,
    ask_between,
)


class Fiba(TreeWindow):
    """Out-of-order aggregation in a finger B-tree.

    >>> from sash.operators import concat
    >>> window = Fiba(concat)
    >>> for time, value in [(10, "a"), (30, "c"), (20, "b"), (30, "C")]:
    ...     window.insert(time, value)
    >>> window.query(), window.query(15, 30), len(window)
    ('abcC', 'b', 3)
    >>> window.bulk_evict(10)
    >>> window.query(), window.oldest(), window.youngest()
    ('bcC', 20, 30)
    """

    _name = "fiba"
    _functions = FUNCTIONS
    _fingers = 1
