"""`SASH_ORACLE=1`: runs and streams answered by brute force, from the definition alone.

Brute force puts every event into each of its windows, one by one, and folds every window in plain
Python (`sash.testing.queries`).  It uses no window arithmetic, slicing, kernel, aggregator, state
or lifecycle, and it is as slow as that sounds.  If an answer looks wrong, run the query once more
with `SASH_ORACLE=1` on a few rows.  If brute force gives the same answer, the query asks for it; if
it gives another answer, sash has a bug.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import to_micros
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.types import value_type
from ..tables.answers import from_objects, object_answers, warn_of
from ..tables.arrow import (
    as_arrow,
    as_given,
    as_time,
    check_times,
    filtered,
    kind_of,
    numbered,
    one_array,
    times_of,
)
from ..tables.intake import conform
from ..windows import Driven
from .aligned_stream import AlignedStream
from .asked import refuse_at
from .late import ALL_CLOSED, SOME_CLOSED
from .lifecycle import UNBOUNDED
from .stream import Stream
from .supported import Asked, check

__all__ = ["ByBruteForce", "OracleStream", "asked_for", "columns_of_rows", "run", "table_of_rows"]

Row = dict[str, Any]


def asked_for() -> bool:
    """True if the environment asks for answers by brute force."""
    return os.environ.get("SASH_ORACLE", "") not in ("", "0")


def run(query: Query, table: Any) -> Any:
    """The results of a query over a table, as the same kind of table."""
    from ..testing.queries import answers, answers_by_event, events_of

    check("Query.run", Asked(query))
    given = as_arrow(table)
    plan = make_plan(query, given.schema)
    column = one_array(given.column(query.time))
    clock = query.window.clock
    check_times(query.time, column, times_of(column, clock)[1], clock)
    if isinstance(query.window, Driven):
        given = numbered(given) if kind_of(table) == "pandas" else given
        events = given if query.where is None else filtered(given, query.where)
        found = answers_by_event(query, events_of(query, events))
        made = events.take(pa.array([n for n, _ in found], pa.int64()))
        added = columns_of_rows(plan, [row for _, row in found], None)
        for name, values in added.items():
            made = made.append_column(name, values)
        return as_given(made, kind_of(table), table)
    return as_given(table_of_rows(plan, answers(query, given), None), kind_of(table))


def table_of_rows(plan: Plan, rows: list[Row], failed: dict[int, str] | None) -> pa.Table:
    """Rows as a table; with `failed`, answers that do not fit their type become null."""
    query = plan.query
    columns: dict[str, pa.Array] = {}
    for name in query.by:
        kind = value_type(plan.schema.field(name).type)
        columns[name] = from_objects([row[name] for row in rows], kind, ())
    columns |= columns_of_rows(plan, rows, failed)
    if rows and "revision" in rows[0]:
        columns["revision"] = pa.array([row["revision"] for row in rows], pa.int64())
    return pa.table(columns)


def columns_of_rows(
    plan: Plan, rows: list[Row], failed: dict[int, str] | None
) -> dict[str, pa.Array]:
    """The columns of rows: their windows' starts and ends, and their values."""
    query = plan.query
    columns: dict[str, pa.Array] = {}
    for name in ("window_start", "window_end"):
        kind = as_time(np.zeros(0, np.int64), plan.time_type).type
        columns[name] = from_objects([row[name] for row in rows], kind, ())
    for name, aggregate in query.select.items():
        items, wanted = [row[name] for row in rows], plan.types[name]
        fields = aggregate.operator.fields if wanted is None else ()
        if failed is None:
            columns[name] = from_objects(items, wanted, fields)
        else:
            columns[name] = object_answers(items, wanted, fields, failed)
    return columns


class ByBruteForce(Stream):
    """A stream that answers by brute force from the events that it keeps."""

    def _answers(self, events: dict[str, Sequence[Row]]) -> tuple[Row, str]:
        """The answers over each aggregate's events, and a text with the reasons for answers that do
        not exist, which are None."""
        from ..testing.queries import folded, lowered

        values: Row = {}
        reasons = []
        for name, aggregate in self._query.select.items():
            partial = folded(aggregate, events[name])
            try:
                values[name] = lowered(aggregate, partial)
            except Exception as error:
                values[name] = None
                reasons.append(f"{name}: {error}")
        return values, "; ".join(reasons)

    def to_bytes(self) -> bytes:
        """Refuse: brute force keeps no state that another stream could use."""
        raise ValueError("a stream under SASH_ORACLE=1 has no bytes; take it without, and restart")

    def _check(self) -> None:
        """Do nothing: there is no state to check."""


