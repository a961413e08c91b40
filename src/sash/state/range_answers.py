"""What a forest is asked that answers ranges of numbered entries, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array

__all__ = ["Found", "Inserted", "Ranges"]


@dataclass
class Inserted:
    """Entries to insert: the bounds of each visited key's, their numbers, which rise, and their
    partials."""

    bounds: Array
    numbers: Array
    partials: Any


@dataclass
class Ranges:
    """Ranges of entries to answer, both ends in: the bounds of each visited key's, the low and the
    high numbers, neither of which falls, and what is left out of them.  What is before a key's edge
    then merges into one entry, or is evicted.  Where windows have several sizes, so many ranges
    have `each` high number, and the first of them the lowest number."""

    bounds: Array
    lows: Array
    highs: Array
    holes: tuple[Array, Array] | None = None
    merges: bool = False
    each: int = 1

    def over(self, lows: Array) -> Ranges:
        """The same ranges with the low numbers of several sizes each, lowest first."""
        each = lows.shape[1]
        holes = self.holes and (np.repeat(self.holes[0], each), np.repeat(self.holes[1], each))
        highs = np.repeat(self.highs, each)
        return Ranges(self.bounds * each, lows.reshape(-1), highs, holes, self.merges, each)


@dataclass
class Found:
    """Answers of ranges by name; those that lack some, and why; the numbers of keys that hold
    nothing any more."""

    values: dict[str, pa.Array]
    failed: dict[int, str]
    gone: Array
