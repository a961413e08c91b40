"""`sash demo`: run a job over a month of real flights on Spark, show its findings, and race Spark's
own `window()`."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from ..plot import results
from ..query import Query
from .check import Ready, prepare, query_of
from .demo_flights import write_demo
from .errors import RunError
from .java import need_java
from .launch import Opened, session, terminal
from .on_spark import run_on_spark, source
from .results import as_emitted, read_revisions
from .sinks import last_revisions
from .stopping import Stop, end_java

__all__ = ["PATIENCE", "demo"]

PATIENCE = 45.0  # seconds for Spark's own window()
_MARK = "flight_queries.py"
_HOUR = 3_600_000_000


def demo(folder: Path, opened: Opened, say: Console) -> None:
    """Run the demo in a folder; empty the folder first if an earlier demo created it."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARK).exists():
            raise RunError(f"{folder} holds something else than a demo; name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    reports = write_demo(folder)
    say.print(reports.text)
    month, week = prepare(folder / "month.toml"), prepare(folder / "week.toml")
    need_java()
    with terminal(folder / "demo.log") as (out, stop), contextlib.ExitStack() as stack:
        say.print(f"\n[bold]sash run {folder}/month.toml[/]: live, a window every minute\n")
        with opened(out) as (watch, show):
            watch.started(month, None)
            with _warming(folder / "month.toml"):
                spark = stack.enter_context(session("sash demo", stop, master="local[*]"))
            run_on_spark(spark, month, watch, show, stop)
        _findings(month, folder, say)
        say.print(
            f"\n[bold]sash run {folder}/week.toml[/]: a window every second, so that each "
            "flight is in 10,800\n"
        )
        begun = time.perf_counter()
        with opened(out) as (watch, show):
            watch.started(week, None)
            run_on_spark(spark, week, watch, show, stop)
        _race(spark, week, time.perf_counter() - begun, say, stop)
    say.print(f"\nThe jobs, their data and their results are in {folder}/.")


@contextlib.contextmanager
def _warming(job: Path) -> Iterator[None]:
    """Compile the kernels of a job in another process while Java starts; otherwise each worker
    would compile them in its first micro-batch."""
    command = [sys.executable, "-c", "from sash.cli import main; main()", "warm", str(job)]
    building = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
        building.wait()
    finally:
        building.kill()


def _findings(ready: Ready, folder: Path, say: Console) -> None:
    """Show the worst hours of each airport, the window with the most corrections, and a picture."""
    path = ready.job.sinks()["delays"]
    assert path is not None
    query = query_of(ready.queries["delays"])
    revisions = read_revisions(path)
    last = last_revisions(revisions, query)
    say.print(f"\n{last.num_rows:,} windows, {revisions.num_rows - last.num_rows:,} corrections.\n")
    table = Table("airport", "worst three hours", title="New York time, delays in minutes")
    for name in ("departures", "worst", "mean"):
        table.add_column(name, justify="right")
    table.add_column("whose")
    busy = last.filter(pc.greater_equal(last["departures"], 20))
    for airport in sorted(set(busy["origin"].to_pylist())):
        rows = busy.filter(pc.equal(busy["origin"], airport)).to_pylist()
        row = max(rows, key=lambda r: (r["mean"], r["window"]["start"]))
        table.add_row(
            airport,
            _when(row),
            str(row["departures"]),
            f"{row['worst']:.0f}",
            f"{row['mean']:.1f}",
            row["whose"],
        )
    say.print(table)
    _most_corrected(revisions, say)
    _picture(revisions, query, folder / "demo.png", say)


def _most_corrected(revisions: pa.Table, say: Console) -> None:
    """The revisions of the window that late events changed most."""
    columns = [revisions["origin"], pc.struct_field(revisions["window"], "start").cast("int64")]
    ids = list(zip(*(column.to_pylist() for column in columns), strict=True))
    counts = revisions["departures"].to_pylist()
    first: dict[Any, int] = {}
    change: dict[Any, int] = {}
    for one, count in zip(ids, counts, strict=True):
        change[one] = count - first.setdefault(one, count)
    most = max(change, key=lambda one: (change[one], one))
    shown = revisions.filter(pa.array([one == most for one in ids])).to_pylist()
    say.print(f"\n{shown[0]['origin']}, {_when(shown[0])}, as late reports came in:")
    for one in shown:
        say.print(
            f"  revision {one['revision']}: {one['departures']} departures, worst "
            f"{one['worst']:.0f} ({one['whose']}), mean {one['mean']:.1f}",
            highlight=False,
        )


def _when(row: dict[str, Any]) -> str:
    """A window as text, in New York's time."""
    zone = ZoneInfo("America/New_York")
    start, end = (row["window"][edge].astimezone(zone) for edge in ("start", "end"))
    return f"{start:%d %b %H:%M} to {end:%H:%M}"


def _picture(revisions: pa.Table, query: Query, file: Path, say: Console) -> None:
    """Draw the departures of the day with the most corrections."""
    ends = pc.struct_field(revisions["window"], "end")
    days = pc.floor_temporal(ends, unit="day").filter(pc.greater(revisions["revision"], 0))
    start = pc.mode(days.cast("int64"))[0]["mode"].as_py()
    place = pc.subtract(ends.cast("int64"), start)
    shown = pc.and_(pc.greater_equal(place, _HOUR * 10), pc.less(place, _HOUR * 28))
    try:
        figure = results(as_emitted(revisions.filter(shown)), query, "departures")
    except ModuleNotFoundError:
        say.print("\nFor a picture of it: pip install 'sash[plots]'", markup=False)
        return
    figure.savefig(file, dpi=120)
    say.print(f"\nDepartures on the day with the most corrections: {file}", soft_wrap=True)


def _race(spark: Any, ready: Ready, ours: float, say: Console, stop: Stop) -> None:
    """Run the same query with Spark's own window(), and compare the times."""
    path = ready.job.sinks()["delays"]
    assert path is not None
    assert ready.source.place is not None
    windows = spark.read.parquet(path).count()
    reports = spark.read.parquet(ready.source.place).count()
    say.print(f"\nThe same question to Spark's own window(), for {PATIENCE:.0f} seconds at most:\n")
    query = _native(spark, ready)
    begun = time.perf_counter()
    while query.isActive and time.perf_counter() - begun < PATIENCE and not stop.asked:
        time.sleep(0.2)
    theirs, ended = time.perf_counter() - begun, not query.isActive
    if ended and query.exception() is not None:
        raise query.exception()
    read = sum(progress.numInputRows for progress in query.recentProgress)
    table = Table("", "seconds", "reports", "")
    table.add_row("sash", f"{ours:.1f}", f"{reports:,}", f"{windows:,} windows closed")
    table.add_row(
        "native window()",
        f"{theirs:.1f}",
        f"{read:,}",
        "" if ended else f"stopped at {read / reports:.0%}",
    )
    say.print(table)
    if not ended:
        end_java()  # Spark cannot be stopped while it plans the query


def _native(spark: Any, ready: Ready) -> Any:
    """Start the same query with Spark's own window(); of equal delays the first in time counts."""
    from pyspark.sql import functions as F

    first = F.struct("delay", -F.unix_micros("departed"), -F.col("report"))
    out = (
        source(spark, ready)
        .groupBy("origin", F.window("departed", "3 hours", "1 second"))
        .agg(
            F.count("*").alias("departures"),
            F.max("delay").alias("worst"),
            F.avg("delay").alias("mean"),
            F.max_by("carrier", first).alias("whose"),
        )
    )
    return (
        out.writeStream.format("parquet")
        .option("path", str(ready.job.folder / "native-results"))
        .option("checkpointLocation", str(ready.job.folder / "native-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
