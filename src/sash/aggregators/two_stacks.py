"""Two stacks of values and aggregates, as in functional queues.

    order      first in, first out
    operator   any associative
    time       amortised at most 3 combines a round, worst case n
    space      2n + 2 partials
    paper      Tangwongsan, Hirzel, Schneider: In-order sliding-window aggregation in
               worst-case constant time (VLDB Journal 2021), who credit adamax; the example
               in CBiX's Figure 3

Each element has its value and an aggregate.  In the back stack the aggregate reaches from the
bottom of the stack to the element, in the front stack from the element to the bottom; both stacks
lie in one queue, bottoms together.  When the front is empty, a flip moves the border:

    START      MID            END
      |  front  |     back     |
       ↳ to MID   from MID ↲
"""

from __future__ import annotations

from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    combine,
    copy,
    drop,
    get,
    lift,
    put,
)
from ..operators.contract import same
from .guard import alone
from .in_order import InOrder, kernel

__all__ = ["TwoStacks"]

MID = 3  # header: the bottom of both stacks
EMPTY, ANSWER, RING = 0, 1, 2  # slots; an element has its value at 2i and its aggregate after it


def value(m: Memory, position: int) -> int:
    return RING + 2 * (position & (get(m, CAPACITY) - 1))


def aggregate(m: Memory, position: int) -> int:
    return value(m, position) + 1


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    at = value(m, end)
    lift(m, at, columns, row)
    if end == get(m, MID):
        copy(m, at + 1, at)
    else:
        combine(m, at + 1, aggregate(m, end - 1), at)
    put(m, END, end + 1)


def flip(m: Memory) -> None:
    start = get(m, START)
    i = get(m, END) - 1
    put(m, BUSY, 1)
    copy(m, aggregate(m, i), value(m, i))
    while i > start:
        combine(m, aggregate(m, i - 1), value(m, i - 1), aggregate(m, i))
        i -= 1
    put(m, BUSY, 0)
    put(m, MID, get(m, END))


def evict(m: Memory) -> None:
    start = get(m, START)
    if start == get(m, MID):
        flip(m)
    drop(m, value(m, start))
    drop(m, aggregate(m, start))
    put(m, START, start + 1)


def query(m: Memory) -> int:
    start = get(m, START)
    mid = get(m, MID)
    end = get(m, END)
    if start == end:
        return EMPTY
    if start == mid:
        return aggregate(m, end - 1)
    if mid == end:
        return aggregate(m, start)
    combine(m, ANSWER, aggregate(m, start), aggregate(m, end - 1))
    return ANSWER


class TwoStacks(InOrder):
    """In-order aggregation in amortised constant time, with two partials a value.

    >>> from sash.operators import sum
    >>> TwoStacks(sum).slide([1, 2, 3, 4], 3)
    [1, 3, 6, 9]
    """

    _kernel = kernel("two_stacks", value, aggregate, insert, flip, evict, query, scratch=2, each=2)

    @alone
    def stacks(self) -> tuple[list[tuple[object, object]], list[tuple[object, object]]]:
        """The front and the back stack, each from bottom to top, as (value, aggregate) partials."""
        core = self._core
        mask, mid = core.get(CAPACITY) - 1, core.get(MID)

        def element(i: int) -> tuple[object, object]:
            at = RING + 2 * (i & mask)
            return core.peek(at), core.peek(at + 1)

        front = [element(i) for i in range(mid - 1, core.get(START) - 1, -1)]
        return front, [element(i) for i in range(mid, core.get(END))]

    def _check(self) -> None:
        super()._check()
        op = self.operator
        equal, join = op.equal or same, op.python_combine()
        assert self._core.get(START) <= self._core.get(MID) <= self._core.get(END)
        front, back = self.stacks()
        running = op.identity
        for one, total in front:
            running = join(one, running)
            assert equal(total, running), "an aggregate of the front is wrong"
        running = op.identity
        for one, total in back:
            running = join(running, one)
            assert equal(total, running), "an aggregate of the back is wrong"
