"""Keeping a B-tree of partials in shape: split, merge, move, and the repair of aggregates.

Rebalancing goes from a changed node upwards and leaves the own aggregate of every node below
where it ends right.  `settle` does the rest: it repairs the node itself, those above it
while they are off the spines, and from the spine node where that ends down to the finger.

Why rebalancing takes amortised constant time: the paper's argument, its Lemma 9, but for the oldest
node.  Let m be the least arity, half of ENTRIES.  Each node keeps coins, by its entries:

    entries                      m - 2   m - 1   m … 2m - 2   2m - 1    2m
    coins of most nodes            4       1         0           2       4
    of the oldest of a level       6       3         0           2       4
    of the root                    0       0         0           2       4

A node has m - 2 or 2m entries only until it is rebalanced.  An entry more costs its node at most 2
coins, and an entry less at most 3.  Each step costs one coin.  A split and a merge also add an
entry to the parent or take one from it, so a split must free 3 coins and a merge 4:

    split   2m                             into m and m - 1         4     = 0 + 1 + 3
    merge   m - 2 and m - 1                into 2m - 2              4 + 1 > 0 + 4
            m - 1, the oldest, and m - 2   into 2m - 2              3 + 4 > 0 + 4
            m - 2, the oldest, and m - 1   into 2m - 2              6 + 1 > 0 + 4
            m - 2, the oldest, and m       into 2m - 1              6 + 0 = 2 + 4

So splits and merges pay for themselves, on however many levels.  A move adds no coins and changes
nothing above, so that there is at most one in an operation.  An insertion is charged 2 coins, an
eviction 3 and one for its move: over any sequence, at most 2 and 4 steps each.

A merge leaves room for an entry, unless it is that of the oldest node, since elsewhere the coins
would not suffice: 4 + 0 < 2 + 4.  A full node splits at the next insertion into m and m - 1, one
eviction from the younger part would merge them again, and that on all levels at once.  After the
oldest node splits, two evictions from it come before the next merge, or a move.

In order, the exception saves a step in two.  Splits leave m entries in every leaf.  The oldest leaf
merges with the next one when it has m - 2, and m + 1 evictions later again.  If it had to leave
room, it would first take one entry by a move, and merge at the next eviction.
"""

from __future__ import annotations

from ..kernels.slots import Memory, combine, copy, drop, get, put, word
from .nodes import (
    ENTRIES,
    FINGERS,
    LEAF,
    LEFT,
    MERGES,
    MOVES,
    ON_LEFT,
    ON_RIGHT,
    RIGHT,
    ROOT,
    SPLITS,
    VISITS,
    agg_at,
    below_at,
    child,
    close_entries,
    copy_children,
    copy_entries,
    copy_entry,
    entries,
    fix_inner,
    fix_own,
    fix_own_here,
    free_node,
    has,
    mark,
    open_entry,
    own_at,
    parent,
    place_of,
    set_child,
    set_entries,
    set_hint,
    set_parent,
    take_node,
    unmark,
    value_at,
)


def split(m: Memory, n: int) -> int:
    """Halve a node that has one entry too many; the middle one goes to the parent, which is made
    if there is none.  Returns the younger half.  Own aggregates are left for the caller."""
    put(m, SPLITS, get(m, SPLITS) + 1)
    leaf = has(m, n, LEAF)
    r = take_node(m, LEAF if leaf else 0)
    count = entries(m, n)
    middle = count // 2
    more = count - middle - 1
    copy_entries(m, r, 0, n, middle + 1, more)
    if not leaf:
        copy_children(m, r, 0, n, middle + 1, more + 1)
    set_entries(m, r, more)
    p = parent(m, n)
    if p == 0:
        p = take_node(m, 0)
        put(m, ROOT, p)
        set_child(m, p, 0, n)
        if FINGERS:
            mark(m, n, ON_LEFT)
            mark(m, n, ON_RIGHT)
    i = place_of(m, p, n)
    open_entry(m, p, i)
    copy_entry(m, p, i, n, middle)
    set_child(m, p, i + 1, r)
    set_hint(m, p, i + 1)  # what splits next is often the younger half
    for j in range(middle, count):
        drop(m, value_at(m, n, j))
        if not leaf:
            drop(m, below_at(m, n, j + 1))
    set_entries(m, n, middle)
    if has(m, n, ON_RIGHT):
        unmark(m, n, ON_RIGHT)
        mark(m, r, ON_RIGHT)
        drop(m, agg_at(m, n))
    if leaf and get(m, RIGHT) == n:
        put(m, RIGHT, r)
    return r


def merge(m: Memory, p: int, i: int) -> int:
    """Join children i and i + 1 of p, with the entry between them, into the older one."""
    put(m, MERGES, get(m, MERGES) + 1)
    a = child(m, p, i)
    b = child(m, p, i + 1)
    count = entries(m, a)
    more = entries(m, b)
    copy_entry(m, a, count, p, i)
    copy_entries(m, a, count + 1, b, 0, more)
    if not has(m, a, LEAF):
        copy_children(m, a, count + 1, b, 0, more + 1)
    set_entries(m, a, count + 1 + more)
    close_entries(m, p, i, 1)
    if has(m, b, ON_RIGHT):
        mark(m, a, ON_RIGHT)
        drop(m, below_at(m, p, i))
    if get(m, RIGHT) == b:
        put(m, RIGHT, a)
    free_node(m, b)
    return a


