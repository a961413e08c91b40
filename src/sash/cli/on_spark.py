"""Runs a job on Spark: a streaming query for each query of the job, watched from here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..windows import Aligned, duration, duration_text
from .check import Ready, query_of
from .errors import Interrupted, RunError
from .job import AVAILABLE_NOW, is_remote
from .report import Watcher, span_text, time_text
from .results import as_emitted, as_late, read_batch
from .spark_reports import Reports
from .stopping import PATIENCE, Stop

__all__ = ["run_on_spark"]

POLL = 0.25  # seconds
STANDSTILL = 30.0  # seconds

Show = Callable[[str, Any], None]


@dataclass
class _Running:
    """A streaming query, and what it has reported."""

    name: str
    query: Any
    reports: Reports


def run_on_spark(
    spark: Any, ready: Ready, watch: Watcher, show: Show, stop: Stop, *, remote: bool = False
) -> None:
    """Run a job until it ends, fails, or Ctrl-C stops it."""
    running: list[_Running] = []
    try:
        for name in ready.queries:
            if not stop.asked:
                running.append(_start(spark, ready, name, watch, show, remote=remote))
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


def _start(
    spark: Any, ready: Ready, name: str, watch: Watcher, show: Show, *, remote: bool
) -> _Running:
    """Start a query of the job."""
    import sash.spark

    job, tables = ready.job, ready.job.tables
    late = job.late_sinks()[name]
    given = ready.queries[name]
    _pickled_by_value(given)
    out = sash.spark.aggregate(
        source(spark, ready),
        given,
        mode=ready.mode,
        late=late is not None,
        buckets=tables.run.buckets,
    ).drop("event_time")  # for operators that follow, and none does
    writer = _written(out, ready, name, watch, show, remote=remote)
    checkpoint = job.checkpoints()[name]
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    if tables.run.trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        millis = duration(tables.run.trigger) // 1000
        writer = writer.trigger(processingTime=f"{millis} milliseconds")
    return _Running(name, writer.queryName(f"{job.name} {name}").start(), Reports(name))


def source(spark: Any, ready: Ready) -> Any:
    """The events as a streaming DataFrame with a watermark."""
    tables, files = ready.job.tables.source, ready.source
    reader = spark.readStream.format(files.format)
    for key, value in tables.options.items():
        reader = reader.option(key, str(value).lower() if isinstance(value, bool) else str(value))
    if tables.ddl is not None:
        reader = reader.schema(tables.ddl)
    elif files.place is not None and files.format in ("parquet", "orc"):
        reader = reader.schema(spark.read.format(files.format).load(files.place).schema)
    rows = reader.load(files.place) if files.place is not None else reader.load()
    lateness = duration(tables.lateness, "the lateness")
    return rows.withWatermark(tables.time, f"{lateness} microseconds")


def _written(out: Any, ready: Ready, name: str, watch: Watcher, show: Show, *, remote: bool) -> Any:
    """The writer of results, and of late rows."""
    import sash.spark

    job, sink = ready.job, ready.job.tables.sink
    path, late = job.sinks()[name], job.late_sinks()[name]
    if path is not None:
        _check_free(path)
        write = sash.spark.upsert(path, late=late)
        if watch.wants_rows and not remote and not is_remote(path):
            write = _told(write, name, path, late, watch)
        return out.writeStream.foreachBatch(write)
    options = {key: str(value) for key, value in sink.options.items()}
    if sink.format == "console" and not remote:

        def print_rows(batch: Any, number: int) -> None:
            rows = batch.toArrow()
            if rows.num_rows:
                show(f"{name}, batch {number}", rows)

        return out.writeStream.foreachBatch(_parted(late, print_rows))
    assert sink.format is not None
    if late is None:
        return out.writeStream.format(sink.format).options(**options)

    def append(batch: Any, number: int) -> None:
        batch.write.format(sink.format).options(**options).mode("append").save()

    return out.writeStream.foreachBatch(_parted(late, append))


def _check_free(path: str) -> None:
    from pathlib import Path

    from .sinks import RESULTS

    if (Path(path) / RESULTS).exists():
        raise RunError(
            f"{path} holds {RESULTS} of a run with --local; give the job another path, or remove it"
        )


def _told(
    write: Callable[[Any, int], None], name: str, path: str, late: str | None, watch: Watcher
) -> Callable[[Any, int], None]:
    """A function for foreachBatch that shows a watcher what was written."""

    def tell(batch: Any, number: int) -> None:
        write(batch, number)
        missed = None if late is None else read_batch(late, number)
        watch.rows(name, as_emitted(read_batch(path, number)), as_late(missed))

    return tell


def _parted(late: str | None, write: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """A function for foreachBatch that writes results, and late rows to a path."""

    def part(batch: Any, number: int) -> None:
        import sash.spark
        from sash.spark.sink import overwrite

        if late is None:
            write(batch, number)
            return
        rows = batch.persist()
        try:
            results, missed = sash.spark.split(rows)
            overwrite(missed, late, number)
            write(results, number)
        finally:
            rows.unpersist()

    return part


def _pickled_by_value(given: Any) -> None:
    """Send functions of the job's own modules to workers as they are: workers do not know the
    job's folder."""
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
    """Report micro-batches until all queries have ended, or one failed, or Ctrl-C."""
    pressed: float | None = None
    before: dict[str, int] = {}
    while any(one.query.isActive for one in running):
        for one in running:
            for report in one.reports.new(one.query):
                watch.batch(report)
        if any(one.query.exception() is not None for one in running):
            break
        if stop.asked:
            if pressed is None:
                pressed = time.monotonic()
                before = {one.name: one.reports.batches for one in running}
                watch.state(
                    "stopping", "waits for the micro-batch; press Ctrl-C again to stop at once"
                )
            done = all(
                one.reports.batches > before[one.name] or not _is_busy(one.query) for one in running
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
    """Which window waits for what, if a watermark stands still while windows are open."""
    said = []
    for one in running:
        still, watermark = one.reports.standstill(), one.reports.watermark
        if still < STANDSTILL or not one.reports.open_windows or watermark is None:
            continue
        window = query_of(ready.queries[one.name]).window
        lateness = duration(ready.job.tables.source.lateness)
        waits = (
            f"{one.name}: the watermark has stood at {time_text(watermark)} for {span_text(still)}"
        )
        if isinstance(window, Aligned):
            number = window.first(watermark)
            start, end = int(window.start(number)), int(window.end(number))
            allowed = (
                f" (its end and the lateness of {duration_text(lateness)})" if lateness else ""
            )
            waits += (
                f"; the window from {time_text(start)} to {time_text(end)} waits for an event of "
                f"{time_text(end + lateness)} or later{allowed}"
            )
        else:
            waits += f"; what is open waits for events later than {time_text(watermark + lateness)}"
        said.append(waits)
    return "\n".join(said)
