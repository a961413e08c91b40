"""Slices that come in any order, of which several may be parts of one, put together."""

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
    """The slices that are given by the columns of their keys, a time in each, and the partials of
    each group of aggregates; also the order in which they were put, and where in it the parts of
    each slice begin.  Slices lie between the edges of the plan's window, or others."""
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
