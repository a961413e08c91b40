"""What the live page costs a job: `python -m benchmarks.page [--quick]`.

The same job runs in this process with the page, which a reader follows in another process, and
without it, in turns; the best of each counts.  Then ten thousand micro-batches go through a page,
and through none, and what memory each has added is compared.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, FILES, KEYS = 250_000, 40, 200
BATCHES = 10_000
#: Promised: the share of rows a second that is left, and the megabytes that it may take.
RATE, MEMORY = 0.97, 30.0

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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and micro-batches")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _write_job(ROWS // 10 if quick else ROWS)
        rate, used = _rates(turns=2 if quick else 6)
        more = _memory(BATCHES // 10 if quick else BATCHES)
    good = rate >= RATE and more <= MEMORY
    print(f"with the page {rate:.3f} of the rows a second without it (at least {RATE} wanted)")
    print(f"  by processor time {used:.3f}")
    print(f"{more:.1f} MB more after the micro-batches (at most {MEMORY:.0f} wanted)")
    return 0 if good else 1


def _write_job(rows: int) -> None:
    random = np.random.default_rng(3)
    Path("in").mkdir()
    for number in range(FILES):
        times = np.sort(random.integers(0, 600_000_000, rows)) + number * 600_000_000
        times -= (random.random(rows) < 0.1) * random.integers(0, 240_000_000, rows)
        columns = {
            "ts": pa.array(times + 1_700_000_000_000_000, pa.timestamp("us", "UTC")),
            "k": random.integers(0, KEYS, rows),
            "x": random.random(rows),
        }
        pq.write_table(pa.table(columns), f"in/{number:03}.parquet")
    Path("job.toml").write_text(JOB)


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


def _rates(turns: int) -> tuple[float, float]:
    """Rows a second with the page, over those without: by the clock, and by processor time, of
    which the page's own thread takes some beside the job's."""
    from sash.cli.check import prepare
    from sash.cli.local import run_local
    from sash.cli.report import Watcher

    ready = prepare("job.toml", local=True)
    took: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for turn in range(turns + 1):
        for paged in (False, True):
            read = _Read(ready) if paged else None
            if read is not None:
                time.sleep(1.0)  # until the reader is there
            clock, began = time.perf_counter(), time.process_time()
            run_local(ready, read.page if read is not None else Watcher(), lambda *_: None)
            passed, used = time.perf_counter() - clock, time.process_time() - began
            if read is not None:
                read.stop()
            if turn:  # the first builds kernels
                took[paged].append((passed, used))
                which = "with" if paged else "without"
                print(f"{which} the page: {passed:.2f} s, {used:.2f} s of a processor", flush=True)
    without, paged_ = ([min(each) for each in zip(*took[p], strict=True)] for p in (False, True))
    return without[0] / paged_[0], without[1] / paged_[1]


def _memory(batches: int) -> float:
    """Megabytes that a page has added after so many micro-batches, beyond what none has."""
    return _grown(batches, paged=True) - _grown(batches, paged=False)


def _grown(batches: int, *, paged: bool) -> float:
    """Megabytes that a process has grown by, in a process of its own."""
    code = f"from benchmarks.page import fill; fill({batches}, {paged})"
    root = str(Path(__file__).parents[1])
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=given, check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def fill(batches: int, paged: bool) -> None:
    """Report micro-batches, with or without a page, and print by how many megabytes memory grew at
    most."""
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
    print(f"{grown:.1f}")


def _resident() -> float:
    """Megabytes that this process has at the moment, or where that is not told, had at most."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    sys.exit(main())
