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

from typing import Any

from ..kernels.columns import Table
from ..kernels.core import BufferCore, ObjectCore, make_core
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
from ..kernels.threads import how_many, side_by_side
from ..operators.contract import same
from .in_order import InOrder, kernel
from .narrow import narrow

__all__ = ["TwoStacksLite"]

MID = 3  # header: where the front ends and the back starts
PIECE = 2**18  # the least rows that are worth a thread: some 1 ms of work
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


def fill(m: Memory, columns: Columns, first: int, rows: int) -> None:
    """Insert the rows from `first` on."""
    for row in range(first, rows):
        insert(m, columns, row)


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

    def _slide(self, columns: Any, outputs: Any, table: Table, size: int) -> None:
        """Let the kernel slide over columns, in pieces side by side: where the front of a full
        window is used up, the window is as if its values had come into an empty one.  Pieces but
        the first and the last leave only answers behind, so an operator of fewer words may do."""
        core, rows, threads = self._core, table.rows, how_many()
        compiled = core.program.mode == "compiled"
        small = narrow(core.operator, table, size) if compiled and rows >= 2 * PIECE else None
        pieces = self._pieces(rows, size, ends=small is not None)
        if len(pieces) < 2 or not compiled or (threads < 2 and small is None):
            core.run.slide(core.m, columns, outputs, 0, rows, size)
            return
        position, last = core.get(END), pieces[-1]

        def work(piece: tuple[int, int]) -> BufferCore | ObjectCore | None:
            first, end = piece
            if not first:
                core.run.slide(core.m, columns, outputs, 0, end, size)
                return None
            operator = core.operator if piece == last or small is None else small
            made = make_core(self._kernel, operator, core.get(CAPACITY))
            for field in (START, MID, END):
                made.header[field] = position + first - size
            made.run.fill(made.m, columns, first - size, first)
            made.run.slide(made.m, columns, outputs, first, end, size)
            return made if piece == last else None

        try:
            made = side_by_side(work, pieces, threads)[-1]
        except Exception:
            first = core.get(END) - position
            if first < pieces[0][1]:
                raise
            # a later piece raised: the row at which it did must be the last that is in
            core.run.slide(core.m, columns, outputs, first, rows, size)
            raise
        assert made is not None
        core.restore(made.dump())

    def _pieces(self, rows: int, size: int, *, ends: bool = False) -> list[tuple[int, int]]:
        """Ranges of rows that each begin where the front of a full window is used up; with `ends`,
        the first and the last are as short as can be."""
        core = self._core
        start, end = core.get(START), core.get(END)
        if end - start > size:
            return [(0, rows)]
        used_up = size - (end - start) + max(core.get(MID) - start, 0)
        length = size * -(-max(PIECE, 4 * size) // size)
        cuts = list(range(used_up + length, rows - length // 2, length))
        least = core.get(CAPACITY) + size  # rows that go through all slots of the ring
        if ends and rows - used_up > 4 * least:
            first = used_up + size
            last = first + (rows - first - least) // size * size
            cuts = [*range(first, last, 4 * length), last]
        return list(zip([0, *cuts], [*cuts, rows], strict=True))

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
