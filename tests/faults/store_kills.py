"""Kills of processes that use a store: `python tests/faults/store_kills.py [--kills N]`.

A process opens a window or a stream in a store, inserts, evicts, evicts in bulk, and syncs, until
it is killed with SIGKILL at a random moment; the next one opens it again.  What a process finds
must be the state of the last completed `sync`, or of the one that the kill came into.  What each
does is known beforehand, so a state is known by the step it belongs to.  Prints how many kills
there were of each kind, and in what they came.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
if __name__ == "__main__":
    os.environ.setdefault("SASH_JIT", "0")  # what is killed is not the kernels

import pyarrow as pa

import sash
from sash import operators as ops
from sash.aggregators import Amta, LogMta
from sash.kernels.slots import END, START
from sash.state import portions
from sash.stores import Store
from sash.testing.queries import rows_of
from servers import RedisServer

Say = Callable[[str], None]
STEPS = 4000


class WindowWork:
    """A window: steps, and what it is after each."""

    def __init__(self, kind: Any, operator: Any, seed: int) -> None:
        self.kind, self.operator = kind, operator
        self.name = f"{kind.__name__} {operator.name} {seed}"
        source = random.Random(seed)
        self.steps: list[tuple[str, int]] = []
        self.states: list[tuple[int, int, Any]] = []
        start, end, total, values = 0, 0, 0, []
        for _ in range(STEPS):
            chance, size = source.random(), end - start
            if chance < 0.75 or size < 5:
                step = ("insert", source.randrange(100))
                values.append(step[1])
                end, total = end + 1, total + step[1]
            elif chance < 0.92:
                step = ("evict", 1 if chance < 0.9 else source.randrange(size))
                total -= sum(values[start : start + step[1]])
                start += step[1]
            else:
                step = ("sync", 0)
            self.steps.append(step)
            self.states.append((start, end, total))

    def open(self, store: Store) -> Any:
        if self.name in store.names():
            return self.kind.open(store, self.name, self.operator)
        made = self.kind(self.operator, store=store, name=self.name, cache=16, buffer=16)
        made.sync()
        return made

    def state(self, window: Any) -> tuple[Any, ...]:
        window._check()
        answer = window.query()
        total = sum(answer) if isinstance(answer, list | tuple) else answer or 0
        return window._core.get(START), window._core.get(END), total

    def known(self, step: int) -> tuple[Any, ...]:
        """The state after a step; before the first one it is -1."""
        return self.states[step] if step >= 0 else (0, 0, 0)

    def do(self, window: Any, step: int) -> None:
        what, given = self.steps[step]
        if what == "insert":
            window.insert(given)
        elif what == "evict":
            window.bulk_evict(given)
        else:
            window.sync()


class StreamWork:
    """A stream: steps, and what it has counted after each."""

    def __init__(self, window: Any, seed: int) -> None:
        source, self.name = random.Random(seed), f"{window!r} {seed}"
        self.query = sash.Query(
            time="t", by=["k"], window=window, select={"n": sash.count(), "sum": sash.sum("x")}
        )
        memory = self.query.stream(lateness=5)
        self.steps: list[tuple[str, Any]] = []
        self.states: list[tuple[Any, ...]] = []
        self.rows: list[Any] = []
        for step in range(STEPS // 20):
            if source.random() < 0.3:
                self.steps.append(("sync", None))
                self.rows.append([])
            else:
                many = source.randrange(1, 12)
                batch = pa.table(
                    {
                        "t": [step * 3 + source.randrange(20) for _ in range(many)],
                        "k": [source.randrange(8) for _ in range(many)],
                        "x": [source.randrange(100) for _ in range(many)],
                    }
                )
                self.steps.append(("push", batch))
                self.rows.append(sorted(map(repr, rows_of(memory.push(batch)))))
            self.states.append(self.state(memory))

    def open(self, store: Store) -> Any:
        new = self.name not in store.names()
        made = self.query.stream(lateness=5, store=store, name=self.name)
        assert made._journal is not None
        made._journal._buffer = 2000
        portions.MOST = 6  # so that most batches are done in portions
        if new:
            made.sync()
        return made

    def state(self, stream: Any) -> tuple[Any, ...]:
        return tuple(stream.counts.values()), stream.watermark, stream.late.num_rows

    def known(self, step: int) -> tuple[Any, ...]:
        return self.states[step] if step >= 0 else ((0,) * 5, None, 0)

    def do(self, stream: Any, step: int) -> None:
        what, batch = self.steps[step]
        if what == "sync":
            stream.sync()
        else:
            found = sorted(map(repr, rows_of(stream.push(batch))))
            assert found == self.rows[step], f"step {step}: {found} is not {self.rows[step]}"


WORKS: dict[str, Callable[[int], Any]] = {
    "Amta": lambda seed: WindowWork(Amta, ops.sum.of(int), seed),
    "Amta of objects": lambda seed: WindowWork(Amta, ops.collect, seed),
    "LogMta": lambda seed: WindowWork(LogMta, ops.sum.of(int), seed),
    "tiles": lambda seed: StreamWork(sash.sliding(12, 4), seed),
    "sessions": lambda seed: StreamWork(sash.session(6), seed),
}


@cache
def job_of(kind: str, seed: int) -> Any:
    """A job, which all stores share."""
    return WORKS[kind](seed)


def work(opened: Callable[[], Store], job: Any, allowed: list[int], say: Say) -> None:
    """What a process does until it is killed: find the state of one of the allowed steps, and go on
    from there."""
    store = opened()
    subject = job.open(store)
    found = job.state(subject)
    at = [step for step in allowed if job.known(step) == found]
    if not at:
        say(f"wrong {found} is none of {[job.known(step) for step in allowed]}")
        return
    say(f"opened {at[-1]}")
    for step in range(at[-1] + 1, len(job.steps)):
        if job.steps[step][0] == "sync":
            say(f"syncing {step}")
            job.do(subject, step)
            say(f"synced {step}")
        else:
            say(f"doing {step} {job.steps[step][0]}")
            job.do(subject, step)
    say("done")


def lives(opened: Callable[[], Store], job: Any, source: random.Random) -> Iterator[str]:
    """One process after the other, each killed; yields what each was doing."""
    allowed = [-1]
    while True:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                work(opened, job, allowed, partial(_say, writing))
            except BaseException as error:
                _say(writing, f"wrong {type(error).__name__} {error}")
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as said:
            first = said.readline()
            time.sleep(source.random() ** 2 * 0.08)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines = (first + said.read()).decode().splitlines()
        last = "opening"
        for line in lines:
            what, _, rest = line.partition(" ")
            if what == "wrong":
                raise AssertionError(line)
            if what in ("opened", "synced"):
                allowed = [int(rest)]
            elif what == "syncing":
                allowed = [*allowed[:1], int(rest)]
            last = rest.split(" ")[-1] if what == "doing" else what
        yield last
        if last == "done":
            return


def _say(writing: int, text: str) -> None:
    os.write(writing, f"{text}\n".encode())


def rocksdb(folder: str, *, logged: bool) -> Store:
    """A store that leaves all writes out of RocksDB's log that are not durable, or none."""
    sys.modules["sash.stores.rocksdb"]._LOGGED = 1 << 20 if logged else 0  # type: ignore[attr-defined]
    return sash.stores.rocksdb(folder, cache=1 << 20)


def kills(kind: str, where: str, wanted: int, url: str, seed: int) -> Counter[str]:
    """Kill processes of a kind, at least so many."""
    source, found = random.Random(seed), Counter[str]()
    while found.total() < wanted:
        folder = tempfile.mkdtemp()
        opened: Callable[[], Store] = partial(rocksdb, folder, logged=source.random() < 0.5)
        if where == "redis":
            opened = partial(sash.stores.redis, url)
        for last in lives(opened, job_of(kind, source.randrange(10**9)), source):
            found[last] += 1
            if found.total() >= wanted:
                break
        shutil.rmtree(folder)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="of each kind and store")
    parser.add_argument("--only", choices=list(WORKS))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        try:
            for kind in [given.only] if given.only else WORKS:
                for where in ("rocksdb", "redis"):
                    found = kills(kind, where, given.kills, server.url, given.seed)
                    print(json.dumps({"kind": kind, "store": where, "kills": found}), flush=True)
        finally:
            server.close()


if __name__ == "__main__":
    main()
