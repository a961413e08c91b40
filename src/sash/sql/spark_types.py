"""Spark's types of values, and the common type of two of them, in its default (ANSI) mode.

    tinyint < smallint < int < bigint < decimal < float < double

If an integer or a decimal meets a float, both become doubles, so that no digits are lost.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..tables.type_names import PLAIN
from .values import Unusable

__all__ = [
    "as_decimal",
    "common_type",
    "is_number",
    "result_decimal",
    "spark_name",
    "type_named",
]

_is = pa.types
_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
#: The largest number of digits of an integer type.
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}

_NAMED = {
    **PLAIN,
    "decimal": pa.decimal128(10, 0),
    "dec": pa.decimal128(10, 0),
    "numeric": pa.decimal128(10, 0),
    "varchar": pa.string(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
}
#: The names of types that CAST knows.
TYPE_NAMES = tuple(n for n in _NAMED if n not in ("dec", "byte", "short", "long", "varchar"))


def type_named(name: str) -> pa.DataType | None:
    """The type of a name in SQL; None if there is none."""
    base, _, rest = name.partition("(")
    if base in ("decimal", "dec", "numeric") and rest:
        digits = rest.rstrip(")").split(",")
        if all(d.isdigit() for d in digits) and 1 <= len(digits) <= 2:
            precision, scale = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
            if 1 <= precision <= 38 and scale <= precision:
                return pa.decimal128(precision, scale)
        return None
    return None if rest else _NAMED.get(base)


def spark_name(kind: pa.DataType) -> str:
    """Spark's name of a type."""
    for name, known in _NAMED.items():
        if known == kind:
            return name
    if _is.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if _is.is_timestamp(kind):
        return "timestamp"
    return str(kind)


def is_number(kind: pa.DataType) -> bool:
    """True for integers, floats and decimals."""
    return bool(_is.is_integer(kind) or _is.is_floating(kind) or _is.is_decimal(kind))


def as_decimal(kind: pa.DataType, literal: Any = None) -> pa.DataType:
    """The decimal type that holds all integers of a type, or the digits of a literal."""
    if _is.is_decimal(kind):
        return kind
    if literal is not None and kind != pa.int8():  # Spark ignores the literals of this type
        return pa.decimal128(max(1, len(str(abs(int(literal))))), 0)
    return pa.decimal128(_DIGITS[kind], 0)


def common_type(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    """The type in which to compare values of two types, or the type of a result of both."""
    if one == two:
        return one
    if _is.is_null(one) or _is.is_null(two):
        return two if _is.is_null(one) else one
    if _is.is_string(one) or _is.is_string(two):
        other = two if _is.is_string(one) else one
        if _is.is_integer(other):
            return pa.int64()
        if is_number(other):
            return pa.float64()
        if _is.is_boolean(other) or _is.is_date(other) or _is.is_timestamp(other):
            return other
        raise _nothing_common(one, two)
    if is_number(one) and is_number(two):
        return _common_number(one, two)
    if _is.is_timestamp(one) and _is.is_timestamp(two):
        return one if one.tz else two
    if {_is.is_date(one) or _is.is_timestamp(one), _is.is_date(two) or _is.is_timestamp(two)} == {
        True
    }:
        return two if _is.is_date(one) else one
    raise _nothing_common(one, two)


def _nothing_common(one: pa.DataType, two: pa.DataType) -> Unusable:
    return Unusable(
        f"{spark_name(one)} and {spark_name(two)} have no type in common; write CAST(… AS "
        f"{spark_name(one)})"
    )


def _common_number(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    if _is.is_floating(one) or _is.is_floating(two):
        return pa.float32() if one == two == pa.float32() else pa.float64()
    if _is.is_decimal(one) or _is.is_decimal(two):
        a, b = as_decimal(one), as_decimal(two)
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        return _adjusted(whole + scale, scale)
    return _WHOLE[max(_WHOLE.index(one), _WHOLE.index(two))]


def result_decimal(op: str, one: pa.DataType, two: pa.DataType) -> pa.DataType:
    """The type of a sum, product, quotient or remainder of two decimals."""
    p1, s1, p2, s2 = one.precision, one.scale, two.precision, two.scale
    if op in "+-":
        scale = max(s1, s2)
        return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if op == "*":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if op == "/":
        scale = max(6, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def _adjusted(precision: int, scale: int) -> pa.DataType:
    """Limit a decimal to 38 digits; at least six stay after the point, if it has so many."""
    if precision <= 38:
        return pa.decimal128(precision, scale)
    least = min(scale, 6)
    return pa.decimal128(38, max(38 - (precision - scale), least))
