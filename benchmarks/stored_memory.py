"""Memory of windows, in memory and in a store, as they grow; and the largest within a limit.

`python -m benchmarks.stored_memory [--quick]` draws the latter, which is Experiment 4 of the paper
on Amta, into docs/images/stored-memory.png, and prints it as a table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from .workload import Bound, Contender, Workload

__all__ = ["memory"]

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "stored-memory.png"
LIMITS = tuple(1 << power for power in range(3, 11))  # MB
WAYS = {
    "Amta on RocksDB": ("Amta", "rocksdb"),
    "LogMta on RocksDB": ("LogMta", "rocksdb"),
    "Amta in memory": ("Amta", ""),
    "LogMta in memory": ("LogMta", ""),
    "DabaLite": ("DabaLite", ""),
    "TwoStacksLite": ("TwoStacksLite", ""),
}

_GROWING = """
import json, os, sys, tempfile
import numba, numpy as np, rocksdict
import sash
from sash import aggregators, operators

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

name, where, size, values = *sys.argv[1:3], *map(int, sys.argv[3:])
kind, op = getattr(aggregators, name), operators.max.of(float)
piece = min(size, 1 << 16)
x = np.random.default_rng(1).random(piece)

kind(op).slide(x[:8], 4)
kind(op).insert(1.0)
with tempfile.TemporaryDirectory() as folder:
    if where:
        few = kind(op, store=sash.stores.memory(), name="few")
        few.slide(x[:8], 4)
        few.sync()
    before, most, found = resident(), 0, []
    window = kind(op)
    if where:
        store = sash.stores.rocksdb(folder)
        window = kind(op, store=store, name="w")
    for i in range(values // piece):
        window.slide(x, size)
        if where and i % 64 == 63:
            window.sync()
        most = max(most, resident() - before)
        found.append((len(window), most))
    print(json.dumps(found))
    if where:
        window.release()
        store.close()
"""


def growing(way: str, size: int, values: int) -> list[tuple[int, int]]:
    """The sizes of a window as it takes so many values and grows up to a size, and the most memory
    so far, above a process that has all libraries loaded."""
    command = [sys.executable, "-c", _GROWING, *WAYS[way], str(size), str(values)]
    found: list[tuple[int, int]] = json.loads(subprocess.check_output(command, text=True))
    return found


def memory(sizes: tuple[int, ...]) -> Workload:
    """Memory of windows of some sizes, each after as many values as the largest has: what waits
    for a store, and what a store keeps, come with the values and not with the size."""

    def run(way: str) -> list[float]:
        held = [float(growing(way, size, max(sizes))[-1][1]) for size in sizes]
        return [max(held), *held]

    stored, plain = "Amta on RocksDB", "Amta in memory"
    return Workload(
        name="stored-memory",
        title=f"memory of a window of max, by its size, after {_power(max(sizes))} values",
        ours={
            stored: Contender(partial(run, stored), bounds=(Bound(64 << 20),)),
            plain: Contender(partial(run, plain)),
        },
        peers={},
        unit="window",
        measure="bytes",
        told=True,
        columns=("most", *map(_power, sizes)),
        once=True,
    )


def _power(size: int) -> str:
    return f"2^{size.bit_length() - 1}"


def fitting(found: list[tuple[int, int]]) -> list[int]:
    """The largest window that fits into each limit."""
    return [
        max((size for size, most in found if most <= limit << 20), default=0) for limit in LIMITS
    ]


def draw(fits: dict[str, list[int]], largest: int) -> None:
    """Draw the largest windows by the limit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes: Any = figure.subplots()
    for (way, sizes), mark in zip(fits.items(), "osv^Dx", strict=False):
        some = [(limit, size) for limit, size in zip(LIMITS, sizes, strict=True) if size]
        style = "-" if "RocksDB" in way else "--"
        axes.plot(*zip(*some, strict=True), style, marker=mark, label=way, alpha=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(LIMITS, [f"{limit}" for limit in LIMITS])
    axes.axhline(largest, color="grey", linewidth=0.8)
    axes.set_xlabel("memory for the window, MB above a process with its libraries")
    axes.set_ylabel("values in the window (max of float64)")
    axes.set_title(f"The largest window within a memory limit, up to {_power(largest)}")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(IMAGE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="windows of up to 2^20")
    largest = 1 << (20 if parser.parse_args().quick else 25)
    fits = {}
    print("| | " + " | ".join(f"{limit} MB" for limit in LIMITS) + " |")
    print("|---" * (len(LIMITS) + 1) + "|")
    for way in WAYS:
        fits[way] = fitting(growing(way, largest, largest))
        print(f"| {way} | " + " | ".join(f"{size:,}" for size in fits[way]) + " |", flush=True)
    draw(fits, largest)
    print(f"drawn: {IMAGE}")


if __name__ == "__main__":
    main()
