"""`SASH_ORACLE=1` for streams whose windows events make: all events are kept, and each window is
folded anew, see `engine.oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..tables.arrow import as_given, one_array, times_of
from .oracle import ByBruteForce, Row, columns_of_rows, table_of_rows
from .session_stream import SessionStream
from .trailing_stream import TrailingStream

__all__ = ["OracleSessions", "OracleTrailing"]


class _Lacking:
    """Values over events, None for those that do not exist; for each call the reasons."""

    def __init__(self, stream: ByBruteForce) -> None:
        self._stream = stream
        self.reasons: list[str] = []

    def __call__(self, events: Sequence[Row]) -> Row:
        values, why = self._stream._answers(events)
        self.reasons.append(why)
        return values


class OracleTrailing(ByBruteForce, TrailingStream):
    """A stream with a window for each event that keeps them all, and folds each anew."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._accepted = self._schema.empty_table()
        self._numbers = np.zeros(0, dtype=np.int64)  # of the rows that wait, among all accepted

    def _step(self, new: pa.Table, times: Any, reached: Any) -> tuple[Any, dict[int, str]]:
        first = self._accepted.num_rows
        self._numbers = np.append(self._numbers, np.arange(first, first + new.num_rows))
        self._accepted = pa.concat_tables([self._accepted, new])
        return super()._step(new, times, reached)

    def _answer(
        self, waiting: pa.Table, due: Any, new: pa.Table | None, watermark: int | None
    ) -> tuple[pa.Table, dict[int, str]]:
        from ..testing.queries import answers_by_event, rows_of

        assert self._plan is not None
        lacking = _Lacking(self)
        made_by = answers_by_event(self._query, rows_of(self._accepted), lacking)
        found = {n: (row, why) for (n, row), why in zip(made_by, lacking.reasons, strict=True)}
        due_rows = [found[n] for n in self._numbers[due].tolist()]
        rows = [row for row, _ in due_rows]
        made = waiting.filter(pa.array(due)).replace_schema_metadata(None)
        failed = {i: why for i, (_, why) in enumerate(due_rows) if why}
        for name, values in columns_of_rows(self._plan, rows, failed).items():
            made = made.append_column(name, values)
        when = times_of(one_array(waiting.column(self._query.time)))[0]
        if watermark is not None:
            self._numbers = self._numbers[when >= watermark]
        return made, failed


class OracleSessions(ByBruteForce, SessionStream):
    """A stream of sessions that keeps all events, and folds each session anew."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._accepted = self._schema.empty_table()
        self._last: dict[Any, int] = {}  # the end of each key's last session that is emitted

    def _in_emitted(self, given: pa.Table, times: Any) -> Any:
        from ..testing.queries import key_of, rows_of

        keys = [key_of(self._query, row)[0] for row in rows_of(given)]
        ends = [self._last.get(key) for key in keys]
        pairs = zip(times.tolist(), ends, strict=True)
        return np.array([end is not None and time <= end for time, end in pairs], dtype=bool)

    def _step(self, new: pa.Table, times: Any, reached: Any) -> tuple[Any, dict[int, str]]:
        from ..testing.queries import key_of, rows_made_by_events, rows_of

        assert self._plan is not None
        before = self._progress.watermark
        self._accepted = pa.concat_tables([self._accepted, new])
        lacking = _Lacking(self)
        rows = rows_made_by_events(self._query, rows_of(self._accepted), lacking)
        due = [
            (row, why)
            for row, why in zip(rows, lacking.reasons, strict=True)
            if reached[1] is not None
            and row["window_end"] < reached[1]
            and (before is None or row["window_end"] >= before)
        ]
        self._progress.stream_time, self._progress.watermark = reached
        self._progress.emitted += len(due)
        for row, _ in due:
            self._last[key_of(self._query, row)[0]] = row["window_end"]
        failed = {i: why for i, (_, why) in enumerate(due) if why}
        made = table_of_rows(self._plan, [row for row, _ in due], failed)
        return as_given(made, self._kind), failed
