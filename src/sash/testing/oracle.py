"""The judge: each ready operator's answer, straight from its definition.

Nothing here is shared with what is judged: no `lift`, `combine` or `lower`, no aggregator.  An
answer is worked out from the raw list of values, exactly (in fractions) where rounding could
come in, and nobody minds how slow that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ..operators.contract import Operator

__all__ = ["agrees", "answer"]

_LEAST, _MOST = -(2**63), 2**63 - 1
_EPS = 2.0**-52


def answer(
    operator: Operator,
    values: Sequence[Any],
    *,
    definition: Callable[[list[Any]], Any] | None = None,
) -> Any:
    """The answer of a ready operator over a list of values, by definition.

    None is null, and rows of several columns are tuples.  For an operator of your own,
    `definition` is a function from the values that are left when nulls are skipped, as the
    operator declares, to the answer.  OverflowError says that the answer leaves int64.

    >>> from sash.operators import arg_max, max, mean, sum, together
    >>> answer(mean, [1, None, 4])
    2.5
    >>> answer(arg_max, [("a", 1), ("b", 7), ("c", 7)])
    'b'
    >>> answer(together(sum, max, columns=[0, 1]), [(1, 5), (2, None)])
    (3, 5)
    >>> answer(max, [3, 9], definition=lambda xs: xs[-1])
    9
    """
    if definition is not None:
        return definition(_kept(operator, values))
    if operator.parts:
        return tuple(
            answer(p.operator, _columns(operator, values, p.columns)) for p in operator.parts
        )
    name, parameters = _parameters(operator)
    if name not in _DEFINITIONS:
        known = "; it can be judged by agrees(…)" if name in _PROMISES else ""
        raise TypeError(
            f"the oracle has no definition of {operator!r}{known}; give definition=, a function "
            "from the list of values to the answer"
        )
    return _DEFINITIONS[name](_kept(operator, values), *parameters)


def agrees(
    operator: Operator,
    values: Sequence[Any],
    got: Any,
    *,
    definition: Callable[[list[Any]], Any] | None = None,
) -> bool:
    """Whether an answer is right.

    Sums, means and the like may be off by rounding, NaN equals NaN, null is only null, and all
    else is exact; a sketch must keep its promise.  Where asking raised an OverflowError, give
    that as `got`.

    >>> from sash.operators import max, sum
    >>> agrees(sum, [0.1, 0.2], 0.3), agrees(max, [0.1, 0.2], 0.3)
    (True, False)
    >>> agrees(sum, [2**63 - 1, 1], OverflowError("the sum leaves int64"))
    True
    """
    if definition is None and operator.parts:
        return _agrees_in_parts(operator, values, got)
    name, parameters = _parameters(operator)
    if definition is None and name in _PROMISES:
        return _PROMISES[name](operator, _kept(operator, values), got, *parameters)
    try:
        expected = answer(operator, values, definition=definition)
    except OverflowError:
        return isinstance(got, OverflowError)
    if definition is not None:
        return _equal(expected, got, 1e-9, 0.0)
    if name not in _SLACK:
        return _equal(expected, got, 0.0, 0.0)
    return _equal(expected, got, 1e-9, _SLACK[name](_kept(operator, values)))


def _agrees_in_parts(operator: Operator, values: Sequence[Any], got: Any) -> bool:
    if isinstance(got, OverflowError):
        return any(
            _overflows(p.operator, _columns(operator, values, p.columns)) for p in operator.parts
        )
    if not isinstance(got, tuple) or len(got) != len(operator.parts):
        return False
    return all(
        agrees(p.operator, _columns(operator, values, p.columns), x)
        for p, x in zip(operator.parts, got, strict=True)
    )


def _overflows(operator: Operator, values: Sequence[Any]) -> bool:
    if not operator.parts and _parameters(operator)[0] not in _DEFINITIONS:
        return False
    try:
        answer(operator, values)
    except OverflowError:
        return True
    return False


# What reaches the definitions


def _parameters(operator: Operator) -> tuple[str, tuple[int, ...]]:
    """A ready operator's name and its parameters: `first_n` and 3 of `first_n(3)`."""
    if not operator.ready:
        return "", ()
    numbers = operator.name.removeprefix(operator.ready).strip("()")
    return operator.ready, tuple(int(x) for x in numbers.split(",") if x)


def _columns(operator: Operator, values: Sequence[Any], columns: tuple[int, ...]) -> list[Any]:
    """Of each row, what one operator of several reads."""
    rows = [(v,) for v in values] if len(operator.skips) == 1 else list(values)
    picked = [tuple(row[c] for c in columns) for row in rows]
    return [row[0] for row in picked] if len(columns) == 1 else picked


