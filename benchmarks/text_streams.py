"""Streams over text, beside the same streams over whole numbers that stand for the text.

100 keys, an event a key and second, windows of a minute that slide every second, batches of 10,000
events.  A call pushes some batches into a stream whose windows are full.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import sash

from .workload import Bound, Contender, Workload

__all__ = ["text_streams"]

KEYS, BATCH, BATCHES, RATIO = 100, 10_000, 20, 60
SECOND = 1_000_000
#: At most so many times the stream over whole numbers.
LIMIT = 2.0

WHO = {"n": sash.count(), "worst": sash.max("x"), "who": sash.arg_max("v", by="x")}
ENDS = {"first": sash.first("v"), "last": sash.last("v")}
ORDER = {"least": sash.min("v"), "most": sash.max("v")}


def text_streams(*, quick: bool) -> list[Workload]:
    """All of them."""
    tumbling = sash.tumbling(RATIO * SECOND)
    sliding = sash.sliding(RATIO * SECOND, SECOND)
    session = sash.session("1 second")
    trailing = sash.trailing(RATIO * SECOND)
    several = [sash.sliding(n * SECOND, SECOND) for n in (10, 20, 30, 45, RATIO)]
    made = [
        _beside("arg_max of 20 carriers", "who", sliding, WHO, 20),
        _beside("min and max of 5,000 texts", "order", sliding, ORDER, 5_000),
    ]
    if not quick:
        made += [
            _beside("first and last of 5,000 texts", "ends", sliding, ENDS, 5_000),
            _beside("arg_max of ever new texts", "new", sliding, WHO, None),
            _beside("first and last of sessions", "sessions", session, ENDS, 20),
            _beside("arg_max, tumbling", "tumbling", tumbling, WHO, 20),
            _beside("arg_max of five queries", "shared", several, WHO, 20),
            _beside("arg_max, a row for each event", "rows", sash.rows(60), WHO, 20),
            _beside("arg_max, in a store", "stored", sliding, WHO, 20, stored=True),
            _beside(
                "arg_max of five queries in a store",
                "stored-shared",
                several,
                WHO,
                20,
                stored=True,
            ),
            _beside(
                "arg_max, trailing in a store", "stored-trailing", trailing, WHO, 20, stored=True
            ),
            _beside("arg_max, rows in a store", "stored-rows", sash.rows(60), WHO, 20, stored=True),
            _beside(
                "min and max, rows in a store",
                "stored-order",
                sash.rows(60),
                ORDER,
                5_000,
                stored=True,
            ),
            _beside(
                "first and last of sessions in a store",
                "stored-sessions",
                session,
                ENDS,
                20,
                stored=True,
            ),
        ]
    return made


class _Fed:
    """A stream, made when it is first needed, and what comes next."""

    def __init__(
        self,
        window: Any,
        select: Any,
        values: int | None,
        as_value: Callable[[Any], pa.Array],
        *,
        stored: bool,
    ) -> None:
        """Several windows are those of queries that share slices."""
        self._stored = stored
        windows = window if isinstance(window, list) else [window]
        queries = [sash.Query(time="t", by=["key"], window=w, select=select) for w in windows]
        self._query: Any = queries[0]
        if len(queries) > 1:
            self._query = sash.share({str(i): q for i, q in enumerate(queries)})
        self._values, self._as_value = values, as_value
        self._stream: Any = None
        self._row, self._source = 0, np.random.default_rng(0)

    def push(self) -> float:
        """Push some batches; the seconds of processor time that took."""
        if self._stream is None:
            where = {"store": sash.stores.memory(), "name": "bench"} if self._stored else {}
            self._stream = self._query.stream(lateness="5 seconds", **where)
            for _ in range(2 + RATIO * KEYS // BATCH):
                self._stream.push(self._batch())
        batches = [self._batch() for _ in range(BATCHES)]
        start = time.process_time()
        for batch in batches:
            self._stream.push(batch)
        return time.process_time() - start

    def _batch(self) -> pa.Table:
        rows = np.arange(self._row, self._row + BATCH)
        self._row += BATCH
        times = rows // KEYS * SECOND + self._source.integers(0, SECOND, BATCH)
        numbers = rows if self._values is None else self._source.integers(0, self._values, BATCH)
        return pa.table(
            {
                "t": pa.array(times.view("M8[us]")),
                "key": pa.array(rows % KEYS),
                "x": self._source.standard_normal(BATCH),
                "v": self._as_value(numbers),
            }
        )

    def release(self) -> None:
        self._stream = None


def _as_text(numbers: Any) -> pa.Array:
    return pa.array(np.char.add("value ", numbers.astype(str)))


def _beside(
    title: str, name: str, window: Any, select: Any, values: int | None, *, stored: bool = False
) -> Workload:
    text, whole = (
        _Fed(window, select, values, kind, stored=stored) for kind in (_as_text, pa.array)
    )

    def release() -> None:
        text.release()
        whole.release()

    bound = Bound(LIMIT, "whole numbers", or_equal=True)
    return Workload(
        name=f"stream-text-{name}",
        title=f"a stream over text: {title}",
        unit="event",
        units=BATCH * BATCHES,
        told=True,
        ours={"text": Contender(run=text.push, bounds=(bound,))},
        peers={"whole numbers": Contender(run=whole.push)},
        release=release,
    )
