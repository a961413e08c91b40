"""Nodes of a B-tree of times and partials: how they lie in memory, and what is done within one.

A node with arity a has a - 1 entries (a time and a partial) and, unless it is a leaf, a
children.  Besides, it has two aggregates:

    own   what the node itself answers for
    agg   on a spine: own, with what the spine nodes above it answer for

Off the spines, `own` is the aggregate of all that is below the node, and the parent has a copy of
it beside the child, so that a node is repaired from its own memory.  On the left spine it leaves
out the first child, on the right spine the last, in the root both.  So a change below a spine
node never changes the `own` of another spine node, and an update stays near the finger.

In words:   parent | flags and entries | times … | partials … | own | agg | children … | below …
"""

from __future__ import annotations

from ..kernels.slots import (
    CAPACITY,
    HEADER,
    WIDTH,
    Memory,
    alike,
    clear,
    copy,
    drop,
    fold,
    get,
    move_words,
    put,
    set_word,
    weave,
    word,
)

#: Header fields.
ROOT, LEFT, RIGHT, COUNT, TOP = 3, 4, 5, 6, 7  # the fingers LEFT and RIGHT are leaves
FREE_LEAVES, FREE_INNER, DROPPED = 8, 9, 10  # lists of nodes, linked by their parent fields
VISITS, SPLITS, MERGES, MOVES = 11, 12, 13, 14  # counts of work done
ROW = 15  # of a slide: the row it is at

#: Entries a node has room for: the largest arity is ENTRIES, and one more while it overflows.
#: A kernel is specialised to its arity, so that places within a node are constants.
ENTRIES = 16
#: Whether there are fingers and spines; a classic B-tree has neither.
FINGERS = 1

#: Flags of a node, beside the number of its entries.
LEAF, ON_LEFT, ON_RIGHT, DIRTY = 1 << 16, 1 << 17, 1 << 18, 1 << 19
FEW = (1 << 16) - 1
#: Beyond the flags: which child the last search went down to, so that coming back needs none.
HINT = 32
BARE = (1 << 32) - 1

#: How many slots stand before the first node: the spare one, and those named below.
SLOTS = 4


def new_slot(m: Memory) -> int:
    """A slot for the partial that is about to be inserted."""
    return HEADER + WIDTH


def answer_slot(m: Memory) -> int:
    """A slot for an answer."""
    return HEADER + 2 * WIDTH


def part_slot(m: Memory) -> int:
    """A slot for one node's part of an answer."""
    return HEADER + 3 * WIDTH


def entries(m: Memory, n: int) -> int:
    return word(m, n + 1) & FEW


def set_entries(m: Memory, n: int, count: int) -> None:
    set_word(m, n + 1, (word(m, n + 1) & ~FEW) | count)


def has(m: Memory, n: int, flag: int) -> bool:
    return word(m, n + 1) & flag != 0


def mark(m: Memory, n: int, flag: int) -> None:
    set_word(m, n + 1, word(m, n + 1) | flag)


def unmark(m: Memory, n: int, flag: int) -> None:
    set_word(m, n + 1, word(m, n + 1) & ~flag)


def parent(m: Memory, n: int) -> int:
    return word(m, n)


def set_parent(m: Memory, n: int, p: int) -> None:
    set_word(m, n, p)


def time_of(m: Memory, n: int, i: int) -> int:
    return word(m, n + 2 + i)


def set_time(m: Memory, n: int, i: int, t: int) -> None:
    set_word(m, n + 2 + i, t)


def value_at(m: Memory, n: int, i: int) -> int:
    """The slot of an entry's partial."""
    return n + 2 + ENTRIES + WIDTH * i


def own_at(m: Memory, n: int) -> int:
    """The slot of a node's own aggregate."""
    return n + 2 + ENTRIES + WIDTH * ENTRIES


def agg_at(m: Memory, n: int) -> int:
    """The slot of a spine node's aggregate with those above it."""
    return n + 2 + ENTRIES + WIDTH * (ENTRIES + 1)


def children_at(m: Memory, n: int, i: int) -> int:
    """Where a child is named."""
    return n + 2 + ENTRIES + WIDTH * (ENTRIES + 2) + i


def child(m: Memory, n: int, i: int) -> int:
    return word(m, children_at(m, n, i))


def set_child(m: Memory, n: int, i: int, c: int) -> None:
    """Make a node the child of another; what is below it is set when its own is computed."""
    set_word(m, children_at(m, n, i), c)
    set_parent(m, c, n)


def below_at(m: Memory, n: int, i: int) -> int:
    """The slot with the aggregate of a child and all below it, if it is off the spines."""
    return n + 3 + 2 * ENTRIES + WIDTH * (ENTRIES + 2 + i)


