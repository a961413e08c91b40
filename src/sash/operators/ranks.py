"""Turn values into keys that compare by plain `<`, for operators that compare values.

NaN is the greatest number, as in Spark, and -0.0 equals 0.0; neither Python nor the processor
orders NaN.  A float becomes the integer with the same rank in that order, so a comparison is one
instruction, and an integer below all of them is free to mean empty.

Structs (dicts) and lists have Spark's order too: field by field, with null below everything else,
and a list below any longer list that begins with it.  Python compares no dicts, and nothing with
None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contract import itself

__all__ = ["ABOVE", "BELOW", "Rank", "rank", "zero_of"]

#: Keys below and above that of every float.
BELOW, ABOVE = -(2**63), 2**63 - 1

_NAN = 0x7FF8000000000000
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


@dataclass(frozen=True)
class Rank:
    """Converts values of a type to keys and back; `zero` is some key, for empty fields."""

    key: Callable[[Any], Any]
    value: Callable[[Any], Any]
    zero: Any
    returns: str = ""


def rank(type_: str) -> Rank:
    """The conversion for the values of a column type."""
    if type_ == "float64":
        return Rank(float_key, float_value, 0)
    if type_ == "bool":
        return Rank(_int, _bool, 0)
    if type_ == "int64":
        return Rank(_int, itself, 0)
    if type_ == "timestamp":
        return Rank(_int, itself, 0, "timestamp")
    return Rank(_object_key, _object_value, None)


def zero_of(type_: str) -> Any:
    """Some value of a type, for a field that holds none."""
    return {"float64": 0.0, "int64": 0, "timestamp": 0, "bool": False}.get(type_)


def float_key(value: float) -> int:
    """The integer with a float's rank in the order of floats, NaN last.

    >>> float_key(-1.5) < float_key(0.0) == float_key(-0.0) < float_key(float("nan"))
    True
    """
    if value != value:
        return _NAN
    bits = int(np.float64(value + 0.0).view(np.int64))
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def signed_key(value: float) -> int:
    """`float_key` with -0.0 below 0.0, so that the choice between zeros does not depend on order.

    >>> signed_key(-1.5) < signed_key(-0.0) < signed_key(0.0) == float_key(0.0)
    True
    """
    if value != value:
        return _NAN
    bits = int(np.float64(value).view(np.int64))
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def signed_keys(values: Any) -> Any:
    """`signed_key` of each float in an array.

    >>> signed_keys(np.array([-1.5, -0.0, np.nan])).tolist() == [
    ...     signed_key(x) for x in (-1.5, -0.0, np.nan)
    ... ]
    True
    """
    bits = values.view(np.int64)
    return np.where(np.isnan(values), _NAN, bits ^ ((bits >> 63) & _MAGNITUDE))


def sign_of_zero(value: Any) -> int:
    """-1 for -0.0 and 0 for every other value.

    >>> sign_of_zero(-0.0), sign_of_zero(0.0), sign_of_zero(-2.5), sign_of_zero("text")
    (-1, 0, 0, 0)
    """
    if isinstance(value, float) and value == 0 and math.copysign(1.0, value) < 0:
        return -1
    return 0


def float_value(key: int) -> float:
    """The float with this key, from `float_key` or `signed_key`."""
    return float(np.int64(key ^ ((key >> 63) & _MAGNITUDE)).view(np.float64))


def _int(value: Any) -> int:
    return int(value)


def _bool(key: int) -> bool:
    return key != 0


def _object_key(value: Any) -> Any:
    """A pair or triple: whether the value is NaN, its sort key, and for a nested value its shape,
    from which the value can be rebuilt."""
    kind = type(value)
    if kind is dict:
        return (0, tuple(map(_part_key, value.values())), tuple(value))
    if kind is list or kind is tuple:
        return (0, tuple(map(_part_key, value)), kind is tuple)
    return (1, 0.0) if value != value else (0, value)


def _object_value(key: Any) -> Any:
    if len(key) == 2:
        return float("nan") if key[0] else key[1]
    _, parts, shape = key
    if isinstance(shape, tuple):
        return dict(zip(shape, map(_part_value, parts), strict=True))
    return (tuple if shape else list)(map(_part_value, parts))


def _part_key(value: Any) -> Any:
    """The sort key of a field of a struct or an element of a list; null sorts first."""
    return (-1,) if value is None else _object_key(value)


def _part_value(key: Any) -> Any:
    return None if key == (-1,) else _object_value(key)
