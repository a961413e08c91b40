"""Aggregates that compare values: the least, the greatest, and the value of the row with either.

NaN is the greatest number; of equal values, the first in order wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate, reading

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = [
    "arg_max",
    "arg_min",
    "max",
    "max_by",
    "max_count",
    "min",
    "min_by",
    "min_count",
    "span",
]


def max(column: str, *, where: Expression | None = None) -> Aggregate:
    """The greatest value, where NaN is above all numbers; null if there are none.

    >>> import sash
    >>> sash.max("delay").answer({"delay": [3, None, 9]})
    9
    """
    return Aggregate(operators.max, (column,), where=where)


def min(column: str, *, where: Expression | None = None) -> Aggregate:
    """The least value, which is NaN only if all values are; null if there are none.

    >>> import sash
    >>> sash.min("delay").answer({"delay": [3, None, 9]})
    3
    """
    return Aggregate(operators.min, (column,), where=where)


def span(column: str, *, where: Expression | None = None) -> Aggregate:
    """The greatest value minus the least, for times in microseconds; null if there are none.

    >>> import sash
    >>> sash.span("delay").answer({"delay": [3, None, 9]})
    6
    """
    return Aggregate(operators.span, (column,), where=where)


def max_count(column: str, *, where: Expression | None = None) -> Aggregate:
    """Count the values that equal the greatest one.

    >>> import sash
    >>> sash.max_count("delay").answer({"delay": [9, 3, 9]})
    2
    """
    return Aggregate(operators.max_count, (column,), where=where)


def min_count(column: str, *, where: Expression | None = None) -> Aggregate:
    """Count the values that equal the least one.

    >>> import sash
    >>> sash.min_count("delay").answer({"delay": [9, 3, 9]})
    1
    """
    return Aggregate(operators.min_count, (column,), where=where)


def arg_max(
    value: str, by: str, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The value of the row whose `by` is greatest; the first of several such rows.

    It leaves out rows whose `by` is null, and with `ignore_nulls` rows whose value is null.

    >>> import sash
    >>> table = {"carrier": ["UA", "AA", "B6"], "delay": [3, 9, None]}
    >>> sash.arg_max("carrier", by="delay").answer(table)
    'AA'
    """
    return reading(operators.arg_max, value, by, ignore_nulls=ignore_nulls, where=where)


def max_by(
    value: str, by: str, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The value of the row whose `by` is greatest, under Spark's name: see `arg_max`.

    >>> import sash
    >>> sash.max_by("carrier", "delay").answer({"carrier": ["UA", "AA"], "delay": [3, 9]})
    'AA'
    """
    return arg_max(value, by, ignore_nulls=ignore_nulls, where=where)


def arg_min(
    value: str, by: str, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The value of the row whose `by` is least; the first of several such rows.

    It leaves out rows whose `by` is null, and with `ignore_nulls` rows whose value is null.

    >>> import sash
    >>> table = {"carrier": ["UA", "AA", "B6"], "delay": [3, 9, None]}
    >>> sash.arg_min("carrier", by="delay").answer(table)
    'UA'
    """
    return reading(operators.arg_min, value, by, ignore_nulls=ignore_nulls, where=where)


def min_by(
    value: str, by: str, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The value of the row whose `by` is least, under Spark's name: see `arg_min`.

    >>> import sash
    >>> sash.min_by("carrier", "delay").answer({"carrier": ["UA", "AA"], "delay": [3, 9]})
    'UA'
    """
    return arg_min(value, by, ignore_nulls=ignore_nulls, where=where)
