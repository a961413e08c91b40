"""A stream of sessions: `Query.stream` of `sash.session`.

A session is closed when it has ended before the watermark.  An event is late if its time and gap
end before the watermark too, or if it would join a closed session.  If the gap is in a column, or
sessions have a `max_size`, every event before the watermark is late.

In final mode the stream emits a session when it is closed.  In live mode the stream emits it at
once, and again, with a higher `revision`, whenever an event joins it.  A session's key and start,
`window_start`, identify it; its end moves as it grows.  The events of a session may become part of
a session with another start, because an event came before it, or closed the gap to the session
before.  Then the stream withdraws the session: it emits the row again, with a higher revision, null
values, and `deleted` true.  A consumer keeps, for each key and `window_start`, the row with the
highest revision, and drops deleted rows.  It then has the sessions of the events so far, and after
`close` the sessions that final mode emits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.contract import StepFailed
from ..state.keyed import Keyed
from ..state.measures import gaps_of
from ..state.sessions import Sessions, SessionState
from ..tables.arrow import as_given, as_time, time_text
from ..windows import Merging
from .event_stream import EventStream, Judged, Reached

__all__ = ["SessionStream"]

BEFORE = "its time is before the watermark"
ENDED = "its time and gap end before the watermark"
EMITTED = "the session that it would be in is emitted"
CLOSED = "the session that it would be in is closed"
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
    >>> s = q.stream(lateness=9, mode="live")
    >>> s.push([{"t": 3, "x": 1}, {"t": 12, "x": 2}])["revision"].to_pylist()
    [0, 0]
    >>> for row in s.push({"t": 8, "x": 4}).to_pylist():  # closes the gap
    ...     print(row)
    {'window_start': 3, 'window_end': 17, 'sum': 7, 'revision': 1, 'deleted': False}
    {'window_start': 12, 'window_end': 17, 'sum': None, 'revision': 1, 'deleted': True}
    """

    def _set_up(self, schema: pa.Schema) -> None:
        plan = self._tied(schema)
        assert isinstance(self._query.window, Merging)
        self._window = self._query.window
        self._sessions = SessionState(plan, live=self._mode == "live")
        self._begin(plan)

    def _cut(self, table: pa.Table) -> Any:
        return self._sessions.cut(table)

    def _unusable(self, given: pa.Table) -> dict[int, str]:
        """Reasons for rows that are in no session."""
        if isinstance(self._window.reach, str):
            none = np.flatnonzero(gaps_of(given, self._window.reach) <= 0)
            return dict.fromkeys(none.tolist(), NO_GAP)
        return {}

    def _closed_for(self, given: pa.Table, times: Array) -> list[tuple[Array, str]]:
        waits = self._sessions.waits
        ended = times + waits < self._progress.watermark
        reason = EMITTED if self._mode == "final" else CLOSED
        return [(ended, ENDED if waits else BEFORE), (self._in_closed(given, times), reason)]

    def _in_closed(self, given: pa.Table, times: Array) -> Array:
        """A mask of the rows that would join closed sessions."""
        return self._sessions.in_closed(given, times)

    def _ends(self, times: Array) -> tuple[Array, Array]:
        reach = self._window.reach
        return times, times + (reach if isinstance(reach, int) else 0)

    def _step(self, judged: Judged, reached: Reached) -> tuple[Any, dict[int, str]]:
        parts = judged.cut if judged.new.num_rows else None
        try:
            found = self._sessions.step(parts, reached[1])
        except StepFailed as error:
            raise self._failure(error) from error
        made = self._table(found)
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), found.failed

    def _where(self, number: int) -> str:
        assert self._plan is not None
        at = as_time(np.array([number]), self._plan.time_type)[0]
        return f"in the session that has an event at {time_text(at)}"

    def _table(self, found: Sessions) -> pa.Table:
        assert self._plan is not None
        columns = dict(zip(self._query.by, found.keys, strict=True))
        columns["window_start"] = as_time(found.starts, self._plan.time_type)
        columns["window_end"] = as_time(found.ends, self._plan.time_type)
        columns |= {name: found.values[name] for name in self._query.select}
        if found.revisions is not None:
            columns |= {"revision": pa.array(found.revisions), "deleted": pa.array(found.deleted)}
        return pa.table(columns)

    def _held(self) -> list[Keyed]:
        return [self._sessions.held()]

    def _hold(self, tables: list[pa.Table]) -> None:
        self._sessions.hold(*tables)

    def _shapes(self) -> list[str]:
        return self._sessions.shapes

    def _size(self) -> dict[str, int]:
        return self._sessions.size()

    def _dump_state(self) -> list[bytes]:
        return self._sessions.dump()

    def _load_state(self, blobs: list[bytes]) -> None:
        self._sessions.load(blobs)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        self._check_parts()
        if self._plan is not None:
            self._sessions._check()
