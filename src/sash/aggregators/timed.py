"""What every timed aggregator can do: the contract, and the work they share.

Values come with times, in any order; values of one time are combined in the order of their
arrival.  A time is an integer (microseconds, say), a datetime or a numpy datetime64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels.columns import to_micros
from ..operators.contract import Operator

__all__ = ["as_time", "as_times", "check_operator"]


def as_time(time: Any) -> int:
    """A time as an integer."""
    if isinstance(time, int) and not isinstance(time, bool):
        if not -(2**63) <= time < 2**63:
            raise OverflowError(f"time {time} does not fit int64")
        return time
    return to_micros(time)


def as_times(times: Any) -> np.ndarray[Any, Any]:
    """Times as an array of int64."""
    made = np.asarray(times)
    if made.ndim != 1:
        raise TypeError(f"times must have one dimension, not shape {made.shape}")
    if made.dtype.kind == "M":
        if np.isnat(made).any():
            raise ValueError("a time is missing (NaT); leave out rows without a time")
        return made.astype("M8[us]").view(np.int64)
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


Entries = Iterator[tuple[int, Any]]
