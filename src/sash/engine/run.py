"""A query over a whole table: `Query.run`.

table → rows in order of key and time → slices → windows → a table of results
      ↘ rows in any order, each into its place ↗

For driven windows (`engine.driven`) and for sessions and ticks (`engine.sessions`), other code
takes over from the ordered rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.spans import room
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.techniques import Slicing, choose_slicing
from ..state.filling import filled_windows
from ..state.joining import join_slices
from ..state.scan import NoAnswer, ScanFailed, Windows, unlimited
from ..tables import threads as pieces
from ..tables.answers import changed
from ..tables.arrow import (
    as_arrow,
    as_given,
    as_time,
    check_index,
    filtered,
    kind_of,
    numbered,
    time_text,
)
from ..tables.keys import repeated
from ..tables.rows import read_rows
from ..tables.threads import how_many, side_by_side
from ..tables.whole_times import warn_of_whole
from ..windows import Aligned, Driven, Merging, Ticked
from .driven import driven_results
from .failures import noting_failure
from .parts import windows_of_slices, windows_of_table
from .sessions import session_results, tick_results
from .supported import Asked, check

__all__ = [
    "compute",
    "compute_from_slices",
    "emitted",
    "explained",
    "results",
    "run",
    "run_arrow",
    "run_plan",
    "slicing_for",
]

Wanted = Callable[[list[pa.Array]], tuple[Array, Array]]


def run(query: Query, table: Any, threads: int | None = None, slicing: str = "auto") -> Any:
    """The results of a query over a table, as the same kind of table."""
    check("Query.run", Asked(query))
    cut = slicing_for(query, slicing)
    many = how_many(threads)
    driven = isinstance(query.window, Driven)
    check_index(table, query.time, query.columns)
    # a condition may read any column, and the rows of driven windows keep all columns
    given = as_arrow(table, None if driven or query.where is not None else query.columns)
    warn_of_whole(query, given)
    kind = kind_of(table)
    if not driven:
        return as_given(run_arrow(query, given, many, cut), kind)
    return as_given(run_arrow(query, given, many, cut, keep_numbers=kind == "pandas"), kind, table)


def run_arrow(
    query: Query,
    given: pa.Table,
    threads: int,
    slicing: Slicing | None = None,
    *,
    keep_numbers: bool = False,
) -> pa.Table:
    """The results of a query over an Arrow table; of a driven window with the numbers of the rows,
    if the caller wants to keep them."""
    if query.several and isinstance(query.window, Aligned):
        from .shared_run import sized_results  # here, because shared_run imports this module

        return sized_results(query, given, threads)
    plan = make_plan(query, given.schema, whole=True)
    return run_plan(plan, numbered(given) if keep_numbers else given, threads, slicing)


def slicing_for(query: Query, asked: str) -> Slicing | None:
    """The slicing technique with a name; None for "auto"."""
    if asked == "auto":
        return None
    if isinstance(query.window, Aligned):
        return choose_slicing(query.window, asked, in_order=True)
    raise ValueError(
        f"slicing={asked!r} cannot be had for {query.window!r}: events make its windows, and only "
        "windows that are aligned to the clock have slices"
    )


def run_plan(
    plan: Plan, table: pa.Table, threads: int = 1, slicing: Slicing | None = None
) -> pa.Table:
    """The results of a plan over a table."""
    window = plan.query.window
    with noting_failure(plan, table):
        if isinstance(window, Driven):
            return driven_results(plan, table, threads)
        if isinstance(window, Merging):
            return session_results(plan, table, threads)
        if isinstance(window, Ticked):
            return tick_results(plan, table, threads)
        found = compute(plan, table, threads=threads, slicing=slicing)
        return results(plan, *found, threads)


def compute(
    plan: Plan,
    table: pa.Table,
    wanted: Wanted | None = None,
    threads: int = 1,
    slicing: Slicing | None = None,
) -> tuple[list[pa.Array], Windows]:
    """The keys in a table, and the windows of each key.  If the caller does not want all windows,
    `wanted` maps the keys to the numbers of the first and last wanted window of each."""
    query = plan.query
    if query.where is not None:
        table = filtered(table, query.where)
    table = table.select([f.name for f in plan.schema])
    read = read_rows(plan, table, threads)
    first, last = wanted(read.keys) if wanted else unlimited(read.groups)
    try:
        made = windows_of_table(plan, table, read, first, last, threads, slicing)
    except NoAnswer as error:
        raise OverflowError(explained(plan, read.keys, error)) from None
    except ScanFailed as failure:
        raise failure.error from None
    return read.keys, emitted(plan, made)


def compute_from_slices(
    plan: Plan,
    columns: list[pa.Array],
    times: Array,
    partials: list[Any],
    wanted: Wanted | None = None,
) -> tuple[list[pa.Array], Windows]:
    """The same as `compute`, from slices in any order: the columns of their keys, a time in each
    slice, and the partials of each group of aggregates.  Slices of one key that lie between the
    same two edges are joined into one."""
    slices, _, _ = join_slices(plan, columns, times, partials)
    spans = wanted(slices.keys) if wanted else unlimited(len(slices.bounds) - 1)
    try:
        made = windows_of_slices(plan, slices, [{}] * len(partials), *spans)
    except NoAnswer as error:
        raise OverflowError(explained(plan, slices.keys, error)) from None
    return slices.keys, emitted(plan, made)


def explained(plan: Plan, keys: list[pa.Array], error: NoAnswer) -> str:
    """A message that says why an answer does not exist, and in which window of which key."""
    query, window = plan.query, plan.query.aligned
    whose = ", ".join(f"{n} = {k[error.group]}" for n, k in zip(query.by, keys, strict=False))
    span = np.array([window.start(error.number), window.end(error.number)])
    start, end = map(time_text, as_time(span, plan.time_type))
    return f"{error} in the window from {start} to {end}{whose and ' of ' + whose}"


def emitted(plan: Plan, windows: Windows) -> Windows:
    """The windows to emit, from all windows that hold events: with the empty windows between them,
    if the query asks for these; only those whose values changed, if it asks for changes."""
    if plan.query.aligned.empty:
        return filled_windows(plan, windows)
    if plan.query.emit == "all":
        return windows
    kept = changed(windows.groups, windows.numbers, windows.covered, windows.values)
    return windows.where(kept)


def results(plan: Plan, keys: list[pa.Array], windows: Windows, threads: int = 1) -> pa.Table:
    """The table of results: for each window its key, its start and end, and its values.  `windows`
    lose their numbers: to have them and all columns at once would take the most memory of a run."""
    query = plan.query
    starts, ends = _spans(query.aligned, windows.numbers, threads)
    windows.numbers = np.empty(0, dtype=np.int64)
    made = dict(zip(query.by, repeated(keys, windows.ends, threads), strict=True))
    made |= {"window_start": as_time(starts, plan.time_type)}
    made |= {"window_end": as_time(ends, plan.time_type)}
    return pa.table(made | {name: windows.values[name] for name in query.select})


def _spans(window: Aligned, numbers: Array, threads: int) -> tuple[Array, Array]:
    """The start and the end of each window, by its number."""
    starts, ends = (room(len(numbers), np.int64) for _ in range(2))

    def fill(piece: tuple[int, int]) -> None:
        for some in pieces.blocks(*piece):
            starts[some], ends[some] = window.start(numbers[some]), window.end(numbers[some])

    side_by_side(fill, pieces.cut_rows(len(numbers)), threads)
    return starts, ends
