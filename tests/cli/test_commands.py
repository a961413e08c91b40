"""The commands besides run: what they say, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import sash
from sash.cli.app import app
from sash.cli.check import prepare
from sash.cli.launch import _partitions

from .conftest import JOB

pytestmark = pytest.mark.plain

MAIN = [sys.executable, "-c", "from sash.cli import main; main()"]


def said(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_check_says_good(folder: Path) -> None:
    done = said("check", "job.toml")
    assert (done.exit_code, done.stdout) == (0, "job.toml: good, 1 query\n")


def test_check_reads_no_rows(folder: Path) -> None:
    """A folder without files passes where the schema is given, and so does one elsewhere."""
    more = 'path = "s3a://bucket/in"\nformat = "parquet"'
    (folder / "job.toml").write_text(JOB.replace('path = "in"', more))
    done = said("check", "job.toml")
    assert done.exit_code == 0, done.stderr
    assert "note: the columns are not checked: Spark knows them" in done.stdout
    assert said("check", "job.toml", "--local").exit_code == 2


@pytest.mark.parametrize("local", [True, False])
def test_warm_builds_what_a_run_needs(local: bool, folder: Path) -> None:
    done = said("warm", "job.toml", *(["--local"] if local else []))
    assert done.exit_code == 0, done.output
    place = "in this process" if local else "on Spark"
    assert f"counts: a stream {place}: built in" in done.stdout
    assert "kernels are in" in done.stdout


def test_explain_and_warm_know_what_runs_together(folder: Path) -> None:
    text = JOB.replace("queries:query", "queries:longer").replace("counts", "longer")
    more = text[text.index("[[query]]") : text.index("[sink]")]
    sessions = more.replace("longer", "sessions")
    (folder / "job.toml").write_text(JOB.replace("[sink]", f"{more}{sessions}[sink]"))
    done = said("explain", "job.toml")
    together = done.stdout[done.stdout.index("# together") :]
    assert "3 queries (counts, longer, sessions) in one streaming query on Spark" in together
    assert "count() is one partial for counts.n, longer.n" in together
    assert "warnings" not in together
    assert "in this process" in said("explain", "job.toml", "--local").stdout
    for where, more in (("on Spark", []), ("in this process", ["--local"])):
        done = said("warm", "job.toml", *more)
        assert done.exit_code == 0, done.output
        assert f"counts, longer, sessions: a stream {where}: built in" in done.stdout


def test_a_shuffle_on_a_cluster_has_as_many_partitions_as_buckets(folder: Path) -> None:
    (folder / "job.toml").write_text(f"{JOB}\n[run]\nbuckets = 3\n")
    ready = prepare("job.toml")
    assert _partitions(ready, "spark://host:7077", None) == 3
    assert _partitions(ready, None, "sc://host") == 3
    assert _partitions(ready, "local[*]", None) is None  # as many as cores


def test_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    done = said("doctor")
    assert done.exit_code == 0
    assert "ok       numba" in done.stdout
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = said("doctor")
    assert done.exit_code == 0, "sash runs without Java"
    assert "none     Java                      for Spark, Java 17 or newer: apt-get" in done.stdout


def test_shells_complete_job_files(folder: Path) -> None:
    asked = {"_SASH_COMPLETE": "complete_bash", "COMP_WORDS": "sash run jo", "COMP_CWORD": "2"}
    done = subprocess.run(MAIN, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["job.toml"]


def test_help_loads_no_more_than_it_needs() -> None:
    program = (
        "import sys, json\nsys.argv = ['sash', '--help']\nfrom sash.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps([m for m in ('numba', 'pydantic', 'rich', 'pyspark', 'pyarrow.compute')"
        " if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "Usage: sash [OPTIONS] COMMAND" in done.stdout
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_help_has_a_short_name() -> None:
    for command in ([], ["check"], ["run"]):
        assert said(*command, "-h").output == said(*command, "--help").output != ""
        assert said(*command, "-h").exit_code == 0


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sash", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"sash {sash.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "--frob", "job.toml"], ["run", "job.toml", "--local", "--remote=x"]],
)
def test_wrong_options_have_exit_code_2(arguments: list[str], folder: Path) -> None:
    done = said(*arguments)
    assert done.exit_code == 2
    assert "Error: " in done.stderr


@pytest.mark.parametrize("local", [True, False])
def test_explain_says_where_and_how(local: bool, folder: Path) -> None:
    done = said("explain", "job.toml", *(["--local"] if local else []))
    assert done.exit_code == 0, done.output
    assert ("Query.stream" if local else "sash.spark.aggregate") in done.stdout
    assert "late" in done.stdout
