"""Ready policies: by count, time, sum, maximum and longest run, and by limits in the stream itself.

Each has a small operator of its own.  A null counts in `at_most`, adds nothing to a sum, and is no
limit.  A row with a null time, maximum or run value never keeps other rows in the window.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from ..operators.contract import Operator, type_name
from ..operators.numeric import count
from ..operators.order import max as greatest
from ..operators.ranks import rank
from .contract import Policy

__all__ = [
    "at_most",
    "at_most_span",
    "at_most_sum",
    "limited_by",
    "since_longest_run",
    "since_maximum",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def at_most(n: int) -> Policy:
    """Keep the n youngest values.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import concat
    >>> Amta(concat, policy=at_most(2)).slide(["a", "b", "c"])
    ['a', 'ab', 'bc']
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ValueError(f"n is a whole number of at least 0, not {n!r}")
    n = int(n)
    return Policy(lambda total, old: total - old >= n, count, (0,), f"at_most({n})")


# A span of time: (there is a time, the greatest time)


def _micros(time: Any) -> Any:
    """A time as microseconds since 1970; a number as it is."""
    if isinstance(time, datetime):
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    if isinstance(time, np.datetime64):
        return int(time.astype("M8[us]").astype(np.int64))
    return time


def _later(a: Any, b: Any) -> Any:
    return b if b[0] and (a[0] == 0 or b[1] > a[1]) else a


def _typed_time(types: tuple[str, ...]) -> Operator | None:
    if types[0] not in ("int64", "timestamp"):
        return None
    return Operator("youngest", (0, 0), lambda t: (1, t), _later)


_youngest = Operator("youngest", (0, 0), lambda t: (1, _micros(t)), _later, typed=_typed_time)


def at_most_span(span: Any, column: int | str | None = None) -> Policy:
    """Keep values at most `span` older than the youngest time, as `slide(times, values, span=…)`
    does.

    Times are integers, or datetimes with a timedelta for `span`; `column` is the column of times.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import concat
    >>> window = Amta(concat, policy=at_most_span(10, column=1))
    >>> window.slide((["a", "b", "c", "d"], [0, 4, 14, 15]))
    ['a', 'ab', 'bc', 'cd']
    """
    if isinstance(span, timedelta):
        limit = span // _MICROSECOND
    elif isinstance(span, np.timedelta64):
        limit = int(span.astype("m8[us]").astype(np.int64))
    elif isinstance(span, int | np.integer) and not isinstance(span, bool):
        limit = int(span)
    else:
        raise TypeError(f"span is a length of time (an integer or a timedelta), not {span!r}")
    if limit < 0:
        raise ValueError(f"span is a length of time, so it cannot be {span}")

    def rule(total: Any, old: Any) -> bool:
        return bool(old[0] == 0 or total[1] - old[1] > limit)

    return Policy(rule, _youngest, _one(column), f"at_most_span({span})", ("timestamp",))


# A sum: (count, the sum, the youngest value, how many values are infinite or NaN, and whether the
# youngest one is): such a value would stay in the sum for ever


def _sum_lift(x: Any) -> Any:
    if x is None:
        return (1, 0, 0, 0, 0)
    return (1, x, x, 0, 0) if x - x == 0 else (1, 0, 0, 1, 1)


def _sum_later(a: Any, b: Any) -> Any:
    last = b if b[0] else a
    return (a[0] + b[0], a[1] + b[1], last[2], a[3] + b[3], last[4])


_sum_and_last = Operator("sum_and_last", (0,) * 5, _sum_lift, _sum_later, skips=(False,))


def at_most_sum(limit: float | Decimal, column: int | str | None = None) -> Policy:
    """Keep the youngest values that add up to at most `limit`.  Values must not be negative; NaN
    and infinity are more than any limit.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import max
    >>> window = Amta(max, policy=at_most_sum(10))
    >>> window.slide([2, 2, 3, 3, 4])
    [2, 2, 3, 3, 4]
    >>> len(window)
    3
    """
    if isinstance(limit, np.generic):
        limit = limit.item()
    if isinstance(limit, bool) or not isinstance(limit, int | float | Decimal) or limit != limit:
        raise ValueError(f"limit is a number that a sum may reach, not {limit!r}")

    def rule(total: Any, old: Any) -> bool:
        beyond = total[3] - old[3] + old[4]
        return bool(beyond > 0 or total[1] - old[1] + old[2] > limit)

    return Policy(rule, _sum_and_last, _one(column), f"at_most_sum({limit})")


