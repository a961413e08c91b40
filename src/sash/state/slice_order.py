"""Puts the rows of a large batch in order of key and slice, in one pass of a kernel.

Each slice of each key has a place, key by key and slice by slice.  The kernel counts the rows of
each place, and then gives each row the next number of its place; rows of one place keep their
order:

    key, slice    b1  a0  b0  a0  a2           the rows of a batch
    places        a0  a1  a2  b0  b1  b2
    rows          2   0   1   1   1   0        so those of the places begin at 0 2 2 3 4 5
    order         1   3   4   2   0            the row numbers in order

numpy takes a dozen calls for the same, and takes the interpreter's lock again after each: two
streams in two threads then wait for each other most of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..kernels.core import shared_core
from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item
from ..slicing.edges import Periodic

__all__ = ["SliceOrder"]

#: From so many rows on, the kernel is worth the time to compile it in a new process.
MANY = 1 << 12
#: The most places for each row: each place costs as much as a row.
SPARSE = 4


def order_rows(
    m: Memory,
    codes: Any,
    readings: Any,
    rows: int,
    low: int,
    high: int,
    cycle: int,
    offset: int,
    rest: int,
    numbers: Any,
    ends: Any,
    most: int,
    order: Any,
    shown: Any,
    bounds: Any,
) -> int:
    """Put the rows of the keys from `low` up to `high` in order of key and slice: their numbers
    into `order`, their readings into `shown`, and the bounds of the keys' rows into `bounds`.
    Return 0, and do nothing, if they have more than `most` places, for which there is room in
    `ends`; otherwise 1.

    Edges repeat each `cycle` from `offset` on; `rest` is the distance from the first edge of a
    cycle to the second, 0 if there is one edge.  `numbers` has room for the slice of each row, of
    which only those of these keys are written.  These keys have at least one row.
    """
    begin = 0
    end = 0
    number = 0
    least = 2**62
    greatest = -(2**62)
    for i in range(rows):
        if low <= item(codes, i) < high:
            t = item(readings, i)
            if t < begin or t >= end:  # else the slice is that of the row before
                number = (t - offset) // cycle
                begin = offset + number * cycle
                end = begin + cycle
                if rest > 0:
                    number = 2 * number
                    if t < begin + rest:
                        end = begin + rest
                    else:
                        begin = begin + rest
                        number = number + 1
                least = min(least, number)
                greatest = max(greatest, number)
            set_item(numbers, i, number)
    span = greatest - least + 1
    if span > most // (high - low):
        return 0
    for at in range((high - low) * span):
        set_item(ends, at, 0)
    for i in range(rows):
        key = item(codes, i)
        if low <= key < high:
            at = (key - low) * span + item(numbers, i) - least
            set_item(ends, at, item(ends, at) + 1)
    done = 0
    for g in range(high - low):
        set_item(bounds, g, done)
        for at in range(g * span, (g + 1) * span):
            many = item(ends, at)
            set_item(ends, at, done)
            done += many
    set_item(bounds, high - low, done)
    for i in range(rows):
        key = item(codes, i)
        if low <= key < high:
            at = (key - low) * span + item(numbers, i) - least
            n = item(ends, at)
            set_item(ends, at, n + 1)
            set_item(order, n, i)
            set_item(shown, n, item(readings, i))
    return 1


#: The kernel; it does not depend on an operator.
ORDERED = Kernel("ordered", (order_rows,), ("order_rows",))


@dataclass(frozen=True)
class SliceOrder:
    """Rows of a batch: the number of each row's key, and the reading of its time."""

    codes: Array
    readings: Array
    edges: Periodic
    numbers: Array  # room for the kernel

    @classmethod
    def of(cls, codes: Array, readings: Array, edges: Periodic) -> SliceOrder | None:
        """The order of rows; None if there are few rows, or if the kernel does not know such
        edges."""
        if len(codes) < MANY or len(edges.cuts) > 2:
            return None
        return cls(codes, readings, edges, np.empty(len(codes), dtype=np.int64))

    def rows(self, low: int, high: int, many: int) -> tuple[Array, Array, Array] | None:
        """The numbers of the rows of the keys from `low` up to `high`, in order of key and slice;
        their readings in that order; and the bounds of the keys' rows, one more than there are
        keys.  None if there are too many slices for that.  There are `many` such rows.  Threads can
        ask for different keys at the same time."""
        core, edges, most = shared_core(ORDERED), self.edges, SPARSE * many
        ends, order, shown = (np.empty(n, dtype=np.int64) for n in (most, many, many))
        bounds = np.empty(high - low + 1, dtype=np.int64)
        asked = low, high, edges.cycle, edges.offset, edges.cuts[-1]
        with core.call() as call:
            given = call.integers(self.codes), call.integers(self.readings), len(self.codes)
            room = call.integers(self.numbers), call.integers(ends), most
            into = (call.integers(a) for a in (order, shown, bounds))
            if not core.run.order_rows(core.m, *given, *asked, *room, *into):
                return None
        return order, shown, bounds
