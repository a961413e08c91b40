"""Two stacks in one queue, one partial an element.

    order      first in, first out
    operator   any associative
    time       amortised at most 3 combines a round, worst case n
    space      n + 2 partials
    paper      Tangwongsan, Hirzel, Schneider: In-order sliding-window aggregation in
               worst-case constant time (VLDB Journal 2021)

The front part of the queue is the front stack: each of its slots holds the aggregate from that
element to the end of the front.  The back part holds plain lifted values, and one slot
their aggregate.  When the front is empty, a flip turns the back into a new front:

    START      MID            END
      |  front  |     back     |
      ↳ each aggregates up to MID
"""

from __future__ import annotations

from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    accumulate,
    clear,
    combine,
    drop,
    get,
    lift,
    put,
)
from ..operators.contract import same
from .in_order import InOrder, kernel

__all__ = ["TwoStacksLite"]

MID = 3  # header: where the front ends and the back starts
BACK, ANSWER, RING = 0, 1, 2  # slots: the back's aggregate, a query's answer, the elements


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    at = RING + (end & (get(m, CAPACITY) - 1))
    lift(m, at, columns, row)
    combine(m, BACK, BACK, at)
    put(m, END, end + 1)


def evict(m: Memory) -> None:
    start = get(m, START)
    if start == get(m, MID):
        flip(m)
    drop(m, RING + (start & (get(m, CAPACITY) - 1)))
    put(m, START, start + 1)


def flip(m: Memory) -> None:
    end = get(m, END)
    put(m, BUSY, 1)
    accumulate(m, RING, get(m, CAPACITY) - 1, get(m, START), end - 1)
    put(m, BUSY, 0)
    put(m, MID, end)
    clear(m, BACK)


def query(m: Memory) -> int:
    start = get(m, START)
    if start == get(m, MID):
        return BACK
    combine(m, ANSWER, RING + (start & (get(m, CAPACITY) - 1)), BACK)
    return ANSWER


class TwoStacksLite(InOrder):
    """In-order aggregation in amortised constant time, with one partial a value.

    >>> from sash.operators import max
    >>> window = TwoStacksLite(max)
    >>> for x in [3, 9, 4]:
    ...     window.insert(x)
    >>> window.query()
    9
    >>> window.evict(), window.evict(), window.query()
    (None, None, 4)
    """

    _kernel = kernel("two_stacks_lite", insert, flip, evict, query, scratch=2)

    def _check(self) -> None:
        super()._check()
        core, op = self._core, self.operator
        start, mid, end = core.get(START), core.get(MID), core.get(END)
        assert start <= mid <= end or (start == end and mid <= start), (start, mid, end)
        mask = core.get(CAPACITY) - 1
        back, join = op.identity, op.python_combine()
        for i in range(mid, end):
            back = join(back, core.peek(RING + (i & mask)))
        assert (op.equal or same)(core.peek(BACK), back), "the back's aggregate is wrong"
