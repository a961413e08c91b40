"""A query over a whole table: `Query.run`.

table → rows in order of key and time → slices → windows → a table of results
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from .keys import by_group, key_codes
from .passes import Pass, Windows
from .tables import as_arrow, as_given, check_times, times_of

__all__ = ["results", "run"]


def run(query: Query, table: Any) -> Any:
    """The results over a whole table, as the same kind of table."""
    given = as_arrow(table)
    plan = make_plan(query, given.schema)
    if query.where is not None:
        given = given.filter(query.where)
    given = given.select(list(query.columns))
    column = _flat(given.column(query.time))
    times, bad = times_of(column)
    check_times(query.time, column, bad)
    del column, bad
    codes, keys = key_codes([_flat(given.column(c)) for c in query.by], given.num_rows)
    groups = len(keys[0]) if keys else 1
    rows, bounds = by_group(codes, groups, in_time(times, query, given))
    del codes
    return as_given(results(plan, keys, _windows(plan, given, rows, times[rows], bounds)), table)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    made = column.combine_chunks()
    if isinstance(made, pa.ChunkedArray):
        made = made.chunk(0) if made.num_chunks else pa.array([], type=made.type)
    return made.dictionary_decode() if pa.types.is_dictionary(made.type) else made


def in_time(times: Array, query: Query, table: pa.Table) -> Array | None:
    """The rows in order of time, ties by the tie column or as they come; None if they are."""
    if query.tie is not None:
        ranks = np.asarray(pc.rank(table.column(query.tie), tiebreaker="dense"), dtype=np.int64)
        return np.lexsort((ranks, times))
    if (times[1:] >= times[:-1]).all():
        return None
    return np.argsort(times, kind="stable")


def _windows(plan: Plan, table: pa.Table, rows: Array, times: Array, bounds: Array) -> Windows:
    """The windows of all groups; each operator gives the same ones."""
    query = plan.query
    changes = query.emit == "changes"
    made: Windows | None = None
    for group in plan.groups:
        sweep = Pass(group, query.window, plan.types, changes=changes)
        found = sweep.windows_of_events(sweep.columns(table), rows, times, bounds)
        if made is None:
            made = found
        else:
            made.values |= found.values
    assert made is not None
    return only_changes(made) if changes else made


def only_changes(windows: Windows) -> Windows:
    """The windows whose values differ from those of the window before."""
    keep = windows.fresh.astype(bool)
    keep[:1] = True
    keep[1:] |= windows.groups[1:] != windows.groups[:-1]
    for values in windows.values.values():
        keep[1:] |= _differ(values)
    at = pa.array(np.flatnonzero(keep))
    return Windows(
        windows.groups[keep],
        windows.starts[keep],
        windows.fresh[keep],
        {name: values.take(at) for name, values in windows.values.items()},
    )


def _differ(values: pa.Array) -> Array:
    """Whether each value but the first differs from the one before; NaN is NaN."""
    if pa.types.is_nested(values.type):
        items = values.to_pylist()
        return np.array([a != b for a, b in pairwise(items)], dtype=bool)
    old, new = values[:-1], values[1:]
    differ: Array = np.asarray(old.is_null()) != np.asarray(new.is_null())
    differ = differ | np.asarray(pc.fill_null(pc.not_equal(old, new), False))
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(old), pc.is_nan(new))
        differ &= ~np.asarray(pc.fill_null(both, False))
    return differ


def results(plan: Plan, keys: list[pa.Array], windows: Windows) -> pa.Table:
    """Windows as a table: keys, the window's start and end, values."""
    query = plan.query
    groups = pa.array(windows.groups)
    columns = [k.take(groups) for k in keys]
    names = list(query.by)
    for name, edge in (("window_start", 0), ("window_end", query.window.size)):
        names.append(name)
        columns.append(as_time(windows.starts + edge, plan.time_type))
    for name in query.select:
        names.append(name)
        columns.append(windows.values[name])
    return pa.table(dict(zip(names, columns, strict=True)))


def as_time(micros: Array, wanted: pa.DataType) -> pa.Array:
    """Times as the table has them: timestamps with the same zone, in microseconds, or integers."""
    if pa.types.is_timestamp(wanted):
        return pa.array(micros.view("M8[us]")).cast(pa.timestamp("us", wanted.tz))
    return pa.array(micros)
