"""The values of an event that a stream can note (`pending`): those of Python, and those of numpy
and pandas that stand for the same values.

Events of plain types are known by one comparison of types, others by a look at each value.  For a
value that fits, Arrow makes the same value of the column's type as the intake does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["FIT", "PLAIN", "RANGES", "fits", "odd_reader", "plain_reader"]

_MINUTE = timedelta(minutes=1)
_WHOLE = frozenset(
    {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
)
_FLOATS = frozenset({float, np.float16, np.float32, np.float64})
#: All whole numbers up to these are floats, of 64 bits and of 32.
_EXACT, _EXACT_32 = 2**53, 2**24
_GREATEST_32 = float(np.finfo(np.float32).max)

#: The least and the greatest value of each type of whole numbers.
RANGES = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint8(): (0, 2**8 - 1),
    pa.uint16(): (0, 2**16 - 1),
    pa.uint32(): (0, 2**32 - 1),
}
#: The plain type of values, for each type of columns that can be noted.
PLAIN: dict[pa.DataType, type] = {
    **dict.fromkeys(RANGES, int),
    pa.float64(): float,
    pa.float32(): np.float32,
    pa.string(): str,
    pa.large_string(): str,
    pa.bool_(): bool,
    **dict.fromkeys((pa.timestamp("us"), pa.timestamp("us", "UTC")), datetime),
}
#: The types of values that fit a column, whatever the value.  The range of whole numbers, the
#: validity of text and the zones of times are checked apart.
FIT: dict[pa.DataType, frozenset[type]] = {
    **dict.fromkeys(RANGES, _WHOLE),
    pa.float64(): _FLOATS,
    pa.float32(): frozenset({np.float16, np.float32}),
    **dict.fromkeys((pa.string(), pa.large_string()), frozenset({str, np.str_})),
    pa.bool_(): frozenset({bool, np.bool_}),
    **dict.fromkeys((pa.timestamp("us"), pa.timestamp("us", "UTC")), frozenset({datetime})),
}
#: Nanoseconds in a tick of numpy's times.
_TICKS = {
    np.dtype(f"M8[{unit}]"): nanos
    for unit, nanos in (
        *(("h", 3_600 * 10**9), ("m", 60 * 10**9), ("s", 10**9)),
        *(("ms", 10**6), ("us", 1_000), ("ns", 1)),
    )
}


def fits(kind: pa.DataType, value: Any) -> bool:
    """True if a value, which is not null, becomes a value of a column's type unchanged."""
    given = type(value)
    if given in FIT[kind]:
        return True
    if pa.types.is_float64(kind):
        return given in _WHOLE and -_EXACT <= int(value) <= _EXACT
    if pa.types.is_float32(kind):
        if given in _WHOLE:
            return -_EXACT_32 <= int(value) <= _EXACT_32
        # floats are rounded, but not to infinity
        return given in _FLOATS and not _GREATEST_32 < abs(value) < float("inf")
    return False


def plain_reader(kind: pa.DataType) -> Callable[[Any], int | None]:
    """The function from an int or a datetime to microseconds; it returns None if the time cannot be
    noted."""
    if pa.types.is_integer(kind):
        return int
    epoch = datetime(1970, 1, 1, tzinfo=UTC if kind.tz else None)
    aware = kind.tz is not None

    def micros(time: datetime) -> int | None:
        offset = time.utcoffset()
        if (offset is not None) != aware or (offset and offset % _MINUTE):
            return None
        since = time - epoch
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    return micros


def odd_reader(kind: pa.DataType) -> Callable[[Any], int | None]:
    """The function from a time of another type to nanoseconds; it returns None if the time cannot
    be noted."""
    if pa.types.is_integer(kind):
        return lambda time: int(time) * 1000 if type(time) in _WHOLE else None
    plain, aware = plain_reader(kind), kind.tz is not None
    last, ticks = np.dtype("M8[us]"), 1000

    def nanos(time: Any) -> int | None:
        nonlocal last, ticks
        if type(time) is np.datetime64:
            if time.dtype != last:
                last, ticks = time.dtype, _TICKS.get(time.dtype, 0)
            return None if aware or not ticks else int(time.view(np.int64)) * ticks
        if not hasattr(time, "nanosecond"):
            micros = plain(time) if isinstance(time, datetime) else None
            return None if micros is None else micros * 1000
        zone = time.tzinfo
        try:
            offset = time.utcoffset() if zone is not UTC and zone is not None else None
            value: int = time.value
        except (ValueError, OverflowError):  # NaT, or a time beyond nanoseconds
            return None
        if (zone is not None) != aware or (offset and offset % _MINUTE):
            return None
        return value

    return nanos
