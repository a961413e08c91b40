"""The last n events of a key, as SQL's ROWS frames.

rows(3)              a  b  c  d  e
                     [a]
                     [a  b]
                     [a  b  c]
                        [b  c  d]
                           [c  d  e]

rows(3, every=2)        [a  b]   [b  c  d]         at every second event
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from .contract import Count, Driven

__all__ = ["Rows", "rows"]


@dataclass(frozen=True)
class Rows(Driven):
    """The last `size` events of a key, at every `every`-th event of the key.

    >>> Rows(size=100, every=10)
    rows(100, every=10)
    """

    size: int
    every: int = 1

    def __post_init__(self) -> None:
        for what, given in (("size", self.size), ("every", self.every)):
            if not 1 <= given <= 2**60:
                raise ValueError(f"{what} is a number of events, of at least 1, not {given}")

    @property
    def keeps(self) -> Count:
        """The last `size` events."""
        return Count(self.size)

    @property
    def fires(self) -> Count:
        """Every `every`-th event."""
        return Count(self.every)

    def __repr__(self) -> str:
        return f"rows({self.size}{f', every={self.every}' if self.every > 1 else ''})"


def rows(size: Any, every: Any = 1) -> Rows:
    """The last `size` events of a key, as SQL's `ROWS BETWEEN size - 1 PRECEDING AND CURRENT ROW`,
    at every event, or at every `every`-th event of the key.

    Events at one time are in the order of `tie`, or of their arrival.

    >>> import sash
    >>> q = sash.Query(time="t", window=rows(2), select={"sum": sash.sum("x")})
    >>> q.run({"t": [1, 8, 3, 9], "x": [1, 2, 3, 4]})["sum"].to_pylist()
    [1, 5, 4, 6]
    """
    return Rows(_whole(size, "size"), _whole(every, "every"))


def _whole(given: Any, what: str) -> int:
    if isinstance(given, bool) or not hasattr(type(given), "__index__"):
        raise TypeError(f"{what} is a number of events, not {given!r}")
    return operator.index(given)
