"""A job on Spark: its last revisions are what the same job gives in this process."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sash.cli.on_spark
from cli.conftest import JOB, events, folder
from cli.test_csv import LINES as CSV_LINES
from sash.cli.check import prepare
from sash.cli.errors import RunError
from sash.cli.local import run_local
from sash.cli.on_spark import run_on_spark
from sash.cli.read import read
from sash.cli.report import Report, Watcher
from sash.cli.results import read_revisions
from sash.cli.sinks import last_revisions
from sash.cli.source import Files
from sash.cli.stopping import Stop

__all__ = ["folder"]  # a fixture

SQL = """sql = '''
SELECT upper(k) AS key, window, sum(x * 2) AS twice FROM input
GROUP BY upper(k), window(ts, '10 minutes', '2 minutes')'''
"""
JOBS = {
    "live windows": ("live", 'python = "queries:query"'),
    "final sessions": ("final", 'python = "queries:sessions"'),
    "live SQL": ("live", SQL),
}


class Heard(Watcher):
    """Keeps what a run reports."""

    wants_rows = True

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.emitted = self.late = 0

    def batch(self, report: Report) -> None:
        self.reports.append(report)

    def rows(self, query: str, emitted: pa.Table | None, late: pa.Table | None) -> None:
        self.emitted += 0 if emitted is None else emitted.num_rows
        self.late += 0 if late is None else late.num_rows


@pytest.mark.parametrize("job", JOBS)
def test_a_job_gives_the_same_here_and_on_spark(job: str, spark: Any, folder: Path) -> None:
    mode, query = JOBS[job]
    text = JOB.replace("3 minutes", "1 day" if mode == "live" else "10 minutes")
    text = text.replace('python = "queries:query"', query)
    text = text.replace('path = "in"', 'path = "in"\noptions = { maxFilesPerTrigger = 1 }')
    # with one bucket, stream time is that of all keys
    (folder / "job.toml").write_text(f'{text}\n[run]\nmode = "{mode}"\nbuckets = 1\n')
    ready, heard = prepare("job.toml"), Heard()
    with in_utc(spark):
        run_on_spark(spark, ready, heard, lambda *_: None, Stop(sys.stderr))
    (given,) = ready.queries.values()
    theirs = read_revisions("out")
    if mode == "live":
        theirs = last_revisions(theirs, given)
    (folder / "job.toml").write_text(
        (folder / "job.toml")
        .read_text()
        .replace('"out"', '"here"')
        .replace('"late"', '"here-late"')
    )
    run_local(prepare("job.toml", local=True), Heard(), lambda *_: None)
    ours = pq.ParquetFile("here/results.parquet").read()
    end = pc.struct_field(ours["window"], "end")
    if mode == "live":  # what the stream has passed is emitted
        passed = pc.max(pa.concat_tables(events())["ts"])
    else:  # what has ended by the watermark is
        passed = pc.max(pc.struct_field(theirs["window"], "end"))
    ours = ours.filter(pc.less_equal(end, passed))
    assert rows(theirs) == rows(ours)
    assert theirs.num_rows > 20
    assert sum(report.rows_in for report in heard.reports) == 240
    assert sum(report.rows_out for report in heard.reports) == heard.emitted >= theirs.num_rows
    assert sum(sum(report.late.values()) for report in heard.reports) == heard.late


SEVERAL = """
[[query]]
name = "sessions"
python = "queries:sessions"

[[query]]
name = "doubled"
sql = '''SELECT k, window, sum(x * 2) AS twice FROM input WHERE x > -5
GROUP BY k, window(ts, '10 minutes', '2 minutes')'''

[[query]]
name = "doubled-again"
sql = '''SELECT k, upper(k) AS key, window, max(x * 2) + 1 AS most, count(x) AS n
FROM input AS i WHERE x > -5
GROUP BY k, window(ts, '20 minutes') HAVING count(x) > 2'''
"""


def test_queries_of_a_job_share_a_streaming_query(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of each, its late rows and its reports are those that it has alone."""
    pq.write_table(events()[0].slice(0, 20), folder / "in" / "old.parquet")  # all of it is late
    (folder / "in" / "003.parquet").unlink()  # four micro-batches will do
    text = JOB.replace("3 minutes", "2 minutes") + SEVERAL
    text = text.replace('path = "in"', 'path = "in"\noptions = { maxFilesPerTrigger = 1 }')
    text += '[run]\nmode = "live"\nbuckets = 2\n'
    heard = {"out": Heard(), "alone": Heard()}
    for sink, one in heard.items():
        own = text.replace('"out"', f'"{sink}"').replace('"late"', f'"late-{sink}"')
        (folder / "job.toml").write_text(own)
        ready = prepare("job.toml")
        if sink == "alone":  # of each two, the one that was second
            monkeypatch.setattr(sash.cli.on_spark, "shares", lambda *_, **__: False)
            ready.queries.pop("counts")
            ready.queries.pop("doubled")
        with in_utc(spark):
            run_on_spark(spark, ready, one, lambda *_: None, Stop(sys.stderr))
    shared = [f"out/_checkpoint/shared.{number}" for number in (1, 2)]
    assert checkpoints("out") == shared
    for name in ("sessions", "doubled-again"):
        made = read_revisions(f"out/{name}")
        assert all_rows(made) == all_rows(read_revisions(f"alone/{name}")), name
        assert made.num_rows > 3, name
        late = read_revisions(f"late-out/{name}")
        assert all_rows(late) == all_rows(read_revisions(f"late-alone/{name}")), name
        assert late.num_rows > 0, name
        ours, theirs = ([told(r) for r in h.reports if r.query == name] for h in heard.values())
        assert ours == theirs
        assert {report["batch"] for report in ours} >= {0, 1, 2, 3}
    for name in ("counts", "doubled"):
        assert read_revisions(f"out/{name}").num_rows > 20


def told(report: Report) -> dict[str, Any]:
    """What a report says of one query alone."""
    return {
        key: value
        for key, value in report.to_dict().items()
        if key not in ("at", "rows_per_second", "seconds", "state_bytes", "lag_seconds")
    }


def all_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def checkpoints(path: str) -> list[str]:
    return sorted(str(p.parent) for p in Path(path).rglob("metadata"))


@contextmanager
def in_utc(spark: Any) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_csv_is_read_as_spark_reads_it_or_not_at_all(spark: Any, tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = list(CSV_LINES)
    lines += ["".join(draw.choices('"\\,a ', k=draw.randint(1, 7))) for _ in range(300)]
    lines = [line for line in lines if line.count(",") == 1 and "\n" not in line]
    schema = pa.schema({"a": pa.string(), "b": pa.string()})
    for options in ({}, {"escape": '"'}, {"nullValue": "a"}):
        read_here = 0
        (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
        reader = spark.read.schema("a string, b string").options(**options)
        theirs = [(r.a, r.b) for r in reader.csv(str(tmp_path / "a.csv")).collect()]
        assert len(theirs) == len(lines)
        for line, wanted in zip(lines, theirs, strict=True):
            one = tmp_path / "one.csv"
            one.write_text(line + "\n")
            try:
                made = read(one, Files("csv", str(one), (one,), schema), dict(options))
            except RunError:
                continue
            (row,) = made.to_pylist()
            assert (row["a"], row["b"]) == wanted, (line, options)
            read_here += 1
        assert read_here > 20


def rows(table: pa.Table) -> list[str]:
    kept = [name for name in table.column_names if name not in ("revision", "deleted")]
    return sorted(map(str, table.select(kept).to_pylist()))