def move_older(m: Memory, p: int, i: int, k: int) -> None:
    """Move k entries, through p, from child i + 1 of p to child i."""
    put(m, MOVES, get(m, MOVES) + 1)
    a = child(m, p, i)
    b = child(m, p, i + 1)
    count = entries(m, a)
    copy_entry(m, a, count, p, i)
    copy_entries(m, a, count + 1, b, 0, k - 1)
    copy_entry(m, p, i, b, k - 1)
    if not has(m, a, LEAF):
        copy_children(m, a, count + 1, b, 0, k)
        copy_children(m, b, 0, b, k, 1)
    set_entries(m, a, count + k)
    close_entries(m, b, 0, k)


def move_younger(m: Memory, p: int, i: int) -> None:
    """Move one entry, through p, from child i of p to child i + 1."""
    put(m, MOVES, get(m, MOVES) + 1)
    a = child(m, p, i)
    b = child(m, p, i + 1)
    last = entries(m, a) - 1
    open_entry(m, b, 0)
    copy_entry(m, b, 0, p, i)
    copy_entry(m, p, i, a, last)
    if not has(m, b, LEAF):
        copy_children(m, b, 1, b, 0, 1)
        copy_children(m, b, 0, a, last + 1, 1)
        drop(m, below_at(m, a, last + 1))
    drop(m, value_at(m, a, last))
    set_entries(m, a, last)


def shrink_root(m: Memory) -> int:
    """Make the root's only child the root, for as long as it has no entry.  Returns the root."""
    root = get(m, ROOT)
    while entries(m, root) == 0 and not has(m, root, LEAF):
        only = child(m, root, 0)
        free_node(m, root)
        set_parent(m, only, 0)
        unmark(m, only, ON_LEFT)
        unmark(m, only, ON_RIGHT)
        drop(m, agg_at(m, only))
        put(m, ROOT, only)
        root = only
    if has(m, root, LEAF):
        put(m, LEFT, root)
        put(m, RIGHT, root)
    return root


def grow(m: Memory, n: int) -> int:
    """Split upwards from a node for as long as there is one with too many entries.  Returns the
    node where that ends, whose own aggregate is left for `settle`."""
    while entries(m, n) >= ENTRIES:
        r = split(m, n)
        fix_own(m, n)
        fix_own(m, r)
        n = parent(m, n)
    return n


def refill(m: Memory, n: int) -> int:
    """Merge or move upwards from a node for as long as there is one with too few entries.
    Returns the node where that ends, whose own aggregate is left for `settle`.

    Siblings merge if that leaves room for an entry; those of the oldest node merge if they fit.
    The opening of this file says why.
    """
    least = ENTRIES // 2 - 1
    while entries(m, n) < least and parent(m, n) != 0:
        p = parent(m, n)
        i = place_of(m, p, n)
        older = i > 0
        other = child(m, p, i - 1 if older else i + 1)
        if entries(m, n) + 1 + entries(m, other) < ENTRIES - 1 + has(m, n, ON_LEFT):
            n = merge(m, p, i - 1 if older else i)
            if entries(m, p) == 0 and parent(m, p) == 0:
                return shrink_root(m)
            fix_own(m, n)
        else:
            if older:
                move_younger(m, p, i - 1)
            else:
                move_older(m, p, i, (entries(m, other) - entries(m, n)) >> 1)
            fix_own(m, n)
            fix_own(m, other)
        n = p
    return n


def settle(m: Memory, n: int) -> None:
    """Repair all aggregates, after a change that ended at n."""
    carry(m, n, fix_own_here(m, n))


def settle_apart(m: Memory, n: int) -> None:
    """The same, not compiled into its callers: for what happens rarely."""
    settle(m, n)


def carry(m: Memory, n: int, place: int) -> None:
    """Repair the aggregates that depend on a node's own one, which was just computed and handed up
    to a place in the parent, if that is not negative.  Where one stays what it was, as the largest
    of many mostly does, those above it do as well."""
    inside = place >= 0
    while place >= 0:
        n = parent(m, n)
        place = fix_inner(m, n, place)
    if FINGERS:
        spines = word(m, n + 1) & (ON_LEFT | ON_RIGHT)
        if parent(m, n) == 0:
            if inside or has(m, n, LEAF):
                return  # in the root ends only what is not on a spine
            spines = ON_LEFT | ON_RIGHT
        if spines & ON_LEFT:
            spread_left(m, n)
        if spines & ON_RIGHT:
            spread_right(m, n)


def spread_left(m: Memory, n: int) -> None:
    """Repair the left spine's aggregates from n, or from below the root, down to the finger."""
    root = get(m, ROOT)
    if n == root:
        n = child(m, n, 0)
    while True:
        put(m, VISITS, get(m, VISITS) + 1)
        p = parent(m, n)
        if p == root:
            copy(m, agg_at(m, n), own_at(m, n))
        else:
            combine(m, agg_at(m, n), own_at(m, n), agg_at(m, p))
        if has(m, n, LEAF):
            return
        n = child(m, n, 0)


def spread_right(m: Memory, n: int) -> None:
    """Repair the right spine's aggregates from n, or from below the root, down to the finger."""
    root = get(m, ROOT)
    if n == root:
        n = child(m, n, entries(m, n))
    while True:
        put(m, VISITS, get(m, VISITS) + 1)
        p = parent(m, n)
        if p == root:
            copy(m, agg_at(m, n), own_at(m, n))
        else:
            combine(m, agg_at(m, n), agg_at(m, p), own_at(m, n))
        if has(m, n, LEAF):
            return
        n = child(m, n, entries(m, n))


BALANCE = (
    split,
    merge,
    move_older,
    move_younger,
    shrink_root,
    grow,
    refill,
    settle,
    settle_apart,
    carry,
    spread_left,
    spread_right,
)
