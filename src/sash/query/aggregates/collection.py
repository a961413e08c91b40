"""Aggregates that keep all values: lists, distinct values, joined text."""

from __future__ import annotations

from ... import operators
from .contract import Aggregate

__all__ = ["collect", "collect_distinct", "concat", "count_distinct"]


def collect(column: str) -> Aggregate:
    """All values in order, as a list, without nulls.

    >>> import sash
    >>> sash.collect("x").answer({"x": [5, None, 7, 5]})
    [5, 7, 5]
    """
    return Aggregate(operators.collect, (column,))


def collect_distinct(column: str) -> Aggregate:
    """The distinct values in order of first occurrence, as a list, without nulls.

    >>> import sash
    >>> sash.collect_distinct("x").answer({"x": [5, None, 7, 5]})
    [5, 7]
    """
    return Aggregate(operators.collect_distinct, (column,))


def count_distinct(column: str) -> Aggregate:
    """Count the distinct values exactly, without nulls; `hll` estimates in fixed space.

    >>> import sash
    >>> sash.count_distinct("x").answer({"x": [5, None, 7, 5]})
    2
    """
    return Aggregate(operators.count_distinct, (column,))


def concat(column: str) -> Aggregate:
    """Join all strings, bytes or lists in order; null if there are none.

    >>> import sash
    >>> sash.concat("s").answer({"s": ["a", None, "b"]})
    'ab'
    """
    return Aggregate(operators.concat, (column,))