def _kept(operator: Operator, values: Sequence[Any]) -> list[Any]:
    """The rows without those that a null skips, as values of the operator's types."""
    width = len(operator.skips)
    made: list[Any] = []
    for value in values:
        row = (value,) if width == 1 else tuple(value)
        if any(skip and x is None for skip, x in zip(operator.skips, row, strict=True)):
            continue
        if operator.types:
            row = tuple(_as(t, x) for t, x in zip(operator.types, row, strict=True))
        made.append(row[0] if width == 1 else row)
    return made


def _as(type_: str, value: Any) -> Any:
    if value is None or type_ == "object":
        return value
    if type_ == "timestamp":
        return _micros(value)
    return {"int64": int, "float64": float, "bool": bool}[type_](value)


def _micros(value: Any) -> Any:
    """A time as microseconds since 1970; anything else as it is."""
    if isinstance(value, np.datetime64):
        micros = value.astype("M8[us]")
        return int(micros.astype(np.int64)) - bool(micros > value)
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = at - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return value


def _equal(expected: Any, got: Any, relative: float, absolute: Any) -> bool:
    """Whether an answer is the expected one; `absolute` may have an entry for each field."""
    if expected is None or got is None or isinstance(got, BaseException):
        return expected is None and got is None
    if isinstance(got, np.ndarray):
        got = got.tolist()
    if isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple) or len(expected) != len(got):
            return False
        bounds = absolute if isinstance(absolute, tuple) else (absolute,) * len(got)
        return all(_equal(e, g, relative, b) for e, g, b in zip(expected, got, bounds, strict=True))
    expected, got = _micros(expected), _micros(got)
    if expected != expected or got != got:
        return bool(expected != expected and got != got)
    if expected == got:
        return True
    if not isinstance(expected, float) or not isinstance(got, int | float):
        return False
    if math.isinf(expected) or math.isinf(got):
        return False
    return math.isclose(expected, got, rel_tol=relative, abs_tol=absolute)


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


def _deviations(xs: list[Any], ys: list[Any]) -> Fraction | float:
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
        made = float(_deviations(values, values) / n)
        return math.sqrt(made) if root else made

    return definition


def _linear_regression(rows: list[Any]) -> tuple[float, float, float] | None:
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    if len(rows) < 2:
        return None
    xx, xy, yy = _deviations(xs, xs), _deviations(xs, ys), _deviations(ys, ys)
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


def _distinct(values: list[Any]) -> list[Any]:
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


_DEFINITIONS: dict[str, Callable[..., Any]] = {
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
    "collect_distinct": _distinct,
    "concat": _concat,
    "count_distinct": lambda values: len(_distinct(values)),
}


# How far rounding may take an answer, beyond a relative 1e-9: what adding in floats loses is in
# proportion to what was added, not to what is left of it.


def _finite(values: list[Any]) -> list[float]:
    return [float(x) for x in values if math.isfinite(x)]


def _sum_slack(values: list[Any]) -> float:
    return 4 * _EPS * len(values) * math.fsum(map(abs, _finite(values)))


def _mean_slack(values: list[Any]) -> float:
    return _sum_slack(values) / max(len(values), 1)


def _variance_slack(values: list[Any]) -> float:
    """From Chan, Golub and LeVeque's bound for updating: n·eps·sqrt(1 + mean²/variance) of the
    variance, and what rounding of the mean itself adds."""
    finite = _finite(values)
    if len(finite) < 2:
        return 0.0
    variance = float(_deviations(finite, finite) / (len(finite) - 1))
    mean = math.fsum(finite) / len(finite)
    unit = len(finite) * _EPS
    size = variance + mean * mean
    return 16 * (unit * math.sqrt(variance * size) + unit * unit * size)


def _stddev_slack(values: list[Any]) -> float:
    finite = _finite(values)
    if len(finite) < 2:
        return 0.0
    variance = float(_deviations(finite, finite) / (len(finite) - 1))
    slack = _variance_slack(values)
    return math.sqrt(variance + slack) - math.sqrt(max(variance - slack, 0.0))


