"""Ranges of numbered entries that a forest answers, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array

__all__ = ["Found", "Inserted", "Ranges"]


@dataclass
class Inserted:
    """Entries to insert: the bounds of each visited key's entries, the entries' numbers, which rise
    for each key, and their partials."""

    bounds: Array
    numbers: Array
    partials: Any


@dataclass
class Ranges:
    """Ranges of entries to answer: the bounds of each visited key's ranges, and the low and the
    high number of each range, both inclusive.  Neither number falls from one range of a key to the
    next.  `holes` has a low and a high number for each range, both inclusive; the range leaves out
    the entries between them.  With `merges`, the entries before a key's edge become one entry
    afterwards; otherwise they are evicted.  If windows have several sizes, each window is `each`
    neighbouring ranges with the same high number, the longest first."""

    bounds: Array
    lows: Array
    highs: Array
    holes: tuple[Array, Array] | None = None
    merges: bool = False
    each: int = 1

    def over(self, lows: Array) -> Ranges:
        """The same ranges in several sizes: `lows` has a row for each range, with the low number of
        each size, lowest first."""
        each = lows.shape[1]
        holes = self.holes and (np.repeat(self.holes[0], each), np.repeat(self.holes[1], each))
        highs = np.repeat(self.highs, each)
        return Ranges(self.bounds * each, lows.reshape(-1), highs, holes, self.merges, each)


@dataclass
class Found:
    """The answers of ranges by name, why ranges lack answers, and the numbers of the keys that hold
    no entries any more."""

    values: dict[str, pa.Array]
    failed: dict[int, str]
    gone: Array
