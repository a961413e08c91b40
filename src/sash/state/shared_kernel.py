"""The kernel of a state that several queries share: insert a slice into a forest once, and answer
the windows of all queries.

`step_all` goes from key to key.  It inserts a slice once, whatever the number of queries.  Before
it inserts a slice, it answers the windows that end by the slice's start, of each query with due
windows.  If a query's aggregates have other sizes, each of its windows that holds a slice is also
answered over those, back from the window's end.

One comparison says whether anything is due for a key, so keys and slices cost the same for one
query as for a hundred.  The kernel visits only queries with windows due in this step.

`step_all` returns when memory or rows run short, and Python calls it again to go on: its call holds
all that it must remember.  The same holds if an answer raises an error.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.forest import (
    FOREST,
    PART,
    RECORD,
    UNBOUNDED,
    drop_before,
    enter,
    lay_out,
    next_time,
    oldest,
    reach,
)
from ..aggregators.nodes import TOP, new_slot, room
from ..kernels.program import Kernel
from ..kernels.slots import (
    Memory,
    Outputs,
    Partials,
    copy,
    item,
    load,
    lower,
    set_item,
)
from ..slicing.cut import cut
from ..slicing.slices import (
    SLICES,
    fields_from,
    first_window,
    window_end,
    window_start,
)
from .contract import EARLY, NEW
from .forest_fields import (
    AGAIN_END,
    AGAIN_ROW,
    AT,
    BEGUN,
    EXPIRES,
    FIELDS,
    MADE,
    NEXT,
    NOW,
    ROWS,
    SLICE,
    SLOT,
    VISIT,
    WITH_EARLY,
)
from .forest_kernel import ask, changed_before, skip_alike
from .shared_fields import (
    ACTIVE,
    AS_ONE,
    ASK,
    CHANGES_OF,
    COMES,
    DUE_OF,
    EARLY_OF,
    EDGE,
    FRESH_OF,
    HIGH,
    LIMIT,
    MORE,
    MORE_END,
    MORE_FIRST,
    MORE_MANY,
    NEXT_OF,
    OWN_ROW,
    QUERIES,
    QUERY,
    SOONEST,
    STARTED,
)
from .shared_steps import begin_all, changed_of, finish_all, use, use_reach

__all__ = ["shared_kernel"]


def step_all(
    m: Memory,
    c: Any,
    records: Any,
    memories: Any,
    asks: Any,
    order: Any,
    sizes: Any,
    visits: Any,
    count: int,
    begins: Any,
    ends: Any,
    starts: Any,
    partials: Partials,
    outputs: Outputs,
    keys: Any,
    owners: Any,
    windows: Any,
    reasons: Any,
    covered: Any,
    gone: Any,
) -> int:
    """All keys to visit, in order; key v has the slices from begins[v] to ends[v].  Returns whether
    it is done; if not, memory or rows ran short.  A key's tree is in the memory that its record
    says.

    A row's owner is its query.  A row for another size has as owner the number of queries plus the
    number of the size, and in place of its window the number of the window's own row.  A row whose
    window turned out to hold no slice has the owner -1.
    """
    queries = item(c, QUERIES)
    while item(c, VISIT) < count:
        v = item(c, VISIT)
        key = item(visits, v)
        n = item(ends, v)
        m = item(memories, item(records, RECORD * key + PART))
        if item(c, BEGUN) == 0:
            i = item(begins, v)
            if (
                i == n
                and item(c, WITH_EARLY) == 0
                and item(records, RECORD * key + NEXT) > item(c, LIMIT)
                and item(records, RECORD * key + EXPIRES) >= item(c, EDGE)
            ):
                set_item(c, VISIT, v + 1)
                continue
            if not begin_all(
                m, c, records, asks, key, starts, i, n, keys, owners, windows, reasons
            ):
                return 0
        i = item(c, SLICE)
        limit = item(c, LIMIT)
        if i < n:
            limit = min(limit, item(starts, i))
        row = -1  # the row to answer next, if there is one
        owner = 0
        w = 0
        low = 0
        high = 0
        reason = NEW
        if item(c, MORE) < item(c, MORE_END):
            if item(c, MADE) == item(c, ROWS):
                return 0
            row = item(c, MADE)
            owner = queries + item(c, MORE)
            w = item(c, OWN_ROW)
            reason = item(reasons, w)
            high = item(c, HIGH)
            low = high - item(sizes, item(c, MORE))
            set_item(c, MORE, item(c, MORE) + 1)
        elif item(c, SOONEST) <= limit and item(c, ACTIVE) > 0:
            if item(c, STARTED) == 0:
                set_item(c, STARTED, 1)
                for q in range(item(c, ACTIVE)):
                    set_item(asks, ASK * q + NEXT_OF, item(asks, ASK * q + FRESH_OF))
            owner = item(c, QUERY)
            at = ASK * owner
            due = item(asks, at + DUE_OF)
            w = item(asks, at + NEXT_OF)
            use(m, asks, owner)
            high = window_end(m, w)
            if w >= due or high > limit:
                # go to the next query; after the last one, the end of the next window is known
                if w < due:
                    set_item(c, COMES, min(item(c, COMES), high))
                set_item(c, QUERY, owner + 1)
                if owner + 1 == item(c, ACTIVE):
                    set_item(c, SOONEST, item(c, COMES))
                    set_item(c, COMES, UNBOUNDED)
                    set_item(c, QUERY, 0)
                continue
            low = window_start(m, w)
            found = next_time(m, low)
            if found >= high:
                if i < n:
                    found = min(found, item(starts, i))
                set_item(asks, at + NEXT_OF, min(first_window(m, found), due))
                continue
            if item(c, MADE) == item(c, ROWS):
                return 0
            row = item(c, MADE)
            set_item(asks, at + NEXT_OF, w + 1)
            if item(asks, at + CHANGES_OF):
                last = min(skip_alike(m, w, found, starts, i, n), due - 1)
                set_item(covered, row, last)
                set_item(asks, at + NEXT_OF, last + 1)
        elif i < n:
            if not room(m):
                return 0
            set_item(c, NOW, item(starts, i))
            load(m, new_slot(m), partials, i)
            enter(m, item(starts, i))
            set_item(c, SLICE, i + 1)
            continue
        elif item(c, AGAIN_ROW) < item(c, AGAIN_END):
            row = item(c, AGAIN_ROW)
            set_item(c, AGAIN_ROW, row + 1)
            owner = item(owners, row)
            w = item(windows, row)
            reason = item(reasons, row)
            use(m, asks, owner)
            low = window_start(m, w)
            high = window_end(m, w)
            if next_time(m, low) >= high:
                set_item(owners, row, -1)
                continue
        elif item(c, WITH_EARLY) and item(c, EARLY_OF) < queries:
            if item(c, MADE) == item(c, ROWS):
                return 0
            owner = item(c, EARLY_OF)
            set_item(c, EARLY_OF, owner + 1)
            use(m, asks, owner)
            w = item(asks, ASK * owner + DUE_OF)
            low = window_start(m, w)
            high = window_end(m, w)
            if next_time(m, low) >= high:
                continue
            row = item(c, MADE)
            reason = EARLY
        if row < 0:
            edge = item(c, EDGE)
            set_item(c, NOW, edge)
            if item(c, AS_ONE):
                found = oldest(m)
                if found < edge and next_time(m, found + 1) < edge:
                    if not room(m):
                        return 0
                    copy(m, new_slot(m), reach(m, found, edge - 1))
                    drop_before(m, edge)
                    enter(m, edge - 1)
            else:
                drop_before(m, edge)
            finish_all(m, c, records, asks, order, key, gone)
            set_item(c, VISIT, v + 1)
            continue
        # note all of it before the answer: if that raises an error, the next call goes on after it
        set_item(c, MADE, max(item(c, MADE), row + 1))
        set_item(c, AT, -1)
        set_item(c, NOW, high - 1)
        set_item(keys, row, key)
        set_item(owners, row, owner)
        set_item(windows, row, w)
        set_item(reasons, row, reason)
        if owner < queries:
            set_item(c, OWN_ROW, row)
            set_item(c, HIGH, high)
            set_item(c, MORE, item(asks, ASK * owner + MORE_FIRST))
            set_item(c, MORE_END, item(c, MORE) + item(asks, ASK * owner + MORE_MANY))
        slot = reach(m, low, high - 1)
        set_item(c, AT, row)
        set_item(c, SLOT, slot)
        lower(m, slot, outputs, row)
        set_item(c, AT, -1)
    return 1


_FUNCTIONS = (
    *SLICES,
    *FOREST,
    cut,
    changed_before,
    skip_alike,
    use,
    use_reach,
    changed_of,
    begin_all,
    finish_all,
    drop_before,
    step_all,
    lay_out,
    ask,
)


def shared_kernel(arity: int) -> Kernel:
    """The kernel for trees whose nodes have at least this arity."""
    return Kernel(
        f"shared{arity}",
        _FUNCTIONS,
        ("cut", "step_all", "lay_out", "ask"),
        ("ask",),
        own=True,
        top=TOP,
        inline=("close_entries",),
        constants=(("ENTRIES", 2 * arity), ("FINGERS", 1), *fields_from(FIELDS)),
    )
