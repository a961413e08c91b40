"""A query over a whole table: `Query.run`.

table → rows in order of key and time → slices → windows → a table of results
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from .keys import by_group, key_codes
from .passes import NoAnswer, Pass, Windows
from .tables import as_arrow, as_given, check_times, one_array, time_text, times_of

__all__ = ["compute", "results", "run"]

Wanted = Callable[[list[pa.Array]], tuple[Array, Array]]


def run(query: Query, table: Any) -> Any:
    """The results over a whole table, as the same kind of table."""
    # a condition may read any column
    given = as_arrow(table, None if query.where is not None else query.columns)
    plan = make_plan(query, given.schema)
    return as_given(results(plan, *compute(plan, given)), table)


def compute(
    plan: Plan, table: pa.Table, wanted: Wanted | None = None
) -> tuple[list[pa.Array], Windows]:
    """The keys in a table, and the windows of each; `wanted` says the first and last of each key
    that are, if not all are."""
    query = plan.query
    if query.where is not None:
        table = filtered(table, query.where)
    table = table.select([f.name for f in plan.schema])
    keys, rows, times, bounds = _in_order(plan, table)
    try:
        spans = wanted(keys) if wanted else (None, None)
        return keys, _windows(plan, table, rows, times, bounds, *spans)
    except NoAnswer as error:
        raise OverflowError(_told(plan, keys, error)) from None


def filtered(table: pa.Table, where: Any) -> pa.Table:
    """The rows that satisfy a condition; where it is null, a row does not."""
    try:
        return table.filter(where)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"where, {where}, cannot be used on this table: {error}") from None


def _in_order(plan: Plan, table: pa.Table) -> tuple[list[pa.Array], Array | None, Array, Array]:
    """The keys; the rows in order of key and time, None if they are; their times; and where each
    key's rows begin."""
    query = plan.query
    column = one_array(table.column(query.time))
    times, bad = times_of(column)
    check_times(query.time, column, bad)
    codes, keys = key_codes([one_array(table.column(f.name)) for f in plan.keys], table.num_rows)
    groups = len(keys[0]) if keys else 1
    if query.tie is None:
        rows = None
        if (codes[1:] >= codes[:-1]).all():
            bounds = np.searchsorted(codes, np.arange(groups + 1))
        else:
            rows, bounds = by_group(codes, groups, None)
        within = times if rows is None else times[rows]
        if _rise(within, bounds):
            return keys, rows, within, bounds
    rows, bounds = by_group(codes, groups, in_time(times, query, table))
    return keys, rows, times[rows], bounds


def _rise(times: Array, bounds: Array) -> bool:
    """Whether times are in order within each group."""
    falls = times[1:] < times[:-1]
    falls[bounds[(bounds > 0) & (bounds < len(times))] - 1] = False
    return not falls.any()


def _told(plan: Plan, keys: list[pa.Array], error: NoAnswer) -> str:
    """What to say of an answer that does not exist: whose it is."""
    query = plan.query
    whose = ", ".join(f"{n} = {k[error.group]}" for n, k in zip(query.by, keys, strict=False))
    edges = as_time(np.array([error.start, error.start + query.window.size]), plan.time_type)
    span = f"from {time_text(edges[0])} to {time_text(edges[1])}"
    return f"{error} in the window {span}{whose and ' of ' + whose}"


def in_time(times: Array, query: Query, table: pa.Table) -> Array | None:
    """The rows in order of time, ties by the tie column or as they come; None if they are."""
    if query.tie is not None:
        return np.lexsort((tie_ranks(query.tie, table.column(query.tie)), times))
    if (times[1:] >= times[:-1]).all():
        return None
    return np.argsort(times, kind="stable")


def tie_ranks(name: str, column: pa.ChunkedArray) -> Array:
    """The places of values in order, nulls last."""
    values = one_array(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        return np.asarray(pc.rank(values, tiebreaker="dense"), dtype=np.int64)
    except pa.ArrowNotImplementedError:
        raise TypeError(
            f"the tie column {name!r} has type {values.type}, which has no order; give one of "
            "numbers, times or text"
        ) from None


def _windows(
    plan: Plan,
    table: pa.Table,
    rows: Array | None,
    times: Array,
    bounds: Array,
    first: Array | None,
    last: Array | None,
) -> Windows:
    """The windows of all groups; each operator gives the same ones."""
    query = plan.query
    changes = query.emit == "changes"
    made: Windows | None = None
    for group in plan.groups:
        sweep = Pass(group, query.window, plan.types, changes=changes)
        found = sweep.windows_of_events(sweep.columns(table), rows, times, bounds, first, last)
        if made is None:
            made = found
        else:
            made.join(found)
    assert made is not None
    return only_changes(made) if changes else made


def only_changes(windows: Windows) -> Windows:
    """The windows whose values differ from those of the window before."""
    keep = windows.fresh.astype(bool)
    keep[:1] = True
    keep[windows.ends[windows.ends < len(keep)]] = True  # the first of each group
    for values in windows.values.values():
        keep[1:] |= differ_from_before(values)
    return windows.where(keep)


def differ_from_before(values: pa.Array) -> Array:
    """Whether each value but the first differs from the one before; NaN is NaN."""
    old, new = values[:-1], values[1:]
    differ: Array = np.asarray(old.is_null()) != np.asarray(new.is_null())
    try:
        differ = differ | np.asarray(pc.fill_null(pc.not_equal(old, new), False))
    except pa.ArrowNotImplementedError:
        items = values.to_pylist()
        return np.array([not _equal(a, b) for a, b in pairwise(items)], dtype=bool)
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(old), pc.is_nan(new))
        differ &= ~np.asarray(pc.fill_null(both, False))
    return differ


def _equal(a: Any, b: Any) -> bool:
    """Whether two values are equal, NaN being NaN, also within others."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(x, b[k]) for k, x in a.items())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b or (a != a and b != b))


def results(plan: Plan, keys: list[pa.Array], windows: Windows) -> pa.Table:
    """Windows as a table: keys, the window's start and end, values."""
    query = plan.query
    columns = [k.take(pa.array(windows.groups)) for k in keys]
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
