"""Show a run, live, on a terminal."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .check import Ready
from .report import Report, State, Tally, Watcher, bytes_text, lag_text, span_text, time_text

__all__ = ["Screen", "rows_table"]

_COLOURS: dict[State, str] = {
    "starting": "yellow",
    "running": "green",
    "waiting": "cyan",
    "stopping": "yellow",
    "ended": "green",
    "stopped": "yellow",
    "failed": "red",
}
SHOWN_ROWS = 20


class Screen(Watcher):
    """A block of numbers, redrawn after each batch."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tallies: dict[str, Tally] = {}
        self._state: State = "starting"
        self._start = self._since = time.monotonic()
        self._why = ""
        self._batches: int | None = None
        self._job = ""
        self._live = Live(
            console=console,
            get_renderable=self._drawn,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def started(self, ready: Ready, batches: int | None) -> None:
        self._tallies = {name: Tally() for name in ready.queries}
        self._batches, self._job = batches, ready.job.name
        self._live.start()

    def batch(self, report: Report) -> None:
        self._tallies.setdefault(report.query, Tally()).add(report)

    def state(self, state: State, why: str = "") -> None:
        if state != self._state:
            self._state, self._since = state, time.monotonic()
        self._why = why if state != "failed" else ""  # an error follows

    def close(self) -> None:
        self._live.stop()
        self._console.print(self._drawn())

    def _drawn(self) -> RenderableType:
        parts: list[RenderableType] = [self._head()]
        if self._batches:
            done = max((t.batches for t in self._tallies.values()), default=0)
            parts.append(self._bar(min(done, self._batches)))
        parts.append(self._numbers())
        if self._why:
            parts.append(Text(self._why, style="yellow"))
        return Group(*parts)

    def _head(self) -> Text:
        over = self._state in ("ended", "stopped", "failed")
        since = span_text(time.monotonic() - (self._start if over else self._since))
        head = Text(f"{self._job}  ", style="bold").append(self._state, _COLOURS[self._state])
        return head.append(f" {'after' if over else 'for'} {since}", "dim")

    def _bar(self, done: int) -> Table:
        row = Table.grid(padding=(0, 1))
        assert self._batches is not None
        row.add_row(
            ProgressBar(self._batches, done, width=30), f"{done:,} of {self._batches:,} files"
        )
        return row

    def _numbers(self) -> Table:
        """The table of numbers, with a column for each query."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        several = len(self._tallies) > 1
        if several:
            table.add_row("", *(Text(name, style="bold") for name in self._tallies))
        now = time.time()
        for label, text in _LABELS.items():
            table.add_row(label, *(text(tally, now) for tally in self._tallies.values()))
        return table


def _late(tally: Tally, now: float) -> str:
    if not tally.late:
        return "0"
    return "\n".join(f"{n:,}  {why}" for why, n in tally.late.most_common(4))


def _last(tally: Tally, name: str) -> Any:
    return None if tally.last is None else getattr(tally.last, name)


_LABELS: dict[str, Any] = {
    "rows in": lambda t, now: f"{t.rows_in:,}",
    "rows/s": lambda t, now: f"{t.rate:,.0f}",
    "watermark": lambda t, now: time_text(_last(t, "watermark")) or "none yet",
    "lag": lambda t, now: lag_text(_last(t, "watermark"), now),
    "late rows": _late,
    "corrections": lambda t, now: f"{t.corrections:,}",
    "state": lambda t, now: bytes_text(_last(t, "state_bytes")),
    "rows out": lambda t, now: f"{t.rows_out:,}",
}


def rows_table(title: str, rows: pa.Table) -> Table:
    """Format rows as a table for people."""
    shown = rows.slice(0, SHOWN_ROWS)
    made = Table(title=title, title_justify="left")
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        made.add_column(Text(field.name), justify="right" if number else "left")
    for row in shown.to_pylist():
        made.add_row(*(Text(_cell(value)) for value in row.values()))
    if rows.num_rows > SHOWN_ROWS:
        made.caption = f"{rows.num_rows - SHOWN_ROWS:,} more rows"
    return made


def _cell(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"start", "end"}:
        return f"{value['start']} – {value['end']}"
    return "" if value is None else str(value)
