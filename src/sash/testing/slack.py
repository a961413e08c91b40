"""The allowed rounding error of an answer, beyond a relative 1e-9.

The rounding error of a float sum is in proportion to the values added, not to the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .definitions import deviations

__all__ = ["SLACK"]

_EPS = 2.0**-52


def _finite(values: list[Any]) -> list[float]:
    return [float(x) for x in values if math.isfinite(x)]


def _sum_slack(values: list[Any]) -> float:
    return 4 * _EPS * len(values) * math.fsum(map(abs, _finite(values)))


def _mean_slack(values: list[Any]) -> float:
    return _sum_slack(values) / max(len(values), 1)


def _variance_slack(values: list[Any]) -> float:
    """Chan, Golub and LeVeque's bound for updating, n·eps·sqrt(1 + mean²/variance) of the variance,
    plus the error from rounding the mean itself."""
    finite = _finite(values)
    if len(finite) < 2:
        return 0.0
    variance = float(deviations(finite, finite) / (len(finite) - 1))
    mean = math.fsum(finite) / len(finite)
    unit = len(finite) * _EPS
    size = variance + mean * mean
    return 16 * (unit * math.sqrt(variance * size) + unit * unit * size)


def _stddev_slack(values: list[Any]) -> float:
    finite = _finite(values)
    if len(finite) < 2:
        return 0.0
    variance = float(deviations(finite, finite) / (len(finite) - 1))
    slack = _variance_slack(values)
    return math.sqrt(variance + slack) - math.sqrt(max(variance - slack, 0.0))


def _line_slack(rows: list[Any]) -> tuple[float, float, float]:
    pairs = [(float(x), float(y)) for x, y in rows if math.isfinite(x) and math.isfinite(y)]
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    xx = float(deviations(xs, xs)) if xs else 0.0
    if xx == 0.0:
        return (0.0, 0.0, 0.0)
    yy = float(deviations(ys, ys))
    square_x, square_y = math.fsum(x * x for x in xs), math.fsum(y * y for y in ys)
    unit = 64 * len(pairs) * _EPS * math.sqrt(square_x / xx)
    slope = unit * math.sqrt(square_y / xx)
    intercept = slope * math.sqrt(square_x) + unit * math.sqrt(square_y)
    return (slope, intercept, unit * math.sqrt(square_y / yy) if yy else 0.0)


def _sizes(values: list[Any]) -> tuple[float, float]:
    """The sums of squares, and of squared deviations."""
    finite = _finite(values)
    if not finite:
        return 0.0, 0.0
    return math.fsum(x * x for x in finite), float(deviations(finite, finite))


def _pair_slack(rows: list[Any]) -> float:
    """The slack of a covariance: the error from rounding both means."""
    both = [_sizes([row[i] for row in rows])[0] for i in range(2)]
    return 64 * _EPS * math.sqrt(both[0] * both[1]) * max(len(rows), 1)


def _correlation_slack(rows: list[Any]) -> float:
    unit = 64 * len(rows) * _EPS
    for i in range(2):
        squares, spread = _sizes([row[i] for row in rows])
        unit *= math.sqrt(squares / spread) if spread else 0.0
    return unit


def _shape_slack(power: int) -> Callable[[list[Any]], float]:
    def slack(values: list[Any]) -> float:
        squares, spread = _sizes(values)
        many = len(values) ** (power - 1)
        return 64 * many * _EPS * math.sqrt(squares / spread) ** power if spread else 0.0

    return slack


def _decayed_slack(rows: list[Any]) -> float:
    return 64 * _EPS * len(rows) * max(map(abs, _finite([x for x, _ in rows])), default=0.0)


SLACK: dict[str, Callable[[list[Any]], Any]] = {
    "sum": _sum_slack,
    "sum_of_squares": lambda values: 0.0,
    "mean": _mean_slack,
    "product": lambda values: 0.0,
    "geometric_mean": lambda values: 0.0,
    "variance": _variance_slack,
    "population_variance": _variance_slack,
    "stddev": _stddev_slack,
    "population_stddev": _stddev_slack,
    "linear_regression": _line_slack,
    "covariance": _pair_slack,
    "population_covariance": _pair_slack,
    "correlation": _correlation_slack,
    "skewness": _shape_slack(3),
    "kurtosis": _shape_slack(4),
    "ewm": _decayed_slack,
    "rate": lambda values: _sum_slack([x for x in values if x is not None]),
}
