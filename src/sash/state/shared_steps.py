"""The beginning and the end of a step's work on one key of a shared state; see `shared_kernel`.

At the beginning, the kernel loads the key's tree into the header, and reserves a row for each
emitted window that the key's new slices change.  At the end, it notes when a window of the key is
due next, and puts the tree away.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.forest import (
    RECORD,
    UNBOUNDED,
    next_time,
    oldest,
    put_away,
    take_out,
)
from ..aggregators.nodes import RIGHT, entries, room, time_of
from ..kernels.slots import (
    Memory,
    get,
    item,
    put,
    set_item,
)
from ..slicing.slices import (
    CYCLE,
    LENGTH,
    LONGEST,
    OFFSET,
    ORIGIN,
    REST,
    STEP,
    WINDOWS,
    first_window,
    window_end,
    window_start,
)
from .contract import AGAIN, NEW
from .forest_fields import (
    AGAIN_END,
    AGAIN_ROW,
    BEGUN,
    EXPIRES,
    FRESH,
    GONE,
    MADE,
    NEXT,
    OPENED,
    ROWS,
    SLICE,
    WANTED,
    WITH_AGAIN,
)
from .forest_kernel import changed_before
from .shared_fields import (
    AGAIN_EDGE,
    AS_ONE,
    ASK,
    COMES,
    DUE_OF,
    EARLY_OF,
    EDGE,
    END_DUE,
    FRESH_OF,
    OPENED_OF,
    QUERIES,
    QUERY,
    REACH,
    SOONEST,
    START_DUE,
    STARTED,
    UNDUE,
)

__all__ = ["begin_all", "changed_of", "finish_all", "use", "use_reach"]


def use(m: Memory, asks: Any, q: int) -> None:
    """Load the fields of a query's windows into the header."""
    at = ASK * q
    put(m, CYCLE, item(asks, at))
    put(m, OFFSET, item(asks, at + 1))
    put(m, REST, item(asks, at + 2))
    put(m, LENGTH, item(asks, at + 3))
    put(m, ORIGIN, item(asks, at + 4))
    put(m, WINDOWS, item(asks, at + 5))
    put(m, LONGEST, item(asks, at + 6))
    put(m, STEP, item(asks, at + 7))


def use_reach(m: Memory, asks: Any, q: int) -> None:
    """Load the fields of a query's windows into the header, as long as the query's longest size."""
    use(m, asks, q)
    far = item(asks, ASK * q + REACH)
    if far:
        put(m, ORIGIN, get(m, ORIGIN) + get(m, LONGEST) - far)
        put(m, LONGEST, far)


def changed_of(
    m: Memory,
    c: Any,
    asks: Any,
    q: int,
    starts: Any,
    i: int,
    n: int,
    key: int,
    row: int,
    keys: Any,
    windows: Any,
) -> int:
    """Count the windows of a query that were emitted before, are still open, and are changed by one
    of the slices from i up to n.  Unless `row` is negative, write the key and these windows into
    the rows from `row` on."""
    set_item(c, OPENED, item(asks, ASK * q + OPENED_OF))
    set_item(c, FRESH, item(asks, ASK * q + FRESH_OF))
    if item(c, OPENED) >= item(c, FRESH):
        return 0
    use_reach(m, asks, q)
    return changed_before(m, c, starts, i, n, key, row, keys, windows)


def begin_all(
    m: Memory,
    c: Any,
    records: Any,
    asks: Any,
    key: int,
    starts: Any,
    i: int,
    n: int,
    keys: Any,
    owners: Any,
    windows: Any,
    reasons: Any,
) -> int:
    """Load a key's tree into the header, and reserve rows for the emitted windows that its slices
    change.  Return 0 if there are not enough rows, or if memory runs short."""
    row = item(c, MADE)
    many = 0
    again = item(c, WITH_AGAIN) and i < n and item(starts, i) < item(c, AGAIN_EDGE)
    if again:
        for q in range(item(c, QUERIES)):
            many += changed_of(m, c, asks, q, starts, i, n, key, -1, keys, windows)
        if row + many > item(c, ROWS):
            set_item(c, WANTED, many)
            return 0
    if not room(m):
        return 0
    take_out(m, records, key)
    set_item(c, BEGUN, 1)
    set_item(c, SLICE, i)
    set_item(c, AGAIN_ROW, row)
    set_item(c, AGAIN_END, row + many)
    set_item(c, MADE, row + many)
    set_item(c, SOONEST, item(c, UNDUE))
    set_item(c, COMES, UNBOUNDED)
    set_item(c, STARTED, 0)
    set_item(c, QUERY, 0)
    set_item(c, EARLY_OF, 0)
    if again:
        for q in range(item(c, QUERIES)):
            found = changed_of(m, c, asks, q, starts, i, n, key, row, keys, windows)
            use(m, asks, q)
            for k in range(row, row + found):
                w = item(windows, k)
                held = next_time(m, window_start(m, w)) < window_end(m, w)
                set_item(owners, k, q)
                set_item(reasons, k, AGAIN if held else NEW)
            row += found
    return 1


def finish_all(m: Memory, c: Any, records: Any, asks: Any, order: Any, key: int, gone: Any) -> None:
    """Note in a key's record when a step must visit the key again, and put its tree away.  `order`
    has the queries in order of the end of their first window that is not due."""
    found = oldest(m)
    soonest = UNBOUNDED
    if found == UNBOUNDED:
        set_item(gone, item(c, GONE), key)
        set_item(c, GONE, item(c, GONE) + 1)
    else:
        n = get(m, RIGHT)
        newest = time_of(m, n, entries(m, n) - 1)
        k = 0
        while k < item(c, QUERIES):
            q = item(order, k)
            start = item(asks, ASK * q + START_DUE)
            end = item(asks, ASK * q + END_DUE)
            k += 1
            if end >= soonest:
                k = item(c, QUERIES)
            elif newest >= start:
                if newest >= end:
                    use(m, asks, q)
                    first = found
                    if found < start:
                        first = next_time(m, start)
                    end = window_end(m, max(item(asks, ASK * q + DUE_OF), first_window(m, first)))
                soonest = min(soonest, end)
    if item(c, AS_ONE) and found < item(c, EDGE):
        found = next_time(m, item(c, EDGE))  # the slices before are one entry already
    set_item(records, RECORD * key + NEXT, soonest)
    set_item(records, RECORD * key + EXPIRES, found)
    put_away(m, records, key)
    set_item(c, BEGUN, 0)
