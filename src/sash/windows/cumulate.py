"""Windows that start together and end one step after the other, as Flink SQL's CUMULATE.

    cumulate("6 min", "2 min")     0    2    4    6    8    10    12   min
                                   [----)
                                   [---------)
                                   [--------------)
                                                  [----)
                                                  [---------)
                                                  [--------------)

A day's total so far, every hour: `cumulate("1 day", "1 hour")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .contract import Aligned, Cycle
from .durations import check_length, duration, duration_text
from .empty import Empty, check_empty, empty_text, idle_of

__all__ = ["Cumulate", "cumulate"]


@dataclass(frozen=True)
class Cumulate(Aligned):
    """Windows that grow by a step until they reach their size, and then start again; all fields are
    in microseconds.

    >>> Cumulate(size=3_600_000_000, step=600_000_000)
    cumulate('1 hour', '10 minutes')
    """

    size: int
    step: int
    offset: int = 0
    empty: Empty | None = None
    idle: int | None = None

    def __post_init__(self) -> None:
        check_empty(self)
        check_length(self.size, "size")
        check_length(self.step, "step")
        if self.size % self.step:
            raise ValueError(
                f"the size of cumulating windows is a whole number of steps, and "
                f"{duration_text(self.size)} is no multiple of {duration_text(self.step)}"
            )
        object.__setattr__(self, "offset", self.offset % self.size)

    @cached_property
    def cycle(self) -> Cycle:
        """A cycle as long as the longest window."""
        return Cycle(
            length=self.size,
            shortest=self.step,
            longest=self.size,
            step=self.step,
            offset=self.offset,
        )

    def __repr__(self) -> str:
        size, step = duration_text(self.size), duration_text(self.step)
        more = f", offset={duration_text(self.offset)!r}" if self.offset else ""
        more += empty_text(self)
        return f"cumulate({size!r}, {step!r}{more})"


def cumulate(
    size: Any, step: Any, offset: Any = 0, empty: Empty | None = None, idle: Any = None
) -> Cumulate:
    """Windows that start together and end one step after the other.  `empty` and `idle` work as in
    `sliding`.

    >>> cumulate("1 day", "1 hour")
    cumulate('1 day', '1 hour')
    """
    return Cumulate(
        duration(size, "a window's size"),
        duration(step, "a window's step"),
        duration(offset, "a window's offset"),
        empty,
        idle_of(idle),
    )
