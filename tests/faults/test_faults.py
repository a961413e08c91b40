"""Processes that die in the middle: what comes out is the batch answer, nothing lost or doubled.

`make test` has one death of a driver, and some of Python workers, in short streams;
`make test-faults` has a thousand of drivers, executors and Python workers: see `kills.py`.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
import kills
from kills import WANTED, killed, table

from streams import Input, commits, judge, running, tables, to_the_end, wait


@pytest.mark.parametrize("stream", ["live"])
def test_a_driver_that_is_killed_once(tmp_path: Path, stream: str) -> None:
    given = Input(tmp_path, tables(6))
    given.arrive(4)
    with running(tmp_path, "local[2]", stream, "arriving") as driver:
        assert wait(driver, tmp_path, lambda: commits(tmp_path) >= 2)
        time.sleep(random.Random(1).uniform(0, 1.5))
        assert driver.poll() is None
    given.arrive()
    with running(tmp_path, "local[2]", stream) as driver:
        to_the_end(driver, tmp_path)
    verdict = judge(tmp_path, given.batches, stream)
    assert verdict.batches >= 5  # a death may put two files into one batch
    assert verdict.good, verdict


def test_workers_that_are_killed(tmp_path: Path) -> None:
    """Some in each micro-batch of each stream; then another driver goes on from the checkpoints."""
    batches, streams = tables(4), ("trailing", "rows", "session", "shared")
    given = {stream: Input(tmp_path / stream, batches) for stream in streams}
    kills_of = kills.kill_workers_of(tmp_path, given, random.Random(1))
    for stream, files in given.items():
        assert kills_of[stream], stream
        verdict = judge(files.folder, batches, stream)
        assert verdict.good, (stream, verdict)


def test_the_judge_sees_what_is_lost_and_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On rows kept without Spark, from which some are taken, and to which some are added."""
    import pyarrow as pa
    import pyarrow.parquet
    from driver import LATENESS, STREAMS

    import streams
    from sash.testing.queries import replay

    batches = tables(6)
    monkeypatch.setattr(streams, "micro_batches", lambda *_: batches)
    right, missed = replay(STREAMS["final"][0], batches, LATENESS, behind=1)
    (tmp_path / "calls").write_text("0\n1\n1\n")

    def kept(results: list[dict[str, object]], late: list[int]) -> tuple[int, int, int]:
        for name in ("results", "late"):
            (tmp_path / name).mkdir(exist_ok=True)
        rows = [{**row, "sash_batch": 0} for row in results]
        pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "results" / "0.parquet")
        pa.parquet.write_table(pa.table({"n": late}), tmp_path / "late" / "0.parquet")
        verdict = judge(tmp_path, batches)
        assert verdict.replayed == 1
        assert verdict.good == (verdict.lost + verdict.doubled + verdict.wrong == 0)
        return verdict.lost, verdict.doubled, verdict.wrong

    late = [row["n"] for row, _ in missed]
    assert kept(right, late) == (0, 0, 0)
    assert kept(right[1:], late) == (1, 0, 0)
    assert kept([*right, right[0]], late) == (0, 1, 0)
    assert kept([{**right[0], "rows": 99}, *right[1:]], late) == (0, 0, 1)
    assert kept(right, late[1:]) == (1, 0, 0)
    assert kept(right, [*late, late[0]]) == (0, 1, 0)


def test_runs_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on where the last one ended, with the kind that is behind."""

    def run(kind: str, seed: int, files: int | None) -> dict[str, object]:
        counts = dict.fromkeys(kills.COUNTS, 0) | {"kills": WANTED[kind] // 2}
        return {"kind": kind, "mode": kills.stream_of(seed), "seed": seed, "good": True,
                "seconds": 60, "source": "x", **counts}  # fmt: skip

    monkeypatch.setattr(kills, "run", run)
    results = tmp_path / "shards" / "results"
    for _ in range(3):
        monkeypatch.setattr("sys.argv", ["kills.py", str(results), "--streams", "2"])
        assert kills.main() == 0
    lines = kills.read(results)
    assert [(x["kind"], x["seed"]) for x in lines] == [(k, s) for s in (0, 1) for k in WANTED]
    assert {kind: killed(lines, kind) for kind in WANTED} == WANTED
    assert kills.main() == 0
    assert len(kills.read(results)) == 6, "there is nothing left to do"
    assert table(lines).splitlines()[-3].startswith("| all |  | 6 | 1,000 |")

    some = ["--of", "delta,policy", "--only", "driver", "--streams", "5"]
    monkeypatch.setattr("sys.argv", ["kills.py", str(results), *some])
    assert kills.main() == 0
    added = [(x["kind"], x["mode"]) for x in kills.read(results)[6:]]
    assert added == [("driver", "delta"), ("driver", "policy")], "of these streams alone"
