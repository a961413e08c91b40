"""Windows aligned to the clock.

    sliding("6 min", "2 min")      0    2    4    6    8    10    12   min
                                   [--------------)
                                        [--------------)
                                             [--------------)
    tumbling("4 min")              [---------)[--------)[---------)

A window is `[start, end)`, where start - offset is a multiple of `every`, counted from 1970 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

from .durations import duration, duration_text

__all__ = ["LATEST", "Sliding", "sliding", "tumbling"]

#: Times and lengths beyond this (more than 36,000 years) are refused, so that no sum of three
#: leaves int64.
LATEST = 2**60


@dataclass(frozen=True)
class Sliding:
    """Windows of one size at regular distances; all fields in microseconds.

    >>> Sliding(size=60_000_000, every=20_000_000)
    sliding('1 minute', '20 seconds')
    """

    size: int
    every: int
    offset: int = 0

    def __post_init__(self) -> None:
        for name, given in (("size", self.size), ("slide", self.every)):
            if not 0 < given <= LATEST:
                raise ValueError(
                    f"a window's {name} must be more than 0 seconds and at most 36,000 years, not "
                    f"{duration_text(given)}"
                )
        if self.every > self.size:
            raise ValueError(
                f"windows of {duration_text(self.size)} every {duration_text(self.every)} would "
                "leave out what is between them; make `every` at most the size"
            )
        object.__setattr__(self, "offset", self.offset % self.every)

    @property
    def rest(self) -> int:
        """How far after a window's start another one ends: 0 if one starts there as well."""
        return self.size % self.every

    def slice_of(self, time: int) -> int:
        """The start of the slice that a time is in: the last edge, start or end of a window, up to
        it.

        >>> Sliding(5, 2).slice_of(8), Sliding(5, 2).slice_of(9)
        (8, 9)
        """
        into = (time - self.offset) % self.every
        return time - into + (self.rest if into >= self.rest else 0)

    @overload
    def first_of(self, time: int) -> int: ...
    @overload
    def first_of(self, time: Any) -> Any: ...

    def first_of(self, time: Any) -> Any:
        """The start of the first window that holds a time; of an array of them, of each."""
        last = self.last_of(time)
        return last - (last + self.size - time - 1) // self.every * self.every

    @overload
    def last_of(self, time: int) -> int: ...
    @overload
    def last_of(self, time: Any) -> Any: ...

    def last_of(self, time: Any) -> Any:
        """The start of the last window that holds a time; of an array of them, of each."""
        return time - (time - self.offset) % self.every

    def __repr__(self) -> str:
        size, every = duration_text(self.size), duration_text(self.every)
        more = f", offset={duration_text(self.offset)!r}" if self.offset else ""
        if self.every == self.size:
            return f"tumbling({size!r}{more})"
        return f"sliding({size!r}, {every!r}{more})"


def sliding(size: Any, every: Any, offset: Any = 0) -> Sliding:
    """Windows of a size, one starting every so often.

    >>> sliding("1 hour", "1 second").size
    3600000000
    """
    return Sliding(
        duration(size, "a window's size"),
        duration(every, "a window's slide"),
        duration(offset, "a window's offset"),
    )


def tumbling(size: Any, offset: Any = 0) -> Sliding:
    """Windows of a size, one after the other.

    >>> tumbling("1 day", offset="6 hours")
    tumbling('1 day', offset='6 hours')
    """
    return sliding(size, size, offset)
