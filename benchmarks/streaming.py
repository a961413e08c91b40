"""Queries over streams: `Query.stream` fed with batches, a state that is full, 5 % of events late.

One event a key and second, windows that slide every second.  What is late comes up to four
slides after its time, and the lateness is five, so that nothing is lost.  A call pushes some
batches into a stream that has been fed until all windows are full.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

import sash

from .workload import Bound, Contender, Workload

__all__ = ["streaming"]

BATCH, BATCHES = 10_000, 20
SECOND = 1_000_000
CASES = ((100, 60), (1_000, 60), (100, 3_600), (1_000, 3_600))
QUICK = ((100, 60), (1_000, 60))
#: Three million events a second.
LIMIT = 1 / 3e6


def streaming(*, quick: bool) -> list[Workload]:
    """All of them."""
    return [_push(mode, quick=quick) for mode in ("final", "live")]


class _Fed:
    """A stream whose windows are full, made when it is first needed, and batches that come next."""

    def __init__(self, keys: int, ratio: int, mode: str) -> None:
        self._keys, self._ratio, self._mode = keys, ratio, mode
        self._stream: Any = None

    def push(self) -> float:
        """Push some batches; the seconds that took."""
        if self._stream is None:
            self._batches = _batches(self._keys)
            self._stream = _query(self._ratio).stream(lateness="5 seconds", mode=self._mode)
            for batch in islice(self._batches, 1 + self._ratio * self._keys // BATCH):
                self._stream.push(batch)
        batches = list(islice(self._batches, BATCHES))
        start = time.perf_counter()
        for batch in batches:
            self._stream.push(batch)
        seconds = time.perf_counter() - start
        assert self._stream.late.num_rows == 0
        return seconds

    def release(self) -> None:
        self._stream = None


def _query(ratio: int) -> sash.Query:
    return sash.Query(
        time="t",
        by=["key"],
        window=sash.sliding(ratio * SECOND, SECOND),
        select={"max": sash.max("x"), "mean": sash.mean("x")},
    )


def _batches(keys: int) -> Iterator[pa.Table]:
    """Batches without end."""
    source = np.random.default_rng(0)
    names = pa.array([f"key {i}" for i in range(keys)])
    row = 0
    while True:
        rows = np.arange(row, row + BATCH)
        times = rows // keys * SECOND + source.integers(0, SECOND, BATCH)
        late = source.random(BATCH) < 0.05
        times -= np.where(late, source.integers(1, 5, BATCH), 0) * SECOND
        yield pa.table(
            {
                "t": pa.array(times.view("M8[us]")),
                "key": names.take(pa.array(rows % keys)),
                "x": source.standard_normal(BATCH),
            }
        )
        row += BATCH


def _push(mode: str, *, quick: bool) -> Workload:
    held = {
        f"{keys:,} keys, size/slide {ratio:,}": _Fed(keys, ratio, mode)
        for keys, ratio in (QUICK if quick else CASES)
    }

    def release() -> None:
        for fed in held.values():
            fed.release()

    bounds = (Bound(LIMIT, or_equal=True),) if mode == "final" else ()
    return Workload(
        name=f"stream-{mode}",
        title=f"a stream of max and mean in {mode} mode, batches of {BATCH:,} events, 5 % late",
        unit="event",
        units=BATCH * BATCHES,
        told=True,
        ours={name: Contender(run=fed.push, bounds=bounds) for name, fed in held.items()},
        peers={},
        release=release,
    )
