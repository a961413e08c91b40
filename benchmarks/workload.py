"""What a benchmark is: contenders that do the same work, ours and our peers'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Bound", "Contender", "Workload"]


@dataclass(frozen=True)
class Bound:
    """A promise: a contender's time over a peer's (or, without a peer, its seconds a unit)
    is below `limit`, or at most `limit`."""

    limit: float
    peer: str | None = None
    or_equal: bool = False

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.or_equal else value < self.limit

    @property
    def sign(self) -> str:
        return "≤" if self.or_equal else "<"


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    `first` is a small call that pays what only the first call with this `kernel` pays: its
    compilation.  `answer` turns the outcome into an array that is the same for all contenders;
    None if there is nothing to compare.
    """

    run: Callable[[], Any]
    first: Callable[[], Any] | None = None
    kernel: str = ""
    answer: Callable[[Any], Any] | None = None
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Contenders to be timed side by side.

    A call of `run` is worth `units` units.  With `told`, `run` gives the seconds itself, because
    they were measured in a process of its own.
    """

    name: str
    title: str
    ours: dict[str, Contender]
    peers: dict[str, Contender]
    units: int = 1
    unit: str = "row"
    told: bool = False
    missing: tuple[str, ...] = ()
