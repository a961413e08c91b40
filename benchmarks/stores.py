"""Windows and streams over stores: a round, a bulk eviction, memory, many keys.

Figures of a store are wall time of this process: what a store does in the background, on another
core, is not in them unless it holds up the window.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import sash
from sash import operators
from sash.aggregators import Amta, LogMta
from sash.stores import Store

from .workload import Bound, Contender, Workload

__all__ = ["stores"]

ROUNDS = 1 << 20
TIMES = 3
LARGER = 8192  # a cache, and a buffer, of so many nodes


def stores(*, quick: bool) -> list[Workload]:
    """All of them."""
    sizes = (1 << 10, 1 << 14, 1 << 18) if quick else (1 << 10, 1 << 15, 1 << 20, 1 << 25)
    return [
        *(_rounds(which, sizes) for which in ("count", "max")),
        _bulk(1 << 18 if quick else 1 << 23),
        _memory((1 << 18, 1 << 20) if quick else (1 << 20, 1 << 22, 1 << 25)),
        _many_keys(100_000 if quick else 10_000_000),
    ]


def _power(size: int) -> str:
    return f"2^{size.bit_length() - 1}"


@cache
def values(count: int) -> Any:
    return np.random.default_rng(1).random(count)


@cache
def rocksdb() -> Store:
    """One store for all, in a folder that goes with the process."""
    folder = tempfile.TemporaryDirectory()
    _kept.append(folder)
    return sash.stores.rocksdb(folder.name)


@cache
def redis() -> Store:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from servers import RedisServer

    folder = tempfile.TemporaryDirectory()
    server = RedisServer(Path(folder.name))
    _kept.extend((folder, server))
    return sash.stores.redis(server.url)


_kept: list[Any] = []
_LARGE = {"cache": LARGER, "buffer": LARGER}
_WAYS: dict[str, tuple[Any, Callable[[], Store] | None, dict[str, int]]] = {
    "Amta on RocksDB": (Amta, rocksdb, {}),
    f"Amta on RocksDB, cache={LARGER}": (Amta, rocksdb, _LARGE),
    f"LogMta on RocksDB, cache={LARGER}": (LogMta, rocksdb, _LARGE),
    f"Amta on Redis, cache={LARGER}": (Amta, redis, _LARGE),
    "Amta in memory": (Amta, None, {}),
    "LogMta in memory": (LogMta, None, {}),
}


def _made(way: str, operator: Any) -> Any:
    kind, store, sizes = _WAYS[way]
    if store is None:
        return kind(operator)
    home = store()
    home.drop(way)
    return kind(operator, store=home, name=way, **sizes)


def _rounds(which: str, sizes: tuple[int, ...]) -> Workload:
    """Rounds of evict, insert and query on full windows."""
    operator = getattr(operators, which).of(float)

    def run(way: str) -> list[float]:
        found = []
        for size in sizes:
            window = _made(way, operator)
            for _ in range(0, size, ROUNDS):
                window.slide(values(min(size, ROUNDS)), size)
            best = float("inf")
            for _ in range(TIMES):
                start = time.perf_counter()
                window.slide(values(ROUNDS), size)
                best = min(best, time.perf_counter() - start)
            found.append(best / ROUNDS)
            window.release()
        return found

    bound = (Bound(3, peer="Amta in memory"),)
    large = f"Amta on RocksDB, cache={LARGER}"
    return Workload(
        name=f"stored-rounds-{which}",
        title=f"{which}: a round of `slide` over a full window, by its size",
        ours={
            way: Contender(partial(run, way), bounds=bound if way == large else ()) for way in _WAYS
        },
        peers={},
        unit="round",
        told=True,
        columns=tuple(_power(size) for size in sizes),
    )


def _bulk(size: int) -> Workload:
    """Eviction of many values at once, and the answer after it."""
    operator = operators.max.of(float)
    counts = [1, size // 1000, size // 2, size - 62]

    def run(way: str) -> list[float]:
        found = []
        for count in counts:
            window = _made(way, operator)
            for _ in range(0, size, ROUNDS):
                window.slide(values(min(size, ROUNDS)), size)
            window.bulk_evict(60)  # which compiles what it needs
            window.bulk_evict(1)
            window.query()
            if "memory" not in way:
                window.sync()
            start = time.perf_counter()
            window.bulk_evict(count)
            window.query()
            found.append(time.perf_counter() - start)
            window.release()
        return found

    ways = [way for way in _WAYS if "Redis" not in way]
    return Workload(
        name="stored-bulk",
        title=f"bulk eviction out of {_power(size)} values, and an answer",
        ours={
            way: Contender(partial(run, way), bounds=(Bound(0.01 if "Rocks" in way else 0.0005),))
            for way in ways
        },
        peers={},
        unit="eviction",
        told=True,
        columns=tuple(f"{count:,}" for count in counts),
        once=True,
    )


_RESIDENT = """
import os, resource, sys, tempfile
import numba, numpy as np, rocksdict
import sash
from sash import operators
from sash.aggregators import Amta

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

