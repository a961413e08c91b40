"""Operators that depend on time: a mean that weights by age, and a rate per second."""

from __future__ import annotations

import dataclasses
from typing import Any

from .contract import Operator, ready
from .numeric import (
    _add,
    _any_lift,
    _float_lift,
    _float_sum,
    _int_lift,
    _numbers,
    _pair_add,
    _sum,
    close,
    int_total,
)
from .position import check_whole

__all__ = ["ewm", "rate"]


# ewm: (the youngest time, the sum of the values decayed to it, the sum of their weights)


def ewm(half_life: int) -> Operator:
    """Of (value, time): the mean weighted by age, where a value counts half as much for each
    half-life, in microseconds, that it is older than the youngest value; null if there are none.

    It is pandas' `ewm(halflife=…, times=…).mean()`.

    >>> op = ewm(10)
    >>> op.lower(op.fold([(1.0, 0), (4.0, 10)]))
    3.0
    """
    check_whole("half_life of ewm", half_life)

    def lift(x: Any, time: Any) -> Any:
        return (int(time), float(x), 1.0)

    def combine(a: Any, b: Any) -> Any:
        if a[2] == 0.0:
            return b
        if b[2] == 0.0:
            return a
        if a[0] <= b[0]:
            share = 0.5 ** (float(b[0] - a[0]) / half_life)
            if share == 0.0:  # of which even infinity is nothing
                return b
            return (b[0], a[1] * share + b[1], a[2] * share + b[2])
        share = 0.5 ** (float(a[0] - b[0]) / half_life)
        if share == 0.0:
            return a
        return (a[0], a[1] + b[1] * share, a[2] + b[2] * share)

    def lower(a: Any) -> Any:
        return a[1] / a[2] if a[2] != 0.0 else None

    def typed(types: tuple[str, ...]) -> Operator | None:
        if types[0] not in ("int64", "float64", "bool"):
            raise TypeError(f"ewm takes numbers, not a column of {types[0]}")
        if types[1] not in ("int64", "timestamp"):
            raise TypeError(f"ewm takes times, not a column of {types[1]}")
        return dataclasses.replace(made, lift=lift_bool) if types[0] == "bool" else None

    def lift_bool(x: Any, time: Any) -> Any:
        return (int(time), float(int(x)), 1.0)

    made = Operator(
        f"ewm({half_life})",
        (0, 0.0, 0.0),
        lift,
        combine,
        lower,
        commutative=True,
        equal=close,
        skips=(True, True),
        typed=typed,
    )
    return ready(made, parameters=(half_life,))


# rate: a sum, or a number of rows, divided by the length of the window. It has lifts of its own,
# because operators with the same lift may share a partial.


def _float_value(x: Any) -> float:
    return _float_lift(x)


def _int_value(x: Any) -> Any:
    return _int_lift(x)


def _row(x: Any) -> int:
    return 1


def rate(seconds: float | None = None, rows: bool = False) -> Operator:
    """The sum of the values, or with `rows` the number of rows, per second of a window of
    `seconds`; null if there are no values, but 0 if there are no rows.

    In a query the window gives the length.

    >>> op = rate(60.0)
    >>> op.lower(op.fold([30, None, 90]))
    2.0
    """
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ValueError(f"a rate divides by a length of time in seconds, not {seconds!r}")
    said = [*([] if seconds is None else [repr(seconds)]), *(["rows"] if rows else [])]
    name = f"rate({', '.join(said)})" if said else "rate"
    length = 0.0 if seconds is None else float(seconds)

    def by_length(total: float) -> float:
        if length == 0.0:
            raise ValueError(
                "rate needs the length of the window: give its seconds, or use sash.rate in a query"
            )
        return total / length

    def lower_float(a: Any) -> float | None:
        total = _float_sum(a)
        return None if total is None else by_length(total)

    def lower_int(a: Any) -> float | None:
        return by_length(int_total(a)) if a[0] != 0 else None

    if rows:
        made = Operator(
            name, 0, _row, _add, lambda n: by_length(float(n)), commutative=True, skips=(False,)
        )
        return ready(made, parameters=(seconds, True))

    def typed(types: tuple[str, ...]) -> Operator:
        _numbers("rate", types)
        made = dataclasses.replace(_sum(types), serves=())
        if types[0] == "float64":
            return dataclasses.replace(made, lift=_float_value, lower=lower_float)
        return dataclasses.replace(made, lift=_int_value, lower=lower_int)

    def lower(a: Any) -> float | None:
        return by_length(float(a[1])) if a[0] else None

    generic = Operator(
        name, (0, 0), _any_lift, _pair_add, lower, commutative=True, equal=close, typed=typed
    )
    return ready(generic, parameters=(seconds, False))
