"""Aggregates that pick by position: the first, the last, the n-th, M4's four points, and runs.

Events are in order of time; events of one time are in order of arrival, or of the `tie` column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate, reading

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = ["change", "first", "first_n", "last", "last_n", "longest_run", "m4", "nth_youngest"]


def first(column: str, *, ignore_nulls: bool = False, where: Expression | None = None) -> Aggregate:
    """The first value, which may be null; with `ignore_nulls`, the first value that is not null.

    >>> import sash
    >>> table = {"x": [None, 5, 7]}
    >>> sash.first("x").answer(table), sash.first("x", ignore_nulls=True).answer(table)
    (None, 5)
    """
    return reading(operators.first, column, ignore_nulls=ignore_nulls, where=where)


def last(column: str, *, ignore_nulls: bool = False, where: Expression | None = None) -> Aggregate:
    """The last value, which may be null; with `ignore_nulls`, the last value that is not null.

    >>> import sash
    >>> table = {"x": [5, 7, None]}
    >>> sash.last("x").answer(table), sash.last("x", ignore_nulls=True).answer(table)
    (None, 7)
    """
    return reading(operators.last, column, ignore_nulls=ignore_nulls, where=where)


def change(column: str, *, where: Expression | None = None) -> Aggregate:
    """The last value minus the first, without nulls, for times in microseconds; null if there are
    none.

    >>> import sash
    >>> sash.change("level").answer({"level": [5, 9, None, 7]})
    2
    """
    return Aggregate(operators.change, (column,), where=where)


def first_n(
    column: str, n: int, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The first `n` values in order, as a list; fewer if there are fewer.

    >>> import sash
    >>> sash.first_n("x", 2).answer({"x": [5, None, 7]})
    [5, None]
    """
    return reading(operators.first_n(n), column, ignore_nulls=ignore_nulls, where=where)


def last_n(
    column: str, n: int, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The last `n` values in order, as a list; fewer if there are fewer.

    >>> import sash
    >>> sash.last_n("x", 2, ignore_nulls=True).answer({"x": [5, None, 7]})
    [5, 7]
    """
    return reading(operators.last_n(n), column, ignore_nulls=ignore_nulls, where=where)


def nth_youngest(
    column: str, i: int, *, ignore_nulls: bool = False, where: Expression | None = None
) -> Aggregate:
    """The `i`-th value from the end, where 1 is the last; null if there are fewer.

    >>> import sash
    >>> sash.nth_youngest("x", 2).answer({"x": [5, 6, 7]})
    6
    """
    return reading(operators.nth_youngest(i), column, ignore_nulls=ignore_nulls, where=where)


def m4(time: str, value: str, *, where: Expression | None = None) -> Aggregate:
    """The first, last, least and greatest value, each with its time, as a struct; null if there
    are none.

    These four points draw a window's line without error (Jugel et al., VLDB 2014).

    >>> import sash
    >>> found = sash.m4("t", "x").answer({"t": [1, 2, 3], "x": [5, 9, 7]})
    >>> found["first"], found["last"], found["max"], found["max_time"]
    (5, 7, 9, 2)
    """
    return Aggregate(operators.m4, (time, value), where=where)


def longest_run(time: str, value: str, *, where: Expression | None = None) -> Aggregate:
    """The longest run of rising values, as a struct of its start, end, interval and length; null if
    there are no values.

    >>> import sash
    >>> sash.longest_run("t", "x").answer({"t": [1, 2, 3, 4], "x": [5, 4, 6, 9]})
    {'start': 2, 'end': 4, 'interval': 2, 'length': 3}
    """
    return Aggregate(operators.longest_run, (time, value), where=where)
