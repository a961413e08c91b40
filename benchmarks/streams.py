"""A real stream, if it lies beside the project: the Citi Bike trips of FiBA's paper."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sash import aggregators, operators

from .workload import Contender, Workload

__all__ = ["citi_bike"]

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "citibike"
HOUR = 3_600_000_000
WINDOWS = {
    "6 hours": 6 * HOUR,
    "1 day": 24 * HOUR,
    "4 days": 96 * HOUR,
    "16 days": 384 * HOUR,
    "32 days": 768 * HOUR,
}
OPERATORS = {"sum": operators.sum, "max": operators.max}


def citi_bike() -> list[Workload]:
    """Trips as they end, at the times they started: windows as in the paper's Figure 15."""
    title = "duration of Citi Bike trips, windows by start, arrival by end"
    if not sorted(FOLDER.glob("*.zip")):
        return [
            Workload(
                name="citibike",
                title=title,
                ours={},
                peers={},
                skip="there are no trips in ../shared/data/citibike",
            )
        ]
    rows = len(_trips()[0])
    return [
        Workload(
            name=f"citibike-{which}",
            title=f"{which} of the {title}, {rows:,} trips",
            unit="event",
            units=rows,
            ours={
                f"Fiba, {window}": _slide("Fiba", which, span, peer=f"BTree, {window}")
                for window, span in WINDOWS.items()
            },
            peers={
                f"BTree, {window}": _slide("BTree", which, span) for window, span in WINDOWS.items()
            },
        )
        for which in OPERATORS
    ]


def _slide(name: str, which: str, span: int, peer: str | None = None) -> Contender:
    make, operator = getattr(aggregators, name), OPERATORS[which]

    def run() -> Any:
        times, values = _trips()
        return make(operator).slide(times, values, span=span)

    # The answers of all windows are told apart by a reference of each.
    return Contender(
        run=run,
        first=lambda: make(operator).slide([1, 2], np.array([1.0, 2.0]), span=span),
        kernel=f"{name} of {which}, slide by span",
        answer=lambda found: found / _expected(which, span),
        peer=peer,
    )


@cache
def _trips() -> tuple[Any, Any]:
    """Times of start in microseconds and durations, in the order of the trips' ends."""
    read = [
        pd.read_csv(path, usecols=["tripduration", "starttime", "stoptime"])
        for path in sorted(FOLDER.glob("*.zip"))
    ]
    trips = pd.concat(read, ignore_index=True)
    ended = pd.to_datetime(trips["stoptime"]).to_numpy("M8[us]")
    order = np.argsort(ended, kind="stable")
    started = pd.to_datetime(trips["starttime"]).to_numpy("M8[us]").view(np.int64)
    return started[order], trips["tripduration"].to_numpy(np.float64)[order]


@cache
def _expected(which: str, span: int) -> Any:
    """The answers by another way: the window of each row is a range of the sorted times, and
    what has not arrived yet is left out, for every thousandth row; the others are passed over."""
    times, values = _trips()
    answers = np.full(len(times), np.nan)
    fold = np.sum if which == "sum" else np.max
    for row in range(0, len(times), 1000):
        arrived = times[: row + 1]
        answers[row] = fold(values[: row + 1][arrived >= arrived.max() - span])
    return answers
