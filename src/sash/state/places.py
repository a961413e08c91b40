"""Rows combined into slices by place: each into the slice of its key, in whatever order they come.

An operator that commutes needs no order.  Where the slices of all keys are not more than the rows,
each has a place in an array, key by key and slice by slice, and a row is combined into the one it
belongs to; nothing is sorted, and no row is moved:

              slice 0   slice 1   slice 2
    key a        ●                   ●         rows in random order go to their places;
    key b        ●         ●                   places that got none are left out

Where places are few beside the rows, pieces of the table have places of their own, which are then
combined in the order of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels.columns import Array, Table, joined
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
from ..operators.contract import Operator
from ..query.plan import Plan
from ..slicing.edges import Edges, edges_of
from ..tables.rows import Rows, Run
from ..tables.threads import cut_rows, side_by_side
from .contract import Slices

__all__ = ["in_order_only", "slices_by_place"]

SUM, NEW, SPARE = 0, 1, 2  # slots
_FEW = 2**16  # places that are no burden, however few rows there are
BLOCK = 2**17  # rows whose places are found at once; more would leave the processor's cache
_SHARE = 8  # rows for each place of a piece: to combine places costs little beside them


def combine_at(m: Memory, place: int, partials: Partials, taken: Any) -> None:
    """Combine the new partial into the one at a place, if there is one."""
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
    """Combine each row of `count` runs into the partial at its place; taken[p] is 1 where there is
    one already, else 0.  Run r is from row runs[2 r] up to runs[2 r + 1], and places are those of
    all runs, one after the other.  Neighbours of one place are combined among themselves first."""
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
    """Combine the partials in `more`, where there are any, into those at the same places, from
    `first` up to but not including `last`."""
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
    """Why rows cannot be combined by place, however many there are; empty if they can."""
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
    """The slices of rows in any order, of each group of aggregates by its columns.  None if the
    order of events matters, or a place for each slice would take too much room, or if places are
    to be so `few` that several pieces of the table can each have their own, and are not.

    Slices are cut at the edges of the plan's window, or at those that `edges_between` gives for the
    oldest and the youngest time, if it gives any."""
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
    cores = [make_core(PLACES, group.operator, 1) for group in plan.groups]
    if not all(isinstance(core, BufferCore) for core in cores):
        return None

    def places(runs: tuple[Run, ...], out: Array) -> None:
        numbers = edges.number(joined(rows.times, runs))
        np.subtract(numbers, first + rows.first * span, out=out)
        if rows.keys:
            codes = joined(rows.codes, runs)
            out += codes if span == 1 else np.multiply(codes, span, dtype=np.int64)

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
    """Spans of time that have all rows in them: those of a part may be nearer than all others."""
    if rows.span is not None:
        yield rows.span
    if rows.span is None or rows.runs is not None:
        yield rows.ends()


def _cut(run: Run, least: int = 0) -> list[Run]:
    """Pieces of a range of rows."""
    return [(run[0] + a, run[0] + b) for a, b in cut_rows(run[1] - run[0], least) if a < b]


def _blocks(runs: Sequence[Run]) -> Iterator[tuple[Run, ...]]:
    """Runs of rows, long ones cut, as many at a time as are a block."""
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
    """Rows of some columns, combined by place; `places` writes the places of runs of rows."""

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
        """The places that have a partial, in order, and the partials."""
        size, ranges = self._size, rows.ranges
        pieces = [ranges]
        if len(ranges) == 1:
            # better two large pieces than more small ones: each has places to make and to combine
            least = _SHARE * size * (2 if len(rows) >= 4 * _SHARE * size else 1)
            pieces = [(piece,) for piece in _cut(ranges[0], least)]
        made = side_by_side(self._piece, pieces, threads)
        partials, taken = made[0]
        if len(made) > 1:
            many = len(cut_rows(size * len(made) // 2))  # to combine places takes half of rows
            ends = [size * i // many for i in range(many + 1)]
            side_by_side(lambda some: self._merge(*some, made), list(pairwise(ends)), threads)
        held = np.flatnonzero(taken)
        words = partials.reshape(size, -1)
        return held, words if len(held) == size else words[held]

    def _piece(self, ranges: tuple[Run, ...]) -> tuple[Array, Array]:
        """The places of some rows: the words of all partials, and where there is one."""
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
        """Combine the places of all pieces, in their order, into those of the first."""
        core = self._core()
        with core.call() as call:
            into = [call.integers(a) for a in made[0]]
            for piece in made[1:]:
                more = [call.integers(a) for a in piece]
                core.run.combine_places(core.m, first, last, *into, *more)
