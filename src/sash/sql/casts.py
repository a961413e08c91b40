"""CAST as in Spark's ANSI mode: a row whose value does not exist in the new type fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..tables.numbers import as_floats
from .spark_types import is_number, spark_name
from .values import Unusable, Value, checked

__all__ = [
    "cast",
    "fitted_decimal",
    "fitted_numbers",
    "floats",
    "one_by_one",
    "rounded_decimal",
    "zero_of",
]

_is = pa.types
_EPOCH = datetime(1970, 1, 1)
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_SPACE = "".join(map(chr, range(33))) + "\x7f"  # Spark trims these: spaces and control characters
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_TWO = "([0-9]{1,2})"
_TIME = re.compile(rf"([+-]?[0-9]{{4,6}})(?:-{_TWO}(?:-{_TWO}(?:[ T](.*))?)?)?", re.DOTALL)
_CLOCK = re.compile(rf"{_TWO}:{_TWO}(?::{_TWO}(?:\.([0-9]{{0,9}}))?)?\s*(.*)", re.DOTALL)


def cast(value: Value, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    """Cast a value to another type.  `zone` is the time zone in which text and dates become
    instants; None means the zone of the column."""
    given = value.type
    if given == kind:
        return value
    if _is.is_null(given):
        return Value(pa.scalar(None, kind), value.failed)
    maker = _maker(given, kind)
    if maker is None:
        raise Unusable(f"CAST cannot turn {spark_name(given)} into {spark_name(kind)}")
    made = maker(value.data, kind, rows, zone)
    return Value(made.data, value.failed + made.failed)


Maker = Callable[[Any, pa.DataType, int, "str | None"], Value]


def _maker(given: pa.DataType, kind: pa.DataType) -> Maker | None:
    if _is.is_string(kind):
        return _to_text
    if _is.is_string(given):
        return _from_text
    if _is.is_boolean(kind) and is_number(given):
        return _to_bool
    if is_number(kind) and (is_number(given) or _is.is_boolean(given)):
        return _to_number
    if is_number(kind) and _is.is_timestamp(given):
        return _seconds_of
    if _is.is_timestamp(kind) and is_number(given):
        return _time_of_seconds
    times = _is.is_timestamp(given) or _is.is_date(given)
    return _to_time if times and (_is.is_timestamp(kind) or _is.is_date(kind)) else None


def one_by_one(
    data: Any, rows: int, kind: pa.DataType, make: Callable[[Any], Any], why: Callable[[Any], str]
) -> Value:
    """Apply a function to each distinct value; a value for which it raises ValueError fails."""
    column = pa.repeat(data, rows) if isinstance(data, pa.Scalar) else data
    coded = column.dictionary_encode()
    made: list[Any] = []
    bad: dict[int, str] = {}
    for i, item in enumerate(coded.dictionary.to_pylist()):
        try:
            made.append(make(item))
        except (ValueError, OverflowError, InvalidOperation):
            made.append(None)
            bad[i] = why(item)
    found = pa.array(made, kind).take(coded.indices)
    if not bad:
        return Value(found)
    places = np.asarray(coded.indices.fill_null(-1))
    return Value(found, tuple((places == i, reason) for i, reason in bad.items()))


def _no(kind: pa.DataType) -> Callable[[Any], str]:
    return lambda item: f"CAST: {item!r} is no {spark_name(kind)}"


# Numbers


def zero_of(kind: pa.DataType) -> pa.Scalar:
    """Zero in a type of numbers."""
    return pa.scalar(Decimal(0) if _is.is_decimal(kind) else 0, kind)


def _to_bool(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    return Value(pc.not_equal(data, zero_of(data.type)))


def _to_number(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    given = data.type
    if _is.is_boolean(given):
        data = data.cast(pa.int8())
        given = pa.int8()
    if _is.is_floating(kind):
        return Value(floats(data, kind))
    if _is.is_decimal(kind):
        if _is.is_floating(given):
            return one_by_one(
                data, rows, kind, lambda x: _fitting(_java_decimal(x, given), kind), _no(kind)
            )
        if _is.is_integer(given):
            data = data.cast(pa.decimal128(20, 0))
        return fitted_decimal(data, kind, rows)
    if _is.is_floating(given):
        low, high = _limits(kind)

        def whole(x: Any) -> Any:
            cut = pc.trunc(x.cast(pa.float64()))
            fits = pc.and_(pc.greater_equal(cut, float(low)), pc.less(cut, float(high + 1)))
            if pc.any(pc.invert(pc.coalesce(fits, pa.scalar(True)))).as_py():
                raise pa.ArrowInvalid("beyond")
            return cut.cast(kind, safe=False)

        return checked(_on_arrays(whole), (data,), rows, _no(kind))
    if _is.is_decimal(given):
        return one_by_one(data, rows, kind, lambda x: _in_limits(int(x), kind), _no(kind))
    return checked(lambda x: x.cast(kind), (data,), rows, _no(kind))


def floats(data: Any, kind: pa.DataType) -> Any:
    """Numbers cast to a float type."""
    return _on_arrays(lambda x: as_floats(x, kind))(data)


def _on_arrays(kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let a kernel for arrays take scalars too."""

    def made(given: Any) -> Any:
        return (
            kernel(pa.array([given.as_py()], given.type))[0]
            if isinstance(given, pa.Scalar)
            else kernel(given)
        )

    return made


