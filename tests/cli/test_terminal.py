"""What a person sees of a job in this process: in a terminal, in a pipe, after Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from .conftest import JOB, events
from .terminal import Terminal

pytestmark = pytest.mark.plain


def test_progress_is_drawn_and_stays_when_the_run_ends(folder: Path) -> None:
    terminal = Terminal("run", "--local", "job.toml")
    assert terminal.end() == 0
    screen = terminal.screen()
    assert "job  ended" in screen
    assert "4 of 4 files" in screen
    assert "rows in      240" in screen
    assert "lag          replay" in screen


def test_ctrl_c_leaves_nothing(folder: Path) -> None:
    pq.write_table(next(iter(events(files=1))), folder / "in" / "more.parquet")
    for i in range(9000):  # ten seconds of work and more
        os.link(folder / "in" / "more.parquet", folder / "in" / f"more{i:05}.parquet")
    terminal = Terminal("run", "--local", "job.toml")
    terminal.until("of 9,005 files")
    terminal.interrupt()
    assert terminal.end() == 130
    assert "stopped by Ctrl-C" in terminal.screen()
    assert not (folder / "out").exists() or not list((folder / "out").iterdir())
    assert "Traceback" not in terminal.seen


def test_piped_output_is_plain(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace('path = "out"', 'format = "console"'))
    done = subprocess.run(
        [sys.executable, "-c", "from sash.cli import main; main()", "run", "--local", "job.toml"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"SASH_JIT": "0"},
    )
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr.splitlines()[0] == "job: started, 4 files"
    assert "counts: 240 rows in" in done.stderr.splitlines()[-1]
