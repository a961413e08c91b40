"""Queries over tables: `Query.run` against Polars' `group_by_dynamic`.

The rows come as a stream would leave them, in order of time, all keys mixed.  Polars has them
ordered by key, which is its best case (mixed, it takes ten times as long), and orders nothing.
It leaves out windows that begin before a key's first row has had a window of its own; those are
ours alone, and left out where answers are compared.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import sash

from .processes import peak_of_run
from .workload import Bound, Contender, Workload

__all__ = ["queries"]

KEYS, QUICK_KEYS = 1_000, 100
RATIOS = (1, 10, 60, 600, 3_600)
SECOND = 1_000_000


def queries(rows: int, *, quick: bool) -> list[Workload]:
    """All workloads over this many rows."""
    data = _Data(rows, QUICK_KEYS if quick else KEYS)
    return [*(_ratio(data, ratio) for ratio in RATIOS), _flat(data), _memory(rows, data.keys)]


class _Data:
    """Tables that are made when the first contender needs them."""

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.arrow = cache(lambda: make_table(rows, keys))
        self.polars = cache(
            lambda: pl.DataFrame(self.arrow()).sort("key", "t", maintain_order=True)
        )

    def release(self) -> None:
        self.arrow.cache_clear()
        self.polars.cache_clear()


def make_table(rows: int, keys: int) -> pa.Table:
    """One row a second and key, on average."""
    source = np.random.default_rng(0)
    times = np.sort(source.integers(0, rows // keys * SECOND, rows))
    return pa.table(
        {
            "t": pa.array(times).cast(pa.timestamp("us")),
            "key": source.integers(0, keys, rows),
            "x": source.standard_normal(rows),
        }
    )


def query(ratio: int) -> sash.Query:
    """Windows of as many slides, one slide being a second."""
    return sash.Query(
        time="t",
        by=["key"],
        window=sash.sliding(ratio * SECOND, SECOND),
        select={"max": sash.max("x"), "mean": sash.mean("x")},
    )


def _ratio(data: _Data, ratio: int) -> Workload:
    period = f"{ratio}s"

    def theirs() -> pl.DataFrame:
        return (
            data.polars()
            .group_by_dynamic("t", every="1s", period=period, group_by="key")
            .agg(pl.col("x").max().alias("max"), pl.col("x").mean().alias("mean"))
        )

    def as_they_have_it(found: pa.Table) -> Any:
        frame = pl.DataFrame(found)
        first = (
            data.polars().group_by("key").agg(pl.col("t").min().dt.truncate("1s").alias("first"))
        )
        frame = frame.join(first, on="key", maintain_order="left").filter(
            pl.col("window_start") >= pl.col("first")
        )
        return frame.select("max", "mean").to_numpy().ravel()

    bound = Bound(2.0, "Polars", or_equal=True) if ratio == 1 else Bound(1.0, "Polars")
    return Workload(
        name=f"run-{ratio}",
        title=f"max and mean of {data.rows:,} rows, {data.keys:,} keys, size/slide {ratio:,}",
        units=data.rows,
        ours={
            "Query.run": Contender(
                run=lambda: query(ratio).run(data.arrow()),
                first=lambda: query(ratio).run(make_table(100, 2)),
                kernel="sweep of max and mean",
                answer=as_they_have_it,
                bounds=(bound,),
            )
        },
        peers={
            "Polars": Contender(
                run=theirs, answer=lambda found: found.select("max", "mean").to_numpy().ravel()
            )
        },
    )


def _flat(data: _Data) -> Workload:
    """What a row of the result costs, whatever size/slide is."""

    def per_row(ratio: int) -> float:
        start = time.perf_counter()
        given = query(ratio).run(data.arrow()).num_rows
        return (time.perf_counter() - start) / given

    def contender(ratio: int, **more: Any) -> Contender:
        return Contender(run=lambda: per_row(ratio), **more)

    few = "size/slide 10"
    bounds = (Bound(1.5, few, or_equal=True),)
    return Workload(
        name="run-flat",
        title=f"a row of the result of max and mean, {data.rows:,} rows, {data.keys:,} keys",
        unit="row given",
        told=True,
        ours={
            f"size/slide {ratio:,}": contender(ratio, bounds=bounds, peer=few)
            for ratio in (60, 600, 3_600)
        },
        peers={few: contender(10)},
        release=data.release,
    )


def _memory(rows: int, keys: int) -> Workload:
    """The peak above what a process holds once it has its input; the result is in it."""
    return Workload(
        name="run-memory",
        title=f"peak memory of max and mean over {rows:,} rows, {keys:,} keys, in new processes",
        unit="byte of input",
        units=24 * rows,
        told=True,
        in_bytes=True,
        once=True,
        ours={
            f"size/slide {ratio:,}": Contender(
                run=lambda ratio=ratio: peak_of_run(rows, keys, ratio), bounds=(Bound(3.0),)
            )
            for ratio in RATIOS
        },
        peers={},
    )
