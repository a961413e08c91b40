"""Sums and means of floats that do not depend on the order of additions: correctly rounded, once.

A float is a whole multiple of 2^-1074, the smallest float.  So is a sum of floats.  A partial holds
this whole number in digits of 32 bits, each in a word of 64:

    word       0         1         2       …      66     |  count, NaNs, infinities of both signs
    digit   2^-1074   2^-1042   2^-1010    …   2^1038    |

A value adds to three digits.  Carries wait until after many values, so `combine` adds the words of
two partials.  The addition is exact, so it commutes and has an inverse.  `lower` rounds once, to
the nearest float, and to the even one of two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .codec import decode_value, encode_value
from .contract import Operator, ready
from .numeric import _any_sum, _number, _numbers, _sum

__all__ = ["exact_mean", "exact_sum"]

Vector = np.ndarray[Any, Any]

DIGITS = 67  # the last digit has room for 2^62 of the greatest floats
COUNT, NANS, UP, DOWN = DIGITS, DIGITS + 1, DIGITS + 2, DIGITS + 3
_WIDTH = DIGITS + 4
_MASK = 2**32 - 1
_FRACTION = 2**52 - 1
_LEAST = -1074  # the exponent of the first digit
_MANY = 2**26  # digits have room for so many values before they must carry
_ONE = 33 * 32 + 18  # the place of 2^0


def _carry(out: Vector) -> None:
    """Propagate carries: all digits but the last are then from 0 to 2^32 - 1."""
    carried = 0
    for i in range(DIGITS - 1):
        digit = out[i] + carried
        out[i] = digit & _MASK
        carried = digit >> 32
    out[DIGITS - 1] += carried


def _add_at(out: Vector, place: int, magnitude: int, negative: bool) -> None:
    """Add a number below 2^63, times 2^place times the smallest float, to the digits."""
    at, by = place >> 5, place & 31
    low, high = (magnitude & _MASK) << by, (magnitude >> 32) << by
    first = low & _MASK
    second = (low >> 32) + (high & _MASK)
    third = high >> 32
    if negative:
        first, second, third = -first, -second, -third
    out[at] += first
    out[at + 1] += second
    out[at + 2] += third


def _count_one(out: Vector) -> None:
    out[COUNT] += 1
    if out[COUNT] & (_MANY - 1) == 0:
        _carry(out)


def _lift_float(out: Vector, x: Any) -> None:
    v = float(x)
    _count_one(out)
    if v != v:
        out[NANS] += 1
    elif v - v != 0.0:
        out[UP if v > 0.0 else DOWN] += 1
    else:
        bits = int(np.float64(v).view(np.int64))
        exponent, magnitude = (bits >> 52) & 2047, bits & _FRACTION
        if exponent == 0:
            exponent = 1
        else:
            magnitude |= 2**52
        _add_at(out, exponent - 1, magnitude, bits < 0)


def _lift_int(out: Vector, x: Any) -> None:
    v = int(x)
    _count_one(out)
    # in two halves: the absolute value of the lowest int64 does not fit int64
    _add_at(out, _ONE, v & _MASK, False)
    high = v >> 32
    _add_at(out, _ONE + 32, -high if high < 0 else high, high < 0)


def _combine(out: Vector, a: Vector, b: Vector) -> None:
    for i in range(_WIDTH):
        out[i] = a[i] + b[i]
    if out[COUNT] >= _MANY:
        _carry(out)


def _inverse(out: Vector, total: Vector, old: Vector) -> None:
    for i in range(_WIDTH):
        out[i] = total[i] - old[i]
    if total[COUNT] >= _MANY:
        _carry(out)


def _magnitude(a: Vector) -> tuple[Vector, bool]:
    """The digits of the sum's absolute value, with carries, and whether the sum is negative."""
    digits = a[:DIGITS].copy()
    _carry(digits)
    if digits[DIGITS - 1] >= 0:
        return digits, False
    for i in range(DIGITS):
        digits[i] = -digits[i]
    _carry(digits)
    return digits, True


def _rounded(top: int, exponent: int, more: bool) -> float:
    """The float nearest to a number, and the even one of two.  The number is given by its highest
    62 bits, the exponent of the highest bit, and whether lower bits are set."""
    last = exponent - 52  # the exponent of the lowest bit of the result
    if last < _LEAST:
        last = _LEAST
    drop = last - (exponent - 61)
    if drop > 62:
        return 0.0
    kept = top >> drop
    rest = top & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if rest > half or (rest == half and (more or kept & 1 == 1)):
        kept += 1
    if last > 971:
        return math.inf
    if last < -1021:  # 2^last would be no normal float, and the product of two is exact
        return float(kept) * 2.0**-1021 * 2.0 ** (last + 1021)
    return float(kept) * 2.0**last