class OracleStream(ByBruteForce, AlignedStream):
    """A stream that keeps all its events, and folds every window that it emits from them."""

    @classmethod
    def _for(cls, query: Query) -> type[Stream]:
        from . import oracle_events

        return oracle_events.stream_of(query) or cls

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._held: dict[Any, dict[Any, list[Any]]] = {}  # events by key, then by window
        self._all: dict[Any, list[Any]] = {}  # events by key, with the watermark at their arrival
        self._keys: dict[Any, Row] = {}
        self._arrived = 0
        self._revisions: dict[Any, int] = {}
        self._last: dict[Any, Any] = {}  # by key: the last window emitted or left out
        self._done: set[Any] = set()

    def _push(self, batch: Any) -> Any:
        """Insert a batch, and return the windows that are then due."""
        taken = self._taken(batch)
        if taken is None:
            return as_given(pa.table({}), self._kind)
        table, reasons = taken
        given, misfits = conform(table, self._schema, self._only_time)
        touched = self._insert(table, given, reasons | misfits)
        newest = [row["time"] for row in touched]
        at = self._progress
        at.stream_time = max(
            [*newest, *([] if at.stream_time is None else [at.stream_time])], default=None
        )
        if newest:
            mark = max(newest) - self._lateness
            at.watermark = mark if at.watermark is None else max(mark, at.watermark)
        return self._emit({name for row in touched for name in self._reached(row)})

    def _reached(self, event: Row) -> set[Any]:
        """The windows whose rows an event changes: windows that hold the event, and later windows
        with an aggregate that reaches back to it."""
        key, sizes = event["key"], [a.size for a in self._query.select.values() if a.size]
        reached = {(key, span) for span in event["spans"]}
        for span in self._held.get(key, {}):
            back = span[1] - event["time"]
            if any(back > 0 and (size == "lifetime" or back <= size) for size in sizes):
                reached.add((key, span))
        return reached

    def _make_state(self, plan: Plan) -> Any:
        return None

    def _move(self, time: int) -> Any:
        self._reach(time, time)

    def _reach(self, time: int, watermark: int) -> None:
        at = self._progress
        at.stream_time = time if at.stream_time is None else max(time, at.stream_time)
        at.watermark = watermark if at.watermark is None else max(watermark, at.watermark)

    def _as_pushed(self, outcome: Any) -> Any:
        if self._plan is None:
            return as_given(pa.table({}), self._kind)
        return self._emit(set())

    def _insert(self, table: pa.Table, given: pa.Table, refused: dict[int, str]) -> list[Row]:
        """Put each event into each of its open windows; return the events that count, with their
        windows."""
        from ..testing.aligned import closed_windows_of, usable, windows_of
        from ..testing.queries import events_of, key_of

        assert self._plan is not None
        query, at, touched, late = self._query, self._progress, [], []
        for i, row in enumerate(events_of(query, given)):
            at.rows += 1
            exact = row[query.time]
            time = None if exact is None else math.floor(exact)
            why = refused.get(i)
            missed: list[Any] = []
            spans: list[Any] = []
            counts = False
            if why is None and time is None:
                why = "its time is null"
            elif why is None and not usable(query.window, time):
                why = f"its time is {query.window.clock.beyond}"
            if why is None:
                assert time is not None
                missed = closed_windows_of(query, time, at.watermark)
                spans = [span for span in windows_of(query.window, time) if span not in missed]
                counts = bool(spans) or self._reaches_open(time)
                refusal = self._refused_by_lift(row) if counts else None
                if refusal is not None:
                    why, missed, spans, counts = refusal, [], [], False
                elif missed:
                    why = SOME_CLOSED if counts else ALL_CLOSED
            if why is not None:
                late.append((i, why, missed))
            if not counts:
                at.late += 1
                continue
            at.counted += 1
            at.partly_late += bool(missed)
            key, shown = key_of(query, row)
            self._arrived += 1
            self._all.setdefault(key, []).append((exact, self._arrived, at.watermark, row))
            for span in spans:
                self._keys.setdefault(key, shown)
                windows = self._held.setdefault(key, {})
                windows.setdefault(span, []).append((exact, self._arrived, row))
            touched.append({"key": key, "time": time, "spans": spans})
        self._note_late(table, late)
        return touched

    def _reaches_open(self, time: int) -> bool:
        """True if an aggregate of an open window reaches back to a time, even if no open window
        holds that time."""
        from ..testing.aligned import windows_of

        mark = self._progress.watermark
        sizes = [a.size for a in self._query.select.values() if a.size]
        if mark is None or not sizes:
            return False
        end = windows_of(self._query.window, mark)[0][1]  # of the first open window
        return any(size == "lifetime" or end - time <= size for size in sizes)

    def _over(self, key: Any, span: Any) -> dict[str, Sequence[Row]]:
        """The events that each aggregate in a window's row is over."""
        from ..testing.aligned import events_over

        held = self._held[key].get(span, [])
        own = [e[-1] for e in sorted(held, key=lambda e: e[:2])]
        made: dict[str, Sequence[Row]] = {}
        for name, chosen in self._query.select.items():
            made[name] = own
            if chosen.size is not None:
                there = [e for e in self._all[key] if e[2] is None or span[1] > e[2]]
                ordered = sorted(there, key=lambda e: e[:2])
                made[name] = events_over(chosen, span[1], ((e[:2], e[-1]) for e in ordered))
        return made

    def _refused_by_lift(self, row: Row) -> str | None:
        from ..testing.queries import counted

        for aggregate in self._query.select.values():
            if aggregate.columns and counted(aggregate, [row]):
                value = tuple(row[c] for c in aggregate.columns)
                try:
                    aggregate.operator.fold([value if len(value) > 1 else value[0]])
                except Exception as error:
                    return str(error) or type(error).__name__
        return None

    def _note_late(self, table: pa.Table, late: list[Any]) -> None:
        if not late:
            return
        assert self._plan is not None
        made = table.take(pa.array([i for i, _, _ in late]))
        kind = as_time(np.zeros(0, np.int64), self._plan.time_type).type
        spans = [(m[0][0], m[-1][1]) if m else (None, None) for _, _, m in late]
        added = {
            "reason": pa.array([why for _, why, _ in late], pa.string()),
            "missed": pa.array([len(missed) for _, _, missed in late], pa.int64()),
            "missed_start": from_objects([start for start, _ in spans], kind, ()),
            "missed_end": from_objects([end for _, end in spans], kind, ()),
        }
        for name, column in added.items():
            made = made.append_column(name, column)
        self._late._parts.append(made)
        self._late._drop()

    def _emit(self, changed: set[Any]) -> Any:
        """The table of due windows, by brute force over all held events."""
        from ..testing.aligned import empty_between, window_before
        from ..testing.queries import row_of, same_values

        assert self._plan is not None
        query, at, live = self._query, self._progress, self._mode == "live"
        limit = at.stream_time if live else at.watermark
        rows: list[Row] = []
        failed: dict[int, str] = {}
        next_end = self._next_end(limit) if self._early else None
        for key in sorted(self._held):
            for span in sorted(self._held[key]):
                name = (key, span)
                due = limit is not None and span[1] <= limit
                early = self._early and not due and span == next_end
                if not early and not (due and (name not in self._done or name in changed)):
                    continue
                values, why = self._answers(self._over(key, span))
                if due:
                    self._done.add(name)
                before = self._last.get(key)
                self._last[key] = (span, values)
                if query.emit == "changes" and before is not None:
                    follows = before[0] == window_before(query.window, span)
                    if follows and same_values(values, before[1]):
                        continue
                for empty in empty_between(query.window, before[0] if before else None, span):
                    nothing, _ = self._answers(self._over(key, empty))
                    rows.append(row_of(self._keys[key], empty, nothing))
                row = row_of(self._keys[key], span, values)
                if live:
                    row["revision"] = self._revisions[name] = self._revisions.get(name, -1) + 1
                if why:
                    failed[len(rows)] = why
                rows.append(row)
        self._forget()
        at.emitted += len(rows)
        table = table_of_rows(self._plan, rows, failed)
        if live and not rows:
            table = table.append_column("revision", pa.array([], pa.int64()))
        warn_of(failed)
        return as_given(table, self._kind)

    def _next_end(self, limit: int | None) -> Any:
        """The window that ends next."""
        from ..testing.aligned import windows_of

        if limit is None or limit >= UNBOUNDED:
            return None
        return windows_of(self._query.window, limit)[0]

    def _forget(self) -> None:
        """Drop closed windows."""
        mark = self._progress.watermark
        for key in [*self._held]:
            windows = self._held[key]
            for span in [s for s in windows if mark is not None and s[1] <= mark]:
                del windows[span]
                self._done.discard((key, span))
                self._revisions.pop((key, span), None)
            if not windows:
                del self._held[key]

    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The values over the times `[lo, hi)` of one key."""
        from ..testing.queries import key_of

        refuse_at(self._query, at)

        if self._plan is None:
            raise ValueError("nothing was pushed into this stream yet")
        begin = -UNBOUNDED if lo is None else to_micros(lo)
        end = UNBOUNDED if hi is None else to_micros(hi)
        wanted = key if isinstance(key, tuple) else (key,)
        name, _ = key_of(self._query, dict(zip(self._query.by, wanted, strict=True)))
        events: dict[int, Any] = {}
        for held in self._held.get(name, {}).values():
            events |= {e[1]: e for e in held if begin <= e[0] < end}
        ordered = [e[-1] for e in sorted(events.values(), key=lambda e: e[:2])]
        values, why = self._answers(dict.fromkeys(self._query.select, ordered))
        warn_of({0: why} if why else {})
        return values

    def state_size(self) -> dict[str, int]:
        """How many keys and events the stream holds."""
        windows: Iterable[Any] = self._held.values() if self._plan else ()
        events = {e[1] for of in windows for held in of.values() for e in held}
        return {"keys": len(self._held) if self._plan else 0, "slices": len(events), "bytes": 0}
