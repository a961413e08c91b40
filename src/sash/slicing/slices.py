"""The kernel words for windows and slices, by number.

They are the formulas of `windows.contract.Cycle` and `slicing.edges.Periodic` over fields of a
kernel's header.  Where a cycle has one window (sliding, tumbling), a window's start and end are a
product and a sum, without a division.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import Columns, Memory, fold_rows, get, item
from ..windows.contract import Aligned
from .edges import Periodic, edges_of

__all__ = ["SLICES", "fields_from", "slices_held", "specify"]

#: Header fields.  Edges repeat each CYCLE from OFFSET on; REST is how far a second one lies behind
#: the first, 0 if there is none.  Cycles of windows repeat each LENGTH from ORIGIN on; each has
#: so many WINDOWS, and the last, the LONGEST, ends a STEP after the one before.
CYCLE, OFFSET, REST = 4, 5, 6
LENGTH, ORIGIN, WINDOWS, LONGEST, STEP = 7, 8, 9, 10, 11

_FIELDS = ("CYCLE", "OFFSET", "REST", "LENGTH", "ORIGIN", "WINDOWS", "LONGEST", "STEP")


def fields_from(first: int) -> tuple[tuple[str, int], ...]:
    """The header fields in other places, as constants of a kernel: one after the other from
    `first` on."""
    return tuple((name, first + i) for i, name in enumerate(_FIELDS))


def specify(header: Any, window: Aligned, first: int = CYCLE) -> None:
    """Write a window and its edges into a kernel's header, from the field `first` on."""
    edges, cycle = edges_of(window), window.cycle
    if not isinstance(edges, Periodic) or len(edges.cuts) > 2:
        raise ValueError(f"kernels cut at one or two edges a cycle, and {window!r} has others")
    slices = (edges.cycle, edges.offset, edges.cuts[-1])
    windows = (cycle.length, cycle.offset, cycle.windows, cycle.longest, cycle.step)
    for i, value in enumerate(slices + windows):
        header[first + i] = value


def slices_held(window: Aligned) -> int:
    """The most slices that there are between the start of a window and the end of the next."""
    longest = window.cycle.windows - 1
    until = window.end(longest) + window.cycle.length
    edges = edges_of(window)
    return int(edges.number(until) - edges.number(window.start(longest)))


def window_start(m: Memory, n: int) -> int:
    """When a window starts."""
    if get(m, WINDOWS) != 1:
        n = n // get(m, WINDOWS)
    return n * get(m, LENGTH) + get(m, ORIGIN)


def window_end(m: Memory, n: int) -> int:
    """When a window ends."""
    many = get(m, WINDOWS)
    end = get(m, ORIGIN) + get(m, LONGEST)
    if many == 1:
        return n * get(m, LENGTH) + end
    cycle = n // many
    return cycle * get(m, LENGTH) + end - (many - 1 - (n - cycle * many)) * get(m, STEP)


def first_window(m: Memory, t: int) -> int:
    """The first window that ends after a time."""
    many = get(m, WINDOWS)
    into = t - get(m, ORIGIN) - get(m, LONGEST)
    cycle = into // get(m, LENGTH) + 1
    if many == 1:
        return cycle
    within = (into - cycle * get(m, LENGTH)) // get(m, STEP) + many
    return cycle * many + max(within, 0)


def last_window(m: Memory, t: int) -> int:
    """The last window that starts by a time."""
    many = get(m, WINDOWS)
    return (t - get(m, ORIGIN)) // get(m, LENGTH) * many + many - 1


def slice_of(m: Memory, t: int) -> tuple[int, int]:
    """The slice that a time is in: the last edge up to it, and the first after it."""
    into = (t - get(m, OFFSET)) % get(m, CYCLE)
    start = t - into
    rest = get(m, REST)
    if into < rest:
        return start, start + rest
    return start + rest, start + get(m, CYCLE)


def gather(
    m: Memory, dst: int, new: int, columns: Columns, times: Any, i: int, n: int, end: int
) -> int:
    """slot[dst] = all rows from i on whose times are before the end; the first that is not, at most
    n."""
    j = i + 1
    while j < n and item(times, j) < end:
        j += 1
    fold_rows(m, dst, new, columns, i, j)
    return j


SLICES = (window_start, window_end, first_window, last_window, slice_of, gather)
