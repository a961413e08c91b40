"""Lengths of time, as users write them."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from numbers import Integral
from typing import Any

from .contract import LATEST

__all__ = ["check_length", "duration", "duration_text", "terms"]

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {"us": "microsecond", "µs": "microsecond", "ms": "millisecond", "s": "second"}
_SHORT |= {
    "sec": "second",
    "min": "minute",
    "m": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
_UNEVEN = {"month", "quarter", "year", "mon", "y", "decade", "century"}
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zµ]+)\s*(?:,|and\b)?", re.IGNORECASE)


def duration(given: Any, what: str = "a duration", instead: str = "say it in days or weeks") -> int:
    """Convert a length of time to microseconds.  It may be text, a timedelta (of Python, numpy or
    pandas), a pandas offset of fixed length, or microseconds.  For months, which have no fixed
    length, the error adds the advice `instead`.

    >>> duration("1 hour 30 minutes") == duration("1.5h") == 5_400_000_000
    True
    >>> duration("1 month")
    Traceback (most recent call last):
    ...
    ValueError: a duration of '1 month': months are not all of one length; say it in days or weeks
    """
    if type(given).__name__ == "timedelta64":  # numpy's: this module does not import numpy
        return _from_numpy(given, what)
    if isinstance(given, timedelta):
        if getattr(given, "nanoseconds", 0):  # a pandas Timedelta has them
            raise ValueError(f"{what} of {given!r} is no whole number of microseconds")
        return (given.days * 86_400 + given.seconds) * 1_000_000 + given.microseconds
    if type(given).__module__.startswith("pandas."):
        return _from_offset(given, what)
    if isinstance(given, Integral) and not isinstance(given, bool):
        return operator.index(given)
    if not isinstance(given, str):
        raise TypeError(
            f"{what} is text such as '90 seconds' or '1 hour 30 minutes', a timedelta, or a whole "
            f"number of microseconds, not {given!r}"
        )
    total = Fraction(0)
    for number, unit in terms(given, what):
        total += number * _unit(unit, given, what, instead)
    if total.denominator != 1:
        raise ValueError(f"{what} of {given!r} is no whole number of microseconds")
    return int(total)


def terms(given: str, what: str, such: str = "90 seconds") -> Iterator[tuple[Fraction, str]]:
    """The numbers and units in a text, with the units in lower case; errors give the text `such` as
    an example.

    >>> [(int(number), unit) for number, unit in terms("1 hour, 30 Minutes", "a duration")]
    [(1, 'hour'), (30, 'minutes')]
    """
    text, at = given.strip(), 0
    if text.lower().startswith("interval "):
        text = text[len("interval ") :]
    if not text:
        raise ValueError(f"{what} is empty; write it as {such!r}")
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            raise ValueError(f"{what} of {given!r} is not understood; write it as {such!r}")
        if term[2] == "M":
            raise ValueError(
                f"{what} of {given!r}: 'M' is a minute to some and a month to others; write "
                f"'{term[1]} min' or '{term[1]} month'"
            )
        yield Fraction(term[1]), term[2].lower()
        at = term.end()


def _from_numpy(given: Any, what: str) -> int:
    unit = given.dtype.str.partition("[")[2].rstrip("]")
    if unit in ("Y", "M"):
        long = "year" if unit == "Y" else "month"
        raise ValueError(
            f"{what} of {given!r}: {long}s are not all of one length; say it in days or weeks"
        )
    micros = given.astype("m8[us]")
    if not unit or micros != given:  # NaT differs from itself
        raise ValueError(f"{what} of {given!r} is no whole number of microseconds")
    return int(micros.astype("int64"))


def _from_offset(given: Any, what: str) -> int:
    """The length of a pandas offset, if it is fixed."""
    try:
        micros, rest = divmod(given.nanos, 1000)
    except (AttributeError, ValueError):
        raise ValueError(
            f"{what} of {given!r} is not always of one length; say it in days, hours or less, such "
            "as '90 seconds'"
        ) from None
    if rest:
        raise ValueError(f"{what} of {given!r} is no whole number of microseconds")
    return int(micros)


def _unit(name: str, given: str, what: str, instead: str) -> int:
    one = name[:-1] if name.endswith("s") and name not in _SHORT else name
    singular = _SHORT.get(one, one)
    if singular in _UNEVEN:
        raise ValueError(f"{what} of {given!r}: {singular}s are not all of one length; {instead}")
    if singular not in _UNITS:
        raise ValueError(f"{what} of {given!r}: {name!r} is none of {', '.join(_UNITS)}")
    return _UNITS[singular]


def duration_text(micros: int) -> str:
    """Write a length of time in words.

    >>> duration_text(5_400_000_000)
    '1 hour 30 minutes'
    """
    if micros == 0:
        return "0 seconds"
    rest, parts = abs(micros), []
    for unit, size in reversed(_UNITS.items()):
        if unit == "week":
            continue
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}{'s' if count != 1 else ''}")
    return ("-" if micros < 0 else "") + " ".join(parts)


def check_length(micros: int, what: str) -> None:
    """Raise an error if a window's length is not positive, or too long to count."""
    if not 0 < micros <= LATEST:
        raise ValueError(
            f"a window's {what} must be more than 0 seconds and at most 36,000 years, not "
            f"{duration_text(micros)}"
        )
