"""The windows of several queries, listed once for all keys, by the numbers of their edges.

    edges     0    1    2    3    4          times; slices start at some of them
    windows   [---------)                    lows 0, highs 2
                   [---------)                    1        3
              [-------------------)               0        4

So the first slice of a key at each edge tells which slices of the key a window holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from ..kernels.columns import Array
from ..slicing.cycles import Cycles
from ..windows.contract import Cycle
from ..windows.months import Months

__all__ = ["Listing", "numbers_between"]

#: The most cells of a table of edges: this many, plus this many for each edge.
_CELLS, _CELLS_PER_EDGE = 1 << 10, 4


@dataclass(frozen=True)
class Listing:
    """The windows of query q are at the places from bounds[q] up to bounds[q + 1].  The window at
    place i has the number i + first[q], and lies between the edges times[lows[i]] and
    times[highs[i]], in readings of the clock."""

    bounds: Array
    first: Array
    times: Array
    lows: Array
    highs: Array

    @classmethod
    def of(cls, cycles: Cycles, numbers: Array) -> Listing:
        """List the windows of each cycle from one number up to another, from `numbers_between`."""
        counts = numbers[:, 1] - numbers[:, 0]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        first = numbers[:, 0] - bounds[:-1]
        each = np.arange(bounds[-1]) + np.repeat(first, counts)
        starts, ends = cycles.spans(counts, each)
        times, places = _numbered(np.concatenate([starts, ends]), _grid(cycles.each))
        return cls(bounds, first, times, places[: len(starts)], places[len(starts) :])


def numbers_between(cycles: Cycles, shown: Array, wanted: Array | None = None) -> Array:
    """For each cycle the first window that may hold one of the slices that start at these readings,
    and the number after the last such window.  With `wanted`, only among the windows from one
    number up to another."""
    made = np.zeros((len(cycles), 2), dtype=np.int64)
    if len(shown):
        made[:, 0] = cycles.first(int(shown.min()))
        made[:, 1] = cycles.last(int(shown.max())) + 1
        if wanted is not None:
            made[:, 0] = np.maximum(made[:, 0], wanted[:, 0])
            made[:, 1] = np.minimum(made[:, 1], wanted[:, 1])
        made[:, 1] = np.maximum(made[:, 0], made[:, 1])
    return made


def _grid(cycles: Sequence[Cycle]) -> int:
    """A number that divides all distances between edges."""
    base, grid = cycles[0].offset, 0
    for c in cycles:
        step = c.day if isinstance(c, Months) else c.step if c.windows > 1 else 0
        grid = gcd(grid, c.length, c.longest, step, c.offset - base)
    return grid


def _numbered(edges: Array, grid: int) -> tuple[Array, Array]:
    """The distinct edges in order, and the place of each edge among them.  All edges lie on a grid;
    if the grid has few cells, a table numbers the edges, without sorting."""
    if not len(edges):
        return edges, edges
    low = int(edges.min())
    cells = (int(edges.max()) - low) // grid + 1
    if cells > _CELLS + _CELLS_PER_EDGE * len(edges):
        times, places = np.unique(edges, return_inverse=True)
        return times, places.astype(np.int64, copy=False)
    at = (edges - low) // grid
    marked = np.zeros(cells, dtype=bool)
    marked[at] = True
    table = np.cumsum(marked) - 1
    return np.flatnonzero(marked) * grid + low, table[at]
