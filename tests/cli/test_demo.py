"""The demo's files: reports out of order, and jobs that can run."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from sash.cli.check import prepare
from sash.cli.demo import _findings, demo
from sash.cli.demo_flights import MONTH_FILES, WEEK_FILES, write_demo
from sash.cli.errors import RunError

pytestmark = pytest.mark.plain


def test_the_demo_writes_jobs_that_can_run(tmp_path: Path) -> None:
    said = write_demo(tmp_path)
    assert "88% of the reports come after a later departure" in said.text
    for name, files in (("month", MONTH_FILES), ("week", WEEK_FILES)):
        ready = prepare(tmp_path / f"{name}.toml")
        assert len(ready.source.files) == files
        assert prepare(tmp_path / f"{name}.toml", local=True).queries
        reports = pa.concat_tables([pq.ParquetFile(f).read() for f in ready.source.files])
        numbers = reports["report"].to_numpy()
        assert (numbers[1:] > numbers[:-1]).all(), "ties rise from file to file"
    assert reports.num_rows == 5_899

    _write_results(tmp_path / "month-results", reports)
    month = prepare(tmp_path / "month.toml")
    out = io.StringIO()
    _findings(month, tmp_path, Console(file=out, width=100))
    assert "EWR" in out.getvalue()
    assert "revision 1: 21 departures" in out.getvalue()
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def _write_results(place: Path, reports: pa.Table) -> None:
    """Two revisions of a window for each hour, as a job on Spark writes them."""
    hours = pc.unique(pc.floor_temporal(reports["departed"], unit="hour"))
    ends = pc.add(hours, pa.scalar(3 * 3_600_000_000, pa.duration("us")))
    for revision in (0, 1):
        count = len(hours)
        table = pa.table(
            {
                "origin": pa.array(["EWR"] * count),
                "window": pa.StructArray.from_arrays([hours, ends], ["start", "end"]),
                "departures": pa.array([20 + revision] * count, pa.int64()),
                "worst": pa.array([30.0] * count),
                "mean": pa.array([3.5] * count),
                "whose": pa.array(["UA"] * count),
                "revision": pa.array([revision] * count, pa.int64()),
            }
        )
        (place / f"sash_batch={revision}").mkdir(parents=True)
        pq.write_table(table, place / f"sash_batch={revision}" / "part.parquet")


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(RunError, match="holds something else than a demo"):
        demo(tmp_path, None, Console())  # type: ignore[arg-type]
    assert (tmp_path / "mine").exists()
