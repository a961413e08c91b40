"""Streams whose windows events make: what driven windows, ticks and sessions share.

    batch ─→ judge ─→ step ─→ rows out
               │
               └─ late rows

An event is late if the rows that it would change are already emitted.

With a store (`engine.stored_events`), a stream keeps nothing in memory between two batches.  A
batch reads the rows of the keys that it touches, and of the keys that are due, and writes back the
rows that remain (`state.keyed`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.contract import StepFailed
from ..state.keyed import Keyed, KeyedTables
from ..state.portions import Among
from ..tables.answers import warn_of
from ..tables.arrow import as_given, kind_of, one_array, times_of
from ..tables.intake import bad_rows, conform, some_rows
from .as_of import check_window
from .delays import delay_counts, no_delays
from .failures import CombineFailed, key_text
from .late import Late, refused_times
from .lifecycle import Progress, latest
from .pending import Pending, refuses_no_row
from .stream import Stream
from .turns import in_turn

__all__ = ["Admitted", "EventStream", "Judged", "Reached"]

#: Stream time and watermark.
Reached: TypeAlias = tuple[int | None, int | None]

CLOSED = "its time is before the watermark, so the windows that it is in are emitted"


@dataclass(frozen=True)
class Admitted:
    """The outcome of a batch: the emitted rows, as the kind of table that was pushed; reasons for
    those that lack answers; the late rows; how many rows the batch has, and how many of them
    count; and a histogram of how late they came."""

    made: Any
    failed: dict[int, str]
    late: Late
    rows: int
    counted: int
    delays: Array = field(default_factory=no_delays)


@dataclass(frozen=True)
class Judged:
    """A batch whose rows are judged: the times of all rows, and the late rows; then, of the rows
    that count, their places in the batch, the rows themselves, and what `_cut` returned for
    them."""

    times: Array
    late: Late
    rows: Array
    new: pa.Table
    cut: Any

    @property
    def when(self) -> Array:
        """The times of the rows that count."""
        found: Array = self.times[self.rows]
        return found


class EventStream(Stream, ABC):
    """A stream whose windows events make."""

    _keyed: KeyedTables | None = None
    _sure = False  # True if no row of the query's types makes the query fail
    _reader: Pending | None = None  # of batches that need no conversion
    _follows = True  # True if the watermark follows stream time; else the caller moves it
    _behind: int | None = None  # how far the caller keeps the watermark behind stream time

    def _begin(self, plan: Plan) -> None:
        """Use a plan, for which the state is made."""
        self._plan, self._sure = plan, refuses_no_row(plan)
        if self._sure and self._store is None:
            self._reader = Pending.of(plan, self._schema, only_time=False)

    @abstractmethod
    def _cut(self, table: pa.Table) -> Any:
        """Prepare rows for `_step`: raise if one cannot be used; change nothing."""

    @abstractmethod
    def _ends(self, times: Array) -> tuple[Array, Array]:
        """The start and end of the window that a late event at each time has missed."""

    @abstractmethod
    def _step(self, judged: Judged, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert the rows that count, move stream time and watermark, and return the rows that are
        due, as the kind of table that was pushed, and reasons for those that lack answers."""

    @abstractmethod
    def _size(self) -> dict[str, int]:
        """How many keys and entries are in memory, and how many bytes they take."""

    def _conformed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """The columns that the stream needs, cast to its types, and reasons for the rows that do
        not fit."""
        return conform(table, self._schema, self._only_time)

    def _unusable(self, given: pa.Table) -> dict[int, str]:
        """Reasons for rows of the right types that cannot be used."""
        return {}

    @abstractmethod
    def _held(self) -> list[Keyed]:
        """The whole state, as tables whose rows belong to keys."""

    @abstractmethod
    def _hold(self, tables: list[pa.Table]) -> None:
        """Replace the state by the rows of these tables, which are laid out as in `_held`."""

    @abstractmethod
    def _shapes(self) -> list[str]:
        """A description of a partial's words, for each group of aggregates."""

    def _push(self, batch: Any) -> Any:
        judged = self._judged_at_once(batch)
        if judged is not None:
            return self._entered(batch, judged)
        taken = self._taken(batch)
        if taken is None:
            return as_given(pa.table({}), self._kind)
        table, reasons = taken
        assert self._plan is not None
        given, misfits = self._conformed(table)
        found = self._admit(given, reasons | misfits)
        self._late.add(table, found.late, self._missed, self._plan.time_type)
        return self._given_out(found.made, found.failed)

    def _judged_at_once(self, batch: Any) -> Judged | None:
        """A batch that needs no conversion, and of which each row counts, without the fixed price
        of `_judge`; None for any other batch."""
        if self._reader is None:
            return None
        noted = self._reader.read(batch)
        if noted is None:
            return None
        new = self._reader.whole(noted)
        times = times_of(one_array(new.column(self._query.time)))[0]
        closed = [] if self._progress.watermark is None else self._closed_for(new, times)
        if self._unusable(new) or any(missed.any() for missed, _ in closed):
            return None
        try:
            cut = self._cut(new)
        except Exception:  # `_judge` finds the rows that cannot be used
            return None
        return Judged(times, Late.none(), np.arange(len(times)), new, cut)

    def _entered(self, batch: Any, judged: Judged) -> Any:
        """Insert a batch of which each row counts, and return the rows that are due."""
        self._check_open()
        self._kind = kind_of(batch)
        at, times = self._progress, judged.times
        delays = delay_counts(times, at.stream_time, [])
        self._turns.changing = True
        made, failed = self._step(judged, self._reached(int(times.max()), None, None))
        at.rows += len(times)
        at.counted += len(times)
        self._delays = self._delays + delays
        return self._given_out(made, failed)

    def _given_out(self, made: Any, failed: dict[int, str]) -> Any:
        """The rows that a batch emits, with a warning if some lack answers."""
        if failed:
            self._turns.changing = False  # the change is complete; a warning may raise
            warn_of(failed)
        return made

    def _admit(
        self,
        given: pa.Table,
        refused: dict[int, str],
        time: int | None = None,
        watermark: int | None = None,
        among: Among = None,
    ) -> Admitted:
        """Insert the rows that can be used and are not late, move on to where they or the caller
        say, and emit what is due, of keys in some slots of a store's index alone.  Rows are judged
        by the watermark that earlier batches have reached."""
        self._spill()
        before = replace(self._progress)
        try:
            self._load_parts(given, time, watermark, among)
            judged = self._judge(given, self._unusable(given) | refused)
            late, counted = judged.late, len(judged.rows)
            known = self._progress.stream_time
            if self._behind is not None and watermark is not None:
                known = watermark + self._behind  # over all keys, not only those of this state
            delays = delay_counts(judged.times, known, late.rows[late.missed == 0].tolist())
            newest = int(judged.when.max()) if counted else None
            self._turns.changing = True
            made, failed = self._step(judged, self._reached(newest, time, watermark))
            at = self._progress
            at.rows += given.num_rows
            at.counted += counted
            at.late += given.num_rows - counted
            if self._store is not None:
                self._parts.replace(self._held())
        except BaseException:
            self._abandon(before)
            raise
        if self._store is not None:
            self._parts.commit()
        self._delays = self._delays + delays
        return Admitted(made, failed, late, given.num_rows, counted, delays)

    def _abandon(self, before: Progress) -> None:
        """Undo a failed batch, if the state is in a store: between two batches, the stream needs
        nothing that is in memory."""
        if self._store is not None:
            vars(self._progress).update(vars(before))
            if self._keyed is not None:
                self._keyed.abandon()
            self._turns.changing = False

    def _load_parts(
        self, given: pa.Table, time: int | None, watermark: int | None, among: Among
    ) -> None:
        """Read the rows that a batch may touch from the store."""
        if self._store is None:
            return
        assert self._plan is not None
        times, unusable = times_of(one_array(given.column(self._query.time)))
        usable = times[~unusable]
        newest = int(usable.max()) if len(usable) else None
        reached = self._reached(newest, time, watermark)[1]
        keys = [one_array(given.column(field.name)) for field in self._plan.keys]
        self._hold(self._parts.visit(keys, given.num_rows, reached, among))

    @property
    def _parts(self) -> KeyedTables:
        if self._keyed is None:
            assert self._store is not None
            schemas = [held.table.schema for held in self._held()]
            self._keyed = KeyedTables(schemas, self._store, self._prefix)
        return self._keyed

    @property
    def _missed(self) -> _Spans:
        """The windows that late rows missed."""
        return _Spans(self)

    def _judge(self, given: pa.Table, refused: dict[int, str]) -> Judged:
        """Decide which rows count, and which are late."""
        times, reasons = refused_times(one_array(given.column(self._query.time)), refused)
        usable = np.ones(len(times), dtype=bool)
        usable[list(reasons)] = False
        watermark = self._progress.watermark
        closed = np.zeros(len(times), dtype=bool)
        for missed, reason in self._closed_for(given, times) if watermark is not None else ():
            new = usable & missed & ~closed
            reasons |= dict.fromkeys(np.flatnonzero(new).tolist(), reason)
            closed |= new
        usable &= ~closed
        rows = np.flatnonzero(usable)
        new = some_rows(given, rows)
        try:
            cut = self._cut(new)
        except Exception:
            wrong = bad_rows(self._cut, new)
            if not wrong:
                raise
            return self._judge(given, refused | {int(rows[i]): why for i, why in wrong.items()})
        late = np.array(sorted(reasons), dtype=np.int64)
        own = closed[late]
        # a late row has missed one window, whose number is the row's time
        at = np.where(own, times[late], 0)
        why = [reasons[row] for row in late.tolist()]
        told = Late(late, why, np.ones(len(late), bool), at, at - ~own)
        return Judged(times, told, rows, new, cut)

    def _closed_for(self, given: pa.Table, times: Array) -> list[tuple[Array, str]]:
        """The rows for which it is too late: pairs of a mask of rows and a reason."""
        return [(times < self._progress.watermark, CLOSED)]

    def _reached(self, newest: int | None, time: int | None, watermark: int | None) -> Reached:
        """Stream time and watermark after a batch; `newest` is the newest time of the rows that
        count, `time` and `watermark` are the caller's."""
        at = self._progress
        if self._follows and newest is not None:
            watermark = latest(watermark, newest - self._lateness)
        return latest(at.stream_time, time, newest), latest(at.watermark, watermark)

    def _move(self, time: int) -> Any:
        if self._plan is not None:
            return self._admit(self._schema.empty_table(), {}, time, time)
        at = self._progress
        at.stream_time, at.watermark = self._reached(None, time, time)
        return None

    def _as_pushed(self, outcome: Any) -> Any:
        if outcome is None:
            return as_given(pa.table({}), self._kind)
        return self._given_out(outcome.made, outcome.failed)

    def _failure(self, error: StepFailed) -> CombineFailed:
        """The error to raise for a step in which `combine` raised."""
        assert self._plan is not None
        whose = key_text(self._plan, error.keys, error.code)
        then = "the batch was not inserted"
        if self._store is None:
            then = (
                "part of the batch is in, so the stream cannot be used any more: make a new one, "
                "or restore one from its bytes"
            )
        at = self._where(error.window)
        return CombineFailed(f"{error}, {at}{whose and ' of ' + whose}; {then}")

    def _where(self, number: int) -> str:
        """Name the entry of the state at which `combine` raised."""
        return f"at a key's event {number}"

    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """Refuse: events make the windows."""
        if at is not None:
            check_window(self._query)
        raise ValueError(
            f"a stream of {self._query.window!r} answers for its events; for any range of times "
            "stream a window that is aligned to the clock"
        )

    @in_turn
    def state_size(self) -> dict[str, int]:
        """How many keys, and times or sessions, the stream holds, and how many bytes they take."""
        if self._plan is None:
            return {"keys": 0, "slices": 0, "bytes": 0}
        if self._store is None:
            return self._size()
        size = self._parts.size()
        return {"keys": size["keys"], "slices": size["windows"], "bytes": size["bytes"]}

    def _check_parts(self) -> None:
        """Raise AssertionError if the records in the store are not sound."""
        if self._plan is not None and self._store is not None:
            self._parts._check()


class _Spans:
    """The windows of late rows, numbered by the times of the rows."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    def start(self, times: Array) -> Array:
        return self._stream._ends(times)[0]

    def end(self, times: Array) -> Array:
        return self._stream._ends(times)[1]
