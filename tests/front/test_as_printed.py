"""The lines of the README and the tutorial as they are printed, in an empty folder.

`tools/fresh_clone.sh` runs these in a clone with an environment of its own, where the package is
installed as a user installs it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
MAIN = [sys.executable, "-c", "from sash.cli import main; main()"]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return tmp_path


@pytest.fixture
def reports(empty: Path) -> Path:
    """A folder with what the README's job reads: reports of flights."""
    for number in range(3):
        minutes = pd.timedelta_range(f"{number} hours", periods=40, freq="90s")
        made = pd.DataFrame({"departed": pd.Timestamp("2024-05-01", tz="UTC") + minutes})
        made["origin"], made["carrier"] = ["JFK", "LGA"] * 20, ["AA", "DL", "UA", "B6"] * 10
        made["delay"] = [float(i * 7 % 60) for i in range(40)]
        Path("reports").mkdir(exist_ok=True)
        made.to_parquet(f"reports/{number}.parquet", coerce_timestamps="us")
    return empty


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.S | re.M)


def test_its_python_runs_in_order(empty: Path) -> None:
    """In a process of its own, which starts Spark."""
    Path("lines.py").write_text("\n".join(blocks("python")))
    done = subprocess.run(
        [sys.executable, "lines.py"], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_its_job_runs(reports: Path) -> None:
    first = blocks("python")[0]
    query = first[: first.index("q.run(flights)")].replace("q = sash.Query", "delays = sash.Query")
    Path("queries.py").write_text(query)
    (job,) = blocks("toml")
    Path("job.toml").write_text(job)
    assert said("check", "job.toml").strip() == "job.toml: good, 1 query"
    said("run", "job.toml", "--local")
    made: Any = pq.ParquetFile("results/results.parquet").read()
    assert set(made["origin"].to_pylist()) == {"JFK", "LGA"}
    assert made.num_rows > 300


def test_the_tutorial_shows_what_comes_out(empty: Path) -> None:
    """All of it in a process of its own, which starts Spark."""
    page = ROOT / "docs" / "tutorial.md"
    lines = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
from test_docs import run
run(Path({str(page)!r}), {{"__name__": "__main__"}}, spark=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # of the table a row for each window, and of the stream for each that it has passed the end of
    assert done.stdout.count("|JFK   |") == 6 + 4


def said(*arguments: str) -> str:
    done = subprocess.run(
        [*MAIN, *arguments], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
