"""Statements of SQL: what reading one takes, and what running it takes beside its query."""

from __future__ import annotations

from typing import Any

import sash

from .any_order import make_table
from .workload import Bound, Contender, Workload

__all__ = ["statements"]

ROWS, QUICK_ROWS = 2_000_000, 200_000
_AGGREGATES = ", ".join(
    f"{name}({of}) AS {name}_{i}"
    for i, of in enumerate(("x", "y", "x * 2", "y + 1"))
    for name in ("sum", "max", "min", "avg", "stddev")
)
TWENTY = (
    f"SELECT k, window.start, {_AGGREGATES} FROM t WHERE x > 0 GROUP BY k, "
    "window(ts, '1 hour', '1 minute') HAVING count(*) > 2"
)


def statements(*, quick: bool) -> list[Workload]:
    """All of them."""
    return [_read(), *_run(QUICK_ROWS if quick else ROWS)]


def _read() -> Workload:
    return Workload(
        name="sql-read",
        title="a statement with 20 aggregates and 5 expressions is read and planned",
        unit="statement",
        ours={"sash.sql": Contender(run=lambda: sash.sql(TWENTY), bounds=(Bound(0.03),))},
        peers={},
    )


def _run(rows: int) -> list[Workload]:
    table = make_table(rows, 100, in_order=True)
    time, key, value = table.column_names[:3]
    select = {"n": sash.count(), "m": sash.max(value), "a": sash.mean(value)}
    items = f"count(*) {{0}} AS n, max({value}) {{0}} AS m, avg({value}) {{0}} AS a"
    texts: dict[str, tuple[str, Any]] = {
        "sliding": (
            f"SELECT {key}, window.start, window.end, {items.format('')} FROM t GROUP BY {key}, "
            f"window({time}, '1 hour', '10 minutes')",
            sash.sliding("1 hour", "10 minutes"),
        ),
        "trailing": (
            f"SELECT *, {items.format('OVER w')} FROM t WINDOW w AS (PARTITION BY {key} ORDER BY "
            f"{time} RANGE INTERVAL '10' MINUTE PRECEDING)",
            sash.trailing("10 minutes"),
        ),
    }
    return [
        _beside(name, text, sash.Query(time=time, by=[key], window=window, select=select), table)
        for name, (text, window) in texts.items()
    ]


def _beside(name: str, text: str, query: sash.Query, table: Any) -> Workload:
    statement, few = sash.sql(text), table.slice(0, 10)

    def contender(given: Any, bounds: tuple[Bound, ...] = ()) -> Contender:
        return Contender(
            run=lambda: given.run(table, threads=1),
            first=lambda: given.run(few, threads=1),
            kernel=f"sql {name}",
            answer=lambda found: found["n"].to_numpy(),
            bounds=bounds,
        )

    return Workload(
        name=f"sql-{name}",
        title=f"{query.window!r}: count, max and mean for each key, by SQL and by its query",
        units=table.num_rows,
        ours={"sash.sql": contender(statement, (Bound(1.05, "Query", or_equal=True),))},
        peers={"Query": contender(query)},
    )
