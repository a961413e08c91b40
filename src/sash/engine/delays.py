"""How late rows come: stream time at the start of a row's batch less the row's own time.

A histogram has a count of the rows that came in order, and 24 buckets for the others:

    in order   (0, 1 s]   (1 s, 2 s]   (2 s, 4 s]   …   (2^21 s, 2^22 s]   more
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..kernels.columns import Array

__all__ = ["BOUNDS", "BUCKETS", "delay_counts", "no_delays"]

#: How many buckets there are.
BUCKETS = 24

#: The upper bound of each count, in microseconds, included; the last count has no bound.
BOUNDS = np.append(0, 1_000_000 * 2 ** np.arange(BUCKETS - 1, dtype=np.int64))


def no_delays() -> Array:
    """The histogram of no rows."""
    return np.zeros(BUCKETS + 1, dtype=np.int64)


def delay_counts(
    times: Array,
    stream_time: Array | int | None,
    refused: Collection[int] = (),
    *,
    weights: Array | None = None,
) -> Array:
    """The histogram of a batch's times, by stream time at the start of the batch, or when each row
    came; without the refused rows.  With `weights`, a time stands for several rows.

    >>> second = 1_000_000
    >>> delay_counts(np.array([9, 8, 5]) * second, 9 * second)[:5].tolist()
    [1, 1, 0, 1, 0]
    """
    if refused:
        there = np.ones(len(times), dtype=bool)
        there[list(refused)] = False
        times = times[there]
        if isinstance(stream_time, np.ndarray):
            stream_time = stream_time[there]
        weights = None if weights is None else weights[there]
    counts = no_delays()
    counts[0] = len(times) if weights is None else weights.sum()
    if stream_time is not None:
        behind = np.flatnonzero(times < stream_time)  # few, mostly
        at = stream_time[behind] if isinstance(stream_time, np.ndarray) else stream_time
        many = None if weights is None else weights[behind]
        places = np.searchsorted(BOUNDS, at - times[behind])
        late = np.bincount(places, many, BUCKETS + 1).astype(np.int64)
        counts[0] -= late.sum()
        counts += late
    return counts
