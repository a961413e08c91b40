"""The state of a stream with a window for each event: what its windows hold, as partials by time.

A forest for each group of aggregates, over the same numbered keys, as for aligned windows
(`state.memory`).  A window is `[t - older, t - younger)`: one of those that start at every
microsecond, asked for where there is an event.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..tables.rows import rows_in_order
from ..windows import Driven, tumbling
from ..windows.contract import Span
from .answers import joined_reasons
from .grove import Grove
from .ragged import run_starts

__all__ = ["Answers", "Batch", "TrailState"]

_NONE = np.zeros(0, dtype=np.int64)
_FAR = 2**61  # before and after all times


@dataclass
class Batch:
    """Rows in order of key and time, each distinct time of a key a slice: the keys, the bounds of
    each key's times, the times, the partials of each group of aggregates, and of each row of the
    table the slice that it is in."""

    keys: list[pa.Array]
    bounds: Array
    times: Array
    partials: list[Any]
    slices: Array


@dataclass
class Answers:
    """Answers at the times of a batch, by name; those that lack, and why; and of a lifetime the
    oldest time of the key."""

    values: dict[str, pa.Array]
    failed: dict[int, str]
    oldest: Array | None = None


class TrailState:
    """What the windows of all keys hold, in memory."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        window = plan.query.window
        assert isinstance(window, Driven)
        assert isinstance(window.keeps, Span)
        self._span = window.keeps
        # a forest is made for some window; trailing ones are told to it when they are asked for
        self._grove = Grove(plan, tumbling(1))
        self.no_values = self._grove.no_values

    def cut(self, table: pa.Table) -> Batch:
        """Cut rows into distinct times; changes nothing."""
        read = table.select([f.name for f in self._plan.schema])
        given = rows_in_order(self._plan, read)
        keys, rows, times, bounds = given.keys, given.rows, given.times, given.bounds
        there = np.diff(bounds) > 0
        if keys and not there.all():  # values of a dictionary that no row has
            at = pa.array(np.flatnonzero(there))
            keys = [k.take(at) for k in keys]
            bounds = np.append(bounds[:-1][there], bounds[-1])
        cuts = [f.cut(read, rows, times, bounds, whole=False) for f in self._grove.forests]
        codes = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        starts = np.zeros(len(times), dtype=np.int64)
        starts[run_starts(codes, times)] = 1
        slices = np.cumsum(starts) - 1
        if rows is not None:
            slices, ordered = np.empty_like(slices), slices
            slices[rows] = ordered
        return Batch(keys, cuts[0][2], cuts[0][0], [p for _, p, _ in cuts], slices)

    def step(self, batch: Batch | None, asked: Batch | None, watermark: int | None) -> Answers:
        """Insert the times of a batch, answer at those of another, or of the same, and forget what
        no window of an event from the watermark on holds."""
        grove = self._grove
        grove.compact()
        older = -1 if self._span.older is None else self._span.older
        edge = -_FAR if watermark is None else max(watermark - max(older, 0), -_FAR)
        inserts, asks = self._numbers(batch), self._numbers(asked)
        grove.make_room()
        visits = grove.keys.in_order()
        bounds, ask_bounds = grove.spread(*inserts), grove.spread(*asks)
        made: dict[str, pa.Array] = {}
        failed: list[dict[int, str]] = []
        gone = _NONE
        for i, forest in enumerate(grove.forests):
            with grove.naming(forest):
                values, wrong, gone = forest.trail(
                    visits,
                    (bounds, batch.times, batch.partials[i]) if batch else (bounds, _NONE, _NONE),
                    (ask_bounds, asked.times if asked else _NONE),
                    (older, self._span.younger),
                    edge,
                )
            made |= values
            failed.append(wrong)
        oldest = None
        if self._span.older is None:
            oldest = np.repeat(self._grove.forests[0].oldest_of(asks[0]), asks[1])
        self._grove.keys.remove(gone)
        return Answers(made, joined_reasons(*failed), oldest)

    def _numbers(self, batch: Batch | None) -> tuple[Array, Array]:
        """The numbers of a batch's keys, and how many times each has."""
        if batch is None:
            return _NONE, _NONE
        return self._grove.keys.add(batch.keys, len(batch.bounds) - 1), np.diff(batch.bounds)

    def size(self) -> dict[str, int]:
        """How many keys and times there are, and how many bytes they take."""
        return self._grove.size()

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._grove.compact()
        return [json.dumps(self._grove.describe()).encode(), *self._grove.dump()]

    def load(self, blobs: list[bytes]) -> None:
        """Take back what `dump` gave, into a state that is empty."""
        head, *grove = blobs
        self._grove.check_same(json.loads(head))
        self._grove.load(grove)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        self._grove._check(all_hold=True)
