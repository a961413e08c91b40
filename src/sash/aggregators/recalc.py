"""Recalculation: the whole window folded anew at every query.

    order      first in, first out
    operator   any associative
    time       n - 1 combines a query
    space      n + 1 partials

The slow, plain one that the others are compared with.
"""

from __future__ import annotations

from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    clear,
    combine,
    copy,
    drop,
    get,
    lift,
    put,
)
from .in_order import InOrder, kernel

__all__ = ["Recalc"]

ANSWER, RING = 0, 1


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    lift(m, RING + (end & (get(m, CAPACITY) - 1)), columns, row)
    put(m, END, end + 1)


def evict(m: Memory) -> None:
    start = get(m, START)
    drop(m, RING + (start & (get(m, CAPACITY) - 1)))
    put(m, START, start + 1)


def query(m: Memory) -> int:
    mask = get(m, CAPACITY) - 1
    start = get(m, START)
    end = get(m, END)
    if start == end:
        clear(m, ANSWER)
        return ANSWER
    copy(m, ANSWER, RING + (start & mask))
    for i in range(start + 1, end):
        combine(m, ANSWER, ANSWER, RING + (i & mask))
    return ANSWER


class Recalc(InOrder):
    """In-order aggregation by recalculation: linear time a query, and nothing to get wrong.

    >>> from sash.operators import concat
    >>> window = Recalc(concat)
    >>> window.slide(["a", "b", "c"], 2)
    ['a', 'ab', 'bc']
    """

    _kernel = kernel("recalc", insert, evict, query, scratch=1)
