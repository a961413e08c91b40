"""What every timed aggregator can do: the contract, and the work they share.

Values come with times, in any order; values of one time are combined in the order of their
arrival.  A time is an integer (microseconds, say), a datetime or a numpy datetime64.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from ..kernels.columns import Array, Table, floor_micros, to_micros
from ..operators.contract import Operator
from .in_order import check_size

__all__ = [
    "LEAST",
    "MANY",
    "as_range",
    "as_span",
    "as_time",
    "as_times",
    "check_count",
    "check_operator",
    "check_rows",
    "keep",
    "late",
]

LEAST = -(2**63)  # the least time there is
MANY = 2**62  # more elements than there can be


def as_time(time: Any) -> int:
    """A time as an integer."""
    if time != time:  # numpy's and pandas' NaT, which is a datetime
        raise ValueError("a time is missing (NaT); leave out rows without a time")
    return to_micros(time)


def as_range(lo: Any, hi: Any) -> tuple[int, int]:
    """The first and the last time of a range `[lo, hi)`, either end of which may be None; of an
    empty range the last is before the first.

    >>> as_range(3, 5), as_range(3, 4)
    ((3, 4), (3, 3))
    """
    first = LEAST if lo is None else as_time(lo)
    end = -LEAST if hi is None else as_time(hi)
    if first > end:
        raise ValueError(f"a range goes from an older to a younger time, not {lo!r}, {hi!r}")
    return (first, end - 1) if first < end else (LEAST + 1, LEAST)


def as_times(times: Any) -> np.ndarray[Any, Any]:
    """Times as an array of int64."""
    made = np.asarray(times)
    if made.ndim != 1:
        raise TypeError(f"times must have one dimension, not shape {made.shape}")
    if made.dtype.kind == "M":
        if np.isnat(made).any():
            raise ValueError("a time is missing (NaT); leave out rows without a time")
        return floor_micros(made)
    if made.dtype.kind == "u" and len(made) and int(made.max()) >= 2**63:
        raise OverflowError(f"time {made.max()} does not fit int64")
    if made.dtype.kind in "iu" or not len(made):
        return np.ascontiguousarray(made, dtype=np.int64)
    if made.dtype.kind == "O":
        return np.array([as_time(t) for t in made.tolist()], dtype=np.int64)
    raise TypeError(f"times must be integers or datetimes, not {made.dtype}")


def check_operator(owner: type, operator: Any) -> Operator:
    """The operator, or a clear error if it is none."""
    if not isinstance(operator, Operator):
        raise TypeError(
            f"{owner.__name__} needs an operator (one of sash.operators, or made by "
            f"sash.operator), not {operator!r}"
        )
    return operator


def late(owner: type, time: int, youngest: int | None, row: int | None = None) -> ValueError:
    """The error about a time out of order."""
    where = "" if row is None else f"row {row}: "
    return ValueError(
        f"{where}{owner.__name__} takes values in order of time, and {time} is older than "
        f"{youngest}, the youngest time; use Fiba, which takes them in any order"
    )


def check_rows(owner: type, times: Array, table: Table, youngest: int | None) -> None:
    """Refuse rows whose times are out of order, or not as many as the values."""
    check_count(times, table)
    before = np.concatenate([times[:1] if youngest is None else [youngest], times[:-1]])
    wrong = np.flatnonzero(times < before[: len(times)])
    if len(wrong):
        row = int(wrong[0])
        raise late(owner, int(times[row]), int(before[row]), row)


def check_count(times: Array, table: Table) -> None:
    """Refuse times that are not as many as the values."""
    if len(times) != table.rows:
        raise ValueError(f"{len(times)} times were given for {table.rows} values")


def keep(times: Array, span: Any, count: int | None) -> tuple[Array, int]:
    """What a slide keeps, from its arguments: for each row the time before which all is evicted,
    and how many are kept at most."""
    if (span is None) == (count is None):
        raise TypeError("a window slides by span=… or by count=…: give one of them")
    if count is not None:
        return np.full(len(times), LEAST), check_size(count)
    back = min(as_span(span), 2**64 - 1)
    half = back // 2  # each half fits int64
    # a limit before all of time would come round as one after it
    limits = np.where(times < LEAST + back, LEAST, times - half - (back - half))
    return limits, MANY


def as_span(span: Any) -> int:
    """A length of time as an integer: microseconds, if it is a timedelta."""
    if isinstance(span, timedelta):
        made = span // timedelta(microseconds=1)
    elif isinstance(span, np.timedelta64) and not np.isnat(span):
        made = int(span.astype("m8[us]").astype(np.int64))
    elif isinstance(span, int | np.integer) and not isinstance(span, bool):
        made = int(span)
    else:
        raise TypeError(f"span is a length of time (an integer or a timedelta), not {span!r}")
    if made < 0:
        raise ValueError(f"span is a length of time, so it cannot be {span}")
    return made
