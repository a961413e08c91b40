"""The reports of a run, batch by batch, and the watchers that receive them.

A run calls its watchers: that of the terminal (`plain`, `screen`), and that of the page.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa

from .check import Ready

__all__ = ["Report", "State", "Tally", "Watcher", "Watchers", "lag_text", "time_text"]

State = Literal["starting", "running", "waiting", "stopping", "ended", "stopped", "failed"]

#: A watermark further behind the clock than this means a replay of old data.
REPLAY = 7 * 86_400


@dataclass(frozen=True)
class Report:
    """The report of one batch of one stream.  Times are microseconds since 1970."""

    query: str
    batch: int
    rows_in: int
    rows_out: int
    seconds: float
    corrections: int = 0
    late: dict[str, int] = field(default_factory=dict)  # rows by reason
    watermark: int | None = None
    state_bytes: int | None = None
    open_windows: int | None = None
    lateness: tuple[int, ...] | None = None  # rows by lateness, as in `Stream.delays`
    at: float = field(default_factory=time.time)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The report as data, for `--json`."""
        return {
            "query": self.query,
            "batch": self.batch,
            "at": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds"),
            "rows_in": self.rows_in,
            "rows_per_second": round(self.rate, 1),
            "rows_out": self.rows_out,
            "corrections": self.corrections,
            "late": self.late,
            "watermark": time_text(self.watermark),
            "lag_seconds": None if self.watermark is None else lag(self.watermark, self.at),
            "state_bytes": self.state_bytes,
            "open_windows": self.open_windows,
            "seconds": round(self.seconds, 3),
        }


@dataclass
class Tally:
    """The totals over the batches of a stream."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    corrections: int = 0
    seconds: float = 0.0
    late: Counter[str] = field(default_factory=Counter)
    last: Report | None = None
    rate: float = 0.0  # rows per second, of the last batch that had rows

    def add(self, report: Report) -> None:
        self.batches += 1
        self.rows_in += report.rows_in
        self.rows_out += report.rows_out
        self.corrections += report.corrections
        self.seconds += report.seconds
        self.late.update(report.late)
        self.last = report
        if report.rows_in:
            self.rate = report.rate


class Watcher:
    """Receives the reports of a run.  A run calls these methods; a watcher overrides those that it
    needs."""

    #: True if the watcher wants the rows, which on Spark costs an extra read.
    wants_rows = False

    def started(self, ready: Ready, batches: int | None) -> None:
        """The run begins; `batches` is the number of batches, if it is known."""

    def batch(self, report: Report) -> None:
        """A batch is done."""

    def rows(self, query: str, emitted: pa.Table | None, late: pa.Table | None) -> None:
        """A batch has emitted the first rows, and the second are late; they have the columns of a
        stream."""

    def state(self, state: State, why: str = "") -> None:
        """The run is now in another state."""

    def close(self) -> None:
        """The run is over."""


class Watchers(Watcher):
    """Passes reports on to several watchers."""

    def __init__(self, *watchers: Watcher) -> None:
        self._all = watchers
        self.wants_rows = any(watcher.wants_rows for watcher in watchers)

    def started(self, ready: Ready, batches: int | None) -> None:
        for watcher in self._all:
            watcher.started(ready, batches)

    def batch(self, report: Report) -> None:
        for watcher in self._all:
            watcher.batch(report)

    def rows(self, query: str, emitted: pa.Table | None, late: pa.Table | None) -> None:
        for watcher in self._all:
            watcher.rows(query, emitted, late)

    def state(self, state: State, why: str = "") -> None:
        for watcher in self._all:
            watcher.state(state, why)

    def close(self) -> None:
        for watcher in self._all:
            watcher.close()


def time_text(micros: int | None) -> str | None:
    """A time as people write it, in UTC.

    >>> time_text(1_700_000_000_000_000)
    '2023-11-14T22:13:20Z'
    """
    if micros is None:
        return None
    seconds, rest = divmod(micros, 1_000_000)
    try:
        made = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{micros} µs"
    return f"{made}.{rest:06}".rstrip("0").rstrip(".") + "Z" if rest else f"{made}Z"


def lag(watermark: int, now: float) -> float:
    """The seconds that a watermark is behind the clock."""
    return round(now - watermark / 1e6, 3)


def lag_text(watermark: int | None, now: float) -> str:
    """A lag in words, or "replay" for old data.

    >>> lag_text(1_000_000, 91.0), lag_text(0, 1e9)
    ('1 min 30 s', 'replay')
    """
    if watermark is None:
        return "–"
    behind = lag(watermark, now)
    return "replay" if behind > REPLAY else span_text(behind)


def span_text(seconds: float) -> str:
    """A length of time in words, with two units at most.

    >>> span_text(4.25), span_text(90_000), span_text(-5)
    ('4.2 s', '1 d 1 h', '-5.0 s')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if whole >= size and len(parts) < 2:
            count, whole = divmod(whole, size)
            parts.append(f"{count} {unit}")
    return " ".join(parts)


def bytes_text(count: int | None) -> str:
    """A number of bytes in words.

    >>> bytes_text(1_536), bytes_text(12)
    ('1.5 KiB', '12 B')
    """
    if count is None:
        return "–"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
