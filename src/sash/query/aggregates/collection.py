"""Aggregates that keep all values: lists, distinct values, joined text, exact quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = [
    "collect",
    "collect_distinct",
    "concat",
    "count_distinct",
    "median",
    "mode",
    "quantile",
]


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


def quantile(column: str, at: float, *, where: Expression | None = None) -> Aggregate:
    """The exact quantile at the rank `at`, interpolated between its two neighbours; null if there
    are no values.

    NaN is the greatest number.  A stream keeps all values of a window, so `lifetime` windows refuse
    this aggregate; `quantiles` estimates in fixed space.

    >>> import sash
    >>> sash.quantile("x", 0.75).answer({"x": [3, 1, None, 2]})
    2.5
    """
    return Aggregate(operators.quantile(at), (column,), where=where)


def median(column: str, *, where: Expression | None = None) -> Aggregate:
    """The median, exactly: see `quantile`.

    >>> import sash
    >>> sash.median("x").answer({"x": [3, 1, None, 2]})
    2.0
    """
    return Aggregate(operators.median, (column,), where=where)


def mode(column: str, *, where: Expression | None = None) -> Aggregate:
    """The most frequent value, and of several such values the least; null if there are none.

    >>> import sash
    >>> sash.mode("x").answer({"x": ["b", "a", None, "b", "a"]})
    'a'
    """
    return Aggregate(operators.mode, (column,), where=where)
