"""Run a job on Spark and watch it: one streaming query for the queries of the job that can share
it, and one for each other query."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..windows import Aligned, duration, duration_text
from .check import Ready, query_of
from .errors import Interrupted
from .formats import options_on_spark
from .job import AVAILABLE_NOW
from .report import Watcher, span_text, time_text
from .spark_reports import Reports
from .stopping import PATIENCE, Stop
from .writing import Show, check_free, shares, written, written_together

__all__ = ["run_on_spark"]

POLL = 0.25  # seconds
STANDSTILL = 30.0  # seconds


@dataclass
class _Running:
    """A streaming query, for one or several queries of the job, and its reports."""

    names: tuple[str, ...]
    query: Any
    reports: Reports


def run_on_spark(
    spark: Any, ready: Ready, watch: Watcher, show: Show, stop: Stop, *, remote: bool = False
) -> None:
    """Run a job until it ends, fails, or Ctrl-C stops it."""
    running: list[_Running] = []
    try:
        for one in _started(spark, ready, watch, show, remote=remote):
            running.append(one)
            if stop.asked:
                break
        _watched(ready, running, watch, stop)
    finally:
        for one in running:
            if one.query.isActive:
                one.query.stop()
    for one in running:
        if one.query.exception() is not None and not stop.asked:
            raise one.query.exception()
    if stop.asked:
        raise Interrupted("stopped by Ctrl-C; the next run goes on from here")


def _started(
    spark: Any, ready: Ready, watch: Watcher, show: Show, *, remote: bool
) -> Iterator[_Running]:
    """Start the queries of a job; queries that can share a streaming query do."""
    from sash.spark.together import groups

    rows = source(spark, ready)
    for given in ready.queries.values():
        _pickled_by_value(given)
    found = groups(ready.queries) if shares(ready, remote=remote) else []
    shared: set[str] = set()
    for number, names in enumerate((names for names in found if len(names) > 1), 1):
        made = _together(rows, ready, names)
        if made is not None:
            shared.update(names)
            writer = written_together(made, ready, watch, show, remote=remote)
            yield _start(ready, names, writer, ready.job.shared_checkpoint(names, number))
    for name in ready.queries:
        if name not in shared:
            writer = written(_alone(rows, ready, name), ready, name, watch, show, remote=remote)
            yield _start(ready, (name,), writer, ready.job.checkpoints()[name])


def _together(rows: Any, ready: Ready, names: tuple[str, ...]) -> Any:
    """Run several queries in one stateful operator; None if they cannot share one, or if one of
    them cannot run.  In that case its own start raises the error."""
    from sash.spark.together import together

    tables = ready.job.tables
    try:
        return together(
            rows,
            {name: ready.queries[name] for name in names},
            mode=ready.mode,
            late=tables.sink.late is not None,
            buckets=tables.run.buckets,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _alone(rows: Any, ready: Ready, name: str) -> Any:
    """The results of a query that shares with no other."""
    import sash.spark

    tables = ready.job.tables
    return sash.spark.aggregate(
        rows,
        ready.queries[name],
        mode=ready.mode,
        late=tables.sink.late is not None,
        buckets=tables.run.buckets,
    ).drop("event_time")  # only operators that follow need it, and none does


def _start(ready: Ready, names: tuple[str, ...], writer: Any, checkpoint: str | None) -> _Running:
    """Start a streaming query."""
    job, trigger = ready.job, ready.job.tables.run.trigger
    for name in names:
        path = job.sinks()[name]
        if path is not None:
            check_free(path, checkpoint)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    if trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{duration(trigger) // 1000} milliseconds")
    called = f"{job.name} {', '.join(names)}"
    return _Running(names, writer.queryName(called).start(), Reports(names))


def source(spark: Any, ready: Ready) -> Any:
    """The events as a streaming DataFrame with a watermark."""
    tables, files = ready.job.tables.source, ready.source
    reader = spark.readStream.format(files.format)
    reader = reader.options(**options_on_spark(ready.job, tables.options))
    if tables.ddl is not None:
        reader = reader.schema(tables.ddl)
    elif files.place is not None and files.format in ("parquet", "orc"):
        reader = reader.schema(spark.read.format(files.format).load(files.place).schema)
    rows = reader.load(files.place) if files.place is not None else reader.load()
    lateness = duration(tables.lateness, "the lateness")
    return rows.withWatermark(tables.time, f"{lateness} microseconds")


def _pickled_by_value(given: Any) -> None:
    """Pickle functions of the job's own modules by value, because workers do not have the job's
    folder."""
    import sys

    from pyspark import cloudpickle

    for chosen in query_of(given).select.values():
        operator = chosen.operator
        for function in (operator.lift, operator.combine, operator.lower, operator.inverse):
            module = sys.modules.get(getattr(function, "__module__", None) or "")
            file = getattr(module, "__file__", None)
            if module is None or file is None or module.__name__.split(".")[0] == "sash":
                continue
            if "site-packages" not in file:
                cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _watched(ready: Ready, running: list[_Running], watch: Watcher, stop: Stop) -> None:
    """Report micro-batches until all queries have ended, one fails, or Ctrl-C comes."""
    pressed: float | None = None
    before: list[int] = []
    while any(one.query.isActive for one in running):
        for one in running:
            for report in one.reports.new(one.query):
                watch.batch(report)
        if any(one.query.exception() is not None for one in running):
            break
        if stop.asked:
            if pressed is None:
                pressed = time.monotonic()
                before = [one.reports.batches for one in running]
                watch.state(
                    "stopping", "waits for the micro-batch; press Ctrl-C again to stop at once"
                )
            done = all(
                one.reports.batches > count or not _is_busy(one.query)
                for one, count in zip(running, before, strict=True)
            )
            if done or time.monotonic() - pressed > PATIENCE:
                return
        elif any(one.reports.batches for one in running):
            busy = any(_is_busy(one.query) for one in running)
            watch.state("running" if busy else "waiting", _why_still(ready, running))
        else:
            watch.state("starting", "the first micro-batch, which builds kernels if they are new")
        time.sleep(POLL)
    for one in running:
        for report in one.reports.new(one.query):
            watch.batch(report)


def _is_busy(query: Any) -> bool:
    """True while a micro-batch runs."""
    return query.isActive and bool(query.status["isTriggerActive"])


def _why_still(ready: Ready, running: list[_Running]) -> str:
    """Say which window waits for what, if the watermark stands still while windows are open."""
    said = []
    for one in running:
        still, watermark = one.reports.standstill(), one.reports.watermark
        if still < STANDSTILL or watermark is None:
            continue
        for name in one.names:
            if one.reports.open_windows[name]:
                said.append(_waits(ready, name, watermark, still))
    return "\n".join(said)


def _waits(ready: Ready, name: str, watermark: int, still: float) -> str:
    """Say what the next window of a query waits for."""
    window = query_of(ready.queries[name]).window
    lateness = duration(ready.job.tables.source.lateness)
    waits = f"{name}: the watermark has stood at {time_text(watermark)} for {span_text(still)}"
    if not isinstance(window, Aligned):
        return (
            f"{waits}; what is open waits for events later than {time_text(watermark + lateness)}"
        )
    number = window.first(watermark)
    start, end = int(window.start(number)), int(window.end(number))
    allowed = f" (its end and the lateness of {duration_text(lateness)})" if lateness else ""
    return (
        f"{waits}; the window from {time_text(start)} to {time_text(end)} waits for an event of "
        f"{time_text(end + lateness)} or later{allowed}"
    )
