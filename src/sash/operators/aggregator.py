"""Objects with the methods of Spark's `Aggregator` as operators: `zero`, `reduce`, `merge`,
`finish`.

    zero                  an empty buffer: an attribute, a property, or a method
    reduce(buffer, x)     the buffer with one more value; several columns come as a tuple, or one
                          by one if the method takes as many arguments
    merge(a, b)           one buffer from two
    finish(buffer)        the answer

All of them may change the buffers that they receive, as on Spark, so they receive copies.  They see
nulls as None, as on Spark.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

from .codec import decode_value, encode_value
from .contract import Operator

__all__ = ["from_aggregator", "is_aggregator"]


def is_aggregator(given: Any) -> bool:
    """True if an object has all four parts."""
    parts = all(callable(getattr(given, name, None)) for name in ("reduce", "merge", "finish"))
    return parts and hasattr(given, "zero") and not isinstance(given, type)


def from_aggregator(given: Any, columns: int) -> Operator:
    """Turn an aggregator over `columns` columns into an operator.

    A partial is a list with the buffer as its one element, so that a buffer can be any object.

    >>> class Longest:
    ...     zero = ""
    ...
    ...     def reduce(self, buffer, x):
    ...         return self.merge(buffer, x or "")
    ...
    ...     def merge(self, a, b):
    ...         return max(a, b, key=len)
    ...
    ...     def finish(self, buffer):
    ...         return buffer
    >>> op = from_aggregator(Longest(), 1)
    >>> op.lower(op.fold(["a", None, "abc"]))
    'abc'
    """
    one_by_one = columns > 1 and _takes(given.reduce) == columns + 1

    def empty() -> Any:
        return given.zero() if callable(given.zero) else deepcopy(given.zero)

    def lift(*row: Any) -> Any:
        values = row if one_by_one or columns == 1 else (row,)
        return [given.reduce(empty(), *values)]

    def combine(a: Any, b: Any) -> Any:
        return [given.merge(deepcopy(a[0]), deepcopy(b[0]))]

    def lower(a: Any) -> Any:
        return given.finish(deepcopy(a[0]))

    encode, decode = getattr(given, "encode", None), getattr(given, "decode", None)
    codec: dict[str, Any] = {}
    if encode is not None and decode is not None:
        codec = {"encode": lambda a: encode(deepcopy(a[0])), "decode": lambda d: [decode(d)]}
    elif _is_plain(empty()):
        codec = {"encode": encode_value, "decode": decode_value}
    return Operator(
        type(given).__name__,
        [empty()],
        lift,
        combine,
        lower,
        commutative=bool(getattr(given, "commutative", False)),
        skips=(False,) * columns,
        compile=False,
        **codec,
    )


def _takes(function: Any) -> int | None:
    """The number of arguments that a function takes; None if it is unknown or any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _is_plain(buffer: Any) -> bool:
    """True if a buffer consists of plain values, which `encode_value` can encode."""
    try:
        return bool(decode_value(encode_value([buffer])) == [buffer])
    except (TypeError, ValueError):
        return False
