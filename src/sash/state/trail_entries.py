"""The state of a stream with a window for each event, as rows for a store.

An entry is a partial of a key at a time, as in `state.trailing`.  With a lifetime, all events
before all other windows are one entry, at the key's oldest time.  Between batches, entries lie in
arrays; a forest that lasts for one batch answers windows over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.types import value_type
from ..tables.arrow import one_array
from ..tables.keys import key_codes
from .folds import KeyRuns
from .keyed import Keyed
from .numbered import folds_of
from .part_index import NEVER
from .ragged import ragged, run_starts
from .reach import Reach
from .trailing import Answers, Batch, TrailState

__all__ = ["TrailEntries"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class _Entries:
    """Entries: the columns of their keys, their times, and the partials of each group of
    aggregates.
    """

    keys: list[pa.Array]
    times: Array
    partials: list[Any]


class TrailEntries:
    """The entries of some keys, with the methods of a `TrailState`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cutter = TrailState(plan)
        self._reach = Reach.of(plan)
        self._folds = folds_of(plan)
        none = [pa.array([], value_type(field.type)) for field in plan.keys]
        self._held = _Entries(none, _NONE, [folds.join([]) for folds in self._folds])

    @property
    def shapes(self) -> list[str]:
        """The types of a partial's words, for each group of aggregates."""
        return [folds.kinds or "objects" for folds in self._folds]

    def cut(self, table: pa.Table) -> Batch:
        """Cut rows into distinct times.  The state stays as it is."""
        return self._cutter.cut(table)

    def step(self, batch: Batch | None, asked: Batch | None, watermark: int | None) -> Answers:
        """Insert the times of `batch`, answer the windows at the times of `asked`, and forget the
        entries that no window of an event from the watermark on holds."""
        held = self._merged(batch)
        answers = Answers(self._cutter.no_values, {}, _NONE)
        if asked is not None:
            answers = TrailState(self._plan, lasting=False).step(self._of(held, asked), asked, None)
        self._keep(held, watermark)
        return answers

    def as_of(self, key: list[pa.Array], at: int, rows: pa.Table) -> Answers:
        """The answers of a key at a time, with further rows of the key.  The state stays as it
        is."""
        held = self._merged(self.cut(rows) if rows.num_rows else None)
        asked = Batch(key, np.array([0, 1]), np.array([at]), [], _NONE)
        return TrailState(self._plan, lasting=False).step(self._of(held, asked), asked, None)

    def _of(self, held: Batch, asked: Batch) -> Batch | None:
        """The entries of the keys in `asked`, None if there are none."""
        some = len(held.bounds) - 1
        keys = [pa.concat_arrays(pair) for pair in zip(held.keys, asked.keys, strict=True)]
        codes, _ = key_codes(keys, some + len(asked.bounds) - 1)
        counts = np.diff(held.bounds)
        at = np.flatnonzero(np.isin(codes[:some], codes[some:]) & (counts > 0))
        rows = ragged(held.bounds[:-1][at], counts[at])
        if not len(rows):
            return None
        return Batch(
            [k.take(pa.array(at)) for k in held.keys],
            np.append(0, np.cumsum(counts[at])),
            held.times[rows],
            [folds.take(p, rows) for folds, p in zip(self._folds, held.partials, strict=True)],
            _NONE,
        )

    def _merged(self, batch: Batch | None) -> Batch:
        """The old entries and those of a batch, in order of key and time.  An old entry and a new
        one at the same time are combined."""
        old = self._held
        keys, times, partials = old.keys, old.times, old.partials
        if batch is not None:
            at = pa.array(np.repeat(np.arange(len(batch.bounds) - 1), np.diff(batch.bounds)))
            new = [k.take(at) for k in batch.keys]
            keys = [pa.concat_arrays(pair) for pair in zip(keys, new, strict=True)]
            times = np.concatenate([times, batch.times])
            three = zip(self._folds, partials, batch.partials, strict=True)
            partials = [folds.join([a, b]) for folds, a, b in three]
        codes, found = key_codes(keys, len(times))
        order = np.lexsort((times, codes))
        codes, times = codes[order], times[order]
        heads = run_starts(codes, times)
        if len(heads) == len(order):
            both = zip(self._folds, partials, strict=True)
            partials = [folds.take(some, order) for folds, some in both]
        else:
            ends = np.append(heads, len(order))
            runs = KeyRuns(order, ends, found, codes[heads], times[heads])
            partials = runs.fold(self._plan.groups, self._folds, partials)
        codes, times = codes[heads], times[heads]
        bounds = np.searchsorted(codes, np.arange((len(found[0]) if found else 1) + 1))
        return Batch(found, bounds, times, partials, _NONE)

    def _keep(self, held: Batch, watermark: int | None) -> None:
        """Keep the entries that later windows hold."""
        times, partials = held.times, held.partials
        codes = np.repeat(np.arange(len(held.bounds) - 1), np.diff(held.bounds))
        if watermark is None:
            pass
        elif self._reach.merges:  # all entries before all other windows become one
            apart = times >= self._reach.edge(watermark)
            apart[run_starts(codes)] = True
            heads = np.flatnonzero(apart)
            ends, order = np.append(heads, len(codes)), np.arange(len(codes))
            codes, times = codes[heads], times[heads]
            if len(codes) < len(order):
                runs = KeyRuns(order, ends, held.keys, codes, times)
                partials = runs.fold(self._plan.groups, self._folds, partials)
        else:
            at = np.flatnonzero(times >= self._reach.edge(watermark))
            codes, times = codes[at], times[at]
            both = zip(self._folds, partials, strict=True)
            partials = [folds.take(some, at) for folds, some in both]
        whose = pa.array(codes)
        self._held = _Entries([k.take(whose) for k in held.keys], times, partials)

    def held(self) -> Keyed:
        """All entries as rows of keys, for a store."""
        held = self._held
        made = {f"key {i}": key for i, key in enumerate(held.keys)}
        made["time"] = pa.array(held.times)
        for i, (folds, partials) in enumerate(zip(self._folds, held.partials, strict=True)):
            made[f"partial {i}"] = folds.as_column(partials)
        never, none = np.full(len(held.times), NEVER), np.zeros(len(held.times), np.int64)
        until = never if self._reach.merges else held.times + self._reach.longest + 1
        return Keyed(pa.table(made), held.keys, never, until, none)

    def hold(self, table: pa.Table) -> None:
        """Replace the entries with these rows, which `held` returned."""
        columns = [one_array(column) for column in table.columns]
        keys = columns[: len(self._plan.keys)]
        times, *partials = columns[len(keys) :]
        both = zip(self._folds, partials, strict=True)
        self._held = _Entries(
            keys, times.to_numpy(), [folds.from_column(column) for folds, column in both]
        )