def leaf_words(m: Memory) -> int:
    return 2 + ENTRIES + WIDTH * (ENTRIES + 2)


def inner_words(m: Memory) -> int:
    return leaf_words(m) + (1 + WIDTH) * (ENTRIES + 1)


def room(m: Memory) -> bool:
    """Whether the most nodes that one operation can need would fit."""
    return get(m, CAPACITY) - get(m, TOP) > 32 * inner_words(m)


def place_of(m: Memory, p: int, n: int) -> int:
    """Which child of p is n: mostly the one that the last search went to."""
    i = word(m, p + 1) >> HINT
    if i > entries(m, p) or child(m, p, i) != n:
        i = 0
        while child(m, p, i) != n:
            i += 1
    return i


def set_hint(m: Memory, n: int, i: int) -> None:
    """Note which child a search goes to."""
    set_word(m, n + 1, (word(m, n + 1) & BARE) | (i << HINT))


def take_node(m: Memory, flags: int) -> int:
    """A node without entries: one that was freed, or a new one."""
    leaf = flags & LEAF != 0
    free = FREE_LEAVES if leaf else FREE_INNER
    while get(m, free) == 0 and get(m, DROPPED) != 0:
        reclaim(m)
    n = get(m, free)
    if n != 0:
        put(m, free, parent(m, n))
    else:
        n = get(m, TOP)
        put(m, TOP, n + (leaf_words(m) if leaf else inner_words(m)))
    set_word(m, n, 0)
    set_word(m, n + 1, flags)
    return n


def free_node(m: Memory, n: int) -> None:
    """The node is not needed any more."""
    free = FREE_LEAVES if has(m, n, LEAF) else FREE_INNER
    for i in range(entries(m, n)):
        drop(m, value_at(m, n, i))
    drop(m, own_at(m, n))
    drop(m, agg_at(m, n))
    if not has(m, n, LEAF):
        for i in range(entries(m, n) + 1):
            drop(m, below_at(m, n, i))
    set_parent(m, n, get(m, free))
    put(m, free, n)


def drop_tree(m: Memory, n: int) -> None:
    """All below the node and itself are not needed any more.  They are freed one by one when
    nodes are taken or the length is asked for, so that dropping takes constant time; COUNT
    goes on counting their entries until then."""
    set_parent(m, n, get(m, DROPPED))
    put(m, DROPPED, n)


def reclaim(m: Memory) -> None:
    """Free one node of the dropped trees."""
    n = get(m, DROPPED)
    put(m, DROPPED, parent(m, n))
    if not has(m, n, LEAF):
        for i in range(entries(m, n) + 1):
            drop_tree(m, child(m, n, i))
    put(m, COUNT, get(m, COUNT) - entries(m, n))
    free_node(m, n)


def reclaim_all(m: Memory) -> None:
    """Free all nodes of the dropped trees."""
    while get(m, DROPPED) != 0:
        reclaim(m)


def first_not_before(m: Memory, n: int, t: int) -> int:
    """The first entry whose time is not before t; searched from the young end."""
    i = entries(m, n)
    while i > 0 and time_of(m, n, i - 1) >= t:
        i -= 1
    return i


def first_after(m: Memory, n: int, t: int) -> int:
    """The first entry whose time is after t; searched from the young end."""
    i = entries(m, n)
    while i > 0 and time_of(m, n, i - 1) > t:
        i -= 1
    return i


def copy_entry(m: Memory, n: int, i: int, source: int, j: int) -> None:
    set_time(m, n, i, time_of(m, source, j))
    copy(m, value_at(m, n, i), value_at(m, source, j))


def copy_entries(m: Memory, n: int, i: int, source: int, j: int, k: int) -> None:
    """Copy k entries, to i on from j on."""
    move_words(m, n + 2 + i, source + 2 + j, k)
    move_words(m, value_at(m, n, i), value_at(m, source, j), WIDTH * k)


def copy_children(m: Memory, n: int, i: int, source: int, j: int, k: int) -> None:
    """Copy k children, to i on from j on."""
    move_words(m, children_at(m, n, i), children_at(m, source, j), k)
    move_words(m, below_at(m, n, i), below_at(m, source, j), WIDTH * k)
    if n != source:
        for x in range(i, i + k):
            set_parent(m, child(m, n, x), n)


def open_entry(m: Memory, n: int, i: int) -> None:
    """Make room for an entry at i, and in an inner node for a child after it."""
    more = entries(m, n) - i
    copy_entries(m, n, i + 1, n, i, more)
    if not has(m, n, LEAF):
        copy_children(m, n, i + 2, n, i + 1, more)
    set_entries(m, n, i + more + 1)


