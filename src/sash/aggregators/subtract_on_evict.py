"""One running total: added to on insert, subtracted from on evict.

    order      first in, first out
    operator   with an exact inverse
    time       1 combine an insert, 1 inverse an evict, none a query
    space      n + 1 partials

Refuses operators without an inverse.  Sums of floats have none: a rounding error, once in the
total, would stay in it, and an infinity would never leave it.
"""

from __future__ import annotations

from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    combine,
    drop,
    get,
    inverse,
    lift,
    put,
)
from ..operators.contract import Operator, same
from .in_order import InOrder, kernel

__all__ = ["SubtractOnEvict"]

TOTAL, RING = 0, 1


def insert(m: Memory, columns: Columns, row: int) -> None:
    end = get(m, END)
    at = RING + (end & (get(m, CAPACITY) - 1))
    lift(m, at, columns, row)
    combine(m, TOTAL, TOTAL, at)
    put(m, END, end + 1)


def evict(m: Memory) -> None:
    start = get(m, START)
    at = RING + (start & (get(m, CAPACITY) - 1))
    inverse(m, TOTAL, TOTAL, at)
    drop(m, at)
    put(m, START, start + 1)


def query(m: Memory) -> int:
    return TOTAL


def changed(before: list[int], after: list[int], operations: int) -> list[tuple[int, int]]:
    """Where operations can have changed elements (`Kernel.ring`): nowhere."""
    return []


class SubtractOnEvict(InOrder):
    """In-order aggregation for invertible operators, one step for each operation.

    >>> from sash.operators import count, max, sum
    >>> SubtractOnEvict(sum.of(int)).slide([5, 1, 2], 2)
    [5, 6, 3]
    >>> SubtractOnEvict(max)
    Traceback (most recent call last):
    ...
    TypeError: SubtractOnEvict needs an operator with an inverse, and <operator max> has none; \
use TwoStacksLite or DabaLite
    """

    _kernel = kernel("subtract_on_evict", insert, evict, query, scratch=1, ring=changed)

    @classmethod
    def _accept(cls, operator: Operator) -> None:
        if operator.inverse is None:
            hint = ""
            if operator.typed is not None and operator.shape == "tuple":
                hint = f" (it may have one for integers: try {operator.name}.of(int))"
            raise TypeError(
                f"SubtractOnEvict needs an operator with an inverse, and {operator!r} has none"
                f"{hint}; use TwoStacksLite or DabaLite"
            )

    def _check(self) -> None:
        super()._check()
        core, op = self._core, self.operator
        mask, total, join = core.get(CAPACITY) - 1, op.identity, op.python_combine()
        for i in range(core.get(START), core.get(END)):
            total = join(total, core.peek(RING + (i & mask)))
        assert (op.equal or same)(core.peek(TOTAL), total), "the total is wrong"
