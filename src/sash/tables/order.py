"""Puts rows in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from .arrow import one_array

__all__ = ["in_time", "nanoseconds", "tie_ranks"]


def nanoseconds(column: pa.Array, times: Array) -> Array | None:
    """The nanoseconds of a time column beyond its times in microseconds; None if all are 0.  sash
    uses them only to order events: windows, peers and lateness are in microseconds."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "ns":
        return None
    ticks = column.cast(pa.int64())
    plain = (ticks.fill_null(0) if ticks.null_count else ticks).to_numpy()
    rest: Array = plain - 1000 * times  # much quicker than a remainder
    return rest if rest.any() else None


def in_time(times: Array, *ties: Array | None) -> Array | None:
    """Order rows by time, then by the `ties` that are not None (nanoseconds, tie ranks), then as
    they came.  Return the row numbers in that order, or None if the rows are in order already.

    numpy has a radix sort for 16 bits.  Two of them order 10,000 rows that span less than an hour
    in 0.12 ms, where a stable sort of their times takes 0.25 ms, or 0.45 ms with much disorder.
    """
    given = [tie for tie in ties if tie is not None]
    if given:
        return np.lexsort((*reversed(given), times))
    if (times[1:] >= times[:-1]).all():
        return None
    since = times - times.min()
    most = int(since.max())
    if most >= 1 << 32:
        return np.argsort(times, kind="stable")
    low = np.argsort(since.astype(np.uint16), kind="stable")
    if most < 1 << 16:
        return low
    high = np.argsort((since >> 16).astype(np.uint16)[low], kind="stable")
    return low[high]


def tie_ranks(name: str, table: pa.Table, at: Array | None = None) -> Array:
    """Rank the values of a tie column, or of its rows `at`, nulls last."""
    values = one_array(table.column(name))
    if at is not None:
        values = values.take(pa.array(at))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        return np.asarray(pc.rank(values, tiebreaker="dense"), dtype=np.int64)
    except pa.ArrowNotImplementedError:
        raise TypeError(
            f"the tie column {name!r} has type {values.type}, which has no order; give one of "
            "numbers, times or text"
        ) from None
