"""What the live page costs a job: `python -m benchmarks --only page-`.

The same job runs in this process with the page, which a reader follows in another process, and
without it, in turns.  Then ten thousand micro-batches go through a page, and through none, and what
memory each has added is compared.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .workload import Bound, Contender, Workload

__all__ = ["page", "write_job"]

ROWS, FILES, KEYS = 250_000, 40, 200
BATCHES = 10_000
#: Promised: the share of rows a second that is left, and the bytes that it may take.
RATE, MEMORY = 0.97, 30e6

JOB = """
[source]
path = "in"
time = "ts"
lateness = "5 minutes"

[[query]]
name = "counts"
sql = '''
SELECT k, window.start AS s, window.end AS e, count(*) AS n, max(x) AS most, avg(x) AS mean
FROM input GROUP BY k, window(ts, '1 hour', '1 minute')'''

[sink]
path = "out"

[run]
mode = "live"
"""

#: Reads what the page sends, as a browser would, until it ends.
READER = "import sys, urllib.request\nfor _ in urllib.request.urlopen(sys.argv[1] + 'events'): pass"


def page(*, quick: bool) -> list[Workload]:
    """All of them."""
    return [_rate(ROWS // 10 if quick else ROWS), _memory(BATCHES // 10 if quick else BATCHES)]


@cache
def _folder(rows: int) -> tempfile.TemporaryDirectory[str]:
    """A folder with a job and its input."""
    folder = tempfile.TemporaryDirectory()
    write_job(Path(folder.name), rows, FILES)
    return folder


def write_job(folder: Path, rows: int, files: int) -> None:
    """Write a job file and so many files of so many rows that it reads."""
    random = np.random.default_rng(3)
    (folder / "in").mkdir()
    for number in range(files):
        times = np.sort(random.integers(0, 600_000_000, rows)) + number * 600_000_000
        times -= (random.random(rows) < 0.1) * random.integers(0, 240_000_000, rows)
        columns = {
            "ts": pa.array(times + 1_700_000_000_000_000, pa.timestamp("us", "UTC")),
            "k": random.integers(0, KEYS, rows),
            "x": random.random(rows),
        }
        pq.write_table(pa.table(columns), folder / f"in/{number:03}.parquet")
    (folder / "job.toml").write_text(JOB)


class _Read:
    """A page with a reader in another process."""

    def __init__(self, ready: Any) -> None:
        from sash.cli.paged import PageWatcher

        self.page = PageWatcher(ready, 0)
        self._reader = subprocess.Popen([sys.executable, "-c", READER, self.page.url])

    def stop(self) -> None:
        self.page.state("ended")
        self.page.stop()
        self._reader.kill()
        self._reader.wait()


def _rate(rows: int) -> Workload:
    def took(*, paged: bool) -> float:
        from sash.cli.check import prepare
        from sash.cli.local import run_local
        from sash.cli.report import Watcher

        with contextlib.chdir(_folder(rows).name):
            ready = prepare("job.toml", local=True)
            read = _Read(ready) if paged else None
            if read is not None:
                time.sleep(1.0)  # until the reader is there
            start = time.perf_counter()
            run_local(ready, read.page if read is not None else Watcher(), lambda *_: None)
            seconds = time.perf_counter() - start
            if read is not None:
                read.stop()
        return seconds

    without = "without the page"
    return Workload(
        name="page-rate",
        title=f"a job of {FILES} files of {rows:,} rows with the live page, beside none",
        units=FILES * rows,
        told=True,
        calls=2,
        ours={
            "with the page": Contender(
                run=lambda: took(paged=True), bounds=(Bound(1 / RATE, without, or_equal=True),)
            )
        },
        peers={without: Contender(run=lambda: took(paged=False))},
        release=_folder.cache_clear,
    )


def _memory(batches: int) -> Workload:
    def more() -> float:
        return _grown(batches, paged=True) - _grown(batches, paged=False)

    return Workload(
        name="page-memory",
        title=f"memory that the page has added after {batches:,} micro-batches",
        unit="job",
        told=True,
        once=True,
        measure="bytes",
        ours={"with the page": Contender(run=more, bounds=(Bound(MEMORY, or_equal=True),))},
        peers={},
        release=_folder.cache_clear,
    )


def _grown(batches: int, *, paged: bool) -> float:
    """Bytes that a process has grown by, in a process of its own."""
    code = f"from benchmarks.page import fill; fill({batches}, {paged})"
    root = str(Path(__file__).parents[1])
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    where = _folder(1000).name
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=given,
        cwd=where,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def fill(batches: int, paged: bool) -> None:
    """Report micro-batches, with or without a page, and print by how many bytes memory grew."""
    from sash.cli.check import prepare
    from sash.cli.report import Report, Watcher

    ready = prepare("job.toml", local=True)
    read = _Read(ready) if paged else None
    watch: Watcher = read.page if read is not None else Watcher()
    random = np.random.default_rng(5)
    keys = pa.array(random.integers(0, 5000, 500))
    gc.collect()
    before = 0.0
    for number in range(batches):
        if number == 100:  # what a page has from its start on is not what grows
            before = _resident()
        at = 1_700_000_000_000_000 + number * 60_000_000
        start = pa.array(np.full(len(keys), at), pa.timestamp("us", "UTC"))
        emitted = pa.table(
            {
                "k": keys,
                "s": start,
                "e": start,
                "n": random.integers(0, 99, len(keys)),
                "most": random.random(len(keys)),
                "mean": random.random(len(keys)),
                "revision": np.zeros(len(keys), np.int64),
            }
        )
        late = pa.table(
            {
                "ts": start.slice(0, 5),
                "k": keys.slice(0, 5),
                "x": [0.0] * 5,
                "reason": ["all its windows were closed before it came"] * 5,
                "missed": [1] * 5,
                "missed_start": start.slice(0, 5),
                "missed_end": start.slice(0, 5),
            }
        )
        watch.rows("counts", emitted, late)
        more: dict[str, Any] = {"late": {"late": 5}, "watermark": at, "lateness": (1,) * 25}
        watch.batch(Report("counts", number, 1000, 500, 0.1, **more))
    gc.collect()
    grown = _resident() - before
    if read is not None:
        read.stop()
    print(f"{grown:.0f}")


def _resident() -> float:
    """Bytes that this process has at the moment, or where that is not told, had at most."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * resource.getpagesize())
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1e3
