"""Streams on Spark beside Spark's own window(), as size/slide grows, and with many keys."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from pyspark.sql import functions as F

import sash
import sash.spark

from .spark_bench import BATCHES, ROWS, SLOW_ROWS, Bench, Line, cpu_seconds, later


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
            yield Line("sash, size/slide 60, the first micro-batch takes more by", first, "s", 2)
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
    yield Line("sash, batch, cores at work", used / took, "")
