"""Turn SQL's lengths of time into text for `sash.windows.duration`.

INTERVAL '1' HOUR, INTERVAL 1 HOUR 30 MINUTES, INTERVAL '1 hour 30 minutes',
INTERVAL '1:30' HOUR TO MINUTE, and in Spark's window() a plain '1 hour'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..query.names import nearest
from .errors import Source, SqlError
from .nodes import Interval, Literal_, Node

if TYPE_CHECKING:
    from .cursor import Cursor

__all__ = ["interval_text", "length_text", "unit_of"]

_UNITS: tuple[str, ...] = (
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
)
_UNITS += ("QUARTER", "YEAR")
_CLOCK = ("DAY", "HOUR", "MINUTE", "SECOND")
_NUMBER = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*")
_FIX = "write the unit, as in INTERVAL '5' MINUTE"


def unit_of(word: str) -> str | None:
    """A unit of time without its plural s; None if the word is no unit."""
    singular = word.upper().removesuffix("S")
    return singular if singular in _UNITS else None


def interval_text(cursor: Cursor, start: int) -> str:
    """Read a length of time behind the INTERVAL that began at `start`."""
    parts: list[str] = []
    while True:
        amount = _amount(cursor, signed=not parts)
        if amount is None:
            break
        number, quoted = amount
        unit = unit_of(cursor.token.word)
        if unit is None:
            if quoted and _NUMBER.fullmatch(number) is None:  # the units are in the text
                parts.append(number)
                break
            raise _no_unit(cursor, start, number)
        cursor.step()
        if cursor.sees("TO"):
            parts.append(_from_to(cursor, number, unit, start))
            break
        if _NUMBER.fullmatch(number) is None:
            raise cursor.source.error(
                f"{number!r} is no number of {unit}S; write INTERVAL '5' {unit}",
                start,
                cursor.ended,
            )
        parts.append(f"{number.strip()} {unit.lower()}")
    if not parts:
        raise cursor.unexpected(["a number", "a text such as '5'"], "INTERVAL")
    return " ".join(parts)


def _amount(cursor: Cursor, signed: bool) -> tuple[str, bool] | None:
    """Read a number with its sign, or a text; returns it and whether it is a text."""
    token = cursor.token
    if token.kind == "string":
        return cursor.step().value, True
    if token.kind == "number":
        return cursor.step().value, False
    if signed and cursor.sees_sign("-") and cursor.ahead().kind in ("number", "string"):
        cursor.step()
        found = cursor.step()
        return f"-{found.value}", found.kind == "string"
    return None


def _no_unit(cursor: Cursor, start: int, number: str) -> SqlError:
    token = cursor.token
    if token.kind == "word" and nearest(token.value, _UNITS):
        return cursor.source.error(
            f"{token.value} is no unit of time",
            token.start,
            token.end,
            _UNITS,
            nearest(token.value, _UNITS),
        )
    return cursor.source.error(
        f"this interval of {number} has no unit; {_FIX}", start, cursor.ended, _UNITS
    )


def _from_to(cursor: Cursor, text: str, unit: str, start: int) -> str:
    """INTERVAL '1 02:03:04' DAY TO SECOND."""
    cursor.needs("TO")
    last = unit_of(cursor.token.word)
    if unit not in _CLOCK or last not in _CLOCK or _CLOCK.index(last) <= _CLOCK.index(unit):
        raise cursor.unexpected(["HOUR", "MINUTE", "SECOND"], f"{unit} TO")
    cursor.step()
    wanted = _CLOCK[_CLOCK.index(unit) : _CLOCK.index(last) + 1]
    sign = "-" if text.strip().startswith("-") else ""
    parts = re.split(r"[\s:]+", text.strip().lstrip("+-"))
    if len(parts) != len(wanted) or not all(re.fullmatch(r"\d+(\.\d+)?", p) for p in parts):
        raise cursor.source.error(
            f"{text!r} does not have the form of {unit} TO {last}; write it as "
            f"INTERVAL '{_FORMS[unit, last]}' {unit} TO {last}",
            start,
            cursor.ended,
        )
    return " ".join(f"{sign}{p} {u.lower()}" for p, u in zip(parts, wanted, strict=True))


_FORMS = {
    ("DAY", "HOUR"): "1 02",
    ("DAY", "MINUTE"): "1 02:03",
    ("DAY", "SECOND"): "1 02:03:04",
    ("HOUR", "MINUTE"): "02:03",
    ("HOUR", "SECOND"): "02:03:04",
    ("MINUTE", "SECOND"): "03:04",
}


def length_text(node: Node, source: Source, what: str) -> str:
    """The length of time in an argument of a window: an INTERVAL, or Spark's text."""
    if isinstance(node, Interval):
        return node.text
    if isinstance(node, Literal_) and node.kind == "string":
        text = str(node.value)
        if _NUMBER.fullmatch(text):
            raise source.error(
                f"{what} of {text!r} has no unit; write it as '{text.strip()} minutes'",
                *node.at,
                _UNITS,
            )
        return text
    if isinstance(node, Literal_) and node.kind != "null":
        raise source.error(f"{what} of {node.value} has no unit; {_FIX}", *node.at, _UNITS)
    raise source.error(
        f"{what} must be a length of time in the text, such as INTERVAL '5' MINUTE or '5 minutes'",
        *node.at,
    )
