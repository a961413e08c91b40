"""Kernel functions for windows and slices by number.

They compute the formulas of `windows.contract.Cycle`, `windows.months` and `slicing.edges.Periodic`
from fields of a kernel's header.  If a cycle has one window (sliding, tumbling), a window's start
and end take a product and a sum, and no division.

The times in kernels are readings of the window's clock (`windows.contract.Clock`).  The caller of a
kernel converts times to readings, and back.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import Columns, Memory, fold_rows, get, item
from ..windows.contract import Aligned
from ..windows.months import Months
from .edges import Periodic, cuts_of

__all__ = ["SLICES", "fields_from", "slices_held", "specify"]

#: Header fields.  Edges repeat each CYCLE from OFFSET on; REST is the distance from the first edge
#: of a cycle to the second, 0 if there is one edge.  Cycles of windows repeat each LENGTH from
#: ORIGIN on.  WINDOWS is the number of windows in a cycle; the last is LONGEST, and ends a STEP
#: after the window before it.  A negative WINDOWS means that each window lasts -WINDOWS months;
#: then every day is an edge.
CYCLE, OFFSET, REST = 4, 5, 6
LENGTH, ORIGIN, WINDOWS, LONGEST, STEP = 7, 8, 9, 10, 11

_FIELDS = ("CYCLE", "OFFSET", "REST", "LENGTH", "ORIGIN", "WINDOWS", "LONGEST", "STEP")


def fields_from(first: int) -> tuple[tuple[str, int], ...]:
    """The header fields, as constants of a kernel, in other places: one after the other from
    `first` on."""
    return tuple((name, first + i) for i, name in enumerate(_FIELDS))


def specify(
    header: Any, window: Aligned, first: int = CYCLE, edges: Periodic | None = None
) -> None:
    """Write a window and its edges, or other edges, into a kernel's header, from the field `first`
    on."""
    edges, cycle = edges or cuts_of(window), window.cycle
    if len(edges.cuts) > 2:
        raise ValueError(f"kernels cut at one or two edges a cycle, and {window!r} has others")
    slices = (edges.cycle, edges.offset, edges.cuts[-1])
    many = -cycle.months if isinstance(cycle, Months) else cycle.windows
    windows = (cycle.length, cycle.offset, many, cycle.longest, cycle.step)
    for i, value in enumerate(slices + windows):
        header[first + i] = value


def slices_held(window: Aligned) -> int:
    """The largest number of slices between the start of a window and the end of the next."""
    cycle, edges = window.cycle, cuts_of(window)
    start = cycle.start(cycle.windows - 1)
    return int(edges.number(start + cycle.longest + cycle.length) - edges.number(start))


def month_begin(n: int) -> int:
    """The first day of a month."""
    n += 23638  # the months since March of year 0
    y = n // 12
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * (n - 12 * y) + 2) // 5 - 719468


def month_at(d: int) -> int:
    """The month that a day is in."""
    n = d * 4800 // 146097
    if d < month_begin(n):
        n -= 1
    elif d >= month_begin(n + 1):
        n += 1
    return n


def window_start(m: Memory, n: int) -> int:
    """The start of a window."""
    if get(m, WINDOWS) > 1:
        n = n // get(m, WINDOWS)
    return n * get(m, LENGTH) + get(m, ORIGIN)


def window_end(m: Memory, n: int) -> int:
    """The end of a window."""
    many = get(m, WINDOWS)
    end = get(m, ORIGIN) + get(m, LONGEST)
    if many == 1:
        return n * get(m, LENGTH) + end
    if many < 0:
        d = (n * get(m, LENGTH) + get(m, ORIGIN)) // get(m, CYCLE)
        month = month_at(d)
        then = month_begin(month - many)
        last = month_begin(month - many + 1) - 1
        return min(then + d - month_begin(month), last) * get(m, CYCLE)
    cycle = n // many
    return cycle * get(m, LENGTH) + end - (many - 1 - (n - cycle * many)) * get(m, STEP)


def first_window(m: Memory, t: int) -> int:
    """The first window that ends after a time."""
    many = get(m, WINDOWS)
    if many < 0:
        d = t // get(m, CYCLE)
        month = month_at(d)
        after = month_begin(month + many + 1)
        then = month_begin(month + many) + d - month_begin(month) + 1
        if then > after or d + 1 == month_begin(month + 1):
            then = after
        return -((get(m, ORIGIN) - then * get(m, CYCLE)) // get(m, LENGTH))
    into = t - get(m, ORIGIN) - get(m, LONGEST)
    cycle = into // get(m, LENGTH) + 1
    if many == 1:
        return cycle
    within = (into - cycle * get(m, LENGTH)) // get(m, STEP) + many
    return cycle * many + max(within, 0)


def last_window(m: Memory, t: int) -> int:
    """The last window that starts at or before a time."""
    many = max(get(m, WINDOWS), 1)
    return (t - get(m, ORIGIN)) // get(m, LENGTH) * many + many - 1


def slice_of(m: Memory, t: int) -> tuple[int, int]:
    """The slice of a time: the last edge at or before the time, and the first edge after it."""
    into = (t - get(m, OFFSET)) % get(m, CYCLE)
    start = t - into
    rest = get(m, REST)
    if into < rest:
        return start, start + rest
    return start + rest, start + get(m, CYCLE)


def gather(
    m: Memory, dst: int, new: int, columns: Columns, times: Any, i: int, n: int, end: int
) -> int:
    """slot[dst] = the rows from i on whose times are before `end`.  Returns the first row that is
    not in, at most n."""
    j = i + 1
    while j < n and item(times, j) < end:
        j += 1
    fold_rows(m, dst, new, columns, i, j)
    return j


SLICES = (
    month_begin,
    month_at,
    window_start,
    window_end,
    first_window,
    last_window,
    slice_of,
    gather,
)
