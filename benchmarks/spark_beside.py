"""sash beside `window()`: the table of windows, keys and rows, with native in the same run.

A micro-batch spans ten minutes and a window slides by one, so that each key with rows has ten
windows that close with every micro-batch, whatever size/slide is.  Native puts a row into each of
its windows.  Where that is more than some millions of rows, it gets a tenth of them, a hundredth or
less, and what one would expect of all is reported: what it takes for 1,000 rows at size/slide 1,
once, and the rest as many times as the rows are fewer.  Less than a hundredth tells little of all
rows, and only what it took itself is reported.  At size/slide 60, which has a bound, native gets
all rows of 100 keys; of 100,000 keys each row and window would be a group of its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import sash
import sash.spark

from .spark_bench import START, Bench, Line, took
from .spark_ways import mine, native

__all__ = ["BESIDE"]

RATIOS = (1, 2, 10, 60, 300, 3_600)
SPAN = 600  # seconds of a micro-batch
FEW, MANY = 1_000, 1_000_000  # rows of one
TABLE = 2_000_000  # rows of a table, of forty micro-batches' time
LIMIT = 60.0  # seconds that native has
#: Rows times windows that it is given, which take some seconds.  With 3,600 windows to a row Spark
#: does not compile its plan: a row and window takes 8 µs, and 0.3 with 300.
MOST = {3_600: 1_000_000}
MOST_ELSE = 20_000_000
LEAST = 100  # a smaller share than one in so many is not scaled up
ALL = (60, 100)  # the size/slide and keys at which it is given all rows
READY = {"n": sash.count(), "worst": sash.max("x"), "mean": sash.mean("x")}
OWN = {**READY, "worst": sash.aggregate(mine, "x")}
#: Bounds of sash over native with ready operators, by size/slide; of a table whose slices have
#: hardly more than one row, and of one's own operator over the ready ones.
TABLES, STREAMS = {1: 1.1, 60: 0.03}, {1: 1.0, 60: 0.05}
SPARSE, USERS = {1: 1.3, 60: 0.03}, 2.0


def windows(ratio: int) -> tuple[str, ...]:
    """The window's size and slide."""
    return (f"{ratio} minutes", "1 minute")


def query(ratio: int, select: dict[str, Any]) -> sash.Query:
    return sash.Query(time="ts", by="k", window=sash.sliding(*windows(ratio)), select=select)


def rows(bench: Bench, start: int, count: int, span: int, keys: int, files: int) -> DataFrame:
    """So many rows in order of time, of keys that come in no order."""
    at = F.col("id")
    micros = (at * (span * 1_000_000 / count)).cast("long")
    return bench.spark.range(start * count, (start + 1) * count, numPartitions=files).select(
        F.pmod(F.xxhash64(at), F.lit(keys)).cast("int").alias("k"),
        F.timestamp_micros(micros + F.lit(START * 1_000_000)).alias("ts"),
        F.rand(start).alias("x"),
    )


def source(bench: Bench, count: int, keys: int, batches: int) -> str:
    """Files of so many rows, one a micro-batch."""
    path = bench.place / f"beside-{count}-{keys}"
    if not path.exists():
        path.mkdir()
        for batch in range(batches):
            frame = rows(bench, batch, count, SPAN, keys, 1)
            bench.move(frame, path / f"{batch:04}.parquet", batch)
    return str(path)


def table(bench: Bench, count: int, keys: int) -> DataFrame:
    """A table of so many rows, in eight files."""
    path = bench.place / f"beside-table-{count}-{keys}"
    if not path.exists():
        rows(bench, 0, count, 40 * SPAN, keys, 8).write.parquet(str(path))
    return bench.spark.read.parquet(str(path))