def _special(a: Vector) -> float:
    """The sum if it contains NaN or infinities: NaN or an infinity; 0.0 if it contains none."""
    if a[NANS] > 0 or (a[UP] > 0 and a[DOWN] > 0):
        return math.nan
    if a[UP] > 0:
        return math.inf
    return -math.inf if a[DOWN] > 0 else 0.0


def _quotient(a: Vector, by: int) -> float:
    """The sum divided by a number below 2^31, rounded once."""
    special = _special(a)
    if special != 0.0:
        return special
    digits, negative = _magnitude(a)
    at = DIGITS - 1
    while at >= 0 and digits[at] == 0:
        at -= 1
    if at < 0:
        return 0.0
    # digits of the quotient, until there are 62 bits; the last digit of all may have more than 32
    rest, top, bits, exponent = 0, 0, 0, 0
    more = False
    while bits < 62:
        digit = int(digits[at]) if at >= 0 else 0
        for half in range(2):
            part = (digit >> 16) & (2**48 - 1) if half == 0 else digit & 0xFFFF
            whole = (rest << 16) + part
            found = whole // by
            rest = whole - found * by
            if bits == 0 and found != 0:
                length = 0
                while found >> length != 0:
                    length += 1
                top, bits = found, length
                exponent = 32 * at + (16 if half == 0 else 0) + length - 1 + _LEAST
            elif bits != 0 and bits < 62:
                room = 62 - bits
                if room >= 16:
                    top, bits = (top << 16) | found, bits + 16
                else:
                    top, bits = (top << room) | (found >> (16 - room)), 62
                    more = more or found & ((1 << (16 - room)) - 1) != 0
            elif bits != 0:
                more = more or found != 0
        at -= 1
    more = more or rest != 0
    while at >= 0 and not more:
        more = digits[at] != 0
        at -= 1
    made = _rounded(top, exponent, more)
    return -made if negative else made


def _sum_of(a: Vector) -> float | None:
    return _quotient(a, 1) if a[COUNT] != 0 else None


def _mean_of(a: Vector) -> float | None:
    if a[COUNT] == 0:
        return None
    if a[COUNT] < 2**31:
        return _quotient(a, int(a[COUNT]))
    return _quotient(a, 1) / a[COUNT]  # type: ignore[no-any-return]


# the same for any Python number: (count, the total, NaNs, infinities of both signs, and the count
# of values that are no whole numbers)


def _lift_any(x: Any) -> Any:
    v = _number(x)
    if isinstance(v, float) and not math.isfinite(v):
        return (1, Fraction(0), int(v != v), int(v > 0), int(v < 0), 1)
    return (1, Fraction(v), 0, 0, 0, int(not isinstance(v, int)))


def _combine_any(a: Any, b: Any) -> Any:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _inverse_any(a: Any, b: Any) -> Any:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _to_float(a: Any, by: int) -> float:
    if a[2] or (a[3] and a[4]):
        return math.nan
    if a[3] or a[4]:
        return math.inf if a[3] else -math.inf
    try:
        return float(Fraction(a[1]) / by)
    except OverflowError:
        return math.inf if a[1] > 0 else -math.inf


def _sum_any(a: Any) -> Any:
    if a[0] and not a[5]:
        return _any_sum((a[0], int(a[1])))
    return _to_float(a, 1) if a[0] else None


def _mean_any(a: Any) -> Any:
    return _to_float(a, a[0]) if a[0] else None


def _encode(a: Any) -> bytes:
    total = Fraction(a[1])
    return encode_value((a[0], total.numerator, total.denominator, *a[2:]))


def _decode(data: bytes) -> Any:
    count, numerator, denominator, *odd = decode_value(data)
    return (count, Fraction(numerator, denominator), *odd)


def _typed(name: str, lower: Any) -> Any:
    def typed(types: tuple[str, ...]) -> Operator:
        _numbers(name, types)
        if name == "exact_sum" and types[0] != "float64":
            return _sum(types)
        return Operator(
            name,
            np.zeros(_WIDTH, dtype=np.int64),
            _lift_float if types[0] == "float64" else _lift_int,
            _combine,
            lower,
            _inverse,
            commutative=True,
            adds=True,
        )

    return typed


def _make(name: str, lower: Any, lower_any: Any) -> Operator:
    return ready(
        Operator(
            name,
            (0, Fraction(0), 0, 0, 0, 0),
            _lift_any,
            _combine_any,
            lower_any,
            _inverse_any,
            commutative=True,
            encode=_encode,
            decode=_decode,
            typed=_typed(name, lower),
        )
    )


#: The correctly rounded sum, the same in any order of the values; exact for integers.
exact_sum = _make("exact_sum", _sum_of, _sum_any)
#: The correctly rounded arithmetic mean, the same in any order of the values.
exact_mean = _make("exact_mean", _mean_of, _mean_any)
