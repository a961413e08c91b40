"""Windows of calendars on Spark: tables in every way, and streams, over clock changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.testing.queries import answers, differences
from sash.testing.streams import stream

pytest.importorskip("pyspark")
import sash.spark

from .test_streaming import Stream

Frame = Callable[[Any], Any]
HOUR = 3_600_000_000

COMMUTING = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x")}
ORDERED = {"n": sash.count(), "last": sash.last("n"), "all": sash.collect("n")}


def events(since: str, hours: int, count: int = 200) -> pa.Table:
    """A stream in which a second takes some hours."""
    table = stream("disorder", count)
    start = int(np.datetime64(since, "us").astype(np.int64))
    moved = pc.add(pc.multiply(table["t"].cast(pa.int64()), hours * 3600), start)
    return table.set_column(0, "t", moved.cast(pa.timestamp("us", "UTC")))


@pytest.mark.parametrize(
    ("size", "every", "zone", "since", "hours"),
    [
        ("1 month", "1 day", "America/Sao_Paulo", "2018-10-20", 9),
        ("1 quarter", "1 month", "Asia/Kathmandu", "1985-06-10", 90),
        # four stretches and more of 1,024 windows
        ("2 days", "1 day", "Pacific/Apia", "2004-01-01", 900),
    ],
)
def test_tables(frame: Frame, size: str, every: str, zone: str, since: str, hours: int) -> None:
    table = events(since, hours)
    window = sash.sliding(size, every, timezone=zone)
    for select, ways in ((COMMUTING, ("auto", "python", "rows")), (ORDERED, ("auto",))):
        q = sash.Query(time="t", by=["k"], window=window, select=select, tie="n")
        right = answers(q, table)
        for slices in ways:
            got = sash.spark.aggregate(frame(table), q, slices=slices)  # type: ignore[arg-type]
            assert not differences(q, right, got.toArrow(), ordered=False), slices
    changes = sash.Query(time="t", by=["k"], window=window, select=COMMUTING, emit="changes")
    got = sash.spark.aggregate(frame(table), changes)
    assert not differences(changes, answers(changes, table), got.toArrow(), ordered=False)


def test_what_spark_cannot_do_itself_is_refused(frame: Frame) -> None:
    window = sash.tumbling("1 day", timezone="America/New_York")
    q = sash.Query(time="t", by=["k"], window=window, select=COMMUTING)
    df = frame(events("2024-03-08", 2))
    assert sash.spark.way(df, q).name == "python"
    with pytest.raises(ValueError, match="the slices of a calendar are made by Python"):
        sash.spark.aggregate(df, q, slices="spark")


def test_times_beyond_the_calendar(frame: Frame) -> None:
    q = sash.Query(
        time="t", window=sash.tumbling("1 day", timezone="UTC"), select={"n": sash.count()}
    )
    table = pa.table({"t": pa.array([0, 253_402_300_800_000_000], pa.int64())})
    got = sash.spark.aggregate(frame(table), q, bad="drop").toArrow()
    assert got["n"].to_pylist() == [1]
    with pytest.raises(Exception, match="beyond the years 1 to 9999"):
        sash.spark.aggregate(frame(table), q).toArrow()


@pytest.mark.parametrize("mode", ["final", "live"])
def test_streams(spark: Any, tmp_path: Path, mode: Any) -> None:
    """All that is closed is as over a table; another time zone is refused a checkpoint."""
    files = Stream(spark, tmp_path)
    table = events("2024-10-20", 6)
    last = pa.table(
        {
            name: pa.array([10**6 * 24 * HOUR], table["t"].type) if name == "t" else column
            for name, column in zip(table.column_names, table.slice(0, 1).columns, strict=True)
        }
    )
    files.write(table.slice(0, 90), table.slice(90), last)
    window = sash.sliding("1 month", "1 day", timezone="America/New_York")
    q = sash.Query(time="t", by=["k"], window=window, select=COMMUTING)
    given, _ = files.run(sash.spark.aggregate(files.read("400 days"), q, mode=mode, buckets=2))
    found = given.where("year(window.start) < 2030").drop("event_time")
    if mode == "live":
        assert found.where("revision > 0").count() == 0
        found = found.drop("revision")
    assert not differences(q, answers(q, table), found.toArrow(), ordered=False)
    if mode == "live":
        return
    other = sash.sliding("1 month", "1 day", timezone="America/Toronto")
    q = sash.Query(time="t", by=["k"], window=other, select=COMMUTING)
    files.write(table.slice(0, 1))
    with pytest.raises(Exception, match=r"window was .*New_York.* and is .*Toronto"):
        files.run(sash.spark.aggregate(files.read("400 days"), q, mode=mode, buckets=2))
    with pytest.raises(ValueError, match="the slices of a calendar are made by Python"):
        sash.spark.aggregate(files.read("400 days"), q, slices="spark")
