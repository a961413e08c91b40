"""Processes that die in the middle: what comes out is the batch answer, nothing lost or doubled.

`make test` has one death of a driver in a short stream; `make test-faults` has ten in a longer
one, and a cluster of two workers that loses an executor.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from driver import LATENESS, QUERY

from sash.testing.queries import differences, replay, rows_of

pytest.importorskip("pyspark")
HERE = Path(__file__).parent
SECOND = 1_000_000
START = 1_700_000_000 * SECOND

everything = pytest.mark.skipif(
    not os.environ.get("SASH_FAULTS"), reason="takes minutes: make test-faults"
)


def files(folder: Path, count: int) -> list[pa.Table]:
    """Batches of ten seconds each, with rows out of order, some of them too late."""
    (folder / "in").mkdir()
    made, n = [], 0
    for b in range(count):
        source = random.Random(b)
        at = [START + (b * 10 * SECOND + source.randint(-40, 10) * SECOND) for _ in range(200)]
        if b == count - 1:
            at = [START + 10**6 * SECOND]  # closes all windows but its own
        table = pa.table(
            {
                "t": pa.array(at, pa.timestamp("us", "UTC")),
                "n": pa.array(range(n, n + len(at)), pa.int64()),
                "k": [f"key {source.randrange(b % 5 + 1)}" for _ in at],
                "i": pa.array([source.randint(0, 1000) for _ in at], pa.int64()),
            }
        )
        n += len(at)
        file = folder / "in" / f"{b:05d}.parquet"
        pa.parquet.write_table(table, file)
        os.utime(file, (START // SECOND + b,) * 2)
        made.append(table)
    return made


def micro_batches(folder: Path, tables: list[pa.Table]) -> list[pa.Table]:
    """The files of each micro-batch.  Spark notes that it has seen a file before it notes the batch
    it is for: if it dies between the two, that file and the next one are in one batch, and what is
    too late is judged for both at once."""
    made, done = [], 0
    offsets = (folder / "checkpoint" / "offsets").glob("[0-9]*")
    for file in sorted(offsets, key=lambda f: int(f.name)):
        end = json.loads(file.read_text().splitlines()[-1])["logOffset"] + 1
        made.append(pa.concat_tables(tables[done:end]) if end > done else tables[0].slice(0, 0))
        done = end
    assert done == len(tables), "all files were read"
    return made


def judge(folder: Path, tables: list[pa.Table]) -> None:
    """What was kept, against brute force."""
    right, missed = replay(QUERY, micro_batches(folder, tables), LATENESS, behind=1)
    right = [row for row in right if row["window_end"] < START + 9 * 10**5 * SECOND]
    got = pa.parquet.read_table(folder / "results")
    assert not differences(QUERY, right, got, ordered=False)
    late = rows_of(pa.parquet.read_table(folder / "late"))
    assert missed
    assert sorted(row["n"] for row in late) == sorted(row["n"] for row, _ in missed)


def commits(folder: Path) -> int:
    """How many micro-batches are done."""
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def start(folder: Path, master: str) -> subprocess.Popen[bytes]:
    """The driver, in a process group of its own, so that all of it can be killed."""
    command = [sys.executable, str(HERE / "driver.py"), str(folder), master]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


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


def kill_and_judge(folder: Path, batches: int, deaths: int, seed: int) -> None:
    cut = files(folder, batches)
    source = random.Random(seed)
    died = 0
    for death in range(deaths):
        driver = start(folder, "local[2]")
        # some batches further than before, and anywhere within one
        target = max(commits(folder) + 1, batches * (death + 1) // (deaths + 2))
        try:
            if wait(driver, folder, lambda at=target: commits(folder) >= at):  # type: ignore[misc]
                time.sleep(source.uniform(0, 1.5))
                died += driver.poll() is None
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert died == deaths, "the stream ended before all its deaths"
    driver = start(folder, "local[2]")
    try:
        wait(driver, folder, lambda: False)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    assert commits(folder) >= batches - deaths  # a death may put two files into one batch
    judge(folder, cut)


def test_a_driver_that_is_killed_once(tmp_path: Path) -> None:
    kill_and_judge(tmp_path, batches=6, deaths=1, seed=1)


@everything
def test_a_driver_that_is_killed_ten_times(tmp_path: Path) -> None:
    kill_and_judge(tmp_path, batches=42, deaths=10, seed=2)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and two workers on this machine."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    address = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[f"{deploy}.master.Master", *address, "--port", str(port)]]
    for i in range(2):
        limits = ["--cores", "1", "--memory", "700m", "--work-dir", str(tmp_path / f"worker {i}")]
        commands.append([f"{deploy}.worker.Worker", *address, *limits, url])
    started = []
    try:
        for command in commands:
            with (tmp_path / "cluster").open("ab") as log:
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


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


@everything
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds executors in /proc")
def test_an_executor_that_is_killed(tmp_path: Path, cluster: Any) -> None:
    url, workers = cluster
    cut = files(tmp_path, 12)
    driver = start(tmp_path, url)
    try:
        assert wait(driver, tmp_path, lambda: commits(tmp_path) >= 4)
        (executor,) = children(workers[0].pid)
        os.kill(executor, signal.SIGKILL)
        wait(driver, tmp_path, lambda: False)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    judge(tmp_path, cut)
