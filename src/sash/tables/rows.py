"""The rows of a table in the order that a query wants them in: by key, then time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from .arrow import check_times, one_array, times_of
from .keys import by_group, key_codes
from .order import in_time, nanoseconds, tie_ranks

__all__ = ["Rows", "put_in_order", "read_rows", "rows_in_order"]


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


def read_rows(plan: Plan, table: pa.Table) -> Rows:
    """The keys and times of a table's rows."""
    column = one_array(table.column(plan.query.time))
    times, bad = times_of(column)
    check_times(plan.query.time, column, bad)
    codes, keys = key_codes([one_array(table.column(f.name)) for f in plan.keys], table.num_rows)
    return Rows(keys, codes, times, nanoseconds(column, times))


def rows_in_order(plan: Plan, table: pa.Table) -> tuple[list[pa.Array], Array | None, Array, Array]:
    """The keys; the rows in order of key and time, None if they are; their times; and where each
    key's rows begin."""
    rows = read_rows(plan, table)
    return rows.keys, *put_in_order(plan, table, rows)


def put_in_order(plan: Plan, table: pa.Table, given: Rows) -> tuple[Array | None, Array, Array]:
    """The rows in order of key and time, None if they are; their times; and where each key's rows
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
