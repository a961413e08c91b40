"""The state of a stream of sessions: what open sessions hold, as few partials as can be.

No event comes more than a gap before the watermark, so what an open session holds from before that
is one partial, and what lies behind it is a partial for each time:

    a key's events      x x  x   x    |  x    x
    kept                [one partial] |  [x]  [x]
                              watermark less gap

Where all operators commute, that is one partial up to the watermark itself.  An event that comes
before the watermark touches the open session, if there is one.  It may touch the emitted session
before it as well, so the end of each key's last one is kept for a gap.  Where gaps are in a column,
or sessions have a greatest size, no event comes before the watermark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.types import value_type
from ..tables.arrow import from_ipc, one_array, to_ipc
from ..tables.keys import key_codes
from ..tables.rows import rows_in_order
from ..windows import Merging, tumbling
from .answers import joined_reasons
from .folds import Folds
from .keyed import Keyed
from .measures import Spans, gaps_of, sessions_of
from .part_index import NEVER
from .ragged import ragged, run_starts
from .scan import Scan

__all__ = ["Closed", "Parts", "SessionState"]


@dataclass
class Parts:
    """Parts of sessions: the columns of their keys, when each begins, how far it reaches, and the
    partials of each group of aggregates."""

    keys: list[pa.Array]
    times: Array
    reaches: Array
    partials: list[Any]


@dataclass
class Closed:
    """Sessions that are closed, in order of key and time: the columns of their keys, start and end,
    values by name, and those that lack some, and why."""

    keys: list[pa.Array]
    starts: Array
    ends: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]


class SessionState:
    """What the open sessions of all keys hold, in memory."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        assert isinstance(plan.query.window, Merging)
        self._window = plan.query.window
        # a scan cuts events into distinct times, and lowers partials, each as a window of its own
        self._scans = [Scan(group, tumbling(1), plan.types) for group in plan.groups]
        self._folds = [Folds(group.operator) for group in plan.groups]
        reach = self._window.reach
        #: How long before the watermark an event may come.
        self.waits = reach if isinstance(reach, int) and self._window.longest is None else 0
        none = [pa.array([], value_type(field.type)) for field in plan.keys]
        self._emitted = none, np.zeros(0, np.int64)  # keys, and the ends of their last sessions
        self._held = Parts(
            none,
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            [folds.join([]) for folds in self._folds],
        )

    def __deepcopy__(self, memo: Any) -> SessionState:
        """The same with kernels' memories of its own; what is held never changes in place."""
        made = SessionState(self._plan)
        made._held, made._emitted = self._held, self._emitted
        return made

    @property
    def shapes(self) -> list[str]:
        """What the words of a partial are, for each group of aggregates."""
        return [folds.kinds or "objects" for folds in self._folds]

    def cut(self, table: pa.Table) -> Parts:
        """Cut rows into distinct times; changes nothing."""
        read = table.select([f.name for f in self._plan.schema])
        given = rows_in_order(self._plan, read)
        rows, times, bounds = given.rows, given.times, given.bounds
        cuts = [s.cut(read, rows, times, bounds, whole=False) for s in self._scans]
        starts, _, ends = cuts[0]
        reach = self._window.reach
        if isinstance(reach, str):
            gaps = gaps_of(read, reach)
            every = times + (gaps if rows is None else gaps[rows])
            heads = run_starts(given.codes, times)
            reaches = np.maximum.reduceat(every, heads) if len(heads) else every
        else:
            reaches = starts + reach
        at = pa.array(np.repeat(np.arange(len(ends) - 1), np.diff(ends)))
        return Parts([k.take(at) for k in given.keys], starts, reaches, [p for _, p, _ in cuts])

    def step(self, new: Parts | None, watermark: int | None) -> Closed:
        """Add parts, and take out the sessions that end before the watermark."""
        held = self._held if new is None else self._joined(new)
        order, keys, found = self._found(held)
        times, reaches = held.times[order], held.reaches[order]
        mark = -(2**62) if watermark is None else watermark
        closed = found.ends < mark
        first, last = found.frames.first, found.frames.last
        out = order[ragged(first[closed], (last - first)[closed])]
        counts = (last - first)[closed]
        folded = self._fold(held.partials, out, np.append(0, np.cumsum(counts)))
        answers = self._answers(folded, len(counts))
        groups = pa.array(found.groups[closed])
        # what is left: one part for what no event can come between, the others as they are
        owner = np.repeat(np.arange(len(first)), last - first)
        left = ~closed[owner]
        apart = mark - (self.waits if self._plan.ordered else 0)
        heads = (np.arange(len(times)) == first[owner]) | (times >= apart)
        heads, kept = heads[left], np.flatnonzero(left)
        begins = np.flatnonzero(heads)
        runs = np.append(begins, len(kept))
        at = pa.array(order[kept[begins]])
        some = reaches[kept]
        self._held = Parts(
            [k.take(at) for k in held.keys],
            times[kept[begins]],
            np.maximum.reduceat(some, begins) if len(begins) else some,
            self._fold(held.partials, order[kept], runs),
        )
        whose = [k.take(groups) for k in keys]
        self._remember(whose, found.ends[closed], mark - self.waits)
        return Closed(whose, found.starts[closed], found.ends[closed], *answers)

    def _found(self, held: Parts) -> tuple[Array, list[pa.Array], Spans]:
        """The order of parts by key and time, the keys, and the sessions that they are in."""
        codes, keys = key_codes(held.keys, len(held.times))
        order = np.lexsort((held.times, codes))
        bounds = np.searchsorted(codes[order], np.arange((len(keys[0]) if keys else 1) + 1))
        times, reaches = held.times[order], held.reaches[order]
        return order, keys, sessions_of(times, reaches, bounds, self._window.longest)

    def _remember(self, keys: list[pa.Array], ends: Array, since: int) -> None:
        """Keep the end of each key's last emitted session, if an event can still touch it."""
        old, were = self._emitted
        every = [pa.concat_arrays([a, b]) for a, b in zip(old, keys, strict=True)]
        ends = np.concatenate([were, ends])
        late = np.flatnonzero(ends >= since)
        codes, found = key_codes([k.take(pa.array(late)) for k in every], len(late))
        last = np.full(int(codes.max()) + 1 if len(codes) else 0, since)
        np.maximum.at(last, codes, ends[late])
        self._emitted = found, last

    def in_emitted(self, table: pa.Table, times: Array) -> Array:
        """Which rows, of times that may come, would be in sessions that are emitted."""
        keys, ends = self._emitted
        if not len(ends):
            return np.zeros(len(times), dtype=bool)
        given = [one_array(table.column(field.name)) for field in self._plan.keys]
        both = [pa.concat_arrays([a, b]) for a, b in zip(keys, given, strict=True)]
        codes, _ = key_codes(both, len(ends) + len(times))
        last = np.full(int(codes.max()) + 1, np.iinfo(np.int64).min)
        last[codes[: len(ends)]] = ends
        found: Array = times <= last[codes[len(ends) :]]
        return found

    def _joined(self, new: Parts) -> Parts:
        """What is held, and new parts after it."""
        old = self._held
        return Parts(
            [pa.concat_arrays([a, b]) for a, b in zip(old.keys, new.keys, strict=True)],
            np.concatenate([old.times, new.times]),
            np.concatenate([old.reaches, new.reaches]),
            [
                folds.join([a, b])
                for folds, a, b in zip(self._folds, old.partials, new.partials, strict=True)
            ],
        )

    def _fold(self, partials: list[Any], order: Array, bounds: Array) -> list[Any]:
        """One partial for each run."""
        pairs = zip(self._folds, partials, strict=True)
        if len(bounds) == 1:
            return [folds.join([]) for folds in self._folds]
        return [folds.fold(held, order, bounds) for folds, held in pairs]

    def _answers(
        self, partials: list[Any], count: int
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        values: dict[str, pa.Array] = {}
        failed: list[dict[int, str]] = []
        zeros = np.zeros(count, np.int64)
        for scan, held in zip(self._scans, partials, strict=True):
            made = scan.windows_of_slices(held, zeros, np.arange(count + 1), zeros, zeros)
            values |= made.values
            failed.append(made.lacking)
        return values, joined_reasons(*failed)

    def size(self) -> dict[str, int]:
        """How many keys and parts of sessions there are, and how many bytes these take."""
        held = self._held
        keys = key_codes(held.keys, len(held.times))[1]
        words = sum(2 + folds.width for folds in self._folds)
        return {
            "keys": len(keys[0]) if keys else int(len(held.times) > 0),
            "slices": len(held.times),
            "bytes": 8 * (words * len(held.times) + len(self._emitted[1])),
        }

    def held(self) -> list[Keyed]:
        """All that is held, as rows that belong to keys: parts of open sessions, which are due when
        their session has ended, and the ends of keys' last emitted sessions."""
        held, (keys, ends) = self._held, self._emitted
        order, _, found = self._found(held)
        first, last = found.frames.first, found.frames.last
        due, opens = np.empty(len(order), np.int64), np.zeros(len(order), np.int64)
        due[order] = np.repeat(found.ends + 1, last - first)
        opens[order[first]] = 1
        parts, ended = self._tables()
        until, none = ends + self.waits + 1, np.zeros(len(ends), np.int64)
        return [
            Keyed(parts, held.keys, due, due, opens),
            Keyed(ended, keys, np.full(len(ends), NEVER), until, none),
        ]

    def _tables(self) -> list[pa.Table]:
        """All that is held as tables."""
        held, (keys, ends) = self._held, self._emitted
        parts = {f"key {i}": key for i, key in enumerate(held.keys)}
        parts |= {"time": pa.array(held.times), "reach": pa.array(held.reaches)}
        for i, (folds, partials) in enumerate(zip(self._folds, held.partials, strict=True)):
            parts[f"partial {i}"] = folds.as_column(partials)
        ended = {f"key {i}": key for i, key in enumerate(keys)} | {"end": pa.array(ends)}
        return [pa.table(parts), pa.table(ended)]

    def hold(self, tables: list[pa.Table]) -> None:
        """Have these rows instead of those that are here."""
        parts, last = ([one_array(column) for column in table.columns] for table in tables)
        many = len(self._plan.keys)
        times, reaches, *partials = parts[many:]
        both = zip(self._folds, partials, strict=True)
        self._held = Parts(
            parts[:many],
            times.to_numpy(),
            reaches.to_numpy(),
            [folds.from_column(column) for folds, column in both],
        )
        self._emitted = last[:many], last[many].to_numpy()

    def dump(self) -> list[bytes]:
        """The whole state as bytes; objects as the operator encodes them."""
        return [json.dumps(self._partials()).encode(), *map(to_ipc, self._tables())]

    def load(self, blobs: list[bytes]) -> None:
        """Take back what `dump` gave, into a state that is empty."""
        head, *tables = blobs
        said, mine = json.loads(head), self._partials()
        if said != mine:
            raise ValueError(f"these bytes hold partials of {said}; the query has {mine}")
        self.hold([from_ipc(table) for table in tables])

    def _partials(self) -> list[Any]:
        """What the partials are, as JSON has it."""
        both = zip(self._plan.groups, self._folds, strict=True)
        return [[group.operator.name, folds.kinds] for group, folds in both]
