"""Arithmetic and comparisons as in Spark's ANSI mode: a row that overflows or divides by zero
fails; NaN equals NaN and is the greatest number."""

from __future__ import annotations

import decimal
import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .casts import cast, fitted_decimal, fitted_numbers, floats, zero_of
from .spark_types import as_decimal, common_type, is_number, result_decimal, spark_name
from .values import Unusable, Value, as_mask, checked

__all__ = ["arithmetic", "compare", "negated", "whole_quotient"]

_is = pa.types
_MOST = 76  # digits of Arrow's decimals
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def arithmetic(
    op: str, a: Value, b: Value, rows: int, literals: tuple[Any, Any] = (None, None)
) -> Value:
    """`a op b`, where op is one of + - * / %.  Whole numbers from the text come as written, because
    a decimal takes its digits from them."""
    failed = a.failed + b.failed
    for side in (a, b):
        if not (is_number(side.type) or _is.is_string(side.type) or _is.is_null(side.type)):
            raise Unusable(f"{op} takes numbers, not {spark_name(side.type)}")
    if _is.is_null(a.type) and _is.is_null(b.type):
        return Value(pa.scalar(None, pa.float64()), failed)
    if _is.is_string(a.type) and _is.is_string(b.type):
        a, b = (cast(Value(x.data), pa.float64(), rows, None) for x in (a, b))
        failed += a.failed + b.failed
    elif _is.is_string(a.type) or _is.is_string(b.type):
        kind = common_type(a.type, b.type)
        a, b = (
            cast(Value(x.data), kind, rows, None) if _is.is_string(x.type) else x for x in (a, b)
        )
        failed += a.failed + b.failed
    if _is.is_null(a.type):
        a = Value(pa.scalar(None, b.type))
    if _is.is_null(b.type):
        b = Value(pa.scalar(None, a.type))
    some_decimal = _is.is_decimal(a.type) or _is.is_decimal(b.type)
    if some_decimal and not (_is.is_floating(a.type) or _is.is_floating(b.type)):
        made = _decimal(op, a, b, rows, literals)
    elif op == "/":
        made = _divided(_to(a, pa.float64()), _to(b, pa.float64()), rows, "division")
    else:
        kind = common_type(a.type, b.type)
        x, y = _to(a, kind), _to(b, kind)
        if op == "%":
            made = _rest(x, y, rows)
        else:
            made = checked(
                _CHECKED[op],
                (x, y),
                rows,
                lambda p, q: f"{p} {op} {q} is beyond {spark_name(kind)}",
            )
    return Value(made.data, failed + made.failed)


def _to(value: Value, kind: pa.DataType) -> Any:
    if value.type == kind:
        return value.data
    return floats(value.data, kind) if _is.is_floating(kind) else value.data.cast(kind, safe=False)


def _zeros(x: Any, y: Any, rows: int) -> Any:
    """True where a divisor is zero and the dividend is not null."""
    zero = pc.equal(y, zero_of(y.type))
    return as_mask(pc.and_(pc.is_valid(x), zero), rows) if _valid(x) else np.zeros(rows, dtype=bool)


def _valid(x: Any) -> bool:
    return not isinstance(x, pa.Scalar) or x.is_valid


def _without(y: Any, bad: Any, rows: int) -> Any:
    """The divisors, with null in place of zero."""
    if not bad.any():
        zero = pc.equal(y, zero_of(y.type))
        if isinstance(y, pa.Scalar):
            return pa.scalar(None, y.type) if zero.as_py() else y
        return pc.if_else(zero.fill_null(False), pa.scalar(None, y.type), y)
    array = pa.repeat(y, rows) if isinstance(y, pa.Scalar) else y
    return pc.if_else(pa.array(bad), pa.scalar(None, y.type), array)


def _divided(x: Any, y: Any, rows: int, what: str) -> Value:
    bad = _zeros(x, y, rows)
    made = pc.divide(x, _without(y, bad, rows))
    return Value(made, ((bad, f"{what} by zero"),) if bad.any() else ())


