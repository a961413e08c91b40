"""The answer of each ready operator, by definition.

Each function takes the list of values or rows, without the skipped nulls.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

__all__ = ["DEFINITIONS", "deviations", "distinct"]

_LEAST, _MOST = -(2**63), 2**63 - 1


# Order: NaN is the greatest number


def _before(a: Any, b: Any) -> bool:
    if b != b:
        return bool(a == a)
    return bool(a == a and a < b)


def _alike(a: Any, b: Any) -> bool:
    return not _before(a, b) and not _before(b, a)


def _least(values: list[Any]) -> Any:
    """The first of the least values."""
    return next((x for x in values if not any(_before(y, x) for y in values)), None)


def _greatest(values: list[Any]) -> Any:
    """The first of the greatest values."""
    return next((x for x in values if not any(_before(x, y) for y in values)), None)


def _minimum(values: list[Any]) -> Any:
    """The first of the least values; of zeros -0.0, if there is one."""
    return _zero(_least(values), values, negative=True)


def _maximum(values: list[Any]) -> Any:
    """The first of the greatest values; of zeros 0.0, if there is one."""
    return _zero(_greatest(values), values, negative=False)


def _zero(found: Any, values: list[Any], *, negative: bool) -> Any:
    if not isinstance(found, float) or found != 0:
        return found
    wanted = -1.0 if negative else 1.0
    zeros = (x for x in values if x == 0 and math.copysign(1.0, x) == wanted)
    return next(zeros, found)


def _span(values: list[Any]) -> Any:
    if not values:
        return None
    made = _greatest(values) - _least(values)
    return _whole(made) if isinstance(made, int) else made


def _picked(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def definition(rows: list[Any]) -> Any:
        best = pick([by for _, by in rows])
        return next((value for value, by in rows if _alike(by, best)), None)

    return definition


def _how_often(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], int]:
    def definition(values: list[Any]) -> int:
        best = pick(values)
        return sum(_alike(x, best) for x in values)

    return definition


# Adding up


def _whole(total: int) -> int:
    if not _LEAST <= total <= _MOST:
        raise OverflowError("the answer leaves int64")
    return total


def _odd(values: list[Any]) -> float | None:
    """The sum if the values contain NaN or infinities; None if they contain none."""
    signs = {x for x in values if isinstance(x, float) and math.isinf(x)}
    if any(x != x for x in values) or len(signs) == 2:
        return math.nan
    return signs.pop() if signs else None


def _exactly(values: list[Any]) -> Fraction:
    return sum((Fraction(x) for x in values), Fraction(0))


def _to_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    if all(isinstance(x, int) for x in values):
        return _whole(int(_exactly(values)))
    if not all(isinstance(x, int | float) for x in values):
        return sum(values)  # decimals, fractions and the like
    odd = _odd(values)
    return _to_float(_exactly(values)) if odd is None else odd


def _sum_of_squares(values: list[Any]) -> Any:
    if not values:
        return None
    if any(x != x for x in values):
        return math.nan
    if _odd(values) is not None:
        return math.inf
    exact = _exactly([Fraction(x) ** 2 for x in values])
    return _whole(int(exact)) if all(isinstance(x, int) for x in values) else _to_float(exact)


def _mean(values: list[Any]) -> float | None:
    if not values:
        return None
    odd = _odd(values)
    return _to_float(_exactly(values) / len(values)) if odd is None else odd


def _product(values: list[Any]) -> float | None:
    if not values:
        return None
    if any(x != x for x in values):
        return math.nan
    if any(math.isinf(x) for x in values):
        if any(x == 0 for x in values):
            return math.nan
        return math.prod(math.copysign(1.0, x) for x in values) * math.inf
    return _to_float(math.prod((Fraction(x) for x in values), start=Fraction(1)))


def _geometric_mean(values: list[Any]) -> float | None:
    if not values:
        return None
    if any(x != x or x < 0 for x in values):
        return math.nan
    if any(math.isinf(x) for x in values):
        return math.nan if any(x == 0 for x in values) else math.inf
    if any(x == 0 for x in values):
        return 0.0
    exact = math.prod((Fraction(x) for x in values), start=Fraction(1))
    return math.exp((math.log(exact.numerator) - math.log(exact.denominator)) / len(values))


def deviations(xs: list[Any], ys: list[Any]) -> Fraction | float:
    """The sum over (x - mean of x)·(y - mean of y)."""
    if _odd(xs) is not None or _odd(ys) is not None:
        return math.nan
    n = len(xs)
    mean_x, mean_y = _exactly(xs) / n, _exactly(ys) / n
    return sum(
        ((Fraction(x) - mean_x) * (Fraction(y) - mean_y) for x, y in zip(xs, ys, strict=True)),
        Fraction(0),
    )


def _spread(*, sample: bool, root: bool) -> Callable[[list[Any]], float | None]:
    def definition(values: list[Any]) -> float | None:
        n = len(values) - sample
        if n < 1:
            return None
        made = float(deviations(values, values) / n)
        return math.sqrt(made) if root else made

    return definition


def _linear_regression(rows: list[Any]) -> tuple[float, float, float] | None:
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    if len(rows) < 2:
        return None
    xx, xy, yy = deviations(xs, xs), deviations(xs, ys), deviations(ys, ys)
    if xx == 0:
        return None
    fit = 1.0 if yy == 0 else float(xy * xy / (xx * yy))
    if xy != xy:
        return (math.nan, math.nan, fit)
    slope = xy / xx
    return (float(slope), float(_exactly(ys) / len(ys) - slope * _exactly(xs) / len(xs)), fit)


def _covariance(rows: list[Any], *, sample: bool) -> float | None:
    n = len(rows) - sample
    return float(deviations(*map(list, zip(*rows, strict=True))) / n) if n >= 1 else None


def _correlation(rows: list[Any]) -> float | None:
    if len(rows) < 2:
        return None
    xs, ys = map(list, zip(*rows, strict=True))
    xx, xy, yy = deviations(xs, xs), deviations(xs, ys), deviations(ys, ys)
    if xx == 0 or yy == 0:
        return None
    if xy != xy:
        return math.nan
    return math.copysign(math.sqrt(xy * xy / (xx * yy)), xy)


def _moment(values: list[Any], power: int) -> Fraction:
    mean = _exactly(values) / len(values)
    return sum(((Fraction(x) - mean) ** power for x in values), Fraction(0)) / len(values)


def _shape(power: int, normal: int) -> Callable[[list[Any]], float | None]:
    """Skewness and kurtosis."""

    def definition(values: list[Any]) -> float | None:
        if not values:
            return None
        if _odd(values) is not None:
            return math.nan
        spread = _moment(values, 2)
        if spread == 0:
            return None
        return float(_moment(values, power)) / math.pow(spread, power / 2) - normal

    return definition


def _ewm(rows: list[Any], half_life: int) -> float | None:
    if not rows:
        return None
    newest = max(time for _, time in rows)
    rows = [row for row in rows if 0.5 ** ((newest - row[1]) / half_life) > 0]
    weights = [0.5 ** ((newest - time) / half_life) for _, time in rows]
    odd = _odd([x for x, _ in rows])
    if odd is not None:
        return odd
    values = (Fraction(x) * Fraction(w) for (x, _), w in zip(rows, weights, strict=True))
    return float(sum(values, Fraction(0)) / _exactly(weights))


def _rate(values: list[Any], seconds: float, rows: bool) -> float | None:
    if rows:
        return len(values) / seconds
    odd = _odd(values)
    if not values or odd is not None:
        return odd
    return float(_exactly(values) / Fraction(seconds))


# Order, and all values


def _quantile(values: list[Any], at: float = 0.5) -> float | None:
    if not values:
        return None
    ordered = sorted(map(float, values), key=lambda x: (x != x, 0.0 if x != x else x))
    place = at * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    if low == high or place == math.floor(place):
        return low
    return low + (high - low) * (place - math.floor(place))


def _mode(values: list[Any]) -> Any:
    often = {i: sum(_alike(x, y) for y in values) for i, x in enumerate(values)}
    most = [values[i] for i in often if often[i] == max(often.values())]
    found = _least(most)
    return 0.0 if isinstance(found, float) and found == 0.0 else found


def _change(values: list[Any]) -> Any:
    if not values:
        return None
    made = values[-1] - values[0]
    return _whole(made) if isinstance(made, int) else made


def _bits(combine: Callable[[int, int], int]) -> Callable[[list[Any]], int | None]:
    return lambda values: reduce(combine, values) if values else None


# Position


def _nth(values: list[Any], i: int) -> Any:
    return values[i] if -len(values) <= i < len(values) else None


def _m4(rows: list[Any]) -> tuple[Any, ...] | None:
    if not rows:
        return None
    values = [value for _, value in rows]
    least, greatest = _least(values), _greatest(values)
    low = next(row for row in rows if _alike(row[1], least))
    high = next(row for row in rows if _alike(row[1], greatest))
    return (*rows[0], *rows[-1], *low, *high)


def _longest_run(rows: list[Any]) -> tuple[Any, ...] | None:
    """Try every span, and keep the first of the longest."""
    best: list[Any] = []
    for i in range(len(rows)):
        for j in range(i + 1, len(rows) + 1):
            span = rows[i:j]
            rises = all(_before(a[1], b[1]) for a, b in pairwise(span))
            if rises and len(span) > len(best):
                best = span
    if not best:
        return None
    start, end = best[0][0], best[-1][0]
    interval = end - start
    return (start, end, _whole(interval) if isinstance(interval, int) else interval, len(best))


# Collections


def distinct(values: list[Any]) -> list[Any]:
    made: list[Any] = []
    for x in values:
        if not any(x is y or x == y or (x != x and y != y) for y in made):
            made.append(x)
    return made


def _concat(values: list[Any]) -> Any:
    if not values:
        return None
    made = values[0]
    for x in values[1:]:
        made = made + x
    return made


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "count": len,
    "sum": _sum,
    "sum_of_squares": _sum_of_squares,
    "product": _product,
    "mean": _mean,
    "geometric_mean": _geometric_mean,
    "variance": _spread(sample=True, root=False),
    "population_variance": _spread(sample=False, root=False),
    "stddev": _spread(sample=True, root=True),
    "population_stddev": _spread(sample=False, root=True),
    "linear_regression": _linear_regression,
    "exact_sum": _sum,
    "exact_mean": _mean,
    "covariance": lambda rows: _covariance(rows, sample=True),
    "population_covariance": lambda rows: _covariance(rows, sample=False),
    "correlation": _correlation,
    "skewness": _shape(3, 0),
    "kurtosis": _shape(4, 3),
    "ewm": _ewm,
    "rate": _rate,
    "any": lambda values: any(values) if values else None,
    "all": lambda values: all(values) if values else None,
    "bit_or": _bits(operator.or_),
    "bit_and": _bits(operator.and_),
    "bit_xor": _bits(operator.xor),
    "quantile": _quantile,
    "median": _quantile,
    "mode": _mode,
    "change": _change,
    "min": _minimum,
    "max": _maximum,
    "span": _span,
    "min_count": _how_often(_least),
    "max_count": _how_often(_greatest),
    "arg_min": _picked(_least),
    "arg_max": _picked(_greatest),
    "first": lambda values: _nth(values, 0),
    "last": lambda values: _nth(values, -1),
    "first_n": lambda values, n: values[:n],
    "last_n": lambda values, n: values[-n:],
    "nth_youngest": lambda values, i: _nth(values, -i),
    "m4": _m4,
    "longest_run": _longest_run,
    "collect": list,
    "collect_distinct": distinct,
    "concat": _concat,
    "count_distinct": lambda values: len(distinct(values)),
}
