"""`SASH_ORACLE=1` for streams whose windows events make: they keep all events, and fold each window
from them; see `engine.oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..query.query import Query
from ..state.driven import Fired
from ..tables.arrow import as_given, one_array, times_of
from ..windows import Trailing
from .driven_stream import DrivenStream, TickStream
from .event_stream import EventStream, Judged
from .oracle import ByBruteForce, Row, columns_of_rows, table_of_rows
from .session_stream import SessionStream
from .stream import Stream
from .trailing_stream import TrailingStream

__all__ = ["stream_of"]


def stream_of(query: Query) -> type[Stream] | None:
    """The class of streams that answers a query by brute force, if events make its windows."""
    by_brute_force: dict[type[Stream], type[Stream]] = {
        TrailingStream: OracleTrailing,
        DrivenStream: OracleDriven,
        TickStream: OracleTicks,
        SessionStream: OracleSessions,
    }
    return by_brute_force.get(Stream._for(query))


class _Lacking:
    """Computes values over events, None for values that do not exist; `reasons` has the reasons of
    each call."""

    def __init__(self, stream: ByBruteForce) -> None:
        self._stream = stream
        self.reasons: list[str] = []

    def __call__(self, events: dict[str, Sequence[Row]]) -> Row:
        values, why = self._stream._answers(events)
        self.reasons.append(why)
        return values


class _AllKept(ByBruteForce, EventStream):
    """A stream that keeps all accepted events."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)  # type: ignore[safe-super]
        self._accepted = self._schema.empty_table()

    def _step(self, judged: Judged, reached: Any) -> tuple[Any, dict[int, str]]:
        self._accepted = pa.concat_tables([self._accepted, judged.new])
        return super()._step(judged, reached)  # type: ignore[safe-super]


class OracleTrailing(_AllKept, TrailingStream):
    """A stream with a window for each event; it keeps all events, and folds each window from
    them."""

    def _as_of(self, key: tuple[Any, ...], at: int) -> dict[str, Any]:
        from ..testing.queries import events_of, key_of

        query, window = self._query, self._query.window
        assert isinstance(window, Trailing)
        whose = key_of(query, dict(zip(query.by, key, strict=True)))[0]
        everything = [
            (event[query.time], n, event)
            for n, event in enumerate(events_of(query, self._accepted))
            if key_of(query, event)[0] == whose
        ]
        everything.sort(key=lambda e: e[:2])
        held: dict[str, Sequence[Row]] = {}
        for name, size in query.sizes.items():
            span = window.of_length(size).keeps
            low = float("-inf") if span.older is None else at - span.older
            held[name] = [e for t, _, e in everything if low <= t < at - span.younger]
        return self._answers(held)[0]

    def _answer(
        self,
        rows: pa.Table,
        numbers: Any,
        new: Judged | None,
        watermark: int | None,
        asked: Any = None,
    ) -> tuple[pa.Table, dict[int, str]]:
        from ..testing.queries import answers_by_event, events_of

        assert self._plan is not None
        lacking = _Lacking(self)
        made_by = answers_by_event(self._query, events_of(self._query, self._accepted), lacking)
        found = {n: (row, why) for (n, row), why in zip(made_by, lacking.reasons, strict=True)}
        due = [found[n] for n in numbers.tolist()]
        made = rows.replace_schema_metadata(None)
        failed = {i: why for i, (_, why) in enumerate(due) if why}
        for name, values in columns_of_rows(self._plan, [row for row, _ in due], failed).items():
            made = made.append_column(name, values)
        return made, failed


class OracleDriven(_AllKept, DrivenStream):
    """A stream whose events drive the windows; it keeps all events, and folds each window from
    them."""

    def _settled(self, rows: pa.Table, numbers: Any, watermark: int) -> Fired:
        from ..testing.queries import answers_by_event, events_of

        assert self._plan is not None
        due = {n: place for place, n in enumerate(numbers.tolist())}
        when = times_of(one_array(self._accepted.column(self._query.time)))[0]
        # waiting events come after all settled events, so they change no window of these
        settled = np.flatnonzero(when < watermark)
        events = self._accepted.take(pa.array(settled))
        lacking = _Lacking(self)
        found = answers_by_event(self._query, events_of(self._query, events), lacking)
        fired = [
            (due[settled[n]], row, why)
            for (n, row), why in zip(found, lacking.reasons, strict=True)
            if settled[n] in due
        ]
        failed = {i: why for i, (_, _, why) in enumerate(fired) if why}
        columns = columns_of_rows(self._plan, [row for _, row, _ in fired], failed)
        starts = [row["window_start"] for _, row, _ in fired]
        return Fired(
            np.array([place for place, _, _ in fired], dtype=np.int64),
            np.array([0 if start is None else start for start in starts], dtype=np.int64),
            np.array([start is not None for start in starts], dtype=bool),
            {name: columns[name] for name in self._query.select},
            failed,
        )


