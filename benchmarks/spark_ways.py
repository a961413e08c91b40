"""Tables and streams on Spark beside Spark's own window(): slices before the shuffle, and the fixed
price of a micro-batch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import sash
import sash.spark
from sash.spark.buckets import bucket_names

from .spark_bench import Bench, Line, later, took
from .spark_floor import Empty, counted

KEYS = 500
EMPTY = "an empty operator"
LIMIT = 300.0  # seconds that native has for all rows; past it, a tenth of them must do
SCALED = f"ten times what a tenth of the rows took (all: over {LIMIT:.0f} s)"
SELECT = {"n": sash.count(), "worst": sash.max("x"), "mean": sash.mean("x")}

#: A user's way to write max.
mine = sash.operator(
    identity=float("-inf"),
    lift=lambda x: x,
    combine=lambda a, b: a if a > b else b,
    commutative=True,
    name="mine",
)


def table(bench: Bench, rows: int) -> DataFrame:
    """Rows of 500 keys in order of time, 20 M in two days, in eight files."""
    path = bench.place / f"table-{rows}"
    if not path.exists():
        second = F.col("id") * 172_800 / 20_000_000
        bench.spark.range(0, rows, numPartitions=8).select(
            (F.xxhash64("id") % KEYS).cast("int").alias("k"),
            F.timestamp_micros((second * 1_000_000).cast("long") + 1_700_000_000_000_000).alias(
                "ts"
            ),
            F.rand(1).alias("x"),
        ).write.parquet(str(path))
    return bench.spark.read.parquet(str(path))


def query(window: Any, **select: Any) -> sash.Query:
    return sash.Query(time="ts", by="k", window=window, select=select or SELECT)


def native(df: DataFrame, *window: str) -> DataFrame:
    """Spark's own way."""
    chosen = [F.count(F.lit(1)).alias("n"), F.max("x").alias("worst"), F.avg("x").alias("mean")]
    return df.groupBy("k", F.window("ts", *window)).agg(*chosen)


