"""Operators on moments: covariance, correlation, skewness, kurtosis.

Partials hold means and sums of powers of the deviations from them, and merge as in Chan, Golub and
LeVeque (1979) and Pébay (2008).  They never hold sums of powers of the values themselves, which
cancel.  Answers are Spark's: skewness and kurtosis are those of the population, kurtosis is that
beyond a normal distribution's 3, and what would be divided by zero is null.
"""

from __future__ import annotations

import math
from typing import Any

from .contract import Operator
from .numeric import _for_numbers, _merge_points, _point, close

__all__ = ["correlation", "covariance", "kurtosis", "population_covariance", "skewness"]


# pairs: the partial of a regression


def _covariance(a: Any) -> float | None:
    return a[4] / (a[0] - 1) if a[0] > 1 else None


def _population_covariance(a: Any) -> float | None:
    return a[4] / a[0] if a[0] else None


def _correlation(a: Any) -> float | None:
    if a[0] < 2 or a[3] == 0.0 or a[5] == 0.0:
        return None
    both = a[3] * a[5]
    if 1e-280 < both < 1e300:
        return a[4] / math.sqrt(both)  # type: ignore[no-any-return]
    return a[4] / math.sqrt(a[3]) / math.sqrt(a[5])  # type: ignore[no-any-return]


def _of_pairs(name: str, lower: Any) -> Operator:
    return _for_numbers(
        Operator(
            name,
            (0, 0.0, 0.0, 0.0, 0.0, 0.0),
            _point,
            _merge_points,
            lower,
            commutative=True,
            equal=close,
            skips=(True, True),
        )
    )


#: Of (x, y): the sample covariance; null for fewer than two rows.
covariance = _of_pairs("covariance", _covariance)
#: Of (x, y): the population covariance.
population_covariance = _of_pairs("population_covariance", _population_covariance)
#: Of (x, y): Pearson's correlation; null if x or y does not vary.
correlation = _of_pairs("correlation", _correlation)


# one column: (count, mean, sums of squares, cubes and fourth powers of deviations)


def _lift(x: Any) -> Any:
    v = float(x)
    none = v - v  # of an infinity, all is NaN, in whatever order
    return (1, v + none, none, none, none)


def _merge(a: Any, b: Any) -> Any:
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    n = a[0] + b[0]
    p, q = a[0] / n, b[0] / n
    d = b[1] - a[1]
    two, weight = d * d, a[0] * q
    return (
        n,
        a[1] + d * q,
        a[2] + b[2] + two * weight,
        a[3] + b[3] + two * d * weight * (p - q) + 3.0 * d * (p * b[2] - q * a[2]),
        a[4]
        + b[4]
        + two * two * weight * (p * p - p * q + q * q)
        + 6.0 * two * (p * p * b[2] + q * q * a[2])
        + 4.0 * d * (p * b[3] - q * a[3]),
    )


def _near(a: Any, b: Any) -> bool:
    """True if two partials are equal up to rounding.  Cubes cancel, so their tolerance is in
    proportion to the squares and to the rounding of the mean."""
    if a[0] != b[0] or not close(a[:3], b[:3]):
        return False
    if a[3] != a[3] or b[3] != b[3]:
        return all(x != x for x in (a[3], b[3], a[4], b[4]))
    size = math.sqrt(max(a[2], b[2])) + abs(a[1]) + 1.0
    slack = 1e-9 * size**3
    return bool(abs(a[3] - b[3]) <= slack and abs(a[4] - b[4]) <= slack * size)


def _skewness(a: Any) -> float | None:
    if a[0] == 0 or a[2] == 0.0:
        return None
    spread = math.sqrt(a[2])
    return math.sqrt(float(a[0])) * (a[3] / a[2]) / spread  # type: ignore[no-any-return]


def _kurtosis(a: Any) -> float | None:
    if a[0] == 0 or a[2] == 0.0:
        return None
    return a[0] * (a[4] / a[2]) / a[2] - 3.0  # type: ignore[no-any-return]


def _of_moments(name: str, lower: Any) -> Operator:
    return _for_numbers(
        Operator(
            name,
            (0, 0.0, 0.0, 0.0, 0.0),
            _lift,
            _merge,
            lower,
            commutative=True,
            equal=_near,
        )
    )


#: The skewness of the population; null if the values do not vary.
skewness = _of_moments("skewness", _skewness)
#: The excess kurtosis of the population; null if the values do not vary.
kurtosis = _of_moments("kurtosis", _kurtosis)
