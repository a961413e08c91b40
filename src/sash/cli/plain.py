"""Report a run to a file or a pipe: a line now and then, or one JSON object per batch."""

from __future__ import annotations

import json
import sys
import time
from typing import TextIO

from .check import Ready
from .report import Report, State, Tally, Watcher, lag_text, time_text

__all__ = ["JsonLines", "PlainLines", "summary"]

EVERY = 10.0  # seconds


class PlainLines(Watcher):
    """Writes a line for each query every ten seconds."""

    def __init__(self, out: TextIO | None = None, every: float = EVERY) -> None:
        self._out, self._every = out or sys.stderr, every
        self._tallies: dict[str, Tally] = {}
        self._said = time.monotonic()
        self._said_why = self._said
        self._state: State = "starting"

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def started(self, ready: Ready, batches: int | None) -> None:
        self._tallies = {name: Tally() for name in ready.queries}
        what = "" if batches is None else f", {batches:,} files"
        self._say(f"{ready.job.name}: started{what}")

    def batch(self, report: Report) -> None:
        self._tallies.setdefault(report.query, Tally()).add(report)
        if time.monotonic() - self._said >= self._every:
            self._said = time.monotonic()
            for name, tally in self._tallies.items():
                if tally.last is not None:
                    self._say(self._line(name, tally))

    def _line(self, name: str, tally: Tally) -> str:
        last = tally.last
        assert last is not None
        who = f"{name}: " if len(self._tallies) > 1 else ""
        return (
            f"{who}batch {last.batch}, {summary(tally)}, {tally.rate:,.0f} rows/s, watermark "
            f"{time_text(last.watermark) or 'none yet'}, lag {lag_text(last.watermark, last.at)}"
        )

    def state(self, state: State, why: str = "") -> None:
        now = time.monotonic()
        changed = state != self._state
        self._state = state
        if changed and state in ("running", "waiting") and not why:
            return
        if changed or (why and now - self._said_why >= self._every):
            self._said_why = now
            shown = why if state != "failed" else ""  # an error follows
            self._say(f"{state}{': ' if shown else ''}{shown}")

    def close(self) -> None:
        for name, tally in self._tallies.items():
            self._say(f"{name}: {summary(tally)}")


class JsonLines(Watcher):
    """Writes one JSON object per batch."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def batch(self, report: Report) -> None:
        print(json.dumps(report.to_dict()), file=self._out, flush=True)


def summary(tally: Tally) -> str:
    """The numbers of a stream so far, in words."""
    parts = [f"{tally.rows_in:,} rows in", f"{tally.rows_out:,} rows out"]
    if tally.corrections:
        parts.append(f"{tally.corrections:,} of them corrections")
    late = sum(tally.late.values())
    if late:
        reasons = ", ".join(f"{n:,}: {why}" for why, n in tally.late.most_common(3))
        parts.append(f"{late:,} late ({reasons})")
    return ", ".join(parts)
