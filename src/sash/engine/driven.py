"""A query over a whole table where events drive the windows: one row for each event that fires.

table → rows in order of key and time → frames → answers, in the table's own order
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.frames import NoFrameAnswer
from ..state.measures import Rows, frames_of
from ..tables.arrow import as_time, filtered, flat, time_text
from ..tables.rows import rows_in_order
from ..windows import Driven

__all__ = ["driven_results"]


def driven_results(plan: Plan, table: pa.Table) -> pa.Table:
    """The rows of a table that fire, in its order: their columns, the window's start and end,
    values."""
    query, window = plan.query, plan.query.window
    assert isinstance(window, Driven)
    if query.where is not None:
        table = filtered(table, query.where)
    read = table.select([f.name for f in plan.schema])
    _, rows, times, bounds = rows_in_order(plan, read)

    def column(name: str) -> pa.Array:
        found = flat(read.column(name))
        return found if rows is None else found.take(pa.array(rows))

    frames = frames_of(window, Rows(times, bounds, column))
    # the frames in the order in which the table has their events
    order = None
    if rows is not None:
        fired = rows if frames.fired is None else rows[frames.fired]
        order = _ranks(fired, table.num_rows)
    if frames.fired is not None:
        table = table.take(pa.array(frames.fired if rows is None else fired[order]))
    values: dict[str, pa.Array] = {}
    try:
        for group in plan.groups:
            values |= frames.answers(group, plan.types, read, rows, order)
    except NoFrameAnswer as error:
        row = error.frame if order is None else int(np.flatnonzero(order == error.frame)[0])
        raise OverflowError(_explained(plan, table, row, error)) from None
    own = times if frames.fired is None else times[frames.fired]
    start, end = window.spans(_ordered(own, order))
    if start is None:
        oldest, held = (_ordered(a, order) for a in frames.oldest(times))
        starts = _with_nulls(as_time(oldest, plan.time_type), held)
    else:
        starts = as_time(start, plan.time_type)
    added = {"window_start": starts, "window_end": as_time(end, plan.time_type)}
    added |= {name: values[name] for name in query.select}
    return pa.table([*table.columns, *added.values()], names=[*table.column_names, *added])


def _ranks(rows: Array, count: int) -> Array:
    """The places of different rows, out of `count`, in order."""
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return places if len(rows) == count else places[places >= 0]


def _ordered(items: Array, order: Array | None) -> Array:
    return items if order is None else items[order]


def _with_nulls(times: pa.Array, held: Array) -> pa.Array:
    """Times, null where nothing is held."""
    return times if held.all() else pc.if_else(pa.array(held), times, pa.scalar(None, times.type))


def _explained(plan: Plan, table: pa.Table, row: int, error: NoFrameAnswer) -> str:
    """The reason why an answer does not exist, with its event."""
    query = plan.query
    at = time_text(table.column(query.time)[row])
    whose = ", ".join(f"{name} = {table.column(name)[row]}" for name in query.by)
    return f"{error} in the window of the event at {at}{whose and ' of ' + whose}"
