"""Check that sketches keep their error bounds.

Only a sketch's own reader can tell whether it holds a value, so the check covers the reader too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..operators.contract import Operator
from .definitions import distinct

__all__ = ["PROMISES"]


def _tallied(values: list[Any]) -> dict[Any, tuple[Any, int]]:
    """The count of each value; for a sketch, an integer and the equal float differ."""
    made: dict[Any, tuple[Any, int]] = {}
    for x in values:
        key = ("nan",) if x != x else (isinstance(x, float), x)
        made[key] = (x, made[key][1] + 1 if key in made else 1)
    return made


def _few(found: int, expected: float) -> bool:
    """True if a count is not much above its expected value."""
    return found <= expected + 5 * math.sqrt(expected) + 2


def _bloom_holds(operator: Operator, values: list[Any], got: Any, bits: int, hashes: int) -> bool:
    """True if the filter finds every value, and no more than the promised share of others."""
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
    """True if no count is too low, and few are too high by more than e·n/width."""
    from ..operators.sketches import estimate

    held = _tallied(values).values()
    rows = np.asarray(got).reshape(depth, width).sum(axis=1)
    over = [estimate(got, x, width, depth) - n for x, n in held]
    high = sum(x > math.e * len(values) / width for x in over)
    exact = all(x >= 0 for x in over) and all(int(n) == len(values) for n in rows)
    return exact and _few(high, math.exp(-depth) * len(held))


def _hll_holds(operator: Operator, values: list[Any], got: Any, lg_k: int) -> bool:
    """True if the estimate is within four standard errors, and nearly exact for a few values."""
    # A number as an integer and as a float may count once or twice.
    low, high = len(distinct(values)), len(_tallied(values))
    error = 4 / 2 ** (lg_k / 2)
    return isinstance(got, float) and low * (1 - error) - 0.05 <= got <= high * (1 + error) + 0.05


def _quantiles_hold(operator: Operator, values: list[Any], got: Any, k: int) -> bool:
    """True if each answer is one of the values, at its rank, and exact for up to k values."""
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
    """True if no frequent value is missing, and no count is off by more than the bound."""
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


PROMISES: dict[str, Callable[..., bool]] = {
    "bloom": _bloom_holds,
    "count_min": _count_min_holds,
    "hll": _hll_holds,
    "quantiles": _quantiles_hold,
    "top_k": _top_k_holds,
}
