"""Operators on bools and on the bits of whole numbers.

As on Spark, they skip nulls, and the answer over no values is null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .contract import Operator, ready

__all__ = ["all", "any", "bit_and", "bit_or", "bit_xor"]


def _only(name: str, wanted: str, words: str) -> Callable[[tuple[str, ...]], None]:
    """A `typed` for operators over one type: it refuses columns of other types."""

    def typed(types: tuple[str, ...]) -> None:
        if types[0] != wanted:
            raise TypeError(f"{name} takes {words}, not a column of {types[0]}")

    return typed


# (there is a value, all values combined)


def _truth(x: Any) -> Any:
    return (True, x != 0)


def _whole(x: Any) -> Any:
    return (True, int(x))


def _either(a: Any, b: Any) -> Any:
    return (a[0] or b[0], a[1] or b[1])


def _both(a: Any, b: Any) -> Any:
    return (a[0] or b[0], a[1] and b[1])


def _bits_of_either(a: Any, b: Any) -> Any:
    return (a[0] or b[0], a[1] | b[1])


def _bits_of_both(a: Any, b: Any) -> Any:
    return (a[0] or b[0], a[1] & b[1])


def _made(a: Any) -> Any:
    return a[1] if a[0] else None


def _make(
    name: str, neutral: Any, combine: Callable[[Any, Any], Any], *, bits: bool = False
) -> Operator:
    typed = _only(name, *(("int64", "whole numbers") if bits else ("bool", "bools")))
    lift = _whole if bits else _truth
    return ready(
        Operator(name, (False, neutral), lift, combine, _made, commutative=True, typed=typed)
    )


#: True if one of the bools is true.
any = _make("any", False, _either)
#: True if all of the bools are true.
all = _make("all", True, _both)
#: The bits that are set in at least one of the whole numbers.
bit_or = _make("bit_or", 0, _bits_of_either, bits=True)
#: The bits that are set in all of the whole numbers.
bit_and = _make("bit_and", -1, _bits_of_both, bits=True)


# (count, the bits that are set in an odd number of the values): the count allows an inverse


def _one(x: Any) -> Any:
    return (1, int(x))


def _odd_bits(a: Any, b: Any) -> Any:
    return (a[0] + b[0], a[1] ^ b[1])


def _take_out(total: Any, old: Any) -> Any:
    return (total[0] - old[0], total[1] ^ old[1])


def _odd(a: Any) -> Any:
    return a[1] if a[0] != 0 else None


#: The bits that are set in an odd number of the whole numbers.
bit_xor = ready(
    Operator(
        "bit_xor",
        (0, 0),
        _one,
        _odd_bits,
        _odd,
        _take_out,
        commutative=True,
        typed=_only("bit_xor", "int64", "whole numbers"),
    )
)
