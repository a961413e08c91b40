"""Windows that events make, over tables: `Query.run` against Polars, bottleneck and DuckDB.

Rows are in order of time, one a second of one key, or of a thousand keys mixed: one in ten seconds
of each, 360 in an hour, or `dense`, as many as fill an hour and more.  Polars computes
`rolling_*_by` over the same times, with keys by `.over`; of arg_max it has none, and its rolling
max, which does less, stands for it, as it does for a user's operator.  DuckDB has SQL's RANGE; it
takes seconds, so it is timed once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import bottleneck
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import sash

from .users_operators import saturating_max
from .workload import Bound, Contender, Workload

__all__ = ["windows"]

SECOND = 1_000_000
ROWS, QUICK_ROWS = 2_000_000, 200_000
KEYS = (1, 1_000)


def windows(*, quick: bool) -> list[Workload]:
    """All workloads."""
    rows = QUICK_ROWS if quick else ROWS
    data = {keys: cache(lambda keys=keys: make_table(rows, keys)) for keys in KEYS}
    dense = cache(lambda: make_table(rows, KEYS[-1], dense=True))
    return [
        *(_trailing(name, rows, keys, data[keys]) for name in TRAILING for keys in KEYS),
        *(_trailing(name, rows, KEYS[-1], dense, dense=True) for name in DENSE),
        *(_sizes(rows, keys, data[keys]) for keys in KEYS),
        *(_rows(name, rows, data[1]) for name in MOVING),
        _session(rows if quick else 5 * rows),
    ]


def make_table(rows: int, keys: int, *, dense: bool = False) -> pa.Table:
    """One row a second of one key, or one in ten seconds of each of many; or all of these within
    two hours, so that an hour holds half of a key's rows."""
    source = np.random.default_rng(0)
    end = rows * SECOND if keys == 1 else rows * 10_000
    times = np.sort(source.integers(0, 7_200 * SECOND if dense else end, rows))
    return pa.table(
        {
            "t": pa.array(times).cast(pa.timestamp("us")),
            "key": source.integers(0, keys, rows),
            "x": source.standard_normal(rows),
        }
    )


#: An aggregate, and what Polars and DuckDB have for it.
TRAILING: dict[str, tuple[Callable[[], Any], str, str]] = {
    "max": (lambda: sash.max("x"), "max", "max(x)"),
    "mean": (lambda: sash.mean("x"), "mean", "avg(x)"),
    "stddev": (lambda: sash.stddev("x"), "std", "stddev_samp(x)"),
    "arg_max": (lambda: sash.arg_max("x", by="x"), "max", "arg_max(x, x)"),
    "user's": (lambda: sash.aggregate(saturating_max, "x"), "max", "max(x)"),
}

#: Of these also where a thousand keys have many rows in an hour.
DENSE = ("max", "mean", "user's")


def _by(keys: int) -> list[str]:
    return ["key"] if keys > 1 else []


def _run(window: Any, chosen: Any, keys: int, table: pa.Table) -> pa.Table:
    return sash.Query(time="t", by=_by(keys), window=window, select={"y": chosen}).run(table)


def _trailing(
    name: str, rows: int, keys: int, data: Callable[[], pa.Table], *, dense: bool = False
) -> Workload:
    make, theirs, in_sql = TRAILING[name]
    window = sash.trailing("1 hour")

    def in_polars() -> Any:
        rolling = getattr(pl.col("x"), f"rolling_{theirs}_by")("t", "1h", closed="both")
        rolling = rolling.over("key") if keys > 1 else rolling
        return frame().select(rolling.alias("y"))

    def in_duckdb() -> Any:
        given = data()  # noqa: F841 - the statement reads it by its name
        by = "PARTITION BY key " if keys > 1 else ""
        return duckdb.sql(
            f"SELECT {in_sql} OVER ({by}ORDER BY t RANGE BETWEEN INTERVAL 1 HOUR PRECEDING "
            "AND CURRENT ROW) AS y FROM given"
        ).fetchnumpy()

    frame = cache(lambda: pl.DataFrame(data()))
    exact = name in ("max", "mean", "arg_max")
    answer = (lambda found: found["y"].to_numpy()) if exact else None
    return Workload(
        name=f"trailing-{name}-{keys}{'-dense' if dense else ''}",
        title=f"trailing 1 hour of {name}, {rows:,} rows, {keys:,} key(s)"
        + (f", {rows // keys // 2:,} in a window" if dense else ""),
        units=rows,
        ours={
            "Query.run": Contender(
                run=lambda: _run(window, make(), keys, data()),
                first=lambda: _run(window, make(), keys, make_table(100, keys)),
                kernel=f"frames of {name}",
                answer=answer,
                bounds=(Bound(0.5, "Polars", or_equal=True), Bound(0.02, "DuckDB", or_equal=True)),
            )
        },
        peers={
            "Polars": Contender(run=in_polars, answer=answer),
            "DuckDB": Contender(run=in_duckdb, slow=True),
        },
        release=frame.cache_clear,
    )


