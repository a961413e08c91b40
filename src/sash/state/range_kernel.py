"""A forest's answers over ranges of numbered entries: times, or the settled events of a key.

`ranges` returns when memory runs short, and Python calls it again to go on, as in `forest_kernel`.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.forest import (
    RECORD,
    UNBOUNDED,
    drop_oldest,
    enter,
    next_time,
    oldest,
    put_away,
    reach,
    take_out,
)
from ..aggregators.nodes import new_slot, room
from ..kernels.slots import (
    Memory,
    Outputs,
    Partials,
    combine,
    copy,
    item,
    load,
    lower,
    set_item,
)
from .forest_fields import AT, BEGUN, EXPIRES, GONE, NEXT, NOW, PART, SLICE, SLOT, VISIT, WINDOW

__all__ = ["ranges"]


def ranges(
    m: Memory,
    c: Any,
    records: Any,
    memories: Any,
    visits: Any,
    count: int,
    begins: Any,
    ends: Any,
    numbers: Any,
    partials: Partials,
    ask_begins: Any,
    ask_ends: Any,
    lows: Any,
    highs: Any,
    holes: int,
    hole_lows: Any,
    hole_highs: Any,
    edges: Any,
    merges: int,
    each: int,
    outputs: Outputs,
    gone: Any,
) -> int:
    """Insert entries and answer ranges of them.  Key v has the numbers from begins[v] to ends[v] to
    insert, and the ranges from ask_begins[v] to ask_ends[v] to answer: from a low number to a high
    one, both in; its tree is in the memory that its record says.  With `holes`, a range is without
    the numbers from hole_lows up to hole_highs, both in.  So many ranges as `each` says have one
    high number, and the first of them holds the others.  Then what is before the key's edge is
    evicted; or, if it `merges`, becomes one entry, and the key's record has its lowest number ever
    instead of a next window.  Returns whether it is done; if not, memory ran short.

    Of key v, insert the entries from bounds[v] up to bounds[v + 1], and answer the ranges from
    ask_bounds[v] up to ask_bounds[v + 1].  A range goes from a low number to a high one, both
    inclusive; with `holes`, it leaves out the numbers from hole_lows to hole_highs, both inclusive.
    Every `each` neighbouring ranges have one high number, and the first of them holds the others.
    Then evict the entries before the key's edge or, with `merges`, combine them into one entry.
    The key's record has the lowest number that was ever inserted in place of a next window.

    An entry is inserted just before the first range that holds it is answered, and evicted as soon
    as no range holds it, so that ranges end near the fingers.
    """
    while item(c, VISIT) < count:
        v = item(c, VISIT)
        key = item(visits, v)
        n = item(ends, v)
        asked = item(ask_ends, v)
        edge = item(edges, v)
        m = item(memories, item(records, RECORD * key + PART))
        if item(c, BEGUN) == 0:
            set_item(c, SLICE, item(begins, v))
            set_item(c, WINDOW, item(ask_begins, v))
            idle = item(c, SLICE) == n and item(c, WINDOW) == asked
            if idle and item(records, RECORD * key + EXPIRES) >= edge:
                set_item(c, VISIT, v + 1)
                continue
            if not room(m):
                return 0
            take_out(m, records, key)
            set_item(c, BEGUN, 1)
        i = item(c, SLICE)
        j = item(c, WINDOW)
        high = UNBOUNDED
        low = edge
        if j < asked:
            high = item(highs, j)
            low = min(edge, item(lows, j - j % each))
        if i < n and item(numbers, i) <= high:
            if not room(m):
                return 0
            number = item(numbers, i)
            set_item(c, NOW, number)
            load(m, new_slot(m), partials, i)
            enter(m, number)
            at = RECORD * key + NEXT
            set_item(records, at, min(item(records, at), number))
            set_item(c, SLICE, i + 1)
            continue
        while merges == 0 and oldest(m) < low:
            drop_oldest(m)
        if j == asked:
            found = oldest(m)
            expires = found
            if merges and found < edge:
                expires = next_time(m, found + 1)
                if expires < edge:
                    if not room(m):
                        return 0
                    set_item(c, NOW, found)
                    copy(m, new_slot(m), reach(m, found, edge - 1))
                    while oldest(m) < edge:
                        drop_oldest(m)
                    enter(m, edge - 1)
                    expires = next_time(m, edge)
            if found == UNBOUNDED:
                set_item(gone, item(c, GONE), key)
                set_item(c, GONE, item(c, GONE) + 1)
            set_item(records, RECORD * key + EXPIRES, expires)
            put_away(m, records, key)
            set_item(c, BEGUN, 0)
            set_item(c, VISIT, v + 1)
            continue
        set_item(c, WINDOW, j + 1)
        set_item(c, AT, -1)
        set_item(c, NOW, item(highs, j))
        low = item(lows, j)
        high = item(highs, j)
        slot = 0
        if holes:
            copy(m, new_slot(m), reach(m, low, item(hole_lows, j) - 1))
            slot = reach(m, item(hole_highs, j) + 1, high)
            combine(m, slot, new_slot(m), slot)
        else:
            slot = reach(m, low, high)
        set_item(c, AT, j)
        set_item(c, SLOT, slot)
        lower(m, slot, outputs, j)
        set_item(c, AT, -1)
    return 1
