"""Sums and means of decimals, exactly, in Spark's types.

A sum of decimal(p, s) is a decimal(p + 10, s), a mean a decimal(p + 4, s + 4), rounded half away
from zero, each with at most 38 digits.  An answer with more digits is an error, as in Spark's ANSI
mode.

A decimal of up to 18 digits is stored as a whole number of 64 bits, so its sums run compiled, with
the partials of integer sums.  An answer may have 38 digits, so it is two words, of 64 and 62 bits.
Longer decimals run as Python's decimals.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from .codec import decode_value, encode_value
from .contract import Operator
from .numeric import WIDE, _int_add, _int_lift, _int_subtract, divided

__all__ = ["MOST_DIGITS", "SMALL", "Name", "adds_decimals", "decimal_operator", "decimal_type"]

MOST_DIGITS = 38
SMALL = 18  # digits that fit int64
_BITS = 30  # of a digit of a division
_DIGIT = 2**30 - 1
_LOW_BITS = 62
_LOW = 2**62 - 1

Name = Literal["sum", "mean"]


def decimal_type(name: Name, precision: int, scale: int) -> tuple[int, int]:
    """The precision and scale of the answer.

    >>> decimal_type("sum", 30, 2), decimal_type("mean", 10, 2)
    ((38, 2), (14, 6))
    """
    more, finer = (10, 0) if name == "sum" else (4, 4)
    return min(precision + more, MOST_DIGITS), min(scale + finer, MOST_DIGITS)


@lru_cache(maxsize=64)
def decimal_operator(name: Name, precision: int, scale: int) -> Operator:
    """The operator that sums or averages decimals of a type.

    >>> op = decimal_operator("mean", 5, 2)
    >>> op.lower(op.fold([Decimal("0.01"), None, Decimal("0.02")]))
    Decimal('0.015000')
    """
    digits, finer = decimal_type(name, precision, scale)
    averages, times = name == "mean", 10 ** (finer - scale)
    unit = Decimal(1).scaleb(-finer, WIDE)
    high, low = divmod(10**digits, 2**62)

    def lower(a: Any) -> Any:
        if a[0] == 0:
            return None
        found = divided(a[1], a[0], finer) if averages else a[1]
        found = WIDE.quantize(found, unit)
        if found.scaleb(finer, WIDE).copy_abs() >= 10**digits:  # abs would round it
            raise OverflowError("it has more digits than its type")
        return found

    def lower_words(a: Any) -> Any:
        if a[0] == 0:
            return None
        words = (a[1], a[2])
        if averages:
            words = _divided(a[1], a[2], a[0], times)
        top, rest = words
        if top < 0:  # the distance from 0
            rest = -rest
            top = -top + (rest >> _LOW_BITS)
            rest = rest & _LOW
        if top > high or (top == high and rest >= low):
            raise OverflowError("it has more digits than its type")
        return words

    def typed(types: tuple[str, ...]) -> Operator | None:
        if types[0] != "int64":
            return None
        return Operator(
            name,
            (0, 0, 0),
            _int_lift,
            _int_add,
            lower_words,
            _int_subtract,
            commutative=True,
            fields=("high", "low"),
            unchecked=True,
        )

    return Operator(
        name,
        (0, Decimal(0)),
        _one,
        _add,
        lower,
        commutative=True,
        encode=encode_value,
        decode=decode_value,
        typed=typed,
        unchecked=True,
    )


def adds_decimals(operator: Operator) -> bool:
    """True if an operator comes from this module."""
    return operator.lift is _one


def _one(x: Any) -> Any:
    return (1, x)


def _add(a: Any, b: Any) -> Any:
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    return (a[0] + b[0], WIDE.add(a[1], b[1]))


def _divided(high: int, low: int, by: int, times: int) -> tuple[int, int]:
    """Multiply a number of two words by a number below 2^14, divide it by a number below 2^32, and
    round half away from zero; returns two words."""
    negative = high < 0
    if negative:
        low = -low
        high = -high + (low >> _LOW_BITS)
        low = low & _LOW
    if high == 0 and low <= _LOW // times:  # one division: four more take most of the time
        part = low * times
        q0 = part // by
        if 2 * (part - q0 * by) >= by:
            q0 += 1
        return (-1, -q0 & _LOW) if negative and q0 else (0, q0)
    # digits of 30 bits, the lowest first: 124 bits, and 14 more by the product
    d0 = (low & _DIGIT) * times
    d1 = ((low >> 30) & _DIGIT) * times + (d0 >> _BITS)
    d2 = ((low >> 60) | ((high & (2**28 - 1)) << 2)) * times + (d1 >> _BITS)
    d3 = ((high >> 28) & _DIGIT) * times + (d2 >> _BITS)
    d4 = (high >> 58) * times + (d3 >> _BITS)
    q4, rest = d4 // by, d4 % by
    part = (rest << _BITS) | (d3 & _DIGIT)
    q3, rest = part // by, part % by
    part = (rest << _BITS) | (d2 & _DIGIT)
    q2, rest = part // by, part % by
    part = (rest << _BITS) | (d1 & _DIGIT)
    q1, rest = part // by, part % by
    part = (rest << _BITS) | (d0 & _DIGIT)
    q0, rest = part // by, part % by
    if 2 * rest >= by:
        q0 += 1
    low = q0 + (q1 << 30) + ((q2 & 3) << 60)  # less than 2^63, as q0 is at most 2^30
    carried = low >> _LOW_BITS
    low = low & _LOW
    high = (q2 >> 2) + (q3 << 28) + (q4 << 58) + carried
    if negative:
        low = -low
        high = -high + (low >> _LOW_BITS)
        low = low & _LOW
    return (high, low)
