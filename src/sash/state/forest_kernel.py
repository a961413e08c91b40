"""The kernel of a stream: a batch's slices into a forest, and windows out of it.

`cut` makes a batch's events into slices, and touches nothing else.  `step` goes from key to key:
slices are inserted, oldest first, and before a slice is, the windows that end before it are
given, so that little that is younger is in the tree; then what no later window needs is
evicted.  In `final` mode a window is given when it closes.  In `live` mode it is given when stream
time passes its end, and those that were given before and hold one of the batch's slices are
given again, after all slices are in.

`step` comes back when memory or rows run short, and can be called again to go on: all it must
remember is in its call, an array with the fields below.  The same holds if an answer raises.
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
from ..aggregators.nodes import new_slot, part_slot, room
from ..kernels.program import Kernel
from ..kernels.slots import (
    Columns,
    Memory,
    Outputs,
    Partials,
    get,
    item,
    load,
    lower,
    set_item,
    store,
)
from ..slicing.slices import (
    EVERY,
    SIZE,
    SLICES,
    first_start,
    gather,
    last_start,
    slice_of,
)

__all__ = ["CALL", "FIELDS", "NEXT", "closing_kernel"]

#: Where a forest's header has the window, as its own fields have the usual places.
FIELDS = {"SIZE": 16, "EVERY": 17, "OFFSET": 18, "REST": 19}

#: Fields of a record: the next window to be given, if nothing comes; what is evicted next;
#: the last window that is known to hold something.
NEXT, EXPIRES, COVERED = 4, 5, 6

#: Fields of a call.  What is asked for: the first window that is open, the first that was not given
#: before, up to which end windows are given, and the first window that is open afterwards.
OPEN, FRESH, LIMIT, KEEP = 0, 1, 2, 3
LIVE, EARLY, CHANGES = 4, 5, 6
#: How far it got: the key, whether it is at hand, its next slice and window, the rows made and how
#: many there may be, the row that was last answered, those that are given again, keys that left.
VISIT, BEGUN, SLICE, WINDOW, MADE, ROWS = 7, 8, 9, 10, 11, 12
AT, AGAIN, AGAIN_END, GONE, WANTED = 13, 14, 15, 16, 17
CALL = 18


def cut(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    whole: int,
    starts: Any,
    partials: Partials,
    ends: Any,
) -> int:
    """The slices of `count` keys, with their starts, and where those of each key end.  Unless they
    are to be `whole`, events of different times stay apart."""
    made = 0
    set_item(ends, 0, 0)
    for g in range(count):
        i = item(bounds, g)
        n = item(bounds, g + 1)
        while i < n:
            start = item(times, i)
            end = start + 1
            if whole:
                start, end = slice_of(m, start)
            i = gather(m, new_slot(m), part_slot(m), columns, times, i, n, end)
            store(m, new_slot(m), partials, made)
            set_item(starts, made, start)
            made += 1
        set_item(ends, g + 1, made)
    return made


def given_again(
    m: Memory, c: Any, starts: Any, i: int, n: int, key: int, row: int, keys: Any, windows: Any
) -> int:
    """Of the windows given before and still open, those that hold one of the slices from i to n:
    how many they are; from `row` on they are noted, unless that is less than 0."""
    w = item(c, OPEN)
    fresh = item(c, FRESH)
    found = 0
    for k in range(i, n):
        w = max(w, first_start(m, item(starts, k)))
        if w >= fresh:
            break
        last = min(last_start(m, item(starts, k)) + 1, fresh)
        while w < last:
            if row >= 0:
                set_item(keys, row + found, key)
                set_item(windows, row + found, w)
            found += 1
            w += get(m, EVERY)
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
    again: Any,
) -> int:
    """Have a key's tree at hand, and reserve rows for the windows that its slices change; 0 if
    there are not enough."""
    row = item(c, MADE)
    many = 0
    if item(c, LIVE) and i < n:
        many = given_again(m, c, starts, i, n, key, -1, keys, windows)
        if row + many > item(c, ROWS):
            set_item(c, WANTED, many)
            return 0
    at = RECORD * key
    known = item(records, at) != 0
    take_out(m, records, key)
    set_item(c, BEGUN, 1)
    set_item(c, SLICE, i)
    set_item(c, AGAIN, row)
    set_item(c, AGAIN_END, row + many)
    set_item(c, MADE, row + many)
    set_item(c, WINDOW, max(item(c, FRESH), item(records, at + NEXT)) if known else UNBOUNDED)
    if many:
        given_again(m, c, starts, i, n, key, row, keys, windows)
        found = -UNBOUNDED
        for k in range(row, row + many):
            w = item(windows, k)
            if found < w:
                found = next_time(m, w)
            set_item(again, k, 1 if found < w + get(m, SIZE) else 0)
    return 1


def finish(m: Memory, c: Any, records: Any, key: int, gone: Any) -> None:
    """Note when to come back to a key, and put its tree away."""
    at = RECORD * key
    w = item(c, WINDOW)
    found = oldest(m)
    expires = found
    if found == UNBOUNDED:
        set_item(records, at + NEXT, UNBOUNDED)
        # a window that follows the last one is compared with it
        if item(c, CHANGES):
            expires = item(records, at + COVERED) + get(m, EVERY)
        if expires == UNBOUNDED or expires < item(c, KEEP):
            set_item(gone, item(c, GONE), key)
            set_item(c, GONE, item(c, GONE) + 1)
    else:
        if item(c, LIVE) and found < w:
            found = next_time(m, w)
        set_item(records, at + NEXT, max(w, first_start(m, found)))
    set_item(records, at + EXPIRES, expires)
    put_away(m, records, key)
    set_item(c, BEGUN, 0)
    if item(c, EARLY) == 2:
        set_item(c, EARLY, 1)


def skips(m: Memory, c: Any, records: Any, key: int, found: int) -> int:
    """Of a window that is given, where only changes are: whether the one before it was empty.  What
    comes next is the window that loses its oldest slice, or that holds one more."""
    every = get(m, EVERY)
    w = item(c, WINDOW)
    at = RECORD * key + COVERED
    mark = 1 if w - 2 * every > item(records, at) else 0
    more = first_start(m, next_time(m, w - every + get(m, SIZE)))
    w = max(w, min(last_start(m, found) + every, more))
    set_item(records, at, w - every)
    set_item(c, WINDOW, w)
    return mark


def step(
    m: Memory,
    c: Any,
    records: Any,
    visits: Any,
    count: int,
    bounds: Any,
    starts: Any,
    partials: Partials,
    outputs: Outputs,
    keys: Any,
    windows: Any,
    again: Any,
    gone: Any,
) -> int:
    """All keys to visit, in order; key v has the slices from bounds[v] to bounds[v + 1].  Returns
    whether it is done; if not, memory or rows ran short.

    It is one loop in which a key's next window, slice or row is dealt with, since each function
    that is compiled into others makes all of them longer to compile.
    """
    size = get(m, SIZE)
    every = get(m, EVERY)
    limit = item(c, LIMIT)
    live = item(c, LIVE)
    changes = item(c, CHANGES)
    while item(c, VISIT) < count:
        v = item(c, VISIT)
        key = item(visits, v)
        n = item(bounds, v + 1)
        at = RECORD * key
        if item(c, BEGUN) == 0:
            i = item(bounds, v)
            if (
                i == n
                and item(c, EARLY) == 0
                and item(records, at + NEXT) + size > limit
                and item(records, at + EXPIRES) >= item(c, KEEP)
            ):
                set_item(c, VISIT, v + 1)
                continue
            if not begin(m, c, records, key, starts, i, n, keys, windows, again):
                return 0
        i = item(c, SLICE)
        w = item(c, WINDOW)
        edge = item(c, KEEP)
        upto = limit
        if i < n:
            upto = min(limit, item(starts, i))
            edge = -UNBOUNDED
        due = w + size <= upto
        if due:
            edge = -UNBOUNDED if live else w
        elif i == n and (item(c, AGAIN) < item(c, AGAIN_END) or item(c, EARLY) == 1):
            edge = -UNBOUNDED
        while oldest(m) < edge:
            drop_oldest(m)
        row = -1  # where the window w is answered, if it is
        mark = 0
        if due:
            found = next_time(m, w) if live else oldest(m)
            if found >= w + size:
                set_item(c, WINDOW, first_start(m, min(found, upto)))
                continue
            if item(c, MADE) == item(c, ROWS):
                return 0
            row = item(c, MADE)
            set_item(c, WINDOW, w + every)
            if changes:
                mark = skips(m, c, records, key, found)
        elif i < n:
            if not room(m):
                return 0
            first = max(item(c, FRESH), first_start(m, item(starts, i)))
            set_item(c, WINDOW, min(w, first))
            load(m, new_slot(m), partials, i)
            enter(m, item(starts, i))
            set_item(c, SLICE, i + 1)
            continue
        elif item(c, AGAIN) < item(c, AGAIN_END):
            row = item(c, AGAIN)
            set_item(c, AGAIN, row + 1)
            w = item(windows, row)
            mark = item(again, row)
        elif item(c, EARLY) == 1:
            if item(c, MADE) == item(c, ROWS):
                return 0
            set_item(c, EARLY, 2)
            w = first_start(m, limit)
            if next_time(m, w) >= w + size:
                continue
            row = item(c, MADE)
            mark = 2
        if row < 0:
            finish(m, c, records, key, gone)
            set_item(c, VISIT, v + 1)
            continue
        # all is noted before the answer: should it raise, the rest goes on after it
        set_item(c, MADE, max(item(c, MADE), row + 1))
        set_item(c, AT, row)
        set_item(keys, row, key)
        set_item(windows, row, w)
        set_item(again, row, mark)
        lower(m, reach(m, w, w + size - 1), outputs, row)
    return 1


def ask(m: Memory, records: Any, key: int, outputs: Outputs, lo: int, hi: int) -> None:
    """The answer over a range of one key's times, both ends in."""
    take_out(m, records, key)
    lower(m, reach(m, lo, hi), outputs, 0)


_FUNCTIONS = (
    *SLICES,
    *FOREST,
    cut,
    given_again,
    begin,
    finish,
    skips,
    step,
    ask,
)

_INLINE = ("close_entries",)


def closing_kernel(arity: int) -> Kernel:
    """The kernel for trees of a least arity."""
    return Kernel(
        f"closing{arity}",
        _FUNCTIONS,
        ("cut", "step", "ask"),
        own=True,
        inline=_INLINE,
        constants=(("ENTRIES", 2 * arity), ("FINGERS", 1), *FIELDS.items()),
    )
