"""The state of a stream of windows that keep events and fire at ticks of the clock.

The ticks of a key go up to the first tick after its last event.  The state emits a tick when the
watermark has passed it, and it is certain that the key's ticks go that far.  It emits the ticks in
a gap when an event after the gap settles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..windows import Ticked
from ..windows.contract import Mark
from .answers import by_key_and_time
from .driven import Kept
from .due import NEVER
from .measures import tick_runs, ticks_between
from .ragged import Places
from .range_answers import Ranges

__all__ = ["TickState", "Ticks"]


@dataclass
class Ticks:
    """Windows at ticks, in order of key and time: the columns of their keys, start and end, the
    values by name, and why windows lack values."""

    keys: list[pa.Array]
    starts: Array
    ends: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]


class TickState(Kept):
    """The events that the windows keep if ticks of the clock fire."""

    def __init__(self, plan: Plan, *, stored: bool = False) -> None:
        super().__init__(plan, stored=stored)
        assert isinstance(plan.query.window, Ticked)
        self._tick = plan.query.window.tick
        self._by_marks = isinstance(plan.query.window.keeps, Mark)
        # the number of events; the number of the next tick, and of the first after the last event
        self._fresh = [np.zeros(1, np.int64), np.full(1, NEVER), np.full(1, -NEVER)]
        self._known = [column[:0] for column in self._fresh]

    def step(self, table: pa.Table, watermark: int) -> Ticks:
        """Take the events of a table, which are all that the watermark has passed since the last
        step, and answer the ticks that it has passed."""
        step = self._settle(table.select([f.name for f in self._plan.schema]), watermark)
        visits, given, rows = step.visits, step.ordered, step.rows
        many = len(given.bounds) - 1 if len(given) else 0
        _, following, behind = self._known
        if many:
            touched, bounds = visits[:many], given.bounds
            begin = given.times[bounds[:-1]] // self._tick + 1
            following[touched] = np.minimum(following[touched], begin)
            behind[touched] = given.times[bounds[1:] - 1] // self._tick + 1
        limit = np.minimum(behind[visits], watermark // self._tick)
        marks = step.columns[0] if self._by_marks else None
        of, begin, end = tick_runs(rows.times, rows.bounds, marks, self._tick)
        begin, end = np.maximum(begin, following[visits][of]), np.minimum(end, limit[of])
        owner, at_ticks = ticks_between(of, begin, end, self._tick)
        following[visits] = np.maximum(following[visits], limit + 1)
        # the last event before each tick
        codes = np.repeat(np.arange(len(visits)), np.diff(rows.bounds))
        at = Places(codes, rows.times).find(owner, at_ticks) - 1
        shift = step.shifts[owner]
        asked = np.append(0, np.cumsum(np.bincount(owner, minlength=len(visits))))
        starts = rows.times[step.first[at]]
        ranges = Ranges(asked, step.first[at] + shift, at + shift)
        found = self._answer(step, ranges, watermark)
        self._due.note(visits, self._notes(visits))
        keys = self._grove.keys.take(visits[owner])
        self._grove.keys.remove(visits[self._lanes.counts(visits) == 0])
        order, keys, values, failed = by_key_and_time(keys, at_ticks, found.values, found.failed)
        return Ticks(keys, starts[order], at_ticks[order], values, failed)

    def _notes(self, numbers: Array) -> Array:
        """For each key the time just before its next tick; NEVER if that tick comes after the first
        tick after its last event."""
        _, following, behind = (column[numbers] for column in self._known)
        return np.where(following <= behind, following * self._tick - 1, NEVER)
