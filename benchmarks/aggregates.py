"""What aggregates cost beyond their operator: conditions, decimals, exact sums, exact medians, and
answers as of a moment.

Sums are over windows of a minute that slide every ten seconds; a condition compares text, which is
a dictionary, as files have it.  Against pandas a median is that of the last thousand rows.  Polars
answers questions by `rolling_sum_by` over the events and a `join_asof`, DuckDB by a join of ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import sash

from .workload import Bound, Contender, Workload

__all__ = ["aggregates"]

SECOND = 1_000_000
KEYS = 1_000
ROWS, QUICK_ROWS = 5_000_000, 500_000
MEDIAN_ROWS, QUICK_MEDIAN_ROWS = 1_000_000, 100_000
EVENTS, QUICK_EVENTS = 10_000_000, 500_000


def aggregates(*, quick: bool) -> list[Workload]:
    """All workloads."""
    rows = QUICK_ROWS if quick else ROWS
    data = cache(lambda: make_table(rows))
    return [
        _sums("where", "sum of rows that satisfy a condition", rows, data, 1.2,
              sash.sum("x", where=pc.field("country") == "FR"), sash.sum("x"), "without it"),
        _sums("decimals", "sum and mean of decimals of 18 digits", rows, data, 1.5,
              sash.mean("d"), sash.mean("i"), "int64"),
        _sums("exact", "sum of floats, correctly rounded", rows, data, 4.0,
              sash.sum("x", exact=True), sash.sum("x"), "plain"),
        _median(QUICK_MEDIAN_ROWS if quick else MEDIAN_ROWS),
        _as_of(QUICK_EVENTS if quick else EVENTS),
    ]  # fmt: skip


def make_table(rows: int) -> pa.Table:
    """Rows in order of time, a thousand keys mixed."""
    source = np.random.default_rng(0)
    whole = source.integers(-(10**12), 10**12, rows)
    countries = np.array(["FR", "DE", "US", "JP"])[source.integers(0, 4, rows)]
    return pa.table(
        {
            "t": pa.array(np.sort(source.integers(0, rows * 1000, rows))).cast(pa.timestamp("us")),
            "key": source.integers(0, KEYS, rows),
            "x": source.standard_normal(rows),
            "i": whole,
            "d": pa.array(whole).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 0)),
            "country": pa.array(countries).dictionary_encode(),
        }
    )


def _sums(
    name: str,
    title: str,
    rows: int,
    data: Callable[[], pa.Table],
    limit: float,
    ours: sash.Aggregate,
    plain: sash.Aggregate,
    peer: str,
) -> Workload:
    def run(chosen: sash.Aggregate) -> pa.Table:
        window = sash.sliding("1 minute", "10 seconds")
        return sash.Query(time="t", by=["key"], window=window, select={"v": chosen}).run(data())

    return Workload(
        name=f"aggregate-{name}",
        title=f"{title}, {rows:,} rows, {KEYS:,} keys",
        units=rows,
        ours={name: Contender(run=lambda: run(ours), bounds=(Bound(limit, peer, or_equal=True),))},
        peers={peer: Contender(run=lambda: run(plain))},
    )


def _median(rows: int) -> Workload:
    made = cache(lambda: np.random.default_rng(0).standard_normal(rows))

    def ours() -> Any:
        q = sash.Query(time="t", window=sash.rows(1000), select={"m": sash.median("x")})
        return q.run(pa.table({"t": np.arange(rows), "x": made()}))["m"].to_numpy()

    return Workload(
        name="aggregate-median",
        title=f"exact median of the last 1,000 of {rows:,} rows",
        units=rows,
        ours={
            "Query.run": Contender(
                run=ours, answer=np.asarray, bounds=(Bound(1.0, "pandas", or_equal=True),)
            )
        },
        peers={
            "pandas": Contender(
                run=lambda: pd.Series(made()).rolling(1000, min_periods=1).median(),
                answer=np.asarray,
            )
        },
    )


def _as_of(events: int) -> Workload:
    """The sum of the last minute for a tenth as many questions as there are events."""
    many = events // 10

    @cache
    def given() -> tuple[pa.Table, pa.Table]:
        source = np.random.default_rng(1)
        kind = pa.timestamp("us")
        times = np.sort(source.integers(0, events * 1000, events))
        asked = source.integers(0, events * 1000, many)
        table = {"t": pa.array(times).cast(kind), "key": source.integers(0, KEYS, events)}
        table["x"] = pa.array(source.integers(-1000, 1000, events))
        questions = {"asked": pa.array(asked).cast(kind), "key": source.integers(0, KEYS, many)}
        return pa.table(table), pa.table(questions | {"id": np.arange(many)})

    def ours() -> Any:
        q = sash.Query(
            time="t", by=["key"], window=sash.trailing("1 minute"), select={"sum": sash.sum("x")}
        )
        found = q.at(*given(), time="asked")["sum"]
        return found.fill_null(0).to_numpy()

    def polars() -> Any:
        table, questions = (pl.DataFrame(one) for one in given())
        # the sum as of a question is that of its own row among the events, which adds nothing
        asked = questions.select(t=pl.col("asked"), key="key", x=pl.lit(0, dtype=pl.Int64), id="id")
        both = pl.concat([table.with_columns(id=pl.lit(None, dtype=pl.Int64)), asked]).sort("t")
        summed = both.with_columns(
            pl.col("x").rolling_sum_by("t", "60000001us", closed="right").over("key").alias("sum")
        )
        found = questions.sort("asked").join_asof(
            summed.select("t", "key", "sum"), left_on="asked", right_on="t", by="key"
        )
        return found.sort("id")["sum"].to_numpy()

    def by_duckdb() -> Any:
        for name, table in zip(("events", "questions"), given(), strict=True):
            duckdb.register(name, table)
        return (
            duckdb.sql(
                """SELECT coalesce(sum(x), 0) AS total
               FROM questions LEFT JOIN events ON events.key = questions.key
                 AND t BETWEEN asked - INTERVAL 1 MINUTE AND asked
               GROUP BY id ORDER BY id"""
            )
            .fetchnumpy()["total"]
            .astype(np.int64)
        )

    return Workload(
        name="aggregate-as-of",
        title=f"the sum of a minute as of {many:,} moments, {events:,} events, {KEYS:,} keys",
        units=many,
        unit="question",
        calls=1,
        ours={
            "Query.at": Contender(
                run=ours,
                answer=np.asarray,
                bounds=(
                    Bound(0.5, "Polars", or_equal=True),
                    Bound(0.1, "DuckDB", or_equal=True),
                ),
            )
        },
        peers={
            "Polars": Contender(run=polars, answer=np.asarray),
            "DuckDB": Contender(run=by_duckdb, answer=np.asarray, slow=True),
        },
        release=given.cache_clear,
    )
