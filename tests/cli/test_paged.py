"""The page of a job has the job's own numbers."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from sash.cli import _with_port
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


def test_a_port_may_be_left_out() -> None:
    assert _with_port(["run", "--page", "job.toml"]) == ["run", "--page", str(PORT), "job.toml"]
    assert _with_port(["run", "job.toml", "--page"]) == ["run", "job.toml", "--page", str(PORT)]
    assert _with_port(["run", "--page", "8000", "job.toml"]) == [
        "run",
        "--page",
        "8000",
        "job.toml",
    ]
