"""Aggregates that add up: counts, sums, means, variances, regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = [
    "avg",
    "count",
    "geometric_mean",
    "linear_regression",
    "mean",
    "population_stddev",
    "population_variance",
    "product",
    "standard_deviation",
    "stddev",
    "sum",
    "sum_of_squares",
    "variance",
]

_non_null = operators.count.ignore_nulls()


def count(column: str | None = None, *, where: Expression | None = None) -> Aggregate:
    """Count the rows, or with a column the rows in which it is not null.

    >>> import sash
    >>> table = {"delay": [3, None, 9]}
    >>> sash.count().answer(table), sash.count("delay").answer(table)
    (3, 2)
    """
    if column is None:
        return Aggregate(operators.count, (), where=where)
    return Aggregate(_non_null, (column,), where=where)


def sum(column: str, *, where: Expression | None = None) -> Aggregate:
    """Add up the values; null if there are none.

    A sum of integers is exact, and an error if it leaves int64.

    >>> import sash
    >>> sash.sum("delay").answer({"delay": [3, None, 9]})
    12
    """
    return Aggregate(operators.sum, (column,), where=where)


def sum_of_squares(column: str, *, where: Expression | None = None) -> Aggregate:
    """Add up the squares of the values; null if there are none.

    A sum of integers is exact, and an error if it leaves int64.

    >>> import sash
    >>> sash.sum_of_squares("x").answer({"x": [3, 4]})
    25
    """
    return Aggregate(operators.sum_of_squares, (column,), where=where)


def product(column: str, *, where: Expression | None = None) -> Aggregate:
    """Multiply the values, as floats; null if there are none.

    >>> import sash
    >>> sash.product("x").answer({"x": [3, None, 4]})
    12.0
    """
    return Aggregate(operators.product, (column,), where=where)


def mean(column: str, *, where: Expression | None = None) -> Aggregate:
    """The arithmetic mean of the values, a float; null if there are none.

    >>> import sash
    >>> sash.mean("delay").answer({"delay": [3, None, 9]})
    6.0
    """
    return Aggregate(operators.mean, (column,), where=where)


def avg(column: str, *, where: Expression | None = None) -> Aggregate:
    """The arithmetic mean, by its name in SQL: see `mean`.

    >>> import sash
    >>> sash.avg("delay").answer({"delay": [3, None, 9]})
    6.0
    """
    return mean(column, where=where)


def geometric_mean(column: str, *, where: Expression | None = None) -> Aggregate:
    """The geometric mean of values that are not negative; NaN if one is, null if there are none.

    >>> import sash
    >>> round(sash.geometric_mean("growth").answer({"growth": [2, 8]}), 9)
    4.0
    """
    return Aggregate(operators.geometric_mean, (column,), where=where)


def variance(column: str, *, where: Expression | None = None) -> Aggregate:
    """The sample variance of the values; null if there are fewer than two.

    >>> import sash
    >>> sash.variance("x").answer({"x": [1, 2, 3]})
    1.0
    """
    return Aggregate(operators.variance, (column,), where=where)


def population_variance(column: str, *, where: Expression | None = None) -> Aggregate:
    """The population variance of the values; null if there are none.

    >>> import sash
    >>> sash.population_variance("x").answer({"x": [1, 3]})
    1.0
    """
    return Aggregate(operators.population_variance, (column,), where=where)


def stddev(column: str, *, where: Expression | None = None) -> Aggregate:
    """The sample standard deviation of the values; null if there are fewer than two.

    >>> import sash
    >>> sash.stddev("x").answer({"x": [1, 2, 3]})
    1.0
    """
    return Aggregate(operators.stddev, (column,), where=where)


def standard_deviation(column: str, *, where: Expression | None = None) -> Aggregate:
    """The sample standard deviation, by its full name: see `stddev`.

    >>> import sash
    >>> sash.standard_deviation("x").answer({"x": [1, 2, 3]})
    1.0
    """
    return stddev(column, where=where)


def population_stddev(column: str, *, where: Expression | None = None) -> Aggregate:
    """The population standard deviation of the values; null if there are none.

    >>> import sash
    >>> sash.population_stddev("x").answer({"x": [1, 3]})
    1.0
    """
    return Aggregate(operators.population_stddev, (column,), where=where)


def linear_regression(x: str, y: str, *, where: Expression | None = None) -> Aggregate:
    """The least-squares line through the points (x, y), as a struct of slope, intercept and r2;
    null if x does not vary.

    >>> import sash
    >>> sash.linear_regression("x", "y").answer({"x": [0, 1, 2], "y": [1, 3, 5]})
    {'slope': 2.0, 'intercept': 1.0, 'r2': 1.0}
    """
    return Aggregate(operators.linear_regression, (x, y), where=where)