def _typed_keys(types: tuple[str, ...]) -> Operator:
    return dataclasses.replace(greatest.of(*types), lower=None, typed=None, returns=())


#: The maximum as its sort key: NaN is greatest.
_keys = dataclasses.replace(greatest, name="key", lower=None, typed=_typed_keys)


def since_maximum(column: int | str | None = None) -> Policy:
    """Drop values older than the maximum (the first of equal ones): later maxima do not need them.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import concat
    >>> Amta(concat, policy=since_maximum(column=1)).slide((list("abcd"), [3, 5, 5, 4]))
    ['a', 'b', 'bc', 'bcd']
    """
    return Policy(lambda total, old: old < total, _keys, _one(column), "since_maximum")


# The longest run: (how many, first, last, the run that begins, the one that ends, the longest and
# how many values are before it)


def _run_later(a: Any, b: Any) -> Any:
    if a[0] == 0:
        return b
    if b[0] == 0:
        return a
    begin, end, best, at = a[3], b[4], a[5], a[6]
    if a[2] < b[1]:
        if begin == a[0]:
            begin += b[3]
        if end == b[0]:
            end += a[4]
        if a[4] + b[3] > best:
            best, at = a[4] + b[3], a[0] - a[4]
    if b[5] > best:
        best, at = b[5], a[0] + b[6]
    return (a[0] + b[0], a[1], b[2], begin, end, best, at)


def _runs(type_: str) -> Operator:
    r = rank(type_)
    to_key = r.key

    def lift(x: Any) -> Any:
        k = to_key(x)
        return (1, k, k, 1, 1, 1, 0)

    return Operator("run", (0, r.zero, r.zero, 0, 0, 0, 0), lift, _run_later)


_run = dataclasses.replace(_runs("object"), typed=lambda types: _runs(type_name(types[0])))


def since_longest_run(column: int | str | None = None) -> Policy:
    """Drop values older than the longest run of rising values; see `operators.longest_run`.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import collect
    >>> Amta(collect, policy=since_longest_run()).slide([5, 4, 6, 6, 7, 8])[2:]
    [[4, 6], [4, 6, 6], [4, 6, 6, 7], [6, 7, 8]]
    """
    return Policy(lambda total, old: total[6] >= old[0], _run, _one(column), "since_longest_run")


# A limit in the stream: (count, there is a limit, the youngest limit)


def _told(x: Any) -> Any:
    if x is None:
        return (1, 0, 0)
    return (1, 1, int(x))


def _told_later(a: Any, b: Any) -> Any:
    if b[1]:
        return (a[0] + b[0], 1, b[2])
    return (a[0] + b[0], a[1], a[2])


_limits = Operator("limit", (0, 0, 0), _told, _told_later, skips=(False,))


def limited_by(column: int | str) -> Policy:
    """Keep as many values as the youngest limit says; limits come with the values, in this column.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import concat
    >>> Amta(concat, policy=limited_by(1)).slide((list("abcde"), [3, 3, None, 3, 1]))
    ['a', 'ab', 'abc', 'bcd', 'e']
    """

    def rule(total: Any, old: Any) -> bool:
        return bool(total[1] and total[0] - old[0] >= total[2])

    return Policy(rule, _limits, (column,), f"limited_by({column})", ("int64",))


def _one(column: int | str | None) -> tuple[int | str, ...] | None:
    if column is None:
        return None
    if isinstance(column, str):
        return (column,)
    if isinstance(column, bool) or not isinstance(column, int) or column < 0:
        raise TypeError(f"column is the number of a column, or in a query its name, not {column!r}")
    return (column,)
