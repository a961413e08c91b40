"""Recalculation: fold the whole window again at every query.

    order      first in, first out; also answers over any number of the youngest values
    operator   any associative
    time       n - 1 combines a query
    space      n + 1 partials

It is slow and plain; tests compare the other aggregators with it.
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
from .many_sizes import ManySizes, kernel_of_sizes

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


def youngest(m: Memory, size: int) -> int:
    mask = get(m, CAPACITY) - 1
    end = get(m, END)
    start = end - size
    if start == end:
        clear(m, ANSWER)
        return ANSWER
    copy(m, ANSWER, RING + (start & mask))
    for i in range(start + 1, end):
        combine(m, ANSWER, ANSWER, RING + (i & mask))
    return ANSWER


def query(m: Memory) -> int:
    return youngest(m, get(m, END) - get(m, START))


class Recalc(ManySizes):
    """In-order aggregation by recalculation: linear time a query, and nothing to get wrong.

    >>> from sash.operators import concat
    >>> window = Recalc(concat)
    >>> window.slide(["a", "b", "c"], 2)
    ['a', 'ab', 'bc']
    """

    _kernel = kernel_of_sizes("recalc", insert, evict, youngest, query, scratch=1)
