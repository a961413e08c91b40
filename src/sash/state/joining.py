"""Join slices that come in any order; several of them may be pieces of one slice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..slicing.edges import Edges, edges_of
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time
from .contract import Slices
from .folds import Folds
from .ragged import run_starts

__all__ = ["join_slices"]


def join_slices(
    plan: Plan,
    columns: list[pa.Array],
    times: Array,
    partials: list[Any],
    edges: Edges | None = None,
) -> tuple[Slices, Array, Array]:
    """Join pieces of slices, each with its key, a time in the slice, and a partial for each group
    of aggregates.  Return the slices, the order in which the pieces were combined, and where in it
    the pieces of each slice begin.  Slices lie between the edges of the plan's window, or between
    `edges`."""
    codes, keys = key_codes(columns, len(times))
    order, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times))
    at = times[order]
    heads = run_starts(codes[order], (edges or edges_of(plan.query.aligned)).number(at))
    made = []
    for group, held in zip(plan.groups, partials, strict=True):
        folds = Folds(group.operator)
        if len(heads) == len(order):
            made.append(folds.take(held, order))
        else:
            made.append(folds.fold(held, order, np.append(heads, len(order))))
    return Slices(keys, np.searchsorted(heads, bounds), at[heads], made), order, heads
