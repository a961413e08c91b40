"""The rows of a table in the order that a query wants them in: by key, then time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from .arrow import check_times, one_array, times_of
from .keys import by_group, key_codes
from .order import in_time, nanoseconds, tie_ranks

__all__ = ["rows_in_order"]


def rows_in_order(plan: Plan, table: pa.Table) -> tuple[list[pa.Array], Array | None, Array, Array]:
    """The keys; the rows in order of key and time, None if they are; their times; and where each
    key's rows begin."""
    query = plan.query
    column = one_array(table.column(query.time))
    times, bad = times_of(column)
    check_times(query.time, column, bad)
    finer = nanoseconds(column, times)
    if not plan.keys and query.tie is None and finer is None:
        whole = np.array([0, len(times)])
        if _rise(times, whole):
            return [], None, times, whole
    codes, keys = key_codes([one_array(table.column(f.name)) for f in plan.keys], table.num_rows)
    groups = len(keys[0]) if keys else 1
    if query.tie is None and finer is None:
        rows = None
        if (codes[1:] >= codes[:-1]).all():
            bounds = np.searchsorted(codes, np.arange(groups + 1))
        else:
            rows, bounds = by_group(codes, groups, None)
        within = times if rows is None else times[rows]
        if _rise(within, bounds):
            return keys, rows, within, bounds
    rows, bounds = by_group(
        codes, groups, in_time(times, finer, tie_ranks(query.tie, table) if query.tie else None)
    )
    return keys, rows, times[rows], bounds


def _rise(times: Array, bounds: Array) -> bool:
    """Whether times are in order within each group."""
    falls = times[1:] < times[:-1]
    falls[bounds[(bounds > 0) & (bounds < len(times))] - 1] = False
    return not falls.any()
