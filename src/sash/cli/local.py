"""Run a job in this process: one file per batch, in order of name, to the end."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..query import Query
from ..query.plan import make_plan
from .check import Ready, arrives_by_tie
from .errors import RunError
from .read import read
from .report import Report, Watcher
from .sinks import (
    LATE,
    RESULTS,
    ConsoleSink,
    FolderSink,
    Kept,
    Sink,
    late_as_on_spark,
    result_as_on_spark,
)
from .together import views

__all__ = ["run_local"]

Show = Callable[[str, pa.Table], None]


def run_local(ready: Ready, watch: Watcher, show: Show) -> None:
    """Run a job to the end.  After an error or Ctrl-C the sink is as it was before."""
    ties = {name: _Ties.of(ready, query) for name, query in ready.queries.items()}
    if len(ready.queries) > 1 and not any(ties.values()):
        streams: dict[str, Any] = dict(views(ready))
    else:
        streams = {name: _stream(ready, name, ties[name]) for name in ready.queries}
    sides = [_Side(ready, name, streams[name], ties[name], show) for name in ready.queries]
    options = dict(ready.job.tables.source.options)
    watch.started(ready, len(ready.source.files))
    try:
        with _noted() as check:
            for number, file in enumerate(ready.source.files):
                table = read(file, ready.source, options)
                for side in sides:
                    side.push(number, table, watch)
                watch.state("running")
                check()
            for side in sides:
                side.close(len(ready.source.files), watch)
            check()
        with _uninterrupted():
            for side in sides:
                side.finish()
    except BaseException:
        for side in sides:
            side.drop()
        raise


@contextlib.contextmanager
def _noted() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C interrupt, and remember it.  Python drops an interrupt that comes during a
    finalizer; the function that this yields then raises it again."""
    pressed = False

    def press(*_: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, press)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C while the result files move to their places, so that all of them do."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stream(ready: Ready, name: str, tie: _Ties | None) -> Any:
    """The stream of a query that shares with no other."""
    given, tables = ready.queries[name], ready.job.tables
    if tie is not None:
        given = dataclasses.replace(given, tie=None)
    return given.stream(
        lateness=tables.source.lateness,
        mode=ready.mode,
        schema=ready.source.schema,
        keep_late=None,
    )


class _Side:
    """One query of the job: its stream, and where its rows go."""

    def __init__(self, ready: Ready, name: str, stream: Any, tie: _Ties | None, show: Show) -> None:
        job, given = ready.job, ready.queries[name]
        self._name, self._mode = name, ready.mode
        self._given, self._stream, self._tie = given, stream, tie
        self._plain = isinstance(given, Query)  # else the SQL lists the columns
        path, late = job.sinks()[name], job.late_sinks()[name]
        sink: Sink = ConsoleSink(name, show) if path is None else FolderSink(path, RESULTS)
        self._sink = Kept(sink, given) if self._mode == "live" else sink
        self._late_sink = None if late is None else FolderSink(late, LATE)
        self._before = 0
        self._watermark: int | None = None
        self._delays = [int(count) for count in self._stream.delays]

    def push(self, number: int, table: pa.Table, watch: Watcher) -> None:
        """Push a batch."""
        started = time.perf_counter()
        if self._tie is not None:
            table = self._tie.ordered(table)
        made = self._stream.push(table)
        self._watermark = self._stream.watermark
        self._done(number, made, started, watch, self._watermark)

    def close(self, number: int, watch: Watcher) -> None:
        """Close all windows; the watermark stays where the events left it."""
        self._done(number, self._stream.close(), time.perf_counter(), watch, self._watermark)

    def _done(
        self,
        number: int,
        made: pa.Table,
        started: float,
        watch: Watcher,
        watermark: int | None,
    ) -> None:
        late = self._stream.take_late()
        if watch.wants_rows:
            watch.rows(self._name, made, late)
        if self._plain and "window_start" in made.column_names:
            made = result_as_on_spark(made)
        if made.num_columns:
            self._sink.add(made)
        if self._late_sink is not None and late.num_rows:
            self._late_sink.add(late_as_on_spark(late, self._given))
        rows = self._stream.counts["rows"]
        revised = pc.sum(pc.greater(made["revision"], 0)).as_py() if self._mode == "live" else 0
        report = Report(
            query=self._name,
            batch=number,
            rows_in=rows - self._before,
            rows_out=made.num_rows,
            seconds=time.perf_counter() - started,
            corrections=revised or 0,
            late=dict(Counter(late["reason"].to_pylist())) if late.num_rows else {},
            watermark=watermark,
            state_bytes=self._stream.state_size()["bytes"],
            lateness=self._new_delays(),
        )
        self._before = rows
        watch.batch(report)

    def _new_delays(self) -> tuple[int, ...]:
        """The lateness counts of the last batch, if the stream has them."""
        before, self._delays = self._delays, [int(count) for count in self._stream.delays]
        return tuple(now - was for now, was in zip(self._delays, before, strict=True))

    def finish(self) -> None:
        self._sink.finish()
        if self._late_sink is not None:
            self._late_sink.finish()

    def drop(self) -> None:
        self._sink.drop()
        if self._late_sink is not None:
            self._late_sink.drop()


class _Ties:
    """Puts events of one time in the order of the `tie` column, although a stream uses order of
    arrival: sorts the rows within a file, and checks that files come in that order."""

    def __init__(self, column: str) -> None:
        self._column, self._last = column, None

    @classmethod
    def of(cls, ready: Ready, query: Any) -> _Ties | None:
        assert ready.source.schema is not None
        if not isinstance(query, Query) or query.tie is None:  # SQL has no tie
            return None
        plan = make_plan(query, ready.source.schema)
        return cls(query.tie) if arrives_by_tie(plan, ready.mode) else None

    def ordered(self, table: pa.Table) -> pa.Table:
        if not table.num_rows:
            return table
        found: Any = pc.min_max(table[self._column]).as_py()
        if self._last is not None and found["min"] is not None and found["min"] < self._last:
            raise RunError(
                f"events of one time go by {self._column!r}, and with --local it must rise from "
                f"file to file: {found['min']} comes after {self._last}; name the files in that "
                "order, or run on Spark"
            )
        self._last = found["max"] if found["max"] is not None else self._last
        return table.sort_by(self._column)
