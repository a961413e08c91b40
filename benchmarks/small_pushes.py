"""Small pushes: one event at a time, ten, a thousand rows, and questions to a stream that runs.

100 keys, windows of an hour that slide every minute, a thousand events a second, so that windows
fall due every 60,000 events.  A call pushes some batches, and asks once at its end, so that nothing
is left to be done.  Two of them have no bound: events a minute apart, of which each lets windows
fall due, and a question after each event.  Nor have those where events make the windows: each push
then works on rows that are emitted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import sash
from sash.query.signatures import Mode
from sash.windows import Window

from .workload import Bound, Contender, Workload

__all__ = ["small_pushes"]

KEYS = 100
APART = 1_000  # microseconds between two events
MINUTE = 60_000_000
SLIDING = sash.sliding("1 hour", "1 minute")


def small_pushes(*, quick: bool) -> list[Workload]:
    """All of them."""
    less = 10 if quick else 1
    fed = {
        "an event": (_Pushes(1, 20_000 // less), 15e-6),
        "ten events": (_Pushes(10, 2_000 // less), 20e-6),
        "a table of a thousand": (_Pushes(1_000, 200 // less), 150e-6),
        "a question": (_Pushes(1, 5_000 // less, pushes=False, asks=True), 10e-6),
        "an event by which windows fall due": (_Pushes(1, 500 // less, apart=MINUTE), None),
        "an event and a question": (_Pushes(1, 1_000 // less, asks=True), None),
    }
    made: dict[str, tuple[Window, Mode]] = {
        "trailing 1 hour, final": (sash.trailing("1 hour"), "final"),
        "trailing 1 hour, live": (sash.trailing("1 hour"), "live"),
        "the last 100 rows": (sash.rows(100), "final"),
        "sessions of a second, final": (sash.session("1 second"), "final"),
        "sessions of a second, live": (sash.session("1 second"), "live"),
    }
    by_events = {
        name: (_Pushes(1, 2_000 // less, window=window, mode=mode), None)
        for name, (window, mode) in made.items()
    }
    title = "a stream of count, max and mean, called often"
    return [
        _workload("small-pushes", title, fed),
        _workload("small-pushes-events", f"{title}: an event into windows of events", by_events),
    ]


def _workload(name: str, title: str, fed: Mapping[str, tuple[_Pushes, float | None]]) -> Workload:
    return Workload(
        name=name,
        title=title,
        unit="call",
        told=True,
        ours={
            which: Contender(
                run=calls.run,
                units=calls.count,
                bounds=() if limit is None else (Bound(limit, or_equal=True),),
            )
            for which, (calls, limit) in fed.items()
        },
        peers={},
    )


class _Pushes:
    """A stream, made when it is first needed, and what it is called with."""

    def __init__(
        self,
        rows: int,
        count: int,
        *,
        pushes: bool = True,
        asks: bool = False,
        apart: int = APART,
        window: Window = SLIDING,
        mode: Mode = "final",
    ) -> None:
        self.count, self._window, self._mode = count, window, mode
        # a short one where events make the windows, so that each push emits a row
        self._late = "1 minute" if window is SLIDING else "1 second"
        self._rows, self._pushes, self._asks, self._apart = rows, pushes, asks, apart
        self._source, self._row, self._stream = np.random.default_rng(0), 0, None

    def run(self) -> float:
        """Call the stream; the seconds that took."""
        if self._stream is None:
            self._stream = _query(self._window).stream(lateness=self._late, mode=self._mode)
            for _ in range(20):
                self._stream.push(self._batch(200))
        batches = [self._batch(self._rows) for _ in range(self.count)]
        push, ask = self._stream.push, self._stream.query
        start = time.perf_counter()
        for i, batch in enumerate(batches):
            if self._pushes:
                push(batch)
            if self._asks:
                ask(i % KEYS)
        if self._window is SLIDING:
            ask(0)
        return time.perf_counter() - start

    def _batch(self, rows: int) -> Any:
        times = (self._row + np.arange(rows)) * self._apart
        keys, values = self._source.integers(0, KEYS, rows), self._source.standard_normal(rows)
        self._row += rows
        if rows >= 1_000:
            return pa.table({"t": times, "key": keys, "x": values})
        columns = (times.tolist(), keys.tolist(), values.tolist())
        events = [{"t": t, "key": k, "x": x} for t, k, x in zip(*columns, strict=True)]
        return events[0] if rows == 1 else events


def _query(window: Window) -> sash.Query:
    return sash.Query(
        time="t",
        by=["key"],
        window=window,
        select={"n": sash.count(), "max": sash.max("x"), "mean": sash.mean("x")},
    )
