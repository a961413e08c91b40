"""The aggregators at work on a day of departures: `make tour`, or `python examples/aggregators.py`.

An operator says what to compute, an aggregator how. Any operator runs on any aggregator, and the
cost per departure does not grow with the window (except for Recalc, the baseline).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import sash
from sash import aggregators, operators
from sash.testing import counting

DEPARTURES = 400_000
WINDOW = 1_000
COUNTED = 2_000  # count combines over this many departures, in plain Python

#: The mean delay of the delayed flights: a user's operator in plain Python, which sash compiles.
late_by = sash.operator(
    name="late_by",
    identity=(0, 0.0),
    lift=lambda delay: (1, delay) if delay > 15.0 else (0, 0.0),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda a: a[1] / a[0] if a[0] else None,
    commutative=True,
)


def main() -> None:
    delays, flights = departures()
    print(f"{DEPARTURES:,} departures; every answer is over the last {WINDOW:,}, after each one.")
    print("Compiled once and kept for next time: the first run of this demo is the slowest.")

    head("Any operator, on TwoStacksLite", "operator", "the last answer")
    chosen: list[tuple[str, Any, Any]] = [
        ("max", operators.max, delays),
        ("mean", operators.mean, delays),
        ("arg_max (which flight)", operators.arg_max, (flights, delays)),
        ("late_by (your own)", late_by, delays),
    ]
    for name, operator, columns in chosen:
        line(name, aggregators.TwoStacksLite, operator, columns)

    head("max, on any aggregator", "aggregator", "the last answer")
    for name in ("TwoStacksLite", "DabaLite", "FlatFit", "FlatFatFifo", "Recalc"):
        line(name, getattr(aggregators, name), operators.max, delays)

    print("\nOne departure at a time, the longest delay of the last three")
    window = aggregators.DabaLite(operators.max)
    for delay in (4, 31, -2, 12, None, 7):
        if len(window) == 3:
            window.evict()
        window.insert(delay)
        print(f"  {'cancelled' if delay is None else f'{delay:+d} min':>9}  ->  {window.query()}")


def departures() -> tuple[Any, Any]:
    """Delays in minutes, longer in the afternoon, a few of them very long; and flight numbers."""
    draw = np.random.default_rng(7)
    hour = np.linspace(5, 24, DEPARTURES)
    rush = 1 + 1.5 * np.exp(-(((hour - 18) / 3) ** 2))
    delays = draw.gamma(0.9, 9.0, DEPARTURES) * rush - 5
    delays[draw.random(DEPARTURES) < 0.001] += 240
    return delays.round(1), draw.integers(100, 7000, DEPARTURES)


def head(title: str, first: str, second: str) -> None:
    print(f"\n{title}")
    print(f"  {first:<24}{second:>16}{'ns a departure':>17}{'combines':>11}{'compiling':>12}")


def line(name: str, aggregator: Any, operator: Any, columns: Any) -> None:
    """Print one line of a table: the last answer, its cost, and the time to compile the kernel."""
    start = time.perf_counter()
    aggregator(operator).slide(rows(columns, 16), 4)
    compiling = time.perf_counter() - start

    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        answers = aggregator(operator).slide(columns, WINDOW)
        best = min(best, time.perf_counter() - start)

    last = answers[-1]
    shown = f"{last:.1f}" if isinstance(last, float) else f"{last}"
    print(
        f"  {name:<24}{shown:>16}{best / DEPARTURES * 1e9:>17.1f}"
        f"{combines(aggregator, operator, columns):>11.2f}{compiling:>10.2f} s",
        flush=True,
    )


def combines(aggregator: Any, operator: Any, columns: Any) -> float:
    """Calls of `combine` per departure on a full window."""
    counted = counting(operator)
    window = aggregator(counted.operator)
    window.slide(rows(columns, WINDOW), WINDOW)
    counted.reset()
    window.slide(rows(columns, WINDOW + COUNTED, start=WINDOW), WINDOW)
    return counted.combines / COUNTED


def rows(columns: Any, end: int, start: int = 0) -> Any:
    """The rows from `start` to `end` of one column, or of each column of a tuple."""
    if isinstance(columns, tuple):
        return tuple(column[start:end] for column in columns)
    return columns[start:end]


if __name__ == "__main__":
    main()
