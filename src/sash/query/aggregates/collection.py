"""Aggregates that keep all values: lists, distinct values, joined text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = ["collect", "collect_distinct", "concat", "count_distinct"]


def collect(column: str, *, where: Expression | None = None) -> Aggregate:
    """All values in order, as a list, without nulls.

    >>> import sash
    >>> sash.collect("x").answer({"x": [5, None, 7, 5]})
    [5, 7, 5]
    """
    return Aggregate(operators.collect, (column,), where=where)


def collect_distinct(column: str, *, where: Expression | None = None) -> Aggregate:
    """The distinct values in order of first occurrence, as a list, without nulls.

    >>> import sash
    >>> sash.collect_distinct("x").answer({"x": [5, None, 7, 5]})
    [5, 7]
    """
    return Aggregate(operators.collect_distinct, (column,), where=where)


def count_distinct(column: str, *, where: Expression | None = None) -> Aggregate:
    """Count the distinct values exactly, without nulls; `hll` estimates in fixed space.

    >>> import sash
    >>> sash.count_distinct("x").answer({"x": [5, None, 7, 5]})
    2
    """
    return Aggregate(operators.count_distinct, (column,), where=where)


def concat(column: str, *, where: Expression | None = None) -> Aggregate:
    """Join all strings, bytes or lists in order; null if there are none.

    >>> import sash
    >>> sash.concat("s").answer({"s": ["a", None, "b"]})
    'ab'
    """
    return Aggregate(operators.concat, (column,), where=where)