def _rest(x: Any, y: Any, rows: int) -> Value:
    """The remainder of a division, with the sign of the dividend."""
    bad = _zeros(x, y, rows)
    y = _without(y, bad, rows)
    if _is.is_floating(y.type):
        left, right = (
            np.asarray(pa.repeat(s, rows) if isinstance(s, pa.Scalar) else s, dtype=float)
            for s in (x, y)
        )
        with np.errstate(all="ignore"):
            rest = np.fmod(left, right)
        nulls = ~(as_mask(pc.is_valid(x), rows) & as_mask(pc.is_valid(y), rows))
        made = pa.array(rest, mask=nulls).cast(y.type)
    else:
        # the least integer divided by -1 does not fit, and its remainder is zero
        one = pc.equal(y, pa.scalar(-1, y.type))
        by = pc.if_else(one, pa.scalar(1, y.type), y)
        made = pc.subtract(x, pc.multiply(pc.divide(x, by), by))
    return Value(made, ((bad, "division by zero"),) if bad.any() else ())


def whole_quotient(a: Value, b: Value, rows: int) -> Value:
    """`a DIV b`: the whole part of a quotient, a bigint."""
    for side in (a, b):
        if not (_is.is_integer(side.type) or _is.is_decimal(side.type) or _is.is_null(side.type)):
            raise Unusable(f"DIV takes whole numbers and decimals, not {spark_name(side.type)}")
    if _is.is_null(a.type) or _is.is_null(b.type):
        return Value(pa.scalar(None, pa.int64()), a.failed + b.failed)
    if _is.is_decimal(a.type) or _is.is_decimal(b.type):
        return _whole_decimals(a, b, rows)
    x, y = _to(a, pa.int64()), _to(b, pa.int64())
    bad = _zeros(x, y, rows)
    made = checked(
        pc.divide_checked,
        (x, _without(y, bad, rows)),
        rows,
        lambda p, q: f"{p} DIV {q} is beyond bigint",
    )
    noted = ((bad, "division by zero"),) if bad.any() else ()
    return Value(made.data, a.failed + b.failed + noted + made.failed)


def _whole_decimals(a: Value, b: Value, rows: int) -> Value:
    x, y = (_wide(v, _MOST, as_decimal(v.type).scale) for v in (a, b))
    bad = _zeros(x, y, rows)
    pairs = zip(*(Value(s).array(rows).to_pylist() for s in (x, y)), strict=True)
    with decimal.localcontext(prec=200):
        made = [None if p is None or not q else int(p / q) for p, q in pairs]
    beyond = np.array([n is not None and not -(2**63) <= n < 2**63 for n in made], dtype=bool)
    failed = ((bad, "division by zero"), (beyond, "DIV is beyond bigint"))
    held = [None if out else n for n, out in zip(made, beyond, strict=True)]
    noted = tuple((mask, why) for mask, why in failed if mask.any())
    return Value(pa.array(held, pa.int64()), a.failed + b.failed + noted)


def _decimal(op: str, a: Value, b: Value, rows: int, literals: tuple[Any, Any]) -> Value:
    one = as_decimal(a.type, literals[0] if _is.is_integer(a.type) else None)
    two = as_decimal(b.type, literals[1] if _is.is_integer(b.type) else None)
    wanted = result_decimal(op, one, two)
    x = _wide(a, one.precision, one.scale)
    y = _wide(b, two.precision, two.scale)
    noted: Any = ()
    if op in "/%":
        bad = _zeros(x, y, rows)
        noted = ((bad, "division by zero"),) if bad.any() else ()
        y = _without(y, bad, rows)
    if op == "/":
        more = max(6, two.scale) + 2
        if one.precision + more + two.precision + 1 > _MOST:
            found = fitted_numbers(_exact(op, x, y, rows), wanted)
            return Value(found.data, noted + found.failed)
        x = _wide(a, one.precision + more, one.scale + more)
        made = pc.divide(x, y)
    elif op == "%":
        scale = max(one.scale, two.scale)
        whole = _wide(Value(x), one.precision - one.scale + scale, scale).cast(
            pa.decimal256(76, scale)
        )
        by = y.cast(pa.decimal256(76, scale))
        made = _decimal_rest(whole, by, rows, scale)
    elif _digits(op, one, two) > _MOST:
        return fitted_numbers(_exact(op, x, y, rows), wanted)
    else:
        made = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[op](x, y)
    found = fitted_decimal(made, wanted, rows)
    return Value(found.data, noted + found.failed)


