"""Events into slices: the words of kernels that cut a stream at the edges of its windows.

The edges of sliding windows are where one starts and where one ends.  Between two edges all
events are in the same windows, so they are combined once, into one partial, and windows are
put together from those.  Where `every` divides the size, ends are starts, and there is a slice for
each slide (panes: Li et al., SIGMOD Record 2005); else there are two (pairs: Krishnamurthy, Wu,
Franklin, SIGMOD 2006):

    sliding(5, 2)      0   1   2   3   4   5   6   7
                       [-------------------)
                               [-------------------)
                       |   |   |   |   |   |   |   |     ends at odd times, starts at even ones
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import Columns, Memory, fold_rows, get, item

__all__ = ["EVERY", "OFFSET", "REST", "SIZE", "SLICES", "SPECIFICATION"]

#: Header fields: the window that a stream is cut for.
SIZE, EVERY, OFFSET, REST = 4, 5, 6, 7
SPECIFICATION = ("size", "every", "offset", "rest")


def last_start(m: Memory, t: int) -> int:
    """The last window's start up to a time."""
    return t - (t - get(m, OFFSET)) % get(m, EVERY)


def first_start(m: Memory, t: int) -> int:
    """The start of the first window that holds a time."""
    last = last_start(m, t)
    every = get(m, EVERY)
    return last - (last + get(m, SIZE) - t - 1) // every * every


def slice_of(m: Memory, t: int) -> tuple[int, int]:
    """The slice that a time is in: the last edge up to it, and the first after it."""
    into = (t - get(m, OFFSET)) % get(m, EVERY)
    start = t - into
    rest = get(m, REST)
    if into < rest:
        return start, start + rest
    return start + rest, start + get(m, EVERY)


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


SLICES = (last_start, first_start, slice_of, gather)
