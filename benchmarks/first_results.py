"""What a first result costs in a new process, and what the command line costs.

The clock starts when the process has its table, so `import sash` and numba's import are in it, and
those of numpy and pyarrow are not.  *Empty cache* compiles all that the query needs; *warm cache*
has it from an earlier process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from .page import write_job
from .processes import kept_cache, run_program
from .workload import Bound, Contender, Workload

__all__ = ["first_results"]

_PROGRAM = """
import sys, time
import numpy as np, pyarrow as pa
source = np.random.default_rng(0)
table = pa.table({
    "t": pa.array(np.sort(source.integers(0, 10**10, 1000))).cast(pa.timestamp("us")),
    "key": source.integers(0, 10, 1000),
    "x": source.standard_normal(1000),
    "y": source.standard_normal(1000),
})
start = time.perf_counter()
import sash
select = [
    sash.count(), sash.max("x"), sash.mean("x"), sash.min("x"), sash.sum("x"), sash.stddev("x"),
    sash.arg_max("y", by="x"), sash.last("y"), sash.first("y"), sash.arg_min("y", by="x"),
    sash.variance("y"), sash.geometric_mean("x"), sash.skewness("x"), sash.kurtosis("x"),
    sash.correlation("x", "y"), sash.span("x"),
]
query = sash.Query(
    time="t",
    by=["key"],
    window=sash.sliding("1 hour", "1 minute"),
    select={f"c{i}": chosen for i, chosen in enumerate(select[: int(sys.argv[2])])},
)
if sys.argv[1] == "run":
    found = query.run(table)
else:
    stream = query.stream(lateness="1 minute")
    found = stream.push(table)
assert found.num_rows
print(time.perf_counter() - start)
"""


def first_results() -> list[Workload]:
    """All of them."""
    return [_first(), _command_line()]


def _seconds(kind: str, many: int, *, warm: bool) -> float:
    if warm:
        return run_program(_PROGRAM, kind, str(many), cache_dir=kept_cache())
    with tempfile.TemporaryDirectory() as folder:
        return run_program(_PROGRAM, kind, str(many), cache_dir=folder)


def _first() -> Workload:
    cases = (
        ("run", 3, False, 3.0),
        ("stream", 3, False, 5.0),
        ("run", 3, True, 0.8),
        ("stream", 3, True, 0.8),
        ("run", 16, False, None),
        ("stream", 8, False, None),
    )
    return Workload(
        name="first-result",
        title="the first result of a new process, a thousand rows, an hour every minute",
        unit="process",
        told=True,
        calls=1,
        ours={
            f"{kind} of {many} aggregates, {'warm' if warm else 'empty'} cache": Contender(
                run=lambda kind=kind, many=many, warm=warm: _seconds(kind, many, warm=warm),
                bounds=() if limit is None else (Bound(limit, or_equal=True),),
                slow=limit is None,
            )
            for kind, many, warm, limit in cases
        },
        peers={},
    )


@cache
def _job() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    write_job(Path(folder.name), rows=100, files=1)
    return folder


def _command_line() -> Workload:
    """A process from its start to its end."""

    def took(*arguments: str) -> float:
        program = "import sys; from sash.cli import main; sys.argv[0] = 'sash'; main()"
        command = [sys.executable, "-c", program, *arguments]
        where = _job().name
        start = time.perf_counter()
        subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    asked = {"sash --help": (("--help",), 0.4), "sash check": (("check", "job.toml"), 1.0)}
    return Workload(
        name="command-line",
        title="a command from start to end",
        unit="process",
        told=True,
        calls=2,
        ours={
            name: Contender(
                run=lambda given=given: took(*given), bounds=(Bound(limit, or_equal=True),)
            )
            for name, (given, limit) in asked.items()
        },
        peers={},
    )
