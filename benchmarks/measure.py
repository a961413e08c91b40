"""Timing: a check of the answers, then all contenders in turn, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .workload import Bound, Contender, Workload

__all__ = ["Measured", "Verdict", "WrongAnswer", "measure"]


class WrongAnswer(Exception):
    """Contenders that should agree do not, so their times mean nothing."""


@dataclass(frozen=True)
class Verdict:
    """A bound and what was measured against it."""

    contender: str
    bound: Bound
    value: float

    @property
    def holds(self) -> bool:
        return self.bound.holds(self.value)


@dataclass(frozen=True)
class Measured:
    """A workload's times, in seconds a unit: all of them, and the first call's in seconds; of a
    workload with columns, a row of them for each contender."""

    workload: Workload
    times: dict[str, list[float]]
    first: dict[str, float]
    columns: dict[str, list[float]]

    def best(self, name: str) -> float:
        return min(self.times[name])

    def ratio(self, name: str, peer: str) -> float:
        return self.best(name) / self.best(peer)

    def verdicts(self) -> list[Verdict]:
        return [
            Verdict(name, bound, self.ratio(name, bound.peer) if bound.peer else self.best(name))
            for name, contender in self.workload.ours.items()
            for bound in contender.bounds
        ]


def measure(workload: Workload, turns: int, built: set[str]) -> Measured:
    """Time a workload's contenders, best of all calls after a warm-up.

    They take turns, so that a slow spell of the machine hits all of them.  `built` are the
    kernels that this run has compiled, and to which this adds.
    """
    contenders = {**workload.ours, **workload.peers}
    try:
        return _measure(workload, contenders, turns, built)
    finally:
        if workload.release is not None:
            workload.release()


def _measure(
    workload: Workload, contenders: dict[str, Contender], turns: int, built: set[str]
) -> Measured:
    first, columns = {}, {}
    for name, contender in contenders.items():
        if contender.first is not None and contender.kernel not in built:
            built.add(contender.kernel)
            first[name] = _timed(contender.first, told=workload.told)[0]
    times: dict[str, list[float]] = {name: [] for name in contenders}
    if workload.columns:
        for name, contender in contenders.items():
            columns[name] = [float(each) for each in contender.run()]
            times[name].append(columns[name][0])
        return Measured(workload, times, first, columns)

    def add(name: str, seconds: float) -> None:
        times[name].append(seconds / (contenders[name].units or workload.units))

    if not workload.once:
        for name, seconds in _warm_up(workload, contenders).items():
            if contenders[name].slow:
                add(name, seconds)
    for _ in range(1 if workload.once else turns):
        for name, contender in contenders.items():
            if not (contender.slow and times[name]):
                for _ in range(1 if workload.once else workload.calls):
                    add(name, _timed(contender.run, told=workload.told)[0])
    return Measured(workload, times, first, columns)


def _timed(call: Callable[[], Any], *, told: bool) -> tuple[float, Any]:
    """The seconds that a call took, or those that it tells, and its outcome."""
    start = time.perf_counter()
    outcome = call()
    seconds = time.perf_counter() - start
    return (float(outcome) if told else seconds), outcome


def _warm_up(workload: Workload, contenders: dict[str, Contender]) -> dict[str, float]:
    """Run each contender once, and see that the answers agree; the seconds of each."""
    expected: Any = None
    whose = ""
    took = {}
    # Peers last in the table, but first here: a wrong answer is to be told as ours.  What is slow
    # comes when others have made the data, as this is the one time that it is timed.
    slow = [name for name in contenders if contenders[name].slow]
    quick = [name for name in reversed(contenders) if name not in slow]
    for name in quick + slow:
        contender = contenders[name]
        took[name], outcome = _timed(contender.run, told=workload.told)
        if contender.answer is None:
            continue
        answer = np.asarray(contender.answer(outcome), dtype=np.float64)
        if expected is None:
            expected, whose = answer, name
        elif not np.allclose(answer, expected, rtol=1e-6, atol=1e-9, equal_nan=True):
            differs = ~np.isclose(answer, expected, rtol=1e-6, atol=1e-9, equal_nan=True)
            row = int(np.argmax(differs))
            raise WrongAnswer(
                f"{workload.name}: in row {row}, {name} has {answer[row]!r} and {whose} "
                f"{expected[row]!r} ({int(differs.sum()):,} rows differ)"
            )
    return took
