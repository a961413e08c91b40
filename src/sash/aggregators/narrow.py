"""Operators of one word in the place of ready ones of several, over values that need no more.

A sum of integers has three words: how many there are, and 126 bits of the sum.  An extreme has two:
whether there is one, and which.  Where a long slide over an array has no nulls, and no window of
its values can leave int64, one word has the same answers in half the time: most of it goes into
storing words, each twice a row.
"""

from __future__ import annotations

from typing import Any

from ..kernels.columns import Table
from ..operators.contract import Operator
from ..operators.numeric import _add
from ..operators.order import _larger, _smaller

__all__ = ["narrow"]


def _itself(x: Any) -> int:
    return int(x)


def _small(name: str, identity: int, combine: Any) -> Operator:
    return Operator(
        f"small_{name}",
        identity,
        _itself,
        combine,
        commutative=True,
        types=("int64",),
        unchecked=True,
    )


_SMALL = {
    "sum": _small("sum", 0, _add),
    "max": _small("max", -(2**63), _larger),
    "min": _small("min", 2**63 - 1, _smaller),
}


def narrow(operator: Operator, table: Table, size: int) -> Operator | None:
    """The operator of one word with the same answers over windows of these values, if there is one.

    >>> import numpy as np
    >>> from sash.kernels.columns import read
    >>> from sash.operators import sum
    >>> table = read(np.array([3, 2**61]), 1)
    >>> narrow(sum.of(int), table, 2), narrow(sum.of(float), table, 2)
    (<operator small_sum(int64)>, None)
    """
    small = _SMALL.get(operator.ready)
    column = table.columns[0]
    if small is None or operator.types != ("int64",) or column.type != "int64":
        return None
    if column.valid is not None or not table.rows:
        return None
    if operator.ready == "sum":
        low, high = column.extremes()
        if max(-low, high) * min(size, table.rows) >= 2**63:
            return None
    return small
