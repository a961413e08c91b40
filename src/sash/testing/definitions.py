"""What each ready operator answers, by definition.

Each takes the list of values, or of rows, without those that a null skips.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
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
    """The first of the least."""
    return next((x for x in values if not any(_before(y, x) for y in values)), None)


def _greatest(values: list[Any]) -> Any:
    """The first of the greatest."""
    return next((x for x in values if not any(_before(x, y) for y in values)), None)


def _minimum(values: list[Any]) -> Any:
    """The first of the least; of zeros -0.0, if there is one."""
    return _zero(_least(values), values, negative=True)


def _maximum(values: list[Any]) -> Any:
    """The first of the greatest; of zeros 0.0, if there is one."""
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
    """What NaN and infinities make of a sum: a float, or None if there are none."""
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
        return math.copysign(math.inf, exact)


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    if all(isinstance(x, int) for x in values):
        return _whole(int(_exactly(values)))
    if not all(isinstance(x, int | float) for x in values):
        return sum(values)  # of decimals, fractions and the like
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
    """Every span is tried; of equally long ones the first is kept."""
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
