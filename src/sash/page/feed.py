"""The reports of a running job, for readers such as the page.

A job calls `state`, `batch`, `emitted`, `late`, `note`, and at last `ended` or `failed`, from any
thread.  Readers wait for changes and fetch the changes since the version that they have seen.  A
feed holds the last 600 micro-batches and running totals, so its memory does not grow with the job.

Rows for the heat map wait until a reader asks for the map, or until there are many.  The map then
adds all of them at once, in the reader's thread.  For a job of small micro-batches, this costs a
small part of adding each micro-batch by itself.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .heat import Heat

__all__ = ["KEPT", "REPLAY", "Batch", "Feed"]

#: The number of waiting rows at which the heat map adds them.
_MANY = 100_000

#: The number of micro-batches that a feed holds.
KEPT = 600
#: A watermark this many seconds behind the clock means a replay of old data.
REPLAY = 7 * 86_400


@dataclass(frozen=True)
class Batch:
    """The numbers of one micro-batch.  `at` is when it ended, in seconds since 1970, and `seconds`
    how long it took.  `rows` came in and `emitted` went out; `late` counts the late rows by reason.
    `watermark` is in microseconds.  `lateness` is the histogram of `Stream.delays` for this
    micro-batch: the number of rows in order, then the number in each bucket.  None means
    unknown."""

    at: float
    seconds: float
    rows: int
    watermark: int | None = None
    late: Mapping[str, int] = field(default_factory=dict)
    corrections: int = 0
    emitted: int = 0
    state_bytes: int | None = None
    lateness: Sequence[int] | None = None

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def lag(self) -> float | None:
        """The seconds that the watermark is behind the clock."""
        return None if self.watermark is None else self.at - self.watermark / 1e6


class Feed:
    """The reports of a job; see the module.  `allowance` is the allowed lateness in microseconds,
    and `heat` the heat map, if it can show the job's results.

    >>> feed = Feed("flights")
    >>> feed.batch(Batch(at=10.0, seconds=2.0, rows=50))
    >>> feed.ended()
    >>> made = feed.since(0)
    >>> made["state"], made["totals"]["rows"], made["batches"][0]["rate"]
    ('ended', 50, 25.0)
    """

    def __init__(
        self,
        job: str,
        *,
        explain: str = "",
        allowance: int | None = None,
        heat: Heat | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._job, self._explain, self._allowance, self._heat = job, explain, allowance, heat
        self._clock = clock
        self._changed = threading.Condition()
        self._version = 1
        self._state, self._since, self._message, self._note = "starting", clock(), "", ""
        self._batches: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._totals: dict[str, Any] = {"rows": 0, "emitted": 0, "corrections": 0, "batches": 0}
        self._late: Counter[str] = Counter()
        self._lateness: list[int] | None = None
        self._last: Batch | None = None
        self._rate: float | None = None  # of the last micro-batch that had rows
        self._heat_version = 0
        self._heat_lock = threading.Lock()  # take it before the condition, if you need both
        self._emitted: list[pa.Table] = []
        self._missed: list[pa.Table] = []
        self._waiting = 0  # number of rows that wait

    # methods for the job

    def state(self, what: str) -> None:
        """Report the state of the job: "running", "waiting for data", "stopping", ….  The feed
        ignores reports after the job has ended or failed."""
        with self._changed:
            if what != self._state and not self.over:
                self._state, self._since = what, self._clock()
                self._touch()

    def note(self, text: str) -> None:
        """Show a note about the job, such as what a window waits for; "" removes it."""
        with self._changed:
            if text != self._note:
                self._note = text
                self._touch()

    def batch(self, numbers: Batch) -> None:
        """Report a micro-batch."""
        with self._changed:
            self._last = numbers
            self._rate = numbers.rate if numbers.rows else self._rate
            self._totals["batches"] += 1
            for name in ("rows", "emitted", "corrections"):
                self._totals[name] += getattr(numbers, name)
            self._late.update({k: n for k, n in numbers.late.items() if n})
            if numbers.lateness is not None:
                before = self._lateness or [0] * len(numbers.lateness)
                self._lateness = [a + int(b) for a, b in zip(before, numbers.lateness, strict=True)]
            shown = {"at": numbers.at, "rows": numbers.rows, "rate": numbers.rate}
            self._touch()
            self._batches.append((self._version, shown | {"lag": numbers.lag}))

    def emitted(self, table: pa.Table) -> None:
        """Report rows of results: keys, `window_start`, values, and `revision` if windows have
        revisions.  Only the heat map shows them."""
        self._wait_for_heat(table, self._emitted)

    def late(self, table: pa.Table) -> None:
        """Report late rows, with `reason`, `missed_start` and `missed_end`.  Only the heat map
        shows them; `Batch.late` counts them."""
        self._wait_for_heat(table, self._missed)

    def _wait_for_heat(self, table: pa.Table, among: list[pa.Table]) -> None:
        if self._heat is None or not table.num_rows:
            return
        with self._changed:
            among.append(table)
            self._waiting += table.num_rows
            self._touch()
            self._heat_version = self._version
            many = self._waiting > _MANY
        if many:
            with self._heat_lock:
                self._heated()

    def _heated(self) -> Heat | None:
        """The heat map with all waiting rows added; the caller holds its lock."""
        if self._heat is not None:
            with self._changed:
                emitted, missed = list(self._emitted), list(self._missed)
                self._emitted.clear()
                self._missed.clear()
                self._waiting = 0
            if emitted:
                self._heat.add(pa.concat_tables(emitted))
            for table in missed:
                self._heat.add_late(table)
        return self._heat

    def ended(self, message: str = "") -> None:
        """Report that the job has ended; a message may say that Ctrl-C stopped it."""
        self._end("ended", message)

    def failed(self, message: str) -> None:
        """Report that the job has failed, and why."""
        self._end("failed", message)

    def _end(self, state: str, message: str) -> None:
        with self._changed:
            if not self.over:
                self._state, self._since, self._message = state, self._clock(), message
                self._touch()

    def _touch(self) -> None:
        self._version += 1
        self._changed.notify_all()

    # methods for readers

    @property
    def over(self) -> bool:
        """True if the job has ended or failed."""
        return self._state in ("ended", "failed")

    def wait(self, version: int, timeout: float) -> bool:
        """Wait for a change after a version; returns False on timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._version > version, timeout)

    def wait_for_end(self, timeout: float) -> None:
        """Wait until the job is over, for so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: self.over, max(timeout, 0.0))

    def since(self, version: int) -> dict[str, Any]:
        """The contents of the feed, for JSON.  Micro-batches, the heat map and the explain text are
        included only if they are newer than a version; version 0 gets everything."""
        with self._changed:
            last = self._last
            made: dict[str, Any] = {
                "version": self._version,
                "job": self._job,
                "state": self._state,
                "since": self._since,
                "message": self._message,
                "note": self._note,
                "totals": dict(self._totals),
                "late": dict(self._late.most_common()),
                "lateness": self._lateness,
                "allowance": self._allowance,
                "rate": self._rate,
                "watermark": last and last.watermark,
                "lag": last and last.lag,
                "replay": last is not None and (last.lag or 0) > REPLAY,
                "state_bytes": last and last.state_bytes,
                "batches": [shown for seen, shown in self._batches if seen > version],
            }
            if version == 0:
                made["explain"] = self._explain
            new = version == 0 or self._heat_version > version
        if new:
            with self._heat_lock:
                heat = self._heated()
                if heat is not None:
                    made["heat"] = heat.shown()
        return made

    def cell(self, key: int, start: int) -> dict[str, Any] | None:
        """The revisions of a cell of the heat map, and the late rows that missed it."""
        with self._heat_lock:
            heat = self._heated()
            return None if heat is None else heat.cell(key, start)
