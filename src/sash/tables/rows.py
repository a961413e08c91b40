"""The rows of a table in the order that a query wants them in: by key, then time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from .arrow import check_times, flat, one_array, times_of
from .keys import by_group, key_codes
from .order import in_time, nanoseconds, tie_ranks

__all__ = ["Ordered", "Rows", "put_in_order", "read_rows", "rows_in_order", "without_others"]


@dataclass(frozen=True)
class Rows:
    """The rows of a table: the keys, in order; the number of each row's key, and its time."""

    keys: list[pa.Array]
    codes: Array
    times: Array
    finer: Array | None  # nanoseconds beyond the times, which only put rows in order

    @property
    def groups(self) -> int:
        """How many keys there are."""
        return len(self.keys[0]) if self.keys else 1

    @property
    def rise(self) -> bool:
        """True if they are in order of key and time."""
        if not self.keys:
            return bool((self.times[1:] >= self.times[:-1]).all())
        same = self.codes[1:] == self.codes[:-1]
        later = self.times[1:] >= self.times[:-1]
        return bool(((self.codes[1:] > self.codes[:-1]) | (same & later)).all())


@dataclass(frozen=True)
class Ordered:
    """The rows of a table in order of key and time: the keys; where each row is in the table, None
    if the table has the order; the times; and where each key's rows begin, with the end of the
    last."""

    table: pa.Table
    keys: list[pa.Array]
    rows: Array | None
    times: Array
    bounds: Array

    def __len__(self) -> int:
        return len(self.times)

    def column(self, name: str) -> pa.Array:
        """A column in that order, as plain values."""
        found = flat(self.table.column(name))
        return found if self.rows is None else found.take(pa.array(self.rows))

    @property
    def begins(self) -> Array:
        """For each row the first of its key."""
        if len(self.bounds) == 2:
            return np.broadcast_to(self.bounds[0], len(self))
        return np.repeat(self.bounds[:-1], np.diff(self.bounds))

    @property
    def codes(self) -> Array:
        """For each row the number of its key."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))


def read_rows(plan: Plan, table: pa.Table) -> Rows:
    """The keys and times of a table's rows."""
    column = one_array(table.column(plan.query.time))
    clock = plan.query.window.clock
    times, bad = times_of(column, clock)
    check_times(plan.query.time, column, bad, clock)
    codes, keys = key_codes([one_array(table.column(f.name)) for f in plan.keys], table.num_rows)
    return Rows(keys, codes, times, nanoseconds(column, times))


def rows_in_order(plan: Plan, table: pa.Table) -> Ordered:
    """The rows of a table in order of key and time."""
    return put_in_order(plan, table, read_rows(plan, table))


def put_in_order(plan: Plan, table: pa.Table, given: Rows) -> Ordered:
    """The same, from the keys and times of its rows."""
    return Ordered(table, given.keys, *_order(plan, table, given))


def without_others(given: Ordered) -> Ordered:
    """The same without keys of a dictionary that no row has."""
    there = np.diff(given.bounds) > 0
    if not given.keys or there.all():
        return given
    at = pa.array(np.flatnonzero(there))
    bounds = np.append(given.bounds[:-1][there], given.bounds[-1])
    keys = [k.take(at) for k in given.keys]
    return Ordered(given.table, keys, given.rows, given.times, bounds)


def _order(plan: Plan, table: pa.Table, given: Rows) -> tuple[Array | None, Array, Array]:
    """Where each row is, None if they are in order; the times in order; where each key's rows
    begin."""
    query, codes, times, groups = plan.query, given.codes, given.times, given.groups
    if query.tie is None and given.finer is None:
        if not given.keys and given.rise:
            return None, times, np.array([0, len(times)])
        rows = None
        if (codes[1:] >= codes[:-1]).all():
            bounds = np.searchsorted(codes, np.arange(groups + 1))
        else:
            rows, bounds = by_group(codes, groups, None)
        within = times if rows is None else times[rows]
        if _rise(within, bounds):
            return rows, within, bounds
    ties = tie_ranks(query.tie, table) if query.tie else None
    rows, bounds = by_group(codes, groups, in_time(times, given.finer, ties))
    return rows, times[rows], bounds


def _rise(times: Array, bounds: Array) -> bool:
    """Whether times are in order within each group."""
    falls = times[1:] < times[:-1]
    falls[bounds[(bounds > 0) & (bounds < len(times))] - 1] = False
    return not falls.any()
