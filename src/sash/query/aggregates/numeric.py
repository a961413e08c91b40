"""Aggregates that add up: counts, sums, means, variances, regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = [
    "avg",
    "correlation",
    "count",
    "covariance",
    "geometric_mean",
    "kurtosis",
    "linear_regression",
    "mean",
    "population_covariance",
    "population_stddev",
    "population_variance",
    "product",
    "skewness",
    "standard_deviation",
    "stddev",
    "sum",
    "sum_of_squares",
    "variance",
]

_non_null = operators.count.ignore_nulls()


def count(column: str | None = None, *, where: Expression | None = None) -> Aggregate:
    """Count the rows; with a column, count the rows where it is not null.

    >>> import sash
    >>> table = {"delay": [3, None, 9]}
    >>> sash.count().answer(table), sash.count("delay").answer(table)
    (3, 2)
    """
    if column is None:
        return Aggregate(operators.count, (), where=where)
    return Aggregate(_non_null, (column,), where=where)


def sum(column: str, *, exact: bool = False, where: Expression | None = None) -> Aggregate:
    """Add up the values; null if there are none.

    A sum of integers is exact, and an error if it does not fit int64.  A sum of floats rounds at
    each addition, so it depends on their order.  With `exact` it is the float nearest to the true
    sum, in any order, so tables, streams and Spark agree to the bit.

    >>> import sash
    >>> sash.sum("delay").answer({"delay": [3, None, 9]})
    12
    >>> sash.sum("x", exact=True).answer({"x": [1e308, 1.0, -1e308]})
    1.0
    """
    return Aggregate(operators.exact_sum if exact else operators.sum, (column,), where=where)


def sum_of_squares(column: str, *, where: Expression | None = None) -> Aggregate:
    """Add up the squares of the values; null if there are none.

    A sum of integers is exact, and an error if it leaves int64.

    >>> import sash
    >>> sash.sum_of_squares("x").answer({"x": [3, 4]})
    25
    """
    return Aggregate(operators.sum_of_squares, (column,), where=where)


def product(column: str, *, where: Expression | None = None) -> Aggregate:
    """Multiply the values as floats; null if there are none.

    >>> import sash
    >>> sash.product("x").answer({"x": [3, None, 4]})
    12.0
    """
    return Aggregate(operators.product, (column,), where=where)


def mean(column: str, *, exact: bool = False, where: Expression | None = None) -> Aggregate:
    """The arithmetic mean of the values, a float; null if there are none.  With `exact` it is the
    float nearest to the true mean, in any order of the values.

    >>> import sash
    >>> sash.mean("delay").answer({"delay": [3, None, 9]})
    6.0
    """
    return Aggregate(operators.exact_mean if exact else operators.mean, (column,), where=where)


def avg(column: str, *, exact: bool = False, where: Expression | None = None) -> Aggregate:
    """The arithmetic mean, under its name in SQL: see `mean`.

    >>> import sash
    >>> sash.avg("delay").answer({"delay": [3, None, 9]})
    6.0
    """
    return mean(column, exact=exact, where=where)


def geometric_mean(column: str, *, where: Expression | None = None) -> Aggregate:
    """The geometric mean of the values; NaN if one is negative, null if there are none.

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
    """The sample standard deviation, under its full name: see `stddev`.

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


def covariance(x: str, y: str, *, where: Expression | None = None) -> Aggregate:
    """The sample covariance of two columns; null if there are fewer than two rows.

    >>> import sash
    >>> sash.covariance("x", "y").answer({"x": [0, 1, 2], "y": [1, 3, 5]})
    2.0
    """
    return Aggregate(operators.covariance, (x, y), where=where)


def population_covariance(x: str, y: str, *, where: Expression | None = None) -> Aggregate:
    """The population covariance of two columns; null if there are no rows.

    >>> import sash
    >>> sash.population_covariance("x", "y").answer({"x": [0, 2], "y": [1, 5]})
    2.0
    """
    return Aggregate(operators.population_covariance, (x, y), where=where)


def correlation(x: str, y: str, *, where: Expression | None = None) -> Aggregate:
    """Pearson's correlation of two columns; null if one of them does not vary.

    >>> import sash
    >>> sash.correlation("x", "y").answer({"x": [0, 1, 2], "y": [1, 3, 5]})
    1.0
    """
    return Aggregate(operators.correlation, (x, y), where=where)


def skewness(column: str, *, where: Expression | None = None) -> Aggregate:
    """The skewness of the values as a population; null if they do not vary.

    >>> import sash
    >>> round(sash.skewness("x").answer({"x": [1, 1, 4]}), 9)
    0.707106781
    """
    return Aggregate(operators.skewness, (column,), where=where)


def kurtosis(column: str, *, where: Expression | None = None) -> Aggregate:
    """The excess kurtosis of the values as a population (0 for a normal distribution); null if they
    do not vary.

    >>> import sash
    >>> sash.kurtosis("x").answer({"x": [1, 3]})
    -2.0
    """
    return Aggregate(operators.kurtosis, (column,), where=where)
