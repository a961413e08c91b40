"""A query over a whole table with sessions, or with windows that are emitted at ticks of the clock.

table → rows in order of key and time → frames → answers
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.frame_answers import answers_of_frames
from ..state.frames import Apart, NoFrameAnswer
from ..state.measures import Spans, gaps_of, sessions_of, ticks_of
from ..state.ragged import ragged
from ..state.ranges import answers_over
from ..tables.arrow import as_time, filtered, time_text
from ..tables.rows import Ordered, rows_in_order
from ..tables.threads import cut_groups
from ..windows import Merging, Ticked

__all__ = ["session_results", "sessions_and_rest", "tick_results"]


def session_results(plan: Plan, table: pa.Table, threads: int = 1) -> pa.Table:
    """The sessions of a table, in order of key and time: the key, the window's start and end, and
    the values."""
    return _results(plan, *_sessions(plan, table, threads), threads)


def sessions_and_rest(
    plan: Plan, table: pa.Table, touched: Callable[[list[pa.Array], Spans], Array]
) -> tuple[pa.Table, pa.Table]:
    """The sessions of a table that no event outside of it may touch, and the rows of the other
    sessions.  `touched` takes the columns of keys, and all sessions; it returns a mask of those
    that such an event may touch."""
    ordered, found = _sessions(plan, table, 1)
    rest = touched(ordered.keys, found)
    frames = found.frames
    taken = ragged(frames.first[rest], (frames.last - frames.first)[rest])
    rows = taken if ordered.rows is None else ordered.rows[taken]
    groups, starts, ends = (a[~rest] for a in (found.groups, found.starts, found.ends))
    whole = Spans(groups, starts, ends, Apart(frames.first[~rest], frames.last[~rest]))
    return _results(plan, ordered, whole, 1), ordered.table.take(pa.array(rows))


def _sessions(plan: Plan, table: pa.Table, threads: int) -> tuple[Ordered, Spans]:
    """The rows of a table in order, and their sessions."""
    window = plan.query.window
    assert isinstance(window, Merging)
    table = _read(plan, table)
    gaps: Array | int
    if isinstance(window.reach, str):
        gaps = gaps_of(table, window.reach)
        table, gaps = table.filter(pa.array(gaps > 0)), gaps[gaps > 0]
    else:
        gaps = window.reach
    ordered = rows_in_order(plan, table, threads)
    if ordered.rows is not None and isinstance(gaps, np.ndarray):
        gaps = gaps[ordered.rows]
    times = ordered.times
    return ordered, sessions_of(times, times + gaps, ordered.bounds, window.longest)


def tick_results(plan: Plan, table: pa.Table, threads: int = 1) -> pa.Table:
    """The results at ticks, in order of key and time: the key, the window's start and end, and the
    values over the events that the window keeps at the tick."""
    window = plan.query.window
    assert isinstance(window, Ticked)
    ordered = rows_in_order(plan, _read(plan, table), threads)
    return _results(plan, ordered, ticks_of(window.keeps, window.tick, ordered), threads)


def _read(plan: Plan, table: pa.Table) -> pa.Table:
    """The events that the query counts, with the columns that it reads."""
    if plan.query.where is not None:
        table = filtered(table, plan.query.where)
    return table.select([f.name for f in plan.schema])


def _results(plan: Plan, ordered: Ordered, found: Spans, threads: int) -> pa.Table:
    """The table of windows: for each its key, its start and end, and its values."""
    query, keys = plan.query, ordered.keys
    spans = [as_time(a, plan.time_type) for a in (found.starts, found.ends)]
    bounds = ordered.bounds
    cuts = []
    for low, high in cut_groups(bounds):
        first, last = np.searchsorted(found.groups, [low, high])
        cuts.append(((int(first), int(last)), (int(bounds[low]), int(bounds[high]))))
    given = ordered.table, ordered, None, cuts, threads
    values: dict[str, pa.Array] = {}
    try:
        for group in plan.groups:
            values |= answers_of_frames([(found.frames, group)], plan.types, *given)
        values |= answers_over(plan, ordered, found.frames)
    except NoFrameAnswer as error:
        start, end = (time_text(span[error.frame]) for span in spans)
        key = int(found.groups[error.frame])
        whose = ", ".join(f"{n} = {k[key]}" for n, k in zip(query.by, keys, strict=True))
        raise OverflowError(
            f"{error} in the window from {start} to {end}{whose and ' of ' + whose}"
        ) from None
    at = pa.array(found.groups)
    columns = {name: k.take(at) for name, k in zip(query.by, keys, strict=True)}
    columns |= {"window_start": spans[0], "window_end": spans[1]}
    return pa.table(columns | {name: values[name] for name in query.select})
