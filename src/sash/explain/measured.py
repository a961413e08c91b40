"""Run a sample over a table and count its combines, to compare them with the expected number.

The sample runs through the same code as any run, with combines counted.  Its kernels run as plain
Python, so use a sample of a few thousand rows; a larger one takes long.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..engine.run import run_plan
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import Edges, edges_of
from ..slicing.slices import slices_held
from ..slicing.techniques import Slicing
from ..state.scan import room_for
from ..state.trace import Trace, tracing
from ..tables.arrow import filtered, one_array, times_of
from ..tables.rows import read_rows
from ..windows.contract import Aligned
from .counted import Counter, counted
from .explanation import Counts, Explanation

__all__ = ["Events", "measured_table", "windows_of_slices"]


_ROW = "sash row"  # a column with the number of each row


@dataclass(frozen=True)
class Events:
    """The events of a sample: the number of each event's key, its time, and its row."""

    codes: Array
    times: Array
    rows: Array

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, plan: Plan, sample: pa.Table) -> Events:
        """The events that the query's condition selects, and whose times are usable."""
        query = plan.query
        time = one_array(sample.column(query.time))
        chosen = ~times_of(time, query.window.clock)[1]
        if query.where is not None:
            numbered = sample.append_column(_ROW, pa.array(range(sample.num_rows), pa.int64()))
            kept = np.asarray(filtered(numbered, query.where).column(_ROW))
            chosen &= np.isin(np.arange(len(chosen)), kept)
        rows = np.flatnonzero(chosen)
        some = sample.select([f.name for f in plan.schema]).take(pa.array(rows))
        read = read_rows(plan, some)
        codes = read.codes if read.keys else np.zeros(len(read.times), dtype=np.int64)
        return cls(np.asarray(codes, dtype=np.int64), read.times, rows)

    def where(self, chosen: Array) -> Events:
        """The selected events."""
        return Events(self.codes[chosen], self.times[chosen], self.rows[chosen])

    def entries(self, edges: Edges, *, times: bool = False) -> tuple[Array, Array]:
        """The distinct slices, or times, of each key, in order: an array of keys, and one of slice
        numbers or times."""
        at = self.times if times else np.asarray(edges.number(self.times))
        found = np.unique(np.stack([self.codes, at]), axis=1)
        return found[0], found[1]


def windows_of_slices(codes: Array, starts: Array, window: Aligned) -> int:
    """The number of windows that hold events, from slices in order of key and time."""
    first, last = np.asarray(window.first(starts)), np.asarray(window.last(starts))
    before = np.full(len(codes), np.iinfo(np.int64).min // 2)
    same = codes[1:] == codes[:-1]
    before[1:][same] = last[:-1][same]
    return int(np.maximum(last - np.maximum(first - 1, before), 0).sum())


def measured_table(
    made: Explanation, query: Query, sample: pa.Table, cut: Slicing | None
) -> Explanation:
    """Run a sample, and add its expected and measured counts to the explanation."""
    plan, counter = make_plan(query, sample.schema, whole=True), Counter()
    with tracing() as trace:
        rows = run_plan(counted(plan, counter), sample, slicing=cut).num_rows
    events = Events.of(plan, sample)
    measured = Counts(len(events), 0, rows, counter.combines, trace.entries, trace.bytes)
    window = query.window
    expected = dataclasses.replace(measured, entries=len(events))
    if isinstance(window, Aligned):
        expected = _expected(made, query, events, trace, measured, cut)
    expected = dataclasses.replace(expected, combines=made.costs.combines(expected))
    measured = dataclasses.replace(measured, entries=expected.entries)
    steps = tuple(trace.steps) or ("rows sorted by key and time",)
    return dataclasses.replace(made, expected=expected, measured=measured, taken=steps)


def _expected(
    made: Explanation,
    query: Query,
    events: Events,
    trace: Trace,
    measured: Counts,
    cut: Slicing | None,
) -> Counts:
    """The expected counts for aligned windows, from the sample's keys and times."""
    window = query.aligned
    cut_at = edges_of(window)
    codes, numbers = events.entries(cut_at)
    starts = np.asarray(cut_at.time(numbers))
    rows = windows_of_slices(codes, starts, window)
    if cut is not None:
        codes, starts = events.entries(cut.on_clock(window))
    if query.emit == "changes":
        rows = min(rows, 2 * len(starts) + len(np.unique(codes)))
    if window.empty:
        rows = measured.rows
    longest = int(np.bincount(codes).max(initial=0))
    in_order = not any("place" in step for step in trace.steps)
    if in_order:
        most = int(np.bincount(events.codes).max(initial=0))
        longest = min(most, slices_held(window) + 2)
    else:
        longest += 1
    room = room_for(longest)
    size = (made.kept.entry_bytes or 8) * room
    return Counts(len(events), len(starts), rows, 0, room, size)