def close_entries(m: Memory, n: int, i: int, k: int) -> None:
    """Take out the k entries from i on, and in an inner node as many children after i."""
    count = entries(m, n)
    copy_entries(m, n, i, n, i + k, count - i - k)
    for j in range(count - k, count):
        drop(m, value_at(m, n, j))
    if not has(m, n, LEAF):
        copy_children(m, n, i + 1, n, i + 1 + k, count - i - k)
        for j in range(count - k + 1, count + 1):
            drop(m, below_at(m, n, j))
    set_entries(m, n, count - k)


def fix_own(m: Memory, n: int) -> int:
    """Compute a node's own aggregate from its entries and from what is below its children.  Returns
    which child of its parent it is, if that has a copy of the aggregate and it changed; else -1."""
    return fix_own_here(m, n)


def fix_own_here(m: Memory, n: int) -> int:
    """The same, compiled into its callers: for what every round goes through."""
    if not has(m, n, LEAF):
        return fix_inner(m, n, -1)
    put(m, VISITS, get(m, VISITS) + 1)
    if entries(m, n) > 0:
        fold(m, own_at(m, n), value_at(m, n, 0), entries(m, n))
    else:
        clear(m, own_at(m, n))
    return hand_up(m, n)


def fix_inner(m: Memory, n: int, at: int) -> int:
    """The same for an inner node of which the child at a place has changed."""
    put(m, VISITS, get(m, VISITS) + 1)
    flags = word(m, n + 1)
    count = flags & FEW
    own = own_at(m, n)
    outside = ON_LEFT | ON_RIGHT if FINGERS != 0 and parent(m, n) == 0 else flags
    if at < 0:
        at = (count + (outside & ON_LEFT != 0)) >> 1
    if count == 1 and outside & (ON_LEFT | ON_RIGHT) == ON_LEFT | ON_RIGHT:
        copy(m, own, value_at(m, n, 0))
    else:
        weave(
            m,
            own,
            below_at(m, n, 0),
            value_at(m, n, 0),
            count,
            outside & ON_LEFT == 0,
            outside & ON_RIGHT == 0,
            at,
        )
    return hand_up(m, n)


def hand_up(m: Memory, n: int) -> int:
    """Give a node's parent a copy of its own aggregate, unless it is on a spine or the parent has
    the very same."""
    p = parent(m, n)
    if p == 0 or has(m, n, ON_LEFT | ON_RIGHT):
        return -1
    i = place_of(m, p, n)
    if alike(m, below_at(m, p, i), own_at(m, n)):
        return -1
    copy(m, below_at(m, p, i), own_at(m, n))
    return i


def up_right(m: Memory, t: int) -> int:
    """The first node up from the right finger that must have all times from t on below it, for a
    time after all in the root."""
    root = get(m, ROOT)
    n = get(m, RIGHT)
    p = parent(m, n)
    while p != root and t <= time_of(m, p, entries(m, p) - 1):
        put(m, VISITS, get(m, VISITS) + 1)
        n = p
        p = parent(m, n)
    return n


def up_left(m: Memory, t: int) -> int:
    """The first node up from the left finger that must have all times up to t below it, for a
    time before all in the root."""
    root = get(m, ROOT)
    n = get(m, LEFT)
    p = parent(m, n)
    while p != root and t >= time_of(m, p, 0):
        put(m, VISITS, get(m, VISITS) + 1)
        n = p
        p = parent(m, n)
    return n


def seek(m: Memory, t: int) -> int:
    """The node that has the time t, or the leaf where it belongs: up from the nearer finger, and
    down from there."""
    n = get(m, ROOT)
    if FINGERS and not has(m, n, LEAF):
        if t > time_of(m, n, entries(m, n) - 1):
            n = up_right(m, t)
        elif t < time_of(m, n, 0):
            n = up_left(m, t)
    while True:
        put(m, VISITS, get(m, VISITS) + 1)
        if has(m, n, LEAF):
            return n
        i = first_not_before(m, n, t)
        if i < entries(m, n) and time_of(m, n, i) == t:
            return n
        set_hint(m, n, i)
        n = child(m, n, i)


NODES = (
    new_slot,
    answer_slot,
    part_slot,
    entries,
    set_entries,
    has,
    mark,
    unmark,
    parent,
    set_parent,
    time_of,
    set_time,
    value_at,
    own_at,
    agg_at,
    children_at,
    child,
    set_child,
    below_at,
    leaf_words,
    inner_words,
    room,
    place_of,
    set_hint,
    take_node,
    free_node,
    drop_tree,
    reclaim,
    reclaim_all,
    first_not_before,
    first_after,
    copy_entry,
    copy_entries,
    copy_children,
    open_entry,
    close_entries,
    fix_own,
    fix_own_here,
    fix_inner,
    hand_up,
    up_right,
    up_left,
    seek,
)
