"""Spark against Spark: `python -m benchmarks.spark [--quick] [--only NAME]`, or `make bench-spark`.

A stream is read from files, one a micro-batch, and written to Parquet; the time of a micro-batch
is what Spark itself reports for it, the median of those after the first.  Ours and Spark's own
`window()` run in one session, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sash
import sash.spark

from .machine import describe
from .spark_as_of import as_of
from .spark_sizes import shared, sizes
from .spark_sql import sql
from .spark_ways import large_batches, micro_batches, ways

RESULTS = Path(__file__).parent / "results"
START = 1_700_000_000  # a second of the year 2023
KEYS, BATCHES, ROWS, SLOW_ROWS = 100, 5, 200_000, 20_000
TRICKLES = 12  # micro-batches of ten rows
CORES = 2
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = "org.apache.spark.sql.execution.streaming.state."


@dataclass(frozen=True)
class Line:
    """One figure, and its bound if it has one."""

    name: str
    value: float
    unit: str
    most: float | None = None

    def __str__(self) -> str:
        value = f"{self.value:.2f}" if self.value >= 0.1 else f"{self.value:.2g}"
        said = f"  {self.name:<66}{value:>9} {self.unit}"
        if self.most is None:
            return said
        verdict = "PASS" if self.value <= self.most else "MISS"
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

    def batches(self, out: DataFrame) -> list[float]:
        """Run a stream to its end; the seconds of each micro-batch that had rows."""
        self._number += 1
        folder = self.place / f"run-{self._number}"
        query = (
            out.writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        took = [
            p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress if p.numInputRows
        ]
        shutil.rmtree(folder)
        return took

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

    def natively(self, out: DataFrame) -> list[float]:
        """The micro-batches of a native query, with the state store in memory."""
        self.spark.conf.set(PROVIDER, STORES + "HDFSBackedStateStoreProvider")
        took = self.batches(out)
        self.spark.conf.set(PROVIDER, STORES + "RocksDBStateStoreProvider")
        return took


def later(took: list[float]) -> float:
    """The median of the micro-batches after the first."""
    return statistics.median(took[1:])


def streaming(bench: Bench, quick: bool) -> Iterator[Line]:
    """Against native window() as size/slide grows."""
    path = bench.source(ROWS, BATCHES)
    for _ in range(2):  # kernels into the cache, and Java's compiler has seen all
        bench.ours(60, path)
        bench.native(1, path)
    own: dict[int, float] = {}
    for ratio, most in ((1, 1.5), (60, 1 / 2), (300, 1 / 8), (3_600, None), (86_400, None)):
        took = bench.ours(ratio, path)
        own[ratio] = later(took)
        yield Line(f"sash, size/slide {ratio:,}, a micro-batch of {ROWS:,} rows", own[ratio], "s")
        if ratio == 60:
            first = took[0] - own[60]
            yield Line("  the first micro-batch with a warm cache takes more by", first, "s", 2)
        if most is not None and not (quick and ratio == 300):
            theirs = later(bench.native(ratio, path))
            yield Line(f"native, size/slide {ratio:,}", theirs, "s")
            yield Line(f"sash over native, size/slide {ratio:,}", own[ratio] / theirs, "×", most)
    yield Line("sash at 86,400 over sash at 60", own[86_400] / own[60], "×", 1.3)
    if not quick:
        theirs = later(bench.native(3_600, bench.source(SLOW_ROWS, 2)))
        yield Line(f"native, size/slide 3,600, a micro-batch of {SLOW_ROWS:,} rows", theirs, "s")
        ratio_of_rows = own[3_600] / (theirs * ROWS / SLOW_ROWS)
        yield Line("sash over native, size/slide 3,600, per row", ratio_of_rows, "×", 1 / 150)
    mine = sash.operator(
        identity=float("-inf"),
        lift=lambda x: x,
        combine=lambda a, b: a if a > b else b,
        commutative=True,
        name="mine",
    )
    bench.ours(60, path, worst=sash.aggregate(mine, "x"))
    user = later(bench.ours(60, path, worst=sash.aggregate(mine, "x")))
    yield Line("a user's operator over the built-in, size/slide 60", user / own[60], "×", 1.5)


def many_keys(bench: Bench, quick: bool) -> Iterator[Line]:
    """100,000 keys with 10 rows each a batch, against a plain operator that groups by key."""
    from .per_key import per_key

    keys = 10_000 if quick else 100_000
    path = bench.source(10 * keys, 3, keys)
    query = sash.Query(
        time="ts",
        by="k",
        window=sash.sliding("1 hour", "1 minute"),
        select={"worst": sash.max("x")},
    )
    ours = later(bench.batches(sash.spark.aggregate(bench.stream(path), query)))
    yield Line(f"sash, {keys:,} keys, 10 rows each a batch", 10 * keys / ours / 1000, "k rows/s")
    small = max(1_000, keys // 20)
    plain_path = bench.source(10 * small, 3, small)
    plain = later(bench.batches(per_key(bench.stream(plain_path), 3600, 60)))
    yield Line(
        f"one group per key, {small:,} keys, 10 rows each a batch",
        10 * small / plain / 1000,
        "k rows/s",
    )
    yield Line(
        "time per row, sash over one group per key", (ours / keys) / (plain / small), "×", 1 / 3
    )


def few_rows(bench: Bench, quick: bool) -> Iterator[Line]:
    """Ten rows a micro-batch, with few and with many keys in state, tumbling windows."""
    took: dict[tuple[str, int], float] = {}
    query = sash.Query(
        time="ts", by="k", window=sash.tumbling("1 hour"), select={"worst": sash.max("x")}
    )
    sizes = (1_000, 100_000 if quick else 1_000_000)
    for keys in (1_000, *sizes):  # the first once more, as a warm-up
        path = bench.trickle(keys)
        ours = bench.batches(sash.spark.aggregate(bench.stream(path), query))
        window = F.window("ts", "1 hour")
        native = bench.stream(path).groupBy("k", window).agg(F.max("x").alias("worst"))
        took["sash", keys] = statistics.median(ours[2:])
        took["native", keys] = statistics.median(bench.natively(native)[2:])
    for keys in sizes:
        for who in ("sash", "native"):
            yield Line(
                f"{who}, 10 rows a micro-batch, {keys:,} keys in state", took[who, keys], "s"
            )
    few, many = sizes
    ratio = took["sash", many] / took["sash", few]
    yield Line(f"sash, 10 rows, {many:,} keys over {few:,} keys", ratio, "×", 1.3)
    yield Line(
        f"sash over native, 10 rows, {many:,} keys", took["sash", many] / took["native", many], "×"
    )


def batch(bench: Bench, quick: bool) -> Iterator[Line]:
    """2 M rows of one key in batch: seconds, and how many cores were at work."""
    rows = 500_000 if quick else 2_000_000
    path = bench.source(rows, 1, 1)
    query = sash.Query(
        time="ts",
        by="k",
        window=sash.sliding("1 hour", "1 second"),
        select={"worst": sash.max("x")},
    )

    def work() -> None:
        frame = bench.spark.read.parquet(path)
        out = sash.spark.aggregate(frame, query)
        out.write.format("noop").mode("overwrite").save()

    work()
    started, before = time.perf_counter(), cpu_seconds()
    work()
    took, used = time.perf_counter() - started, cpu_seconds() - before
    yield Line(f"sash, batch, {rows:,} rows of one key, size/slide 3,600", took, "s")
    yield Line("  cores at work", used / took, "")


def cpu_seconds() -> float:
    """What this process and those it started have used: the driver, and Spark's workers."""
    total = 0.0
    tick = os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    stats = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        stats.append((int(name.split(" ", 1)[0]), int(fields[1]), fields))
    grew = True
    while grew:
        more = {pid for pid, parent, _ in stats if parent in family} - family
        family |= more
        grew = bool(more)
    for pid, _, fields in stats:
        if pid in family:
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


