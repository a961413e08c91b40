"""A stream with a window for each event: `Query.stream` of `sash.trailing` and `sash.lifetime`.

    batch ─→ judge ─→ rows that wait for the watermark ─→ answers at their times ─→ rows out

In final mode an event's row is emitted when the watermark has passed its time, so that no more
events of its window can come.  In live mode it is emitted at once, and again, with a higher
revision, when a late event changes it.  Rows come out in the order in which their events arrived.
Events wait with all their columns; what their windows hold is kept as partials by time
(`state.trailing`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.contract import StepFailed
from ..state.keyed import Keyed
from ..state.ragged import Places
from ..state.trail_entries import TrailEntries
from ..state.trailing import Answers, Batch, TrailState
from ..tables.arrow import as_given, as_time, from_ipc, one_array, times_of, to_ipc
from ..tables.keys import key_codes
from ..windows import Driven
from ..windows.contract import Span
from .driven import with_nulls
from .event_stream import Reached
from .waiting_stream import KeepingStream

__all__ = ["TrailingStream"]


class TrailingStream(KeepingStream):
    """A stream whose events each have a window; see `sash.Stream`.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.trailing(5), select={"sum": sash.sum("x")})
    >>> s = q.stream(lateness=2)
    >>> s.push([{"t": 3, "x": 1}, {"t": 6, "x": 2}]).to_pylist()
    [{'t': 3, 'x': 1, 'window_start': -2, 'window_end': 3, 'sum': 1}]
    >>> s.close()["sum"].to_pylist()
    [3]
    """

    _trails: TrailState | TrailEntries

    def _make_states(self, plan: Plan) -> None:
        assert isinstance(self._query.window, Driven)
        assert isinstance(self._query.window.keeps, Span)
        self._span = self._query.window.keeps
        self._trails = TrailState(plan) if self._store is None else TrailEntries(plan)
        # in live mode the rows that may be emitted again, in order of arrival, how many came before
        # each, and their revisions
        self._opened = self._schema.empty_table()
        self._numbers = self._revisions = np.zeros(0, dtype=np.int64)
        self._arrived = 0

    def _cut(self, table: pa.Table) -> Any:
        return self._trails.cut(table)

    def _step(self, new: pa.Table, times: Array, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert rows, and emit those that are due."""
        if self._mode == "live":
            made, failed = self._revised(new, reached[1])
        else:
            rows, numbers = self._waiting.pass_by(new, times, reached[1])
            made, failed = self._answer(rows, numbers, None, reached[1])
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), failed

    def _revised(self, new: pa.Table, watermark: int | None) -> tuple[pa.Table, dict[int, str]]:
        """New rows, and those that they change, with their answers and revisions."""
        opened = pa.concat_tables([self._opened, new]).combine_chunks()
        when = times_of(one_array(opened.column(self._query.time)))[0]
        over = np.zeros(len(when), bool) if watermark is None else when < watermark
        numbers = np.append(self._numbers, self._arrived + np.arange(new.num_rows))
        self._arrived += new.num_rows
        revisions = np.append(self._revisions, np.full(new.num_rows, -1))
        due = self._changed(opened, when, new.num_rows) if new.num_rows else over & False
        revisions[due] += 1
        rows = opened.filter(pa.array(due))
        made, failed = self._answer(rows, numbers[due], new, watermark)
        made = made.append_column("revision", pa.array(revisions[due]))
        self._opened = opened.filter(pa.array(~over))
        self._numbers, self._revisions = numbers[~over], revisions[~over]
        return made, failed

    def _changed(self, waiting: pa.Table, when: Array, new: int) -> Array:
        """The rows that wait whose windows hold one of the last `new`, and these themselves."""
        columns = [one_array(waiting.column(name)) for name in self._query.by]
        codes, _ = key_codes(columns, len(when))
        fresh = np.arange(len(when)) >= len(when) - new
        order = np.lexsort((when[fresh], codes[fresh]))
        places = Places(codes[fresh][order], when[fresh][order])
        assert self._span.older is not None
        low = places.find(codes, when - self._span.older)
        high = places.find(codes, when - self._span.younger)
        return fresh | (high > low)

    def _answer(
        self, rows: pa.Table, numbers: Array, new: pa.Table | None, watermark: int | None
    ) -> tuple[pa.Table, dict[int, str]]:
        """Rows, each of which has a number in order of arrival, with their answers.  `new` are the
        rows to insert, None for these; what is behind the watermark is then forgotten."""
        assert self._plan is not None
        asked = self._trails.cut(rows) if rows.num_rows else None
        batch = asked
        if new is not None:
            batch = self._trails.cut(new) if new.num_rows else None
        try:
            found = self._trails.step(batch, asked, watermark)
        except StepFailed as error:
            raise self._failure(error) from error
        return self._rows(rows, asked, found)

    def _where(self, number: int) -> str:
        return f"at the time {number}"

    def _rows(
        self, rows: pa.Table, asked: Batch | None, found: Answers
    ) -> tuple[pa.Table, dict[int, str]]:
        """Rows with what they add to their events, and those that lack answers."""
        assert self._plan is not None
        assert isinstance(self._query.window, Driven)
        slices = np.zeros(0, np.int64) if asked is None else asked.slices
        own = times_of(one_array(rows.column(self._query.time)))[0]
        start, end = self._query.window.spans(own)
        kind = self._plan.time_type
        if start is None:
            assert found.oldest is not None
            oldest = found.oldest[slices]
            held = oldest < own - self._span.younger
            starts = with_nulls(as_time(oldest, kind), held)
        else:
            starts = as_time(start, kind)
        added = {"window_start": starts, "window_end": as_time(end, kind)}
        at = pa.array(slices)
        added |= {name: found.values[name].take(at) for name in self._query.select}
        made = rows.replace_schema_metadata(None)
        for name, column in added.items():
            made = made.append_column(name, column)
        lacking = np.flatnonzero(np.isin(slices, list(found.failed)))
        return made, {i: found.failed[int(slices[i])] for i in lacking.tolist()}

    def _held(self) -> list[Keyed]:
        assert isinstance(self._trails, TrailEntries)
        if self._mode == "live":
            revisions = {"revision": pa.array(self._revisions)}
            events = self._keyed_events(self._opened, revisions, due=False)
        else:
            events = self._keyed_events(self._waiting.rows(), {}, due=True)
        return [events, self._trails.held()]

    def _hold(self, tables: list[pa.Table]) -> None:
        assert isinstance(self._trails, TrailEntries)
        events, entries = tables
        if self._mode == "live":
            self._opened = self._events_of(events)
            self._revisions = events.column("revision").to_numpy()
            self._arrived = events.num_rows
            self._numbers = np.arange(self._arrived)
        else:
            self._waiting.restore(self._events_of(events))
        self._trails.hold(entries)

    def _shapes(self) -> list[str]:
        assert isinstance(self._trails, TrailEntries)
        return self._trails.shapes

    def _size(self) -> dict[str, int]:
        assert isinstance(self._trails, TrailState)
        size = self._trails.size()
        return size | {"bytes": size["bytes"] + self._waiting.nbytes + self._opened.nbytes}

    def _dump(self) -> list[bytes]:
        assert isinstance(self._trails, TrailState)
        opened = np.concatenate([[self._arrived], self._numbers, self._revisions])
        live = [to_ipc(self._opened), opened.astype("<i8").tobytes()]
        return [*self._waiting.dump(), *live, *self._trails.dump()]

    def _load(self, blobs: list[bytes]) -> None:
        assert isinstance(self._trails, TrailState)
        rows, places, opened, known, *trails = blobs
        self._waiting.load([rows, places])
        self._opened = from_ipc(opened).cast(self._schema)
        arrived, *_ = given = np.frombuffer(known, "<i8").astype(np.int64)
        self._arrived = int(arrived)
        self._numbers, self._revisions = given[1:].reshape(2, -1)
        self._trails.load(trails)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        if self._plan is not None and isinstance(self._trails, TrailState):
            self._trails._check()
