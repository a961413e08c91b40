"""DABA, the de-amortized banker's aggregator: two stacks whose flip is done bit by bit.

    order      first in, first out
    operator   any associative
    time       worst case 4 combines an insert, 3 an evict, 1 a query; as the memory grows and
               shrinks, elements move eight an operation (`kernels.moving`)
    space      2n + 2 partials, room for 8n
    paper      Tangwongsan, Hirzel, Schneider: Low-latency sliding-window aggregation in
               worst-case constant time (DEBS 2017); VLDB Journal 2021

A queue of (value, aggregate), split by six positions F ≤ L ≤ R ≤ A ≤ B ≤ E:

    F         L         R         A         B         E
    |  to B   |  to R   | from R  |  to B   | from B  |

where "to B" says that an element's aggregate reaches from it to just before B, and "from R"
from R to the element.  The answer is F's aggregate with the last one's.  Each operation
moves L and A one step towards each other, so that by the time the back has grown as long as
the front, all of the front aggregates to B, and turning back into front costs nothing.  Sizes:
|LR| = |RA|, and |FB| - |BE| = |LR| + |RA| + |AB| + 1 unless the window is empty.
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
from .in_order import kernel
from .in_order import slide as slide_by_rounds
from .in_pieces import InPieces, fill
from .two_stacks import aggregate, value

__all__ = ["Daba"]

L, R, A, B = 3, 4, 5, 6  # header: the inner positions; F is START and E is END
EMPTY, ANSWER, RING = 0, 1, 2


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    at = value(m, end)
    lift(m, at, columns, row)
    if end == get(m, B):
        copy(m, at + 1, at)
    else:
        combine(m, at + 1, aggregate(m, end - 1), at)
    put(m, END, end + 1)
    put(m, BUSY, 1)
    step(m)
    put(m, BUSY, 0)


def evict(m: Memory) -> None:
    start = get(m, START)
    drop(m, value(m, start))
    drop(m, aggregate(m, start))
    put(m, START, start + 1)
    put(m, BUSY, 1)
    step(m)
    put(m, BUSY, 0)


def step(m: Memory) -> None:
    """Restore the sizes after one insert or evict."""
    front = get(m, START)
    end = get(m, END)
    b = get(m, B)
    if front == b:  # at most one element, and it is in the back: call it the front
        put(m, L, end)
        put(m, R, end)
        put(m, A, end)
        put(m, B, end)
        return
    if get(m, L) == b:  # flip: the whole front reaches to B, and is now the part to R
        put(m, L, front)
        put(m, A, end)
        put(m, B, end)
        b = end
    left = get(m, L)
    right = get(m, R)
    a = get(m, A)
    if left == right:  # nothing left to turn: take in one more that reaches to B already
        put(m, L, left + 1)
        put(m, R, right + 1)
        put(m, A, a + 1)
        return
    at = aggregate(m, left)
    combine(m, at, at, aggregate(m, a - 1))
    if a != b:
        combine(m, at, at, aggregate(m, a))
        combine(m, aggregate(m, a - 1), value(m, a - 1), aggregate(m, a))
    else:
        copy(m, aggregate(m, a - 1), value(m, a - 1))
    put(m, L, left + 1)
    put(m, A, a - 1)


def query(m: Memory) -> int:
    start = get(m, START)
    end = get(m, END)
    b = get(m, B)
    if start == end:
        return EMPTY
    if b == end:
        return aggregate(m, start)
    combine(m, ANSWER, aggregate(m, start), aggregate(m, end - 1))
    return ANSWER


def slide(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int) -> None:
    """For each row from `first` on: make room, insert, answer.  Of a full window, many rounds in a
    row are alike, and go with positions and aggregates in registers."""
    row = first
    while row < rows:
        last = row
        if get(m, END) - get(m, START) == size:
            last = min(row + rounds_alike(m), rows)
        if last > row:
            rounds(m, columns, outputs, row, last)
            row = last
        else:
            while get(m, END) - get(m, START) >= size:
                evict(m)
            insert(m, columns, row)
            lower(m, query(m), outputs, row)
            row += 1


def rounds_alike(m: Memory) -> int:
    """How many rounds from now on have two steps of the same kind, and no flip."""
    left = get(m, L)
    right = get(m, R)
    b = get(m, B)
    if b == get(m, END):
        return 0
    if left == right:
        return (b - left) >> 1
    if get(m, A) == b:
        return 0
    return (right - left) >> 1


def rounds(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int) -> None:
    """Rounds over a full window whose steps are all alike: with L and A towards each other, or with
    L, R and A as one."""
    mask = get(m, CAPACITY) - 1
    start = get(m, START)
    end = get(m, END)
    left = get(m, L)
    a = get(m, A)
    turning = left != get(m, R)
    back = partial(m, aggregate(m, end - 1))
    delta = partial(m, aggregate(m, a))
    for row in range(first, rows):
        at = RING + 2 * (start & mask)
        drop(m, at)
        drop(m, at + 1)
        start += 1
        put(m, START, start)
        if turning:
            a -= 1
            put(m, BUSY, 1)
            delta = turned(m, RING + 2 * (left & mask), RING + 2 * (a & mask), delta)
            put(m, BUSY, 0)
        else:
            a += 1
            put(m, R, a)
        left += 1
        put(m, L, left)
        put(m, A, a)
        at = RING + 2 * (end & mask)
        lift(m, at, columns, row)
        back = combined(back, partial(m, at))
        set_partial(m, at + 1, back)
        end += 1
        put(m, END, end)
        if turning:
            a -= 1
            put(m, BUSY, 1)
            delta = turned(m, RING + 2 * (left & mask), RING + 2 * (a & mask), delta)
            put(m, BUSY, 0)
        else:
            a += 1
            put(m, R, a)
        left += 1
        put(m, L, left)
        put(m, A, a)
        set_partial(m, ANSWER, combined(partial(m, RING + 2 * (start & mask) + 1), back))
        lower(m, ANSWER, outputs, row)


def turned(m: Memory, left: int, a: int, delta: Any) -> Any:
    """Make the aggregate at L reach to B, and the one at A, which is returned."""
    left += 1
    set_partial(m, left, combined(combined(partial(m, left), partial(m, a + 1)), delta))
    delta = combined(partial(m, a), delta)
    set_partial(m, a + 1, delta)
    return delta


def changed(before: list[int], after: list[int], operations: int) -> list[tuple[int, int]]:
    """Where operations can have changed elements (`Kernel.ring`).

    Each changes at most those at L and before A, which it moves by one.  A flip, of which there is
    at most one as it is as many operations away from the next as there are elements, moves them
    far: so what is near their places before and near those after has it all.
    """
    reach = operations + 1
    return [(at - reach, at + reach) for at in (before[L], before[A], after[L], after[A])]


def like_filled(left: int, b: int, length: int, size: int) -> tuple[int, int]:
    """How many rows until a window of a size has as many between L and B as one that was just
    filled, from what it has now, and after how many rows it has again.

    Each step takes one from between L and B; where there is none, it is a flip, after which there
    are all but one of the elements.  So a flip comes when a window that only grows has
    2, 4, 8, … elements, and every `size // 2` rounds; what stands where follows from the flip.
    """
    rows, between, held = size - length, b - left, length
    while held < size:
        if not held or not between:
            held += 1
            between = held - 1
        else:
            steps = min(between, size - held)
            held, between = held + steps, between - steps
    filled = (1 << size.bit_length()) - 1 - size
    period = max(size // 2, 1)
    return rows + ((between - filled) >> 1) % period, period


class Daba(InPieces):
    """In-order aggregation in worst-case constant time, with two partials a value.

    >>> from sash.operators import max
    >>> Daba(max).slide([4, 1, 2, 0, 3], 3)
    [4, 4, 4, 2, 3]
    """

    _kernel = kernel(
        "daba",
        *(value, aggregate, insert, evict, step, query),
        *(rounds_alike, turned, rounds, slide, fill),
        inline=("turned",),
        entries=("fill",),
        scratch=2,
        each=2,
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
        values = {i: core.peek(RING + 2 * (i & mask)) for i in range(f, e)}

        def between(i: int, j: int) -> object:
            total = op.identity
            for k in range(i, j):
                total = join(total, values[k])
            return total

        for i in range(f, e):
            if i < left or a <= i < b:
                wanted = between(i, b)
            elif i < r:
                wanted = between(i, r)
            else:
                wanted = between(r if i < a else b, i + 1)
            assert equal(core.peek(RING + 2 * (i & mask) + 1), wanted), f"aggregate at {i - f}"


def check_daba_sizes(f: int, left: int, r: int, a: int, b: int, e: int) -> None:
    """The order of the six positions, and the sizes between them."""
    assert f <= left <= r <= a <= b <= e, (f, left, r, a, b, e)
    assert r - left == a - r, "the two parts to be turned differ in size"
    assert f == e or (b - f) - (e - b) == (b - left) + 1, "the front is too short or too long"
