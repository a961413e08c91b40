"""Jobs to run: a folder with events, a module with queries, and a job file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

#: The types of the events below, as a job file lists them.
DDL = "ts timestamp, k string, x bigint"
START = 1_700_000_000_000_000
MINUTE = 60_000_000

QUERIES = """
import sash

def made(window, **more):
    select = {"n": sash.count(), "total": sash.sum("x"), "last": sash.last("x")}
    return sash.Query(time="ts", by=["k"], window=window, select=select, **more)

query = made(sash.sliding("10 minutes", "2 minutes"))
tied = made(sash.sliding("10 minutes", "2 minutes"), tie="x")
longer = made(sash.sliding("30 minutes", "6 minutes"))
sessions = made(sash.session("40 seconds"))
trailing = made(sash.trailing("5 minutes"))
clock = made(sash.tumbling("10 minutes"), emit="changes")
other_time = sash.Query(time="at", window=sash.tumbling("1 hour"), select={"n": sash.count()})
missing = sash.Query(time="ts", by=["kk"], window=sash.tumbling("1 hour"),
                     select={"n": sash.count()})
text = sash.Query(time="ts", window=sash.tumbling("1 hour"), select={"n": sash.sum("k")})
named = sash.Query(time="ts", window=sash.tumbling("1 hour"), select={"event_time": sash.count()})
number = 3
def function(): pass
"""

JOB = """\
[source]
path = "in"
time = "ts"
lateness = "3 minutes"

[[query]]
name = "counts"
python = "queries:query"

[sink]
path = "out"
late = "late"
"""


def events(files: int = 4, rows: int = 60) -> list[pa.Table]:
    """Tables of events in order of arrival, some of which come late."""
    random = np.random.default_rng(7)
    made = []
    for i in range(files):
        seconds = i * 600 + random.integers(-200, 600, rows)
        made.append(
            pa.table(
                {
                    "ts": pa.array(START + seconds * 1_000_000, pa.timestamp("us", "UTC")),
                    "k": random.choice(["a", "b", "ü"], rows),
                    "x": random.integers(-9, 9, rows),
                }
            )
        )
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a job that runs, into which a test may write another."""
    (tmp_path / "in").mkdir()
    for i, table in enumerate(events()):
        file = tmp_path / "in" / f"{i:03}.parquet"
        pq.write_table(table, file)
        os.utime(file, (10**9 + i, 10**9 + i))  # Spark reads them in order of this
    (tmp_path / "queries.py").write_text(QUERIES)
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in ("queries", "broken"):
        sys.modules.pop(name, None)
