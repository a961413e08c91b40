"""Puts the rows of a table in the order that a query needs: by key, then by time.

It cuts the rows into parts, each with a range of keys.  Parts are independent of each other: a
thread puts one part in order, and answers it, without the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, Column, Table, joined
from ..kernels.spans import room
from ..query.plan import Plan
from .arrow import check_times, flat, one_array, times_between
from .counting_sort import (
    MOST_KEYS,
    counts_by_key,
    deal,
    inverse,
    moved,
    moved_table,
    places_by_key,
    put,
)
from .keys import by_group, key_codes
from .order import in_time, nanoseconds, tie_ranks
from .threads import blocks, cut_groups, cut_rows, extremes, rise, side_by_side

__all__ = [
    "Ordered",
    "Parts",
    "Rows",
    "Run",
    "put_in_order",
    "read_rows",
    "rows_in_order",
    "without_others",
]

Run = tuple[int, int]  # a range of rows

_FINE = 10  # so many leading binary digits of a key's number decide the key's range


@dataclass(frozen=True)
class Rows:
    """Rows of a table: their keys in order, and for each row the number of its key and its time.

    They are all rows whose keys are in one range of the table's keys, which begins with key number
    `first`.  The arrays may hold other rows too: these rows are in the ranges `runs`; None means
    all.  `at` has the row numbers in the table; None means that the arrays have the table's order.
    """

    keys: list[pa.Array]
    codes: Array
    times: Array
    finer: Array | None  # nanoseconds beyond the times, used only to order rows
    at: Array | None = None
    runs: tuple[Run, ...] | None = None
    first: int = 0
    span: Run | None = None  # bounds of the times: none is less than the first, none is greater
    in_time: bool = False  # True if the rows are known to be in order of time

    def __len__(self) -> int:
        return sum(last - first for first, last in self.ranges)

    @property
    def ranges(self) -> tuple[Run, ...]:
        """The ranges of the arrays that hold the rows."""
        return ((0, len(self.times)),) if self.runs is None else self.runs

    @property
    def groups(self) -> int:
        """The number of keys."""
        return len(self.keys[0]) if self.keys else 1

    def ends(self) -> tuple[int, int]:
        """The oldest and the youngest time; there is at least one row."""
        return extremes(joined(self.times, self.ranges))

    def rise(self, threads: int = 1) -> bool:
        """True if the rows are in order of key and time, in one range.  If they are not, the first
        block mostly shows it."""
        if len(self.ranges) > 1 or not self._rise(next(blocks(*self.ranges[0]), slice(0))):
            return False
        first, last = self.ranges[0]
        pieces = [(first + a, min(first + b + 1, last)) for a, b in cut_rows(last - first)]
        return all(side_by_side(lambda p: all(map(self._rise, blocks(*p))), pieces, threads))

    def _rise(self, some: slice) -> bool:
        times = self.times[some]
        later = times[1:] >= times[:-1]
        if self.groups > 1:
            codes = self.codes[some]
            later &= codes[1:] == codes[:-1]
            later |= codes[1:] > codes[:-1]
        return bool(later.all())

    def alone(self) -> Rows:
        """The same rows in arrays that hold no others, with keys numbered from 0."""
        if self.runs is None:
            return self
        codes, times = (joined(a, self.runs) for a in (self.codes, self.times))
        finer = None if self.finer is None else joined(self.finer, self.runs)
        at = None if self.at is None else joined(self.at, self.runs)
        return Rows(self.keys, codes - self.first, times, finer, at, None, self.first, self.span)


class Parts:
    """The rows of a table, cut into parts by ranges of keys, and the columns.  Within a part, rows
    keep their order.

    If the table is in order of key, a part is one run of rows.  Else threads sort the pieces of the
    table by range of keys, each piece within its own place in the arrays.  A part then has one run
    of rows in each piece:

        piece 0   a b a | d c |          the part of keys a to b has the runs at the left,
        piece 1   b a   | c c d |        the part of keys c to d has the runs at the right
    """

    def __init__(self, given: Rows, columns: list[Table], threads: int, *, weight: int = 1) -> None:
        self.columns = columns
        self.moved = False  # True if rows have left their places in the table
        self._given = given
        codes, groups = given.codes, given.groups
        pieces = cut_rows(len(given), weight=weight)
        self._keys, self._runs = [(0, groups)], [given.ranges]
        if len(pieces) == 1 or groups == 1:
            return
        shift = max((groups - 1).bit_length() - _FINE, 0)
        fine = (groups - 1 >> shift) + 1

        def count(piece: Run) -> Array:
            return counts_by_key(codes[slice(*piece)], fine, shift)

        counts = np.stack(side_by_side(count, pieces, threads))
        bounds = np.zeros(fine + 1, dtype=np.int64)
        np.cumsum(counts.sum(axis=0), out=bounds[1:])
        ranges = cut_groups(bounds, weight=weight)
        if len(ranges) == 1:
            return
        self._keys = [(a << shift, min(b << shift, groups)) for a, b in ranges]
        if rise(codes):
            self._runs = [((int(bounds[a]), int(bounds[b])),) for a, b in ranges]
            return
        of_fine = np.repeat(np.arange(len(ranges)), [b - a for a, b in ranges])
        own = np.add.reduceat(counts, [low for low, _ in ranges], axis=1)
        self.moved = True
        moved = _Moved(len(given))
        small = np.int32 if max(len(given), groups) < 2**31 else np.int64
        self._given = Rows(
            given.keys,
            dealt := room(len(given), small),
            moved.add(given.times),
            None if given.finer is None else moved.add(given.finer),
            at := room(len(given), small),
            span=given.span,
        )
        self.columns = [moved.table(table) for table in columns]

        def sort(i: int) -> None:
            first, last = pieces[i]
            some = slice(first, last)
            given = codes[some], shift, of_fine, own[i], first
            moved.move(some, deal(*given, dealt[some], at[some]))

        side_by_side(sort, range(len(pieces)), threads)
        ends = np.cumsum([[first for first, _ in pieces], *own.T], axis=0).tolist()
        self._runs = [tuple(zip(*both, strict=True)) for both in pairwise(ends)]

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, i: int) -> Rows:
        (low, high), given = self._keys[i], self._given
        keys = [key.slice(low, high - low) for key in given.keys]
        arrays = given.codes, given.times, given.finer, given.at
        return Rows(keys, *arrays, self._runs[i] if len(self) > 1 else None, low, given.span)

    def larger_than(self, rows: int) -> list[int]:
        """The numbers of the parts with more than so many rows."""
        return [i for i in range(len(self)) if sum(b - a for a, b in self._runs[i]) > rows]


class _Moved:
    """Arrays of one length, whose rows move together.  An array that is added twice moves once."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._made: dict[tuple[int, Any], tuple[Array, Array]] = {}

    def add(self, values: Array) -> Array:
        """Add an array.  Return the new array, into which `move` writes."""
        known = values.ctypes.data, values.dtype
        if known not in self._made:
            self._made[known] = values, room(self._rows, values.dtype)
        return self._made[known][1]

    def table(self, table: Table) -> Table:
        """Add the columns of a table.  Return the new columns, into which `move` writes."""
        columns = tuple(
            Column(c.type, self.add(c.data), None if c.valid is None else self.add(c.valid))
            for c in table.columns
        )
        return Table(columns, table.kind, table.rows)

    def move(self, some: slice, places: Array) -> None:
        """Write a range of rows into the same range of the new arrays, each row to its place in
        that range."""
        for values, made in self._made.values():
            put(values[some], places, made[some])


