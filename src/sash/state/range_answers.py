"""What a forest is asked that answers ranges of numbered entries, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    then merges into one entry, or is evicted."""

    bounds: Array
    lows: Array
    highs: Array
    holes: tuple[Array, Array] | None = None
    merges: bool = False


@dataclass
class Found:
    """Answers of ranges by name; those that lack some, and why; the numbers of keys that hold
    nothing any more."""

    values: dict[str, pa.Array]
    failed: dict[int, str]
    gone: Array
