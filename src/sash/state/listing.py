"""The windows of several queries, listed once for all keys: each by the numbers of its edges.

    edges     0    1    2    3    4          times, of which slices start at some
    windows   [---------)                    lows 0, highs 2
                   [---------)                    1        3
              [-------------------)               0        4

So which slices of a key a window holds is known from the first slice at each edge.
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

#: Cells of a table of edges, at most: so many, and so many more for each edge.
_CELLS, _CELLS_PER_EDGE = 1 << 10, 4


@dataclass(frozen=True)
class Listing:
    """The windows of query q are those from bounds[q] up to bounds[q + 1]; the one at place i has
    the number i + first[q], and lies between two of the edges' times, in what the clock shows."""

    bounds: Array
    first: Array
    times: Array
    lows: Array
    highs: Array

    @classmethod
    def of(cls, cycles: Cycles, numbers: Array) -> Listing:
        """The windows of each cycle from a number up to another, as `numbers_between` has them."""
        counts = numbers[:, 1] - numbers[:, 0]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        first = numbers[:, 0] - bounds[:-1]
        each = np.arange(bounds[-1]) + np.repeat(first, counts)
        starts, ends = cycles.spans(counts, each)
        times, places = _numbered(np.concatenate([starts, ends]), _grid(cycles.each))
        return cls(bounds, first, times, places[: len(starts)], places[len(starts) :])


def numbers_between(cycles: Cycles, shown: Array, wanted: Array | None = None) -> Array:
    """For each cycle the first window that may hold something of slices that start when the clock
    shows this, and the one behind the last: of all, or of those from a number up to another."""
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
    """A distance of which all those between edges are multiples."""
    base, grid = cycles[0].offset, 0
    for c in cycles:
        step = c.day if isinstance(c, Months) else c.step if c.windows > 1 else 0
        grid = gcd(grid, c.length, c.longest, step, c.offset - base)
    return grid


def _numbered(edges: Array, grid: int) -> tuple[Array, Array]:
    """The different edges in order, and the place of each among them.  All lie on a grid: where it
    has few cells, they are numbered by a table instead of by sorting."""
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
