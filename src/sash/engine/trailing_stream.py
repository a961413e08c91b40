"""A stream with a window for each event: `Query.stream` of `sash.trailing` and `sash.lifetime`.

    batch ─→ judge ─→ rows that wait for the watermark ─→ answers at their times ─→ rows out

In final mode an event's row is emitted when the watermark has passed its time, so that no more
events of its window can come.  In live mode it is emitted at once, and again, with a higher
revision, when a late event changes it.  Events wait with all their columns; what their windows
hold is kept as partials by time (`state.trailing`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import make_plan
from ..state.contract import StepFailed
from ..state.ragged import Places
from ..state.trailing import Answers, Batch, TrailState
from ..tables.answers import warn_of
from ..tables.arrow import as_given, as_time, from_ipc, kind_of, one_array, times_of, to_ipc
from ..tables.intake import bad_rows, chosen, conform, given_table, with_names
from ..tables.keys import key_codes
from ..windows import Driven
from ..windows.contract import Span
from .driven import with_nulls
from .failures import CombineFailed, key_text
from .late import Late, check_names
from .stream import Stream
from .supported import Asked, check
from .turns import in_turn

__all__ = ["TrailingStream"]

CLOSED = "its time is before the watermark, so the windows that it is in are emitted"


class TrailingStream(Stream):
    """A stream whose events each have a window; see `sash.Stream`.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.trailing(5), select={"sum": sash.sum("x")})
    >>> s = q.stream(lateness=2)
    >>> s.push([{"t": 3, "x": 1}, {"t": 6, "x": 2}]).to_pylist()
    [{'t': 3, 'x': 1, 'window_start': -2, 'window_end': 3, 'sum': 1}]
    >>> s.close()["sum"].to_pylist()
    [3]
    """

    def _set_up(self, schema: pa.Schema) -> None:
        """Tie the query to the types of its columns; all of them are kept."""
        query = self._query
        plan = make_plan(query, schema)
        for field in schema:
            if pa.types.is_null(field.type):
                raise TypeError(
                    f"column {field.name!r} has nothing but nulls, so its type is not known; give "
                    "the stream a schema, or push a batch with types first"
                )
        check(self._place, Asked(query, plan, self._mode, self._early))
        assert isinstance(query.window, Driven)
        assert isinstance(query.window.keeps, Span)
        self._span = query.window.keeps
        self._only_time = None
        self._schema = with_names(pa.schema(list(schema)), schema.names)
        self._trails = TrailState(plan)
        self._waiting = self._schema.empty_table()  # in order of arrival
        self._revisions = np.zeros(0, dtype=np.int64)  # of the rows that wait, in live mode
        self._plan = plan

    def _push(self, batch: Any) -> Any:
        self._check_open()
        known = self._schema if self._plan else None
        table, reasons = given_table(batch, self._query, known, self._optional)
        check_names(table.column_names)
        whole = table.schema
        if self._plan is None and not len(whole):
            return as_given(pa.table({}), self._kind)
        if self._query.where is not None:
            table, reasons = chosen(table, self._query.where, reasons)
        if self._plan is None:
            self._set_up(whole)
        self._kind = kind_of(batch)
        given, misfits = conform(self._with_all(table), self._schema, None)
        times, rows, late = self._judge(given, reasons | misfits)
        new = given.take(pa.array(rows)) if len(rows) < given.num_rows else given
        newest = int(times[rows].max()) if len(rows) else None
        watermark = None if newest is None else newest - self._lateness
        self._turns.changing = True
        made = self._step(new, times[rows], self._moved(newest, watermark))
        at = self._progress
        at.rows += given.num_rows
        at.counted += len(rows)
        at.late += given.num_rows - len(rows)
        self._late.add(table, late, _Spans(self._query.window), self._plan_time())  # type: ignore[arg-type]
        return made

    def _with_all(self, table: pa.Table) -> pa.Table:
        """A batch with nulls for columns that it lacks, and the query does not read."""
        for field in self._schema:
            if field.name not in table.column_names and field.name not in self._query.columns:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table

    def _plan_time(self) -> pa.DataType:
        assert self._plan is not None
        return self._plan.time_type

    def _judge(self, given: pa.Table, refused: dict[int, str]) -> tuple[Array, Array, Late]:
        """The times of rows, those that can be used, and those that are late."""
        column = one_array(given.column(self._query.time))
        times, unusable = times_of(column)
        reasons = dict(refused)
        for row in np.flatnonzero(unusable).tolist():
            what = "out of range" if column[row].is_valid else "null"
            reasons.setdefault(row, f"its time is {what}")
        usable = np.ones(len(times), dtype=bool)
        usable[list(reasons)] = False
        watermark = self._progress.watermark
        closed = np.zeros(len(times), dtype=bool)
        if watermark is not None:
            closed = usable & (times < watermark)
            reasons |= dict.fromkeys(np.flatnonzero(closed).tolist(), CLOSED)
        usable &= ~closed
        rows = np.flatnonzero(usable)
        held = given.take(pa.array(rows))
        try:
            self._trails.cut(held)
        except Exception:
            wrong = bad_rows(self._trails.cut, held)
            if not wrong:
                raise
            return self._judge(given, refused | {int(rows[i]): why for i, why in wrong.items()})
        late = np.array(sorted(reasons), dtype=np.int64)
        missed = closed[late]
        # a late row has one window of its own, which goes by its time
        at = np.where(missed, times[late], 0)
        why = [reasons[row] for row in late.tolist()]
        return times, rows, Late(late, why, np.ones(len(late), bool), at, at - ~missed)

    def _moved(self, time: int | None, watermark: int | None) -> tuple[int | None, int | None]:
        """Stream time and watermark after a batch."""
        at = self._progress
        return (
            max((t for t in (at.stream_time, time) if t is not None), default=None),
            max((t for t in (at.watermark, watermark) if t is not None), default=None),
        )

    def _move(self, time: int) -> Any:
        self._reached = self._moved(time, time)
        return None

    def _as_pushed(self, outcome: Any) -> Any:
        reached = self._reached
        if self._plan is None:
            at = self._progress
            at.stream_time, at.watermark = reached
            return as_given(pa.table({}), self._kind)
        self._turns.changing = True
        return self._step(self._schema.empty_table(), np.zeros(0, np.int64), reached)

    def _step(self, new: pa.Table, times: Array, reached: tuple[int | None, int | None]) -> Any:
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
        found = as_given(made, self._kind)
        if failed:
            self._turns.changing = False  # all is done; a warning may be an error
            warn_of(failed, stacklevel=5)
        return found

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

    def query(self, key: Any = (), lo: Any = None, hi: Any = None) -> dict[str, Any]:
        """Refused: a window for each event is asked for by events."""
        raise ValueError(
            f"a stream of {self._query.window!r} answers for its events; for any range of times "
            "stream a window that is aligned to the clock"
        )

    @in_turn
    def state_size(self) -> dict[str, int]:
        """How many keys and times there are, and how many bytes they take, with the rows that
        wait."""
        if self._plan is None:
            return {"keys": 0, "slices": 0, "bytes": 0}
        size = self._trails.size()
        return size | {"bytes": size["bytes"] + self._waiting.nbytes}

    def _dump(self) -> list[bytes]:
        waiting = self._waiting.append_column("__revision", pa.array(self._in_live()))
        return [to_ipc(waiting), *self._trails.dump()]

    def _in_live(self) -> Array:
        rows = self._waiting.num_rows
        return self._revisions if len(self._revisions) == rows else np.zeros(rows, np.int64)

    def _load(self, blobs: list[bytes]) -> None:
        waiting = from_ipc(blobs[0])
        if self._mode == "live":
            self._revisions = np.array(waiting.column("__revision"))
        self._waiting = waiting.drop(["__revision"]).cast(self._schema)
        self._trails.load(blobs[1:])

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        if self._plan is not None:
            self._trails._check()


class _Spans:
    """The windows of late rows, by the times of the rows."""

    def __init__(self, window: Any) -> None:
        self._window = window

    def start(self, times: Array) -> Array:
        start, end = self._window.spans(times)
        return end if start is None else start  # type: ignore[no-any-return]

    def end(self, times: Array) -> Array:
        return self._window.spans(times)[1]  # type: ignore[no-any-return]
