"""Many queries over the same events: `sash.share` against one query alone.

10,000 events for each of 100 keys over six days; 100 queries, no two alike, with windows of eight
hours to a month that slide every eight hours to every eight days, so that rows out are 5 % of the
events.  And ten sizes in one row against one size.

Where rows out are many, they are what a plan has to pay for: 100 queries that slide every 100 to
199 minutes emit 60 % as many rows as there are events, and so do 100 whose slides are multiples of
22 minutes, which have their edges in common.  Their peers write the same rows, as columns of Arrow
in memory and as Parquet; another is one query with as many rows.
"""

from __future__ import annotations

import tempfile
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sash

from .workload import Bound, Contender, Workload

__all__ = ["shared_queries"]

MINUTE = 60_000_000
HOUR = 60 * MINUTE
EVENTS = 10_000  # of a key
DAYS = 6
SELECT = {"n": sash.count(), "total": sash.sum("x"), "most": sash.max("x")}


def shared_queries(*, quick: bool) -> list[Workload]:
    """Over a table, and over a stream."""
    rows = 200_000 if quick else 1_000_000
    ten = [HOUR * n for n in (7, 8, 10, 12, 16, 24, 36, 48, 72)]
    sized = SELECT | {
        f"{name} {size}": chosen.over(size) for size in ten for name, chosen in SELECT.items()
    }
    one, many = _query(24, 6), sash.share(_hundred())
    several = _query(6, 6, select=sized)
    bound = (Bound(10.0, peer="one query", or_equal=True),)
    few = (Bound(2.5, peer="one query", or_equal=True),)
    places = (("table", _tabled(rows)), ("stream", _streamed(rows)))
    few_rows = [
        Workload(
            name=f"shared-{where}",
            title=f"100 queries that share a plan, and ten sizes in a row, over a {where}",
            unit="event",
            units=rows,
            ours={
                "100 queries": Contender(run=lambda run=run: run(many), bounds=bound),
                "ten sizes": Contender(run=lambda run=run: run(several), bounds=few),
            },
            peers={"one query": Contender(run=lambda run=run: run(one))},
        )
        for where, run in places
    ]
    apart = {f"q{n}": _query(n * (1 + n % 2), n, MINUTE) for n in range(100, 200)}
    return few_rows + [
        _many_rows(name, where, queries, run, rows)
        for where, run in places
        for name, queries in (("many-rows", apart), ("nested-rows", _hundred(22 * MINUTE)))
    ]


def _query(size: int, every: int, unit: int = HOUR, select: Any = None) -> sash.Query:
    window = sash.sliding(size * unit, every * unit)
    return sash.Query(time="t", by=["k"], window=window, select=select or SELECT)


def _many_rows(
    name: str, where: str, queries: dict[str, sash.Query], run: Any, rows: int
) -> Workload:
    shared, each = sash.share(queries), 6_000  # windows of a key
    one = _query(2, 1, DAYS * 24 * HOUR // each)
    emitted = cache(lambda: list(shared.run(_events(rows), threads=1).values()))

    def write() -> None:
        for table in emitted():
            columns = [np.array(column.to_numpy()) for column in table.columns]
            pa.table(columns, names=table.column_names)

    def write_parquet() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for i, table in enumerate(emitted()):
                pq.write_table(table, f"{folder}/{i}.parquet")

    columns, parquet = "writing the rows as columns", "writing them as Parquet"
    return Workload(
        name=f"shared-{name}-{where}",
        title=f"100 queries that share a plan and emit 60 % as many rows as events ({name}), "
        f"over a {where}",
        unit="event",
        units=rows,
        calls=1,
        ours={
            "100 queries": Contender(
                run=lambda: run(shared),
                bounds=tuple(Bound(1.5, peer, or_equal=True) for peer in (columns, parquet)),
            )
        },
        peers={
            columns: Contender(run=write),
            parquet: Contender(run=write_parquet),
            "one query": Contender(run=lambda: run(_query(24, 6))),
            "one with as many rows": Contender(run=lambda: run(one)),
        },
        release=emitted.cache_clear,
    )


def _hundred(unit: int = 8 * HOUR) -> dict[str, sash.Query]:
    """Slides of 1 to 25 units, and windows of 1 to 4 slides."""
    slides = [(i % 25 + 1, 1 + i // 25) for i in range(100)]
    return {f"q{i}": _query(n * m, n, unit) for i, (n, m) in enumerate(slides)}


@cache
def _events(rows: int) -> pa.Table:
    source = np.random.default_rng(1)
    times = np.sort(source.integers(0, DAYS * 24 * HOUR, rows))
    keys = source.integers(0, rows // EVENTS, rows)
    at = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"t": at, "k": keys, "x": source.random(rows)})


def _tabled(rows: int) -> Any:
    def run(query: Any) -> Any:
        return query.run(_events(rows), threads=1)

    return run


def _streamed(rows: int) -> Any:
    def run(query: Any) -> None:
        table, stream = _events(rows), query.stream(lateness="1 minute")
        for at in range(0, rows, 50_000):
            stream.push(table.slice(at, 50_000))
        stream.close()

    return run
