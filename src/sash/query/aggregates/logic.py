"""Aggregates over bools and the bits of whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = ["all", "any", "bit_and", "bit_or", "bit_xor"]


def any(column: str, *, where: Expression | None = None) -> Aggregate:
    """True if one of the bools is true; null if there are none.

    >>> import sash
    >>> sash.any("late").answer({"late": [False, None, True]})
    True
    """
    return Aggregate(operators.any, (column,), where=where)


def all(column: str, *, where: Expression | None = None) -> Aggregate:
    """True if all of the bools are true; null if there are none.

    >>> import sash
    >>> sash.all("late").answer({"late": [False, None, True]})
    False
    """
    return Aggregate(operators.all, (column,), where=where)


def bit_or(column: str, *, where: Expression | None = None) -> Aggregate:
    """The bits that are set in at least one of the whole numbers; null if there are none.

    >>> import sash
    >>> sash.bit_or("flags").answer({"flags": [1, None, 4]})
    5
    """
    return Aggregate(operators.bit_or, (column,), where=where)


def bit_and(column: str, *, where: Expression | None = None) -> Aggregate:
    """The bits that are set in all of the whole numbers; null if there are none.

    >>> import sash
    >>> sash.bit_and("flags").answer({"flags": [3, None, 6]})
    2
    """
    return Aggregate(operators.bit_and, (column,), where=where)


def bit_xor(column: str, *, where: Expression | None = None) -> Aggregate:
    """The bits that are set in an odd number of the whole numbers; null if there are none.

    >>> import sash
    >>> sash.bit_xor("flags").answer({"flags": [3, None, 6]})
    5
    """
    return Aggregate(operators.bit_xor, (column,), where=where)
