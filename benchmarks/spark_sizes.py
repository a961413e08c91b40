"""Several sizes in one row, and many queries in one operator, on a stream of Spark."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import sash
import sash.spark

from .spark_bench import ROWS as MANY
from .spark_bench import Bench, Line, later

MINUTES = 8  # micro-batches
ROWS = 10  # of a key in each
BATCH = 60 // ROWS  # seconds from one row of a key to the next
START = 1_700_000_040 // 3600 * 3600


def minutes(bench: Bench, keys: int) -> str:
    """Files with ten rows of each key, a minute each."""
    path = bench.place / f"minutes-{keys}"
    if not path.exists():
        path.mkdir()
        for batch in range(MINUTES):
            at = F.col("id")
            second = F.floor(at / keys) * BATCH + F.lit(START + 60 * batch)
            frame = bench.spark.range(0, ROWS * keys, numPartitions=1).select(
                (at % keys).cast("int").alias("k"),
                F.timestamp_seconds(second).alias("ts"),
                F.rand(batch).alias("x"),
            )
            bench.move(frame, path / f"{batch:04}.parquet", batch)
    return str(path)


def _query(window: Any, select: Any) -> sash.Query:
    return sash.Query(time="ts", by="k", window=window, select=select)


def _chosen() -> dict[str, sash.Aggregate]:
    return {"n": sash.count(), "total": sash.sum("x"), "worst": sash.max("x")}


def sizes(bench: Bench, quick: bool) -> Iterator[Line]:
    """1 hour, 24 hours and 30 days in one row, a slide of a minute, 100,000 keys with ten rows each
    in a micro-batch, beside 30 days alone and native queries one by one."""
    keys = 10_000 if quick else 100_000
    path = minutes(bench, keys)
    select = _chosen()
    for size, text in (("24h", "24 hours"), ("30d", "30 days")):
        select |= {f"{name}_{size}": chosen.over(text) for name, chosen in _chosen().items()}
    asked = {
        "30 days alone": _query(sash.sliding("30 days", "1 minute"), _chosen()),
        "three sizes in one row": _query(sash.sliding("1 hour", "1 minute"), select),
    }
    took: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(3):  # the first is a warm-up
        for name, query in asked.items():
            each = bench.batches(sash.spark.aggregate(bench.stream(path), query))
            if turn:
                took[name] += each[2:]
    found = {name: statistics.median(each) for name, each in took.items()}
    for name, seconds in found.items():
        yield Line(f"{name}, {keys:,} keys, 10 rows each a micro-batch", seconds, "s")
    alone, together = found.values()
    yield Line("three sizes over 30 days alone", together / alone, "×", 1.5)
    yield from _natively(bench, keys, together)


def _natively(bench: Bench, keys: int, ours: float) -> Iterator[Line]:
    """What Spark's own windows take, one query for each size, from a hundredth of the keys."""
    few = minutes(bench, keys // 100)
    total = 0.0
    for size in ("1 hour", "24 hours"):
        for _ in range(2):  # the first is a warm-up
            window = F.window("ts", size, "1 minute")
            values = F.count(F.lit(1)).alias("n"), F.sum("x").alias("t"), F.max("x").alias("w")
            out = bench.stream(few).groupBy("k", window).agg(*values)
            seconds = later(bench.natively(out, 60.0))
        total += 100 * seconds
        yield Line(f"native, {size}, a hundred times a hundredth of the keys", 100 * seconds, "s")
    yield Line("native, 30 days", None, "not run: a row is in 43,200 windows")
    yield Line("three sizes over native's 1 hour and 24 hours", ours / total, "×")


def shared(bench: Bench, quick: bool) -> Iterator[Line]:
    """100 queries that share a plan in one operator: over one of them alone, where they have as
    many rows as 5 % of the events, and where these are 60 %, over one with as many rows, and over
    Spark's own time to write the rows of the 100 queries, with a struct for each query."""
    path = bench.source(MANY, 5)
    spans = [60 + 5 * i for i in range(10 if quick else 100)]

    def tumbling(lengths: list[int]) -> dict[str, sash.Query]:
        return {f"q{n}": _query(sash.tumbling(n * 10_000), _chosen()) for n in lengths}

    few, many = [2_000 * span for span in spans], [75 * span for span in spans]
    one_of_many = round(1 / sum(1 / length for length in many))
    asked = {
        "one query": next(iter(tumbling(few).values())),
        f"{len(spans)} queries that share a plan": sash.share(tumbling(few)),
        "one query with rows for 60 % of the events": tumbling([one_of_many])[f"q{one_of_many}"],
        f"{len(spans)} queries with as many rows": sash.share(tumbling(many)),
    }
    took: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(3):
        for name, query in asked.items():
            each = bench.batches(sash.spark.aggregate(bench.stream(path), query))
            if turn:
                took[name] += each[1:]
    found = {name: statistics.median(each) for name, each in took.items()}
    for name, seconds in found.items():
        yield Line(f"{name}, a micro-batch of {MANY:,} rows", seconds, "s")
    one, all_few, as_many, all_many = found.values()
    yield Line(f"{len(spans)} queries over one", all_few / one, "×", 10)
    yield Line(f"{len(spans)} queries over one with as many rows", all_many / as_many, "×", 1.5)
    kept = bench.place / "kept"
    out = sash.spark.aggregate(bench.stream(path), sash.share(tumbling(many)))
    bench.batches(out, kept=kept)
    rows = bench.written(kept, 3)
    writing = statistics.median(_seconds_to_write(rows, bench.place / "again") for _ in range(5))
    shutil.rmtree(kept)
    yield Line(f"writing the {rows.count():,} rows of a micro-batch again", writing, "s")
    yield Line(f"{len(spans)} queries over writing their rows", all_many / writing, "×", 1.5)


def _seconds_to_write(rows: DataFrame, path: Path) -> float:
    start = time.perf_counter()
    rows.write.mode("overwrite").parquet(str(path))
    return time.perf_counter() - start
