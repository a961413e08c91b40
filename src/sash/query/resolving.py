"""Fill in what an aggregate takes from its query: the column of times, and the window's length."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..operators import rate
from ..windows import Sized
from .aggregates.contract import TIME, Aggregate

__all__ = ["resolved"]


def resolved(chosen: Aggregate, time: str, window: Any) -> Aggregate:
    """The aggregate, with its query's column of times and window length filled in.

    >>> import sash
    >>> resolved(sash.rate("x"), "t", sash.tumbling("1 minute"))
    rate(60.0)('x')
    """
    if TIME in chosen.columns:
        columns = tuple(time if c == TIME else c for c in chosen.columns)
        chosen = dataclasses.replace(chosen, columns=columns)
    if chosen.operator.ready == "rate" and chosen.operator.parameters[0] is None:
        made = rate(_length(chosen, window) / 1_000_000, chosen.operator.parameters[1])
        if made.skips != chosen.operator.skips:
            made = made.ignore_nulls()
        chosen = dataclasses.replace(chosen, operator=made)
    return chosen


def _length(chosen: Aggregate, window: Any) -> int:
    """The length of an aggregate's windows, in microseconds."""
    if isinstance(chosen.size, int):
        return chosen.size
    if chosen.size is None and isinstance(window, Sized) and window.length is not None:
        return window.length
    raise ValueError(
        f"sash.rate divides by the length of a window, and windows of {window!r} differ in "
        "length; select sash.sum or sash.count, and divide by the length of each window"
    )
