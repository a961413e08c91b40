"""Operators that pick by position: the first, the last, the n-th, and M4's four points.

The position follows the order in which partials combine: event time, then order of arrival.  A null
has a position like any other value; `.ignore_nulls()` leaves out nulls.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .codec import decode_value, encode_value
from .contract import Operator, itself, ready
from .ranks import rank, zero_of

__all__ = ["change", "first", "first_n", "last", "last_n", "m4", "nth_youngest"]


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise an error if a parameter is no whole number, or out of range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {allowed}, not {value}")


def _codec(types: tuple[str, ...]) -> dict[str, Any]:
    """Encode and decode for partials that are objects."""
    return {"encode": encode_value, "decode": decode_value} if "object" in types else {}


# first and last: (count of rows, the picked value is not null, the picked value)


def _first(types: tuple[str, ...]) -> Operator:
    zero = zero_of(types[0])

    def lift(x: Any) -> Any:
        if x is None:
            return (1, False, zero)
        return (1, True, x)

    def combine(a: Any, b: Any) -> Any:
        if a[0] == 0:
            return b
        return (a[0] + b[0], a[1], a[2])

    return Operator(
        "first",
        (0, False, zero),
        lift,
        combine,
        _picked,
        skips=(False,),
        returns=(rank(types[0]).returns,),
        typed=_first,
        **_codec(types),
    )


def _last(types: tuple[str, ...]) -> Operator:
    zero = zero_of(types[0])

    def combine(a: Any, b: Any) -> Any:
        if b[0] == 0:
            return a
        return (a[0] + b[0], b[1], b[2])

    def inverse(total: Any, old: Any) -> Any:
        if total[0] == old[0]:
            return (0, False, zero)
        return (total[0] - old[0], total[1], total[2])

    return dataclasses.replace(
        _first(types), name="last", combine=combine, inverse=inverse, typed=_last
    )


def _picked(a: Any) -> Any:
    return a[2] if a[1] else None


#: The first value, which may be null; `first.ignore_nulls()` takes the first non-null value.
first = ready(_first(("object",)))
#: The last value, which may be null; `last.ignore_nulls()` takes the last non-null value.
last = ready(_last(("object",)))


# change: (there is a value, the first one, the last one)


def _change(types: tuple[str, ...]) -> Operator:
    kind, zero = types[0], zero_of(types[0])
    integer = kind in ("int64", "bool", "timestamp")

    def lift(x: Any) -> Any:
        return (True, x, x)

    def combine(a: Any, b: Any) -> Any:
        if not a[0]:
            return b
        if not b[0]:
            return a
        return (True, a[1], b[2])

    def lower(a: Any) -> Any:
        return a[2] - a[1] if a[0] else None

    def lower_integer(a: Any) -> Any:
        if not a[0]:
            return None
        first, last = int(a[1]), int(a[2])
        if first < 0 and last > 9223372036854775807 + first:
            raise OverflowError("the change leaves int64")
        if first > 0 and last < -9223372036854775807 - 1 + first:
            raise OverflowError("the change leaves int64")
        return last - first

    def lower_any(a: Any) -> Any:
        if not a[0]:
            return None
        try:
            return difference(int(a[2]) - int(a[1]) if isinstance(a[1], bool) else a[2] - a[1])
        except TypeError:
            raise TypeError(
                f"change takes values that can be subtracted, such as numbers, not {a[2]!r}"
            ) from None

    def difference(found: Any) -> Any:
        if isinstance(found, int) and not -(2**63) <= found < 2**63:
            raise OverflowError("the change leaves int64")
        return found

    return Operator(
        "change",
        (False, zero, zero),
        lift,
        combine,
        lower_integer if integer else lower if kind == "float64" else lower_any,
        typed=_change,
        **_codec(types),
    )


#: The last value minus the first, without nulls; null if there are none.
change = ready(_change(("object",)))


# first_n and last_n: the tuple of the values


def _one(x: Any) -> Any:
    return (x,)


def _tuples(name: str, n: int, combine: Any, lower: Any) -> Operator:
    made = Operator(
        f"{name}({n})",
        (),
        _one,
        combine,
        lower,
        skips=(False,),
        encode=encode_value,
        decode=decode_value,
    )
    return ready(made, parameters=(n,))


def first_n(n: int) -> Operator:
    """The first `n` values in order, nulls included; fewer if there are fewer.

    >>> op = first_n(2)
    >>> op.lower(op.fold([5, None, 7]))
    (5, None)
    """
    check_whole("n of first_n", n)

    def combine(a: Any, b: Any) -> Any:
        return a if len(a) == n else (a + b)[:n]

    return _tuples("first_n", n, combine, itself)


def last_n(n: int) -> Operator:
    """The last `n` values in order, nulls included; fewer if there are fewer.

    >>> op = last_n(2)
    >>> op.lower(op.fold([5, None, 7]))
    (None, 7)
    """
    return _tuples("last_n", n, _keep_last("n of last_n", n), itself)


def nth_youngest(i: int) -> Operator:
    """The `i`-th value from the end, where 1 is the last; null if there are fewer.

    >>> op = nth_youngest(2)
    >>> op.lower(op.fold([5, 6, 7]))
    6
    """
    combine = _keep_last("i of nth_youngest", i)

    def lower(a: Any) -> Any:
        return a[0] if len(a) == i else None

    return _tuples("nth_youngest", i, combine, lower)


def _keep_last(what: str, n: int) -> Any:
    check_whole(what, n)

    def combine(a: Any, b: Any) -> Any:
        return b if len(b) == n else (a + b)[-n:]

    return combine


# m4: (there is a value, first time and value, last time and value, time and key of the least,
# time and key of the greatest)


def _m4(types: tuple[str, ...]) -> Operator:
    if "object" in types:
        types = ("object", "object")
    at, nothing = zero_of(types[0]), zero_of(types[1])
    r = rank(types[1])
    to_key, to_value = r.key, r.value

    def lift(time: Any, x: Any) -> Any:
        k = to_key(x)
        return (True, time, x, time, x, time, k, time, k)

    def combine(a: Any, b: Any) -> Any:
        if not a[0]:
            return b
        if not b[0]:
            return a
        low_time, low = a[5], a[6]
        if b[6] < a[6]:
            low_time, low = b[5], b[6]
        high_time, high = a[7], a[8]
        if b[8] > a[8]:
            high_time, high = b[7], b[8]
        return (True, a[1], a[2], b[3], b[4], low_time, low, high_time, high)

    def lower(a: Any) -> Any:
        if not a[0]:
            return None
        return (a[1], a[2], a[3], a[4], a[5], to_value(a[6]), a[7], to_value(a[8]))

    return Operator(
        "m4",
        (False, at, nothing, at, nothing, at, r.zero, at, r.zero),
        lift,
        combine,
        lower,
        skips=(True, True),
        fields=(
            "first_time", "first", "last_time", "last",
            "min_time", "min", "max_time", "max",
        ),
        returns=(rank(types[0]).returns, r.returns) * 4,
        typed=_m4,
        **_codec(types),
    )  # fmt: skip


#: Of (time, value): the first, last, least and greatest value, each with its time (M4, Jugel et
#: al., VLDB 2014); the first of equal values.  These four points draw a window's line without
#: error.
m4 = ready(_m4(("object", "object")))
