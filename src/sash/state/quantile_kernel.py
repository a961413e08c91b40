"""The values at places in the order of frames: ranges of rows, neither end of which goes back.

A Fenwick tree counts, for each rank among the rows, how many of those that a frame holds are at or
below it; the rank of the n-th value is found by halving.  Each row is added and taken out once, at
the logarithm of the rows.  It knows no operator, so it is compiled once.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item

__all__ = ["NTH"]


def count_rank(m: Memory, tree: Any, size: int, rank: int, by: int) -> None:
    """Count a rank once more, or once less; `size` is a power of two."""
    i = rank + 1
    while i <= size:
        set_item(tree, i, item(tree, i) + by)
        i += i & -i


def rank_of_nth(m: Memory, tree: Any, size: int, n: int) -> int:
    """The rank of the n-th value, from 0 on, of those that are counted."""
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
    """For each of `count` frames, replace the places below[f] and above[f], which are -1 for frames
    that hold nothing, by the ranks of the values there.  The rank of row r is ranks[r - base]; the
    tree is empty."""
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
