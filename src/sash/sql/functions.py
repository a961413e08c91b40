"""Spark's scalar functions, computed by Arrow: those that a statement can use in this process."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .casts import cast, fitted_decimal, one_by_one, rounded_decimal
from .spark_types import is_number, spark_name
from .values import Unusable, Value, checked

__all__ = ["FORMS", "FUNCTIONS", "UNITS", "call", "extract"]

_is = pa.types

#: How each function is written; COALESCE and NULLIF take rows for themselves, in `evaluate`.
FORMS = {
    "abs": "abs(x)",
    "ceil": "ceil(x)",
    "ceiling": "ceiling(x)",
    "char_length": "char_length(s)",
    "coalesce": "coalesce(x, y, …)",
    "concat": "concat(s, t, …)",
    "floor": "floor(x)",
    "length": "length(s)",
    "lower": "lower(s)",
    "nullif": "nullif(x, y)",
    "round": "round(x[, digits])",
    "substr": "substr(s, from[, length])",
    "substring": "substring(s, from[, length])",
    "upper": "upper(s)",
}
#: All functions by name; CAST, TRY_CAST, EXTRACT and CASE have their own syntax.
FUNCTIONS = tuple(FORMS)

_COUNTS = {"round": (1, 2), "substring": (2, 3), "substr": (2, 3), "concat": (0, 10**6)}
_COUNTS |= {"coalesce": (1, 10**6), "nullif": (2, 2)}


def takes(name: str, count: int) -> bool:
    """True if a function takes this number of arguments."""
    low, high = _COUNTS.get(name, (1, 1))
    return low <= count <= high


def call(name: str, given: list[Value], rows: int, zone: str | None) -> Value:
    """Compute a function of its arguments."""
    made = _MAKERS[name](given, rows, zone)
    return Value(made.data, tuple(f for v in given for f in v.failed) + made.failed)


def _number(value: Value, name: str) -> Value:
    if _is.is_null(value.type):
        return Value(pa.scalar(None, pa.float64()))
    if _is.is_string(value.type):
        raise Unusable(f"{name} takes numbers; write {name}(CAST(… AS double))")
    if not is_number(value.type):
        raise Unusable(f"{name} takes numbers, not {spark_name(value.type)}")
    return value


def _text(value: Value, rows: int, zone: str | None) -> Value:
    return cast(value, pa.string(), rows, zone)


def _abs(given: list[Value], rows: int, zone: str | None) -> Value:
    x = _number(given[0], "abs")
    return checked(
        pc.abs_checked, (x.data,), rows, lambda v: f"abs({v}) is beyond {spark_name(x.type)}"
    )


def _next_whole(name: str) -> Callable[..., Value]:
    kernel = {"floor": pc.floor, "ceil": pc.ceil}[name]

    def made(given: list[Value], rows: int, zone: str | None) -> Value:
        x = _number(given[0], name)
        if _is.is_integer(x.type):
            return Value(x.data.cast(pa.int64()))
        if _is.is_decimal(x.type):
            whole = x.type.precision - x.type.scale + (1 if x.type.scale else 0)
            return fitted_decimal(
                kernel(x.data.cast(pa.decimal256(76, x.type.scale))),
                pa.decimal128(min(38, max(1, whole)), 0),
                rows,
            )
        found = kernel(Value(x.data).array(rows).cast(pa.float64()))
        plain = np.nan_to_num(np.asarray(found.fill_null(0.0)), nan=0.0, posinf=inf, neginf=-inf)
        fits = np.abs(plain) <= 2.0**63
        below = fits & (plain < 2.0**63)
        cut = np.where(below, plain, 0.0).astype(np.int64)
        cut[fits & ~below] = 2**63 - 1  # as Java has it
        failed = ((~fits, f"{name} is beyond bigint"),) if not fits.all() else ()
        return Value(pa.array(cut, mask=np.asarray(found.is_null()) | ~fits), failed)

    return made


def _digits(value: Value) -> int:
    if not isinstance(value.data, pa.Scalar) or not _is.is_integer(value.type):
        raise Unusable("the digits of round must be a whole number in the text: round(x, 2)")
    return int(value.data.as_py())


def _round(given: list[Value], rows: int, zone: str | None) -> Value:
    x = _number(given[0], "round")
    digits = _digits(given[1]) if len(given) > 1 else 0
    digits = max(-400, min(digits, 1100))  # no number has digits beyond these
    kind = x.type
    if _is.is_decimal(kind):
        scale = min(kind.scale, max(digits, 0))
        whole = kind.precision - kind.scale + 1
        wanted = pa.decimal128(min(38, max(1, whole + scale)), scale)
        return fitted_decimal(rounded_decimal(x.data, digits), wanted, rows)
    if _is.is_integer(kind):
        if digits >= 0:
            return x
        bits = kind.bit_width - 1

        def whole_number(v: int) -> int:
            made = int(Decimal(v).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
            if not -(2**bits) <= made < 2**bits:
                raise ValueError("beyond")
            return made

        return one_by_one(
            x.data, rows, kind, whole_number, lambda v: f"round({v}, {digits}) is beyond its type"
        )
    return _round_floats(Value(x.data).array(rows), digits)


def _round_floats(column: pa.Array, digits: int) -> Value:
    """Round half away from zero, by the digits of a float as written: 2.675 becomes 2.68."""
    kind = column.type
    plain = np.asarray(column.cast(pa.float64()).fill_null(0.0))
    made = plain.copy()
    with np.errstate(all="ignore"):
        power = np.power(10.0, digits)
        scaled = plain * power
        whole = np.floor(np.abs(scaled) + 0.5)
        made = np.copysign(whole / power, plain)
        near = np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < 1e-3
        odd = near | (np.abs(scaled) >= 2.0**49) | (abs(digits) > 15) | (kind == pa.float32())
    finite = np.isfinite(plain)
    made = np.where(finite, made, plain)
    for row in np.flatnonzero(odd & finite).tolist():
        written = str(np.float32(plain[row])) if kind == pa.float32() else repr(float(plain[row]))
        number = Decimal(written)
        exponent = number.as_tuple().exponent
        if isinstance(exponent, int) and -exponent <= digits:
            made[row] = plain[row]  # the float has no more digits
            continue
        made[row] = float(_quantized(number, digits))
    made[made == 0] = 0.0  # without a sign
    return Value(pa.array(made, mask=np.asarray(column.is_null())).cast(kind))


def _quantized(number: Decimal, digits: int) -> Decimal:
    import decimal

    with decimal.localcontext(prec=800):
        return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _case(name: str) -> Callable[..., Value]:
    ascii_kernel = {"lower": pc.ascii_lower, "upper": pc.ascii_upper}[name]

    def made(given: list[Value], rows: int, zone: str | None) -> Value:
        text = _text(given[0], rows, zone)
        if pc.all(pc.string_is_ascii(text.array(rows))).as_py() is not False:
            return Value(ascii_kernel(text.data), text.failed)
        found = one_by_one(text.data, rows, pa.string(), getattr(str, name), str)
        return Value(found.data, text.failed)

    return made


def _length(given: list[Value], rows: int, zone: str | None) -> Value:
    text = _text(given[0], rows, zone)
    return Value(pc.utf8_length(text.data), text.failed)


def _substring(given: list[Value], rows: int, zone: str | None) -> Value:
    text = _text(given[0], rows, zone)
    places = [cast(v, pa.int32(), rows, zone) for v in given[1:]]
    failed = text.failed + tuple(f for p in places for f in p.failed)
    lists = [v.array(rows).to_pylist() for v in (text, *places)]
    if len(lists) == 2:
        lists.append([2**31 - 1] * rows)
    cut = [None if None in row else _cut(*row) for row in zip(*lists, strict=True)]
    return Value(pa.array(cut, pa.string()), failed)


def _cut(text: str, start: int, length: int) -> str:
    """A part of a text; positions count from 1, negative ones from the end."""
    begins = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    ends = begins + length
    return text[max(begins, 0) : max(ends, 0)] if ends > begins else ""


def _concat(given: list[Value], rows: int, zone: str | None) -> Value:
    if not given:
        return Value(pa.scalar(""))
    texts = [_text(v, rows, zone) for v in given]
    failed = tuple(f for t in texts for f in t.failed)
    made = pc.binary_join_element_wise(*(t.data for t in texts), "")
    return Value(made, failed)


_MAKERS: dict[str, Callable[[list[Value], int, str | None], Value]] = {
    "abs": _abs,
    "ceil": _next_whole("ceil"),
    "ceiling": _next_whole("ceil"),
    "char_length": _length,
    "concat": _concat,
    "floor": _next_whole("floor"),
    "length": _length,
    "lower": _case("lower"),
    "round": _round,
    "substr": _substring,
    "substring": _substring,
    "upper": _case("upper"),
}


# EXTRACT


def _second(x: Any) -> Any:
    micros = pc.add(
        pc.multiply(pc.second(x), 1_000_000),
        pc.add(pc.multiply(pc.millisecond(x), 1000), pc.microsecond(x)),
    )
    whole = micros.cast(pa.decimal128(19, 0)).cast(pa.decimal256(40, 6))
    return (
        pc.divide(whole, pa.scalar(Decimal(1_000_000)))
        .cast(pa.decimal256(76, 6))
        .cast(pa.decimal128(8, 6))
    )


def _weekday(first: int, start: int) -> Callable[[Any], Any]:
    return lambda x: pc.day_of_week(x, count_from_zero=first == 0, week_start=start)


_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "yearofweek": pc.iso_year,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": _weekday(1, 7),
    "dow_iso": _weekday(1, 1),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": _second,
}
_OTHER = {"dayofweek": "dow", "dayofweek_iso": "dow_iso", "years": "year", "y": "year"}
_OTHER |= {"yr": "year", "qtr": "quarter", "mon": "month", "months": "month", "weeks": "week"}
_OTHER |= {"w": "week", "d": "day", "days": "day", "h": "hour", "hours": "hour", "hr": "hour"}
_OTHER |= {"m": "minute", "min": "minute", "minutes": "minute", "s": "second", "sec": "second"}
_OTHER |= {"seconds": "second", "mons": "month", "yrs": "year", "hrs": "hour", "mins": "minute"}
_OTHER |= {"secs": "second"}
#: The units that EXTRACT knows.
UNITS = tuple(_PARTS)


def unit_named(unit: str) -> str | None:
    """The unit of EXTRACT for any of its names; None if there is none."""
    name = _OTHER.get(unit, unit)
    return name if name in _PARTS else None


def extract(unit: str, value: Value, rows: int, zone: str | None) -> Value:
    """A field of a time or a date, by the clock of its zone."""
    kind = value.type
    if _is.is_string(kind) or _is.is_null(kind):
        value = cast(value, pa.timestamp("us"), rows, zone)
        kind = value.type
    if not (_is.is_timestamp(kind) or _is.is_date(kind)):
        raise Unusable(f"EXTRACT takes a time or a date, not {spark_name(kind)}")
    name = unit_named(unit)
    assert name is not None
    data = value.data
    if _is.is_date(kind):
        if name in ("hour", "minute", "second"):
            data = data.cast(pa.timestamp("us"))
    elif kind.tz and zone:
        data = data.cast(pa.timestamp("us", zone))
    found = _PARTS[name](data)
    return Value(found if _is.is_decimal(found.type) else found.cast(pa.int32()), value.failed)
