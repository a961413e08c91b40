"""Queries over tables as users have them: rows in any order, text, lists.

The peers for windows that do not overlap are Polars' `group_by` with `truncate` and DuckDB's
`time_bucket`, for those that do Polars' `group_by_dynamic` with the sort that it needs.  Peers use
all cores of the machine; the bounds are for two cores each, so on a larger one let
`taskset -c 0,1` start the runner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import sash

from .workload import Bound, Contender, Workload

__all__ = ["any_order"]

HOUR = 3_600_000_000
DAYS = 30
SELECT = {"n": sash.count(), "most": sash.max("x"), "mean": sash.mean("x")}
ALONE = "one thread"
TWICE = Bound(1 / 1.7, ALONE, or_equal=True)  # two threads to one


def any_order(*, quick: bool) -> list[Workload]:
    """All workloads."""
    rows = 500_000 if quick else 5_000_000
    return [
        _tumbling("in-time-order", rows, 100, HOUR, in_order=True),
        _tumbling("random", rows, 100, HOUR),
        _tumbling("many-keys", rows, rows // 5, DAYS * 24 * HOUR),
        _tumbling("text-keys", rows, rows // 50, 24 * HOUR, in_order=True, text=True),
        _overlapping(rows),
        _trailing(rows),
        _text(3 * rows // 5),
        _each_of_text(rows // 25),
        _lists(20_000),
    ]


def make_table(rows: int, keys: int, *, in_order: bool = False, text: bool = False) -> pa.Table:
    """Rows over thirty days, a random key each."""
    source = np.random.default_rng(0)
    times = source.integers(0, DAYS * 24 * HOUR, rows)
    codes = source.integers(0, keys, rows)
    key = pa.array(codes)
    if text:
        key = pa.array([f"key {i}" for i in range(keys)]).take(key)
    return pa.table(
        {
            "t": pa.array(np.sort(times) if in_order else times).cast(pa.timestamp("us")),
            "key": key,
            "x": source.standard_normal(rows),
        }
    )


def _answer(found: Any) -> Any:
    frame = pl.DataFrame(found).sort("key", "window_start").select("n", "most", "mean")
    return frame.to_numpy().ravel()


def _tumbling(
    name: str, rows: int, keys: int, size: int, *, in_order: bool = False, text: bool = False
) -> Workload:
    table = cache(lambda: make_table(rows, keys, in_order=in_order, text=text))
    query = sash.Query(time="t", by=["key"], window=sash.tumbling(size), select=SELECT)
    x = pl.col("x")
    values = (pl.len().alias("n"), x.max().alias("most"), x.mean().alias("mean"))
    hours = size // HOUR

    def by_polars() -> pl.DataFrame:
        start = pl.col("t").dt.truncate(f"{hours}h").alias("window_start")
        return pl.DataFrame(table()).group_by("key", start).agg(*values)

    def by_duckdb() -> pa.Table:
        given = table()  # noqa: F841 - the statement reads it by its name
        return duckdb.sql(
            f"""select key, time_bucket(interval '{hours} hours', t, timestamp '1970-01-01')
            as window_start, count(*) as n, max(x) as most, avg(x) as mean
            from given group by all"""
        ).to_arrow_table()

    bounds = (Bound(1.2, "Polars", or_equal=True), Bound(1.2, "DuckDB", or_equal=True), TWICE)
    return Workload(
        name=f"run-tumbling-{name}",
        title=f"count, max, mean, no overlap, {name}: {rows:,} rows, {keys:,} keys",
        units=rows,
        ours={
            "two threads": Contender(
                run=lambda: query.run(table(), threads=2), answer=_answer, bounds=bounds
            )
        },
        peers={
            ALONE: Contender(run=lambda: query.run(table(), threads=1), answer=_answer),
            "Polars": Contender(run=by_polars, answer=_answer),
            "DuckDB": Contender(run=by_duckdb, answer=_answer),
        },
        release=table.cache_clear,
    )


def _overlapping(rows: int) -> Workload:
    table = cache(lambda: make_table(rows, 100))
    window = sash.sliding("1 hour", "1 minute")
    query = sash.Query(time="t", by=["key"], window=window, select=SELECT)
    x = pl.col("x")

    def by_polars() -> pl.DataFrame:
        return (
            pl.DataFrame(table())
            .sort("key", "t")
            .group_by_dynamic("t", every="1m", period="1h", group_by="key")
            .agg(pl.len().alias("n"), x.max().alias("most"), x.mean().alias("mean"))
        )

    return Workload(
        name="run-random-60",
        title=f"count, max, mean, 1 hour every minute: {rows:,} rows in random order, 100 keys",
        units=rows,
        ours={
            "two threads": Contender(
                run=lambda: query.run(table(), threads=2),
                bounds=(Bound(0.25, "Polars", or_equal=True), TWICE),
            )
        },
        peers={
            ALONE: Contender(run=lambda: query.run(table(), threads=1)),
            "Polars": Contender(run=by_polars),
        },
        release=table.cache_clear,
    )


def _trailing(rows: int) -> Workload:
    table = cache(lambda: make_table(rows, 100, in_order=True))
    query = sash.Query(time="t", by=["key"], window=sash.trailing("1 hour"), select=SELECT)
    return Workload(
        name="run-trailing",
        title=f"count, max, mean, the hour before each row: {rows:,} rows in time order, 100 keys",
        units=rows,
        ours={
            "two threads": Contender(
                run=lambda: query.run(table(), threads=2), answer=_values, bounds=(TWICE,)
            )
        },
        peers={ALONE: Contender(run=lambda: query.run(table(), threads=1), answer=_values)},
        release=table.cache_clear,
    )


def _values(found: pa.Table) -> Any:
    return pl.DataFrame(found).select("n", "most", "mean").to_numpy().ravel()


def _text(rows: int) -> Workload:
    """The README's query, and the same over whole numbers."""

    @cache
    def table() -> pa.Table:
        source = np.random.default_rng(0)
        codes = pa.array(source.integers(0, 16, rows))
        return pa.table(
            {
                "t": pa.array(np.sort(source.integers(0, 365 * 24 * HOUR, rows))).cast(
                    pa.timestamp("us")
                ),
                "key": pa.array(["EWR", "JFK", "LGA"]).take(pa.array(source.integers(0, 3, rows))),
                "delay": np.round(source.normal(10, 40, rows)),
                "code": codes,
                "carrier": pa.array([f"C{i:02}" for i in range(16)]).take(codes),
            }
        )

    def run(column: str) -> pa.Table:
        select = {"n": sash.count(), "who": sash.arg_max(column, by="delay")}
        select |= {"first": sash.min(column)}
        window = sash.sliding("3 hours", "1 minute")
        return sash.Query(time="t", by=["key"], window=window, select=select).run(table())

    numbers = "whole numbers"
    return Workload(
        name="run-text",
        title=f"count, arg_max and min of text, 3 hours every minute: {rows:,} rows, 3 keys",
        units=rows,
        ours={
            "text": Contender(
                run=lambda: run("carrier"), bounds=(Bound(2.0, numbers, or_equal=True),)
            )
        },
        peers={numbers: Contender(run=lambda: run("code"))},
        release=table.cache_clear,
    )


