"""Windows of one size at regular distances.

    sliding("6 min", "2 min")      0    2    4    6    8    10    12   min
                                   [--------------)
                                        [--------------)
                                             [--------------)

A window is `[start, end)`, where start - offset is a multiple of `every`, counted from 1970 in UTC.
With a time zone, windows follow the zone's calendar (`calendars`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from typing import Any, overload

from .calendars import INSTEAD, Calendar, calendar
from .contract import EVER, Aligned, Cycle, Sized
from .durations import check_length, duration, duration_text
from .empty import Empty, check_empty, empty_text, idle_of

__all__ = ["Reaching", "Sliding", "sliding"]


@dataclass(frozen=True)
class Sliding(Aligned, Sized):
    """Windows of one size at regular distances; all fields are in microseconds.

    >>> Sliding(size=60_000_000, every=20_000_000)
    sliding('1 minute', '20 seconds')
    """

    size: int
    every: int
    offset: int = 0
    empty: Empty | None = None
    idle: int | None = None

    def __post_init__(self) -> None:
        check_empty(self)
        check_length(self.size, "size")
        check_length(self.every, "slide")
        if self.every > self.size:
            raise ValueError(
                f"windows of {duration_text(self.size)} every {duration_text(self.every)} would "
                "leave out what is between them; make `every` at most the size"
            )
        object.__setattr__(self, "offset", self.offset % self.every)

    @cached_property
    def cycle(self) -> Cycle:
        """One window for each slide."""
        return Cycle(length=self.every, shortest=self.size, longest=self.size, offset=self.offset)

    @property
    def length(self) -> int:
        """The size."""
        return self.size

    def of_length(self, length: int | None) -> Reaching:
        """Windows of another size with the same ends."""
        return Reaching(self, EVER if length is None else length)

    def __repr__(self) -> str:
        size, every = duration_text(self.size), duration_text(self.every)
        more = f", offset={duration_text(self.offset)!r}" if self.offset else ""
        more += empty_text(self)
        if self.every == self.size:
            return f"tumbling({size!r}{more})"
        return f"sliding({size!r}, {every!r}{more})"


@dataclass(frozen=True)
class Reaching(Aligned):
    """Sliding windows with the ends of other sliding windows, but of another size.  Events may lie
    between two of them, in no window.

        sliding(4, 2)     0   2   4   6   8   10
                                  [-------)
        of 6                  [-----------)
        of 1                           [--)

    >>> sliding(4, 2).of_length(6).start(3), sliding(4, 2).start(3)
    (4, 6)
    """

    window: Sliding
    size: int

    @cached_property
    def cycle(self) -> Cycle:
        """One window for each slide, with the number of the original window of the same end."""
        own = self.window
        return Cycle(
            length=own.every,
            shortest=self.size,
            longest=self.size,
            offset=own.offset + own.size - self.size,
        )


@overload
def sliding(
    size: Any,
    every: Any,
    offset: Any = 0,
    timezone: None = None,
    empty: Empty | None = None,
    idle: Any = None,
) -> Sliding: ...
@overload
def sliding(
    size: Any,
    every: Any,
    offset: Any = 0,
    *,
    timezone: str | tzinfo,
    empty: Empty | None = None,
    idle: Any = None,
) -> Calendar: ...


def sliding(
    size: Any,
    every: Any,
    offset: Any = 0,
    timezone: str | tzinfo | None = None,
    empty: Empty | None = None,
    idle: Any = None,
) -> Sliding | Calendar:
    """Windows of one size; a new window starts every `every`.

    With a `timezone`, size and `every` are days, weeks, months, quarters or years of the zone's
    calendar: a day has 23 or 25 hours where the clock changes, while `"24 hours"` are always 24
    hours.

    With `empty="zero"`, sash also emits the windows without events that lie between two windows of
    the same key with events.  Their values are what aggregates answer for no events: 0 for counts,
    null for most others.  sash leaves a gap out if more than `idle` lies between the end of the
    window before it and the start of the window after it.  A stream needs `idle`: it emits the
    windows of a gap when the window after the gap closes, and forgets a key `idle` after the end of
    the key's last window.

    >>> sliding("1 hour", "1 second").size
    3600000000
    >>> sliding("1 month", "1 day", timezone="Europe/Berlin")
    sliding('1 month', '1 day', timezone='Europe/Berlin')
    >>> import sash
    >>> q = sash.Query(
    ...     time="t", window=sliding(2, 2, empty="zero"), select={"n": sash.count()}
    ... )
    >>> q.run({"t": [1, 1, 6]})["n"].to_pylist()
    [2, 0, 0, 1]
    """
    if timezone is not None:
        return calendar(size, every, offset, timezone, empty, idle)
    return Sliding(
        duration(size, "a window's size", INSTEAD),
        duration(every, "a window's slide", INSTEAD),
        duration(offset, "a window's offset"),
        empty,
        idle_of(idle),
    )
