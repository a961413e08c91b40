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
    AHEAD,
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    accumulate,
    advance,
    clear,
    combine,
    drop,
    get,
    lift,
    lower,
    put,
)
from ..operators.contract import same
from .in_order import kernel
from .in_pieces import InPieces, fill

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


def slide(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int) -> None:
    """For each row from `first` on: make room, insert, answer.  While the front of a full window
    lasts, rounds are alike, and the back's aggregate stays in registers.  So work van Herk's and
    Gil and Werman's filters; values are combined in the same order as in single rounds."""
    row = first
    while row < rows:
        while get(m, END) - get(m, START) > size:
            evict(m)
        start = get(m, START)
        if get(m, END) - start == size:
            if start == get(m, MID):
                flip(m)
            last = min(row + get(m, MID) - start - 1, rows)
            if last > row:
                advance(
                    m, RING, get(m, CAPACITY) - 1, BACK, ANSWER, columns, outputs, row, last - row
                )
                row = last
                continue
            evict(m)
        insert(m, columns, row)
        lower(m, query(m), outputs, row)
        row += 1


def catch_up(m: Memory) -> None:
    """Make the header and the back's aggregate those of the rounds that were done, after one that
    raised."""
    ahead = get(m, AHEAD)
    put(m, BUSY, 1)
    put(m, AHEAD, 0)
    put(m, START, get(m, START) + ((ahead + 1) >> 1))
    put(m, END, get(m, END) + (ahead >> 1))
    clear(m, BACK)
    for i in range(get(m, MID), get(m, END)):
        combine(m, BACK, BACK, RING + (i & (get(m, CAPACITY) - 1)))
    put(m, BUSY, 0)


class TwoStacksLite(InPieces):
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

    _kernel = kernel(
        "two_stacks_lite",
        insert,
        flip,
        evict,
        query,
        slide,
        catch_up,
        fill,
        entries=("catch_up", "fill"),
        scratch=2,
    )
    _positions = (START, MID, END)
    _same_order = True

    def _like_filled(self, size: int) -> tuple[int, int]:
        """Where the front of a full window is used up."""
        core = self._core
        start, end = core.get(START), core.get(END)
        return size - (end - start) + max(core.get(MID) - start, 0), size

    def _catch_up(self) -> None:
        if self._core.get(AHEAD):
            self._core.run.catch_up(self._core.m)

    def _check(self) -> None:
        super()._check()
        core, op = self._core, self.operator
        assert not core.get(AHEAD), "rounds were done that the header does not have"
        start, mid, end = core.get(START), core.get(MID), core.get(END)
        assert start <= mid <= end or (start == end and mid <= start), (start, mid, end)
        mask = core.get(CAPACITY) - 1
        back, join = op.identity, op.python_combine()
        for i in range(mid, end):
            back = join(back, core.peek(RING + (i & mask)))
        assert (op.equal or same)(core.peek(BACK), back), "the back's aggregate is wrong"
