"""The one runner: `python -m benchmarks [--quick] [--only NAME,NAME] [--save]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROWS, QUICK_ROWS = 10_000_000, 2_000_000
TURNS, QUICK_TURNS = 3, 1
#: The file of kept figures that `--save` puts its own into.
KEPT = "tables-and-windows"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and turns")
    parser.add_argument(
        "--only", metavar="NAME,…", help="workloads whose name has one of these in it"
    )
    parser.add_argument("--turns", type=int, help=f"turns a contender has (default {TURNS})")
    parser.add_argument(
        "--save", action="store_true", help=f"keep the figures in benchmarks/figures/{KEPT}.json"
    )
    given = parser.parse_args()
    if given.save and given.quick:
        parser.error("--save is for figures of full size, and --quick has rough ones")
    rows = QUICK_ROWS if given.quick else ROWS
    turns = given.turns or (QUICK_TURNS if given.quick else TURNS)
    # An empty cache makes "first call" the time to compile, whatever ran before.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SASH_CACHE_DIR"] = folder
        return run(rows, turns, quick=given.quick, only=given.only, keep=given.save)


def run(rows: int, turns: int, *, quick: bool, only: str | None, keep: bool = False) -> int:
    # Imported here: the table needs the peers, `--help` does not.  numba is not to be counted
    # in whichever kernel comes first.
    import numba  # noqa: F401

    from .figures import commit, save
    from .machine import describe
    from .measure import WrongAnswer, measure
    from .report import as_figure, as_text, summary
    from .table import table

    workloads = table(rows, quick=quick)
    wanted = [part.strip() for part in (only or "").split(",")]
    chosen = [w for w in workloads if any(part in w.name for part in wanted)]
    if not chosen:
        names = ", ".join(w.name for w in workloads)
        print(f"no workload has {only!r} in its name; there are: {names}", file=sys.stderr)
        return 2
    machine = describe()
    of_run = {"commit": commit(), "date": f"{datetime.now(UTC):%Y-%m-%d}", "turns": turns}
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"best of {turns} turns; ratios are of times: below 1 is faster")
    if quick:
        print("quick: small sizes and one turn, so ratios are rough")
    settings = {"rows": rows, "quick": quick, "only": only, **of_run}
    start, done, built, failed = time.perf_counter(), [], set[str](), 0
    for workload in chosen:
        if workload.skip:
            print(f"\n{workload.name}: {workload.title}\n  left out: {workload.skip}")
            continue
        began, before = time.perf_counter(), os.getloadavg()[0]
        try:
            figure = as_figure(measure(workload, turns, built))
        except WrongAnswer as error:
            failed += 1
            print(f"\nWRONG {error}", file=sys.stderr, flush=True)
            continue
        except Exception:  # one that breaks must not take the others' figures with it
            failed += 1
            print(f"\nFAILED {workload.name}", file=sys.stderr)
            traceback.print_exc()
            continue
        # Of the load 1 is this run's own: ratios from a busy machine are not to be trusted.
        load = [round(each, 2) for each in (before, os.getloadavg()[0])]
        took = round(time.perf_counter() - began, 1)
        done.append({**figure, **of_run, "load_average": load, "seconds": took})
        print(f"\n{as_text(figure)}\n  in {took:.0f} s, load average {max(load):.1f}", flush=True)
        written = _write(machine, settings, done)
        if keep:
            slim = {key: value for key, value in done[-1].items() if key != "times"}
            save(KEPT, machine, {workload.name: slim})
    print(f"\n{summary(done)} ({time.perf_counter() - start:.0f} s)")
    if done:
        print(f"load average {max(max(each['load_average']) for each in done):.1f} at most")
        print(f"written: benchmarks/results/{written}.json and .md")
    if failed:
        print(f"{failed} workloads gave wrong answers or failed", file=sys.stderr)
    return 1 if failed else 0


def _write(machine: dict[str, str], settings: dict[str, Any], done: list[dict[str, Any]]) -> str:
    """Write all that is done so far; the name of its files."""
    from .report import as_markdown, rows, summary

    quick, only = settings["quick"], settings["only"]
    stem = "-".join([settings["date"], *(["quick"] if quick else [])])
    stem += f"-only-{only.replace(',', '-').replace('/', '-')}" if only else ""
    RESULTS.mkdir(exist_ok=True)
    plain = {"machine": machine, "settings": settings, "workloads": done}
    (RESULTS / f"{stem}.json").write_text(json.dumps(plain, indent=1))
    parts = [", ".join(f"{key} {value}" for key, value in machine.items()) + "."]
    parts += [f"### {figure['title']}\n\n{as_markdown(rows(figure))}" for figure in done]
    (RESULTS / f"{stem}.md").write_text("\n\n".join([*parts, summary(done), ""]))
    return stem


if __name__ == "__main__":
    sys.exit(main())
