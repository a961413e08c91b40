"""Cases, and the search for one that fails."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Self, TypeAlias

__all__ = ["Case", "Finding", "Target", "search"]


class Case(ABC):
    """One case to try, as data."""

    @classmethod
    @abstractmethod
    def draw(cls, source: Random) -> Self:
        """Draw a case at random."""

    @abstractmethod
    def problem(self) -> str | None:
        """Run the case; returns the mistake of sash, or None."""

    @abstractmethod
    def smaller(self, fails: Callable[[Self], bool]) -> Self:
        """Shrink the case to the smallest that still fails."""

    @abstractmethod
    def as_test(self) -> str:
        """The source code of a test for the case."""

    @property
    @abstractmethod
    def operations(self) -> int:
        """The number of operations in the case."""


Target: TypeAlias = type[Case]


@dataclass(frozen=True)
class Finding:
    """A failing case: its number, and its smallest form."""

    number: int
    case: Case
    problem: str


def search(
    target: Target,
    *,
    seed: int = 0,
    first: int = 0,
    seconds: float = 60.0,
    cases: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, int, Finding | None]:
    """Try cases from number `first` on until one fails, the time is over, or the limit is reached.

    Returns the numbers of cases and operations, and the finding.  It calls `progress` with both
    numbers after each case.
    """
    end = time.monotonic() + seconds
    number = done = 0
    while time.monotonic() < end and (cases is None or number < cases):
        case = target.draw(Random(f"{seed} {target.__name__} {first + number}"))
        number += 1
        done += case.operations
        problem = case.problem()
        if problem is not None:
            small = case.smaller(lambda c: c.problem() is not None)
            return number, done, Finding(first + number - 1, small, small.problem() or problem)
        if progress is not None:
            progress(number, done)
    return number, done, None
