"""sash after, before and between other stateful operators: the same rows as in batch.

An operator emits its results when the watermark passes them, so they lie between the watermark of
the micro-batch before and the present one when the next operator sees them.  Each chain runs with
a restart in the middle.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sash

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark
from sash.spark.types import quoted

from .test_streaming import SECOND, START, Stream

AT = pa.timestamp("us", "UTC")
MINUTE = 60 * SECOND
FAR = START + 10**5 * SECOND


def rows(*minutes: float, far: bool = False) -> pa.Table:
    """One row for each key at each of these times."""
    times = [START + int(m * MINUTE) for m in minutes] + ([FAR] if far else [])
    both = [t for t in times for _ in "ab"]
    keys = [k for _ in times for k in "ab"]
    return pa.table({"t": pa.array(both, AT), "k": keys, "x": range(len(keys))})


#: Thirty rows of each key in fifteen minutes, the same again, one that closes all before it, and
#: one that closes what came of that.
FILES = [
    rows(*(m / 2 for m in range(30))),
    rows(*(15 + m / 2 for m in range(30))),
    rows(30, far=True),
    rows(FAR / MINUTE - START / MINUTE + 60),
]


def ours(df: Any, size: str, time: str, count: str | None, **more: Any) -> Any:
    """Rows, or the sum of a count, of each key in windows of a size."""
    chosen = sash.count() if count is None else sash.sum(count)
    query = sash.Query(time=time, by=["k"], window=sash.tumbling(size), select={"n": chosen})
    out = sash.spark.aggregate(df, query, buckets=2, name=f"windows of {size}", **more)
    return out if df.isStreaming else out.withColumn("event_time", F.col("window.end"))


def native(df: Any, size: str, time: str, count: str | None) -> Any:
    chosen = F.count("*") if count is None else F.sum(count)
    out = df.groupBy("k", F.window(time, size).alias("window")).agg(chosen.alias("n"))
    return out.withColumn("event_time", F.window_time("window"))


def session(df: Any, size: str, time: str, count: str | None) -> Any:
    out = df.groupBy("k", F.session_window(time, size).alias("window")).agg(
        F.sum(count or F.lit(1)).alias("n")
    )
    return out.withColumn("event_time", F.window_time(F.col("window")))


def trailing(df: Any, size: str, time: str, count: str | None) -> Any:
    """The same over what each row's key had before it."""
    chosen = sash.count() if count is None else sash.sum(count)
    given = df.select("k", quoted(time).alias("at"), *([] if count is None else [count]))
    query = sash.Query(time="at", by=["k"], window=sash.trailing(size), select={"held": chosen})
    out = sash.spark.aggregate(given, query, buckets=2, name=f"trailing {size}")
    passed = "event_time" if df.isStreaming else "at"
    return out.select("k", quoted(passed).alias("event_time"), F.col("held").alias("n"))


def sessions(df: Any, size: str, time: str, count: str | None) -> Any:
    """The same in short sessions, by sash."""
    chosen = sash.count() if count is None else sash.sum(count)
    window = sash.session("20 seconds")
    query = sash.Query(time=time, by=["k"], window=window, select={"n": chosen})
    out = sash.spark.aggregate(df, query, buckets=2, name=f"sessions before {size}")
    return out if df.isStreaming else out.withColumn("event_time", F.window_time("window"))


Step = Callable[..., Any]
CHAINS: dict[str, tuple[Step, ...]] = {
    "sash, sash": (ours, ours),
    "native, sash, native": (native, ours, native),
    "trailing, sash": (trailing, ours),
}
if os.environ.get("SASH_FAULTS"):  # more of them in `make test-faults`: each takes a while
    CHAINS |= {
        "native, sash": (native, ours),
        "sash, native": (ours, native),
        "sash, sash, sash": (ours, ours, ours),
        "sessions, native": (sessions, native),
        "sash, trailing, sash": (ours, trailing, ours),
        "native, sessions": (native, sessions),
    }
SIZES = ("1 minute", "10 minutes", "20 minutes")


def chain(df: Any, steps: tuple[Step, ...]) -> Any:
    time, count = "t", None
    for step, size in zip(steps, SIZES):
        df = step(df, size, time, count)
        time, count = "event_time", "n"
    return df


def in_batch(files: Stream, steps: tuple[Step, ...]) -> set[Any]:
    """What the chain says in batch, natively, of windows that close."""
    table = files.spark.read.parquet(str(files.place / "in"))
    found = chain(table, tuple(native if s is ours else s for s in steps))
    return closed(found)


def closed(df: Any) -> set[Any]:
    kept = df.where(F.unix_micros("window.end") < FAR)
    found = [(r[0], r[1], r[2]) for r in kept.select("k", "window.start", "n").collect()]
    assert len(set(found)) == len(found)
    return set(found)


def run(files: Stream, df: Callable[[], Any]) -> set[Any]:
    """A restart in the middle; each file is a micro-batch."""
    out = None
    for i in range(0, len(FILES), 2):
        files.write(*FILES[i : i + 2])
        out, _ = files.run(df())
    return closed(out)


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_of_windows_loses_nothing(files: Stream, name: str) -> None:
    steps = CHAINS[name]
    found = run(files, lambda: chain(files.read("10 seconds"), steps))
    right = in_batch(files, steps)
    assert len(right) >= 4
    assert found == right


def test_after_sessions(files: Stream) -> None:
    steps = (session, ours)
    assert run(files, lambda: chain(files.read("10 seconds"), steps)) == in_batch(files, steps)


def test_after_duplicates_are_dropped(files: Stream) -> None:
    def dropped(df: Any) -> Any:
        return ours(df.dropDuplicates(["k", "t"]), "10 minutes", "t", None)

    found = run(files, lambda: dropped(files.read("10 seconds")))
    table = files.spark.read.parquet(str(files.place / "in")).dropDuplicates(["k", "t"])
    assert found == closed(native(table, "10 minutes", "t", None))


def test_after_a_join(files: Stream) -> None:
    """Rows of a minute's windows, joined with the rows of the same minute."""

    def joined(df: Any) -> Any:
        windows = native(df, "1 minute", "t", None).select("k", "event_time", "n")
        other = native(df, "1 minute", "t", None).select(
            F.col("k").alias("k2"), F.col("event_time").alias("at"), F.col("n").alias("m")
        )
        both = windows.join(
            other, (F.col("k") == F.col("k2")) & (F.col("event_time") == F.col("at"))
        )
        return both.select("k", "event_time", (F.col("n") + F.col("m")).alias("n"))

    found = run(
        files, lambda: ours(joined(files.read("10 seconds")), "10 minutes", "event_time", "n")
    )
    table = files.spark.read.parquet(str(files.place / "in"))
    assert found == closed(native(joined(table), "10 minutes", "event_time", "n"))
