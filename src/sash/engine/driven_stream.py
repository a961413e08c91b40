"""Streams whose events drive the windows: `Query.stream` of `sash.rows`, `sash.delta`,
`sash.punctuated`, policies, `sash.window(keep=…, every=…)`, and of `sash.trailing` and
`sash.lifetime` if these exclude some of the events at an event's own time.

    batch ─→ judge ─→ rows that wait for the watermark ─→ a key's next events ─→ rows that fire

An event enters its key's window when the watermark has passed the event's time; events enter in
order of time, then of `tie` or arrival.  So the stream emits the rows that `Query.run` would return
over a table of all events that were not late.  Rows of one push come in the order in which their
events arrived.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.contract import StepFailed
from ..state.driven import DrivenState, Fired, Kept
from ..state.keyed import Keyed
from ..state.ticks import TickState
from ..tables.arrow import as_given, as_time, one_array, times_of, with_columns
from ..windows import Driven, Ticked
from .driven import with_nulls
from .event_stream import Judged, Reached
from .measured import unmeasurable
from .waiting import Waiting
from .waiting_stream import KeepingStream, WaitingStream

__all__ = ["DrivenStream", "TickStream"]


class _Kept(WaitingStream):
    """A stream that keeps a partial for each event."""

    _kept: Kept

    def _cut(self, table: pa.Table) -> Any:
        return self._kept.check_rows(table, operators=not self._sure)

    def _unusable(self, given: pa.Table) -> dict[int, str]:
        return unmeasurable(self._query.window, given)

    def _held(self) -> list[Keyed]:
        waiting = self._keyed_events(*self._waiting.all(), {}, due=True)
        return [waiting, self._kept.held()]

    def _hold(self, tables: list[pa.Table]) -> None:
        waiting, kept = tables
        self._hold_events(waiting)
        self._kept.hold(kept)

    def _shapes(self) -> list[str]:
        return self._kept.shapes

    def _size(self) -> dict[str, int]:
        size = self._kept.size()
        return size | {"bytes": size["bytes"] + self._waiting.nbytes}

    def _dump_state(self) -> list[bytes]:
        return [*self._waiting.dump(), *self._kept.dump()]

    def _load_state(self, blobs: list[bytes]) -> None:
        rows, numbers, *kept = blobs
        self._waiting.load([rows, numbers])
        self._kept.load(kept)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        self._check_parts()
        if self._plan is not None and self._store is None:
            self._kept._check()


class DrivenStream(_Kept, KeepingStream):
    """A stream whose events drive the windows; see `sash.Stream`.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.rows(2), select={"sum": sash.sum("x")})
    >>> s = q.stream(lateness=2)
    >>> s.push([{"t": 3, "x": 1}, {"t": 1, "x": 2}, {"t": 6, "x": 4}]).to_pylist()
    [{'t': 3, 'x': 1, 'window_start': 1, 'window_end': 3, 'sum': 3}, \
{'t': 1, 'x': 2, 'window_start': 1, 'window_end': 1, 'sum': 2}]
    >>> s.close()["sum"].to_pylist()
    [5]
    """

    def _make_states(self, plan: Plan) -> None:
        self._kept = self._driven = DrivenState(plan, stored=self._store is not None)

    def _step(self, judged: Judged, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert rows, and emit those that fire before the watermark."""
        rows, numbers = self._waiting.pass_by(judged.new, judged.when, reached[1])
        try:
            found = self._settled(rows, numbers, -(2**61) if reached[1] is None else reached[1])
        except StepFailed as error:
            raise self._failure(error) from error
        made = self._rows(rows, found)
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), found.failed

    def _settled(self, rows: pa.Table, numbers: Array, watermark: int) -> Fired:
        """The rows that fire among `rows`, which the watermark has passed now; `numbers` has their
        order of arrival."""
        return self._driven.step(rows, watermark)

    def _rows(self, rows: pa.Table, found: Fired) -> pa.Table:
        """The rows that fire: the columns of their events, the window and the values."""
        assert self._plan is not None
        assert isinstance(self._query.window, Driven)
        made = rows  # if all fire, they are in order
        if len(found.rows) < rows.num_rows:
            made = rows.take(pa.array(found.rows))
        own = times_of(one_array(made.column(self._query.time)))[0]
        start, end = self._query.window.spans(own)
        kind = self._plan.time_type
        if start is None:
            starts = with_nulls(as_time(found.oldest, kind), found.held)
        else:
            starts = as_time(start, kind)
        added = {"window_start": starts, "window_end": as_time(end, kind)}
        return with_columns(made, added | {n: found.values[n] for n in self._query.select})


class TickStream(_Kept):
    """A stream that emits at ticks of the clock the values of the kept events; see `sash.Stream`.

    >>> import sash
    >>> by_clock = sash.window(keep=sash.rows(2), every=10)
    >>> q = sash.Query(time="t", window=by_clock, select={"sum": sash.sum("x")})
    >>> s = q.stream(lateness=2)
    >>> s.push([{"t": 3, "x": 1}, {"t": 8, "x": 2}, {"t": 12, "x": 4}]).to_pylist()
    [{'window_start': 3, 'window_end': 10, 'sum': 3}]
    >>> s.close()["sum"].to_pylist()
    [6]
    """

    def _set_up(self, schema: pa.Schema) -> None:
        plan = self._tied(schema)
        self._kept = self._ticks = TickState(plan, stored=self._store is not None)
        self._waiting = Waiting(self._schema, self._query.time)
        self._begin(plan)

    def _ends(self, times: Array) -> tuple[Array, Array]:
        """A late event misses the first tick after it."""
        assert isinstance(self._query.window, Ticked)
        tick = self._query.window.tick
        return times, (times // tick + 1) * tick

    def _step(self, judged: Judged, reached: Reached) -> tuple[Any, dict[int, str]]:
        """Insert rows, and emit the ticks that the watermark has passed."""
        rows, _ = self._waiting.pass_by(judged.new, judged.when, reached[1])
        made, failed = self._settled(rows, -(2**61) if reached[1] is None else reached[1])
        at = self._progress
        at.stream_time, at.watermark = reached
        at.emitted += made.num_rows
        return as_given(made, self._kind), failed

    def _settled(self, rows: pa.Table, watermark: int) -> tuple[pa.Table, dict[int, str]]:
        """The table of ticks up to the watermark, after inserting `rows`, which the watermark has
        passed now."""
        assert self._plan is not None
        try:
            found = self._ticks.step(rows, watermark)
        except StepFailed as error:
            raise self._failure(error) from error
        columns = dict(zip(self._query.by, found.keys, strict=True))
        columns["window_start"] = as_time(found.starts, self._plan.time_type)
        columns["window_end"] = as_time(found.ends, self._plan.time_type)
        columns |= {name: found.values[name] for name in self._query.select}
        return pa.table(columns), found.failed
