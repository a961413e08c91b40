"""The kernel of a state in memory: insert a batch's slices into a forest, and answer windows.

`step` goes from key to key.  It inserts a key's slices, oldest first.  Before it inserts a slice,
it answers the windows that end by the slice's start, so that little in the tree is younger than the
window.  It evicts the slices that no later window needs.  Windows that were emitted before and hold
one of the batch's slices are answered after all slices are inserted.  `state.contract.Step` says
which windows a step answers.

`step` returns when memory or rows run short, and Python calls it again to go on: its call, an array
with the fields of `forest_fields`, holds all that it must remember.  The same holds if an answer
raises an error.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.forest import (
    FOREST,
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
from ..aggregators.nodes import TOP, new_slot, room
from ..kernels.program import Kernel
from ..kernels.slots import (
    Memory,
    Outputs,
    Partials,
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
    last_window,
    window_end,
    window_start,
)
from .contract import AGAIN, EARLY, NEW
from .forest_fields import (
    AGAIN_END,
    AGAIN_ROW,
    AT,
    BEGUN,
    CHANGES,
    COVERED,
    DUE,
    EXPIRES,
    FIELDS,
    FRESH,
    GONE,
    KEEP,
    MADE,
    NEXT,
    NOW,
    OPENED,
    PART,
    ROWS,
    SLICE,
    SLOT,
    VISIT,
    WANTED,
    WINDOW,
    WITH_AGAIN,
    WITH_EARLY,
)
from .range_kernel import ranges

__all__ = ["forest_kernel"]


def changed_before(
    m: Memory, c: Any, starts: Any, i: int, n: int, key: int, row: int, keys: Any, windows: Any
) -> int:
    """Count the windows that were emitted before, are still open, and hold one of the slices from i
    up to n.  Unless `row` is negative, write the key and these windows into the rows from `row` on.
    """
    w = item(c, OPENED)
    fresh = item(c, FRESH)
    found = 0
    for k in range(i, n):
        w = max(w, first_window(m, item(starts, k)))
        if w >= fresh:
            break
        end = min(last_window(m, item(starts, k)) + 1, fresh)
        while w < end:
            if row >= 0:
                set_item(keys, row + found, key)
                set_item(windows, row + found, w)
            found += 1
            w += 1
    return found


def begin(
    m: Memory,
    c: Any,
    records: Any,
    key: int,
    starts: Any,
    i: int,
    n: int,
    keys: Any,
    windows: Any,
    reasons: Any,
) -> int:
    """Load a key's tree into the header, and reserve rows for the emitted windows that its slices
    change.  Return 0 if there are not enough rows."""
    row = item(c, MADE)
    many = 0
    if item(c, WITH_AGAIN) and i < n:
        many = changed_before(m, c, starts, i, n, key, -1, keys, windows)
        if row + many > item(c, ROWS):
            set_item(c, WANTED, many)
            return 0
    at = RECORD * key
    known = item(records, at) != 0
    take_out(m, records, key)
    set_item(c, BEGUN, 1)
    set_item(c, SLICE, i)
    set_item(c, AGAIN_ROW, row)
    set_item(c, AGAIN_END, row + many)
    set_item(c, MADE, row + many)
    set_item(c, WINDOW, max(item(c, FRESH), item(records, at + NEXT)) if known else UNBOUNDED)
    if many:
        changed_before(m, c, starts, i, n, key, row, keys, windows)
        found = -UNBOUNDED
        for k in range(row, row + many):
            w = item(windows, k)
            if found < window_start(m, w):
                found = next_time(m, window_start(m, w))
            set_item(reasons, k, AGAIN if found < window_end(m, w) else NEW)
    return 1


def finish(m: Memory, c: Any, records: Any, key: int, gone: Any) -> None:
    """Note in a key's record when a step must visit the key again, and put its tree away."""
    at = RECORD * key
    w = item(c, WINDOW)
    found = oldest(m)
    expires = UNBOUNDED
    if found == UNBOUNDED:
        w = UNBOUNDED
        # keep the key as long as a window may follow that is compared with the last one
        if item(c, CHANGES):
            expires = item(records, at + COVERED) + 1
        if expires == UNBOUNDED or expires < item(c, KEEP):
            set_item(gone, item(c, GONE), key)
            set_item(c, GONE, item(c, GONE) + 1)
    else:
        expires = last_window(m, found)
        if found < window_start(m, w):
            found = next_time(m, window_start(m, w))
        w = max(w, first_window(m, found))
    set_item(records, at + NEXT, w)
    set_item(records, at + EXPIRES, expires)
    put_away(m, records, key)
    set_item(c, BEGUN, 0)
    if item(c, WITH_EARLY) == 2:
        set_item(c, WITH_EARLY, 1)


def skip_alike(m: Memory, w: int, found: int, starts: Any, i: int, n: int) -> int:
    """The last window that has the same slices as window w, whose oldest slice is `found`.  The
    window after it loses that slice, or holds one more."""
    more = next_time(m, window_end(m, w))
    if i < n:
        more = min(more, item(starts, i))
    return min(last_window(m, found), first_window(m, more) - 1)


