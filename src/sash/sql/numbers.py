"""Numbers of the text, in Spark's types: 1 is an int, 1.5 a decimal, 1e3 a double, and a letter
behind a number names another type."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from .nodes import Literal_
from .tokens import Token

__all__ = ["NUMBERS", "negative_of", "number_of"]

_SUFFIXES = {"L": "bigint", "S": "smallint", "Y": "tinyint", "D": "double", "F": "float"}
#: The types of literals that are numbers.
NUMBERS = ("int", *_SUFFIXES.values(), "decimal")
#: The numbers that fit a type only with a minus.
_BEYOND = {2**31: "int", 2**63: "bigint"}


def number_of(token: Token) -> Literal_:
    """The number of a token.

    >>> number_of(Token("number", "1.50", 0, 4))
    Literal_(at=(0, 4), value=Decimal('1.50'), kind='decimal')
    """
    text, at = token.value, (token.start, token.end)
    upper = text.upper()
    if upper.endswith("BD"):
        return Literal_(Decimal(text[:-2]), "decimal", at=at)
    suffix = _SUFFIXES.get(upper[-1])
    if suffix is not None:
        number = float(text[:-1]) if suffix in ("double", "float") else int(text[:-1])
        return Literal_(number, suffix, at=at)
    if "E" in upper:
        return Literal_(float(text), "double", at=at)
    if "." in text or int(text) >= 2**63:
        return Literal_(Decimal(text), "decimal", at=at)
    return Literal_(int(text), "int" if int(text) < 2**31 else "bigint", at=at)


def negative_of(token: Token) -> Literal_:
    """The number of a minus and a token.  For Spark the minus belongs to the number, so the least
    int and the least bigint fit their types, although the number without the minus does not.

    >>> negative_of(Token("number", "9223372036854775808", 1, 20)).kind
    'bigint'
    """
    found = number_of(token)
    if token.value.isdigit() and int(token.value) in _BEYOND:
        return replace(found, value=-int(token.value), kind=_BEYOND[int(token.value)])
    value = found.value.copy_negate() if found.kind == "decimal" else -found.value
    return replace(found, value=value)
