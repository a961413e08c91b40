"""Windows and streams over stores: a round, a bulk eviction, memory, many keys.

`python -m benchmarks --only stored` measures all of it; `stored_memory` has the windows' memory.

Times of rounds are wall time: what a store does in the background, on another core, is in them if
it holds up the window.  A call is long enough for that, and the best of several counts.
"""

from __future__ import annotations

import atexit
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

from .stored_memory import memory
from .workload import Bound, Contender, Workload

__all__ = ["stores"]

ROUNDS = 1 << 21  # in a call; what waits for the store is a tenth of that


def stores(*, quick: bool) -> list[Workload]:
    """All of them."""
    sizes = (1 << 10, 1 << 14, 1 << 18) if quick else (1 << 10, 1 << 15, 1 << 20, 1 << 25)
    return [
        *(_rounds(which, size) for which in ("count", "max") for size in sizes),
        _bulk(1 << 18 if quick else 1 << 23),
        memory((1 << 18, 1 << 20) if quick else (1 << 20, 1 << 22, 1 << 25)),
        *_many_keys(100_000 if quick else 10_000_000),
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
    atexit.register(server.close)
    _kept.append(folder)
    return sash.stores.redis(server.url)


_kept: list[Any] = []
_PAPER = {"cache": 512, "buffer": 256}
_WAYS: dict[str, tuple[Any, Callable[[], Store] | None, dict[str, int]]] = {
    "Amta on RocksDB": (Amta, rocksdb, {}),
    "Amta on RocksDB, the paper's sizes": (Amta, rocksdb, _PAPER),
    "Amta on Redis": (Amta, redis, {}),
    "LogMta on RocksDB": (LogMta, rocksdb, {}),
    "LogMta in memory": (LogMta, None, {}),
}
_PEER = "Amta in memory"


def _made(way: str, operator: Any) -> Any:
    kind, store, sizes = (Amta, None, {}) if way == _PEER else _WAYS[way]
    if store is None:
        return kind(operator)
    home = store()
    home.drop(way)
    return kind(operator, store=home, name=way, **sizes)


def _fill(window: Any, size: int) -> None:
    for done in range(0, size, ROUNDS):
        window.slide(values(ROUNDS)[: size - done], size)


def _rounds(which: str, size: int) -> Workload:
    """Rounds of evict, insert and query on a full window."""
    operator = getattr(operators, which).of(float)
    windows: dict[str, Any] = {}

    def run(way: str) -> float:
        if way not in windows:
            windows[way] = _made(way, operator)
            _fill(windows[way], size)
        start = time.perf_counter()
        windows[way].slide(values(ROUNDS), size)
        return time.perf_counter() - start

    def release() -> None:
        for way, window in windows.items():
            if way in _WAYS and _WAYS[way][1] is not None:
                window.release()
                _WAYS[way][1]().drop(way)  # type: ignore[misc]
        windows.clear()

    bound, bounded = (Bound(3, peer=_PEER, or_equal=True),), "Amta on RocksDB"
    return Workload(
        name=f"stored-rounds-{which}-{_power(size)}",
        title=f"{which}: a round of `slide` over a window of {_power(size)}",
        ours={
            way: Contender(
                partial(run, way),
                bounds=bound if way == bounded else (),
                slow=way != bounded,  # for information
            )
            for way in _WAYS
        },
        peers={_PEER: Contender(partial(run, _PEER))},
        units=ROUNDS,
        unit="round",
        told=True,
        release=release,
    )


def _bulk(size: int) -> Workload:
    """Eviction of many values at once, and the answer after it."""
    operator = operators.max.of(float)
    counts = [1, size // 1000, size // 2, size - 1]

    def run(way: str) -> list[float]:
        found = []
        for count in counts:
            window = _made(way, operator)
            window.slide(values(ROUNDS)[:100], 100)
            window.bulk_evict(60)  # which compiles what it needs
            window.bulk_evict(1)
            window.query()
            _fill(window, size)
            if "memory" not in way:
                window.sync()
            start = time.perf_counter()
            window.bulk_evict(count)
            window.query()
            found.append(time.perf_counter() - start)
            window.release()
        return [max(found), *found]

    ways = [*(way for way in _WAYS if "Redis" not in way), _PEER]
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
        columns=("longest", *(f"{count:,}" for count in counts)),
        once=True,
    )


_KEYS = """
import sys, tempfile, time
import numpy as np, pyarrow as pa
import sash

def peak():
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

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
    rows = emitted = 0
    seconds = 0.0
    # Windows fall due with the eighth batch and with the fourteenth.
    for number in range(keys // batch + 4):
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
        print(number, int(rows / seconds), peak() >> 20, emitted, file=sys.stderr, flush=True)
    print(seconds / rows, peak(), s.state_size()["keys"])
    s.release()
    store.close()
"""


def _many_keys(keys: int) -> list[Workload]:
    """A stream of more keys than should be in memory: seconds of processor time an event, and the
    peak of its process's memory."""

    @cache
    def run() -> tuple[float, float]:
        command = [sys.executable, "-c", _KEYS, str(keys)]
        seconds, peak, _ = subprocess.check_output(command, text=True).split()
        return float(seconds), float(peak)

    title = f"a stream of {keys:,} keys, an hour every minute, changes, on RocksDB"
    shape: dict[str, Any] = {"peers": {}, "told": True, "once": True}
    return [
        Workload(
            name="stored-keys",
            title=f"{title}: processor time",
            ours={"Query.stream": Contender(lambda: run()[0], bounds=(Bound(1 / 50_000),))},
            unit="event",
            **shape,
        ),
        Workload(
            name="stored-keys-memory",
            title=f"{title}: peak of memory",
            ours={"Query.stream": Contender(lambda: run()[1], bounds=(Bound(1e9),))},
            unit="process",
            measure="bytes",
            **shape,
        ),
    ]
