"""Queries over streams: `Query.stream` fed with batches, a state that is full, 5 % of events late.

One event a key and second, windows that slide every second.  What is late comes up to four
slides after its time, and the lateness is five, so that nothing is lost.  A call pushes some
batches into a stream that has been fed until all windows are full.

Two more set streams beside themselves: many slices beside few, where the state is larger than the
processor's caches; and two threads beside one, for one stream and for two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

import sash

from .processes import setting
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
    waits = (100, 600) if quick else (1_000, 3_600)
    return [
        *(_push(mode, quick=quick) for mode in ("final", "live")),
        _waiting(*waits),
        _in_threads(),
        _two_at_once(),
    ]


class _Fed:
    """A stream whose windows are full, made when it is first needed, and batches that come next."""

    def __init__(self, keys: int, ratio: int, mode: str = "final", batch: int = BATCH) -> None:
        self._keys, self._ratio, self._mode, self._batch = keys, ratio, mode, batch
        self._stream: Any = None
        self._next: list[pa.Table] = []

    def push(self) -> float:
        """Push some batches; the seconds that took."""
        self.ready()
        start = time.perf_counter()
        for batch in self._next:
            self._stream.push(batch)
        seconds = time.perf_counter() - start
        self._next = []
        assert self._stream.late.num_rows == 0
        return seconds

    def ready(self) -> None:
        """Fill the windows, and make the batches of the next `push`."""
        if self._stream is None:
            self._batches = _batches(self._keys, self._batch)
            self._stream = _query(self._ratio).stream(lateness="5 seconds", mode=self._mode)
            for batch in islice(self._batches, 1 + self._ratio * self._keys // self._batch):
                self._stream.push(batch)
        if not self._next:
            self._next = list(islice(self._batches, BATCH * BATCHES // self._batch))

    def release(self) -> None:
        self._stream, self._next = None, []


def _query(ratio: int) -> sash.Query:
    return sash.Query(
        time="t",
        by=["key"],
        window=sash.sliding(ratio * SECOND, SECOND),
        select={"max": sash.max("x"), "mean": sash.mean("x")},
    )


def _batches(keys: int, size: int) -> Iterator[pa.Table]:
    """Batches without end."""
    source = np.random.default_rng(0)
    names = pa.array([f"key {i}" for i in range(keys)])
    row = 0
    while True:
        rows = np.arange(row, row + size)
        times = rows // keys * SECOND + source.integers(0, SECOND, size)
        late = source.random(size) < 0.05
        times -= np.where(late, source.integers(1, 5, size), 0) * SECOND
        yield pa.table(
            {
                "t": pa.array(times.view("M8[us]")),
                "key": names.take(pa.array(rows % keys)),
                "x": source.standard_normal(size),
            }
        )
        row += size


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


def _beside(name: str, title: str, ours: Any, theirs: Any, limit: float, **more: Any) -> Workload:
    """One way to feed streams beside another, each with its name and the streams that it feeds."""
    (mine, feed, held), (peer, other, others) = ours, theirs

    def release() -> None:
        for fed in (*held, *others):
            fed.release()

    events = BATCH * BATCHES
    bounds = (Bound(limit, peer, or_equal=True),)
    return Workload(
        name=name,
        title=title,
        unit="event",
        told=True,
        ours={mine: Contender(run=feed, units=events * len(held), bounds=bounds)},
        peers={peer: Contender(run=other, units=events * len(others))},
        release=release,
        **more,
    )


def _waiting(keys: int, ratio: int) -> Workload:
    """The state of many slices does not fit into the processor's caches, so a stream waits."""
    many, few = _Fed(keys, ratio), _Fed(keys, 60)
    return _beside(
        "stream-waits",
        f"a stream of max and mean, {keys:,} keys, batches of {BATCH:,} events: many slices to few",
        (f"{ratio:,} slices", many.push, [many]),
        ("60 slices", few.push, [few]),
        1.5,
    )


def _in_threads() -> Workload:
    def of(threads: int) -> Any:
        fed = _Fed(1_000, 60, batch=10 * BATCH)

        def push() -> float:
            with setting("SASH_THREADS", threads):
                return fed.push()

        return f"SASH_THREADS={threads}", push, [fed]

    return _beside(
        "stream-threads",
        f"a stream of max and mean in two threads, 1,000 keys, batches of {10 * BATCH:,} events",
        of(2),
        of(1),
        1 / 1.7,
    )


def _two_at_once() -> Workload:
    """Two threads, each with a stream of its own."""
    one, *two = (_Fed(1_000, 60) for _ in range(3))

    def both() -> float:
        for fed in two:
            fed.ready()
        threads = [Thread(target=fed.push) for fed in two]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    return _beside(
        "stream-two-at-once",
        f"two streams of max and mean, a thread each, 1,000 keys each, batches of {BATCH:,} events",
        ("two streams in two threads", both, two),
        ("one stream", one.push, [one]),
        1 / 1.7,
    )
