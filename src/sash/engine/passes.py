"""Passes over the rows of a large batch, and over the windows that it makes due: one call of a
kernel in place of many of numpy.

numpy takes the interpreter's lock again after each call, so with many short calls two streams in
two threads wait for each other most of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, plain_words
from ..kernels.core import shared_core
from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item
from ..windows.contract import LATEST, UTC, Aligned, Clock
from .delays import BOUNDS, BUCKETS

__all__ = ["Survey", "spans_of", "survey"]

#: From so many rows on, the kernel is worth the time to compile it in a new process.
MANY = 1 << 12


def survey_times(
    m: Memory, times: Any, rows: int, came: int, bounds: Any, buckets: int, found: Any, counts: Any
) -> None:
    """Write the least and the greatest of at least one time into `found`, and the histogram of the
    times by stream time `came` into `counts`."""
    least = item(times, 0)
    greatest = least
    behind = 0
    for i in range(rows):
        t = item(times, i)
        least = min(least, t)
        greatest = max(greatest, t)
        if t < came:
            late = came - t
            at = 1
            while at < buckets and item(bounds, at) < late:
                at += 1
            set_item(counts, at, item(counts, at) + 1)
            behind += 1
    set_item(counts, 0, rows - behind)
    set_item(found, 0, least)
    set_item(found, 1, greatest)


def span_windows(
    m: Memory,
    windows: Any,
    rows: int,
    length: int,
    start: int,
    end: int,
    starts: Any,
    ends: Any,
) -> None:
    """Write the starts and ends of windows by number: of which one begins each `length`, and window
    0 lasts from `start` to `end`."""
    for i in range(rows):
        at = item(windows, i) * length
        set_item(starts, i, at + start)
        set_item(ends, i, at + end)


#: The kernel; it does not depend on an operator.
PASSES = Kernel("passes", (survey_times, span_windows), ("survey_times", "span_windows"))


@dataclass(frozen=True)
class Survey:
    """The times of a batch, all of them usable: the least, the greatest, and a histogram of how
    late their rows came."""

    times: Array
    least: int
    greatest: int
    delays: Array


def survey(column: pa.Array, came: Array | int | None, clock: Clock = UTC) -> Survey | None:
    """Survey a column of times, of rows that came at one stream time; None if there are few rows,
    if rows came at several stream times, or if a time may be unusable.  Mostly all are usable, and
    the oldest shows that none is late."""
    if len(column) < MANY or isinstance(came, np.ndarray):
        return None
    kind = column.type
    if kind != pa.int64() and not (pa.types.is_timestamp(kind) and kind.unit == "us"):
        return None
    times = plain_words(column)
    if times is None:
        return None
    core = shared_core(PASSES)
    found, counts = np.empty(2, dtype=np.int64), np.zeros(BUCKETS + 1, dtype=np.int64)
    with core.call() as call:
        bounds, into = call.integers(BOUNDS), (call.integers(found), call.integers(counts))
        at = -LATEST if came is None else came
        given = call.integers(times), len(times), at, bounds, BUCKETS
        core.run.survey_times(core.m, *given, *into)
    least, greatest = found.tolist()
    low, high = clock.limits
    if not max(-LATEST, low) < least <= greatest < min(LATEST, high):
        return None
    return Survey(times, least, greatest, counts)


def spans_of(window: Aligned, numbers: Array) -> tuple[Array, Array]:
    """The starts and the ends of windows, by number.

    >>> from sash.windows import sliding
    >>> spans_of(sliding(10, 5), np.array([0, 2]))
    (array([ 0, 10]), array([10, 20]))
    """
    cycle = window.cycle
    if len(numbers) < MANY or window.clock is not UTC or cycle.windows != 1:
        return window.start(numbers), window.end(numbers)
    starts, ends = np.empty((2, len(numbers)), dtype=np.int64)
    core = shared_core(PASSES)
    with core.call() as call:
        given = call.integers(numbers), len(numbers), cycle.length
        edges = cycle.offset, cycle.offset + cycle.longest
        core.run.span_windows(core.m, *given, *edges, call.integers(starts), call.integers(ends))
    return starts, ends