size, stored = int(sys.argv[1]), sys.argv[2] == "stored"
x = np.random.default_rng(1).random(1 << 16)
Amta(operators.max.of(float)).slide(x[:8], 4)
with tempfile.TemporaryDirectory() as folder:
    if stored:
        few = Amta(operators.max.of(float), store=sash.stores.memory(), name="few")
        few.slide(x[:8], 4)
    before = resident()
    if stored:
        store = sash.stores.rocksdb(folder)
        window = Amta(operators.max.of(float), store=store, name="w")
    else:
        window = Amta(operators.max.of(float))
    most = 0
    for i in range(size >> 16):
        window.slide(x, size)
        if stored and i % 64 == 63:
            window.sync()
        most = max(most, resident())
    print(most - before)
    if stored:
        window.release()
        store.close()
"""


def _memory(sizes: tuple[int, ...]) -> Workload:
    """Memory of a window, above a process that has all libraries loaded."""

    def run(kind: str) -> list[float]:
        command = [sys.executable, "-c", _RESIDENT]
        return [
            float(subprocess.check_output([*command, str(size), kind], text=True)) for size in sizes
        ]

    return Workload(
        name="stored-memory",
        title="memory of a window of max, by its size",
        ours={
            "Amta on RocksDB": Contender(partial(run, "stored"), bounds=(Bound(64 << 20),)),
            "Amta in memory": Contender(partial(run, "memory")),
        },
        peers={},
        unit="window",
        in_bytes=True,
        told=True,
        columns=tuple(_power(size) for size in sizes),
        once=True,
    )


_KEYS = """
import os, sys, tempfile, time
import numpy as np, pyarrow as pa
import sash

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

keys = int(sys.argv[1])
batch = min(keys, 1_000_000)
source = np.random.default_rng(1)
q = sash.Query(
    time="t",
    by=["k"],
    window=sash.sliding("1 hour", "1 minute"),
    select={"n": sash.count(), "worst": sash.max("x")},
    emit="changes",
)
with tempfile.TemporaryDirectory() as folder:
    store = sash.stores.rocksdb(folder)
    s = q.stream(store=store, name="keys", lateness="10 seconds")
    rows = emitted = most = 0
    seconds = 0.0
    for number in range(-(-2 * keys // batch)):
        table = pa.table({
            "t": number * 10_000_000 + source.integers(0, 10_000_000, batch),
            "k": source.integers(0, keys, batch),
            "x": source.random(batch),
        })
        start = time.process_time()
        emitted += s.push(table).num_rows
        s.sync()
        seconds += time.process_time() - start
        rows += batch
        most = max(most, resident())
        print(number, rows / seconds, most >> 20, emitted, file=sys.stderr, flush=True)
    print(seconds / rows, most, s.state_size()["keys"])
    s.release()
    store.close()
"""


def _many_keys(keys: int) -> Workload:
    """A stream of more keys than should be in memory: seconds of processor time an event."""

    def run() -> list[float]:
        command = [sys.executable, "-c", _KEYS, str(keys)]
        seconds, resident, _ = subprocess.check_output(command, text=True).split()
        return [float(seconds), float(resident) / 2**30]

    return Workload(
        name="stored-keys",
        title=f"a stream of {keys:,} keys, an hour every minute, changes, on RocksDB",
        ours={"Query.stream": Contender(run, bounds=(Bound(1 / 50_000),))},
        peers={},
        unit="event",
        told=True,
        columns=("seconds", "GB"),
        once=True,
    )