def _line_slack(rows: list[Any]) -> tuple[float, float, float]:
    pairs = [(float(x), float(y)) for x, y in rows if math.isfinite(x) and math.isfinite(y)]
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    xx = float(_deviations(xs, xs)) if xs else 0.0
    if xx == 0.0:
        return (0.0, 0.0, 0.0)
    yy = float(_deviations(ys, ys))
    square_x, square_y = math.fsum(x * x for x in xs), math.fsum(y * y for y in ys)
    unit = 64 * len(pairs) * _EPS * math.sqrt(square_x / xx)
    slope = unit * math.sqrt(square_y / xx)
    intercept = slope * math.sqrt(square_x) + unit * math.sqrt(square_y)
    return (slope, intercept, unit * math.sqrt(square_y / yy) if yy else 0.0)


_SLACK: dict[str, Callable[[list[Any]], Any]] = {
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
}


# What sketches promise.  Whether one holds a value only its own reader can tell, so that reader
# is judged with it.


def _tallied(values: list[Any]) -> dict[Any, tuple[Any, int]]:
    """How often each value occurs; to a sketch, an integer and the equal float differ."""
    made: dict[Any, tuple[Any, int]] = {}
    for x in values:
        key = ("nan",) if x != x else (isinstance(x, float), x)
        made[key] = (x, made[key][1] + 1 if key in made else 1)
    return made


def _few(found: int, expected: float) -> bool:
    """Whether something is not seen much more often than expected."""
    return found <= expected + 5 * math.sqrt(expected) + 2


def _bloom_holds(operator: Operator, values: list[Any], got: Any, bits: int, hashes: int) -> bool:
    """Every value is found, and of others no more than the promised share."""
    from ..operators.sketches import might_contain

    held = _tallied(values)
    if not all(might_contain(got, x) for x, _ in held.values()):
        return False
    others = [x for x in range(10**15, 10**15 + 200) if (False, x) not in held]
    rate = (1 - math.exp(-hashes * len(held) / bits)) ** hashes
    return _few(sum(might_contain(got, x) for x in others), rate * len(others))


def _count_min_holds(
    operator: Operator, values: list[Any], got: Any, width: int, depth: int
) -> bool:
    """No count is too low, and few are too high by more than e·n/width."""
    from ..operators.sketches import estimate

    held = _tallied(values).values()
    rows = np.asarray(got).reshape(depth, width).sum(axis=1)
    over = [estimate(got, x, width, depth) - n for x, n in held]
    high = sum(x > math.e * len(values) / width for x in over)
    exact = all(x >= 0 for x in over) and all(int(n) == len(values) for n in rows)
    return exact and _few(high, math.exp(-depth) * len(held))


def _hll_holds(operator: Operator, values: list[Any], got: Any, lg_k: int) -> bool:
    """Within four standard errors, and as good as exact for a few values."""
    # A number as an integer and as a float may count once or twice.
    low, high = len(_distinct(values)), len(_tallied(values))
    error = 4 / 2 ** (lg_k / 2)
    return isinstance(got, float) and low * (1 - error) - 0.05 <= got <= high * (1 + error) + 0.05


def _quantiles_hold(operator: Operator, values: list[Any], got: Any, k: int) -> bool:
    """Each answer is one of the values, at its rank: exactly for up to k of them."""
    numbers = [float(x) for x in values if x == x]
    if not numbers or got is None:
        return not numbers and got is None
    ranks = [float(field.removeprefix("q")) for field in operator.fields]
    n = len(numbers)
    error = 1e-9 if n <= k else 3 * 2.3 / k**0.9
    return len(ranks) == len(got) and all(
        q in numbers
        and sum(x < q for x in numbers) / n <= rank + error
        and sum(x <= q for x in numbers) / n >= rank - error
        for rank, q in zip(ranks, got, strict=True)
    )


def _top_k_holds(operator: Operator, values: list[Any], got: Any, k: int) -> bool:
    """No really frequent value is missing, and no count is off by more than the bound."""
    places = 2 ** math.ceil(math.log2(max(1024, 16 * k)))
    counts = dict(_tallied(values).values())
    if len(counts) <= places * 3 // 4:
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [tuple(row) for row in got] == ordered[:k]
    error = 3.5 / places * len(values)
    listed = dict(got)
    least = min(listed.values()) if len(listed) == k else 0
    return (
        len(listed) == len(got) <= k
        and all(abs(n - counts.get(x, 0)) <= error for x, n in got)
        and all(n <= least + error for x, n in counts.items() if x not in listed)
    )


_PROMISES: dict[str, Callable[..., bool]] = {
    "bloom": _bloom_holds,
    "count_min": _count_min_holds,
    "hll": _hll_holds,
    "quantiles": _quantiles_hold,
    "top_k": _top_k_holds,
}
