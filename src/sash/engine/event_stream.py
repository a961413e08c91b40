"""What streams have in common whose windows events make.

    batch ─→ judge ─→ step ─→ rows out
               │
               └─ late rows

An event is late if what it would change is emitted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.answers import warn_of
from ..tables.arrow import as_given, one_array
from ..tables.intake import bad_rows, conform
from .late import Late, refused_times
from .lifecycle import latest
from .stream import Stream
from .turns import in_turn

__all__ = ["EventStream", "Reached"]

#: Stream time and watermark.
Reached: TypeAlias = tuple[int | None, int | None]

CLOSED = "its time is before the watermark, so the windows that it is in are emitted"


class EventStream(Stream, ABC):
    """A stream whose windows events make."""

    @abstractmethod
    def _cut(self, table: pa.Table) -> Any:
        """Cut rows into distinct times; changes nothing."""

    @abstractmethod
    def _ends(self, times: Array) -> tuple[Array, Array]:
        """The start and end of the window that a late event of each time has missed."""

    @abstractmethod
    def _step(self, new: pa.Table, times: Array, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert rows, move on, and emit what is due, as the kind of table that was pushed; and the
        rows that lack answers, and why."""

    @abstractmethod
    def _size(self) -> dict[str, int]:
        """How much is held."""

    def _conformed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """The columns that the stream needs, in its types, and the rows that do not fit."""
        return conform(table, self._schema, self._only_time)

    def _unusable(self, given: pa.Table) -> dict[int, str]:
        """Rows that cannot be used, and why."""
        return {}

    def _push(self, batch: Any) -> Any:
        taken = self._taken(batch)
        if taken is None:
            return as_given(pa.table({}), self._kind)
        table, reasons = taken
        assert self._plan is not None
        given, misfits = self._conformed(table)
        times, rows, late = self._judge(given, self._unusable(given) | reasons | misfits)
        new = given.take(pa.array(rows)) if len(rows) < given.num_rows else given
        newest = int(times[rows].max()) if len(rows) else None
        watermark = None if newest is None else newest - self._lateness
        self._turns.changing = True
        made, failed = self._step(new, times[rows], self._moved(newest, watermark))
        at = self._progress
        at.rows += given.num_rows
        at.counted += len(rows)
        at.late += given.num_rows - len(rows)
        self._late.add(table, late, _Spans(self), self._plan.time_type)
        self._turns.changing = False  # all is done; a warning may be an error
        warn_of(failed, stacklevel=4)
        return made

    def _judge(self, given: pa.Table, refused: dict[int, str]) -> tuple[Array, Array, Late]:
        """The times of rows, those that can be used, and those that are late."""
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
        held = given.take(pa.array(rows))
        try:
            self._cut(held)
        except Exception:
            wrong = bad_rows(self._cut, held)
            if not wrong:
                raise
            return self._judge(given, refused | {int(rows[i]): why for i, why in wrong.items()})
        late = np.array(sorted(reasons), dtype=np.int64)
        own = closed[late]
        # a late row has one window of its own, which goes by its time
        at = np.where(own, times[late], 0)
        why = [reasons[row] for row in late.tolist()]
        return times, rows, Late(late, why, np.ones(len(late), bool), at, at - ~own)

    def _closed_for(self, given: pa.Table, times: Array) -> list[tuple[Array, str]]:
        """Which rows the watermark has closed the stream for, and why."""
        return [(times < self._progress.watermark, CLOSED)]

    def _moved(self, time: int | None, watermark: int | None) -> Reached:
        """Stream time and watermark after a batch."""
        at = self._progress
        return latest(at.stream_time, time), latest(at.watermark, watermark)

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
        made, failed = self._step(self._schema.empty_table(), np.zeros(0, np.int64), reached)
        self._turns.changing = False  # all is done; a warning may be an error
        warn_of(failed, stacklevel=5)
        return made

    def query(self, key: Any = (), lo: Any = None, hi: Any = None) -> dict[str, Any]:
        """Refused: events make the windows."""
        raise ValueError(
            f"a stream of {self._query.window!r} answers for its events; for any range of times "
            "stream a window that is aligned to the clock"
        )

    @in_turn
    def state_size(self) -> dict[str, int]:
        """How many keys, and times or sessions, there are, and how many bytes they take."""
        return self._size() if self._plan is not None else {"keys": 0, "slices": 0, "bytes": 0}


class _Spans:
    """The windows of late rows, by the times of the rows."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    def start(self, times: Array) -> Array:
        return self._stream._ends(times)[0]

    def end(self, times: Array) -> Array:
        return self._stream._ends(times)[1]