@dataclass(frozen=True)
class Ordered:
    """Rows of a table in order of key and time.

    `from_table` has the row numbers in the table, in that order; or else `places` has the place in
    that order of each row of the table.  Both are None if the table already is in that order.
    `times` are in that order; `bounds` are the bounds of the keys' rows, one more than there are
    keys.
    """

    table: pa.Table
    keys: list[pa.Array]
    from_table: Array | None
    times: Array
    bounds: Array
    places: Array | None = None
    own_times: Array | None = None  # the times in the table's order, if known

    def __len__(self) -> int:
        return len(self.times)

    @property
    def moves(self) -> bool:
        """True if the table is in another order."""
        return self.from_table is not None or self.places is not None

    @cached_property
    def rows(self) -> Array | None:
        """The row numbers in the table, in this order; None if the table is in this order."""
        return self.from_table if self.places is None else inverse(self.places, 1)

    def order(self, threads: int) -> Array | None:
        """The place in this order of each row of the table; None if the table is in this order."""
        if self.places is not None or self.from_table is None:
            return self.places
        return inverse(self.from_table, threads)

    def columns(self, table: Table, threads: int) -> tuple[Table, Array | None]:
        """Put columns of the table's rows in this order, if one pass does it, and return them with
        None.  Else return them as they are, with the row numbers in this order."""
        if self.places is None or "object" in table.types:
            return table, self.rows
        known = [] if self.own_times is None else [(self.own_times, self.times)]
        return moved_table(table, self.places, threads, known), None

    def column(self, name: str) -> pa.Array:
        """A column of the table in this order, without a dictionary."""
        column = self.table.column(name)
        if self.rows is not None:  # `flat` decodes a dictionary afterwards
            column = pa.chunked_array([one_array(column).take(pa.array(self.rows))])
        return flat(column)

    @property
    def begins(self) -> Array:
        """For each row the place of its key's first row."""
        if len(self.bounds) == 2:
            return np.broadcast_to(self.bounds[0], len(self))
        return np.repeat(self.bounds[:-1], np.diff(self.bounds))

    @property
    def codes(self) -> Array:
        """For each row the number of its key."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))


def read_rows(plan: Plan, table: pa.Table, threads: int = 1) -> Rows:
    """Read the keys and times of a table's rows."""
    column = one_array(table.column(plan.query.time))
    clock = plan.query.window.clock
    times, bad, span, rises = times_between(column, clock, threads)
    check_times(plan.query.time, column, bad, clock)
    columns = [one_array(table.column(f.name)) for f in plan.keys]
    if columns:
        codes, keys = key_codes(columns, table.num_rows, threads)
    else:  # one number for all rows: to write it down took a tenth of a short run
        codes, keys = np.broadcast_to(np.int64(0), table.num_rows), []
    return Rows(keys, codes, times, nanoseconds(column, times), span=span, in_time=rises)


