"""A stream of sessions: `Query.stream` of `sash.session`.

A session is emitted when it has ended before the watermark.  An event is late if its time and gap
end before the watermark too, or if it would join a session that is emitted.  Where the gap is in a
column, or sessions have a `max_size`, every event before the watermark is late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.folds import FoldFailed
from ..state.keyed import Keyed
from ..state.measures import gaps_of
from ..state.sessions import Closed, SessionState
from ..tables.arrow import as_given, as_time
from ..windows import Merging
from .event_stream import EventStream, Reached
from .failures import CombineFailed

__all__ = ["SessionStream"]

BEFORE = "its time is before the watermark"
ENDED = "its time and gap end before the watermark"
EMITTED = "the session that it would be in is emitted"
NO_GAP = "its gap is null, zero or less, so it is in no session"


class SessionStream(EventStream):
    """A stream of sessions; see `sash.Stream`.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.session(5), select={"sum": sash.sum("x")})
    >>> s = q.stream(lateness=2)
    >>> s.push([{"t": 3, "x": 1}, {"t": 8, "x": 2}, {"t": 17, "x": 4}]).to_pylist()
    [{'window_start': 3, 'window_end': 13, 'sum': 3}]
    >>> s.close()["sum"].to_pylist()
    [4]
    """

    def _set_up(self, schema: pa.Schema) -> None:
        plan = self._tied(schema)
        assert isinstance(self._query.window, Merging)
        self._window = self._query.window
        self._sessions = SessionState(plan)
        self._plan = plan

    def _cut(self, table: pa.Table) -> Any:
        return self._sessions.cut(table)

    def _unusable(self, given: pa.Table) -> dict[int, str]:
        """Rows that are in no session."""
        if isinstance(self._window.reach, str):
            none = np.flatnonzero(gaps_of(given, self._window.reach) <= 0)
            return dict.fromkeys(none.tolist(), NO_GAP)
        return {}

    def _closed_for(self, given: pa.Table, times: Array) -> list[tuple[Array, str]]:
        waits = self._sessions.waits
        ended = times + waits < self._progress.watermark
        return [(ended, ENDED if waits else BEFORE), (self._in_emitted(given, times), EMITTED)]

    def _in_emitted(self, given: pa.Table, times: Array) -> Array:
        """Which rows would be in sessions that are emitted."""
        return self._sessions.in_emitted(given, times)

    def _ends(self, times: Array) -> tuple[Array, Array]:
        reach = self._window.reach
        return times, times + (reach if isinstance(reach, int) else 0)

    def _step(self, new: pa.Table, times: Array, reached: Reached) -> tuple[Any, dict[int, str]]:
        parts = self._sessions.cut(new) if new.num_rows else None
        try:
            found = self._sessions.step(parts, reached[1])
        except FoldFailed as error:
            raise CombineFailed(
                f"combine raised {type(error.error).__name__}: {error.error}; the batch was not "
                "inserted, and the stream cannot be used any more: make a new one, or restore one "
                "from its bytes"
            ) from error
        made = self._closed_sessions(found)
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), found.failed

    def _closed_sessions(self, found: Closed) -> pa.Table:
        assert self._plan is not None
        columns = dict(zip(self._query.by, found.keys, strict=True))
        columns["window_start"] = as_time(found.starts, self._plan.time_type)
        columns["window_end"] = as_time(found.ends, self._plan.time_type)
        return pa.table(columns | {name: found.values[name] for name in self._query.select})

    def _held(self) -> list[Keyed]:
        return self._sessions.held()

    def _hold(self, tables: list[pa.Table]) -> None:
        self._sessions.hold(tables)

    def _shapes(self) -> list[str]:
        return self._sessions.shapes

    def _size(self) -> dict[str, int]:
        return self._sessions.size()

    def _dump(self) -> list[bytes]:
        return self._sessions.dump()

    def _load(self, blobs: list[bytes]) -> None:
        self._sessions.load(blobs)

    def _check(self) -> None:
        """There is nothing to check."""
