"""The n-th smallest values of frames: ranges of rows, neither end of which goes back.

A Fenwick tree counts the rows of a frame by their ranks among all rows; a binary search in it finds
the rank of the n-th value.  Each row is added once and removed once, in time that grows with the
logarithm of the number of rows.  The kernel uses no operator, so it is compiled once.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item

__all__ = ["NTH"]


def count_rank(m: Memory, tree: Any, size: int, rank: int, by: int) -> None:
    """Add `by` to the count of a rank; `size` is a power of two."""
    i = rank + 1
    while i <= size:
        set_item(tree, i, item(tree, i) + by)
        i += i & -i


def rank_of_nth(m: Memory, tree: Any, size: int, n: int) -> int:
    """The rank of the n-th value in the tree; n counts from 0."""
    at = 0
    step = size
    while step > 0:
        below = item(tree, at + step) if at + step <= size else n + 1
        if below <= n:
            at += step
            n -= below
        step >>= 1
    return at


def ranks_at(
    m: Memory,
    first: Any,
    last: Any,
    count: int,
    base: int,
    ranks: Any,
    size: int,
    tree: Any,
    below: Any,
    above: Any,
) -> None:
    """For each of `count` frames, replace below[f] and above[f], which are places in the order of
    the frame's values, with the ranks of the values there.  For an empty frame, below[f] is -1.
    The rank of row r is ranks[r - base].  The tree must be empty."""
    start = base
    stop = base
    for f in range(count):
        low = item(first, f)
        while start < low:
            if start < stop:
                count_rank(m, tree, size, item(ranks, start - base), -1)
            start += 1
        stop = max(stop, start)
        high = item(last, f)
        while stop < high:
            count_rank(m, tree, size, item(ranks, stop - base), 1)
            stop += 1
        n = item(below, f)
        if n >= 0:
            more = item(above, f)
            rank = rank_of_nth(m, tree, size, n)
            set_item(below, f, rank)
            if more != n:
                rank = rank_of_nth(m, tree, size, more)
            set_item(above, f, rank)


NTH = Kernel("nth", (count_rank, rank_of_nth, ranks_at), ("ranks_at",))
