"""The page of a job has the job's own numbers."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sash.cli import _with_port
from sash.cli.app import app
from sash.cli.check import prepare
from sash.cli.local import run_local
from sash.cli.paged import PageWatcher
from sash.cli.report import Report, Watcher, Watchers
from sash.page import PORT

from .conftest import JOB

pytestmark = pytest.mark.plain


class Heard(Watcher):
    def __init__(self) -> None:
        self.reports: list[Report] = []

    def batch(self, report: Report) -> None:
        self.reports.append(report)


def test_a_page_has_the_numbers_of_the_run(folder: Path) -> None:
    late = JOB.replace("3 minutes", "1 second")
    (folder / "job.toml").write_text(f'{late}\n[run]\nmode = "live"\n')
    ready, heard = prepare("job.toml", local=True), Heard()
    page = PageWatcher(ready, 0)
    try:
        run_local(ready, Watchers(heard, page), lambda *_: None)
        page.state("ended")
        with urllib.request.urlopen(f"{page.url.rstrip('/')}/events", timeout=10) as answer:
            line = next(row for row in answer if row.startswith(b"data:"))
        shown = json.loads(line.removeprefix(b"data:"))
    finally:
        page.stop()
    assert shown["state"] == "ended"
    assert shown["totals"]["rows"] == 240 == sum(report.rows_in for report in heard.reports)
    assert shown["totals"]["emitted"] == sum(report.rows_out for report in heard.reports)
    assert sum(shown["late"].values()) == sum(sum(r.late.values()) for r in heard.reports) > 0
    assert sum(shown["lateness"]) == 240
    assert shown["heat"]
    assert "Query.stream" in shown["explain"]


SQL = """sql = \'\'\'
SELECT upper(k) AS place, window.end AS e, {start}, count(*) * 2 AS twice FROM input
GROUP BY upper(k), window(ts, '2 minutes') {having}\'\'\'"""


@pytest.mark.parametrize("start", ["window.start AS s", "window"])
@pytest.mark.parametrize("having", ["", "HAVING count(*) % 2 = 1"])
def test_sql_has_a_heat_map_too(folder: Path, start: str, having: str) -> None:
    """Each cell is what the sink has of its window, and one that HAVING rejects has no value."""
    text = JOB.replace('python = "queries:query"', SQL.format(start=start, having=having))
    (folder / "job.toml").write_text(f'{text}\n[run]\nmode = "live"\n')
    ready = prepare("job.toml", local=True)
    page = PageWatcher(ready, 0)
    try:
        run_local(ready, page, lambda *_: None)
        shown = page._feed.since(0)["heat"]
    finally:
        page.stop()
    written = pq.read_table(folder / "out" / "results.parquet").to_pylist()
    wanted = {}
    for row in written:
        at = row["s"] if "s" in row else row["window"]["start"]
        wanted[row["place"], int(at.timestamp() * 1e6)] = row["twice"]
    found = {
        (key, at): value
        for key, row in zip(shown["keys"], shown["values"], strict=True)
        for at, value in zip(shown["starts"], row, strict=True)
        if value is not None
    }
    assert found == wanted != {}
    assert shown["corrected"]
    assert (shown["value"], shown["by"]) == ("twice", ["upper(k)"])


def test_a_statement_without_its_keys_has_no_heat_map(folder: Path) -> None:
    sql = "sql = \"SELECT max(x) AS m FROM input GROUP BY k, window(ts, '1 h')\""
    (folder / "job.toml").write_text(JOB.replace('python = "queries:query"', sql))
    page = PageWatcher(prepare("job.toml", local=True), 0)
    assert "heat" not in page._feed.since(0)
    page.stop()


def test_a_port_may_be_left_out() -> None:
    assert _with_port(["run", "--page", "job.toml"]) == ["run", "--page", str(PORT), "job.toml"]
    assert _with_port(["run", "job.toml", "--page"]) == ["run", "job.toml", "--page", str(PORT)]
    assert _with_port(["run", "--page", "8000", "job.toml"]) == [
        "run",
        "--page",
        "8000",
        "job.toml",
    ]


def test_a_port_that_is_none_is_refused(folder: Path) -> None:
    found = CliRunner().invoke(app, ["run", "job.toml", "--local", "--page", "99999999"])
    assert found.exit_code == 2
    assert (
        "--page takes a port from 1 to 65535, or 0 for any that is free, not 99999999"
        in found.output
    )
