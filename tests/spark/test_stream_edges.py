"""Streams at the edges: windows that start together, another number of partitions, maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sash
from sash.testing.queries import answers, differences, replay

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark

from .test_streaming import SECOND, START, Stream, events, files, last_one, query

__all__ = ["files"]


@pytest.mark.parametrize("mode", ["final", "live"])
def test_windows_that_start_together_over_a_restart(
    files: Stream, tmp_path: Path, mode: Any
) -> None:
    """The second start has another number of partitions; the checkpoint's counts."""
    table = events("disorder", 120)
    cut = [table.slice(0, 60), table.slice(60), last_one(table)]
    window = sash.cumulate("12 seconds", "3 seconds", offset="1 second")
    q = query(
        window, select={"n": sash.count(), "top": sash.max("i"), "all": sash.collect("n")}, tie="n"
    )
    keep = sash.spark.upsert(str(tmp_path / "kept"))

    def go() -> Any:
        out = sash.spark.aggregate(files.read("30 seconds"), q, mode=mode)
        files.run(out, each=keep)
        return out

    files.write(cut[0])
    go()
    files.write(*cut[1:])
    files.spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        go()
    finally:
        files.spark.conf.set("spark.sql.shuffle.partitions", "2")

    got = sash.spark.latest(files.spark, str(tmp_path / "kept"))
    closed = got.where(F.unix_micros("window.end") < START + 9 * 10**5 * SECOND)
    right, missed = replay(q, cut, "30 seconds", behind=1)
    right = [row for row in right if row["window_end"] < START + 9 * 10**5 * SECOND]
    assert not missed
    assert not differences(q, right, closed.toArrow(), ordered=False)
    assert right == answers(q, table)
    if mode == "final":
        rows = sash.spark.aggregate(files.spark.createDataFrame(table), q)
        assert not differences(q, right, rows.toArrow(), ordered=False)


def entries(column: Any) -> Any:
    """A map as text, whatever its keys are."""
    return F.to_json(F.map_entries(column))


def test_maps(files: Stream) -> None:
    """As keys and as values, also where Python could not hash a map's keys; and a struct of
    doubles as a key."""
    source = files.spark.range(40).select(
        F.timestamp_micros(F.lit(START) + F.col("id") % 20 * SECOND).alias("t"),
        F.col("id").alias("n"),
        F.when(F.col("id") % 2 == 0, F.create_map(F.lit("a"), F.lit(1.5), F.lit("b"), F.lit(-0.0)))
        .when(F.col("id") % 5 != 0, F.create_map(F.lit("b"), F.lit(0.0), F.lit("a"), F.lit(1.5)))
        .alias("key"),
        F.struct(F.when(F.col("id") % 3 == 0, -0.0).otherwise(0.0).alias("x")).alias("point"),
        F.when(F.col("id") % 7 != 0, F.create_map(F.struct("id"), F.array("id"))).alias("value"),
    )
    table = source.localCheckpoint()
    late = table.where("n = 0").withColumn("t", F.lit(None).cast("timestamp"))
    far = table.where("n = 0").withColumn("t", F.timestamp_seconds(F.lit(START // SECOND + 10**6)))
    files.write(table.toArrow(), late.unionAll(far).toArrow())
    q = query(
        sash.tumbling("10 seconds"),
        by=["key", "point"],
        select={"last": sash.last("value"), "all": sash.collect("value")},
        tie="n",
    )
    out = sash.spark.aggregate(files.read("1 second"), q, late=True)
    results, missed = sash.spark.split(files.run(out)[0])
    got = results.where("window.end < timestamp_seconds(1700900000)").drop("event_time")
    batch = sash.spark.aggregate(table, q)
    assert got.schema.simpleString() == batch.schema.simpleString()
    ordered = F.array_sort(F.collect_list(F.struct("t", "n", entries("value").alias("value"))))
    native = (
        table.groupBy("key", "point", F.window("t", "10 seconds"))
        .agg(ordered.alias("rows"))
        .withColumn("all", F.filter(F.col("rows")["value"], lambda v: v.isNotNull()))
        .withColumn("last", F.element_at("rows", -1)["value"])
    )
    assert batch.schema["key"].dataType == native.schema["key"].dataType

    def text(df: Any) -> list[str]:
        columns = ["point", "window.start", "last", "all"]
        return sorted(map(str, df.select(F.to_json("key"), *columns).collect()))

    def ours(df: Any) -> list[str]:
        return text(df.withColumns({"all": F.transform("all", entries), "last": entries("last")}))

    assert ours(got) == ours(batch) == text(native)
    (row,) = missed.collect()
    assert row["late_reason"] == "its time is null"
    assert row["key"] == {"a": 1.5, "b": 0.0}