#: Aggregates that took Python objects before, and other kinds of values that did.
OF_TEXT: dict[str, Callable[[str], sash.Aggregate]] = {
    "first": sash.first,
    "last": sash.last,
    "min": sash.min,
    "max": sash.max,
    "mode": sash.mode,
    "count_distinct": sash.count_distinct,
    "collect": sash.collect,
}
KINDS = {"dates": pa.date32(), "decimals": pa.decimal128(18, 2), "bytes": pa.binary()}


def _each_of_text(rows: int) -> Workload:
    """Each aggregate of text beside the same of whole numbers; and of other kinds, the maximum."""

    @cache
    def table() -> pa.Table:
        codes = np.random.default_rng(1).integers(0, 5_000, rows)
        made = make_table(rows, 100).append_column("number", pa.array(codes))
        texts = pa.array([f"value {i:04}" for i in range(5_000)]).take(pa.array(codes))
        columns = {"text": texts, "dates": pa.array(codes.astype(np.int32)).cast(pa.date32())}
        columns |= {"decimals": pa.array(codes).cast(pa.decimal128(19, 0)).cast(KINDS["decimals"])}
        columns |= {"bytes": texts.cast(pa.binary())}
        for name, column in columns.items():
            made = made.append_column(name, column)
        return made

    def run(chosen: sash.Aggregate) -> pa.Table:
        window = sash.sliding("1 hour", "10 minutes")
        return sash.Query(time="t", by=["key"], window=window, select={"y": chosen}).run(table())

    numbers = {name: f"{name} of whole numbers" for name in OF_TEXT}

    def contender(chosen: sash.Aggregate, name: str) -> Contender:
        return Contender(
            run=lambda: run(chosen),
            bounds=(Bound(2.0, numbers[name], or_equal=True),),
            peer=numbers[name],
        )

    return Workload(
        name="run-text-each",
        title=f"an aggregate of 5,000 texts, 1 hour every 10 minutes: {rows:,} rows, 100 keys",
        units=rows,
        calls=1,
        ours={name: contender(make("text"), name) for name, make in OF_TEXT.items()}
        | {f"max of {kind}": contender(sash.max(kind), "max") for kind in KINDS},
        peers={
            numbers[name]: Contender(run=lambda make=make: run(make("number")))
            for name, make in OF_TEXT.items()
        },
        release=table.cache_clear,
    )


def _lists(rows: int) -> Workload:
    """Lists of all values, and what it takes to write them."""
    table = cache(lambda: make_table(rows, 1, in_order=True))
    window = sash.sliding("1 day", "1 minute")
    query = sash.Query(time="t", window=window, select={"all": sash.collect("x")})
    written = "writing the lists"

    def write() -> Any:
        return np.repeat(1.5, rows * 24 * 60)

    return Workload(
        name="run-collect",
        title=f"collect, 1 day every minute: {rows:,} rows",
        units=rows,
        ours={
            "Query.run": Contender(
                run=lambda: query.run(table()), bounds=(Bound(3.0, written, or_equal=True),)
            )
        },
        peers={written: Contender(run=write)},
        release=table.cache_clear,
    )
