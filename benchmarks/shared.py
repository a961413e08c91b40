"""Many queries over the same events: `sash.share` against one query alone.

10,000 events for each of 100 keys over six days; 100 queries, with windows of six hours to twelve
days that slide every six hours to every six days, so that rows out are 5 % of the events.  And ten
sizes in one row against one size.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import sash

from .workload import Bound, Contender, Workload

__all__ = ["shared_queries"]

HOUR = 3_600_000_000
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
    several = _query(6, 6, sized)
    bound = (Bound(10.0, peer="one query", or_equal=True),)
    few = (Bound(2.5, peer="one query", or_equal=True),)
    return [
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
        for where, run in (("table", _tabled(rows)), ("stream", _streamed(rows)))
    ]


def _query(size: int, every: int, select: Any = None) -> sash.Query:
    window = sash.sliding(size * HOUR, every * HOUR)
    return sash.Query(time="t", by=["k"], window=window, select=select or SELECT)


def _hundred() -> dict[str, sash.Query]:
    every = [6 * (i % 24 + 1) for i in range(100)]
    return {f"q{i}": _query(n * (1 + i % 2), n) for i, n in enumerate(every)}


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
