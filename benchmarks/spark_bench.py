"""What the benchmarks on Spark have in common: a session, inputs, runs, and figures.

A stream is read from files, one a micro-batch, and written to Parquet; the time of a micro-batch
is what Spark itself reports for it, the median of those after the first.  Ours and Spark's own
`window()` run in one session, one after the other.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sash
import sash.spark

START = 1_700_000_000  # a second of the year 2023
KEYS, BATCHES, ROWS, SLOW_ROWS = 100, 5, 200_000, 20_000
TRICKLES = 12  # micro-batches of ten rows
CORES = 2
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = "org.apache.spark.sql.execution.streaming.state."


@dataclass(frozen=True)
class Line:
    """One figure, and its bound if it has one; without a value it was not measured, for a reason
    that stands in place of its unit.  Lines with a cell, a row and a column, make a table."""

    name: str
    value: float | None
    unit: str
    most: float | None = None
    cell: tuple[str, str] | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the bound holds, None if there is none or nothing was measured."""
        if self.value is None or self.most is None:
            return None
        return self.value <= self.most

    def __str__(self) -> str:
        if self.value is None:
            return f"  {self.name:<66}{'':>9} {self.unit}"
        value = f"{self.value:.2f}" if self.value >= 0.1 else f"{self.value:.2g}"
        said = f"  {self.name:<66}{value:>9} {self.unit}"
        if self.most is None:
            return said
        verdict = "PASS" if self.holds else "MISS"
        return f"{said:<88} (≤ {self.most:.3g} {verdict})"


class Bench:
    """Inputs, runs and what they took."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.place = place
        self._number = 0

    def source(self, rows: int, batches: int, keys: int = KEYS) -> str:
        """Files of one row per key and second, one file a micro-batch."""
        path = self.place / f"in-{rows}-{batches}-{keys}"
        if not path.exists():
            for batch in range(batches):
                start = batch * rows
                at = F.col("id")
                second = F.floor(at / keys) + F.lit(START)
                frame = self.spark.range(start, start + rows, numPartitions=1).select(
                    (at % keys).cast("int").alias("k"),
                    F.timestamp_seconds(second).alias("ts"),
                    F.rand(batch).alias("x"),
                )
                path.mkdir(exist_ok=True)
                self.move(frame, path / f"{batch:04}.parquet", batch)
        return str(path)

    def trickle(self, keys: int) -> str:
        """A file with one row for each key, and then files of ten rows each, of ten keys."""
        path = self.place / f"trickle-{keys}"
        if not path.exists():
            path.mkdir()
            for batch in range(1 + TRICKLES):
                at = F.col("id")
                key = at if batch == 0 else at * (keys // 10) + batch
                frame = self.spark.range(0, 10 if batch else keys, numPartitions=1).select(
                    key.cast("int").alias("k"),
                    F.timestamp_seconds(F.lit(START - START % 3600 + batch)).alias("ts"),
                    F.rand(batch).alias("x"),
                )
                self.move(frame, path / f"{batch:04}.parquet", batch)
        return str(path)

    def move(self, frame: DataFrame, target: Path, batch: int) -> None:
        """Write a frame of one partition to a file; files are read in the order of batches."""
        part = self.place / "part"
        frame.write.mode("overwrite").parquet(str(part))
        (file,) = part.glob("*.parquet")
        shutil.move(str(file), target)
        os.utime(target, (10**9 + batch, 10**9 + batch))

    def stream(self, path: str) -> DataFrame:
        reader = self.spark.readStream.schema("k int, ts timestamp, x double")
        return reader.option("maxFilesPerTrigger", 1).parquet(path).withWatermark("ts", "5 seconds")

    def batches(
        self, out: DataFrame, limit: float | None = None, kept: Path | None = None
    ) -> list[float]:
        """Run a stream to its end, or until so many seconds have passed; the seconds of each
        micro-batch that had rows.  With `kept`, that folder keeps the rows, in `out`."""
        self._number += 1
        folder = kept or self.place / f"run-{self._number}"
        query = (
            out.writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(limit)
        query.stop()
        took = [
            p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress if p.numInputRows
        ]
        if kept is None:
            shutil.rmtree(folder)
        return took

    def written(self, kept: Path, batch: int) -> DataFrame:
        """The rows that a micro-batch wrote, in a partition for each of its tasks, in memory."""
        _, *files = (kept / "out" / "_spark_metadata" / str(batch)).read_text().splitlines()
        rows = self.spark.read.parquet(*(json.loads(file)["path"] for file in files))
        return rows.localCheckpoint()

    def ours(self, ratio: int, path: str, **select: Any) -> list[float]:
        """Our micro-batches at a size/slide."""
        chosen = select or {"worst": sash.max("x")}
        query = sash.Query(
            time="ts", by="k", window=sash.sliding(f"{ratio} seconds", "1 second"), select=chosen
        )
        return self.batches(sash.spark.aggregate(self.stream(path), query))

    def native(self, ratio: int, path: str) -> list[float]:
        """Those of Spark's own window(), with the state store in memory, which serves it better."""
        window = F.window("ts", f"{ratio} seconds", "1 second")
        return self.natively(self.stream(path).groupBy("k", window).agg(F.max("x").alias("worst")))

    def natively(self, out: DataFrame, limit: float | None = None) -> list[float]:
        """The micro-batches of a native query, with the state store in memory."""
        self.spark.conf.set(PROVIDER, STORES + "HDFSBackedStateStoreProvider")
        took = self.batches(out, limit)
        self.spark.conf.set(PROVIDER, STORES + "RocksDBStateStoreProvider")
        return took

    def within(self, limit: float, frame: Callable[[], DataFrame]) -> float | None:
        """The seconds of one run of a table's whole result; None if they are more than these."""
        spark = self.spark.sparkContext
        spark.setJobGroup("limited", "under a time limit", interruptOnCancel=True)
        timer = threading.Timer(limit, spark.cancelJobGroup, ["limited"])
        timer.start()
        try:
            return took(frame, 1)
        except PySparkException:
            if timer.is_alive():  # it failed for another reason
                raise
            return None
        finally:
            timer.cancel()
            timer.join()
            spark._jsc.clearJobGroup()


def later(took: list[float]) -> float:
    """The median of the micro-batches after the first."""
    return statistics.median(took[1:])


def took(frame: Callable[[], DataFrame], times: int = 2) -> float:
    """The best of some runs, of the whole result."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        frame().write.format("noop").mode("overwrite").save()
        best = min(best, time.perf_counter() - start)
    return best


def family() -> dict[int, int]:
    """This process and those it started, down to Spark's workers, each with its parent."""
    parents = {pid: int(fields[1]) for pid, fields in _processes()}
    members = {os.getpid(): os.getppid()}
    while more := {p: q for p, q in parents.items() if q in members and p not in members}:
        members |= more
    return members


def cpu_seconds() -> float:
    """What this process and those it started have used: the driver, and Spark's workers."""
    members, tick = family(), os.sysconf("SC_CLK_TCK")
    used = [int(fields[11]) + int(fields[12]) for pid, fields in _processes() if pid in members]
    return sum(used) / tick


def _processes() -> Iterator[tuple[int, list[str]]]:
    """The numbers of all processes, and of each what the system says behind its name."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().rsplit(")", 1)
        except OSError:  # it has ended
            continue
        yield int(name.split(" ", 1)[0]), rest.split()


def session(place: Path) -> SparkSession:
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.driver.memory", "6g")
        .config(PROVIDER, STORES + "RocksDBStateStoreProvider")
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.python.unix.domain.socket.enabled", "true")  # as sash.spark.session has it
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark
