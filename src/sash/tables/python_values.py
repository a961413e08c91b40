"""Python values as Arrow arrays, where those of numpy and pandas need help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["how_to_push", "inferred", "with_nulls"]

#: The classes of pandas that stand for null.
_NULLS = ("NaTType", "NAType")


def how_to_push(given: Any) -> str:
    """The end of an error about a row that is no dict, but becomes one; else empty."""
    found = next((name for name in ("to_dict", "_asdict") if hasattr(given, name)), "")
    return f"; if it is an event, push its {found}()" if found else ""


def with_nulls(items: list[Any]) -> list[Any]:
    """The values with None in the place of NaT and NA of pandas."""
    if not any(kind.__name__ in _NULLS for kind in set(map(type, items))):
        return items
    return [None if type(x).__name__ in _NULLS else x for x in items]


def inferred(items: list[Any]) -> pa.Array:
    """Make a column of the type that Arrow infers.  Timestamps of pandas that count nanoseconds
    keep them, as in a frame; Arrow would drop them.  Times of numpy may count in several units."""
    if set(map(type, items)) <= {np.datetime64, type(None)} and any(x is not None for x in items):
        return _from_numpy(items)
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


def _from_numpy(items: list[Any]) -> pa.Array:
    """Make a column of numpy's times, in the finest of their units.  numpy takes the unit of a text
    from its length: "2026-03-01T10:00" is in minutes, which Arrow does not have."""
    made = np.array([np.datetime64("NaT") if x is None else x for x in items])
    if len({x.dtype for x in items if x is not None}) > 1:
        pairs = ((x, finer) for x, finer in zip(items, made, strict=True) if x is not None)
        if any(finer.astype(x.dtype) != x for x, finer in pairs if not np.isnat(x)):
            raise pa.ArrowInvalid(f"some times are beyond those of {made.dtype}")
    if made.dtype in ("M8[h]", "M8[m]"):
        made = made.astype("M8[s]")
    return pa.nulls(len(made)) if made.dtype == "M8" else pa.array(made)
