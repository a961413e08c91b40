"""Events that are close to each other, as Spark's session_window.

    session("4 min")     0    2    4    6    8    10   12   14   min
                         x  x    x                x
                         [-----------------)      [---------)

An event covers the span from its time to one gap later.  Events whose spans touch are in one
session, so events exactly one gap apart are too.  A session ends one gap after its last event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .contract import Merging
from .durations import check_length, duration, duration_text

__all__ = ["Session", "session"]


@dataclass(frozen=True)
class Session(Merging):
    """Windows of events that are at most a gap apart.  Gap and size are in microseconds; the gap
    may also be the name of a column.

    >>> Session(gap=60_000_000)
    session('1 minute')
    """

    gap: int | str
    max_size: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.gap, int):
            check_length(self.gap, "gap")
        if self.max_size is not None:
            check_length(self.max_size, "max_size")
            if isinstance(self.gap, int) and self.max_size < self.gap:
                raise ValueError(
                    f"a session of one event is as long as its gap of {duration_text(self.gap)}; "
                    f"make max_size at least that, not {duration_text(self.max_size)}"
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of gaps, if there is one."""
        return (self.gap,) if isinstance(self.gap, str) else ()

    @property
    def reach(self) -> int | str:
        """The gap."""
        return self.gap

    @property
    def longest(self) -> int | None:
        """The largest size of a session of two or more events.  A single event's gap may be
        longer."""
        return self.max_size

    @property
    def cuts_peers(self) -> bool:
        """True if one session may end, and the next begin, between two events at one time."""
        return isinstance(self.gap, str) and self.max_size is not None

    def __repr__(self) -> str:
        gap = self.gap if isinstance(self.gap, str) else duration_text(self.gap)
        more = f", max_size={duration_text(self.max_size)!r}" if self.max_size else ""
        return f"session({gap!r}{more})"


def session(gap: Any, max_size: Any = None) -> Session:
    """Windows of events that are at most a gap apart, as Spark's `session_window`.

    `gap` is a duration, or the name of a column with the gap after each event: an Arrow duration,
    or whole microseconds.  An event whose gap is null, zero or less is in no session.  Text that
    begins with a digit is a duration.  An event that would make a session longer than `max_size`
    begins another session.

    >>> import sash
    >>> q = sash.Query(time="t", window=session(5), select={"sum": sash.sum("x")})
    >>> q.run({"t": [1, 12, 3, 8], "x": [1, 2, 3, 4]}).to_pylist()
    [{'window_start': 1, 'window_end': 17, 'sum': 10}]
    """
    column = isinstance(gap, str) and not gap.strip().lower().startswith(_DURATION)
    return Session(
        gap if column else duration(gap, "a session's gap"),
        None if max_size is None else duration(max_size, "a session's max_size"),
    )


_DURATION = (*"0123456789+-", "interval ")
