"""Aggregates that return values of the rows themselves: of all rows of a window, or of some at an
end; and quantiles.

Over a whole table, a window is a range of the rows in order.  So the values are taken from the
column once, where partials would copy them from one to the next.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan, Ranged
from ..tables.numbers import as_floats
from ..tables.rows import Ordered
from .frames import Frames, Whole
from .quantiles import quantiles_of_ranges
from .ragged import ragged

__all__ = [
    "answers_of_ranges",
    "answers_over",
    "check_lengths",
    "values_of_ranges",
    "window_ranges",
]

_MOST = 2**31 - 1  # the most values in all lists of an Arrow column
#: From this average number of values in a range on, ranges are copied whole: copying a range takes
#: 250 ns; an index takes 2 ns for a number, and 20 for a text.
_LONG, _LONG_OTHERS = 128, 16


def window_ranges(
    times: Array, bounds: Array, groups: Array, starts: Array, ends: Array
) -> tuple[Array, Array]:
    """The ranges of rows that windows hold, by the group, start and end of each window.  The rows
    of group g are those from bounds[g] up to bounds[g + 1], in order of time.

    >>> times, bounds = np.array([1, 5, 9, 2, 3]), np.array([0, 3, 5])
    >>> window_ranges(times, bounds, np.array([0, 1]), np.array([4, 0]), np.array([9, 3]))
    (array([1, 3]), array([2, 4]))
    """
    if not len(times):
        return groups, groups
    low = int(times.min())
    width = int(times.max()) - low + 2  # so that no time is at the end of a group's span
    if width * len(bounds) < 2**62:
        row_groups = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        places = row_groups * width + (times - low)
        shift = groups.astype(np.int64) * width
        first = np.searchsorted(places, shift + np.clip(starts - low, 0, width - 1))
        last = np.searchsorted(places, shift + np.clip(ends - low, 0, width - 1))
        return first, last
    first, last = np.empty(len(groups), np.int64), np.empty(len(groups), np.int64)
    heads = np.searchsorted(groups, np.arange(len(bounds)))
    for g in range(len(bounds) - 1):
        some, own = slice(heads[g], heads[g + 1]), times[bounds[g] : bounds[g + 1]]
        first[some] = bounds[g] + np.searchsorted(own, starts[some])
        last[some] = bounds[g] + np.searchsorted(own, ends[some])
    return first, last


def check_lengths(chosen: Ranged, parts: list[pa.Array]) -> None:
    """Raise an error if all lists together are too long for one column."""
    if chosen.which not in ("nth", "quantile"):
        _check_length(chosen, sum(len(part.values) for part in parts))


def _check_length(chosen: Ranged, values: int) -> None:
    if values > _MOST:
        raise OverflowError(
            f"{chosen.name}: {values:,} values in all lists are more than a column of lists can "
            f"hold, {_MOST:,}; ask for fewer windows or keys at a time"
        )


def answers_of_ranges(chosen: Ranged, ordered: Ordered, first: Array, last: Array) -> pa.Array:
    """The answers of an aggregate over ranges of rows in order."""
    column = ordered.column(chosen.column)
    counts: Array | None = None
    if chosen.where is not None:
        counts = chosen.where.holds(ordered.table)
        counts = counts if ordered.rows is None else counts[ordered.rows]
    if chosen.skips and column.null_count:
        there = np.asarray(column.is_valid())
        counts = there if counts is None else counts & there
    if counts is not None:
        before = np.concatenate([[0], np.cumsum(counts)])
        first, last, column = before[first], before[last], column.filter(pa.array(counts))
    if chosen.which == "quantile":
        values = as_floats(column).to_numpy(zero_copy_only=False)
        return quantiles_of_ranges(values, first, last, chosen.count)
    if chosen.which == "nth":
        at = last - int(chosen.count)
        return column.take(pa.array(at, mask=at < first))
    if chosen.which == "first":
        last = np.minimum(last, first + int(chosen.count))
    elif chosen.which == "last":
        first = np.maximum(first, last - int(chosen.count))
    lengths = last - first
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    _check_length(chosen, int(offsets[-1]))
    taken = values_of_ranges(column, first, lengths)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), taken)


def values_of_ranges(column: pa.Array, first: Array, lengths: Array) -> pa.Array:
    """The values of ranges of a column, one range after the other.

    Long ranges are copied whole: 43,200 ranges of 667 numbers each take 19 ms, and with an index
    for each number 65 ms; ranges of text take 30 ms, and with an index 610.

    >>> values_of_ranges(pa.array(["a", "b", "c"]), np.array([1, 0]), np.array([2, 2])).to_pylist()
    ['b', 'c', 'a', 'b']
    """
    long = _LONG if pa.types.is_primitive(column.type) else _LONG_OTHERS
    views = getattr(pa, "ListViewArray", None)  # Arrow has them since 16
    if views is None or int(lengths.sum()) < long * len(lengths) or len(column) > _MOST:
        return column.take(pa.array(ragged(first, lengths)))
    small = (pa.array(a, pa.int32()) for a in (first, lengths))
    return views.from_arrays(*small, column).flatten()


def answers_over(
    plan: Plan, ordered: Ordered, frames: Frames, order: Array | None = None
) -> dict[str, pa.Array]:
    """The answers of aggregates over ranges of rows, for the frames of windows.  Row r has the
    answer of frame order[r] or, without `order`, of frame r."""
    values: dict[str, pa.Array] = {}
    if not plan.ranged:
        return values
    assert isinstance(frames, Whole)
    ranges = frames.ranges()
    for chosen in plan.ranged:
        found = answers_of_ranges(chosen, ordered, *ranges)
        values[chosen.name] = found if order is None else found.take(pa.array(order))
    return values
