"""The one runner: `python -m benchmarks [--quick] [--only NAME]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROWS, QUICK_ROWS = 10_000_000, 2_000_000
TURNS, QUICK_TURNS = 3, 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and turns")
    parser.add_argument("--only", metavar="NAME", help="workloads whose name has this in it")
    parser.add_argument("--turns", type=int, help=f"turns a contender has (default {TURNS})")
    given = parser.parse_args()
    rows = QUICK_ROWS if given.quick else ROWS
    turns = given.turns or (QUICK_TURNS if given.quick else TURNS)
    # An empty cache makes "first call" the time to compile, whatever ran before.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SASH_CACHE_DIR"] = folder
        return run(rows, turns, quick=given.quick, only=given.only)


def run(rows: int, turns: int, *, quick: bool, only: str | None) -> int:
    # Imported here: the table needs the peers, `--help` does not.  numba is not to be counted
    # in whichever kernel comes first.
    import numba  # noqa: F401

    from .machine import describe
    from .measure import IN_A_ROW, WrongAnswer, measure
    from .report import as_json, as_markdown, as_text, summary
    from .table import table

    workloads = table(rows, quick=quick)
    chosen = [w for w in workloads if only is None or only in w.name]
    if not chosen:
        names = ", ".join(w.name for w in workloads)
        print(f"no workload has {only!r} in its name; there are: {names}", file=sys.stderr)
        return 2
    machine = describe()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"best of {turns} turns of {IN_A_ROW} calls; ratios are of times: below 1 is faster")
    if quick:
        print("quick: small sizes and one turn, so ratios are rough")
    start, done, built, loads = time.perf_counter(), [], set(), [os.getloadavg()[0]]
    for workload in chosen:
        if workload.skip:
            print(f"\n{workload.name}: {workload.title}\n  left out: {workload.skip}")
            continue
        try:
            done.append(measure(workload, turns, built))
        except WrongAnswer as error:
            print(f"\nWRONG {error}", file=sys.stderr)
            return 1
        loads.append(os.getloadavg()[0])
        print(f"\n{as_text(done[-1])}", flush=True)
    print(f"\n{summary(done)} ({time.perf_counter() - start:.0f} s)")
    # Of which 1 is this run's own: ratios from a busy machine are not to be trusted.
    print(f"load average {loads[0]:.1f} at the start, {max(loads[1:], default=0):.1f} at most")
    settings = {
        "rows": rows,
        "turns": turns,
        "calls_a_turn": IN_A_ROW,
        "quick": quick,
        "only": only,
        "load_average": loads,
    }
    stem = "-".join([f"{datetime.now(UTC):%Y-%m-%d}", *(["quick"] if quick else [])])
    stem += f"-only-{only}" if only else ""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stem}.json").write_text(json.dumps(as_json(machine, settings, done), indent=1))
    (RESULTS / f"{stem}.md").write_text(as_markdown(machine, done))
    print(f"written: benchmarks/results/{stem}.json and .md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
