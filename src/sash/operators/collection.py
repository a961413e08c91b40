"""Operators that keep all values: lists, distinct values, joined text.

Their partials grow with the window, and each combine copies them.  Values are equal as in Python (1
equals 1.0, -0.0 equals 0.0), and NaN equals NaN.
"""

from __future__ import annotations

from typing import Any

from .codec import decode_value, encode_value
from .contract import Operator, objects_only, ready

__all__ = ["collect", "collect_distinct", "concat", "count_distinct"]


# collect: the tuple of values


def _one(x: Any) -> Any:
    return (x,)


def _append(a: Any, b: Any) -> Any:
    return a + b


def _drop_prefix(total: Any, old: Any) -> Any:
    return total[len(old) :]


#: All values in order, as a list, without nulls.
collect = ready(
    Operator(
        "collect",
        (),
        _one,
        _append,
        list,
        _drop_prefix,
        encode=encode_value,
        decode=decode_value,
    )
)


# distinct values: the values, under a hashable key that is equal for equal values


def _key(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ("list" if isinstance(value, list) else "tuple", *(_key(x) for x in value))
    if isinstance(value, dict):
        return ("dict", frozenset((_key(k), _key(x)) for k, x in value.items()))
    return ("nan",) if value != value else value


def _keyed(x: Any) -> Any:
    return {_key(x): x}


def _unite(a: Any, b: Any) -> Any:
    if not a:
        return b
    if not b:
        return a
    made = dict(a)
    for key, value in b.items():
        made.setdefault(key, value)
    return made


def _values(a: Any) -> list[Any]:
    return list(a.values())


def _encode_values(a: Any) -> bytes:
    return encode_value(tuple(a.values()))


def _decode_values(data: bytes) -> Any:
    return {_key(x): x for x in decode_value(data)}


#: The distinct values in order of first occurrence, as a list, without nulls.
collect_distinct = ready(
    Operator(
        "collect_distinct",
        {},
        _keyed,
        _unite,
        _values,
        encode=_encode_values,
        decode=_decode_values,
        equal=lambda a, b: list(a) == list(b),
    )
)


def _key_set(x: Any) -> Any:
    return frozenset((_key(x),))


def _union(a: Any, b: Any) -> Any:
    return a | b


#: The exact number of distinct values, without nulls.  `hll` estimates it in fixed space.
count_distinct = ready(
    Operator(
        "count_distinct",
        frozenset(),
        _key_set,
        _union,
        len,
        commutative=True,
        encode=encode_value,
        decode=decode_value,
    )
)


# concat: (number of values, all of them joined). The number distinguishes a window of empty
# strings from an empty window, also after the inverse.

_NOTHING = (0, None)


def _joinable(x: Any) -> Any:
    if not isinstance(x, str | bytes | list | tuple):
        raise TypeError(
            f"concat joins strings, bytes, lists or tuples, not {x!r} ({type(x).__name__})"
        )
    return (1, x)


def _join(a: Any, b: Any) -> Any:
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    return (a[0] + b[0], a[1] + b[1])


def _unjoin(total: Any, old: Any) -> Any:
    if old[0] == 0:
        return total
    if total[0] == old[0]:
        return _NOTHING
    return (total[0] - old[0], total[1][len(old[1]) :])


def _joined(a: Any) -> Any:
    # a slice copies, so that a caller cannot change a list in the window
    return a[1][:] if a[0] else None


#: All strings, bytes, lists or tuples joined in order; null if there are none.
concat = ready(
    Operator(
        "concat",
        _NOTHING,
        _joinable,
        _join,
        _joined,
        _unjoin,
        encode=encode_value,
        decode=decode_value,
        typed=objects_only("concat", "strings, bytes, lists or tuples"),
    )
)