def ways(bench: Bench, quick: bool) -> Iterator[Line]:
    """20 M rows (2 M if quick) of 500 keys in batch: count, max, mean, best of two warm runs: one
    more goes before, in which Java's compiler sees the plan."""
    rows = 2_000_000 if quick else 20_000_000
    df = table(bench, rows)
    cases = [
        ("1 hour/1 hour", sash.tumbling("1 hour"), ("1 hour",), 1.1),
        ("1 second/1 second, a slice has one row", sash.tumbling("1 second"), ("1 second",), 1.3),
    ]
    for name, window, theirs, most in cases:
        ours = took(lambda w=window: sash.spark.aggregate(df, query(w)), 3)
        yield Line(f"sash, {name}, {sash.spark.way(df, query(window)).name}", ours, "s")
        base = took(lambda t=theirs: native(df, *t), 3)
        yield Line(f"native, {name}", base, "s")
        yield Line(f"sash over native, {name}", ours / base, "×", most)
    hour = sash.sliding("1 hour", "1 minute")
    ours = took(lambda: sash.spark.aggregate(df, query(hour)), 3)
    yield Line(f"sash, 1 hour/1 minute, {sash.spark.way(df, query(hour)).name}", ours, "s")
    by_rows = took(lambda: sash.spark.aggregate(df, query(hour), slices="rows"), 1)
    yield Line("sash, 1 hour/1 minute, slices='rows'", by_rows, "s")
    how = "all rows, one run"
    measured = bench.within(LIMIT, lambda: native(df, "1 hour", "1 minute"))
    if measured is None:
        few = table(bench, rows // 10)
        measured, how = 10 * took(lambda: native(few, "1 hour", "1 minute"), 1), SCALED
    base = measured
    yield Line(f"native, 1 hour/1 minute, {how}", base, "s")
    yield Line("sash over native, 1 hour/1 minute", ours / base, "×", 0.03)
    built_in = took(lambda: sash.spark.aggregate(df, query(hour, worst=sash.max("x"))), 3)
    own = query(hour, worst=sash.aggregate(mine, "x"))
    user = took(lambda: sash.spark.aggregate(df, own), 3)
    yield Line("a user's max, 1 hour/1 minute", user, "s")
    yield Line("a user's max over the built-in", user / built_in, "×", 2)


def random_order(bench: Bench, quick: bool) -> Iterator[Line]:
    """8 M rows (2 M if quick) of 500 keys, in random order, over nineteen hours: count, max, mean,
    windows of an hour; the best of three runs, native of two."""
    rows = 2_000_000 if quick else 8_000_000
    path = bench.place / f"random-{rows}"
    micros = F.rand(7) * 69_120 * 1_000_000
    bench.spark.range(0, rows, numPartitions=8).select(
        (F.xxhash64("id") % KEYS).cast("int").alias("k"),
        F.timestamp_micros(micros.cast("long") + 1_700_000_000_000_000).alias("ts"),
        F.rand(1).alias("x"),
    ).write.parquet(str(path))
    df = bench.spark.read.parquet(str(path))
    for slide in ("30 minutes", "10 minutes", "1 minute"):
        window = sash.sliding("1 hour", slide)
        name = f"1 hour/{slide}, in random order"
        ours = took(lambda w=window: sash.spark.aggregate(df, query(w)), 3)
        yield Line(f"sash, {name}, {sash.spark.way(df, query(window)).name}", ours, "s")
        by_rows = took(lambda w=window: sash.spark.aggregate(df, query(w), slices="rows"), 1)
        yield Line(f"sash, {name}, slices='rows'", by_rows, "s")
        if slide != "1 minute":
            base = took(lambda s=slide: native(df, "1 hour", s), 2)
            yield Line(f"native, {name}", base, "s")
            yield Line(f"sash over native, {name}", ours / base, "×", 1)


def large_batches(bench: Bench, quick: bool) -> Iterator[Line]:
    """A stream of 500 keys, 1 M rows a micro-batch: count, max, mean; medians after the first."""
    rows, batches = (200_000, 4) if quick else (1_000_000, 5)
    path = bench.source(rows, batches, KEYS)
    fewer = bench.source(rows, 3, KEYS)  # for native at size/slide 60, of which one takes long
    hour = 3600  # seconds; a key has a row each second
    floor = later(bench.batches(bench.stream(path).mapInArrow(counted, "rows long")))
    yield Line("a mapInArrow that only counts the rows", floor, "s")
    for name, slide, most in (("1 hour/1 hour", hour, 1), ("1 hour/1 minute", 60, 0.05)):
        window = sash.sliding(f"{hour} seconds", f"{slide} seconds")
        for slices in ("auto", "rows"):
            took = []
            for _ in range(2):  # the first fills the cache of kernels
                frame = bench.stream(path)
                took = bench.batches(sash.spark.aggregate(frame, query(window), slices=slices))
            if slices == "auto":
                ours = later(took)
                yield Line(f"sash, {name}", ours, "s")
                yield Line(f"sash, {name}, over the mapInArrow", ours / floor, "×")
                more = took[0] - ours
                yield Line(f"sash, {name}, the first micro-batch takes more by", more, "s", 1)
            else:
                yield Line(f"sash, {name}, slices='rows'", later(took), "s")
        if slide == hour:
            for _ in range(2):  # Java's compiler has seen it
                base = later(bench.natively(native(bench.stream(path), f"{hour} seconds")))
            yield Line(f"native, {name}", base, "s")
            for _ in range(2):
                frame = bench.stream(path)
                tumbled = bench.batches(sash.spark.aggregate(frame, query(window), slices="spark"))
            yield Line(f"sash, {name}, slices='spark'", later(tumbled), "s")
            ratio = later(tumbled) / base
            yield Line(f"sash over native, {name}, slices='spark'", ratio, "×", 1)
        else:
            base, how = natively(bench, rows, fewer, f"{hour} seconds", f"{slide} seconds")
            yield Line(f"native, {name}, {how}", base, "s")
        yield Line(f"sash over native, {name}", ours / base, "×", most)


def natively(bench: Bench, rows: int, path: str, *window: str) -> tuple[float, str]:
    """A micro-batch of Spark's own way, and how it was measured: with all rows, if two take no
    longer than the limit."""
    made = bench.natively(native(bench.stream(path), *window), LIMIT)
    if len(made) > 1:
        return later(made), "all rows"
    few = bench.source(rows // 10, 3, KEYS)
    return 10 * later(bench.natively(native(bench.stream(few), *window))), SCALED


def empty(df: DataFrame) -> DataFrame:
    """The empty operator, over as many groups as sash has buckets."""
    bucket = F.element_at(F.array(*map(F.lit, bucket_names(2))), F.pmod("k", F.lit(2)) + 1)
    grouped = df.withColumn("bucket", bucket).groupBy("bucket")
    return grouped.transformWithStateInPandas(Empty(), "bucket int, n long", "Append", "None")


def micro_batches(bench: Bench, quick: bool) -> Iterator[Line]:
    """1,000 rows of 100 keys a micro-batch, max, all with RocksDB: the best of six medians, and of
    two for native, in turns."""
    path = bench.source(1_000, 10 if quick else 15)
    ratios = (1, 60) if quick else (1, 60, 180)

    def ours(ratio: int, mode: Any) -> DataFrame:
        window = sash.sliding(f"{ratio} seconds", "1 second")
        chosen = sash.Query(time="ts", by="k", window=window, select={"worst": sash.max("x")})
        return sash.spark.aggregate(bench.stream(path), chosen, mode=mode)

    def theirs(ratio: int, _: Any) -> DataFrame:
        window = F.window("ts", f"{ratio} seconds", "1 second")
        return bench.stream(path).groupBy("k", window).agg(F.max("x").alias("worst"))

    cases: dict[str, Callable[[], DataFrame]] = {EMPTY: lambda: empty(bench.stream(path))}
    for ratio in ratios:
        for name, made in (("sash, final", ours), ("sash, live", ours), ("native", theirs)):
            mode = name.partition(", ")[2] or None
            cases[f"{name}, size/slide {ratio}"] = partial(made, ratio, mode)
    took: dict[str, list[float]] = {name: [] for name in cases}
    firsts: dict[str, float] = {}
    for turn in range(2 if quick else 6):
        for name, frame in cases.items():
            if name.startswith("native") and turn >= 2:
                continue
            seconds = bench.batches(frame())
            took[name].append(statistics.median(seconds[3:]))
            firsts[name] = seconds[0]  # of the last turn, in which all is warm
    floor = min(took[EMPTY])
    more = {name: first - min(took[name]) for name, first in firsts.items()}
    for name, seconds in took.items():
        best = min(seconds)
        yield Line(name, 1000 * best, "ms")
        if name.startswith("native"):
            continue
        first = f"{name}, the first micro-batch takes more by"
        if name.startswith("an"):
            yield Line(first, more[name], "s")
            continue
        yield Line(f"{name}, over the empty operator", best / floor, "×", 1.1)
        ratio = name.rpartition(" ")[2]
        # many windows to a row must be a win; at few, native has no Python to start
        base = min(took[f"native, size/slide {ratio}"])
        yield Line(f"{name}, over native", best / base, "×", 1 if ratio == "180" else None)
        yield Line(first, more[name], "s", 1)
        yield Line(f"{first}, less the empty operator's", more[name] - more[EMPTY], "s")