def _digits(op: str, one: pa.DataType, two: pa.DataType) -> int:
    """The digits of Arrow's type for a sum, difference or product."""
    if op == "*":
        return int(one.precision + two.precision + 1)
    whole = max(one.precision - one.scale, two.precision - two.scale)
    return int(whole + max(one.scale, two.scale) + 1)


def _exact(op: str, x: Any, y: Any, rows: int) -> list[decimal.Decimal | None]:
    """Results with more digits than Arrow's decimals: sums and products are exact, and quotients
    have enough digits to be rounded once more."""
    apply = _OPERATORS[op]
    pairs = zip(*(Value(s).array(rows).to_pylist() for s in (x, y)), strict=True)
    with decimal.localcontext(prec=200):
        return [None if p is None or q is None else apply(p, q) for p, q in pairs]


def _decimal_rest(x: Any, y: Any, rows: int, scale: int) -> Any:
    pairs = zip(*(Value(s).array(rows).to_pylist() for s in (x, y)), strict=True)
    with decimal.localcontext(prec=90):
        made = [None if p is None or q is None else p % q for p, q in pairs]
    return pa.array(made, pa.decimal256(76, scale))


def _wide(value: Value, precision: int, scale: int) -> Any:
    kind = value.type
    data = value.data.cast(pa.decimal128(20, 0)) if _is.is_integer(kind) else value.data
    return data.cast(pa.decimal256(min(_MOST, precision), scale))


def negated(a: Value, rows: int) -> Value:
    """`-a`."""
    if _is.is_null(a.type):
        return a
    if not is_number(a.type):
        raise Unusable(f"- takes numbers, not {spark_name(a.type)}")
    made = checked(
        pc.negate_checked, (a.data,), rows, lambda x: f"-({x}) is beyond {spark_name(a.type)}"
    )
    return Value(made.data, a.failed + made.failed)


def compare(op: str, a: Value, b: Value, rows: int, zone: str | None) -> Value:
    """`a op b`, where op is one of = <> < <= > >= and <=>, for which two nulls are equal."""
    kind = common_type(a.type, b.type)
    if _is.is_null(kind):
        kind = pa.int32()
    if _is.is_decimal(kind):  # exact, whatever digits the common type has
        scale = max(x.type.scale for x in (a, b) if _is.is_decimal(x.type))
        x, y = (
            Value(_wide(v, _MOST, scale), v.failed)
            if not _is.is_null(v.type)
            else Value(pa.scalar(None, pa.decimal256(76, scale)), v.failed)
            for v in (a, b)
        )
    else:
        x, y = (cast(v, kind, rows, zone) for v in (a, b))
    failed = x.failed + y.failed
    if op == "<=>":
        same = compare("=", Value(x.data), Value(y.data), rows, zone).data
        nulls = pc.and_(pc.is_null(x.data), pc.is_null(y.data))
        return Value(pc.or_(pc.coalesce(same, pa.scalar(False)), nulls), failed)
    if _is.is_floating(kind):
        return Value(_compare_floats(op, x.data, y.data), failed)
    return Value(_KERNELS[op](x.data, y.data), failed)


def _compare_floats(op: str, x: Any, y: Any) -> Any:
    odd_x, odd_y = pc.is_nan(x), pc.is_nan(y)
    if op in ("=", "<>"):
        same = pc.or_kleene(pc.equal(x, y), pc.and_(odd_x, odd_y))
        return pc.invert(same) if op == "<>" else same
    if op in (">", ">="):
        return _compare_floats({">": "<", ">=": "<="}[op], y, x)
    less = pc.or_(pc.less(x, y), pc.and_(pc.invert(odd_x), odd_y))
    if op == "<":
        return less
    return pc.or_(less, _compare_floats("=", x, y))
