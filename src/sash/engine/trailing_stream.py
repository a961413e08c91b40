"""A stream with a window for each event: `Query.stream` of `sash.trailing` and `sash.lifetime`.

    batch ─→ judge ─→ rows that wait for the watermark ─→ answers at their times ─→ rows out

In final mode an event's row is emitted when the watermark has passed its time, so that no more
events of its window can come.  In live mode it is emitted at once, and again, with a higher
revision, when a late event changes it.  Rows come out in the order in which their events arrived.
Events wait with all their columns; what their windows hold is kept as partials by time
(`state.trailing`).  A column that the query does not read is null where it does not have its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import make_plan
from ..query.types import value_type
from ..state.contract import StepFailed
from ..state.keyed import Keyed
from ..state.part_index import NEVER
from ..state.ragged import Places
from ..state.trail_entries import TrailEntries
from ..state.trailing import Answers, Batch, TrailState
from ..tables.arrow import as_given, as_time, filtered, from_ipc, one_array, times_of, to_ipc
from ..tables.intake import conform, given_table, with_names
from ..tables.keys import key_codes
from ..windows import Driven
from ..windows.contract import Span
from .driven import with_nulls
from .event_stream import EventStream, Reached
from .failures import CombineFailed, key_text
from .supported import Asked, check

__all__ = ["TrailingStream"]


class TrailingStream(EventStream):
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

    def _set_up(self, schema: pa.Schema) -> None:
        """Tie the query to the types of its columns; all of them are kept."""
        query = self._query
        plan = make_plan(query, schema)
        read = {f.name for f in schema if f.name in plan.schema.names or self._asks(schema, f.name)}
        fields = []
        for field in schema:
            kind = value_type(field.type)
            if pa.types.is_null(kind) and field.name in read:
                raise TypeError(
                    f"column {field.name!r} has nothing but nulls, so its type is not known; give "
                    "the stream a schema, or push a batch with types first"
                )
            # one that is only kept is text until more is known of it
            fields.append(field.with_type(pa.string() if pa.types.is_null(kind) else kind))
        check(self._place, Asked(query, plan, self._mode, self._early))
        assert isinstance(query.window, Driven)
        assert isinstance(query.window.keeps, Span)
        self._span = query.window.keeps
        self._only_time = None
        self._schema = with_names(pa.schema(fields), schema.names)
        self._read = with_names(pa.schema([f for f in fields if f.name in read]), schema.names)
        self._trails = TrailState(plan) if self._store is None else TrailEntries(plan)
        self._waiting = self._schema.empty_table()  # in order of arrival
        self._revisions = np.zeros(0, dtype=np.int64)  # of the rows that wait, in live mode
        self._plan = plan

    def _asks(self, schema: pa.Schema, name: str) -> bool:
        """True if `where` reads a column."""
        if self._query.where is None:
            return False
        try:
            filtered(schema.remove(schema.get_field_index(name)).empty_table(), self._query.where)
        except Exception:
            return True
        return False

    def _cut(self, table: pa.Table) -> Any:
        return self._trails.cut(table)

    def _ends(self, times: Array) -> tuple[Array, Array]:
        assert isinstance(self._query.window, Driven)
        start, end = self._query.window.spans(times)
        return end if start is None else start, end

    def _tabled(self, batch: Any) -> tuple[pa.Table, dict[int, str]]:
        """A batch as a table, and the rows that cannot be used: what the query does not read is
        null where it does not fit."""
        if isinstance(batch, Iterator) and not hasattr(batch, "__arrow_c_stream__"):
            batch = list(batch)
        table, reasons = super()._tabled(batch)
        if reasons and self._plan:
            _, reasons = given_table(batch, self._query, self._read, self._optional)
        return table, reasons

    def _conformed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """All columns in their types, and the rows of which one that is read does not fit; others
        are null where they do not fit, or are not there."""
        given, misfits = conform(table, self._read, None)
        columns = []
        for field in self._schema:
            column = pa.nulls(table.num_rows, field.type)
            if field.name in self._read.names:
                column = given.column(field.name)
            elif field.name in table.column_names:
                # values of another kind are nulls, all of them
                with suppress(TypeError):
                    column = conform(table, pa.schema([field]), None)[0].column(0)
            columns.append(column)
        return pa.table(columns, names=self._schema.names), misfits

    def _step(self, new: pa.Table, times: Array, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert rows, and emit those that are due."""
        waiting = pa.concat_tables([self._waiting, new]).combine_chunks()
        when = times_of(one_array(waiting.column(self._query.time)))[0]
        watermark = reached[1]
        over = np.zeros(len(when), bool) if watermark is None else when < watermark
        if self._mode == "live":
            revisions = np.append(self._revisions, np.full(new.num_rows, -1))
            due = self._changed(waiting, when, new.num_rows) if new.num_rows else over & False
            revisions[due] += 1
            made, failed = self._answer(waiting, due, new, watermark)
            made = made.append_column("revision", pa.array(revisions[due]))
            self._revisions = revisions[~over]
        else:
            made, failed = self._answer(waiting, over, None, watermark)
        self._waiting = waiting.filter(pa.array(~over))
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), failed

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
        self, waiting: pa.Table, due: Array, new: pa.Table | None, watermark: int | None
    ) -> tuple[pa.Table, dict[int, str]]:
        """The rows that are due, with their answers.  `new` are the rows to insert, None for those
        that are due; what is behind the watermark is then forgotten."""
        assert self._plan is not None
        rows = waiting.filter(pa.array(due))
        asked = self._trails.cut(rows) if rows.num_rows else None
        batch = asked
        if new is not None:
            batch = self._trails.cut(new) if new.num_rows else None
        try:
            found = self._trails.step(batch, asked, watermark)
        except StepFailed as error:
            whose = key_text(self._plan, error.keys, error.code)
            raise CombineFailed(
                f"{error}, at the time {error.window}{whose and ' of ' + whose}; part of the batch "
                "is in, so the stream cannot be used any more: make a new one, or restore one from "
                "its bytes"
            ) from error
        return self._rows(rows, asked, found)

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
        failed = {i: found.failed[s] for i, s in enumerate(slices.tolist()) if s in found.failed}
        return made, failed

    def _held(self) -> list[Keyed]:
        assert isinstance(self._trails, TrailEntries)
        waiting = self._waiting
        when = times_of(one_array(waiting.column(self._query.time)))[0]
        # columns of events may have any name
        made = {str(i): column for i, column in enumerate(waiting.columns)}
        if self._mode == "live":
            made["revision"] = pa.array(self._revisions)
        keys = [one_array(waiting.column(name)) for name in self._query.by]
        passed = when + 1
        due = passed if self._mode == "final" else np.full(len(when), NEVER)
        ones = np.ones(len(when), dtype=np.int64)
        return [Keyed(pa.table(made), keys, due, passed, ones), self._trails.held()]

    def _hold(self, tables: list[pa.Table]) -> None:
        assert isinstance(self._trails, TrailEntries)
        waiting, entries = tables
        if self._mode == "live":
            self._revisions = waiting.column("revision").to_numpy()
            waiting = waiting.drop_columns(["revision"])
        self._waiting = pa.table(waiting.columns, schema=self._schema)
        self._trails.hold(entries)

    def _shapes(self) -> list[str]:
        assert isinstance(self._trails, TrailEntries)
        return self._trails.shapes

    def _size(self) -> dict[str, int]:
        assert isinstance(self._trails, TrailState)
        size = self._trails.size()
        return size | {"bytes": size["bytes"] + self._waiting.nbytes}

    def _dump(self) -> list[bytes]:
        assert isinstance(self._trails, TrailState)
        revisions = self._revisions.astype("<i8").tobytes()
        return [to_ipc(self._waiting), revisions, *self._trails.dump()]

    def _load(self, blobs: list[bytes]) -> None:
        waiting, revisions, *trails = blobs
        self._waiting = from_ipc(waiting).cast(self._schema)
        self._revisions = np.frombuffer(revisions, "<i8").astype(np.int64)
        assert isinstance(self._trails, TrailState)
        self._trails.load(trails)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        if self._plan is not None and isinstance(self._trails, TrailState):
            self._trails._check()
