"""Bulk eviction and insertion in a finger B-tree: the tree is restructured once for all.

The idea is that of Tangwongsan, Hirzel, Schneider: Out-of-order sliding-window aggregation with
efficient bulk evictions and insertions (VLDB 2023).
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import BUSY, Columns, Memory, clear, combine, copy, drop, get, item, lift, put
from .balance import (
    carry,
    merge,
    move_older,
    refill,
    settle_apart,
    shrink_root,
    split,
    spread_left,
    spread_right,
)
from .nodes import (
    COUNT,
    DIRTY,
    ENTRIES,
    FINGERS,
    LEAF,
    LEFT,
    ON_LEFT,
    RIGHT,
    ROOT,
    VISITS,
    below_at,
    child,
    close_entries,
    copy_children,
    drop_tree,
    entries,
    first_after,
    first_not_before,
    fix_own,
    has,
    mark,
    new_slot,
    open_entry,
    own_at,
    parent,
    place_of,
    room,
    seek,
    set_entries,
    set_hint,
    set_time,
    take_node,
    time_of,
    unmark,
    value_at,
)


def bulk_evict(m: Memory, t: int) -> None:
    """Drop all times up to and including t.

    Along the path to t everything older is cut off, whole subtrees at once.  The path, now the
    left spine, is then filled from the top down: each node is given enough that its child can take
    an entry from it.
    """
    n = get(m, RIGHT)
    count = entries(m, n)
    if count == 0 or time_of(m, get(m, LEFT), 0) > t:
        return
    if time_of(m, n, count - 1) <= t:
        drop_tree(m, get(m, ROOT))
        n = take_node(m, LEAF)
        put(m, ROOT, n)
        put(m, LEFT, n)
        put(m, RIGHT, n)
        clear(m, own_at(m, n))
        return
    put(m, BUSY, 1)
    n = get(m, LEFT)
    while parent(m, n) != 0 and time_of(m, parent(m, n), 0) <= t:
        n = parent(m, n)
    above = parent(m, n)
    root = get(m, ROOT)
    top = n
    while True:
        put(m, VISITS, get(m, VISITS) + 1)
        i = first_after(m, n, t)
        put(m, COUNT, get(m, COUNT) - i)
        if parent(m, n) != 0:
            mark(m, n, ON_LEFT)
        if has(m, n, LEAF):
            close_entries(m, n, 0, i)
            break
        for k in range(i):
            drop_tree(m, child(m, n, k))
        copy_children(m, n, 0, n, i, 1)
        close_entries(m, n, 0, i)
        drop(m, below_at(m, n, 0))
        n = child(m, n, 0)
    put(m, LEFT, n)
    fill_down(m, top)
    if above == root and get(m, ROOT) != root:
        above = 0  # the root gave its last entry to the path, and is gone
    n = get(m, LEFT)
    place = fix_own(m, n)
    while parent(m, n) != above:
        n = parent(m, n)
        place = fix_own(m, n)
    if above != 0:
        settle_apart(m, refill(m, above))
    else:
        carry(m, n, place)
    put(m, BUSY, 0)


def fill_down(m: Memory, n: int) -> None:
    """Give every inner node of the left spine from n down more than the fewest entries, and the
    leaf as many, if it has a sibling to take them from; those above n are left for `refill`.

    Siblings merge if they fit: these are the oldest nodes of their levels, which may fill up (see
    `balance`).  A node on the way may merge without need for it, at a cost of a few coins.
    An eviction of k entries comes this way on O(log k) levels, and they are part of its cost.
    """
    enough = ENTRIES // 2
    while True:
        p = parent(m, n)
        if p == 0:
            n = shrink_root(m)
        elif entries(m, n) < enough - has(m, n, LEAF):
            other = child(m, p, 1)
            if entries(m, n) + 1 + entries(m, other) < ENTRIES:
                merge(m, p, 0)
                if entries(m, p) == 0 and parent(m, p) == 0:
                    n = shrink_root(m)
            else:
                move_older(m, p, 0, enough - entries(m, n))
                fix_own(m, other)
        if has(m, n, LEAF):
            return
        n = child(m, n, 0)


def bulk_insert(m: Memory, times: Any, columns: Columns, first: int, rows: int) -> int:
    """Insert rows for as long as their times do not fall.  Returns the row where they do, or where
    memory ran short.

    Rows that belong into one leaf, or into what it is split into, are put there after one search.
    No aggregate is repaired before the end, and then each one once.
    """
    new = new_slot(m)
    row = first
    before = item(times, first)
    while row < rows and room(m):
        t = item(times, row)
        if t < before:
            break
        n = seek(m, t)
        i = first_not_before(m, n, t)
        soil(m, n)
        last = n  # the leaf's times lie before the time that separates it from the next one
        while parent(m, last) != 0 and (
            place_of(m, parent(m, last), last) == entries(m, parent(m, last))
        ):
            last = parent(m, last)
        p = parent(m, last)
        bounded = p != 0
        limit = time_of(m, p, place_of(m, p, last)) if bounded else 0
        parted = False  # whether the leaf was split, and `border` is what went to its parent
        border = 0
        while row < rows:
            t = item(times, row)
            if t < before or (bounded and t >= limit) or (parted and t == border):
                break
            before = t
            count = entries(m, n)
            while i < count and time_of(m, n, i) < t:
                i += 1
            last_of_all = i == count
            same = not last_of_all and time_of(m, n, i) == t
            if not same and not has(m, n, LEAF):
                break
            lift(m, value_at(m, n, i) if last_of_all else new, columns, row)
            row += 1
            if same:
                combine(m, value_at(m, n, i), value_at(m, n, i), new)
                continue
            if last_of_all:
                set_entries(m, n, count + 1)
            else:
                open_entry(m, n, i)
                copy(m, value_at(m, n, i), new)
            set_time(m, n, i, t)
            put(m, COUNT, get(m, COUNT) + 1)
            if count + 1 >= ENTRIES:
                left = ENTRIES // 2
                border = time_of(m, n, left)
                r = split_up(m, n)
                if i >= left:
                    n = r
                    i = max(i - left - 1, 0)
                    parted = True
                else:
                    bounded = True
                    limit = border
                if not room(m):
                    break
    clean(m)
    return row


def split_up(m: Memory, n: int) -> int:
    """Split a node and those above it that are then too full, and leave the repair for later.
    Returns the node's younger half."""
    r = split(m, n)
    mark(m, r, DIRTY)
    n = parent(m, n)
    soil(m, n)
    while entries(m, n) >= ENTRIES:
        mark(m, split(m, n), DIRTY)
        n = parent(m, n)
        soil(m, n)
    return r


def soil(m: Memory, n: int) -> None:
    """Mark a node and those above it as in need of repair."""
    while n != 0 and not has(m, n, DIRTY):
        mark(m, n, DIRTY)
        n = parent(m, n)


def clean(m: Memory) -> None:
    """Repair all nodes that are marked, children before parents."""
    n = get(m, ROOT)
    if not has(m, n, DIRTY):
        return
    put(m, BUSY, 1)
    i = 0
    while True:
        if not has(m, n, LEAF):
            while i <= entries(m, n) and not has(m, child(m, n, i), DIRTY):
                i += 1
            if i <= entries(m, n):
                set_hint(m, n, i)  # for the way back, and for what hands its aggregate up
                n = child(m, n, i)
                i = 0
                continue
        fix_own(m, n)
        unmark(m, n, DIRTY)
        p = parent(m, n)
        if p == 0:
            break
        i = place_of(m, p, n) + 1
        n = p
    if FINGERS and not has(m, n, LEAF):
        spread_left(m, n)
        spread_right(m, n)
    put(m, BUSY, 0)


BULK = (bulk_evict, fill_down, bulk_insert, split_up, soil, clean)