class OracleTicks(ByBruteForce, TickStream):
    """A stream that emits at ticks; it keeps all events, and folds each window from them."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._accepted = self._schema.empty_table()
        self._done: set[Any] = set()  # the keys and ends of emitted windows

    def _settled(self, rows: pa.Table, watermark: int) -> tuple[pa.Table, dict[int, str]]:
        from ..testing.queries import events_of, key_of, rows_made_by_events

        assert self._plan is not None
        self._accepted = pa.concat_tables([self._accepted, rows])
        lacking = _Lacking(self)
        made = rows_made_by_events(self._query, events_of(self._query, self._accepted), lacking)
        names = [(key_of(self._query, row)[0], row["window_end"]) for row in made]
        due = [
            (row, why)
            for row, why, name in zip(made, lacking.reasons, names, strict=True)
            if row["window_end"] <= watermark and name not in self._done
        ]
        self._done |= {name for name in names if name[1] <= watermark}
        failed = {i: why for i, (_, why) in enumerate(due) if why}
        return table_of_rows(self._plan, [row for row, _ in due], failed), failed


class OracleSessions(ByBruteForce, SessionStream):
    """A stream of sessions; it keeps all events, and folds each session from them."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._accepted = self._schema.empty_table()
        self._last: dict[Any, int] = {}  # the end of each key's last closed session
        self._emitted: dict[Any, _Session] = {}  # in live mode, by key and start

    def _in_closed(self, given: pa.Table, times: Any) -> Any:
        from ..testing.queries import events_of, key_of

        keys = [key_of(self._query, row)[0] for row in events_of(self._query, given)]
        ends = [self._last.get(key) for key in keys]
        pairs = zip(times.tolist(), ends, strict=True)
        return np.array([end is not None and time <= end for time, end in pairs], dtype=bool)

    def _step(self, judged: Judged, reached: Any) -> tuple[Any, dict[int, str]]:
        from ..testing.queries import events_of, key_of, rows_made_by_events

        assert self._plan is not None
        before, mark = self._progress.watermark, reached[1]
        self._accepted = pa.concat_tables([self._accepted, judged.new])
        events, lacking = events_of(self._query, self._accepted), _Lacking(self)
        made = rows_made_by_events(self._query, events, lacking)
        found = [
            _Session(key_of(self._query, row)[0], row, why, None)
            for row, why in zip(made, lacking.reasons, strict=True)
        ]
        closed = [s for s in found if mark is not None and s.row["window_end"] < mark]
        if self._mode == "live":
            due = self._revised(found, events)
        else:
            due = [s for s in closed if before is None or s.row["window_end"] >= before]
        for one in closed:
            self._last[one.key] = max(one.row["window_end"], self._last.get(one.key, -(2**62)))
        self._progress.stream_time, self._progress.watermark = reached
        self._progress.emitted += len(due)
        failed = {i: s.why for i, s in enumerate(due) if s.why}
        table = table_of_rows(self._plan, [s.row for s in due], failed)
        if self._mode == "live":
            revisions = pa.array([s.row["revision"] for s in due], pa.int64())
            if "revision" not in table.column_names:
                table = table.append_column("revision", revisions)
            deleted = pa.array([s.events is None for s in due], pa.bool_())
            table = table.append_column("deleted", deleted)
        return as_given(table, self._kind), failed

    def _revised(self, found: list[_Session], events: list[Row]) -> list[_Session]:
        """The sessions that are new, have other events than before, or are withdrawn, in order of
        key and time."""
        from ..testing.driven import sessions
        from ..testing.queries import key_of

        held = sessions(self._query, events, lambda row: key_of(self._query, row)[0], lambda t: t)
        due, there = [], set()
        for one, (_, start, _, numbers) in zip(found, held, strict=True):
            name = (one.key, start)
            there.add(name)
            was = self._emitted.get(name)
            if was is not None and was.events == numbers:
                continue
            revision = was.row["revision"] + 1 if was else 0
            row = {**one.row, "revision": revision}
            self._emitted[name] = _Session(one.key, row, one.why, numbers)
            due.append((name, self._emitted[name]))
        for name, was in self._emitted.items():
            if name not in there and was.events is not None:
                row = was.row | dict.fromkeys(self._query.select)
                row["revision"] += 1
                self._emitted[name] = _Session(was.key, row, "", None)
                due.append((name, self._emitted[name]))
        return [one for _, one in sorted(due, key=lambda pair: pair[0])]


@dataclass
class _Session:
    """A session: its key, its row, why it lacks answers, and in live mode its events (None if it is
    withdrawn)."""

    key: Any
    row: Row
    why: str
    events: list[int] | None
