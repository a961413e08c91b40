"""A stream with a window for each event: `Query.stream` of `sash.trailing` and `sash.lifetime`.

    batch ─→ judge ─→ rows that wait for the watermark ─→ answers at their times ─→ rows out

In final mode the stream emits an event's row when the watermark has passed the event's time, so
that no more events of its window can come.  In live mode the stream emits the row at once, and
again, with a higher revision, when a late event changes it.  The rows of one push come in the order
in which their events arrived.  Events wait with all their columns; the state keeps the events of
windows as partials by time (`state.trailing`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, to_micros
from ..query.plan import Plan
from ..query.types import value_type
from ..state.contract import StepFailed
from ..state.keyed import Keyed
from ..state.ragged import Places
from ..state.reach import Reach
from ..state.trail_entries import TrailEntries
from ..state.trailing import Answers, Batch, TrailState
from ..tables.answers import warn_of
from ..tables.arrow import as_given, as_time, flat, one_array, times_of, with_columns
from ..tables.intake import one_of_type
from ..tables.keys import key_codes
from ..windows import Driven
from .as_of import check_window
from .driven import with_nulls
from .event_stream import Judged, Reached
from .turns import in_turn
from .waiting_stream import KeepingStream

__all__ = ["TrailingStream"]


class TrailingStream(KeepingStream):
    """A stream in which each event has a window; see `sash.Stream`.

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
        self._reach = Reach.of(plan)
        self._trails = TrailState(plan) if self._store is None else TrailEntries(plan)
        self._revisions: dict[int, int] = {}  # live mode: of rows emitted again, by number

    def _cut(self, table: pa.Table) -> Any:
        if self._mode == "final" and self._sure:
            return None  # rows are cut when the watermark has passed them
        return self._trails.cut(table)

    def _step(self, judged: Judged, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert rows, and emit the rows that are due."""
        if self._mode == "live":
            made, failed = self._revised(judged, reached[1])
        else:
            rows, numbers = self._waiting.pass_by(judged.new, judged.when, reached[1])
            made, failed = self._answer(rows, numbers, None, reached[1])
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), failed

    def _revised(self, judged: Judged, watermark: int | None) -> tuple[pa.Table, dict[int, str]]:
        """Answer the new rows, and the waiting rows that they change, with their revisions."""
        new, times, first = judged.new, judged.when, self._waiting.arrived
        rows, numbers, asked = new, first + np.arange(len(times)), judged.cut
        if len(times):
            low = int(times.min()) + self._reach.younger + 1
            held, before = self._waiting.between(low, int(times.max()) + self._reach.longest)
            due = self._changed(held, new, times) if len(before) else np.zeros(0, dtype=bool)
            if due.any():
                rows = pa.concat_tables([held.filter(pa.array(due)), new]).combine_chunks()
                numbers, asked = np.append(before[due], numbers), None
        revisions = [self._revisions.get(n, 0) + 1 if n < first else 0 for n in numbers.tolist()]
        made, failed = self._answer(rows, numbers, judged, watermark, asked)
        made = with_columns(made, {"revision": pa.array(revisions, pa.int64())})
        pairs = zip(numbers.tolist(), revisions, strict=True)
        self._revisions |= {n: revision for n, revision in pairs if revision}
        for gone in self._waiting.pass_by(new, times, watermark)[1].tolist():
            self._revisions.pop(gone, None)
        return made, failed

    def _changed(self, held: pa.Table, new: pa.Table, times: Array) -> Array:
        """A mask of the waiting rows whose windows hold a new row."""
        pairs = [(held.column(name), new.column(name)) for name in self._query.by]
        columns = [pa.concat_arrays([*a.chunks, *b.chunks]) for a, b in pairs]
        codes, _ = key_codes(columns, held.num_rows + len(times))
        own, fresh = codes[: held.num_rows], codes[held.num_rows :]
        order = np.lexsort((times, fresh))
        places = Places(fresh[order], times[order])
        when = times_of(one_array(held.column(self._query.time)))[0]
        low = places.find(own, when - self._reach.longest)
        found: Array = places.find(own, when - self._reach.younger) > low
        return found

    def _answer(
        self,
        rows: pa.Table,
        numbers: Array,
        new: Judged | None,
        watermark: int | None,
        asked: Batch | None = None,
    ) -> tuple[pa.Table, dict[int, str]]:
        """Insert the rows of `new` (None: `rows` themselves), answer `rows`, whose order of arrival
        is in `numbers`, and forget what the watermark makes useless.  `asked` is the cut of `rows`,
        if it is known."""
        if not rows.num_rows:
            asked = None
        elif asked is None:
            asked = self._trails.cut(rows)
        batch = asked
        if new is not None:
            batch = new.cut if new.new.num_rows else None
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
        """The rows out: the columns of the events, the window and the values; and reasons for rows
        that lack answers."""
        assert self._plan is not None
        assert isinstance(self._query.window, Driven)
        slices = np.zeros(0, np.int64) if asked is None else asked.slices
        own = times_of(one_array(rows.column(self._query.time)))[0]
        start, end = self._query.window.spans(own)
        kind = self._plan.time_type
        if start is None:
            assert found.oldest is not None
            oldest = found.oldest[slices]
            held = oldest < own - self._reach.younger
            starts = with_nulls(as_time(oldest, kind), held)
        else:
            starts = as_time(start, kind)
        added = {"window_start": starts, "window_end": as_time(end, kind)}
        values = {name: found.values[name] for name in self._query.select}
        if not np.array_equal(slices, np.arange(len(slices))):
            at = pa.array(slices)
            values = {name: column.take(at) for name, column in values.items()}
        made = with_columns(rows, added | values)
        if not found.failed:
            return made, {}
        lacking = np.flatnonzero(np.isin(slices, list(found.failed)))
        return made, {i: found.failed[int(slices[i])] for i in lacking.tolist()}

    @in_turn
    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The values of a key (a tuple, if there are several key columns) as of a time, which must
        not be before the watermark: over all events so far that the window of an event at that
        time would hold, apart from that event itself.

        >>> import sash
        >>> q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"n": sash.count()})
        >>> s = q.stream(lateness=2)
        >>> s.push([{"t": 3, "k": "a"}, {"t": 6, "k": "a"}]).num_rows
        1
        >>> s.query("a", at=7), s.query("a", at=9), s.query("b", at=9)
        ({'n': 2}, {'n': 1}, {'n': 0})
        """
        if at is None or lo is not None or hi is not None:
            raise ValueError(
                f"a stream of {self._query.window!r} answers as of a time: give at=…, and neither "
                "lo nor hi"
            )
        check_window(self._query)
        if self._plan is None:
            raise ValueError("nothing was pushed into this stream yet")
        moment, mark = to_micros(at), self._progress.watermark
        if mark is not None and moment < mark:
            raise ValueError(
                f"at is {moment}, before the watermark, {mark}: what its window holds may be "
                "evicted"
            )
        key = key if isinstance(key, tuple) else (key,)
        return self._as_of(key, moment) if self._store is None else self._stored_as_of(key, moment)

    def _stored_as_of(self, key: tuple[Any, ...], at: int) -> dict[str, Any]:
        """The values of a key as of a time, from the rows that the store has of the key."""
        assert self._plan is not None
        assert isinstance(self._trails, TrailEntries)
        pairs = zip(key, self._plan.keys, strict=True)
        asked = [one_of_type(value, value_type(field.type)) for value, field in pairs]
        self._spill()
        try:
            self._hold(self._parts.visit(asked, 1, None))
            rows = self._waiting.all()[0].slice(0, 0)
            if self._mode == "final":  # waiting events are in no partial yet
                lows, high = self._reach.lows(np.array([at])), at - self._reach.younger - 1
                rows = self._of_key(key, self._waiting.between(int(lows.min()), high)[0])
            found = self._trails.as_of(asked, at, rows)
        finally:
            self._parts.abandon()
        warn_of(found.failed)
        return {name: found.values[name][0].as_py() for name in self._query.select}

    def _as_of(self, key: tuple[Any, ...], at: int) -> dict[str, Any]:
        """The values of a key as of a time."""
        assert self._plan is not None
        assert isinstance(self._trails, TrailState)
        trails = self._trails
        lows, high = trails.ends(at)
        self._turns.changing = True  # an answer may label values
        try:
            swept = -1
            while swept != trails.swept:  # a sweep makes the labels in partials read before stale
                swept = trails.swept
                partials = [trails.partials(key, low, high) for low in lows]
                if self._mode == "final":  # waiting events are in no partial yet, and are newer
                    for i, low in enumerate(lows):
                        rows = self._of_key(key, self._waiting.between(low, high)[0])
                        partials[i] = trails.with_rows(partials[i], rows)
            values, failed = trails.lowered(partials)
            trails.let_go()
        except Exception:
            self._turns.changing = False
            raise
        self._turns.changing = False
        warn_of({0: failed} if failed else {})
        return values

    def _of_key(self, key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        """The rows of a key."""
        assert self._plan is not None
        columns = []
        for field, value in zip(self._plan.keys, key, strict=True):
            held = flat(rows.column(field.name))
            columns.append(pa.concat_arrays([one_of_type(value, held.type), held]))
        if not columns:
            return rows
        codes, _ = key_codes(columns, rows.num_rows + 1)
        return rows.filter(pa.array(codes[1:] == codes[0]))

    def _held(self) -> list[Keyed]:
        assert isinstance(self._trails, TrailEntries)
        rows, numbers = self._waiting.all()
        more = {}
        if self._mode == "live":
            known = [self._revisions.get(number, 0) for number in numbers.tolist()]
            more["revision"] = pa.array(known, pa.int64())
        events = self._keyed_events(rows, numbers, more, due=self._mode == "final")
        return [events, self._trails.held()]

    def _hold(self, tables: list[pa.Table]) -> None:
        assert isinstance(self._trails, TrailEntries)
        events, entries = tables
        self._hold_events(events)
        if self._mode == "live":
            arrived, known = (events.column(name).to_pylist() for name in ("arrived", "revision"))
            self._revisions = {n: r for n, r in zip(arrived, known, strict=True) if r}
        self._trails.hold(entries)

    def _shapes(self) -> list[str]:
        assert isinstance(self._trails, TrailEntries)
        return self._trails.shapes

    def _size(self) -> dict[str, int]:
        assert isinstance(self._trails, TrailState)
        size = self._trails.size()
        return size | {"bytes": size["bytes"] + self._waiting.nbytes}

    def _dump_state(self) -> list[bytes]:
        assert isinstance(self._trails, TrailState)
        revised = np.array(list(self._revisions.items()), "<i8").tobytes()
        return [*self._waiting.dump(), revised, *self._trails.dump()]

    def _load_state(self, blobs: list[bytes]) -> None:
        assert isinstance(self._trails, TrailState)
        rows, numbers, revised, *trails = blobs
        self._waiting.load([rows, numbers])
        self._revisions = dict(np.frombuffer(revised, "<i8").reshape(-1, 2).tolist())
        self._trails.load(trails)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        self._check_parts()
        if self._plan is not None and isinstance(self._trails, TrailState):
            self._trails._check()
