"""A query over a whole table where events drive the windows: one row for each event that fires.

table → rows in order of key and time → frames → answers, in the table's own order
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..kernels.spans import room
from ..query.plan import Plan
from ..state.frame_answers import answers_of_frames, taken
from ..state.frames import NoFrameAnswer
from ..state.measures import Found, frames_of, sizes_of
from ..state.over_frames import answers_of_sizes
from ..state.ranges import answers_over
from ..tables.arrow import as_time, filtered, time_text
from ..tables.counting_sort import inverse
from ..tables.rows import rows_in_order
from ..tables.threads import cut_groups, cut_rows, side_by_side
from ..windows import Driven, Trailing

__all__ = ["driven_results", "with_nulls"]


def driven_results(plan: Plan, table: pa.Table, threads: int = 1) -> pa.Table:
    """The rows of a table that fire, in its order: their columns, the window's start and end, and
    the values."""
    query, window = plan.query, plan.query.window
    assert isinstance(window, Driven)
    if query.where is not None:
        table = filtered(table, query.where)
    read = table.select([f.name for f in plan.schema])
    ordered = rows_in_order(plan, read, threads)
    found = frames_of(window, ordered)
    frames = found.frames
    # the frame of each row of the result: the place of its event among the events that fire
    order = ordered.order(threads) if frames.fired is None else None
    if frames.fired is not None:
        fires = np.zeros(table.num_rows, dtype=bool)
        rows = ordered.rows
        fires[frames.fired if rows is None else rows[frames.fired]] = True
        table = table.filter(pa.array(fires))
        if rows is not None:
            order = inverse((np.cumsum(fires) - 1)[rows[frames.fired]], threads)
    bounds = ordered.bounds
    cuts = []
    for low, high in cut_groups(bounds):
        some = int(bounds[low]), int(bounds[high])
        cuts.append((some if frames.fired is None else _among(frames.fired, some), some))
    values: dict[str, pa.Array] = {}
    try:
        given = plan.types, read, ordered, order, cuts, threads
        for group in plan.groups:
            if group.over is None:
                values |= answers_of_frames([(frames, group)], *given)
                continue
            assert isinstance(window, Trailing)
            windows = [window.of_length(size) for size in group.over.sizes]
            if len(windows) > 1 and not window.excludes_some:
                values |= answers_of_sizes(sizes_of(windows, ordered), group, *given)
                continue
            each = [frames_of(one, ordered).frames for one in windows]
            asked = [(one, group.alone(i)) for i, one in enumerate(each)]
            values |= answers_of_frames(asked, *given)
        values |= answers_over(plan, ordered, frames, order)
    except NoFrameAnswer as error:
        row = error.frame if order is None else int(np.flatnonzero(order == error.frame)[0])
        raise OverflowError(_explained(plan, table, row, error)) from None
    own = ordered.own_times
    assert own is not None
    # times that were put in order of the keys belong to this run alone, and are not read again
    spare = ordered.times if ordered.moves else None
    start, end = _spans(window, own if frames.fired is None else own[fires], threads, spare)
    if start is None:
        starts = _oldest(found, order, plan.time_type, threads)
    else:
        starts = as_time(start, plan.time_type)
    added = {"window_start": starts, "window_end": as_time(end, plan.time_type)}
    added |= {name: values[name] for name in query.select}
    return pa.table([*table.columns, *added.values()], names=[*table.column_names, *added])


def _spans(
    window: Driven, own: Array, threads: int, spare: Array | None
) -> tuple[Array | None, Array]:
    """The `window_start` and `window_end` of events at these times, computed in pieces.  A
    `window_start` that is computed goes into `spare`, if that is as long."""
    none = own[:0]
    made: list[Array | None] = []
    for column in window.spans(none):  # the start, then the end
        if column is None or column is none:
            made.append(None if column is None else own)
        elif not made and spare is not None and len(spare) == len(own):
            made.append(spare)
        else:
            made.append(room(len(own), own.dtype))

    def fill(piece: tuple[int, int]) -> None:
        some = slice(*piece)
        for into, values in zip(made, window.spans(own[some]), strict=True):
            if into is not None and into is not own:
                into[some] = values

    if any(into is not None and into is not own for into in made):
        side_by_side(fill, cut_rows(len(own)), threads)
    start, end = made
    assert end is not None
    return start, end


def _oldest(found: Found, order: Array | None, kind: pa.DataType, threads: int) -> Any:
    """The time of the oldest event that each window holds, in the result's order."""
    if found.earlier is not None and order is None:
        return pa.chunked_array([as_time(times, kind) for times in found.earlier])
    oldest, held = found.oldest()
    if order is not None:
        oldest, held = (taken(a, order, threads) for a in (oldest, held))
    return with_nulls(as_time(oldest, kind), held)


def _among(fired: Array, rows: tuple[int, int]) -> tuple[int, int]:
    """The range of frames that belong to a range of rows, if only some rows fire."""
    first, last = np.searchsorted(fired, rows)
    return int(first), int(last)


def with_nulls(times: pa.Array, held: Array) -> pa.Array:
    """Times, with null where `held` is false: the window holds no events."""
    return times if held.all() else pc.if_else(pa.array(held), times, pa.scalar(None, times.type))


def _explained(plan: Plan, table: pa.Table, row: int, error: NoFrameAnswer) -> str:
    """A message that says why an answer does not exist, and for which event."""
    query = plan.query
    at = time_text(table.column(query.time)[row])
    whose = ", ".join(f"{name} = {table.column(name)[row]}" for name in query.by)
    return f"{error} in the window of the event at {at}{whose and ' of ' + whose}"
