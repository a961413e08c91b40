"""Queries over tables: `Query.run` against Polars' `group_by_dynamic`.

Both get the same rows: ordered by key, then time, which is what Polars is best at, and once as a
stream would leave them, in order of time with all keys mixed.  Polars leaves out windows that begin
before the slide in which a key's first row is; they are ours alone, and left out where answers are
compared.
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
    return [
        *(_ratio(data, ratio) for ratio in RATIOS),
        _mixed(data),
        _flat(data),
        _memory(data),
    ]


class _Data:
    """Tables that are made when the first contender needs them."""

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.mixed = cache(lambda: make_table(rows, keys))
        self.ordered = cache(
            lambda: self.mixed().sort_by([("key", "ascending"), ("t", "ascending")])
        )

    def release(self) -> None:
        self.mixed.cache_clear()
        self.ordered.cache_clear()


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


def in_polars(table: pa.Table, ratio: int) -> pl.DataFrame:
    """The same by Polars."""
    return (
        pl.DataFrame(table)
        .group_by_dynamic("t", every="1s", period=f"{ratio}s", group_by="key")
        .agg(pl.col("x").max().alias("max"), pl.col("x").mean().alias("mean"))
    )


def _ratio(data: _Data, ratio: int) -> Workload:
    def as_they_have_it(found: pa.Table) -> Any:
        first = pl.col("t").min().dt.truncate("1s").alias("first")
        firsts = pl.DataFrame(data.ordered()).group_by("key").agg(first)
        frame = pl.DataFrame(found).join(firsts, on="key", maintain_order="left")
        frame = frame.filter(pl.col("window_start") >= pl.col("first"))
        return frame.select("max", "mean").to_numpy().ravel()

    bound = Bound(2.0, "Polars", or_equal=True) if ratio == 1 else Bound(1.0, "Polars")
    return Workload(
        name=f"run-{ratio}",
        title=f"max and mean of {data.rows:,} rows, {data.keys:,} keys, size/slide {ratio:,}",
        units=data.rows,
        ours={
            "Query.run": Contender(
                run=lambda: query(ratio).run(data.ordered()),
                first=lambda: query(ratio).run(make_table(100, 2)),
                kernel="sweep of max and mean",
                answer=as_they_have_it,
                bounds=(bound,),
            )
        },
        peers={
            "Polars": Contender(
                run=lambda: in_polars(data.ordered(), ratio),
                answer=lambda found: found.select("max", "mean").to_numpy().ravel(),
                slow=ratio >= 600,
            )
        },
    )


def _mixed(data: _Data) -> Workload:
    """Rows in order of time; once, as Polars takes ten times as long."""
    return Workload(
        name="run-mixed",
        title=f"the same with keys mixed, size/slide 10: {data.rows:,} rows, {data.keys:,} keys",
        units=data.rows,
        once=True,
        ours={
            "Query.run": Contender(
                run=lambda: query(10).run(data.mixed()), bounds=(Bound(1.0, "Polars"),)
            )
        },
        peers={"Polars": Contender(run=lambda: in_polars(data.mixed(), 10))},
    )


def _flat(data: _Data) -> Workload:
    """What a row of the result costs, whatever size/slide is."""

    def per_row(ratio: int) -> float:
        start = time.perf_counter()
        given = query(ratio).run(data.mixed()).num_rows
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
        calls=1,
        ours={
            f"size/slide {ratio:,}": contender(ratio, bounds=bounds, peer=few)
            for ratio in (60, 600, 3_600)
        },
        peers={few: contender(10)},
        release=data.release,
    )


def _memory(data: _Data) -> Workload:
    """The peak above what a process holds once it has its input; the result is in it."""
    return Workload(
        name="run-memory",
        title=f"peak memory of max and mean over {data.rows:,} rows, {data.keys:,} keys",
        unit="byte of input",
        units=24 * data.rows,
        told=True,
        measure="bytes",
        once=True,
        ours={
            f"size/slide {ratio:,}": Contender(
                run=lambda ratio=ratio: peak_of_run(data.mixed(), ratio), bounds=(Bound(3.0),)
            )
            for ratio in RATIOS
        },
        peers={},
        release=data.release,
    )
