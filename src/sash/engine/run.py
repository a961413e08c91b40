"""A query over a whole table: `Query.run`.

table → rows in order of key and time → slices → windows → a table of results
      ↘ rows in any order, each into its place ↗

Windows that events drive (`engine.driven`) and sessions (`engine.sessions`) have other ways from
the ordered rows on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import NO_NAME, Plan, make_plan
from ..query.query import Query
from ..state.answers import Sources
from ..state.contract import Slices
from ..state.filling import filled_windows
from ..state.joining import join_slices
from ..state.places import slices_by_place
from ..state.ranges import answers_of_ranges, window_ranges
from ..state.scan import NoAnswer, Scan, ScanFailed, Windows, unlimited
from ..tables.answers import changed
from ..tables.arrow import (
    as_arrow,
    as_given,
    as_time,
    filtered,
    kind_of,
    time_text,
)
from ..tables.rows import Ordered, put_in_order, read_rows
from ..windows import Driven, Merging, Ticked
from .driven import driven_results
from .sessions import session_results, tick_results
from .supported import Asked, check

__all__ = ["compute", "compute_from_slices", "results", "run"]

Wanted = Callable[[list[pa.Array]], tuple[Array, Array]]


def run(query: Query, table: Any) -> Any:
    """The results over a whole table, as the same kind of table."""
    check("Query.run", Asked(query))
    driven = isinstance(query.window, Driven)
    # a condition may read any column, and a driven window keeps them all
    given = as_arrow(table, None if driven or query.where is not None else query.columns)
    plan = make_plan(query, given.schema, whole=True)
    if driven:
        kind = kind_of(table)
        return as_given(driven_results(plan, given), kind, table if kind == "pandas" else None)
    if isinstance(query.window, Merging):
        return as_given(session_results(plan, given), kind_of(table))
    if isinstance(query.window, Ticked):
        return as_given(tick_results(plan, given), kind_of(table))
    return as_given(results(plan, *compute(plan, given)), kind_of(table))


def compute(
    plan: Plan, table: pa.Table, wanted: Wanted | None = None
) -> tuple[list[pa.Array], Windows]:
    """The keys in a table, and the windows of each key; `wanted` says the numbers of the first and
    last window of each key, if not all windows are wanted."""
    query = plan.query
    if query.where is not None:
        table = filtered(table, query.where)
    table = table.select([f.name for f in plan.schema])
    read = read_rows(plan, table)
    placed = None if read.rise else slices_by_place(plan, table, read.keys, read.codes, read.times)
    try:
        if placed is not None:
            return read.keys, _windows_of_slices(plan, *placed, wanted)
        spans = wanted(read.keys) if wanted else (None, None)
        return read.keys, _windows(plan, put_in_order(plan, table, read), *spans)
    except NoAnswer as error:
        raise OverflowError(_explained(plan, read.keys, error)) from None
    except ScanFailed as failure:
        raise failure.error from None


def compute_from_slices(
    plan: Plan,
    columns: list[pa.Array],
    times: Array,
    partials: list[Any],
    wanted: Wanted | None = None,
) -> tuple[list[pa.Array], Windows]:
    """The same from slices in any order: the columns of their keys, a time in each, and the
    partials of each group of aggregates.  Several may be parts of one slice."""
    slices, _, _ = join_slices(plan, columns, times, partials)
    try:
        return slices.keys, _windows_of_slices(plan, slices, [{}] * len(partials), wanted)
    except NoAnswer as error:
        raise OverflowError(_explained(plan, slices.keys, error)) from None


def _windows_of_slices(
    plan: Plan, slices: Slices, sources: list[Sources], wanted: Wanted | None
) -> Windows:
    """The windows of all groups, from slices; each operator answers the same ones."""
    query, bounds = plan.query, slices.bounds
    first, last = wanted(slices.keys) if wanted else unlimited(len(bounds) - 1)
    changes = query.emit == "changes"
    made: Windows | None = None
    for group, held, values in zip(plan.groups, slices.partials, sources, strict=True):
        scan = Scan(group, query.aligned, plan.types, changes=changes)
        found = scan.windows_of_slices(held, slices.starts, bounds, first, last, values)
        for row, why in found.lacking.items():
            raise NoAnswer(why, int(found.groups[row]), int(found.numbers[row]))
        if made is None:
            made = found
        else:
            made.join(found)
    assert made is not None
    return _emitted(plan, made)


def _explained(plan: Plan, keys: list[pa.Array], error: NoAnswer) -> str:
    """The reason why an answer does not exist, with its window and key."""
    query, window = plan.query, plan.query.aligned
    whose = ", ".join(f"{n} = {k[error.group]}" for n, k in zip(query.by, keys, strict=False))
    span = np.array([window.start(error.number), window.end(error.number)])
    start, end = map(time_text, as_time(span, plan.time_type))
    return f"{error} in the window from {start} to {end}{whose and ' of ' + whose}"


def _windows(plan: Plan, ordered: Ordered, first: Array | None, last: Array | None) -> Windows:
    """The windows of all groups; each operator answers the same ones."""
    query = plan.query
    events = ordered.table, ordered.rows, ordered.times, ordered.bounds
    changes = query.emit == "changes"
    made: Windows | None = None
    for group in plan.groups:
        scan = Scan(group, query.aligned, plan.types, changes=changes)
        found = scan.windows_of_events(*events, first, last)
        if made is None:
            made = found
        else:
            made.join(found)
    assert made is not None
    made.values.pop(NO_NAME, None)
    if plan.ranged:
        numbers, aligned = made.numbers, query.aligned
        spans = aligned.start(numbers), aligned.end(numbers)
        ranges = window_ranges(ordered.times, ordered.bounds, made.groups, *spans)
        for chosen in plan.ranged:
            made.values[chosen.name] = answers_of_ranges(chosen, ordered, *ranges)
    return _emitted(plan, made)


def _emitted(plan: Plan, windows: Windows) -> Windows:
    """Of windows that hold something, those whose values differ from those of the one before, if
    only changes are wanted; or with them those that hold nothing, if these are wanted."""
    if plan.query.aligned.empty:
        return filled_windows(plan, windows)
    if plan.query.emit == "all":
        return windows
    kept = changed(windows.groups, windows.numbers, windows.covered, windows.values)
    return windows.where(kept)


def results(plan: Plan, keys: list[pa.Array], windows: Windows) -> pa.Table:
    """Windows as a table: keys, the window's start and end, values."""
    query = plan.query
    groups, window = pa.array(windows.groups), query.aligned
    columns = {name: k.take(groups) for name, k in zip(query.by, keys, strict=True)}
    columns["window_start"] = as_time(window.start(windows.numbers), plan.time_type)
    columns["window_end"] = as_time(window.end(windows.numbers), plan.time_type)
    return pa.table(columns | {name: windows.values[name] for name in query.select})
