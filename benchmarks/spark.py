"""Spark against Spark: `python -m benchmarks.spark [--quick] [--only NAME,NAME] [--save]`.

`make bench-spark` runs all parts.  `--only ways,beside` runs the parts whose names begin so.
After each part the figures so far are written to `results/`; with `--save` the part's figures also
replace those that `figures/spark.json` has of it, and all other parts stay there as they are:

    {"parts": {name: {"commit", "load", "machine", "title", "quick",
                      "lines": [{"name", "value", "unit", "most", "cell"}]}}}

`commit` ends in "+" where files had changed since, `load` is the machine's load average before the
run, `title` the part's docstring; `most` is the bound of a value, or null, and `cell` the row and
column of the table in which the page shows it, or null.  A value of null was not measured, and its
`unit` says why.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from .machine import describe
from .spark_as_of import as_of
from .spark_bench import Bench, Line, session
from .spark_beside import BESIDE
from .spark_events import event_windows
from .spark_million import million_keys
from .spark_saved import Saved, commit
from .spark_sizes import shared, sizes
from .spark_sql import sql
from .spark_streams import batch, few_rows, many_keys, streaming
from .spark_ways import large_batches, micro_batches, random_order, ways

HERE = Path(__file__).parent

PARTS: dict[str, Callable[[Bench, bool], Iterator[Line]]] = {
    "streaming": streaming,
    "many-keys": many_keys,
    "few-rows": few_rows,
    "batch": batch,
    "ways": ways,
    "random-order": random_order,
    "large-batches": large_batches,
    "micro-batches": micro_batches,
    **BESIDE,
    "million-keys": million_keys,
    "event-windows": event_windows,
    "as-of": as_of,
    "sql": sql,
    "sizes": sizes,
    "shared": shared,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--only", metavar="NAME,…", default="", help="parts whose name begins so")
    parser.add_argument("--save", action="store_true", help="keep the figures with the sources")
    given = parser.parse_args()
    wanted = tuple(filter(None, (part.strip() for part in given.only.split(",")))) or ("",)
    chosen = {name: part for name, part in PARTS.items() if name.startswith(wanted)}
    if not chosen:
        parser.error(f"no part begins with {given.only!r}; there are {', '.join(PARTS)}")
    about = {"commit": commit(), "load": round(os.getloadavg()[0], 1), "machine": describe()}
    print(", ".join(f"{key} {value}" for key, value in describe().items()))
    print(f"commit {about['commit']}, load average {about['load']} at the start")
    kept = [Saved(HERE / "results" / f"{datetime.now(UTC):%Y-%m-%d}-spark.json")]
    if given.save:
        kept.append(Saved(HERE / "figures" / "spark.json"))
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        spark = session(Path(folder))
        bench = Bench(spark, Path(folder))
        for name, part in chosen.items():
            title = " ".join((part.__doc__ or "").split())
            print(f"\n{name}: {title}")
            made = []
            for line in part(bench, given.quick):
                made.append(line)
                print(line, flush=True)
            lines += made
            for saved in kept:
                saved.put(name, {**about, "title": title, "quick": given.quick}, made)
        spark.stop()
    missed = [line for line in lines if line.holds is False]
    bounds = [line for line in lines if line.holds is not None]
    print(f"\n{len(bounds) - len(missed)} of {len(bounds)} bounds hold; missed:")
    for line in missed:
        print(line)
    print(f"load average {os.getloadavg()[0]:.1f} at the end")
    for saved in kept:
        print(f"written: {saved.path.relative_to(HERE.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
