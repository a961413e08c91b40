"""Job files with a mistake, and the message that each gets: the line, what is wrong, what to do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.cli.check import prepare
from sash.cli.errors import JobError
from sash.cli.formats import options_on_spark
from sash.cli.writing import written

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


KAFKA = {"subscribePattern": "a.*", "kafka.bootstrap.servers": "h:1", "kafka.ssl.key": "x"}
IGNORED = "and Spark ignores options that it does not know"


@pytest.mark.parametrize(
    ("source", "options", "notes"),
    [
        ('format = "kafka"', KAFKA, []),
        ('format = "Kafka"', {n.upper(): v for n, v in KAFKA.items()}, []),
        ('format = "rate"', {"rowsPerSecond": 3}, []),
        ('format = "delta"\npath = "in"', {"ignoreChanges": True}, []),
        ('format = "org.own.Source"', {"anything": "x"}, []),
        ('format = "mine"', {"x": 1}, ["'mine' is none of Spark's own, so a package must bring"]),
        ('path = "in"', {"MAXFILESPERTRIGGER": 1, "fs.s3a.endpoint": "x"}, []),
        ('path = "in"', {"zzz": 1}, [f"sash knows no such option of parquet, {IGNORED}"]),
    ],
)
def test_sound_sources_pass(
    source: str, options: dict[str, Any], notes: list[str], folder: Path
) -> None:
    said = ", ".join(f"{json.dumps(n)} = {json.dumps(v)}" for n, v in options.items())
    text = JOB.replace('path = "in"', f"{source}\noptions = {{ {said} }}")
    if "format" in source:
        text = text.replace('"ts"', '"timestamp"').replace("queries:query", "queries:stamped")
    (folder / "job.toml").write_text(text)
    (folder / "queries.py").write_text(
        (folder / "queries.py").read_text() + "\nimport dataclasses\n"
        "select = {'n': sash.count()}\n"
        "stamped = dataclasses.replace(query, time='timestamp', by=[], select=select)\n"
    )
    found = [note for note in prepare("job.toml").notes if not note.startswith("the columns")]
    assert len(found) == len(notes)
    for note, says in zip(found, notes, strict=True):
        assert says in note


STARTS = "SELECT k, window.start AS s, count(*) AS n FROM input GROUP BY k, window(ts, '1 hour')"
TEXT = "SELECT max(k) AS value FROM input GROUP BY window(ts, '1 hour')"


@pytest.mark.parametrize(
    ("sink", "options", "sql", "notes"),
    [
        ("csv", {"path": "o", "header": True}, STARTS, []),
        ("JSON", {"Path": "o", "compression": "gzip"}, None, []),
        ("parquet", {"path": "o", "parquet.block.size": 9, "zzz": 1}, None, ["sink.options.zzz: "]),
        ("text", {"path": "o"}, TEXT, []),
        ("xml", {"path": "o", "rowTag": "row"}, None, []),
        ("noop", {}, None, []),
        ("kafka", {"topic": "t", "kafka.bootstrap.servers": "h:1", "kafka.acks": "1"}, TEXT, []),
        ("delta", {"anything": "x"}, None, []),
        ("org.own.Sink", {"anything": "x"}, None, []),
        ("mine", {"x": 1}, None, ["sink.format: 'mine' is none of Spark's own, so a package must"]),
    ],
)
def test_sound_sinks_pass(
    sink: str, options: dict[str, Any], sql: str | None, notes: list[str], folder: Path
) -> None:
    said = ", ".join(f"{json.dumps(n)} = {json.dumps(v)}" for n, v in options.items())
    text = JOB.replace('path = "out"\nlate = "late"', f'format = "{sink}"\noptions = {{ {said} }}')
    if sql is not None:
        text = text.replace('python = "queries:query"', f'sql = "{sql}"')
    (folder / "job.toml").write_text(f'{text}\n[run]\ncheckpoint = "c"\n')
    found = prepare("job.toml").notes
    assert len(found) == len(notes)
    for note, says in zip(found, notes, strict=True):
        assert says in note


class Recording:
    """A Spark writer that keeps its format and options."""

    given: dict[str, Any]

    @property
    def writeStream(self) -> Recording:
        return self

    def format(self, name: str) -> Recording:
        self.given = {"format": name}
        return self

    def options(self, **options: str) -> Recording:
        self.given |= options
        return self


def test_a_formats_own_path_is_relative_to_the_jobs_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = 'format = "json"\noptions = { Path = "o", pretty = true, retention = 3 }'
    text = JOB.replace('path = "out"\nlate = "late"', sink)
    (folder / "job.toml").write_text(f'{text}\n[run]\ncheckpoint = "c"\n')
    (folder / "else").mkdir()
    monkeypatch.chdir(folder / "else")
    ready, nothing = prepare("../job.toml"), cast("Any", None)
    writer = written(Recording(), ready, "counts", nothing, nothing, remote=False)
    place = str(folder / "else" / ".." / "o")
    assert writer.given == {"format": "json", "Path": place, "pretty": "true", "retention": "3"}
    assert options_on_spark(ready.job, {"path": "s3a://b/o"}) == {"path": "s3a://b/o"}
    other = '[[query]]\nname = "more"\npython = "queries:longer"\n'
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(text.replace("[sink]", f"{other}\n[sink]"))
    ready = prepare("../job.toml")
    for name in ready.queries:  # into one folder of files, Spark would write one of them alone
        written(writer, ready, name, nothing, nothing, remote=False)
        assert writer.given["Path"] == f"{place}/{name}"


def test_whole_numbers_as_times_have_a_note(folder: Path) -> None:
    table = pq.read_table(folder / "in")
    pq.write_table(table.set_column(0, "ts", table["ts"].cast(pa.int64())), folder / "n.parquet")
    (folder / "job.toml").write_text(JOB.replace('"in"', '"n.parquet"'))
    (note,) = prepare("job.toml", local=True).notes
    assert note == (
        "source.time: column 'ts' has whole numbers, which sash reads as microseconds since 1970; "
        "seconds or milliseconds must become timestamps first"
    )