def _limits(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width - 1
    return -(2**bits), 2**bits - 1


def _in_limits(number: int, kind: pa.DataType) -> int:
    low, high = _limits(kind)
    if not low <= number <= high:
        raise ValueError("beyond")
    return number


def fitted_decimal(data: Any, kind: pa.DataType, rows: int) -> Value:
    """Round decimals to the digits after the point that a type has, half away from zero; decimals
    with too many digits before the point fail."""

    def kernel(given: Any) -> Any:
        wide = given.cast(pa.decimal256(76, given.type.scale))
        if given.type.scale > kind.scale:
            wide = rounded_decimal(wide, kind.scale)
        return wide.cast(pa.decimal256(76, kind.scale)).cast(kind)

    return checked(kernel, (data,), rows, lambda x: f"{x} does not fit {spark_name(kind)}")


def rounded_decimal(data: Any, digits: int) -> Any:
    """Round decimals to a number of digits after the point, half away from zero."""
    scale = data.type.scale
    # with room for one more digit, because Arrow's round returns zero if the result does not fit
    wide = data.cast(pa.decimal256(76, scale))
    array = pa.array([wide.as_py()], wide.type) if isinstance(wide, pa.Scalar) else wide
    ends = [e for e in pc.min_max(array).as_py().values() if e is not None]
    short = all(e.copy_abs() < Decimal(1).scaleb(38 - scale) for e in ends)
    if digits >= scale or (short and scale - digits < 76):
        return pc.round(wide, digits, round_mode="half_towards_infinity")
    # Arrow's round loses a carry through many nines, and cannot round beyond its digits
    zero, unit, numbers = Decimal(0), Decimal(1).scaleb(-digits), array.to_pylist()
    with localcontext(prec=400):
        made = [None if x is None else x.quantize(unit, ROUND_HALF_UP) or zero for x in numbers]
    found = pa.array(made, wide.type)
    return found[0] if isinstance(wide, pa.Scalar) else found


def fitted_numbers(numbers: Sequence[Decimal | None], kind: pa.DataType) -> Value:
    """Like `fitted_decimal`, for numbers with more digits than Arrow's decimals."""
    made: list[Decimal | None] = []
    bad: dict[int, str] = {}
    for row, number in enumerate(numbers):
        try:
            made.append(None if number is None else _fitting(number, kind))
        except ValueError:
            made.append(None)
            bad[row] = f"{number} does not fit {spark_name(kind)}"
    places = np.arange(len(made))
    return Value(pa.array(made, kind), tuple((places == row, why) for row, why in bad.items()))


def _java_decimal(x: float, kind: pa.DataType) -> Decimal:
    """The decimal with the shortest digits of a float."""
    return Decimal(str(np.float32(x)) if kind == pa.float32() else repr(x))


def _fitting(number: Decimal, kind: pa.DataType) -> Decimal:
    if not number.is_finite():
        raise ValueError("no number")
    with localcontext(prec=400):
        made = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    if made.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):  # abs would round it
        raise ValueError("too many digits")
    return made


