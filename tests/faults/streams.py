"""Streams whose processes are killed: their input, their processes, and a judge of what is kept."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from driver import LATENESS, STREAMS

import sash
from sash.testing.queries import replay, rows_of

HERE = Path(__file__).parent
SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def tables(count: int, seed: int = 0) -> list[pa.Table]:
    """Batches of ten seconds each, with rows out of order, some of them too late."""
    made, n = [], 0
    for b in range(count):
        source = random.Random(1000 * seed + b)
        at = [START + (b * 10 * SECOND + source.randint(-40, 10) * SECOND) for _ in range(200)]
        if b == count - 1:
            at = [START + 10**6 * SECOND]  # closes all windows but its own
        table = pa.table(
            {
                "t": pa.array(at, pa.timestamp("us", "UTC")),
                "n": pa.array(range(n, n + len(at)), pa.int64()),
                "k": [f"key {source.randrange(b % 5 + 1)}" for _ in at],
                "i": pa.array([source.randint(0, 1000) for _ in at], pa.int64()),
                "b": pa.array([source.choice((True, False, False, None)) for _ in at], pa.bool_()),
            }
        )
        n += len(at)
        made.append(table)
    return made


class Input:
    """The files of a stream, of which some have arrived."""

    def __init__(self, folder: Path, batches: list[pa.Table]) -> None:
        self.folder, self.batches, self.written = folder, batches, 0
        (folder / "in").mkdir(parents=True)

    def arrive(self, upto: int | None = None) -> None:
        """Write files until so many are there, or all; Spark sees a file when it is whole."""
        upto = len(self.batches) if upto is None else min(upto, len(self.batches))
        while self.written < upto:
            file = self.folder / "in" / f"{self.written:05d}.parquet"
            hidden = file.with_name(f"_{file.name}")
            pa.parquet.write_table(self.batches[self.written], hidden)
            os.utime(hidden, (START // SECOND + self.written,) * 2)  # they are read in this order
            hidden.rename(file)
            self.written += 1


def commits(folder: Path) -> int:
    """How many micro-batches are done."""
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


# Processes


def start(
    folder: Path, master: str, stream: str = "final", trigger: str = "now"
) -> subprocess.Popen[bytes]:
    """The driver, in a process group of its own, so that all of it can be killed."""
    command = [sys.executable, str(HERE / "driver.py"), str(folder), master, stream, trigger]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


@contextmanager
def running(*given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The driver until it ends; what is left of it is killed."""
    driver = start(*given)
    try:
        yield driver
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def wait(driver: subprocess.Popen[bytes], folder: Path, until: Callable[[], bool]) -> bool:
    """Whether something came to be before the driver ended."""
    deadline = time.monotonic() + 600
    while not until():
        if driver.poll() is not None:
            assert driver.returncode == 0, (folder / "log").read_text()[-5000:]
            return False
        assert time.monotonic() < deadline, "the driver does not come on"
        time.sleep(0.02)
    return True


