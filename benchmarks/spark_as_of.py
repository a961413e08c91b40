"""Values as of a moment on Spark, beside joins of ranges by Spark itself."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import sash
import sash.spark

from .spark_bench import Bench, Line, took

KEYS = 500
START = 1_700_000_000_000_000  # microseconds
EACH = 1_000  # microseconds from one event to the next
MINUTE = 60_000_000


def frames(bench: Bench, events: int) -> tuple[DataFrame, DataFrame]:
    """Events in order of time, and a tenth as many questions in any order."""
    made = []
    for name, rows in (("events", events), ("questions", events // 10)):
        path = bench.place / f"as-of-{name}-{events}"
        if not path.exists():
            at = F.col("id") * EACH if name == "events" else F.rand(2) * (events * EACH)
            bench.spark.range(0, rows, numPartitions=4).select(
                (F.xxhash64("id") % KEYS).cast("int").alias("k"),
                F.timestamp_micros(at.cast("long") + START).alias(name[0] + "t"),
                *([F.col("id").alias("x")] if name == "events" else [F.col("id")]),
            ).write.parquet(str(path))
        made.append(bench.spark.read.parquet(str(path)))
    return made[0], made[1]


def joined(events: DataFrame, questions: DataFrame) -> DataFrame:
    """The sum of each question's last minute, by a join."""
    near = F.col("et").between(F.col("qt") - F.expr("INTERVAL 1 MINUTE"), F.col("qt"))
    events = events.withColumnRenamed("k", "key")
    found = questions.join(events, (F.col("k") == F.col("key")) & near, "left")
    return found.groupBy("id", "k", "qt").agg(F.sum("x").alias("sum"))


def by_minutes(events: DataFrame, questions: DataFrame) -> DataFrame:
    """The same where events and questions meet by key and minute first, which Spark does not do by
    itself: an event is in its own minute and in the next."""

    def minute(name: str) -> Column:
        return F.floor(F.unix_micros(name) / MINUTE)

    near = F.col("et").between(F.col("qt") - F.expr("INTERVAL 1 MINUTE"), F.col("qt"))
    both = F.explode(F.array(minute("et"), minute("et") + 1)).alias("minute")
    events = events.select(F.col("k").alias("key"), "et", "x", both)
    asked = questions.withColumn("of", minute("qt"))
    same = (F.col("k") == F.col("key")) & (F.col("of") == F.col("minute"))
    return asked.join(events, same & near, "left").groupBy("id", "k", "qt").agg(F.sum("x"))


def as_of(bench: Bench, quick: bool) -> Iterator[Line]:
    """The sum of a minute as of 200,000 moments (50,000 if quick), ten times as many events, 500
    keys: sash.spark.at beside a join of ranges."""
    events, questions = frames(bench, 500_000 if quick else 2_000_000)
    query = sash.Query(
        time="et", by="k", window=sash.trailing("1 minute"), select={"sum": sash.sum("x")}
    )

    def ours() -> DataFrame:
        return sash.spark.at(events, questions, query, time="qt")

    some = questions.where("id < 1000")
    got, right = (
        {row["id"]: row["sum"] for row in made.select("id", "sum").collect()}
        for made in (sash.spark.at(events, some, query, time="qt"), joined(events, some))
    )
    assert got == right, "sash and the join differ"
    mine = took(ours, 3)
    yield Line("sash.spark.at", mine, "s")
    theirs = took(lambda: joined(events, questions), 1)
    yield Line("a join of ranges", theirs, "s")
    yield Line("sash over the join of ranges", mine / theirs, "×", 0.2)
    smart = took(lambda: by_minutes(events, questions))
    yield Line("a join by key and minute, written by hand", smart, "s")
    yield Line("sash over the join by minutes", mine / smart, "×")
