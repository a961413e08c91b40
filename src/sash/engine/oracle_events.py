"""`SASH_ORACLE=1` for streams whose windows events make: all events are kept, and each window is
folded anew, see `engine.oracle`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..tables.arrow import as_given, one_array, times_of
from .oracle import columns_of_rows, table_of_rows
from .session_stream import SessionStream
from .trailing_stream import TrailingStream

__all__ = ["OracleSessions", "OracleTrailing"]


class OracleTrailing(TrailingStream):
    """A stream with a window for each event that keeps them all, and folds each anew."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._accepted = self._schema.empty_table()
        self._numbers = np.zeros(0, dtype=np.int64)  # of the rows that wait, among all accepted

    def _step(self, new: pa.Table, times: Any, reached: Any) -> Any:
        first = self._accepted.num_rows
        self._numbers = np.append(self._numbers, np.arange(first, first + new.num_rows))
        self._accepted = pa.concat_tables([self._accepted, new])
        return super()._step(new, times, reached)

    def _answer(
        self, waiting: pa.Table, due: Any, new: pa.Table | None, watermark: int | None
    ) -> tuple[pa.Table, dict[int, str]]:
        from ..testing.queries import answers_by_event, rows_of

        assert self._plan is not None
        found = dict(answers_by_event(self._query, rows_of(self._accepted)))
        rows = [found[n] for n in self._numbers[due].tolist()]
        made = waiting.filter(pa.array(due)).replace_schema_metadata(None)
        failed: dict[int, str] = {}
        for name, values in columns_of_rows(self._plan, rows, failed).items():
            made = made.append_column(name, values)
        when = times_of(one_array(waiting.column(self._query.time)))[0]
        if watermark is not None:
            self._numbers = self._numbers[when >= watermark]
        return made, failed


class OracleSessions(SessionStream):
    """A stream of sessions that keeps all events, and folds each session anew."""

    def _set_up(self, schema: pa.Schema) -> None:
        super()._set_up(schema)
        self._accepted = self._schema.empty_table()

    def _step(self, new: pa.Table, times: Any, reached: Any) -> Any:
        from ..testing.queries import answers

        assert self._plan is not None
        before = self._progress.watermark
        self._accepted = pa.concat_tables([self._accepted, new])
        rows = answers(self._query, self._accepted)
        due = [
            row
            for row in rows
            if reached[1] is not None
            and row["window_end"] < reached[1]
            and (before is None or row["window_end"] >= before)
        ]
        self._progress.stream_time, self._progress.watermark = reached
        self._progress.emitted += len(due)
        failed: dict[int, str] = {}
        return as_given(table_of_rows(self._plan, due, failed), self._kind)
