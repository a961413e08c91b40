"""A million keys: the first micro-batch, a table, and the memory of Python's workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import functions as F

import sash
import sash.spark

from .spark_bench import START, Bench, Line, family, took
from .spark_ways import mine

__all__ = ["million_keys", "peak_of_workers"]

EVERY = 0.05  # seconds from one look at the workers to the next


def million_keys(bench: Bench, quick: bool) -> Iterator[Line]:
    """1 M keys (100,000 if quick), tumbling windows: the first micro-batch of a stream with a row
    for each, a table with two rows for each, and the most memory that a Python worker had."""
    keys = 100_000 if quick else 1_000_000
    yield from first_batch(bench, keys)
    yield from tables(bench, keys)


def first_batch(bench: Bench, keys: int) -> Iterator[Line]:
    query = _query(worst=sash.max("x"))

    def ours(keys: int) -> float:
        return bench.batches(sash.spark.aggregate(bench.stream(bench.trickle(keys)), query))[0]

    def theirs(keys: int) -> float:
        frame = bench.stream(bench.trickle(keys)).groupBy("k", F.window("ts", "1 hour"))
        return bench.natively(frame.agg(F.max("x").alias("worst")))[0]

    for run in (ours, theirs):
        run(keys // 10)  # as a warm-up
    base = theirs(keys)
    with peak_of_workers() as most:
        first = ours(keys)
    yield Line(f"sash, the first micro-batch of {keys:,} keys", first, "s")
    yield Line(f"native, the first micro-batch of {keys:,} keys", base, "s")
    yield Line("sash over native, the first micro-batch", first / base, "×", 1.0)
    yield Line("the most memory of a Python worker, a stream", most(), "MB")


def tables(bench: Bench, keys: int) -> Iterator[Line]:
    path = bench.place / f"million-{keys}"
    if not path.exists():
        at = F.col("id")
        bench.spark.range(0, 2 * keys, numPartitions=8).select(
            F.pmod(F.xxhash64(at), F.lit(keys)).cast("int").alias("k"),
            F.timestamp_seconds(F.lit(START) + F.floor(at * 3600 / (2 * keys))).alias("ts"),
            F.rand(1).alias("x"),
        ).write.parquet(str(path))
    df = bench.spark.read.parquet(str(path))
    window = F.window("ts", "1 hour")
    base = took(lambda: df.groupBy("k", window).agg(F.max("x").alias("worst")), 3)
    for name, query, most in (
        ("sash", _query(worst=sash.max("x")), 1.1),
        ("sash, one's own operator", _query(worst=sash.aggregate(mine, "x")), None),
    ):
        with peak_of_workers() as held:
            seconds = took(lambda q=query: sash.spark.aggregate(df, q), 3)
        way = sash.spark.way(df, query).name
        yield Line(f"{name}, a table of {keys:,} keys, {way}", seconds, "s")
        yield Line(f"{name} over native, a table", seconds / base, "×", most)
        yield Line(f"the most memory of a Python worker, {name}, a table", held(), "MB")
    yield Line(f"native, a table of {keys:,} keys", base, "s")


def _query(**select: sash.Aggregate) -> sash.Query:
    return sash.Query(time="ts", by="k", window=sash.tumbling("1 hour"), select=select)


@contextmanager
def peak_of_workers() -> Iterator[Callable[[], float]]:
    """The most megabytes that any one Python worker of Spark has held within the block, of those
    that did something there; 0 if none did."""
    ended = threading.Event()
    idle = {pid: _used(pid) for pid in _workers()}
    most = 0.0

    def look() -> None:
        nonlocal most
        while not ended.wait(EVERY):
            busy = [pid for pid in _workers() if idle.get(pid) != _used(pid)]
            most = max([most, *map(_peak, busy)])

    for pid in idle:  # what a worker held before does not count
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")
    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield lambda: most
    finally:
        ended.set()
        watch.join()


def _workers() -> list[int]:
    """The workers: the processes that Spark's Python daemons have started."""
    members = family()
    daemons = {pid for pid in members if _is_daemon(pid)}
    return [pid for pid, parent in members.items() if pid in daemons and parent in daemons]


def _is_daemon(pid: int) -> bool:
    """True of a daemon of PySpark, and of its workers, which are forks of it."""
    return "pyspark.daemon" in _said(pid, "cmdline")


def _used(pid: int) -> list[str]:
    """The processor time that a process has had."""
    return _said(pid, "stat").rpartition(")")[2].split()[11:13]


def _peak(pid: int) -> float:
    """The most megabytes that a process has held since it was reset."""
    found = [line for line in _said(pid, "status").splitlines() if line.startswith("VmHWM")]
    return int(found[0].split()[1]) / 1e3 if found else 0.0


def _said(pid: int, what: str) -> str:
    """What the system says of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_text()
    except OSError:
        return ""
