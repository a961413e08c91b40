"""Windows that keep events by any measure and fire by any other, as in the Reactive Aggregator.

window(keep="24 hours", every=rows(100))        the last 24 hours, at every 100th event
window(keep=rows(100), every=delta("x", 5))     the last 100 events, where x has changed by 5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .contract import Aligned, Change, Count, Driven, Fires, Keeps, Mark, Span, Ticked
from .delta import Delta
from .durations import check_length, duration, duration_text
from .punctuated import Punctuated
from .rows import Rows
from .sliding import Sliding

__all__ = ["Kept", "KeptByClock", "window"]


@dataclass(frozen=True)
class Kept(Driven):
    """A window that keeps events by one measure and fires by another; `sash.window` makes it.

    >>> Kept(Count(10), Mark("last"))
    window(keep=rows(10), every=punctuated('last'))
    """

    keep: Span | Count | Change | Mark
    every: Fires

    @property
    def keeps(self) -> Keeps:
        """Which events the window keeps."""
        return self.keep

    @property
    def fires(self) -> Fires:
        """Which events fire."""
        return self.every

    def __repr__(self) -> str:
        return f"window(keep={_text(self.keep)}, every={_text(self.every)})"


@dataclass(frozen=True)
class KeptByClock(Ticked):
    """A window that keeps events by a measure and fires at every tick of the clock; `sash.window`
    makes it.

    >>> KeptByClock(Count(10), 60_000_000)
    window(keep=rows(10), every='1 minute')
    """

    keep: Count | Change | Mark
    every: int

    @property
    def keeps(self) -> Count | Change | Mark:
        """Which events the window keeps."""
        return self.keep

    @property
    def tick(self) -> int:
        """The time between two ticks."""
        return self.every

    def __repr__(self) -> str:
        return f"window(keep={_text(self.keep)}, every={duration_text(self.every)!r})"


def _text(measure: Keeps) -> str:
    if isinstance(measure, Span):
        return repr(duration_text(measure.older or 0))
    if isinstance(measure, Count):
        return repr(Rows(measure.rows))
    if isinstance(measure, Change):
        return repr(Delta(measure.column, measure.by))
    assert isinstance(measure, Mark)
    return repr(Punctuated(measure.column))


def window(*, keep: Any, every: Any) -> Driven | Ticked | Aligned:
    """A window that keeps events by one measure and fires by another.  Each measure is a duration,
    `sash.rows(n)`, `sash.delta(column, x)` or `sash.punctuated(column)`.

    A duration as `keep` keeps the events of that long before an event, as `sash.trailing` does.  A
    duration as `every` fires at ticks that are that far apart, counted from 1970 in UTC: each key
    whose window keeps an event gets a row, from the first tick after the key's first event to the
    first tick after its last.  Durations for both are `sash.sliding(keep, every)`.

    >>> import sash
    >>> q = sash.Query(
    ...     time="t", window=window(keep=10, every=sash.rows(2)), select={"sum": sash.sum("x")}
    ... )
    >>> q.run({"t": [1, 8, 15, 19], "x": [1, 2, 3, 4]})["sum"].to_pylist()
    [3, 7]
    >>> by_clock = window(keep=sash.rows(2), every=10)
    >>> q = sash.Query(time="t", window=by_clock, select={"sum": sash.sum("x")})
    >>> found = q.run({"t": [1, 8, 19], "x": [1, 2, 3]})
    >>> found["window_end"].to_pylist(), found["sum"].to_pylist()
    ([10, 20], [3, 5])
    """
    kept, fires = _measure(keep, "keep"), _measure(every, "every")
    if not isinstance(fires, Span):
        return Kept(kept, fires)
    if isinstance(kept, Span):
        return Sliding(duration(keep), duration(every))
    return KeptByClock(kept, duration(every))


def _measure(given: Any, what: str) -> Span | Count | Change | Mark:
    """Convert a measure, as users write it."""
    if isinstance(given, Rows):
        if given.every != 1:
            raise _twice(given, what)
        return Count(given.size)
    if isinstance(given, Delta):
        if given.every is not None:
            raise _twice(given, what)
        return Change(given.column, given.size)
    if isinstance(given, Punctuated):
        return Mark(given.column)
    try:
        length = duration(given, what)
    except TypeError:
        raise TypeError(
            f"{what} is a duration, sash.rows(n), sash.delta(column, x) or sash.punctuated(column),"
            f" not {given!r}"
        ) from None
    check_length(length, "size" if what == "keep" else "slide")
    return Span(length, -1)


def _twice(given: Driven, what: str) -> ValueError:
    return ValueError(f"{what}={given!r} has an `every` of its own; leave it out there")
