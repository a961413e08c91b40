"""Events whose values are close to the newest event's value, as the delta windows of SPL.

delta("x", 10)           x = 0    4    9    13   30
                         [0]
                         [0    4]
                         [0    4    9]
                              [4    9    13]     0 differs by more than 10
                                         [30]

delta("x", 10, every=5)       [0    4    9]  [30]     where x has changed by 5 or more
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

from .contract import Change, Count, Driven

__all__ = ["Delta", "delta"]


@dataclass(frozen=True)
class Delta(Driven):
    """The events of a key, from the oldest event on whose value differs by at most `size` from the
    newest event's value.

    >>> Delta("temperature", 5.0)
    delta('temperature', 5.0)
    """

    column: str
    size: int | float
    every: int | float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise TypeError(f"a delta is of a column, by its name, not {self.column!r}")
        check_change(self.size, "size")
        if self.every is not None:
            check_change(self.every, "every")

    @property
    def keeps(self) -> Change:
        """Events whose values differ by at most the size."""
        return Change(self.column, self.size)

    @property
    def fires(self) -> Change | Count:
        """Every change of at least `every`, or every event."""
        return Count(1) if self.every is None else Change(self.column, self.every)

    def __repr__(self) -> str:
        more = "" if self.every is None else f", every={self.every!r}"
        return f"delta({self.column!r}, {self.size!r}{more})"


def check_change(given: Any, what: str) -> None:
    """Raise an error unless this is a number above 0, by which a value can change."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{what} is a number by which values change, not {given!r}")
    if not 0 < given < 2**62 or not isfinite(given):
        raise ValueError(f"{what} is a number above 0, not {given!r}")


def _plain(given: Any) -> Any:
    """A number of numpy as Python's; anything else as it is."""
    return given.item() if isinstance(given, Real) and hasattr(given, "item") else given


def delta(column: str, size: int | float, every: int | float | None = None) -> Delta:
    """The last events of a key whose values in a column of numbers differ by at most `size` from
    the newest event's value.  An event that has left does not come back.

    Each event gets a row.  With `every`, an event gets a row only if its value differs by at least
    that much from the value of the event with the last row, or from the value of the key's first
    event.  A null, or NaN, is no change.

    >>> import sash
    >>> q = sash.Query(time="t", window=delta("x", 10), select={"all": sash.collect("x")})
    >>> q.run({"t": [1, 2, 3, 4], "x": [0, 9, 13, 30]})["all"].to_pylist()
    [[0], [0, 9], [9, 13], [30]]
    """
    return Delta(column, _plain(size), _plain(every))
