"""What a benchmark is: contenders that do the same work, ours and our peers'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["IN_A_ROW", "Bound", "Contender", "Workload"]

#: Calls in one turn.  The first after the others' may get its memory anew from the system, which
#: on a virtual machine doubled the time of libraries that use much of it (pandas, 10 M rows: 45 ns
#: a row, and 24 in the calls after it).
IN_A_ROW = 3


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
    None if there is nothing to compare.  `peer` names the one it is set against, where each
    contender has one of its own; `units` is what its call is worth, if not what the workload says.
    `slow` ones, whose call takes many seconds, are timed once.
    """

    run: Callable[[], Any]
    first: Callable[[], Any] | None = None
    kernel: str = ""
    answer: Callable[[Any], Any] | None = None
    bounds: tuple[Bound, ...] = ()
    peer: str | None = None
    units: int | None = None
    slow: bool = False


@dataclass(frozen=True)
class Workload:
    """Contenders to be timed side by side.

    A call of `run` is worth `units` units.  With `told`, `run` gives the seconds itself, because
    they are of a part of the call only, or of a process of its own; what it gives may be another
    `measure`: bytes, or a plain number.  With `columns`, `run` gives a number for each column, and
    a bound holds for the first.  With `once`, one call is all: `run` itself sees to warmth and
    repetition.  `calls` is how many a contender has in each of its turns.

    `release` lets go of what the contenders held.  `skip` says why a workload cannot be run here.
    """

    name: str
    title: str
    ours: dict[str, Contender]
    peers: dict[str, Contender]
    units: int = 1
    unit: str = "row"
    told: bool = False
    measure: Literal["seconds", "bytes", "number"] = "seconds"
    columns: tuple[str, ...] = ()
    once: bool = False
    calls: int = IN_A_ROW
    missing: tuple[str, ...] = ()
    release: Callable[[], None] | None = None
    skip: str = ""
