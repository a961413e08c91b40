"""Streams of windows that are aligned to the clock.

    batch → columns of the query's types → lifecycle, over a state → a table of results

An event that makes no window due is only noted, and inserted with a later batch: see `pending`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..query.plan import Plan
from ..state.memory import ForestState
from ..state.tiles import TileState
from ..tables.answers import warn_of
from ..tables.arrow import as_given, kind_of
from ..tables.intake import conform
from .asked import asked_range, refuse_at
from .lifecycle import Lifecycle, Outcome, latest
from .pending import MOST, Noted, Pending
from .results import result_table
from .stream import Stream
from .turns import in_turn

__all__ = ["AlignedStream"]


class AlignedStream(Stream):
    """A stream of a query whose windows are aligned to the clock."""

    _nothing: Any = None  # a result without rows

    def _set_up(self, schema: pa.Schema) -> None:
        plan = self._tied(schema)
        self._state = self._make_state(plan)
        self._lifecycle = Lifecycle(
            plan, mode=self._mode, lateness=self._lateness, early=self._early
        )
        only_time = self._only_time is not None
        self._pending = None if self._early else Pending.of(plan, self._schema, only_time=only_time)
        self._plan = plan

    def _make_state(self, plan: Plan) -> ForestState:
        if self._store is None:
            return ForestState(plan)
        state: Any = TileState(plan, self._store)  # it has no `dump`
        return state  # type: ignore[no-any-return]

    def _push(self, batch: Any) -> Any:
        pending = self._pending
        noted = None if pending is None else pending.read(batch)
        if pending is None or noted is None or noted.oldest < pending.low:
            self._settle()
            return self._as_pushed(self._taken_in(batch))
        self._check_open()
        self._kind = kind_of(batch)
        if noted.newest < pending.high and pending.count + noted.count < MOST:
            self._turns.changing = True
            pending.add(noted)
            return self._nothing
        return self._as_pushed(self._process_noted(noted))

    def _settle(self) -> None:
        if self._pending is not None and self._pending.count:
            self._process_noted()
            self._turns.changing = False

    def _process_noted(self, last: Noted | None = None) -> Any:
        """Insert the noted events, and more events behind them."""
        assert self._pending is not None
        table = self._pending.table(last)
        came = self._pending.came(self._progress.stream_time, last)
        outcome = self._process(table, came=came)
        self._add_late(table, outcome)
        self._pending.clear()
        return outcome

    def _taken_in(self, batch: Any) -> Any:
        """Insert a batch; None if it has no columns, and no batch before it had."""
        taken = self._taken(batch)
        if taken is None:
            return None
        table, reasons = taken
        given, misfits = conform(table, self._schema, self._only_time)
        outcome = self._process(given, reasons | misfits)
        self._add_late(table, outcome)
        return outcome

    def _add_late(self, table: pa.Table, outcome: Any) -> None:
        """Keep the late rows of a batch."""
        assert self._plan is not None
        self._late.add(table, outcome.late, self._query.aligned, self._plan.time_type)

    def _move(self, time: int) -> Any:
        if self._plan is not None:
            return self._process(watermark=time, stream_time=time)
        at = self._progress
        at.stream_time, at.watermark = latest(at.stream_time, time), latest(at.watermark, time)
        return None

    def _process(
        self, batch: pa.Table | None = None, refused: dict[int, str] | None = None, **times: Any
    ) -> Any:
        """Pass a batch or a move through the lifecycle.  The stream is in the middle of a change
        until the caller returns the result, or the lifecycle says that nothing has changed."""
        self._spill()
        self._turns.changing = True
        lifecycle, progress = self._lifecycle, self._progress
        try:
            outcome = lifecycle.process(progress, self._state, batch, refused, **times)
        except BaseException:
            self._turns.changing = not lifecycle.abandoned
            raise
        self._delays = self._delays + outcome.delays
        if self._pending is not None:
            self._pending.low, self._pending.high = lifecycle.quiet(progress)
        return outcome

    def _as_pushed(self, outcome: Any) -> Any:
        if self._plan is None:
            return as_given(pa.table({}), self._kind)
        found: Outcome = outcome
        table = result_table(self._plan, found.emitted, found.revisions)
        if self._nothing is None:
            self._nothing = table.schema.empty_table()
        made = as_given(table, self._kind)
        if found.emitted.failed:
            self._turns.changing = False  # the change is complete; a warning may raise
            warn_of(found.emitted.failed)
        return made

    @in_turn
    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The values over a range of times of one key; see `Stream.query`."""
        refuse_at(self._query, at)
        if self._plan is None:
            raise ValueError("nothing was pushed into this stream yet")
        first, end = asked_range(self._plan, self._progress.watermark, lo, hi)
        return self._state.ask(key if isinstance(key, tuple) else (key,), first, end)

    @in_turn
    def state_size(self) -> dict[str, int]:
        """How many keys and slices the stream holds, and how many bytes they take."""
        if self._plan is None:
            return {"keys": 0, "slices": 0, "bytes": 0}
        return self._state.size()

    def _dump_state(self) -> list[bytes]:
        return self._state.dump()

    def _load_state(self, blobs: list[bytes]) -> None:
        self._state.load(blobs)

    def _check(self) -> None:
        if self._plan is not None:
            self._state._check()