def rows_in_order(plan: Plan, table: pa.Table, threads: int = 1, *, weight: int = 1) -> Ordered:
    """The rows of a table in order of key and time, and their times in its own order.  Rows with
    more weight are cut into more pieces; see `threads.cut_rows`."""
    read = read_rows(plan, table, threads)
    return replace(_rows_in_order(plan, table, read, threads, weight), own_times=read.times)


def _rows_in_order(plan: Plan, table: pa.Table, read: Rows, threads: int, weight: int) -> Ordered:
    """Put the rows of a table, whose keys and times are known, in order of key and time."""
    if len(read) == 1 and (not read.keys or len(read.keys[0]) == 1):
        return Ordered(table, read.keys, None, read.times, np.array([0, 1]))
    if plan.query.tie is None and read.finer is None and read.in_time:
        found = _in_time(table, read, threads)
        if found is not None:
            return found
    parts = Parts(read, [], threads, weight=weight)
    made = side_by_side(
        lambda i: put_in_order(plan, table, parts[i])[0], range(len(parts)), threads
    )
    if len(made) == 1:
        return made[0]
    before = np.cumsum([0, *(len(part) for part in made[:-1])]).tolist()
    bounds = [part.bounds[:-1] + n for part, n in zip(made, before, strict=True)]
    bounds.append(np.array([len(read)]))
    rows = None
    if parts.moved or any(part.rows is not None for part in made):
        rows = np.empty(len(read), dtype=np.int64)
    times = np.empty(len(read), dtype=np.int64) if rows is not None else read.times

    def fill(i: int) -> None:
        part, first = made[i], before[i]
        some = slice(first, first + len(part))
        if rows is not None:
            times[some] = part.times
            own = np.arange(len(part)) if part.rows is None else part.rows
            # if the table is in order of key, each part is a slice of it
            rows[some] = own if parts.moved else own + first

    side_by_side(fill, range(len(made)), threads)
    return Ordered(table, read.keys, rows, times, np.concatenate(bounds))


