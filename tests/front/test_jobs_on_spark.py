"""The sash command on Spark in a terminal, as a person sees it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sash.cli.submit
from cli.conftest import JOB, folder
from cli.terminal import Terminal
from sash.cli.results import read_revisions

__all__ = ["folder"]  # a fixture

MAIN = [sys.executable, "-c", "from sash.cli import main; main()"]
ONE_BY_ONE = JOB.replace('path = "in"', 'path = "in"\noptions = { maxFilesPerTrigger = 1 }')
LIVE = f'{ONE_BY_ONE}\n[run]\nmode = "live"\nbuckets = 2\n'


@pytest.fixture(autouse=True)
def _on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("SASH_JIT", "0")


def rows(path: str = "out") -> list[str]:
    return sorted(map(str, read_revisions(path).to_pylist()))


def test_progress_as_a_person_sees_it(folder: Path) -> None:
    (folder / "job.toml").write_text(LIVE)
    terminal = Terminal("run", "job.toml", "--master", "local[2]")
    assert "starting" in terminal.until("job  starting")
    assert terminal.end(240) == 0, terminal.seen
    screen = terminal.screen()
    assert "job  ended" in screen
    assert "rows in      240" in screen
    assert "lag          replay" in screen
    assert "WARN" not in terminal.seen
    assert "Traceback" not in terminal.seen


def test_ctrl_c_at_any_moment_and_going_on_equals_an_undisturbed_run(folder: Path) -> None:
    (folder / "job.toml").write_text(LIVE)
    done = _piped("--json")
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(report["rows_in"] for report in reports) == 240
    wanted = rows()
    (folder / "job.toml").write_text(LIVE.replace('"out"', '"again"').replace('"late"', '"l2"'))
    moments = random.Random(3)
    codes = []
    for _ in range(10):
        terminal = Terminal("run", "job.toml", "--master", "local[2]")
        terminal.until("job  starting")
        seconds = moments.uniform(0, 20)
        end = time.monotonic() + seconds
        while time.monotonic() < end and terminal._read():
            pass
        terminal.interrupt()
        if moments.random() < 0.3:
            time.sleep(moments.uniform(0, 1))
            terminal.interrupt()
        codes.append(terminal.end(240))
        assert "Traceback" not in terminal.seen, terminal.seen
    assert set(codes) <= {0, 130}
    assert _piped().returncode == 0
    assert rows("again") == wanted


def _piped(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, "run", "job.toml", "--master", "local[2]", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
        timeout=300,
    )


def test_a_sink_below_a_file_is_one_message(folder: Path) -> None:
    (folder / "file").write_text("")
    (folder / "job.toml").write_text(LIVE.replace('"out"', '"file/out"'))
    done = _piped()
    assert done.returncode == 2
    assert "sink.path:" in done.stderr
    assert "is a file, so no folder" in done.stderr


def test_without_java_it_says_so(folder: Path) -> None:
    done = _piped(PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 1
    assert done.stderr.startswith("failed: Spark needs Java 17 or newer, and there is no java")


def test_a_failure_is_its_cause_and_a_log(folder: Path) -> None:
    (folder / "queries.py").write_text(
        "import pyarrow, sash\n"
        "def combine(a, b):\n"
        "    if a != b:\n"  # a trial of it before any event comes has equal ones
        "        raise ValueError('no such sum')\n"
        "    return a + b\n"
        "own = sash.operator(identity=0.0, combine=combine)\n"
        "query = sash.Query(time='ts', by=['k'], window=sash.tumbling('1 hour'),\n"
        "    select={'n': sash.aggregate(own, 'x', returns=pyarrow.float64())})\n"
    )
    (folder / "job.toml").write_text(ONE_BY_ONE)
    done = _piped("--log", "run.log")
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-2:]
    assert last[0].startswith("failed: ")
    assert "no such sum" in last[0]
    assert last[1] == "the full log: run.log"
    assert last[0].endswith("(CombineFailed)")
    assert "Traceback" not in done.stderr
    assert "Traceback" in (folder / "run.log").read_text()


def test_spark_connect_and_spark_submit_run_the_same_job(folder: Path) -> None:
    (folder / "job.toml").write_text(LIVE.replace('"out"', '"connect"').replace('"late"', '"l1"'))
    done = subprocess.run(
        [*MAIN, "run", "job.toml", "--remote", "local[2]", "--log", "connect.log"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr + (folder / "connect.log").read_text()[-3000:]
    (folder / "job.toml").write_text(LIVE.replace('"out"', '"submit"').replace('"late"', '"l2"'))
    script = Path(sash.cli.submit.__file__)
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(submit), "--master", "local[2]", str(script), "job.toml", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    objects = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(report["rows_in"] for report in objects) == 240
    assert rows("connect") == rows("submit")
