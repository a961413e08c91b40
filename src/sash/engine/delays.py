"""How late rows come: stream time at the start of a row's batch less the row's own time.

A histogram has a count of the rows that came in order, and 24 buckets of those that did not:

    in order   (0, 1 s]   (1 s, 2 s]   (2 s, 4 s]   …   (2^21 s, 2^22 s]   more
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..kernels.columns import Array

__all__ = ["BOUNDS", "BUCKETS", "delay_counts", "no_delays"]

#: How many buckets there are.
BUCKETS = 24

#: What each count goes up to, in microseconds, and includes; the last one has no bound.
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
    """The histogram of the times of a batch, judged by stream time at its start, or when each row
    came; without the rows that are refused.  Each time may stand for several rows.

    >>> second = 1_000_000
    >>> delay_counts(np.array([9, 8, 5]) * second, 9 * second)[:5].tolist()
    [1, 1, 0, 1, 0]
    """
    if stream_time is None:
        places = np.zeros(len(times), dtype=np.int64)
    else:
        places = np.searchsorted(BOUNDS, stream_time - times)
    counts: Array = np.bincount(places, weights, BUCKETS + 1).astype(np.int64)
    if refused:
        counts -= np.bincount(places[list(refused)], minlength=BUCKETS + 1)
    return counts
