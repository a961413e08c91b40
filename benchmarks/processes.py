"""Times that only a new process can tell, and settings of this one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa

__all__ = [
    "first_slide",
    "first_timed_slide",
    "import_sash",
    "kept_cache",
    "peak_of_run",
    "run_program",
    "setting",
]

_IMPORT = """
import time
start = time.perf_counter()
import sash
print(time.perf_counter() - start)
"""

_FIRST_SLIDE = """
import sys, time
import numba, numpy
import sash
from sash import aggregators, operators
name, which = sys.argv[1:]
operator = operators.max if which == "max" else sash.operator(
    identity=(-numpy.inf, 0),
    lift=lambda x: (min(x, 3.0), 1 if x >= 3.0 else 0),
    combine=lambda a, b: (max(a[0], b[0]), a[1] + b[1]),
    lower=lambda a: a[0],
)
values = numpy.arange(16.0)
start = time.perf_counter()
getattr(aggregators, name)(operator).slide(values, 4)
print(time.perf_counter() - start)
"""

_FIRST_TIMED_SLIDE = """
import time
import numba, numpy
import sash
from sash.aggregators import Fiba
operator = sash.operator(
    identity=0.0,
    lift=lambda x: x,
    combine=lambda a, b: a + b,
    lower=lambda a: a,
    name="my sum",
)
times, values = numpy.array([1, 3, 2, 5, 4, 6, 8, 7]), numpy.arange(8.0)
start = time.perf_counter()
Fiba(operator).slide(times, values, count=4)
print(time.perf_counter() - start)
"""


_PEAK_OF_RUN = """
import re, sys
import pyarrow as pa
from benchmarks.queries import make_table, query
def held(what):  # by this process, in bytes; ru_maxrss would count its parent too
    return 1024 * int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
q = query(int(sys.argv[2]))
q.run(make_table(100, 2))
with pa.OSFile(sys.argv[1]) as file:
    table = pa.ipc.open_file(file).read_all()
before = held("VmRSS")
result = q.run(table)
print(held("VmHWM") - before)
"""


@contextmanager
def setting(name: str, value: object) -> Iterator[None]:
    """Set a variable of the environment for a while."""
    before = os.environ.get(name)
    os.environ[name] = str(value)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def import_sash() -> float:
    """Seconds for `import sash`, with all it imports."""
    return run_program(_IMPORT)


def first_slide(name: str, which: str, *, anew: bool = False) -> float:
    """Seconds for a process's first slide, from a cache that is kept for this run; with
    `anew`, from an empty one."""
    if anew:
        with tempfile.TemporaryDirectory() as folder:
            return run_program(_FIRST_SLIDE, name, which, cache_dir=folder)
    return run_program(_FIRST_SLIDE, name, which, cache_dir=kept_cache())


@cache
def first_timed_slide() -> tuple[float, float]:
    """Seconds for a process's first slide of a user's sum by Fiba: from an empty cache, and in
    processes after that (the best of three)."""
    with tempfile.TemporaryDirectory() as folder:
        anew, *later = (run_program(_FIRST_TIMED_SLIDE, cache_dir=folder) for _ in range(4))
        return anew, min(later)


def peak_of_run(table: pa.Table, ratio: int) -> float:
    """By how many bytes a query over a table raises the most that a process has held."""
    with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        return run_program(_PEAK_OF_RUN, file.name, str(ratio))


def kept_cache() -> str:
    """A folder for kernels that one process leaves to the next, in this run."""
    return _kept().name


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def run_program(program: str, *arguments: str, cache_dir: str | None = None) -> float:
    """The number that a Python program prints, in a process of its own."""
    environment = dict(os.environ)
    if cache_dir:
        environment["SASH_CACHE_DIR"] = cache_dir
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)
