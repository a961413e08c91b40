"""Job files with a mistake, and the message that each gets: the line, what is wrong, what to do."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.cli.check import prepare
from sash.cli.errors import JobError

from .conftest import JOB, events

pytestmark = pytest.mark.plain

BAD = tomllib.loads((Path(__file__).parent / "bad_jobs.toml").read_text())["job"]


def litter(folder: Path) -> None:
    """Sources and modules that cannot be used."""
    files = {
        "broken.py": "import sash\n\nquery = sash.slidng('1 hour')\n",
        "csv/a.csv": "1,2\n",
        "mixed/a.csv": "1",
        "mixed/b.parquet": "1",
        "odd/data": "x",
        "bad/a.parquet": "no",
        "file": "",
        "wrong.sql": "SELECT k,\n  max(xx) AS m\nFROM input GROUP BY k, window(ts, '1 hour')\n",
    }
    for name in ("csv", "mixed", "odd", "bad", "empty", "deep/day=1", "nanos"):
        (folder / name).mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    table = events()[0]
    nanos = table["ts"].cast(pa.timestamp("ns", "UTC"))
    pq.write_table(table.set_column(0, "ts", nanos), folder / "nanos" / "a.parquet")


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad["new"][0].strip().replace("\n", " ")[-40:])
def test_a_mistake_is_named_with_its_line(bad: dict[str, Any], folder: Path) -> None:
    litter(folder)
    text = JOB
    for old, new in zip(bad["old"], bad["new"], strict=True):
        assert old in text
        text = text.replace(old, new)
    (folder / "job.toml").write_text(text)
    with pytest.raises(JobError) as caught:
        prepare("job.toml")
    assert str(caught.value).replace(str(folder), "{folder}") == bad["message"]


def test_there_are_forty_of_them() -> None:
    assert len(BAD) >= 40


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(JobError, match=r"^jbo\.toml:1: there is no such file; did you mean 'job"):
        prepare("jbo.toml")


def test_a_sound_job_passes(folder: Path) -> None:
    assert list(prepare("job.toml").queries) == ["counts"]
    assert list(prepare("job.toml", local=True).queries) == ["counts"]
