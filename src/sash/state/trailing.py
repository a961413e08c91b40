"""The state of a stream with a window for each event: partials by key and time.

There is a forest for each group of aggregates, over the same numbered keys, as for aligned windows
(`state.memory`).  A window is `[t - older, t - younger)`: one of the windows that start at every
microsecond, answered only where there is an event.  Windows of several sizes that end together are
ranges of the same partials, which the state keeps for the longest one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..tables.arrow import one_array, times_of
from ..tables.keys import key_codes
from ..tables.rows import Ordered
from ..windows import tumbling
from .apart import lowered, with_rows
from .due import Due
from .grove import Grove
from .parted_forest import PartedForest, batch_in_order, threads_for
from .ragged import places_among, run_starts
from .range_answers import Ranges
from .reach import Reach

__all__ = ["Answers", "Batch", "TrailState"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class Batch:
    """Rows in order of key and time; each distinct time of a key is a slice.  The keys, the bounds
    of each key's times, the times, the partials of each group of aggregates, and for each row of
    the table its slice."""

    keys: list[pa.Array]
    bounds: Array
    times: Array
    partials: list[Any]
    slices: Array


@dataclass
class Answers:
    """Answers at the times of a batch, by name, and why answers are missing; with a lifetime, also
    the oldest time of each answer's key."""

    values: dict[str, pa.Array]
    failed: dict[int, str]
    oldest: Array | None = None