def step(
    m: Memory,
    c: Any,
    records: Any,
    memories: Any,
    visits: Any,
    count: int,
    begins: Any,
    ends: Any,
    starts: Any,
    partials: Partials,
    outputs: Outputs,
    keys: Any,
    windows: Any,
    reasons: Any,
    covered: Any,
    gone: Any,
) -> int:
    """Visit `count` keys in order; the slices of key v are those from begins[v] up to ends[v].
    Return 1 when done, 0 if memory or rows ran short.  A key's record says in which of the
    `memories` its tree is.

    The function is one loop, which handles a key's next window, slice or row, because each function
    that is compiled into another adds to the compile time of both.
    """
    due = item(c, DUE)
    keep = item(c, KEEP)
    while item(c, VISIT) < count:
        v = item(c, VISIT)
        key = item(visits, v)
        n = item(ends, v)
        at = RECORD * key
        m = item(memories, item(records, at + PART))
        if item(c, BEGUN) == 0:
            i = item(begins, v)
            if (
                i == n
                and item(c, WITH_EARLY) == 0
                and item(records, at + NEXT) >= due
                and item(records, at + EXPIRES) >= keep
            ):
                set_item(c, VISIT, v + 1)
                continue
            if not begin(m, c, records, key, starts, i, n, keys, windows, reasons):
                return 0
        i = item(c, SLICE)
        w = item(c, WINDOW)
        ready = w < due
        start = end = UNBOUNDED
        if ready:
            start = window_start(m, w)
            end = window_end(m, w)
            ready = i == n or end <= item(starts, i)
        # slices before w are not needed any more, unless windows before it are emitted again
        evicts = ready and w <= keep and item(c, WITH_AGAIN) == 0
        edge = -UNBOUNDED
        if evicts:
            edge = start
        elif (
            not ready
            and i == n
            and item(c, AGAIN_ROW) == item(c, AGAIN_END)
            and item(c, WITH_EARLY) != 1
        ):
            edge = window_start(m, keep)
        set_item(c, NOW, w if ready else keep)
        while oldest(m) < edge:
            drop_oldest(m)
        row = -1  # the row for the answer of window w, if it is answered
        reason = NEW
        if ready:
            found = oldest(m) if evicts else next_time(m, start)
            if found >= end:
                if i < n:
                    found = min(found, item(starts, i))
                set_item(c, WINDOW, min(first_window(m, found), due))
                continue
            if item(c, MADE) == item(c, ROWS):
                return 0
            row = item(c, MADE)
            set_item(c, WINDOW, w + 1)
            if item(c, CHANGES):
                last = skip_alike(m, w, found, starts, i, n)
                set_item(covered, row, last)
                set_item(records, at + COVERED, last)
                set_item(c, WINDOW, last + 1)
        elif i < n:
            if not room(m):
                return 0
            first = max(item(c, FRESH), first_window(m, item(starts, i)))
            set_item(c, WINDOW, min(w, first))
            set_item(c, NOW, first)
            load(m, new_slot(m), partials, i)
            enter(m, item(starts, i))
            set_item(c, SLICE, i + 1)
            continue
        elif item(c, AGAIN_ROW) < item(c, AGAIN_END):
            row = item(c, AGAIN_ROW)
            set_item(c, AGAIN_ROW, row + 1)
            w = item(windows, row)
            reason = item(reasons, row)
        elif item(c, WITH_EARLY) == 1:
            if item(c, MADE) == item(c, ROWS):
                return 0
            set_item(c, WITH_EARLY, 2)
            w = due
            if next_time(m, window_start(m, w)) >= window_end(m, w):
                continue
            row = item(c, MADE)
            reason = EARLY
        if row < 0:
            finish(m, c, records, key, gone)
            set_item(c, VISIT, v + 1)
            continue
        if not ready:
            start = window_start(m, w)
            end = window_end(m, w)
        # note all of it before the answer: if that raises an error, the next call goes on after it
        set_item(c, MADE, max(item(c, MADE), row + 1))
        set_item(c, AT, -1)
        set_item(c, NOW, w)
        set_item(keys, row, key)
        set_item(windows, row, w)
        set_item(reasons, row, reason)
        slot = reach(m, start, end - 1)
        set_item(c, AT, row)
        set_item(c, SLOT, slot)
        lower(m, slot, outputs, row)
        set_item(c, AT, -1)
    return 1


def ask(m: Memory, c: Any, records: Any, key: int, outputs: Outputs, lo: int, hi: int) -> None:
    """The answer over a range of one key's times, both ends inclusive."""
    take_out(m, records, key)
    set_item(c, AT, -1)
    slot = reach(m, lo, hi)
    set_item(c, AT, 0)
    set_item(c, SLOT, slot)
    lower(m, slot, outputs, 0)


_FUNCTIONS = (
    *SLICES,
    *FOREST,
    cut,
    changed_before,
    begin,
    finish,
    skip_alike,
    step,
    ask,
    ranges,
)

_INLINE = ("close_entries",)


def forest_kernel(arity: int) -> Kernel:
    """The kernel for trees whose nodes have at least this arity."""
    return Kernel(
        f"forest{arity}",
        _FUNCTIONS,
        ("cut", "step", "ask", "ranges"),
        ("ask",),
        own=True,
        top=TOP,
        inline=_INLINE,
        constants=(("ENTRIES", 2 * arity), ("FINGERS", 1), *fields_from(FIELDS)),
    )