PARTS: dict[str, Callable[[Bench, bool], Iterator[Line]]] = {
    "streaming": streaming,
    "many-keys": many_keys,
    "few-rows": few_rows,
    "batch": batch,
    "ways": ways,
    "large-batches": large_batches,
    "micro-batches": micro_batches,
    "as-of": as_of,
    "sql": sql,
    "sizes": sizes,
    "shared": shared,
}


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--only", choices=PARTS, help="one part")
    given = parser.parse_args()
    machine = describe()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"load average {os.getloadavg()[0]:.1f} at the start")
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        spark = session(Path(folder))
        bench = Bench(spark, Path(folder))
        for name, part in PARTS.items():
            if given.only in (None, name):
                print(f"\n{name}: {part.__doc__}")
                for line in part(bench, given.quick):
                    lines.append(line)
                    print(line, flush=True)
        spark.stop()
    bounds = [line for line in lines if line.most is not None]
    held = sum(line.value <= line.most for line in bounds if line.most is not None)
    print(
        f"\n{held} of {len(bounds)} bounds hold; load average {os.getloadavg()[0]:.1f} at the end"
    )
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-spark.json"
    saved = {"machine": machine, "lines": [asdict(line) for line in lines]}
    target.write_text(json.dumps(saved, indent=1))
    print(f"written: benchmarks/results/{target.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
