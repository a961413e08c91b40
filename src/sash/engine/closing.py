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
from ..aggregators.nodes import COUNT, new_slot, part_slot, room
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
    slice_end,
    slice_start,
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
    rows: Any,
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
                start = slice_start(m, start)
                end = slice_end(m, start)
            i = gather(m, new_slot(m), part_slot(m), columns, rows, times, i, n, end)
            store(m, new_slot(m), partials, made)
            set_item(starts, made, start)
            made += 1
        set_item(ends, g + 1, made)
    return made


def given_again(
    m: Memory, c: Any, starts: Any, i: int, n: int, key: int, row: int, keys: Any, windows: Any
) -> int:
    """Of the windows given before and still open, those that hold one of the slices from i to n: how
    many they are; from `row` on they are noted, unless that is less than 0."""
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
    """Have a key's tree at hand, and reserve rows for the windows that its slices change; 0 if there
    are not enough."""
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


def give(
    m: Memory,
    c: Any,
    w: int,
    key: int,
    mark: int,
    outputs: Outputs,
    keys: Any,
    windows: Any,
    again: Any,
) -> None:
    """A row with a window's answer.  It is counted first: should the answer raise, all goes on
    after it."""
    row = item(c, MADE)
    set_item(c, MADE, row + 1)
    set_item(c, AT, row)
    set_item(keys, row, key)
    set_item(windows, row, w)
    set_item(again, row, mark)
    lower(m, reach(m, w, w + get(m, SIZE) - 1), outputs, row)


def give_up_to(
    m: Memory,
    c: Any,
    records: Any,
    key: int,
    limit: int,
    outputs: Outputs,
    keys: Any,
    windows: Any,
    again: Any,
) -> int:
    """Give the windows that end by the limit and hold something; 0 if rows run short."""
    every = get(m, EVERY)
    size = get(m, SIZE)
    live = item(c, LIVE)
    w = item(c, WINDOW)
    while w + size <= limit:
        if live:
            found = next_time(m, w)
        else:
            found = oldest(m)
            while found < w:
                drop_oldest(m)
                found = oldest(m)
        if found >= w + size:
            w = first_start(m, min(found, limit))
            continue
        if item(c, MADE) == item(c, ROWS):
            set_item(c, WINDOW, w)
            return 0
        mark = 0
        here = w
        w += every
        if item(c, CHANGES):
            at = RECORD * key + COVERED
            mark = 1 if here - every > item(records, at) else 0
            # the next that loses its oldest slice, or that holds one more
            more = first_start(m, next_time(m, here + size))
            w = max(w, min(last_start(m, found) + every, more))
            set_item(records, at, w - every)
        set_item(c, WINDOW, w)
        give(m, c, here, key, mark, outputs, keys, windows, again)
    set_item(c, WINDOW, w)
    return 1


def visit(
    m: Memory,
    c: Any,
    records: Any,
    key: int,
    n: int,
    starts: Any,
    partials: Partials,
    outputs: Outputs,
    keys: Any,
    windows: Any,
    again: Any,
) -> int:
    """One key's slices and windows; 0 if memory or rows run short."""
    limit = item(c, LIMIT)
    at = RECORD * key
    while item(c, SLICE) < n:
        i = item(c, SLICE)
        start = item(starts, i)
        upto = min(start, limit)
        if item(c, WINDOW) + get(m, SIZE) <= upto and not give_up_to(
            m, c, records, key, upto, outputs, keys, windows, again
        ):
            return 0
        if not room(m):
            return 0
        first = max(item(c, FRESH), first_start(m, start))
        if first < item(c, WINDOW):
            set_item(c, WINDOW, first)
            if item(c, CHANGES):
                covered = min(item(records, at + COVERED), first - get(m, EVERY))
                set_item(records, at + COVERED, covered)
        load(m, new_slot(m), partials, i)
        enter(m, start)
        set_item(c, SLICE, i + 1)
    if not give_up_to(m, c, records, key, limit, outputs, keys, windows, again):
        return 0
    while item(c, AGAIN) < item(c, AGAIN_END):
        row = item(c, AGAIN)
        w = item(windows, row)
        set_item(c, AGAIN, row + 1)
        set_item(c, AT, row)
        lower(m, reach(m, w, w + get(m, SIZE) - 1), outputs, row)
    if item(c, EARLY) == 1:
        w = first_start(m, limit)
        if next_time(m, w) < w + get(m, SIZE):
            if item(c, MADE) == item(c, ROWS):
                return 0
            set_item(c, EARLY, 2)  # not again, should the answer raise
            give(m, c, w, key, 2, outputs, keys, windows, again)
    return 1


def finish(m: Memory, c: Any, records: Any, key: int, gone: Any) -> None:
    """Evict what no later window needs, note when to come back, and put the key's tree away."""
    at = RECORD * key
    while oldest(m) < item(c, KEEP):
        drop_oldest(m)
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
    whether it is done; if not, memory or rows ran short."""
    size = get(m, SIZE)
    while item(c, VISIT) < count:
        v = item(c, VISIT)
        key = item(visits, v)
        i = item(bounds, v)
        n = item(bounds, v + 1)
        at = RECORD * key
        if item(c, BEGUN) == 0:
            if (
                i == n
                and item(c, EARLY) == 0
                and item(records, at + NEXT) + size > item(c, LIMIT)
                and item(records, at + EXPIRES) >= item(c, KEEP)
            ):
                set_item(c, VISIT, v + 1)
                continue
            if not begin(m, c, records, key, starts, i, n, keys, windows, again):
                return 0
        if not visit(
            m, c, records, key, n, starts, partials, outputs, keys, windows, again
        ):
            return 0
        finish(m, c, records, key, gone)
        set_item(c, VISIT, v + 1)
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
    give,
    give_up_to,
    visit,
    finish,
    step,
    ask,
)

#: What every event goes through.
_INLINE = ("close_entries", "enter", "drop_oldest", "reach", "gather")


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
