"""The state of a stream of windows that events fill and the clock fires.

A tick is emitted when the watermark has passed it, and it is known that the key's ticks go so far:
up to the first one behind its last event.  Those of a gap are emitted when an event settles behind
it.
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
from .ragged import Places, ragged
from .range_answers import Ranges

__all__ = ["TickState", "Ticks"]


@dataclass
class Ticks:
    """Windows at ticks, in order of key and time: the columns of their keys, start and end, values
    by name, and those that lack some, and why."""

    keys: list[pa.Array]
    starts: Array
    ends: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]


class TickState(Kept):
    """What windows keep that fire at ticks of the clock."""

    def __init__(self, plan: Plan, *, stored: bool = False) -> None:
        super().__init__(plan, stored=stored)
        assert isinstance(plan.query.window, Ticked)
        self._tick = plan.query.window.tick
        self._by_marks = isinstance(plan.query.window.keeps, Mark)
        # how many events; the number of the next tick, and of the first one behind its last event
        self._fresh = [np.zeros(1, np.int64), np.full(1, NEVER), np.full(1, -NEVER)]
        self._known = [column[:0] for column in self._fresh]

    def step(self, table: pa.Table, watermark: int) -> Ticks:
        """Take in the events of a table, all that are before the watermark and were not before an
        earlier one, and answer the ticks that the watermark has passed."""
        step = self._settle(table.select([f.name for f in self._plan.schema]), watermark)
        visits, given, rows = step.visits, step.ordered, step.rows
        many = len(given.bounds) - 1 if len(given) else 0
        _, following, behind = self._known
        if many:
            touched, bounds = visits[:many], given.bounds
            begin = given.times[bounds[:-1]] // self._tick + 1
            following[touched] = np.minimum(following[touched], begin)
            behind[touched] = given.times[bounds[1:] - 1] // self._tick + 1
        ends = np.minimum(behind[visits], watermark // self._tick)
        counts = np.maximum(ends + 1 - following[visits], 0)
        owner = np.repeat(np.arange(len(visits)), counts)
        at_ticks = ragged(following[visits], counts) * self._tick
        following[visits] += counts
        # the last event before each tick, if the key keeps any
        codes = np.repeat(np.arange(len(visits)), np.diff(rows.bounds))
        at = Places(codes, rows.times).find(owner, at_ticks) - 1
        held = at >= rows.bounds[owner]
        owner, at, at_ticks = owner[held], at[held], at_ticks[held]
        if self._by_marks:  # a mark is the last of its window
            held = ~step.columns[0][at]
            owner, at, at_ticks = owner[held], at[held], at_ticks[held]
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
        """A tick behind a key's last event is due when the watermark is there."""
        _, following, behind = (column[numbers] for column in self._known)
        return np.where(following <= behind, following * self._tick - 1, NEVER)