def to_the_end(driver: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for a driver that ends by itself."""
    wait(driver, folder, lambda: False)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    tasks = Path(f"/proc/{pid}/task")
    with suppress(FileNotFoundError, ProcessLookupError):  # the process has just ended
        for task in os.listdir(tasks):
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has
                found += map(int, (tasks / task / "children").read_text().split())
    return found


def python_workers(pid: int) -> list[int]:
    """The Python workers that Spark has started under a process: what its daemons have forked."""
    found, look = [], [pid]
    while look:
        parent = look.pop()
        below = children(parent)
        if _command(parent).endswith("pyspark.daemon") and parent != pid:
            found += below
        else:
            look += below
    return found


def _command(pid: int) -> str:
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return next((part for part in said.decode().split("\0") if part.startswith("pyspark.")), "")


@contextmanager
def cluster(place: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and two workers on this machine: its address, and the workers' processes."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    # an application that loses executors all the time is not given up
    environment["SPARK_MASTER_OPTS"] = "-Dspark.deploy.maxExecutorRetries=-1"
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    address = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[f"{deploy}.master.Master", *address, "--port", str(port)]]
    for i in range(2):
        limits = ["--cores", "1", "--memory", "700m", "--work-dir", str(place / f"worker {i}")]
        commands.append([f"{deploy}.worker.Worker", *address, *limits, url])
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (place / "cluster").open("ab") as log:
                process = subprocess.Popen(
                    [spark_class, *command],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            started.append(process)
            time.sleep(5 if len(started) == 1 else 1)
        yield url, started[1:]
    finally:
        for process in reversed(started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


# What is kept


@dataclass(frozen=True)
class Verdict:
    """What a stream has kept, beside what is right."""

    batches: int  # micro-batches that are done
    replayed: int  # that were handed to the sink again
    rows: int  # results and late rows that are right
    lost: int
    doubled: int
    wrong: int  # results with other values

    @property
    def good(self) -> bool:
        return self.rows > 0 and not (self.lost or self.doubled or self.wrong)


def judge(folder: Path, batches: list[pa.Table], stream: str = "final") -> Verdict:
    """Compare what was kept with brute force over the same micro-batches."""
    query, _ = STREAMS[stream]
    if not isinstance(query, sash.Shared):
        return _judge(folder, batches, query)
    each = [_judge(folder, batches, q, name) for name, q in query.queries.items()]
    summed = {n: sum(getattr(one, n) for one in each) for n in ("rows", "lost", "doubled", "wrong")}
    return replace(each[0], **summed)


def _judge(
    folder: Path, batches: list[pa.Table], query: sash.Query, name: str | None = None
) -> Verdict:
    """The same for one query, or for one of several by its name."""
    right, missed = replay(query, micro_batches(folder, batches), LATENESS, behind=1)
    assert missed, "the stream has late rows"
    closed = START + 9 * 10**5 * SECOND
    wanted = {_place(row): row for row in right if row["window_end"] < closed}
    rows = rows_of(pa.parquet.read_table(folder / "results" / (name or "")))
    rows = [row for row in rows if row["window_end"] < closed]
    got = {at: row for at, row in _latest(rows).items() if not row.get("deleted")}
    emitted = Counter((_place(row), row.get("revision")) for row in rows)
    again = sum(emitted.values()) - len(emitted)
    late = Counter(
        row["n"]
        for row in rows_of(pa.parquet.read_table(folder / "late"))
        if name is None or name in row["late_queries"]
    )
    should = Counter(row["n"] for row, _ in missed)
    calls = Counter((folder / "calls").read_text().split())
    return Verdict(
        batches=commits(folder),
        replayed=sum(calls.values()) - len(calls),
        rows=len(wanted) + len(missed),
        lost=len(wanted.keys() - got.keys()) + (should - late).total(),
        doubled=again + len(got.keys() - wanted.keys()) + (late - should).total(),
        wrong=sum(
            any(got[at][name] != row[name] for name in query.select)
            for at, row in wanted.items()
            if at in got
        ),
    )


def micro_batches(folder: Path, batches: list[pa.Table]) -> list[pa.Table]:
    """The files of each micro-batch.  Spark notes that it has seen a file before it notes the batch
    it is for: if it dies between the two, that file and the next one are in one batch, and what is
    too late is judged for both at once."""
    made, done = [], 0
    offsets = (folder / "checkpoint" / "offsets").glob("[0-9]*")
    for file in sorted(offsets, key=lambda f: int(f.name)):
        end = json.loads(file.read_text().splitlines()[-1])["logOffset"] + 1
        made.append(pa.concat_tables(batches[done:end]) if end > done else batches[0].slice(0, 0))
        done = end
    assert done == len(batches), "all files were read"
    return made


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a row from others: the event, or the window, that it is about."""
    return row["k"], row["window_start"], row.get("n")


def _latest(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """The last revision of each window, as `sash.spark.latest` has it."""
    order = sorted(rows, key=lambda row: (row["sash_batch"], row.get("revision", 0)))
    return {_place(row): row for row in order}
