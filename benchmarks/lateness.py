"""What `sash.lateness` takes: 20 allowances over ten million rows of a thousand keys, most of them
a little out of order, and one in twenty by a minute on average."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import sash

from .workload import Bound, Contender, Workload

__all__ = ["latenesses"]

ROWS, QUICK_ROWS = 10_000_000, 1_000_000
KEYS = 1000
#: Seconds for ten million rows.
LIMIT = 3.0

WINDOWS: dict[str, sash.windows.Window] = {
    "minute": sash.sliding("1 hour", "1 minute"),
    "second": sash.sliding("1 hour", "1 second"),
    "trailing": sash.trailing("1 hour"),
    "session": sash.session("5 seconds"),
}


@cache
def came(rows: int) -> pa.Table:
    """Events a millisecond apart, in the order in which they arrive."""
    random = np.random.default_rng(1)
    times = np.arange(rows) * 1000
    delays = random.exponential(16e3, rows)
    late = random.random(rows) < 0.05
    delays[late] = random.exponential(60e6, int(late.sum()))
    order = np.argsort(times + delays, kind="stable")
    keys = random.integers(0, KEYS, rows)
    return pa.table({"t": times[order].astype(np.int64), "k": keys})


def latenesses(*, quick: bool) -> list[Workload]:
    """One for each kind of window."""
    rows = QUICK_ROWS if quick else ROWS
    return [_of(name, window, rows) for name, window in WINDOWS.items()]


def _of(name: str, window: sash.windows.Window, rows: int) -> Workload:
    query = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    ours = Contender(
        run=lambda: sash.lateness(came(rows), query),
        first=lambda: sash.lateness(came(rows).slice(0, 10), query),
        kernel="lateness",
        bounds=(Bound(LIMIT / ROWS, or_equal=True),),
    )
    return Workload(
        name=f"lateness-{name}",
        title=f"20 allowances of {window!r}, {KEYS:,} keys",
        units=rows,
        calls=1,
        ours={"sash.lateness": ours},
        peers={},
        release=came.cache_clear,
    )
