"""DABA Lite: DABA with one partial an element.

    order      first in, first out
    operator   any associative
    time       worst case 3 combines an insert, 2 an evict, 1 a query; as the memory grows and
               shrinks, elements move eight an operation (`kernels.moving`)
    space      n + 3 partials, room for 4n
    paper      Tangwongsan, Hirzel, Schneider: In-order sliding-window aggregation in
               worst-case constant time (VLDB Journal 2021)

The queue of `daba`, but an element holds its value or its aggregate, not both:

    F         L         R         A         B         E
    |  to B   |  to R   | values  |  to B   | values  |

Two more slots hold what the values are needed for: the aggregate from R to B, fixed while
L and A move, and the aggregate of the back, from B on.
"""

from __future__ import annotations

from typing import Any

from ..kernels.slots import (
    BUSY,
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    clear,
    combine,
    combined,
    copy,
    drop,
    get,
    lift,
    lower,
    partial,
    put,
    set_partial,
)
from ..operators.contract import same
from .daba import changed, check_daba_sizes, like_filled, rounds_alike, slide
from .in_order import kernel
from .in_order import slide as slide_by_rounds
from .in_pieces import InPieces, fill

__all__ = ["DabaLite"]

L, R, A, B = 3, 4, 5, 6  # header: the inner positions; F is START and E is END
BACK, MIDDLE, ANSWER, RING = 0, 1, 2, 3  # slots: from B on, from R to B, an answer, the elements


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    at = RING + (end & (get(m, CAPACITY) - 1))
    lift(m, at, columns, row)
    combine(m, BACK, BACK, at)
    put(m, END, end + 1)
    put(m, BUSY, 1)
    step(m)
    put(m, BUSY, 0)


def evict(m: Memory) -> None:
    start = get(m, START)
    drop(m, RING + (start & (get(m, CAPACITY) - 1)))
    put(m, START, start + 1)
    put(m, BUSY, 1)
    step(m)
    put(m, BUSY, 0)


def step(m: Memory) -> None:
    """Restore the sizes after one insert or evict."""
    front = get(m, START)
    b = get(m, B)
    left = get(m, L)
    if front == b:  # at most one element, and it is in the back: call it the front
        end = get(m, END)
        put(m, L, end)
        put(m, R, end)
        put(m, A, end)
        put(m, B, end)
        clear(m, BACK)
        drop(m, MIDDLE)
        return
    right = get(m, R)
    a = get(m, A)
    if left == b:  # flip: the whole front reaches to B, and is now the part to R
        left = front
        a = get(m, END)
        b = a
        put(m, B, b)
        copy(m, MIDDLE, BACK)
        clear(m, BACK)
    if left == right:  # nothing left to turn: take in one more that reaches to B already
        put(m, L, left + 1)
        put(m, R, right + 1)
        put(m, A, a + 1)
        return
    mask = get(m, CAPACITY) - 1
    at = RING + (left & mask)
    combine(m, at, at, MIDDLE)
    if a != b:
        at = RING + ((a - 1) & mask)
        combine(m, at, at, RING + (a & mask))
    put(m, L, left + 1)
    put(m, A, a - 1)


def query(m: Memory) -> int:
    start = get(m, START)
    if start == get(m, B):
        return BACK
    combine(m, ANSWER, RING + (start & (get(m, CAPACITY) - 1)), BACK)
    return ANSWER


def rounds(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int) -> None:
    """Rounds over a full window whose steps are all alike: with L and A towards each other, or with
    L, R and A as one."""
    mask = get(m, CAPACITY) - 1
    start = get(m, START)
    end = get(m, END)
    left = get(m, L)
    a = get(m, A)
    turning = left != get(m, R)
    back = partial(m, BACK)
    middle = partial(m, MIDDLE)
    delta = partial(m, RING + (a & mask))
    for row in range(first, rows):
        drop(m, RING + (start & mask))
        start += 1
        put(m, START, start)
        if turning:
            a -= 1
            put(m, BUSY, 1)
            delta = turned(m, RING + (left & mask), middle, RING + (a & mask), delta)
            put(m, BUSY, 0)
        else:
            a += 1
            put(m, R, a)
        left += 1
        put(m, L, left)
        put(m, A, a)
        at = RING + (end & mask)
        lift(m, at, columns, row)
        back = combined(back, partial(m, at))
        set_partial(m, BACK, back)
        end += 1
        put(m, END, end)
        if turning:
            a -= 1
            put(m, BUSY, 1)
            delta = turned(m, RING + (left & mask), middle, RING + (a & mask), delta)
            put(m, BUSY, 0)
        else:
            a += 1
            put(m, R, a)
        left += 1
        put(m, L, left)
        put(m, A, a)
        set_partial(m, ANSWER, combined(partial(m, RING + (start & mask)), back))
        lower(m, ANSWER, outputs, row)


def turned(m: Memory, left: int, middle: Any, a: int, delta: Any) -> Any:
    """Make the slot at L reach to B, and the one at A, which is returned."""
    set_partial(m, left, combined(partial(m, left), middle))
    delta = combined(partial(m, a), delta)
    set_partial(m, a, delta)
    return delta


class DabaLite(InPieces):
    """In-order aggregation in worst-case constant time, with one partial a value.

    >>> from sash.operators import max
    >>> DabaLite(max).slide([4, 1, 2, 0, 3], 3)
    [4, 4, 4, 2, 3]
    """

    _kernel = kernel(
        "daba_lite",
        *(insert, evict, step, query),
        *(rounds_alike, turned, rounds, slide, fill),
        inline=("turned",),
        entries=("fill",),
        scratch=3,
        ring=changed,
        for_vectors=(slide_by_rounds,),
    )
    _positions = (START, L, R, A, B, END)

    def _like_filled(self, size: int) -> tuple[int, int]:
        return like_filled(self._core.get(L), self._core.get(B), self._length(), size)

    def _check(self) -> None:
        super()._check()
        core, op = self._core, self.operator
        equal, join = op.equal or same, op.python_combine()
        f, left, r, a, b, e = (core.get(x) for x in (START, L, R, A, B, END))
        check_daba_sizes(f, left, r, a, b, e)
        mask = core.get(CAPACITY) - 1
        back = op.identity
        for i in range(b, e):
            back = join(back, core.peek(RING + (i & mask)))
        assert equal(core.peek(BACK), back), "the back's aggregate is wrong"
        if left != r:
            middle = op.identity
            for i in range(r, a):
                middle = join(middle, core.peek(RING + (i & mask)))
            if a != b:
                middle = join(middle, core.peek(RING + (a & mask)))
            assert equal(core.peek(MIDDLE), middle), "the aggregate from R to B is wrong"