# Text


def _from_text(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    if _is.is_boolean(kind):
        make: Callable[[str], Any] = _bool_of
    elif _is.is_integer(kind):

        def make(text: str) -> Any:
            return _whole_of(text, kind)

    elif _is.is_floating(kind):
        make = _float_of
    elif _is.is_decimal(kind):

        def make(text: str) -> Any:
            return _fitting(Decimal(_digits(text)), kind)

    elif _is.is_date(kind):

        def make(text: str) -> Any:
            return _date_of(text)[0].date()

    elif _is.is_timestamp(kind):
        home = zone or kind.tz

        def make(text: str) -> Any:
            return _micros_of(text, home if kind.tz else None)

        found = one_by_one(data, rows, pa.int64(), make, _no(kind))
        return Value(found.data.view(kind), found.failed)
    else:
        raise Unusable(f"CAST cannot turn text into {spark_name(kind)}")
    return one_by_one(data, rows, kind, make, _no(kind))


def _bool_of(text: str) -> bool:
    word = text.strip(_SPACE).lower()
    if word not in (*_TRUE, *_FALSE):
        raise ValueError(text)
    return word in _TRUE


def _whole_of(text: str, kind: pa.DataType) -> int:
    word = text.strip(_SPACE)
    if not re.fullmatch(r"[+-]?[0-9]+", word):
        raise ValueError(text)
    return _in_limits(int(word), kind)


def _float_of(text: str) -> float:
    word = text.strip(_SPACE).lower()
    if word in ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"):
        return float(word)
    if not _FLOAT.fullmatch(word):
        raise ValueError(text)
    return float(word.rstrip("df"))


def _digits(text: str) -> str:
    word = text.strip(_SPACE)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", word):
        raise ValueError(text)
    return word


def _to_text(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    given = data.type
    if _is.is_floating(given):
        return one_by_one(data, rows, kind, lambda x: _java_text(x, given), str)
    if _is.is_boolean(given):
        return Value(pc.if_else(data, "true", "false"))
    if _is.is_timestamp(given):
        if given.tz:
            data = pc.local_timestamp(data.cast(pa.timestamp("us", zone or given.tz)))
        return one_by_one(data, rows, kind, _time_text, str)
    if _is.is_decimal(given):
        return one_by_one(data, rows, kind, _decimal_text, str)
    if _is.is_integer(given) or _is.is_date(given):
        return Value(data.cast(kind))
    raise Unusable(f"CAST cannot turn {spark_name(given)} into text")


def _decimal_text(number: Decimal) -> str:
    return f"{number:f}"


def _java_text(x: float, kind: pa.DataType) -> str:
    """A float as Java writes it: 1.0, 1.0E10, NaN, Infinity."""
    if x != x:
        return "NaN"
    if x in (float("inf"), float("-inf")):
        return "Infinity" if x > 0 else "-Infinity"
    if x == 0:
        return "-0.0" if str(x).startswith("-") else "0.0"
    number = _java_decimal(x, kind)
    if len(number.normalize().as_tuple().digits) == 1:
        # Java writes at least two digits: the closest ones that give the same float
        with localcontext(prec=2):
            closest = +Decimal(x)
        number = closest if float(closest) == x else number
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    assert isinstance(exponent, int)
    point = len(digits) + exponent  # digits before the point
    if -3 < point <= 7:
        padded = text.ljust(max(point, 0), "0")
        whole = padded[:point] if point > 0 else "0"
        rest = padded[point:] if point > 0 else "0" * -point + text
        made = f"{whole}.{rest or '0'}"
    else:
        made = f"{text[0]}.{text[1:] or '0'}E{point - 1}"
    return "-" + made if sign else made


def _time_text(at: datetime) -> str:
    text = at.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    return f"{text}.{at.microsecond:06d}".rstrip("0") if at.microsecond else text


# Times


def _date_of(text: str) -> tuple[datetime, str | None]:
    """Parse a day; returns it and the text behind it."""
    found = _TIME.fullmatch(text.strip(_SPACE))
    if found is None:
        raise ValueError(text)
    year, month, day, rest = found.groups()
    return datetime(int(year), int(month or 1), int(day or 1)), rest


def _time_of(text: str) -> tuple[datetime, bool]:
    """Parse a time; returns it and whether it has a zone, in which case it is in UTC."""
    at, rest = _date_of(text)
    if not rest:
        return at, False
    clock = _CLOCK.fullmatch(rest)
    if clock is None:
        raise ValueError(text)
    hour, minute, second, part, where = clock.groups()
    micros = int((part or "").ljust(6, "0")[:6] or 0)
    at = at.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=micros)
    if not where:
        return at, False
    return at.replace(tzinfo=_zone(where)).astimezone(UTC).replace(tzinfo=None), True


def _zone(where: str) -> Any:
    if where in ("Z", "UTC", "GMT"):
        return UTC
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])([0-9]{1,2}):?([0-9]{2})?", where)
    if found:
        span = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(span if found[1] == "+" else -span)
    try:
        return ZoneInfo(where)
    except (KeyError, OSError) as error:
        raise ValueError(where) from error


