"""Keeping a B-tree of partials in shape: split, merge, move, and the repair of aggregates.

Rebalancing goes from a changed node upwards and leaves the own aggregate of every node below
where it ends right.  `settle` does the rest: it repairs the node itself, those above it
while they are off the spines, and from the spine node where that ends down to the finger.
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

    Siblings merge whenever they fit into one node, where the paper merges with a sibling of least
    arity only and else moves one entry.  In order that halves the steps: what is left of a leaf
    merges with the next one, and needs nothing more until as much again has left.  A full node
    splits at the next insertion, but then it takes two evictions to merge again, so
    the steps on a level are at most two for three on the one below, and amortised constant.
    """
    least = ENTRIES // 2 - 1
    while entries(m, n) < least and parent(m, n) != 0:
        p = parent(m, n)
        i = place_of(m, p, n)
        older = i > 0
        other = child(m, p, i - 1 if older else i + 1)
        if entries(m, n) + 1 + entries(m, other) < ENTRIES:
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
