"""Many finger B-trees in one memory: a stream's slices, one tree a key.

A tree is four words of the header (its root, its two fingers, its count); nodes that are free
belong to all.  So another tree is at hand once these words are loaded from a record of its own,
and put away once they are stored there: one compiled call goes through all keys of a batch.

The words here are for `state.forest_kernel`, whose kernel makes a forest.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import (
    BUSY,
    Memory,
    Partials,
    clear,
    combine,
    copy,
    fold,
    get,
    item,
    put,
    set_item,
    set_word,
    store,
    word,
)
from .balance import (
    BALANCE,
    grow,
    merge,
    move_older,
    settle,
    settle_apart,
    shrink_root,
)
from .fiba import between
from .nodes import (
    BARE,
    COUNT,
    ENTRIES,
    HINT,
    LEAF,
    LEFT,
    NODES,
    RIGHT,
    ROOT,
    VISITS,
    agg_at,
    answer_slot,
    below_at,
    child,
    close_entries,
    entries,
    first_after,
    first_not_before,
    fix_own,
    free_node,
    has,
    new_slot,
    open_entry,
    own_at,
    parent,
    part_slot,
    place_of,
    seek,
    set_entries,
    set_time,
    take_node,
    time_of,
    up_left,
    up_right,
    value_at,
)

__all__ = ["FOREST", "PART", "RECORD", "UNBOUNDED", "drop_before", "lay_out"]

#: Words of a tree's record; those after the first four are its owner's.
RECORD = 8
PART = 7  # the number of the memory that the tree is in, where there are several
UNBOUNDED = 2**62  # after all times


def take_out(m: Memory, records: Any, tree: int) -> None:
    """Have a tree at hand; one that was never planted, or is gone, is planted."""
    at = RECORD * tree
    n = item(records, at)
    if n == 0:
        n = take_node(m, LEAF)
        clear(m, own_at(m, n))
        put(m, ROOT, n)
        put(m, LEFT, n)
        put(m, RIGHT, n)
        put(m, COUNT, 0)
    else:
        put(m, ROOT, n)
        put(m, LEFT, item(records, at + 1))
        put(m, RIGHT, item(records, at + 2))
        put(m, COUNT, item(records, at + 3))


def put_away(m: Memory, records: Any, tree: int) -> None:
    """The tree at hand into its record; an empty one is gone."""
    at = RECORD * tree
    if get(m, COUNT) == 0:
        free_node(m, get(m, ROOT))
        set_item(records, at, 0)
    else:
        set_item(records, at, get(m, ROOT))
        set_item(records, at + 1, get(m, LEFT))
        set_item(records, at + 2, get(m, RIGHT))
    set_item(records, at + 3, get(m, COUNT))


def enter(m: Memory, t: int) -> None:
    """Insert the partial in the new slot at a time."""
    new = new_slot(m)
    put(m, BUSY, 1)
    n = get(m, RIGHT)
    i = entries(m, n)
    if i == 0 or t > time_of(m, n, i - 1):  # younger than all there are
        put(m, VISITS, get(m, VISITS) + 1)
        set_time(m, n, i, t)
        copy(m, value_at(m, n, i), new)
        set_entries(m, n, i + 1)
        put(m, COUNT, get(m, COUNT) + 1)
        if i + 1 >= ENTRIES:
            settle_apart(m, grow(m, n))
        else:
            own = own_at(m, n)
            combine(m, own, own, new)
            p = parent(m, n)
            if p == get(m, ROOT):
                copy(m, agg_at(m, n), own)
            elif p != 0:
                combine(m, agg_at(m, n), agg_at(m, p), own)
        put(m, BUSY, 0)
        return
    n = seek(m, t)
    i = first_not_before(m, n, t)
    if i < entries(m, n) and time_of(m, n, i) == t:
        combine(m, value_at(m, n, i), value_at(m, n, i), new)
    else:
        open_entry(m, n, i)
        set_time(m, n, i, t)
        copy(m, value_at(m, n, i), new)
        put(m, COUNT, get(m, COUNT) + 1)
        if entries(m, n) >= ENTRIES:
            n = grow(m, n)
    settle(m, n)
    put(m, BUSY, 0)


def drop_oldest(m: Memory) -> None:
    """Take out the oldest entry."""
    n = get(m, LEFT)
    p = parent(m, n)
    count = entries(m, n)
    put(m, VISITS, get(m, VISITS) + 1)
    put(m, BUSY, 1)
    put(m, COUNT, get(m, COUNT) - 1)
    close_entries(m, n, 0, 1)
    if p == 0 or count < ENTRIES // 2:
        settle_apart(m, refill_left(m, n))
    else:
        own = own_at(m, n)
        fold(m, own, value_at(m, n, 0), count - 1)
        if p == get(m, ROOT):
            copy(m, agg_at(m, n), own)
        else:
            combine(m, agg_at(m, n), own, agg_at(m, p))
    put(m, BUSY, 0)


def drop_before(m: Memory, t: int) -> None:
    """Take out the entries before a time, those of a leaf together: what is left of the leaf is
    combined once for all of them."""
    while oldest(m) < t:
        n = get(m, LEFT)
        p = parent(m, n)
        count = entries(m, n)
        k = 1
        while k < count and time_of(m, n, k) < t:
            k += 1
        put(m, VISITS, get(m, VISITS) + 1)
        put(m, BUSY, 1)
        put(m, COUNT, get(m, COUNT) - k)
        close_entries(m, n, 0, k)
        if p == 0 or count - k < ENTRIES // 2 - 1:
            settle_apart(m, refill_left(m, n))
        else:
            own = own_at(m, n)
            fold(m, own, value_at(m, n, 0), count - k)
            if p == get(m, ROOT):
                copy(m, agg_at(m, n), own)
            else:
                combine(m, agg_at(m, n), own, agg_at(m, p))
        put(m, BUSY, 0)


def refill_left(m: Memory, n: int) -> int:
    """`refill` for the left spine, where a node has no older sibling.  Siblings merge if they fit,
    since all merge with the oldest node of their level: `balance` says why that needs no room."""
    least = ENTRIES // 2 - 1
    while entries(m, n) < least and parent(m, n) != 0:
        p = parent(m, n)
        other = child(m, p, 1)
        if entries(m, n) + 1 + entries(m, other) < ENTRIES:
            n = merge(m, p, 0)
            if entries(m, p) == 0 and parent(m, p) == 0:
                return shrink_root(m)
        else:
            move_older(m, p, 0, (entries(m, other) - entries(m, n)) >> 1)
            fix_own(m, other)
        fix_own(m, n)
        n = p
    return n


def oldest(m: Memory) -> int:
    """The oldest time; after all times if there is none."""
    if get(m, COUNT) == 0:
        return UNBOUNDED
    return time_of(m, get(m, LEFT), 0)


def next_time(m: Memory, t: int) -> int:
    """The first time not before t; after all times if there is none."""
    n = seek(m, t)
    i = first_not_before(m, n, t)
    while i == entries(m, n):
        p = parent(m, n)
        if p == 0:
            return UNBOUNDED
        i = place_of(m, p, n)
        n = p
    return time_of(m, n, i)


def reach(m: Memory, lo: int, hi: int) -> int:
    """The slot with the aggregate of all times from lo to hi, both in.

    A range that goes across the root, as windows of a stream do, is put together from the
    spines: what lies above the two nodes where it ends is in one aggregate on each side.  So its
    cost goes by how far lo and hi are from the fingers, and not by the tree's height.
    """
    root = get(m, ROOT)
    if (
        has(m, root, LEAF)
        or lo > time_of(m, root, 0)
        or hi < time_of(m, root, entries(m, root) - 1)
    ):
        return between(m, lo, hi)
    answer = answer_slot(m)
    part = part_slot(m)
    n = get(m, LEFT)
    if lo <= time_of(m, n, 0):
        combine(m, answer, agg_at(m, n), own_at(m, root))
    else:
        n = up_left(m, lo)
        p = parent(m, n)
        if p == root:
            copy(m, answer, own_at(m, root))
        else:
            combine(m, answer, agg_at(m, p), own_at(m, root))
        while True:
            put(m, VISITS, get(m, VISITS) + 1)
            i = first_not_before(m, n, lo)
            count = entries(m, n)
            if has(m, n, LEAF):
                if i < count:
                    fold(m, part, value_at(m, n, i), count - i)
                    combine(m, answer, part, answer)
                break
            if i < count:
                copy(m, part, value_at(m, n, i))
                for k in range(i + 1, count):
                    combine(m, part, part, below_at(m, n, k))
                    combine(m, part, part, value_at(m, n, k))
                combine(m, part, part, below_at(m, n, count))
                combine(m, answer, part, answer)
            n = child(m, n, i)
    n = get(m, RIGHT)
    if hi >= time_of(m, n, entries(m, n) - 1):
        combine(m, answer, answer, agg_at(m, n))
        return answer
    n = up_right(m, hi)
    p = parent(m, n)
    if p != root:
        combine(m, answer, answer, agg_at(m, p))
    while True:
        put(m, VISITS, get(m, VISITS) + 1)
        i = first_after(m, n, hi)
        if has(m, n, LEAF):
            if i > 0:
                fold(m, part, value_at(m, n, 0), i)
                combine(m, answer, answer, part)
            return answer
        for k in range(i):
            combine(m, answer, answer, below_at(m, n, k))
            combine(m, answer, answer, value_at(m, n, k))
        n = child(m, n, i)


def lay_out(
    m: Memory,
    records: Any,
    memories: Any,
    trees: Any,
    count: int,
    low: int,
    bounds: Any,
    times: Any,
    partials: Partials,
) -> None:
    """Write the entries from a time on of some trees one after the other; those of tree i come
    before bounds[i + 1].  The trees stay as they are, each in the memory that its record says."""
    made = 0
    for i in range(count):
        tree = item(trees, i)
        n = item(records, RECORD * tree)
        m = item(memories, item(records, RECORD * tree + PART))
        k = 0
        if n != 0:
            take_out(m, records, tree)
            n = seek(m, low)
            k = first_not_before(m, n, low)
        while n != 0:
            # what is before entry k of the node, and below it, is written
            if has(m, n, LEAF):
                for j in range(k, entries(m, n)):
                    set_item(times, made, time_of(m, n, j))
                    store(m, value_at(m, n, j), partials, made)
                    made += 1
            elif k < entries(m, n):
                set_item(times, made, time_of(m, n, k))
                store(m, value_at(m, n, k), partials, made)
                made += 1
                k += 1
                while not has(m, n, LEAF):
                    set_word(m, n + 1, (word(m, n + 1) & BARE) | (k << HINT))
                    n = child(m, n, k)
                    k = 0
                continue
            p = parent(m, n)
            if p != 0:
                k = place_of(m, p, n)
            n = p
        set_item(bounds, i + 1, made)


FOREST = (
    *NODES,
    *BALANCE,
    between,
    take_out,
    put_away,
    enter,
    drop_oldest,
    refill_left,
    oldest,
    next_time,
    reach,
)
