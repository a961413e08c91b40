"""The longest run of rising values.

The AMTA paper's experiments call it LIS.  The longest increasing *subsequence* has no partial of
fixed size; the longest increasing *run* of neighbouring values has one, and this module computes
the run.  The partial of a span holds its first run and its last run, because only these can grow
when a neighbour joins:

    3 5 | 4 6 9 | 2        count 6, prefix run of 2, suffix run of 1, best 4 6 9
"""

from __future__ import annotations

from typing import Any

from .codec import decode_value, encode_value
from .contract import Operator, ready
from .ranks import rank, zero_of

__all__ = ["longest_run"]

_LEAST, _MOST = -(2**63), 2**63 - 1

# the index of each field in a partial
_COUNT, _FIRST, _LAST = 0, 1, 2
_BEGIN, _END = 3, 4
_PREFIX, _PREFIX_END = 5, 6
_SUFFIX, _SUFFIX_START = 7, 8
_BEST, _BEST_START, _BEST_END = 9, 10, 11


def _longest_run(types: tuple[str, ...]) -> Operator:
    typed = types[0] in ("int64", "timestamp", "float64") and types[1] != "object"
    if not typed:
        types = ("int64" if types[0] == "int64" else "object", "object")
    at = zero_of(types[0])
    r = rank(types[1])
    to_key = r.key

    def lift(time: Any, x: Any) -> Any:
        k = to_key(x)
        return (1, k, k, time, time, 1, time, 1, time, 1, time, time)

    def combine(a: Any, b: Any) -> Any:
        if a[_COUNT] == 0:
            return b
        if b[_COUNT] == 0:
            return a
        prefix, prefix_end = a[_PREFIX], a[_PREFIX_END]
        suffix, suffix_start = b[_SUFFIX], b[_SUFFIX_START]
        best, best_start, best_end = a[_BEST], a[_BEST_START], a[_BEST_END]
        if a[_LAST] < b[_FIRST]:
            if prefix == a[_COUNT]:
                prefix, prefix_end = prefix + b[_PREFIX], b[_PREFIX_END]
            if suffix == b[_COUNT]:
                suffix, suffix_start = a[_SUFFIX] + suffix, a[_SUFFIX_START]
            if a[_SUFFIX] + b[_PREFIX] > best:
                best = a[_SUFFIX] + b[_PREFIX]
                best_start, best_end = a[_SUFFIX_START], b[_PREFIX_END]
        if b[_BEST] > best:
            best, best_start, best_end = b[_BEST], b[_BEST_START], b[_BEST_END]
        return (
            a[_COUNT] + b[_COUNT],
            a[_FIRST],
            b[_LAST],
            a[_BEGIN],
            b[_END],
            prefix,
            prefix_end,
            suffix,
            suffix_start,
            best,
            best_start,
            best_end,
        )

    def lower(a: Any) -> Any:
        if a[_COUNT] == 0:
            return None
        return (a[_BEST_START], a[_BEST_END], a[_BEST_END] - a[_BEST_START], a[_BEST])

    def lower_any(a: Any) -> Any:
        found = lower(a)
        if found and isinstance(found[2], int) and not _LEAST <= found[2] <= _MOST:
            raise OverflowError("the interval leaves int64")
        return found

    def lower_integer(a: Any) -> Any:
        if a[_COUNT] == 0:
            return None
        start, end = a[_BEST_START], a[_BEST_END]
        if (start < 0 and end > _MOST + start) or (start > 0 and end < _LEAST + start):
            raise OverflowError("the interval leaves int64")
        return (start, end, end - start, a[_BEST])

    lowers = {"int64": lower_integer, "timestamp": lower_integer, "float64": lower}
    when = rank(types[0]).returns
    return Operator(
        "longest_run",
        (0, r.zero, r.zero, at, at, 0, at, 0, at, 0, at, at),
        lift,
        combine,
        lowers.get(types[0], lower_any),
        skips=(True, True),
        fields=("start", "end", "interval", "length"),
        returns=(when, when, "", ""),
        typed=_longest_run,
        encode=None if typed else encode_value,
        decode=None if typed else decode_value,
    )


#: Of (time, value): the longest run of neighbouring values in which each is above the one
#: before, as start, end, interval (end - start; for a timestamp column in microseconds) and
#: length in values; the first of equally long runs.  NaN is above all numbers.  It skips rows with
#: a null, which do not end a run.
longest_run = ready(_longest_run(("object", "object")))
