"""Answers as of a moment on Spark are those of a table in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.testing.rows import rows_of
from sash.testing.streams import stream

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark
from sash.spark import by_events

Frame = Callable[[Any], Any]

SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "some": sash.sum("i", where=pc.field("s") == "x"),
    "all": sash.collect("n"),
    "long": sash.count().over("9 seconds"),
}


@pytest.mark.parametrize("known", [None, "w"])
@pytest.mark.parametrize("window", [sash.trailing("5 seconds"), sash.lifetime()], ids=str)
def test_the_rows_are_those_of_a_table(
    frame: Frame, monkeypatch: pytest.MonkeyPatch, window: Any, known: str | None
) -> None:
    monkeypatch.setattr(by_events, "_LEAST", 1)
    monkeypatch.setattr(by_events, "_TIMES", 1)
    events = stream("disorder", 90)
    at = [t + 10**5 * (n % 5 - 2) for n, t in enumerate(events["t"].cast(pa.int64()).to_pylist())]
    asked = pa.table(
        {
            "k": [*events["k"].to_pylist()[:80], *["nobody"] * 10],
            "asked at": pa.array(at, pa.timestamp("us", "UTC")),
            "id": range(90),
        }
    )
    q = sash.Query(time="t", by=["k"], tie="n", window=window, select=SELECT)
    got = sash.spark.at(frame(events), frame(asked), q, time="asked at", known=known)
    right = q.at(events, asked, time="asked at", known=known)
    assert got.columns == right.column_names
    rows = sorted(rows_of(got.toArrow()), key=lambda row: row["id"])
    assert [repr(row) for row in rows] == [repr(row) for row in rows_of(right)]


def test_one_shuffle_and_hot_keys_in_several_tasks(
    spark: Any, frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events and questions are each moved once; one key's questions are answered where its
    stretches of time are."""
    monkeypatch.setattr(by_events, "_LEAST", 1)
    monkeypatch.setattr(by_events, "_TIMES", 4)
    times = pa.array(range(0, 400 * 10**6, 10**6), pa.timestamp("us", "UTC"))
    events, asked = pa.table({"t": times, "k": ["hot"] * 400}), pa.table({"asked": times})
    asked = asked.append_column("k", pa.array(["hot"] * 400))
    q = sash.Query(
        time="t", by=["k"], window=sash.trailing("5 seconds"), select={"many": sash.count()}
    )
    name = "spark.sql.adaptive.coalescePartitions.enabled"  # which would make few rows one task's
    spark.conf.set(name, "false")
    try:
        got = sash.spark.at(frame(events), frame(asked), q, time="asked", buckets=8)
        plan = got._jdf.queryExecution().sparkPlan().toString()
        rows = got.withColumn("task", F.spark_partition_id()).collect()
        moves = got._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset(name)
    assert plan.count("Join") == 0
    assert moves.count("Exchange hashpartitioning") == 2
    assert sorted(row["many"] for row in rows) == [*range(1, 6), *[6] * 395]
    assert len({row["task"] for row in rows}) > 1


def test_what_cannot_be_asked_is_refused(frame: Frame) -> None:
    events, asked = frame(stream("ties", 5)), frame(pa.table({"k": ["a"], "at": [1]}))
    q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"many": sash.count()})
    with pytest.raises(ValueError, match="'many'"):
        sash.spark.at(events, asked.withColumnRenamed("k", "Many"), q, time="at")
    with pytest.raises(KeyError, match="no column 'when'"):
        sash.spark.at(events, asked, q, time="when")
    with pytest.raises(KeyError, match="no column 'seen'"):
        sash.spark.at(events, asked, q, time="at", known="seen")
    with pytest.raises(TypeError, match="cast one of them"):
        sash.spark.at(events, frame(pa.table({"k": [1], "at": [1]})), q, time="at")
    q = sash.Query(time="t", window=sash.tumbling(5), select={"many": sash.count()})
    with pytest.raises(ValueError, match="a question is about the time up to a moment"):
        sash.spark.at(events, asked, q, time="at")