def _in_time(table: pa.Table, read: Rows, threads: int) -> Ordered | None:
    """Put the rows of a table that is in order of time in order of key, by a counting sort.  Return
    None if another way is better."""
    if not read.keys:
        return Ordered(table, [], None, read.times, np.array([0, len(read)]))
    if len(cut_rows(len(read))) == 1 or not 1 < read.groups <= MOST_KEYS or rise(read.codes):
        return None
    places, bounds = places_by_key(read.codes, read.groups, threads)
    times = moved(read.times, places, threads)
    return Ordered(table, read.keys, None, times, bounds, places)


def put_in_order(
    plan: Plan, table: pa.Table, given: Rows, number: Callable[[Array], Array] | None = None
) -> tuple[Ordered, Array | None]:
    """Put rows, all of a table or some, in order of key and time.  Return also their numbers among
    `given` in that order, or None if they are in order already.  If the order of events within a
    slice does not matter, `number` returns the number of each time's slice, and rows are ordered by
    slice only."""
    rows = given.alone()
    if given.runs is not None and rows.at is None:
        first, last = given.runs[0]
        table = table.slice(first, last - first)
    order, times, bounds = _order(plan, table, rows, number)
    at = order
    if rows.at is not None:
        at = rows.at if order is None else rows.at[order]
    return Ordered(table, rows.keys, at, times, bounds), order


def without_others(given: Ordered) -> Ordered:
    """Leave out keys that no row has; a dictionary may contain such keys."""
    there = np.diff(given.bounds) > 0
    if not given.keys or there.all():
        return given
    at = pa.array(np.flatnonzero(there))
    bounds = np.append(given.bounds[:-1][there], given.bounds[-1])
    keys = [k.take(at) for k in given.keys]
    return Ordered(given.table, keys, given.from_table, given.times, bounds, given.places)


def _order(
    plan: Plan, table: pa.Table, given: Rows, number: Callable[[Array], Array] | None
) -> tuple[Array | None, Array, Array]:
    """The row numbers in order of key and time, or None if the rows are in order; the times in
    that order; and the bounds of the keys' rows."""
    query, codes, times, groups = plan.query, given.codes, given.times, given.groups
    if number is not None and not rise(codes):
        # numbers are small, so numpy sorts them fast: 3 million rows of a million keys and thirty
        # days take 0.03 s instead of 0.2 s
        found, bounds = by_group(codes, groups, in_time(number(times)))
        return found, times[found], bounds
    if query.tie is None and given.finer is None:
        if not given.keys and rise(times):
            return None, times, np.array([0, len(times)])
        rows = None
        if rise(codes):
            bounds = np.searchsorted(codes, np.arange(groups + 1))
        else:
            rows, bounds = by_group(codes, groups, None)
        within = times if rows is None else times[rows]
        if _rise(within, bounds):
            return rows, within, bounds
    ties = tie_ranks(query.tie, table, given.at) if query.tie else None
    rows, bounds = by_group(codes, groups, in_time(times, given.finer, ties))
    return rows, times[rows], bounds


def _rise(times: Array, bounds: Array) -> bool:
    """True if times are in order within each key's rows."""
    falls = times[1:] < times[:-1]
    falls[bounds[(bounds > 0) & (bounds < len(times))] - 1] = False
    return not falls.any()