class TrailState:
    """The entries of all keys, in memory."""

    def __init__(self, plan: Plan, *, lasting: bool = True) -> None:
        """A state that is not lasting takes entries once."""
        self._plan = plan
        self._reach = Reach.of(plan)
        # a forest is made for some window; trailing ones are told to it when they are asked for
        self._grove = Grove(plan, tumbling(1), PartedForest)
        if not lasting:
            self._grove.borrow()
        self.no_values = self._grove.no_values
        self._due = Due()
        self.visited = 0  # the number of keys that steps have visited

    def cut(self, table: pa.Table) -> Batch:
        """Cut rows into distinct times.  The state stays as it is."""
        read, threads = table.select([f.name for f in self._plan.schema]), threads_for(table)
        if len(read) == 1:
            return self._cut_row(read)
        given = batch_in_order(self._plan, read, threads)
        rows, times = given.rows, given.times
        cut, partials, bounds = self._grove.cut(read, given, times, threads)
        starts = np.zeros(len(times), dtype=np.int64)
        starts[run_starts(given.codes, times)] = 1
        slices = np.cumsum(starts) - 1
        if rows is not None:
            slices, ordered = np.empty_like(slices), slices
            slices[rows] = ordered
        return Batch(given.keys, bounds, cut, partials, slices)

    def _cut_row(self, table: pa.Table) -> Batch:
        """The same for one row, which is in order."""
        times, _ = times_of(one_array(table.column(self._plan.query.time)))
        columns = [one_array(table.column(field.name)) for field in self._plan.keys]
        _, keys = key_codes(columns, 1)
        bounds = np.array([0, 1])
        given = Ordered(table, keys, None, times, bounds)
        return Batch(keys, bounds, times, self._grove.cut(table, given, times)[1], np.zeros(1, int))

    def step(self, batch: Batch | None, asked: Batch | None, watermark: int | None) -> Answers:
        """Insert the times of `batch`, answer the windows at the times of `asked`, and forget the
        entries that no window of an event from the watermark on holds."""
        grove, reach = self._grove, self._reach
        edge = reach.edge(watermark)
        if asked is None and not self._due.any(edge):
            return Answers(self.no_values, {}, _NONE)
        self._compact()
        asks, asked_counts = self._numbers(asked)
        inserts, counts = (asks, asked_counts) if batch is asked else self._numbers(batch)
        assert batch is None or asked is not None, "what is inserted is asked for"
        grove.make_room()
        due = self._due.take(edge)
        visits = asks
        if len(due):
            due = due[grove.keys.there(due) & ~np.isin(due, asks)]
            visits = np.concatenate([asks, due])
        self.visited += len(visits)
        # both batches have their keys in order
        bounds = _bounds(len(visits), places_among(asks, inserts), counts)
        partials = batch.partials if batch else grove.no_partials()
        inserted = bounds, batch.times if batch else _NONE, partials
        at = asked.times if asked else _NONE
        ask_bounds = _bounds(len(visits), np.arange(len(asks)), asked_counts)
        ranges = Ranges(ask_bounds, at, at - reach.younger - 1, merges=reach.merges)
        ranges = ranges.over(reach.lows(at))
        threads = threads_for(at)
        found = grove.ranges(visits, inserted, ranges, np.full(len(visits), edge), threads)
        self._due.note(visits, grove.forests[0].expires(visits))
        grove.keys.remove(found.gone)
        oldest = None
        if reach.merges:
            oldest = np.repeat(grove.forests[0].oldest_of(asks), asked_counts)
        return Answers(found.values, found.failed, oldest)

    def partials(self, key: tuple[Any, ...], low: int, high: int) -> list[Any]:
        """The partial of a key from one time to another, both inclusive, for each group of
        aggregates.
        """
        number = self._grove.keys.number(key)
        return [forest.partial(number, low, high) for forest in self._grove.forests]

    def with_rows(self, partials: list[Any], rows: pa.Table) -> list[Any]:
        """Combine rows of a key into its partials.  The rows come after all events of the
        partials."""
        return with_rows(self._plan, self._grove.forests, partials, rows)

    def lowered(self, partials: list[list[Any]]) -> tuple[dict[str, Any], str]:
        """The answers of a key's partials, for each size of windows; see `apart.lowered`."""
        return lowered(self._plan, partials, [forest.sources for forest in self._grove.forests])

    @property
    def swept(self) -> int:
        """How many sweeps there were; each gives values new labels."""
        return sum(forest.swept for forest in self._grove.forests)

    def let_go(self) -> None:
        """Drop the values that only questions needed, if there are many."""
        for forest in self._grove.forests:
            forest.let_go()

    def ends(self, at: int) -> tuple[list[int], int]:
        """For the windows of an event at a time, longest first: the first time that each one holds,
        and the last time that all of them hold."""
        return self._reach.lows(np.array([at]))[0].tolist(), at - self._reach.younger - 1

    def _numbers(self, batch: Batch | None) -> tuple[Array, Array]:
        """The numbers of a batch's keys, and the number of times of each key."""
        if batch is None:
            return _NONE, _NONE
        return self._grove.keys.add(batch.keys, len(batch.bounds) - 1), np.diff(batch.bounds)

    def _compact(self) -> None:
        kept = self._grove.compact()
        if kept is not None:
            self._due.renumber(kept)

    def size(self) -> dict[str, int]:
        """The number of keys and of times, and the bytes that they take."""
        return self._grove.size()

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._compact()
        return [json.dumps(self._grove.describe()).encode(), *self._grove.dump()]

    def load(self, blobs: list[bytes]) -> None:
        """Restore what `dump` returned into an empty state."""
        head, *grove = blobs
        self._grove.check_same(json.loads(head))
        self._grove.load(grove)
        visits = self._grove.keys.numbers()
        self._due.note(visits, self._grove.forests[0].expires(visits))

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        self._grove._check(all_hold=True)
        numbers = self._grove.keys.numbers()
        expires = self._grove.forests[0].expires(numbers)
        assert (self._due.noted(numbers) <= expires).all(), "a key has no note in time"


def _bounds(visits: int, places: Array, counts: Array) -> Array:
    """The bounds of the items of all visits: `counts` items for the visits at `places`, none for
    the others."""
    bounds = np.zeros(visits + 1, dtype=np.int64)
    bounds[places + 1] = counts
    return np.cumsum(bounds)
