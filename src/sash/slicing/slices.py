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

from ..kernels.slots import Columns, Memory, combine, get, item, lift

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


def slice_start(m: Memory, t: int) -> int:
    """The last edge up to a time."""
    into = (t - get(m, OFFSET)) % get(m, EVERY)
    if into >= get(m, REST):
        return t - into + get(m, REST)
    return t - into


def slice_end(m: Memory, start: int) -> int:
    """The first edge after a slice's start."""
    into = (start - get(m, OFFSET)) % get(m, EVERY)
    if into < get(m, REST):
        return start - into + get(m, REST)
    return start - into + get(m, EVERY)


def gather(
    m: Memory, dst: int, new: int, columns: Columns, rows: Any, times: Any, i: int, n: int, end: int
) -> int:
    """slot[dst] = all rows from i on whose times are before the end; the first that is not, at most
    n.  `rows` says where in the columns a row is."""
    lift(m, dst, columns, item(rows, i))
    i += 1
    while i < n and item(times, i) < end:
        lift(m, new, columns, item(rows, i))
        combine(m, dst, dst, new)
        i += 1
    return i


SLICES = (last_start, first_start, slice_start, slice_end, gather)
