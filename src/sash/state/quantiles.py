"""Exact quantiles over ranges of the rows of a table, neither end of which goes back.

The ranges are divided into pieces: the rows of a piece's ranges lie within a few lengths of the
longest range.  The rows of a piece are sorted, and a tree over their ranks, which fits the
processor's cache, follows the ranges (`quantile_kernel`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import shared_core
from ..operators.ranks import signed_keys
from .quantile_kernel import NTH

__all__ = ["quantiles_of_ranges"]

_LEAST = 1024  # a piece may have this many rows more than two of the longest range


def quantiles_of_ranges(values: Array, first: Array, last: Array, share: float) -> pa.Array:
    """The quantile `share` of each range of floats, interpolated between neighbours; null for an
    empty range.  NaN is greater than all other values.

    >>> first, last = np.array([0, 1, 3]), np.array([2, 3, 3])
    >>> quantiles_of_ranges(np.array([3.0, 1.0, 2.0]), first, last, 0.5).to_pylist()
    [2.0, 1.5, None]
    """
    counts = last - first
    place = share * (counts - 1)
    below = np.where(counts > 0, np.floor(place), -1).astype(np.int64)
    above = np.minimum(below + 1, counts - 1)
    part = place - below
    above = np.where(part == 0.0, below, above)
    keys: Array = signed_keys(values + 0.0)
    low, high = np.empty(len(first)), np.empty(len(first))
    longest = int(counts.max(initial=0))
    begin = 0
    while begin < len(first):
        base = int(first[begin])
        end = int(np.searchsorted(last, base + 2 * longest + _LEAST, side="right"))
        end = max(end, begin + 1)
        rows = slice(base, int(last[end - 1]))
        order = np.argsort(keys[rows])
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        some = slice(begin, end)
        there, ordered = counts[some] > 0, values[rows][order]
        at = _follow(first[some], last[some], base, ranks, below[some], above[some])
        low[some], high[some] = (_taken(ordered, found, there) for found in at)
        begin = end
    with np.errstate(invalid="ignore"):
        made = low + (high - low) * part
    same = (low == high) | (part == 0.0)
    return pa.array(np.where(same, low, made) + 0.0, mask=counts <= 0)


def _taken(ordered: Array, ranks: Array, there: Array) -> Array:
    if not len(ordered):
        return np.zeros(len(ranks))
    return np.where(there, ordered[np.where(there, ranks, 0)], 0.0)


def _follow(
    first: Array, last: Array, base: int, ranks: Array, below: Array, above: Array
) -> tuple[Array, Array]:
    """The ranks of the values at two places of each range."""
    core = shared_core(NTH)
    size = 1 << max(len(ranks) - 1, 1).bit_length()
    with core.call() as call:
        given = [call.integers(a) for a in (first, last)]
        tree, at_tree = call.space(size + 1)
        tree[:] = 0
        (low, at_low), (high, at_high) = (call.space(len(first)) for _ in range(2))
        low[:], high[:] = below, above
        held = call.integers(ranks)
        core.run.ranks_at(core.m, *given, len(first), base, held, size, at_tree, at_low, at_high)
        return np.array(low), np.array(high)
