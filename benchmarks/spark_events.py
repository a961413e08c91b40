"""Windows that events make, on Spark: beside Spark's own RANGE frames, and beside `sliding`."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

import sash
import sash.spark

from .spark_bench import BATCHES, ROWS, START, Bench, Line, took

__all__ = ["event_windows"]

TREE = "spark.sql.window.segmentTree.enabled"
KEYS = 100
LIMIT = 150.0  # seconds that Spark has for its frames
BURST, PERIOD = 10, 40  # events of a session, a second each, and seconds from one to the next


def event_windows(bench: Bench, quick: bool) -> Iterator[Line]:
    """Trailing hours of 2 M rows (200,000 if quick) of 100 keys in batch, 3,600 rows in each,
    beside Spark's RANGE; streams of trailing windows and sessions beside sliding ones with as many
    results."""
    yield from trailing_batch(bench, 200_000 if quick else 2_000_000)
    rows = ROWS // 4 if quick else ROWS
    yield from trailing_stream(bench, rows)
    yield from session_stream(bench, rows)


def trailing_batch(bench: Bench, rows: int) -> Iterator[Line]:
    df = bench.spark.read.parquet(bench.source(rows, 1, KEYS))
    query = sash.Query(time="ts", by="k", window=sash.trailing("1 hour"), select=_chosen())
    some = df.where("k < 5")
    if _digest(sash.spark.aggregate(some, query)) != _digest(ranged(some)):
        raise AssertionError("sash and Spark's RANGE differ")
    ours = took(lambda: sash.spark.aggregate(df, query), 3)
    yield Line(f"sash, trailing hours of {rows:,} rows", ours, "s")
    for name, enabled, most in (
        ("a segment tree", "true", 1 / 1.5),
        ("no segment tree", "false", 1 / 12),
    ):
        bench.spark.conf.set(TREE, enabled)
        base = bench.within(LIMIT, lambda: ranged(df))
        bench.spark.conf.unset(TREE)
        if base is None:
            yield Line(f"Spark's RANGE, {name}", None, f"over the limit of {LIMIT:.0f} s")
            yield Line(f"sash over RANGE with {name}, at most", ours / LIMIT, "×", most)
        else:
            yield Line(f"Spark's RANGE, {name}", base, "s")
            yield Line(f"sash over RANGE with {name}", ours / base, "×", most)


def ranged(df: DataFrame) -> DataFrame:
    """The same by Spark's own frames."""
    hour = Window.partitionBy("k").orderBy(F.unix_micros("ts")).rangeBetween(-3_600_000_000, 0)
    return df.select(
        "*",
        F.count(F.lit(1)).over(hour).alias("n"),
        F.max("x").over(hour).alias("worst"),
        F.avg("x").over(hour).alias("mean"),
    )


def _digest(out: DataFrame) -> Any:
    row = F.xxhash64("k", "ts", "x", "n", "worst", F.round("mean", 6))
    return out.agg(F.count(F.lit(1)), F.bit_xor(row)).collect()


def _chosen() -> dict[str, sash.Aggregate]:
    return {"n": sash.count(), "worst": sash.max("x"), "mean": sash.mean("x")}


def trailing_stream(bench: Bench, rows: int) -> Iterator[Line]:
    """A key has a row each second, and so has a window that slides by one."""
    path = bench.source(rows, BATCHES, KEYS)
    windows = {
        "sliding": sash.sliding("1 hour", "1 second"),
        "trailing": sash.trailing("1 hour"),
    }
    yield from _beside(bench, path, rows, windows)


def session_stream(bench: Bench, rows: int) -> Iterator[Line]:
    """A session of ten rows every 40 seconds, and a window that slides by as many."""
    path = bench.place / f"bursts-{rows}"
    if not path.exists():
        path.mkdir()
        for batch in range(BATCHES):
            of_key = F.floor(F.col("id") / KEYS)
            second = F.floor(of_key / BURST) * PERIOD + of_key % BURST + F.lit(START)
            frame = bench.spark.range(batch * rows, (batch + 1) * rows, numPartitions=1).select(
                (F.col("id") % KEYS).cast("int").alias("k"),
                F.timestamp_seconds(second).alias("ts"),
                F.rand(batch).alias("x"),
            )
            bench.move(frame, path / f"{batch:04}.parquet", batch)
    windows = {
        "sliding": sash.sliding("1 hour", f"{PERIOD} seconds"),
        "session": sash.session("20 seconds"),
    }
    yield from _beside(bench, str(path), rows, windows)


def _beside(bench: Bench, path: str, rows: int, windows: dict[str, Any]) -> Iterator[Line]:
    """Two windows in turns; the bound is on the second over the first."""
    found: dict[str, list[float]] = {name: [] for name in windows}
    for turn in range(3):  # the first is a warm-up
        for name, window in windows.items():
            query = sash.Query(time="ts", by="k", window=window, select=_chosen())
            each = bench.batches(sash.spark.aggregate(bench.stream(path), query))
            if turn:
                found[name] += each[1:]
    took = {name: statistics.median(each) for name, each in found.items()}
    for name, seconds in took.items():
        yield Line(f"{windows[name]!r}, a micro-batch of {rows:,} rows", seconds, "s")
    first, second = took
    yield Line(f"time a row, {second} over {first}", took[second] / took[first], "×", 2)
