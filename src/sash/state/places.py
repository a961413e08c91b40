"""Combine rows in any order into slices: each slice of each key has a place in an array.

An operator that commutes needs no order.  If there are no more slices of all keys than rows, each
slice gets a place in an array, key by key and slice by slice, and each row is combined into the
partial at its slice's place.  So rows are neither sorted nor moved:

              slice 0   slice 1   slice 2
    key a        ●                   ●         rows in random order go to their places;
    key b        ●         ●                   places without a row are left out

If there are few places compared with the rows, each piece of the table has places of its own; the
places of all pieces are then combined, in the order of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels.columns import Array, Table, joined
from ..kernels.core import BufferCore, make_core
from ..kernels.program import Kernel, specialise
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
from ..operators.contract import Operator
from ..query.plan import Plan
from ..slicing.edges import Edges, edges_of
from ..tables.rows import Rows, Run
from ..tables.threads import cut_rows, side_by_side
from .contract import Slices

__all__ = ["in_order_only", "slices_by_place"]

SUM, NEW, SPARE = 0, 1, 2  # slots
_FEW = 2**16  # this many places are cheap, however few rows there are
BLOCK = 2**17  # compute the places of this many rows at once; more would not stay in the cache
_SHARE = 8  # rows for each place of a piece, so that combining the pieces' places is cheap


def combine_at(m: Memory, place: int, partials: Partials, taken: Any) -> None:
    """Combine the new partial into the one at this place; if there is none, put it there."""
    if item(taken, place) == 0:
        set_item(taken, place, 1)
        store(m, NEW, partials, place)
    else:
        load(m, SUM, partials, place)
        combine(m, SUM, SUM, NEW)
        store(m, SUM, partials, place)


def combine_by_place(
    m: Memory,
    columns: Columns,
    runs: Any,
    count: int,
    places: Any,
    partials: Partials,
    taken: Any,
) -> None:
    """Combine each row of `count` runs into the partial at its place.  taken[p] is 1 if place p has
    a partial already, otherwise 0.  Run r goes from row runs[2 r] up to runs[2 r + 1]; `places` has
    the place of each row, one run after the other.  Neighbouring rows with the same place are first
    combined with each other."""
    i = 0
    for r in range(count):
        shift = item(runs, 2 * r) - i
        last = item(runs, 2 * r + 1) - shift
        while i < last:
            place = item(places, i)
            j = i + 1
            while j < last and item(places, j) == place:
                j += 1
            fold_rows(m, NEW, SPARE, columns, shift + i, shift + j)
            combine_at(m, place, partials, taken)
            i = j


def combine_places(
    m: Memory, first: int, last: int, partials: Partials, taken: Any, more: Partials, there: Any
) -> None:
    """Combine the partials in `more` into those at the same places, for the places from `first` up
    to but not including `last` where `there` is 1."""
    for place in range(first, last):
        if item(there, place):
            load(m, NEW, more, place)
            combine_at(m, place, partials, taken)


PLACES = Kernel(
    "places",
    (combine_at, combine_by_place, combine_places),
    ("combine_by_place", "combine_places"),
    inline=("combine_at",),
    scratch=3,
)


def in_order_only(plan: Plan) -> str:
    """The reason why rows cannot be combined by place, however many there are; empty if they
    can."""
    if plan.ordered:
        ranked = plan.ranged and not any(chosen.ordered for chosen in plan.ranged)
        if ranked and all(group.operator.commutative for group in plan.groups):
            return "the windows of a quantile are ranges of rows"
        return "the order of events matters to an aggregate"
    if not all(g.operator.compile and g.operator.shape != "object" for g in plan.groups):
        return "an aggregate has partials that are Python objects"
    return ""


def slices_by_place(
    plan: Plan,
    columns: list[Table],
    rows: Rows,
    threads: int = 1,
    *,
    few: bool = False,
    edges_between: Callable[[int, int], Edges | None] | None = None,
) -> Slices | None:
    """The slices of rows in any order; `columns` has the columns of each group of aggregates.  None
    if the order of events matters, or if a place for each slice would take too much memory.  With
    `few`, also None if there are too many places for several pieces of the table to have places of
    their own.

    Slices are cut at the edges of the plan's window or, if `edges_between` is given, at the edges
    that it returns for the oldest and the youngest time."""
    most = len(rows) // (2 * _SHARE) if few else max(len(rows), _FEW)
    if in_order_only(plan) or not len(rows) or rows.groups > most:
        return None
    between = edges_between or (lambda low, high: edges_of(plan.query.aligned))
    for ends in _spans(rows):
        edges = between(*ends)
        if edges is not None:
            first, last = (int(edges.number(end)) for end in ends)
            span = last - first + 1
            if span * rows.groups <= most:
                break
    else:
        return None
    size = span * rows.groups
    if any(specialise(PLACES, group.operator).layout is None for group in plan.groups):
        return None

    def places(runs: tuple[Run, ...], out: Array) -> None:
        # few temporary arrays: for each one, malloc may get its pages anew from the system
        np.multiply(joined(rows.codes, runs), span, out=out, dtype=np.int64)
        out += edges.number(joined(rows.times, runs))
        out -= first + rows.first * span

    held: Array = np.empty(0, dtype=np.int64)
    partials = []
    for group, table in zip(plan.groups, columns, strict=True):
        held, words = _Placed(group.operator, table, size, places).combined(rows, threads)
        partials.append(words)
    of_key = held // span
    starts = edges.time(held - of_key * span + first)
    bounds = np.arange(rows.groups + 1) * span
    if len(held) < size:
        bounds = np.searchsorted(held, bounds)
    return Slices(rows.keys, bounds, starts, partials)


def _spans(rows: Rows) -> Iterator[Run]:
    """Spans of time that hold all rows: first the table's span, if it is known; for rows that are
    only a part of the table, also their own, which may be shorter."""
    if rows.span is not None:
        yield rows.span
    if rows.span is None or rows.runs is not None:
        yield rows.ends()


def _cut(run: Run, least: int = 0) -> list[Run]:
    """Cut a range of rows into pieces of at least `least` rows."""
    return [(run[0] + a, run[0] + b) for a, b in cut_rows(run[1] - run[0], least) if a < b]


def _blocks(runs: Sequence[Run]) -> Iterator[tuple[Run, ...]]:
    """Divide runs of rows into blocks of BLOCK rows; a run may be cut."""
    block: list[Run] = []
    room = BLOCK
    for first, last in runs:
        while first < last:
            end = min(first + room, last)
            block.append((first, end))
            room -= end - first
            first = end
            if not room:
                yield tuple(block)
                block, room = [], BLOCK
    if block:
        yield tuple(block)


class _Placed:
    """Combines the rows of some columns by place.  `places` writes the places of runs of rows."""

    def __init__(
        self,
        operator: Operator,
        table: Table,
        size: int,
        places: Callable[[tuple[Run, ...], Array], None],
    ) -> None:
        self._operator, self._table, self._size = operator, table, size
        self._places = places

    def _core(self) -> BufferCore:
        core = make_core(PLACES, self._operator, 1)
        assert isinstance(core, BufferCore)
        return core

    def combined(self, rows: Rows, threads: int) -> tuple[Array, Array]:
        """Combine rows; return the places that have a partial, in order, and the partials."""
        size, ranges = self._size, rows.ranges
        pieces = [ranges]
        if len(ranges) == 1:
            # two large pieces are better than more small ones: each piece's places cost time
            least = _SHARE * size * (2 if len(rows) >= 4 * _SHARE * size else 1)
            pieces = [(piece,) for piece in _cut(ranges[0], least)]
        made = side_by_side(self._piece, pieces, threads)
        partials, taken = made[0]
        if len(made) > 1:
            many = len(cut_rows(size * len(made) // 2))  # combining a place costs half of a row
            ends = [size * i // many for i in range(many + 1)]
            side_by_side(lambda some: self._merge(*some, made), list(pairwise(ends)), threads)
        held = np.flatnonzero(taken)
        words = partials.reshape(size, -1)
        return held, words if len(held) == size else words[held]

    def _piece(self, ranges: tuple[Run, ...]) -> tuple[Array, Array]:
        """Combine some rows; return the words of all places, and 1 for each place with a
        partial."""
        core = self._core()
        with core.call() as call:
            partials, at_partials = call.space(self._size * core.width)
            taken, at_taken = core.integers(np.zeros(self._size, dtype=np.int64))
            some, at = call.space(BLOCK)
            columns = call.columns(self._table)
            for block in _blocks(ranges):
                count = sum(b - a for a, b in block)
                self._places(block, some[:count])
                runs = call.integers(np.array(block).ravel())
                given = columns, runs, len(block), at, at_partials, at_taken
                core.run.combine_by_place(core.m, *given)
        return partials, taken

    def _merge(self, first: int, last: int, made: list[tuple[Array, Array]]) -> None:
        """Combine the places of all pieces, in the order of the pieces, into those of the first
        piece."""
        core = self._core()
        with core.call() as call:
            into = [call.integers(a) for a in made[0]]
            for piece in made[1:]:
                more = [call.integers(a) for a in piece]
                core.run.combine_places(core.m, first, last, *into, *more)
