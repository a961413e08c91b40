"""One window for each event: the events of its key in the time up to it.

    trailing("4 min")      0    2    4    6    8    10   min
                              x    x       x
                           [--x]                           of the first event
                           [-------x]                      of the second
                                [----------x]              of the third: from 4 min before it on

This is SQL's RANGE BETWEEN size PRECEDING AND CURRENT ROW.  The window holds both of its ends, and
all events at the event's own time, even events that come after it in the table.  `closed` leaves
out an end, `exclude` leaves out events at the event's own time, and with `delay` the window ends
that long before the event:

    trailing("4 min", delay="2 min")        [----------]    x
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from .contract import LATEST, Count, Driven, Exclude, Sized, Span
from .durations import check_length, duration, duration_text

__all__ = ["Closed", "Trailing", "lifetime", "trailing"]

#: Which ends of its span a window holds.
Closed: TypeAlias = Literal["both", "left", "right", "none"]


@dataclass(frozen=True)
class Trailing(Driven, Sized):
    """A window for each event, over the time up to it.  Size and delay are in microseconds; a size
    of None reaches back to the key's first event.

    >>> Trailing(size=3_600_000_000)
    trailing('1 hour')
    """

    size: int | None
    closed: Closed = "both"
    exclude: Exclude | None = None
    delay: int = 0

    def __post_init__(self) -> None:
        if self.size is not None:
            check_length(self.size, "size")
        if not 0 <= self.delay <= LATEST - (self.size or 0):
            raise ValueError(
                "a window's delay is a length of time from 0 seconds on, and at most 36,000 years "
                f"with the window's size, not {duration_text(self.delay)}"
            )
        if self.closed not in get_args(Closed):
            raise ValueError(f"closed is 'both', 'left', 'right' or 'none', not {self.closed!r}")
        if self.exclude not in (None, *get_args(Exclude)):
            raise ValueError(f"exclude is 'row', 'group' or 'ties', not {self.exclude!r}")
        if self.exclude and (self.delay or self.closed in ("left", "none")):
            raise ValueError(
                f"exclude={self.exclude!r} leaves out events of an event's own time, which this "
                "window does not hold anyway; leave out `exclude`, or `delay` and `closed`"
            )

    @property
    def keeps(self) -> Span:
        """The times of the span, without the event's own time if the window excludes events
        there."""
        older = None
        if self.size is not None:
            older = self.delay + self.size - (self.closed in ("right", "none"))
        holds_end = self.closed in ("both", "right") and not self.exclude
        return Span(older, self.delay - holds_end)

    @property
    def fires(self) -> Count:
        """Every event fires."""
        return Count(1)

    @property
    def excluded(self) -> Exclude | None:
        return self.exclude

    @property
    def excludes_some(self) -> bool:
        """True if a window holds some of the events at its event's own time, but not all."""
        return self.exclude in ("row", "ties")

    @property
    def length(self) -> int | None:
        """The size."""
        return self.size

    def of_length(self, length: int | None) -> Trailing:
        """The window of another size with the same end."""
        return replace(self, size=length)

    def spans(self, times: Any) -> tuple[Any, Any]:
        """The start and end of the span; a lifetime starts with the oldest event."""
        ends = times - self.delay if self.delay else times
        return (None if self.size is None else ends - self.size), ends

    def __repr__(self) -> str:
        given = [] if self.size is None else [repr(duration_text(self.size))]
        given += [f"closed={self.closed!r}"] if self.closed != "both" else []
        given += [f"exclude={self.exclude!r}"] if self.exclude else []
        given += [f"delay={duration_text(self.delay)!r}"] if self.delay else []
        return f"{'lifetime' if self.size is None else 'trailing'}({', '.join(given)})"


def trailing(
    size: Any, *, closed: Closed = "both", exclude: Exclude | None = None, delay: Any = 0
) -> Trailing:
    """A window for each event, over the time up to it, as SQL's `RANGE BETWEEN size PRECEDING AND
    CURRENT ROW`.

    `closed` says which ends of the span `[t - size, t]` the window holds.  `exclude` leaves out the
    event itself (`"row"`), all events at t (`"group"`), or all events at t but the event itself
    (`"ties"`).  With a `delay`, the span is `[t - delay - size, t - delay]`.

    >>> import sash
    >>> q = sash.Query(time="t", window=trailing(5), select={"sum": sash.sum("x")})
    >>> q.run({"t": [1, 8, 3, 8], "x": [1, 2, 3, 4]})["sum"].to_pylist()
    [1, 9, 4, 9]
    """
    return Trailing(
        duration(size, "a window's size"), closed, exclude, duration(delay, "a window's delay")
    )


def lifetime(
    *, closed: Literal["both", "left"] = "both", exclude: Exclude | None = None, delay: Any = 0
) -> Trailing:
    """A window for each event, over all events of its key up to it, as SQL's `RANGE BETWEEN
    UNBOUNDED PRECEDING AND CURRENT ROW`.  The arguments work as in `trailing`.

    >>> import sash
    >>> q = sash.Query(time="t", window=lifetime(exclude="row"), select={"sum": sash.sum("x")})
    >>> q.run({"t": [1, 8, 3, 8], "x": [1, 2, 3, 4]})["sum"].to_pylist()
    [None, 8, 1, 6]
    """
    if closed not in ("both", "left"):
        raise ValueError(
            f"closed is 'both' or 'left' for a lifetime, which has no left end, not {closed!r}"
        )
    return Trailing(None, closed, exclude, duration(delay, "a window's delay"))
