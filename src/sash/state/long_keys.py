"""Slices of rows in order, if few keys have many rows: threads cut pieces of the rows into slices.

A piece ends where a slice ends.  So one thread combines each slice, in the same way as if the rows
were not cut:

    rows     a a a a a a a a | a a a a a a b b | b b b b b
    slices   [-----)[------) | [-------)[-)[-) | [---)[--)
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..kernels.columns import Array, Table
from ..query.plan import Plan
from ..slicing.edges import Edges, edges_of
from ..tables.rows import Ordered
from ..tables.threads import cut_rows, side_by_side
from .contract import Slices
from .scan import Scan

__all__ = ["slices_in_order"]

_SHARE = 4  # at least this many rows for each slice, so that slices cost little compared with rows


def slices_in_order(
    plan: Plan, columns: list[Table], ordered: Ordered, order: Array | None, threads: int
) -> Slices | None:
    """The slices of rows in order; `columns` has the columns of each group of aggregates, and
    `order` the place of each row in the columns.  None if there are few rows, or too few for each
    slice."""
    edges, times, bounds = edges_of(plan.query.aligned), ordered.times, ordered.bounds
    pieces = cut_rows(len(ordered))
    if len(pieces) == 1 or _SHARE * _most(edges, times, bounds) > len(ordered):
        return None
    ends = _ends(edges, times, bounds, [last for _, last in pieces[:-1]])

    def cut(some: tuple[int, int]) -> tuple[Array, list[Array], Array]:
        first, last = some
        own, when = np.clip(bounds, first, last) - first, times[first:last]
        room, found = _most(edges, when, own), []
        for group, table in zip(plan.groups, columns, strict=True):
            given = table.runs([some]) if order is None else table.take(order[first:last])
            scan = Scan(group, plan.query.aligned, plan.types)
            found.append(scan.cut_columns(given, when, own, room))
        starts, _, counts = found[0]
        return starts, [partials for _, partials, _ in found], np.diff(counts)

    made = side_by_side(cut, list(pairwise(ends)), threads)
    counts = np.sum([counts for _, _, counts in made], axis=0)
    partials = [np.concatenate([one[i] for _, one, _ in made]) for i in range(len(plan.groups))]
    starts = np.concatenate([starts for starts, _, _ in made])
    return Slices(ordered.keys, np.concatenate([[0], np.cumsum(counts)]), starts, partials)


def _most(edges: Edges, times: Array, bounds: Array) -> int:
    """The largest possible number of slices."""
    some = np.flatnonzero(np.diff(bounds))
    first, last = (edges.number(times[at]) for at in (bounds[some], bounds[some + 1] - 1))
    return int((last - first + 1).sum())


def _ends(edges: Edges, times: Array, bounds: Array, wanted: list[int]) -> list[int]:
    """The rows at which pieces begin, and the end of the last piece.  A piece begins at the first
    row of the slice that holds a wanted row."""
    made = {0, len(times)}
    for row in wanted:
        group = int(np.searchsorted(bounds, row, side="right")) - 1
        number, begin = edges.number(int(times[row])), int(bounds[group])
        made.add(begin + int(np.searchsorted(times[begin : row + 1], edges.time(number))))
    return sorted(made)