def _micros_of(text: str, home: str | None) -> int:
    """Microseconds since 1970: in UTC for a column with a zone, else by the clock."""
    at, in_utc = _time_of(text)
    if not in_utc and home is not None:
        at = at.replace(tzinfo=_zone(home)).astimezone(UTC).replace(tzinfo=None)
    return (at - _EPOCH) // timedelta(microseconds=1)


def _to_time(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    given = data.type
    if _is.is_timestamp(given):
        if given.tz and (_is.is_date(kind) or not kind.tz):
            data = pc.local_timestamp(data.cast(pa.timestamp("us", zone or given.tz)))
        elif not given.tz and _is.is_timestamp(kind) and kind.tz:
            return _in_zone(data, kind, zone)
        if _is.is_date(kind):
            return Value(pc.floor_temporal(data, unit="day").cast(kind))
        return Value(data.cast(kind))
    return _in_zone(data.cast(pa.timestamp("us")), kind, zone)


def _in_zone(data: Any, kind: pa.DataType, zone: str | None) -> Value:
    """Turn clock times into instants of a zone.  A clock time that the zone repeats becomes the
    earlier instant; one that the zone skips becomes the first instant after the gap."""
    if not kind.tz:
        return Value(data)
    made = pc.assume_timezone(data, zone or kind.tz, ambiguous="earliest", nonexistent="latest")
    return Value(made.cast(kind))


def _seconds_of(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    micros = data.cast(pa.int64())
    if _is.is_floating(kind):
        return Value(pc.divide(micros.cast(pa.float64()), 1e6).cast(kind))
    seconds = pc.multiply(micros.cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.000001")))
    whole = _is.is_integer(kind)
    return _to_number(pc.floor(seconds) if whole else seconds, kind, rows, zone)


def _time_of_seconds(data: Any, kind: pa.DataType, rows: int, zone: str | None) -> Value:
    if not _is.is_integer(data.type):
        raise Unusable("CAST turns only whole seconds into a timestamp")
    micros = checked(
        pc.multiply_checked,
        (data.cast(pa.int64()), pa.scalar(1_000_000, pa.int64())),
        rows,
        lambda x, _: f"CAST: {x} is no timestamp",
    )
    return Value(micros.data.cast(kind), micros.failed)
