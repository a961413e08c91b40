"""Any choice of what is kept with any of what fires, as in the Reactive Aggregator's windows.

window(keep="24 hours", every=rows(100))        the last 24 hours, at every 100th event
window(keep=rows(100), every=delta("x", 5))     the last 100 events, where x has changed by 5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .contract import Aligned, Change, Count, Driven, Fires, Keeps, Mark, Span
from .delta import Delta
from .durations import check_length, duration, duration_text
from .punctuated import Punctuated
from .rows import Rows
from .sliding import Sliding

__all__ = ["Kept", "window"]


@dataclass(frozen=True)
class Kept(Driven):
    """What is kept by one measure, at every so much of another; made by `sash.window`.

    >>> Kept(Count(10), Mark("last"))
    window(keep=rows(10), every=punctuated('last'))
    """

    keep: Span | Count | Change | Mark
    every: Fires

    @property
    def keeps(self) -> Keeps:
        """What is kept."""
        return self.keep

    @property
    def fires(self) -> Fires:
        """What fires."""
        return self.every

    def __repr__(self) -> str:
        return f"window(keep={_text(self.keep)}, every={_text(self.every)})"


def _text(measure: Keeps) -> str:
    if isinstance(measure, Span):
        return repr(duration_text(measure.older or 0))
    if isinstance(measure, Count):
        return repr(Rows(measure.rows))
    if isinstance(measure, Change):
        return repr(Delta(measure.column, measure.by))
    assert isinstance(measure, Mark)
    return repr(Punctuated(measure.column))


def window(*, keep: Any, every: Any) -> Driven | Aligned:
    """What is kept, and what fires: each a duration, `sash.rows(n)`, `sash.delta(column, x)` or
    `sash.punctuated(column)`.

    A duration keeps what is at most so old as the event, as `sash.trailing` does.  Both in time are
    `sash.sliding(keep, every)`.

    >>> import sash
    >>> q = sash.Query(
    ...     time="t", window=window(keep=10, every=sash.rows(2)), select={"sum": sash.sum("x")}
    ... )
    >>> q.run({"t": [1, 8, 15, 19], "x": [1, 2, 3, 4]})["sum"].to_pylist()
    [3, 7]
    """
    kept, fires = _measure(keep, "keep"), _measure(every, "every")
    if isinstance(fires, Span):
        if isinstance(kept, Span):
            return Sliding(duration(keep), duration(every))
        raise ValueError(
            f"every={every!r} is a time, at which no event fires; with keep={keep!r} let events "
            "fire: every=sash.rows(n), sash.delta(column, x) or sash.punctuated(column)"
        )
    return Kept(kept, fires)


def _measure(given: Any, what: str) -> Span | Count | Change | Mark:
    """A measure as users write it."""
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
    if isinstance(given, Driven | Aligned):
        raise TypeError(
            f"{what} is a duration, sash.rows(n), sash.delta(column, x) or sash.punctuated(column),"
            f" not {given!r}"
        )
    length = duration(given, what)
    check_length(length, "size" if what == "keep" else "slide")
    return Span(length, -1)


def _twice(given: Driven, what: str) -> ValueError:
    return ValueError(f"{what}={given!r} has an `every` of its own; leave it out there")
