"""Cut events into slices: the kernel function, and the Python function that calls it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, ObjectCore
from ..kernels.slots import Columns, Memory, Partials, item, set_item, store
from .slices import gather, slice_of

__all__ = ["cut", "cut_events"]


def cut(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    whole: int,
    slot: int,
    new: int,
    starts: Any,
    partials: Partials,
    ends: Any,
) -> int:
    """Cut the events of `count` groups into slices.  Write the start and the partial of each slice,
    and the bounds of each group's slices into `ends`, with 0 before the first.  Return the number
    of slices.

    If `whole` is 0, each time gets a slice of its own, which starts at that time.  The function
    may overwrite the slots `slot` and `new`.
    """
    made = 0
    set_item(ends, 0, 0)
    for g in range(count):
        i = item(bounds, g)
        n = item(bounds, g + 1)
        while i < n:
            start = item(times, i)
            end = start + 1
            if whole:
                start, end = slice_of(m, start)
            i = gather(m, slot, new, columns, times, i, n, end)
            store(m, slot, partials, made)
            set_item(starts, made, start)
            made += 1
        set_item(ends, g + 1, made)
    return made


def cut_events(
    core: BufferCore | ObjectCore,
    columns: Table,
    rows: Array | None,
    times: Array,
    bounds: Array,
    *,
    whole: bool,
    slots: tuple[int, int],
    room: int | None = None,
    into: tuple[Array, Array] | None = None,
) -> tuple[Array, Any, Array]:
    """Cut groups of events, each in order of time, into slices.  `rows` has the places of the
    events in the columns; None means that the columns are in the events' order.  `slots` are two
    slots that the core's kernel does not use at the moment.  `room` is the largest possible number
    of slices, if known.  `into` are two arrays to write the slices' starts and the words of their
    partials to, if the caller has them.

    Returns the slices' starts, their partials (rows of words, or a list of objects), and the
    bounds of each group's slices, one more than the number of groups.
    """
    count = len(bounds) - 1
    kept = [core.integers(a) for a in (times, bounds)]
    held, handle = core.take(columns if rows is None else columns.take(rows))
    most = len(times) if room is None else room
    room_for_starts, words = into or (np.empty(most, dtype=np.int64), None)
    starts, at_starts = core.integers(room_for_starts)
    ends, at_ends = core.integers(np.empty(count + 1, dtype=np.int64))
    partials: Any = [None] * most
    written = at_partials = partials
    if isinstance(core, BufferCore):
        if words is None:
            words = np.empty(most * core.width, dtype=np.int64)
        written, at_partials = core.integers(words.reshape(-1))
        partials = written.reshape(-1, core.width)
    made = core.run.cut(
        core.m,
        handle,
        *(h for _, h in kept),
        count,
        int(whole),
        *slots,
        at_starts,
        at_partials,
        at_ends,
    )
    del kept, held, written
    return (
        np.asarray(starts[:made], dtype=np.int64),
        partials[:made],
        np.asarray(ends, dtype=np.int64),
    )
