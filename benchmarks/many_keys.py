"""Many keys: a table with two keys of text, and a stream that keeps a million keys.

The table's keys are a thousand texts by a thousand, of which nearly all pairs are there, over
thirty days; the peer is Polars' `group_by` of both keys and the day.  The stream has windows of an
hour that slide every minute; its pushes fall into one minute, so no window falls due meanwhile.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import sash

from .any_order import DAYS, HOUR, SELECT
from .workload import Bound, Contender, Workload

__all__ = ["many_keys"]

TEXTS = 1_000
BATCH = 100_000
PUSHES = 2  # in a call
SECOND = 1_000_000


def many_keys(*, quick: bool) -> list[Workload]:
    """All of them."""
    return [_two_texts(300_000 if quick else 3_000_000), _live(200_000 if quick else 1_000_000)]


def _two_texts(rows: int) -> Workload:
    @cache
    def table() -> pa.Table:
        source = np.random.default_rng(0)
        names = [pa.array([f"{kind} {i}" for i in range(TEXTS)]) for kind in ("from", "to")]
        codes = [pa.array(source.integers(0, TEXTS, rows)) for _ in names]
        times = source.integers(0, DAYS * 24 * HOUR, rows)
        return pa.table(
            {
                "t": pa.array(times).cast(pa.timestamp("us")),
                "a": names[0].take(codes[0]),
                "b": names[1].take(codes[1]),
                "x": source.standard_normal(rows),
            }
        )

    query = sash.Query(time="t", by=["a", "b"], window=sash.tumbling("24 hours"), select=SELECT)

    def by_polars() -> pl.DataFrame:
        day, x = pl.col("t").dt.truncate("24h").alias("window_start"), pl.col("x")
        values = (pl.len().alias("n"), x.max().alias("most"), x.mean().alias("mean"))
        return pl.DataFrame(table()).group_by("a", "b", day).agg(*values)

    def answer(found: Any) -> Any:
        frame = pl.DataFrame(found).sort("a", "b", "window_start").select("n", "most", "mean")
        return frame.to_numpy().ravel()

    return Workload(
        name="run-two-text-keys",
        title=f"count, max, mean of a day, two keys of text: {rows:,} rows in random order",
        units=rows,
        ours={
            "Query.run": Contender(
                run=lambda: query.run(table()),
                answer=answer,
                bounds=(Bound(1.0, "Polars", or_equal=True),),
            )
        },
        peers={"Polars": Contender(run=by_polars, answer=answer)},
        release=table.cache_clear,
    )


class _Live:
    """A stream that has an event of each key, made when it is first needed."""

    def __init__(self, keys: int) -> None:
        self._keys, self._stream = keys, None
        self._source, self._at = np.random.default_rng(0), 0

    def push(self) -> float:
        """Push some batches of random keys; the seconds that took."""
        if self._stream is None:
            window = sash.sliding("1 hour", "1 minute")
            query = sash.Query(time="t", by=["key"], window=window, select=SELECT)
            self._stream = query.stream(lateness="1 minute")
            every = self._source.permutation(self._keys)
            for start in range(0, self._keys, BATCH):
                self._stream.push(self._batch(every[start : start + BATCH]))
        batches = [self._batch(self._source.integers(0, self._keys, BATCH)) for _ in range(PUSHES)]
        start = time.perf_counter()
        for batch in batches:
            self._stream.push(batch)
        return time.perf_counter() - start

    def _batch(self, keys: Any) -> pa.Table:
        """Events of these keys, a second after those before."""
        self._at += SECOND
        times = self._at + self._source.integers(0, SECOND, len(keys))
        return pa.table({"t": times, "key": keys, "x": self._source.standard_normal(len(keys))})

    def release(self) -> None:
        self._stream = None


def _live(keys: int) -> Workload:
    live = _Live(keys)
    return Workload(
        name="stream-many-keys",
        title=f"a push of {BATCH:,} rows into a stream of {keys:,} live keys: count, max, mean",
        unit="push",
        units=PUSHES,
        told=True,
        ours={"push": Contender(run=live.push, bounds=(Bound(0.3),))},
        peers={},
        release=live.release,
    )