def _sizes(rows: int, keys: int, data: Callable[[], pa.Table]) -> Workload:
    """Ten sizes in one row, against one size, and against a query for each."""
    minutes = (1, 2, 5, 10, 15, 20, 30, 40, 50, 60)
    top = sash.max("x")
    window = sash.trailing("1 hour")

    def run(table: pa.Table) -> pa.Table:
        select = {f"y{m}": top.over(f"{m} minutes") for m in minutes}
        return sash.Query(time="t", by=_by(keys), window=window, select=select).run(table)

    def one_by_one() -> pa.Table:
        for m in minutes:
            found = _run(sash.trailing(f"{m} minutes"), top, keys, data())
        return found

    return Workload(
        name=f"trailing-sizes-{keys}",
        title=f"trailing 1 minute to 1 hour of max in one row, {rows:,} rows, {keys:,} key(s)",
        units=rows,
        ours={
            "ten sizes in one row": Contender(
                run=lambda: run(data()),
                first=lambda: run(make_table(100, keys)),
                kernel="frames of several sizes of max",
                answer=lambda found: found["y60"].to_numpy(),
                bounds=(Bound(2.5, "one size", or_equal=True),),
            )
        },
        peers={
            "one size": Contender(
                run=lambda: _run(window, top, keys, data()),
                answer=lambda found: found["y"].to_numpy(),
            ),
            "ten queries": Contender(run=one_by_one, answer=lambda found: found["y"].to_numpy()),
        },
    )


#: An aggregate, and what bottleneck has for it; sums and means are reported, others bounded.
MOVING: dict[str, tuple[Callable[[], Any], Any, bool]] = {
    "max": (lambda: sash.max("x"), bottleneck.move_max, True),
    "min": (lambda: sash.min("x"), bottleneck.move_min, True),
    "stddev": (lambda: sash.stddev("x"), bottleneck.move_std, True),
    "sum": (lambda: sash.sum("x"), bottleneck.move_sum, False),
    "mean": (lambda: sash.mean("x"), bottleneck.move_mean, False),
}


def _rows(name: str, rows: int, data: Callable[[], pa.Table]) -> Workload:
    make, moving, bounded = MOVING[name]
    more = {"ddof": 1} if name == "stddev" else {}
    values = cache(lambda: data()["x"].to_numpy())
    exact = name in ("max", "min")
    return Workload(
        name=f"rows-{name}",
        title=f"the last 1,000 rows of {name}, {rows:,} rows, one key",
        units=rows,
        ours={
            "Query.run": Contender(
                # a table, as elsewhere: a deviation over one row is null in it, and to make that
                # the NaN of bottleneck takes pyarrow a third of bottleneck's time
                run=lambda: _run(sash.rows(1_000), make(), 1, data()),
                first=lambda: _run(sash.rows(1_000), make(), 1, make_table(100, 1)),
                kernel=f"frames of {name}",
                answer=(lambda found: found["y"].to_numpy()) if exact else None,
                bounds=(Bound(1.2, "bottleneck", or_equal=True),) if bounded else (),
            )
        },
        peers={
            "bottleneck": Contender(
                run=lambda: moving(values(), 1_000, min_count=1, **more),
                answer=np.asarray if exact else None,
            )
        },
        release=values.cache_clear,
    )


def _session(rows: int) -> Workload:
    """Sessions of some ten events, a thousand keys in order of key and time."""
    table = cache(
        lambda: make_table(rows, 1_000).sort_by([("key", "ascending"), ("t", "ascending")])
    )
    frame = cache(lambda: pl.DataFrame(table()))

    def in_polars() -> Any:
        new = (pl.col("t").diff() > pl.duration(seconds=24)) | (pl.col("key").diff() != 0)
        return (
            frame()
            .with_columns(new.fill_null(True).cum_sum().alias("session"))
            .group_by("session", maintain_order=True)
            .agg(pl.col("key").first(), pl.col("x").max().alias("y"))
        )

    return Workload(
        name="session",
        title=f"sessions of max, {rows:,} rows, 1,000 keys",
        units=rows,
        ours={
            "Query.run": Contender(
                run=lambda: _run(sash.session("24 seconds"), sash.max("x"), 1_000, table()),
                first=lambda: _run(
                    sash.session("24 seconds"), sash.max("x"), 1_000, make_table(100, 1_000)
                ),
                kernel="sessions of max",
                answer=lambda found: found["y"].to_numpy(),
                bounds=(Bound(0.5, "Polars", or_equal=True),),
            )
        },
        peers={"Polars": Contender(run=in_polars, answer=lambda found: found["y"].to_numpy())},
        release=lambda: (frame.cache_clear(), table.cache_clear()),  # type: ignore[func-returns-value]
    )
