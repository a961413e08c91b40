"""Slices of rows in order, where few keys have many rows: made in pieces of the rows.

A piece ends where a slice does, so that each slice is combined by one thread, as it would be if the
rows were not cut:

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

_SHARE = 4  # rows for each slice: to keep slices costs little beside them


def slices_in_order(
    plan: Plan, columns: list[Table], ordered: Ordered, order: Array | None, threads: int
) -> Slices | None:
    """The slices of rows in order, of each group of aggregates by its columns; `order` says where
    in the columns each row is.  None if rows are not many, or not many more than the slices."""
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
    """The most slices that there can be."""
    some = np.flatnonzero(np.diff(bounds))
    first, last = (edges.number(times[at]) for at in (bounds[some], bounds[some + 1] - 1))
    return int((last - first + 1).sum())


def _ends(edges: Edges, times: Array, bounds: Array, wanted: list[int]) -> list[int]:
    """Where pieces of rows begin, with the end of the last: each at the start of the slice that
    holds a row that is wanted."""
    made = {0, len(times)}
    for row in wanted:
        group = int(np.searchsorted(bounds, row, side="right")) - 1
        number, begin = edges.number(int(times[row])), int(bounds[group])
        made.add(begin + int(np.searchsorted(times[begin : row + 1], edges.time(number))))
    return sorted(made)
