"""How a streaming query is watched, with one that is made up: reports, standstill, Ctrl-C."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import sash.cli.on_spark
import sash.cli.spark_reports
from sash.cli.check import prepare
from sash.cli.errors import RunError
from sash.cli.on_spark import _Running, _watched, _why_still
from sash.cli.report import Report, Watcher
from sash.cli.spark_reports import Reports
from sash.cli.stopping import Stop
from sash.cli.writing import check_free
from sash.spark.together import groups

from .conftest import MINUTE, START

pytestmark = pytest.mark.plain


class Progress:
    def __init__(self, batch: int, **metrics: int) -> None:
        self.batchId = batch
        known = {"rows_in": 10, "rows_out": 3, "watermark": START, "open_windows": 2} | metrics
        said = {
            "observedMetrics": {"sash": known},
            "durationMs": {"triggerExecution": 500},
            "stateOperators": [
                {"memoryUsedBytes": 5, "customMetrics": {"rocksdbSstFileSize": 6}},
            ],
        }
        self.json = json.dumps(said)


class Query:
    """A streaming query that makes a micro-batch every so many looks."""

    def __init__(self, batches: int, looks: int = 3) -> None:
        self._left, self._every, self._looks = batches, looks, 0
        self.recentProgress: list[Progress] = []
        self.status = {"isTriggerActive": True}

    @property
    def lastProgress(self) -> Progress | None:
        self._looks += 1
        if self._looks % self._every == 0 and self._left:
            self._left -= 1
            self.recentProgress.append(Progress(len(self.recentProgress)))
        return self.recentProgress[-1] if self.recentProgress else None

    @property
    def isActive(self) -> bool:
        return self._left > 0

    def exception(self) -> None:
        return None


class Heard(Watcher):
    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.states: list[tuple[str, str]] = []

    def batch(self, report: Report) -> None:
        self.reports.append(report)

    def state(self, state: str, why: str = "") -> None:
        self.states.append((state, why))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves when someone sleeps."""
    now = [1000.0]

    class Time:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    monkeypatch.setattr(sash.cli.on_spark, "time", Time)
    monkeypatch.setattr(sash.cli.spark_reports, "time", Time)
    return now


def watched(query: Any, stop: Stop, folder: Path) -> tuple[Heard, _Running]:
    heard, running = Heard(), _Running(("counts",), query, Reports(("counts",)))
    _watched(prepare("job.toml"), [running], heard, stop)
    return heard, running


def test_each_micro_batch_is_reported_once(folder: Path) -> None:
    heard, _ = watched(Query(4), Stop(sys.stderr), folder)
    assert [report.batch for report in heard.reports] == [0, 1, 2, 3]
    report = heard.reports[0]
    assert (report.rows_in, report.rows_out, report.rate, report.state_bytes) == (10, 3, 20.0, 11)
    assert heard.states[0] == (
        "starting",
        "the first micro-batch, which builds kernels if they are new",
    )
    assert ("running", "") in heard.states


def test_late_rows_are_told_apart() -> None:
    class One:
        recentProgress = [Progress(0, rows_late=5, rows_unusable=2, rows_partly_late=4)]  # noqa: RUF012
        lastProgress = recentProgress[0]

    (report,) = Reports(("x",)).new(One())
    assert report.late == {
        "all its windows were closed before it came": 3,
        "some of its windows were closed before it came": 4,
        "it could not be used": 2,
    }


def test_ctrl_c_waits_for_the_micro_batch(folder: Path, clock: list[float]) -> None:
    stop = Stop(sys.stderr)
    stop.asked = True
    heard, running = watched(Query(100, looks=40), stop, folder)
    assert running.reports.batches == 1
    assert heard.states[-1][0] == "stopping"
    assert clock[0] - 1000 == pytest.approx(40 * 0.25, abs=1)


def test_ctrl_c_waits_no_longer_than_30_seconds(folder: Path, clock: list[float]) -> None:
    stop = Stop(sys.stderr)
    stop.asked = True
    _, running = watched(Query(100, looks=10_000), stop, folder)
    assert running.reports.batches == 0
    assert 30 < clock[0] - 1000 < 31


def test_a_micro_batch_that_calls_no_bucket_leaves_windows_open() -> None:
    query, reports = Query(1, looks=1), Reports(("counts",))
    list(reports.new(query))
    idle = Progress(1)
    sums = {"rows_in": 0, "open_windows": 0, "watermark": None}
    event_time = {"watermark": "2023-11-14T22:14:20.000Z"}
    idle.json = json.dumps({"observedMetrics": {"sash": sums}, "eventTime": event_time})
    query.recentProgress.append(idle)
    (report,) = reports.new(query)
    assert (report.open_windows, report.watermark) == (2, START + MINUTE)


def test_a_watermark_that_stands_still_is_explained(folder: Path, clock: list[float]) -> None:
    query = Query(1, looks=1)
    running = _Running(("counts",), query, Reports(("counts",)))
    list(running.reports.new(query))
    ready = prepare("job.toml")
    assert _why_still(ready, [running]) == ""
    clock[0] += 29
    assert _why_still(ready, [running]) == ""
    clock[0] += 2
    assert START % (2 * MINUTE) == 80_000_000
    assert _why_still(ready, [running]) == (
        "counts: the watermark has stood at 2023-11-14T22:13:20Z for 31.0 s; the window from "
        "2023-11-14T22:04:00Z to 2023-11-14T22:14:00Z waits for an event of 2023-11-14T22:17:00Z "
        "or later (its end and the lateness of 3 minutes)"
    )
    running.reports.open_windows["counts"] = 0
    assert _why_still(ready, [running]) == ""


def test_results_of_another_run_are_not_written_over(folder: Path) -> None:
    """A new checkpoint counts its micro-batches from 0 again."""
    (folder / "out" / "sash_batch=0").mkdir(parents=True)
    with pytest.raises(RunError, match=r"holds results of another run, whose checkpoint is not"):
        check_free(str(folder / "out"), str(folder / "out" / "_checkpoint"))
    (folder / "out" / "_checkpoint").mkdir()
    check_free(str(folder / "out"), str(folder / "out" / "_checkpoint"))
    check_free(str(folder / "new"), str(folder / "new" / "_checkpoint"))


def test_a_name_that_results_have_for_themselves_is_alone(folder: Path) -> None:
    query = prepare("job.toml").queries["counts"]
    names = ("a", "window", "b", "B", "late", "query")
    found = groups(dict.fromkeys(names, query))
    assert found == [("a", "b"), ("window",), ("B",), ("late",), ("query",)]
    many = groups({f"q{i}": query for i in range(40)})
    assert [len(group) for group in many] == [32, 8]
