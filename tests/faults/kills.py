"""A thousand kills: `python tests/faults/kills.py RESULTS [--minutes N] [--only KIND] [--of A,B]`.

Streams run one after the other, or some side by side, each in a folder of its own; their drivers,
executors or Python workers are killed at random moments while files arrive, for each of the queries
in `driver.STREAMS`, and what they keep is compared with brute force.  Each stream adds a line to
the file RESULTS, and a run goes on where the last one ended, until there are as many kills of each
kind as are wanted, of all streams or of the streams that are asked for; SIGTERM lets the streams
that run come to their end and starts no more.  The folder of a stream that kept something else is
left where it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from driver import STREAMS

import sash
from streams import (
    Input,
    children,
    cluster,
    commits,
    judge,
    python_workers,
    running,
    tables,
    to_the_end,
    wait,
)

#: How many kills of each kind are wanted.
WANTED = {"driver": 100, "executor": 100, "worker": 800}
COUNTS = ("kills", "batches", "replayed", "rows", "lost", "doubled", "wrong")


def kill_drivers(folder: Path, given: Input, stream: str, source: random.Random) -> int:
    """Kill the driver, with all that it started, ten times, each time some micro-batches on."""
    deaths = 10
    for death in range(deaths):
        target = commits(folder) + 1
        with running(folder, "local[2]", stream, "arriving") as driver:
            given.arrive(len(given.batches) * (death + 1) // (deaths + 1))
            wait(driver, folder, lambda at=target: commits(folder) >= at)  # type: ignore[misc]
            time.sleep(source.uniform(0, 1.5))
            assert driver.poll() is None, (folder / "log").read_text()[-5000:]
    given.arrive()
    with running(folder, "local[2]", stream) as driver:
        to_the_end(driver, folder)
    return deaths


def kill_executors(folder: Path, given: Input, stream: str, source: random.Random) -> int:
    """Kill the executor of one or the other of two workers, whenever a micro-batch is done."""
    kills = 0
    with cluster(folder) as (url, workers):
        with running(folder, url, stream, "arriving") as driver:
            for arrived in range(2, len(given.batches)):
                given.arrive(arrived)
                done = commits(folder)
                wait(driver, folder, lambda at=done: commits(folder) > at)  # type: ignore[misc]
                time.sleep(source.uniform(0, 1.0))
                for executor in children(source.choice(workers).pid):
                    kills += _kill(executor)
        given.arrive()
        with running(folder, url, stream) as driver:
            to_the_end(driver, folder)
    return kills


def kill_workers(folder: Path, given: Input, stream: str, source: random.Random) -> int:
    """Kill Python workers, one or all that are alive, twice in each micro-batch: a task whose
    worker dies is tried again, and where more die than can start, nothing comes on."""
    return kill_workers_of(folder, {stream: given}, source)[stream]


def kill_workers_of(
    folder: Path, given: Mapping[str, Input], source: random.Random
) -> dict[str, int]:
    """The same for several streams of one driver, of which one has a micro-batch at a time: the
    kills of each."""
    kills, streams = dict.fromkeys(given, 0), ",".join(given)
    with running(folder, "local[2,1000]", streams, "arriving") as driver:
        for arrived in range(1, len(next(iter(given.values())).batches)):
            for stream, files in given.items():
                done = commits(files.folder)
                files.arrive(arrived)
                for _ in range(2):
                    time.sleep(source.uniform(0, 1.5))
                    alive = python_workers(driver.pid)
                    source.shuffle(alive)
                    one = source.random() < 0.5
                    kills[stream] += sum(map(_kill, alive[:1] if one else alive))
                wait(driver, folder, lambda f=files, at=done: commits(f.folder) > at)  # type: ignore[misc]
    for files in given.values():
        files.arrive()
    with running(folder, "local[2]", streams) as driver:
        to_the_end(driver, folder)
    return kills


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has just ended by itself
        return False
    return True


#: What kills, and how many files a stream has.
KINDS: dict[str, tuple[Callable[[Path, Input, str, random.Random], int], int]] = {
    "driver": (kill_drivers, 40),
    "executor": (kill_executors, 14),
    "worker": (kill_workers, 20),
}


def stream_of(seed: int) -> str:
    """The stream that a seed is for."""
    return list(STREAMS)[seed % len(STREAMS)]


def run(kind: str, seed: int, files: int | None = None) -> dict[str, Any]:
    """One stream, of so many files, and its kills: a line of the results."""
    kill, usual = KINDS[kind]
    files, stream = files or usual, stream_of(seed)
    folder = Path(tempfile.mkdtemp(prefix=f"sash-{kind}-{seed}-"))
    line: dict[str, Any] = {"kind": kind, "seed": seed, "mode": stream, "source": source_digest()}
    started = time.monotonic()
    try:
        given = Input(folder, tables(files, seed))
        line["kills"] = kill(folder, given, stream, random.Random(seed))
        verdict = judge(folder, given.batches, stream)
        line |= asdict(verdict) | {"good": verdict.good}
    except Exception as error:
        line |= {"good": False, "error": f"{type(error).__name__}: {error}"[:2000]}
    line["seconds"] = round(time.monotonic() - started)
    if line["good"]:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        line["folder"] = str(folder)
    return line


def source_digest() -> str:
    """Which sash it was."""
    digest = hashlib.sha256()
    for file in sorted(Path(sash.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def read(results: Path) -> list[dict[str, Any]]:
    text = results.read_text() if results.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def killed(lines: list[dict[str, Any]], kind: str) -> int:
    """The kills that count: those of streams that were judged."""
    return sum(line["kills"] for line in lines if line["kind"] == kind and "lost" in line)


def table(lines: list[dict[str, Any]]) -> str:
    """All runs as one table."""
    heads = ["killed", "mode", "streams", *COUNTS, "failed", "minutes"]
    made = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    groups = [(kind, stream) for kind in WANTED for stream in STREAMS]
    for kind, stream in [*groups, ("all", "")]:
        some = [x for x in lines if kind == "all" or (x["kind"], x["mode"]) == (kind, stream)]
        sums = [sum(x.get(name, 0) for x in some) for name in COUNTS]
        failed = sum(not x["good"] for x in some)
        minutes = round(sum(x["seconds"] for x in some) / 60)
        cells = [kind, stream, len(some), *sums, failed, minutes]
        made.append("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in cells) + " |")
    versions = len({x["source"] for x in lines})
    made.append(f"\n{versions} version(s) of the source")
    return "\n".join(made)


class Runner:
    """Runs streams one after the other, in any number of threads, until all is done."""

    def __init__(
        self,
        results: Path,
        only: str | None,
        streams: int,
        end: float,
        of: Collection[str] = STREAMS,
        files: int | None = None,
    ) -> None:
        self._results, self._only, self._left, self._end = results, only, streams, end
        self._of, self._files, self._lock = of, files, threading.Lock()
        self._seeds = {(line["kind"], line["seed"]) for line in read(results)}

    def stop(self) -> None:
        """Start no more streams."""
        self._left = 0

    def work(self) -> None:
        """Run streams until there is nothing left to do."""
        while (chosen := self._next()) is not None:
            line = run(*chosen, self._files)
            with self._lock, self._results.open("a") as file:
                file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)

    def _next(self) -> tuple[str, int] | None:
        """The kind of which the least is done, and the seed of its next stream."""
        with self._lock:
            lines = [line for line in read(self._results) if line["mode"] in self._of]
            part = {kind: killed(lines, kind) / wanted for kind, wanted in WANTED.items()}
            open_kinds = [k for k in WANTED if self._only in (None, k) and part[k] < 1]
            if not open_kinds or not self._left or time.monotonic() > self._end:
                return None
            kind = min(open_kinds, key=lambda k: part[k])
            self._left -= 1
            free = (n for n in count() if (kind, n) not in self._seeds)
            seed = next(n for n in free if stream_of(n) in self._of)
            self._seeds.add((kind, seed))
            return kind, seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="kills.py", description=__doc__)
    parser.add_argument("results", type=Path, help="a file of lines, which is added to")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start none after")
    parser.add_argument("--only", choices=[*WANTED], help="one kind of process")
    parser.add_argument("--of", help="some streams of driver.py, with commas between them")
    parser.add_argument("--files", type=int, help="files of a stream, if not the usual number")
    parser.add_argument("--jobs", type=int, default=1, help="streams side by side")
    parser.add_argument("--streams", type=int, default=10**9, help="at most so many now")
    asked = parser.parse_args()
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * asked.minutes
    of = asked.of.split(",") if asked.of else list(STREAMS)
    if unknown := set(of) - STREAMS.keys():
        parser.error(f"no streams: {', '.join(unknown)}; there are {', '.join(STREAMS)}")
    runner = Runner(asked.results, asked.only, asked.streams, end, of, asked.files)
    signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    with ThreadPoolExecutor(asked.jobs) as pool:
        for done in [pool.submit(runner.work) for _ in range(asked.jobs)]:
            done.result()
    lines = read(asked.results)
    print(table(lines))
    return not all(line["good"] for line in lines)


if __name__ == "__main__":
    sys.exit(main())
