"""Operators that add up: counts, sums, means, variances, regression.

Integer sums are exact: they use two words of 62 and 64 bits, and raise an error only if the answer
itself does not fit int64.  Variances and regressions merge means and squared deviations (Chan,
Golub and LeVeque 1979), never sums of squares.  Geometric means add logarithms and never multiply.
Sums of floats have no inverse: a subtraction cannot undo rounding, and infinity minus infinity is
NaN.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import cache
from numbers import Number
from typing import Any

import numpy as np

from .contract import Operator, itself, ready

__all__ = [
    "count",
    "geometric_mean",
    "linear_regression",
    "mean",
    "population_stddev",
    "population_variance",
    "product",
    "stddev",
    "sum",
    "sum_of_squares",
    "variance",
]

#: Adds and shifts decimals of any length exactly.
WIDE = Context(prec=400, rounding=ROUND_HALF_UP)
_LOW_BITS = 62
_LOW = 2**62 - 1
_MOST = 2**63 - 1
_ROOT = 3037000499  # the largest integer whose square fits int64


def close(a: Any, b: Any) -> bool:
    """True if two partials are equal up to rounding."""
    return all(
        x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)
        for x, y in zip(_fields(a), _fields(b), strict=True)
    )


def _fields(partial: Any) -> tuple[Any, ...]:
    return partial if isinstance(partial, tuple) else (partial,)


def _numbers(name: str, types: tuple[str, ...]) -> None:
    for t in types:
        if t not in ("int64", "float64", "bool"):
            raise TypeError(f"{name} takes numbers, not a column of {t}")


# count


def _one(x: Any) -> int:
    return 1


def _add(a: Any, b: Any) -> Any:
    return a + b


def _subtract(a: Any, b: Any) -> Any:
    return a - b


#: The number of rows, nulls included; `count.ignore_nulls()` leaves out nulls.
count = ready(Operator("count", 0, _one, _add, inverse=_subtract, commutative=True, skips=(False,)))


# sums and means of integers: (count, high word, low word)


def _int_lift(x: Any) -> Any:
    v = int(x)
    return (1, v >> _LOW_BITS, v & _LOW)


def _int_square(x: Any) -> Any:
    v = int(x)
    if v > _ROOT or v < -_ROOT:
        return (1, 4, 0)  # beyond int64, as is then every sum that includes this square
    v = v * v
    return (1, v >> _LOW_BITS, v & _LOW)


def _int_add(a: Any, b: Any) -> Any:
    low = a[2] + b[2]
    return (a[0] + b[0], a[1] + b[1] + (low >> _LOW_BITS), low & _LOW)


def _int_subtract(a: Any, b: Any) -> Any:
    low = a[2] - b[2]
    return (a[0] - b[0], a[1] - b[1] + (low >> _LOW_BITS), low & _LOW)


def _int_sum(a: Any) -> int | None:
    if a[0] == 0:
        return None
    if a[1] < -2 or a[1] > 1:
        raise OverflowError("the sum leaves int64")
    return (a[1] << _LOW_BITS) + a[2]  # type: ignore[no-any-return]


def int_total(a: Any) -> float:
    """The sum of integers as a float."""
    if -2 <= a[1] <= 1:
        return float((a[1] << _LOW_BITS) + a[2])
    return float(a[1]) * 4611686018427387904.0 + float(a[2])


def _int_mean(a: Any) -> float | None:
    return int_total(a) / a[0] if a[0] != 0 else None


# sums of floats: one number, -0.0 if empty (lift turns -0.0 into 0.0, so no other sum is -0.0)


def _float_lift(x: Any) -> float:
    return float(x) + 0.0


def _float_square(x: Any) -> float:
    return float(x) * float(x)


def _float_sum(a: float) -> float | None:
    if a == 0.0 and math.copysign(1.0, a) < 0.0:
        return None
    return a


# the same for any Python number: (count, total)


def _number(x: Any) -> Any:
    if isinstance(x, np.generic):
        x = x.item()  # numpy's own integers wrap around, and its float32 rounds
    if not isinstance(x, Number):
        raise TypeError(f"{x!r} ({type(x).__name__}) is no number")
    return int(x) if isinstance(x, bool) else x


def divided(total: Decimal, count: int, scale: int) -> Decimal:
    """A quotient with a number of digits after the point, rounded once, half away from zero.

    >>> divided(Decimal("0.05"), 2, 2), divided(Decimal("-0.05"), 2, 2)
    (Decimal('0.03'), Decimal('-0.03'))
    """
    whole = Fraction(total) * 10**scale / count
    found = math.floor(abs(whole) + Fraction(1, 2))
    return Decimal(-found if whole < 0 else found).scaleb(-scale, WIDE)


def _any_add(a: Any, b: Any) -> Any:
    x, y = a[1], b[1]
    if isinstance(x, Decimal) and isinstance(y, Decimal | int):
        return (a[0] + b[0], WIDE.add(x, y))
    if isinstance(y, Decimal) and isinstance(x, int):
        return (a[0] + b[0], WIDE.add(y, x))
    return (a[0] + b[0], x + y)


def _any_mean(a: Any) -> Any:
    """The mean; a mean of decimals has four more digits after the point, as on Spark."""
    exponent = a[1].as_tuple().exponent if isinstance(a[1], Decimal) else None
    if isinstance(exponent, int):
        return divided(a[1], a[0], 4 - exponent)
    return a[1] / a[0] if a[0] else None


def _any_lift(x: Any) -> Any:
    return (1, _number(x))


def _any_square(x: Any) -> Any:
    v = _number(x)
    return (1, v * v)


def _pair_add(a: Any, b: Any) -> Any:
    return (a[0] + b[0], a[1] + b[1])


def _any_sum(a: Any) -> Any:
    if a[0] == 0:
        return None
    if isinstance(a[1], int) and not -_MOST - 1 <= a[1] <= _MOST:
        raise OverflowError("the sum leaves int64")
    return a[1]


def _pair_mean(a: Any) -> Any:
    return (a[1] + 0.0) / a[0] if a[0] else None  # one zero: -0.0 or not goes by how values met


def _pair_sum(a: Any) -> Any:
    return a[1] + 0.0 if a[0] else None  # one zero, as a sum has it


def _how_many(a: Any) -> int:
    return a[0]  # type: ignore[no-any-return]


#: A partial that begins with the number of values also answers `count`.
_COUNTS = ((_one, _how_many),)


def _sum(types: tuple[str, ...]) -> Operator:
    _numbers("sum", types)
    if types[0] == "float64":
        return Operator("sum", -0.0, _float_lift, _add, _float_sum, commutative=True, equal=close)
    return Operator(
        "sum",
        (0, 0, 0),
        _int_lift,
        _int_add,
        _int_sum,
        _int_subtract,
        commutative=True,
        serves=_COUNTS,
    )


def _sum_of_squares(types: tuple[str, ...]) -> Operator:
    _numbers("sum_of_squares", types)
    if types[0] == "float64":
        return dataclasses.replace(_sum(types), lift=_float_square)
    return dataclasses.replace(_sum(types), lift=_int_square)


def _float_pair(x: Any) -> Any:
    return (1, float(x))


def _mean(types: tuple[str, ...]) -> Operator:
    _numbers("mean", types)
    if types[0] == "float64":
        return Operator(
            "mean",
            (0, 0.0),
            _float_pair,
            _pair_add,
            _pair_mean,
            commutative=True,
            equal=close,
            serves=(*_COUNTS, (_float_lift, _pair_sum)),
        )
    return dataclasses.replace(_sum(types), name="mean", lower=_int_mean)


#: The sum; exact for integers and decimals.
sum = ready(
    Operator(
        "sum", (0, 0), _any_lift, _any_add, _any_sum, commutative=True, equal=close, typed=_sum
    )
)
#: The sum of the squares; exact for integers.
sum_of_squares = ready(
    Operator(
        "sum_of_squares",
        (0, 0),
        _any_square,
        _pair_add,
        _any_sum,
        commutative=True,
        equal=close,
        typed=_sum_of_squares,
    )
)
#: The arithmetic mean: a float, or for decimals a decimal.
mean = ready(
    Operator(
        "mean", (0, 0), _any_lift, _any_add, _any_mean, commutative=True, equal=close, typed=_mean
    )
)


# product and geometric mean


def _pair_multiply(a: Any, b: Any) -> Any:
    return (a[0] + b[0], a[1] * b[1])


def _pair_product(a: Any) -> Any:
    return a[1] if a[0] else None


def _log_lift(x: Any) -> Any:
    v = float(x)
    if v > 0.0:
        return (1, math.log(v))
    return (1, -math.inf if v == 0.0 else math.nan)


def _log_mean(a: Any) -> Any:
    return math.exp(a[1] / a[0]) if a[0] else None


def _for_numbers(made: Operator) -> Operator:
    """Make the operator refuse columns that hold no numbers."""

    def typed(types: tuple[str, ...]) -> Operator | None:
        _numbers(made.name, types)
        if "bool" not in types:
            return None
        return dataclasses.replace(made, lift=_from_bools(made.lift, types))

    return ready(dataclasses.replace(made, typed=typed))


@cache  # operators share a partial only if they have the same lift
def _from_bools(lift: Callable[..., Any], types: tuple[str, ...]) -> Callable[..., Any]:
    """A lift that turns bools into integers first, because numba does not convert a bool to a
    float."""
    first, *rest = (_int if t == "bool" else itself for t in types)
    if not rest:
        return lambda x: lift(first(x))
    second = rest[0]
    return lambda x, y: lift(first(x), second(y))


def _int(x: Any) -> int:
    return int(x)


#: The product, a float.
product = _for_numbers(
    Operator(
        "product",
        (0, 1.0),
        _float_pair,
        _pair_multiply,
        _pair_product,
        commutative=True,
        equal=close,
    )
)
#: The geometric mean; NaN if a value is negative.
geometric_mean = _for_numbers(
    Operator(
        "geometric_mean", (0, 0.0), _log_lift, _pair_add, _log_mean, commutative=True, equal=close
    )
)


# variance: (count, mean, sum of squared deviations from it)


def _moments(x: Any) -> Any:
    v = float(x)
    return (1, v + (v - v), v - v)  # of an infinity, all is NaN, in whatever order


def _merge_moments(a: Any, b: Any) -> Any:
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    n = a[0] + b[0]
    share = b[0] / n
    delta = b[1] - a[1]
    return (n, a[1] + delta * share, a[2] + b[2] + delta * delta * (a[0] * share))


def _variance(a: Any) -> float | None:
    return a[2] / (a[0] - 1) if a[0] > 1 else None


def _population_variance(a: Any) -> float | None:
    return a[2] / a[0] if a[0] else None


def _stddev(a: Any) -> float | None:
    return math.sqrt(a[2] / (a[0] - 1)) if a[0] > 1 else None


def _population_stddev(a: Any) -> float | None:
    return math.sqrt(a[2] / a[0]) if a[0] else None


def _of_moments(name: str, lower: Callable[[Any], Any]) -> Operator:
    return _for_numbers(
        Operator(
            name,
            (0, 0.0, 0.0),
            _moments,
            _merge_moments,
            lower,
            commutative=True,
            equal=close,
            serves=_COUNTS,
        )
    )


#: The sample variance; null for fewer than two values.
variance = _of_moments("variance", _variance)
#: The population variance.
population_variance = _of_moments("population_variance", _population_variance)
#: The sample standard deviation; null for fewer than two values.
stddev = _of_moments("stddev", _stddev)
#: The population standard deviation.
population_stddev = _of_moments("population_stddev", _population_stddev)


# regression: (count, mean of x, mean of y, and sums of deviations xx, xy, yy)


def _point(x: Any, y: Any) -> Any:
    u, v = float(x), float(y)
    return (1, u + (u - u), v + (v - v), u - u, (u - u) * (v - v), v - v)


def _merge_points(a: Any, b: Any) -> Any:
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    n = a[0] + b[0]
    share = b[0] / n
    weight = a[0] * share
    dx, dy = b[1] - a[1], b[2] - a[2]
    return (
        n,
        a[1] + dx * share,
        a[2] + dy * share,
        a[3] + b[3] + dx * dx * weight,
        a[4] + b[4] + dx * dy * weight,
        a[5] + b[5] + dy * dy * weight,
    )


def _line(a: Any) -> tuple[float, float, float] | None:
    if a[0] < 2 or a[3] == 0.0:
        return None
    slope = a[4] / a[3]
    fit = 1.0 if a[5] == 0.0 else slope * (a[4] / a[5])  # a[3] * a[5] could underflow to 0
    return (slope, a[2] - slope * a[1], fit)


#: Of (x, y): the least-squares line as slope, intercept and r squared; null if x does not vary.
linear_regression = _for_numbers(
    Operator(
        "linear_regression",
        (0, 0.0, 0.0, 0.0, 0.0, 0.0),
        _point,
        _merge_points,
        _line,
        commutative=True,
        equal=close,
        skips=(True, True),
        fields=("slope", "intercept", "r2"),
    )
)
