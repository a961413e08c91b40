"""Operators that compare values: the least, the greatest, and the value of the row with either.

NaN is the greatest number; of equal values, the first in order wins.  Of zeros, min keeps -0.0 and
max keeps 0.0, so that both commute.  Spark keeps the first zero that it meets, so both zeros are
right there; if all zeros are alike, sash and Spark keep the same one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .codec import decode_value, encode_value
from .contract import Operator, ready
from .ranks import ABOVE, BELOW, float_value, rank, sign_of_zero, signed_key, zero_of

__all__ = ["arg_max", "arg_min", "max", "max_count", "min", "min_count", "span"]


def _extreme(name: str, type_: str, *, greatest: bool) -> Operator:
    """min or max; the partial is (there is a value, its key)."""
    r = rank(type_)
    to_key, to_value = r.key, r.value
    beats = _beats(greatest)

    def lift(x: Any) -> Any:
        return (True, to_key(x))

    def combine(a: Any, b: Any) -> Any:
        if not b[0]:
            return a
        if not a[0] or beats(b[1], a[1]):
            return b
        return a

    def lower(a: Any) -> Any:
        return to_value(a[1]) if a[0] else None

    return Operator(
        name,
        (False, r.zero),
        lift,
        combine,
        lower,
        commutative=True,
        returns=(r.returns,),
        **_codec(type_),
    )


def _object_extreme(name: str, *, greatest: bool) -> Operator:
    """min or max of objects; the partial is (there is a value, its key and the sign of a zero)."""
    r = rank("object")

    def lift(x: Any) -> Any:
        return (True, (r.key(x), sign_of_zero(x)))

    def lower(a: Any) -> Any:
        return r.value(a[1][0]) if a[0] else None

    return dataclasses.replace(_extreme(name, "object", greatest=greatest), lift=lift, lower=lower)


def _float_extreme(name: str, *, greatest: bool) -> Operator:
    """min or max of floats; the partial is the key alone, and a key beyond all floats means
    empty."""
    empty = BELOW if greatest else ABOVE

    def lower(key: int) -> float | None:
        return None if key == empty else float_value(key)

    combine = _larger if greatest else _smaller
    return Operator(name, empty, signed_key, combine, lower, commutative=True)


def _larger(a: int, b: int) -> int:
    return a if a >= b else b


def _smaller(a: int, b: int) -> int:
    return a if a <= b else b


def _above(a: Any, b: Any) -> bool:
    return a > b  # type: ignore[no-any-return]


def _below(a: Any, b: Any) -> bool:
    return a < b  # type: ignore[no-any-return]


def _beats(greatest: bool) -> Callable[[Any, Any], bool]:
    return _above if greatest else _below


def _codec(type_: str) -> dict[str, Any]:
    """Encode and decode for partials that are objects."""
    return {"encode": encode_value, "decode": decode_value} if type_ == "object" else {}


def _make_extreme(name: str, *, greatest: bool) -> Operator:
    def typed(types: tuple[str, ...]) -> Operator | None:
        if types[0] == "float64":
            return _float_extreme(name, greatest=greatest)
        return _extreme(name, types[0], greatest=greatest)

    return _with(_object_extreme(name, greatest=greatest), typed)


def _with(generic: Operator, typed: Callable[[tuple[str, ...]], Operator | None]) -> Operator:
    return ready(dataclasses.replace(generic, typed=typed))


def _span(type_: str) -> Operator:
    """max - min; the partial is (there is a value, least key, greatest key)."""
    r = rank(type_)
    to_key, to_value = r.key, r.value
    integer = type_ in ("int64", "bool", "timestamp")

    def lift(x: Any) -> Any:
        k = to_key(x)
        return (True, k, k)

    def combine(a: Any, b: Any) -> Any:
        if not a[0]:
            return b
        if not b[0]:
            return a
        return (True, b[1] if b[1] < a[1] else a[1], b[2] if b[2] > a[2] else a[2])

    def lower(a: Any) -> Any:
        return to_value(a[2]) - to_value(a[1]) if a[0] else None

    def lower_any(a: Any) -> Any:
        try:
            found = lower(a)
        except TypeError:
            raise TypeError(
                "span takes values that can be subtracted, such as numbers and times, not "
                f"{to_value(a[2])!r}"
            ) from None
        if isinstance(found, int) and found >= 2**63:
            raise OverflowError("the span leaves int64")
        return found

    def lower_integer(a: Any) -> Any:
        if not a[0]:
            return None
        if a[1] < 0 and a[2] > 9223372036854775807 + a[1]:
            raise OverflowError("the span leaves int64")
        return int(a[2]) - int(a[1])

    return Operator(
        "span",
        (False, r.zero, r.zero),
        lift,
        combine,
        lower_integer if integer else lower if type_ == "float64" else lower_any,
        commutative=True,
        **_codec(type_),
    )


def _extreme_count(name: str, type_: str, *, greatest: bool) -> Operator:
    """Counts the least or greatest value; the partial is (count, its key)."""
    r = rank(type_)
    to_key = r.key
    beats = _beats(greatest)

    def lift(x: Any) -> Any:
        return (1, to_key(x))

    def combine(a: Any, b: Any) -> Any:
        if a[0] == 0:
            return b
        if b[0] == 0:
            return a
        if a[1] == b[1]:
            return (a[0] + b[0], a[1])
        return b if beats(b[1], a[1]) else a

    def lower(a: Any) -> Any:
        return a[0]

    return Operator(name, (0, r.zero), lift, combine, lower, commutative=True, **_codec(type_))


def _make_extreme_count(name: str, *, greatest: bool) -> Operator:
    def typed(types: tuple[str, ...]) -> Operator:
        return _extreme_count(name, types[0], greatest=greatest)

    return _with(_extreme_count(name, "object", greatest=greatest), typed)


def _arg(name: str, types: tuple[str, ...], *, greatest: bool) -> Operator:
    """The value of the row whose `by` is least or greatest; the partial is (there is a row, the key
    of its `by`, its value is not null, its value)."""
    zero, r = zero_of(types[0]), rank(types[1])
    to_key = r.key
    beats = _beats(greatest)

    def lift(value: Any, by: Any) -> Any:
        if value is None:
            return (True, to_key(by), False, zero)
        return (True, to_key(by), True, value)

    def combine(a: Any, b: Any) -> Any:
        if not b[0]:
            return a
        if not a[0] or beats(b[1], a[1]):
            return b
        return a

    def lower(a: Any) -> Any:
        return a[3] if a[0] and a[2] else None

    return Operator(
        name,
        (False, r.zero, False, zero),
        lift,
        combine,
        lower,
        skips=(False, True),
        returns=(rank(types[0]).returns,),
        **_codec("object" if "object" in types else ""),
    )


def _make_arg(name: str, *, greatest: bool) -> Operator:
    def typed(types: tuple[str, ...]) -> Operator:
        return _arg(name, types, greatest=greatest)

    return _with(_arg(name, ("object", "object"), greatest=greatest), typed)


#: The least value, which is NaN only if all values are.
min = _make_extreme("min", greatest=False)
#: The greatest value, where NaN is above all numbers.
max = _make_extreme("max", greatest=True)
#: The greatest value minus the least.
span = _with(_span("object"), lambda types: _span(types[0]))
#: The number of values that equal the least.
min_count = _make_extreme_count("min_count", greatest=False)
#: The number of values that equal the greatest.
max_count = _make_extreme_count("max_count", greatest=True)
#: Of rows (value, by): the value of the row whose `by` is least; the first of several such rows.
arg_min = _make_arg("arg_min", greatest=False)
#: Of rows (value, by): the value of the row whose `by` is greatest; the first of several such rows.
arg_max = _make_arg("arg_max", greatest=True)
