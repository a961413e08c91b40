"""A query over a whole table where events make windows that are not an event's own: sessions, and
what is kept at ticks of the clock.

table → rows in order of key and time → frames → answers
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.frames import NoFrameAnswer, answers_of_frames
from ..state.measures import Spans, gaps_of, sessions_of, ticks_of
from ..state.ranges import answers_over
from ..tables.arrow import as_time, filtered, time_text
from ..tables.rows import Ordered, rows_in_order
from ..tables.threads import cut_groups
from ..windows import Merging, Ticked

__all__ = ["session_results", "tick_results"]


def session_results(plan: Plan, table: pa.Table, threads: int = 1) -> pa.Table:
    """The sessions of a table, in order of key and time: keys, the window's start and end,
    values."""
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
    found = sessions_of(times, times + gaps, ordered.bounds, window.longest)
    return _results(plan, ordered, found, threads)


def tick_results(plan: Plan, table: pa.Table, threads: int = 1) -> pa.Table:
    """What is kept at each tick, in order of key and time: keys, the window's start and end,
    values."""
    window = plan.query.window
    assert isinstance(window, Ticked)
    ordered = rows_in_order(plan, _read(plan, table), threads)
    return _results(plan, ordered, ticks_of(window.keeps, window.tick, ordered), threads)


def _read(plan: Plan, table: pa.Table) -> pa.Table:
    """The events of a table, with the columns that are read."""
    if plan.query.where is not None:
        table = filtered(table, plan.query.where)
    return table.select([f.name for f in plan.schema])


def _results(plan: Plan, ordered: Ordered, found: Spans, threads: int) -> pa.Table:
    """Windows as a table: keys, the window's start and end, values."""
    query, keys = plan.query, ordered.keys
    spans = [as_time(a, plan.time_type) for a in (found.starts, found.ends)]
    bounds = ordered.bounds
    cuts = []
    for low, high in cut_groups(bounds):
        first, last = np.searchsorted(found.groups, [low, high])
        cuts.append(((int(first), int(last)), (int(bounds[low]), int(bounds[high]))))
    given = ordered.table, ordered.rows, None, cuts, threads
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
