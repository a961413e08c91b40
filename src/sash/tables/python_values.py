"""Python values as Arrow arrays, where those of pandas need help."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["inferred", "with_nulls"]

#: The classes of pandas that stand for null.
_NULLS = ("NaTType", "NAType")


def with_nulls(items: list[Any]) -> list[Any]:
    """The values with None in the place of NaT and NA of pandas."""
    if not any(kind.__name__ in _NULLS for kind in set(map(type, items))):
        return items
    return [None if type(x).__name__ in _NULLS else x for x in items]


def inferred(items: list[Any]) -> pa.Array:
    """Make a column of the type that Arrow infers.  Timestamps of pandas that count nanoseconds
    keep them, as in a frame; Arrow would drop them."""
    made = pa.array(items)
    if not pa.types.is_timestamp(made.type) or made.type.unit != "us":
        return made
    if not any(hasattr(kind, "nanosecond") for kind in set(map(type, items))):
        return made
    if all(getattr(x, "unit", "") != "ns" for x in items):
        return made
    rest = pa.array([0 if x is None else getattr(x, "nanosecond", 0) for x in items], pa.int64())
    try:
        nanos = pc.add_checked(pc.multiply_checked(made.cast(pa.int64()), 1000), rest)
    except pa.ArrowInvalid:  # another time is beyond those in nanoseconds
        return made
    return nanos.view(pa.timestamp("ns", made.type.tz))