def share(count: int, ratio: int, keys: int) -> int:
    """By how much fewer rows native has."""
    if (ratio, keys) == ALL:
        return 1
    most = MOST.get(ratio, MOST_ELSE)
    return next(part for part in (1, 10, 100, 1_000, 10_000) if count // part * ratio <= most)


@dataclass(frozen=True)
class Native:
    """What native took for one in `part` of the rows, None if it was over the limit, and what it
    takes whatever the rows are."""

    measured: float | None
    part: int
    fixed: float

    @property
    def all(self) -> float | None:
        """What all rows would take, if the share is large enough to tell."""
        if self.measured is None or self.part == 1:
            return self.measured
        if self.part > LEAST:
            return None
        return self.fixed + self.part * max(self.measured - self.fixed, 0.0)

    @property
    def why(self) -> str:
        """Why there is no figure for all rows."""
        if self.measured is None:
            return f"over the limit of {LIMIT:.0f} s"
        return f"1/{self.part:,} of the rows took {self.measured:.1f} s"


def compared(
    about: str, ratio: int, ready: float, own: float, base: Native, bounds: dict[int, float]
) -> Iterator[Line]:
    """The lines of one case, which are a row of the table."""
    theirs = base.all
    case = f"{about}, size/slide {ratio:,}"
    how = "" if base.part == 1 or theirs is None else f", from a share of 1/{base.part:,}"

    def line(
        name: str, column: str, value: float | None, unit: str, most: float | None = None
    ) -> Line:
        return Line(f"{name}, {case}", value, unit, most, (case, column))

    yield line("sash", "sash", ready, "s")
    yield line("sash, one's own operator", "one's own operator", own, "s")
    yield line("native", "native", theirs, base.why if theirs is None else f"s{how}")
    if theirs is not None:
        yield line("sash over native", "sash over native", ready / theirs, "×", bounds.get(ratio))
        yield line("one's own operator over native", "one's own over native", own / theirs, "×")
    yield line("one's own operator over ready ones", "one's own over sash", own / ready, "×", USERS)


def tables(bench: Bench, quick: bool) -> Iterator[Line]:
    """sash beside window() over a table of 2 M rows (200,000 if quick): count, max and mean,
    size/slide 1 to 3,600, 100 and 100,000 keys; the best of three runs, of one at 3,600, native the
    last of two."""
    count = TABLE // 10 if quick else TABLE
    for keys in (100, 100_000):
        check(bench, keys)
        few = table(bench, FEW, keys)
        fixed = took(partial(native, few, *windows(1)), 2)
        for ratio in RATIOS:
            df = table(bench, count, keys)
            times = 3 if ratio < 3_600 else 1  # with 100,000 keys, these are 400 M windows
            ready, own = (
                took(partial(sash.spark.aggregate, df, query(ratio, select)), times)
                for select in (READY, OWN)
            )
            part = share(count, ratio, keys)
            given = table(bench, count // part, keys)
            base = None
            for _ in range(2 if ratio <= 10 else 1):
                base = bench.within(LIMIT, partial(native, given, *windows(ratio)))
            about = f"table, {keys:,} keys, {sash.spark.way(df, query(ratio, READY)).name}"
            # with 100,000 keys a slice has one row
            bounds = TABLES if keys == 100 else SPARSE
            yield from compared(about, ratio, ready, own, Native(base, part, fixed), bounds)


def check(bench: Bench, keys: int) -> None:
    """See that sash and native have the same rows."""
    df = table(bench, 20_000, keys)
    for ratio in (1, 10):
        digests = []
        for out in (
            native(df, *windows(ratio)),
            *(sash.spark.aggregate(df, query(ratio, select)) for select in (READY, OWN)),
        ):
            start, end = F.unix_micros("window.start"), F.unix_micros("window.end")
            row = F.xxhash64("k", start, end, "n", "worst", F.round("mean", 9))
            digests.append(out.agg(F.count(F.lit(1)), F.bit_xor(row)).collect())
        if digests[1:] != digests[:1] * 2:
            raise AssertionError(f"sash and native differ at size/slide {ratio}: {digests}")


class Natives:
    """What native streams take, each measured once."""

    def __init__(self, bench: Bench, keys: int) -> None:
        self._bench = bench
        self._keys = keys
        self._known: dict[tuple[int, int], float | None] = {}

    def took(self, count: int, ratio: int) -> Native:
        """A micro-batch of so many rows, or of a share of them."""
        part = share(count, ratio, self._keys)
        return Native(self._measured(count // part, ratio), part, self._measured(FEW, 1) or 0.0)

    def _measured(self, count: int, ratio: int) -> float | None:
        if (count, ratio) not in self._known:
            bench = self._bench
            path = source(bench, count, self._keys, 3)
            out = native(bench.stream(path), *windows(ratio))
            # the time of two micro-batches, with their start
            made = bench.natively(out, 2 * LIMIT)
            self._known[count, ratio] = made[-1] if len(made) > 1 else None
        return self._known[count, ratio]


def streams(count: int, keys: int, bench: Bench, quick: bool) -> Iterator[Line]:
    chosen = count // 10 if quick and count == MANY else count
    batches = 8 if count == FEW else 3
    path = source(bench, chosen, keys, batches)
    natives = Natives(bench, keys)
    for select in (READY, OWN):  # kernels into the cache
        run(bench, path, 60, select)
    natives.took(chosen, 1)
    for ratio in RATIOS:
        ready, own = (run(bench, path, ratio, select) for select in (READY, OWN))
        bounds = STREAMS if count == MANY else {}
        about = f"{chosen:,} rows a micro-batch, {keys:,} keys"
        yield from compared(about, ratio, ready, own, natives.took(chosen, ratio), bounds)


def run(bench: Bench, path: str, ratio: int, select: dict[str, Any]) -> float:
    """A micro-batch of sash: the median of those after the second, or of the second and third."""
    made = bench.batches(sash.spark.aggregate(bench.stream(path), query(ratio, select)))
    return statistics.median(made[2:] if len(made) > 4 else made[1:])


def _streams(count: int, keys: int) -> Callable[[Bench, bool], Iterator[Line]]:
    made = partial(streams, count, keys)
    made.__doc__ = (
        f"sash beside window() in a stream of {count:,} rows a micro-batch, {keys:,} keys: count, "
        "max and mean, size/slide 1 to 3,600."
    )
    return made


#: The table, in pieces of some minutes each.
BESIDE: dict[str, Callable[[Bench, bool], Iterator[Line]]] = {
    "beside-window-tables": tables,
    **{
        f"beside-window-{name}-{keys}": _streams(count, keys)
        for name, count in (("small", FEW), ("large", MANY))
        for keys in (100, 100_000)
    },
}
