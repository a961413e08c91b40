"""Statements of SQL on Spark beside their queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame

import sash
import sash.spark

from .spark_bench import BATCHES, ROWS, Bench, Line, cpu_seconds, later

MOST = 1.05
TEXT = (
    "SELECT k, window.start AS s, window.end AS e, count(*) AS n, max(x) AS worst, avg(x) AS mean "
    "FROM {} GROUP BY k, window(ts, '10 minutes', '1 minute')"
)


def sql(bench: Bench, quick: bool) -> Iterator[Line]:
    """sash.spark.sql beside its query, in turns: a table of 4 M rows (1 M if quick), and
    micro-batches of 200,000."""
    query = sash.Query(
        time="ts",
        by="k",
        window=sash.sliding("10 minutes", "1 minute"),
        select={"n": sash.count(), "worst": sash.max("x"), "mean": sash.mean("x")},
    )
    spark = bench.spark
    spark.read.parquet(bench.source(1_000_000 if quick else 4_000_000, 1)).createOrReplaceTempView(
        "events"
    )

    def took(make: Callable[[], DataFrame]) -> tuple[float, float]:
        started, before = time.perf_counter(), cpu_seconds()
        make().write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started, cpu_seconds() - before

    ways: dict[str, Callable[[], DataFrame]] = {
        "query": lambda: sash.spark.aggregate(spark.table("events"), query),
        "sql": lambda: sash.spark.sql(spark, TEXT.format("events")),
    }
    best = _best(ways, took, turns=3 if quick else 5)
    for which, i in (("seconds", 0), ("processor seconds", 1)):
        ratio = best["sql"][i] / best["query"][i]
        yield Line(f"a table: sash.spark.sql over its query, {which}", ratio, "×", MOST)
    path = bench.source(ROWS, BATCHES)
    bench.stream(path).createOrReplaceTempView("arriving")
    ways = {
        "query": lambda: sash.spark.aggregate(spark.table("arriving"), query),
        "sql": lambda: sash.spark.sql(spark, TEXT.format("arriving")),
    }
    best = _best(ways, lambda make: (later(bench.batches(make())),), turns=2 if quick else 3)
    ratio = best["sql"][0] / best["query"][0]
    yield Line("a micro-batch: sash.spark.sql over its query", ratio, "×", MOST)


def _best(
    ways: dict[str, Callable[[], DataFrame]], took: Callable[[Any], tuple[float, ...]], turns: int
) -> dict[str, list[float]]:
    """The least that each way took, in turns; the first turn is to warm up."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, make in ways.items():
            measured = took(make)
            if turn:
                found[name].append(measured)
    return {name: [min(each) for each in zip(*runs, strict=True)] for name, runs in found.items()}
