"""Rows combined into slices by place: each into the slice of its key, in whatever order they come.

An operator that commutes needs no order.  Where the slices of all keys are not more than the rows,
each has a place in an array, key by key and slice by slice, and a row is combined into the one it
belongs to; nothing is sorted, and no row is moved:

              slice 0   slice 1   slice 2
    key a        ●                   ●         rows in random order go to their places;
    key b        ●         ●                   places that got none are left out
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import BufferCore, make_core
from ..kernels.program import Kernel
from ..kernels.slots import (
    Columns,
    Memory,
    Partials,
    combine,
    fold_rows,
    item,
    load,
    set_item,
    store,
)
from ..query.plan import Plan
from ..slicing.edges import edges_of
from .answers import Sources, columns_of
from .contract import Slices

__all__ = ["slices_by_place"]

SUM, NEW, SPARE = 0, 1, 2  # slots
_FEW = 2**16  # places that are no burden, however few rows there are


def combine_by_place(
    m: Memory, columns: Columns, places: Any, count: int, partials: Partials, taken: Any
) -> None:
    """Combine each of `count` rows into the partial at its place; taken[p] is 1 where there is one
    already, else 0.  Neighbours of one place are combined among themselves first."""
    i = 0
    while i < count:
        place = item(places, i)
        j = i + 1
        while j < count and item(places, j) == place:
            j += 1
        fold_rows(m, NEW, SPARE, columns, i, j)
        if item(taken, place) == 0:
            set_item(taken, place, 1)
            store(m, NEW, partials, place)
        else:
            load(m, SUM, partials, place)
            combine(m, SUM, SUM, NEW)
            store(m, SUM, partials, place)
        i = j


PLACES = Kernel("places", (combine_by_place,), ("combine_by_place",), scratch=3)


def slices_by_place(
    plan: Plan, table: pa.Table, keys: list[pa.Array], codes: Array, times: Array
) -> tuple[Slices, list[Sources]] | None:
    """The slices of rows in any order, from the numbers of their keys and their times; and for each
    group of aggregates the values of columns that are read by number.  None if the order of events
    matters, or a place for each slice would take too much room."""
    if plan.ordered or not len(times):
        return None
    edges = edges_of(plan.query.aligned)
    first, last = int(edges.number(times.min())), int(edges.number(times.max()))
    span, groups = last - first + 1, len(keys[0]) if keys else 1
    if span * groups > max(len(times), _FEW):
        return None
    cores = [make_core(PLACES, group.operator, 1) for group in plan.groups]
    if not all(isinstance(core, BufferCore) for core in cores):
        return None
    places = edges.number(times) - first
    places += codes * span
    held: Array = np.empty(0, dtype=np.int64)
    partials, values = [], []
    for core, group in zip(cores, plan.groups, strict=True):
        assert isinstance(core, BufferCore)
        columns, sources = columns_of(group, table)
        values.append(sources)
        with core.call() as call:
            made, at_made = call.space(span * groups * core.width)
            taken, at_taken = core.integers(np.zeros(span * groups, dtype=np.int64))
            core.run.combine_by_place(
                core.m, call.columns(columns), call.integers(places), len(times), at_made, at_taken
            )
            held = np.flatnonzero(taken)
            partials.append(made.reshape(-1, core.width)[held])
    of_key = held // span
    starts = edges.time(held - of_key * span + first)
    bounds = np.searchsorted(of_key, np.arange(groups + 1))
    return Slices(keys, bounds, starts, partials), values
