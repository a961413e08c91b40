"""Operators that answer from all values in order, exactly: quantiles, the most frequent value.

Their partials grow with the window.  The partial of a quantile is the sorted run of the values; two
runs merge in one pass.  `quantiles` estimates in fixed space.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .codec import decode_value, encode_value
from .collection import _key
from .contract import Operator, itself, ready
from .numeric import _number
from .ranks import rank

__all__ = ["median", "mode", "quantile"]


# quantiles: a sorted run of doubles, as bytes; NaN is the greatest number, and there is one zero


def _run(x: Any) -> bytes:
    v = float(_number(x)) + 0.0
    return np.float64(math.nan if v != v else v).tobytes()


def _merged(a: bytes, b: bytes) -> bytes:
    if not a:
        return b
    if not b:
        return a
    # this sort merges two neighbouring runs in one pass
    return np.sort(np.frombuffer(a + b), kind="stable").tobytes()


def interpolated(low: float, high: float, place: float, below: int) -> float:
    """The value between two neighbours in order, where `below` is the position of the lower one, as
    Spark's `percentile` computes it.

    >>> interpolated(1.0, 3.0, 4.5, 4)
    2.0
    """
    if low == high or place == below:
        return low
    return low + (high - low) * (place - below)


def quantile(at: float) -> Operator:
    """The exact quantile at the rank `at`, interpolated between its two neighbours; null if there
    are no values.

    It is Spark's `percentile`, DuckDB's `quantile_cont` and pandas' `quantile`; NaN is the greatest
    number.

    >>> op = quantile(0.75)
    >>> op.lower(op.fold([3, 1, None, 2]))
    2.5
    """
    if isinstance(at, bool) or not isinstance(at, int | float | np.number):
        raise TypeError(f"at is a rank from 0 to 1, such as 0.9, not {at!r}")
    share = float(at)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"at is a rank from 0 to 1, not {at!r}")

    def lower(a: bytes) -> float | None:
        if not a:
            return None
        values = np.frombuffer(a)
        place = share * (len(values) - 1)
        below = int(place)
        above = min(below + 1, len(values) - 1)
        return interpolated(float(values[below]), float(values[above]), place, below)

    made = Operator(
        f"quantile({share!r})",
        b"",
        _run,
        _merged,
        lower,
        commutative=True,
        encode=itself,
        decode=bytes,
        typed=_numbers_only,
    )
    return ready(made, parameters=(share,))


def _numbers_only(types: tuple[str, ...]) -> None:
    if types[0] == "timestamp":
        raise TypeError("a quantile takes numbers, not a column of timestamp")


#: The exact median: the quantile at 0.5.
median = ready(dataclasses.replace(quantile(0.5), name="median"))


# mode: the count of each value, under a key that is equal for equal values


def _once(x: Any) -> Any:
    if isinstance(x, float) and x == 0.0:
        x = 0.0
    return {_key(x): (x, 1)}


def _tallied(a: Any, b: Any) -> Any:
    if not a:
        return b
    if not b:
        return a
    made = dict(a)
    for key, (value, count) in b.items():
        before = made.get(key)
        made[key] = (value, count) if before is None else (before[0], before[1] + count)
    return made


def _most_frequent(a: Any) -> Any:
    if not a:
        return None
    most = max(count for _, count in a.values())
    to_key = rank("object").key
    return min((value for value, count in a.values() if count == most), key=to_key)


def _counts(a: Any) -> Any:
    return {key: count for key, (_, count) in a.items()}


#: The most frequent value, and the least of several such values; null if there are none.
mode = ready(
    Operator(
        "mode",
        {},
        _once,
        _tallied,
        _most_frequent,
        commutative=True,
        encode=lambda a: encode_value(tuple(a.values())),
        decode=lambda data: {_key(x): (x, n) for x, n in decode_value(data)},
        equal=lambda a, b: _counts(a) == _counts(b),
    )
)
