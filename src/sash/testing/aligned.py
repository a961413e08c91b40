"""The oracle of windows aligned to the clock: list, one by one, the windows that hold a time.

It shares no code with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..query import Query
from ..windows import Aligned, Calendar, Cumulate, Sliding, Window
from .calendars import calendar_window_before, calendar_windows, in_calendar
from .rows import Row

__all__ = [
    "FARTHEST",
    "Span",
    "closed_windows_of",
    "empty_between",
    "events_over",
    "usable",
    "window_before",
    "windows_of",
]

Span = tuple[int, int]  # a window's start and end

#: The largest usable time, in either direction.
FARTHEST = 2**60


def windows_of(window: Window, time: int) -> list[Span]:
    """The windows that hold a time, in order, found one by one.

    >>> from sash.windows import cumulate, sliding
    >>> windows_of(sliding(4, 2), 3), windows_of(cumulate(6, 2), 3)
    ([(0, 4), (2, 6)], [(0, 4), (0, 6)])
    """
    if isinstance(window, Calendar):
        return calendar_windows(window, time)
    if isinstance(window, Cumulate):
        start = time - (time - window.offset) % window.size
        ends = range(start + window.step, start + window.size + 1, window.step)
        return [(start, end) for end in ends if end > time]
    assert isinstance(window, Sliding), f"the judge does not know {window!r}"
    start = (time - window.offset) // window.every * window.every + window.offset
    made = []
    while start + window.size > time:
        made.append((start, start + window.size))
        start -= window.every
    return made[::-1]


def closed_windows_of(query: Query, time: int, watermark: int | None) -> list[Span]:
    """The closed windows (they end by the watermark) whose aggregates, of any size, hold a time.

    >>> import sash
    >>> select = {"n": sash.count(), "ever": sash.count().over(sash.lifetime())}
    >>> q = Query(time="t", window=sash.tumbling(4), select=select)
    >>> closed_windows_of(q, 3, 9)
    [(0, 4), (4, 8)]
    """
    if watermark is None:
        return []
    if not any(a.size for a in query.select.values()):
        return [span for span in windows_of(query.window, time) if span[1] <= watermark]
    window = query.window
    assert isinstance(window, Sliding), f"the judge does not know {window!r}"
    made, end = [], windows_of(window, time)[0][1]  # the end of the first window with the time
    while end <= watermark and any(end - time <= size for size in _sizes(query)):
        made.append((end - window.size, end))
        end += window.every
    return made


def _sizes(query: Query) -> list[float]:
    """The window sizes of a row, including the query's own."""
    assert isinstance(query.window, Sliding), f"the judge does not know {query.window!r}"
    given = [query.window.size, *(a.size for a in query.select.values() if a.size)]
    return [math.inf if size == "lifetime" else size for size in given]


def events_over(chosen: Any, end: int, events: Iterable[tuple[Any, Row]]) -> list[Row]:
    """The events in the window of an aggregate's own size.  Events come in order, each with its
    position, which begins with its time."""
    start = -math.inf if chosen.size == "lifetime" else end - chosen.size
    return [row for place, row in events if start <= place[0] < end]


def window_before(window: Window, span: Span) -> Span:
    """The window before a window.

    >>> from sash.windows import cumulate
    >>> window_before(cumulate(6, 2), (0, 4)), window_before(cumulate(6, 2), (0, 2))
    ((0, 2), (-6, 0))
    """
    start, end = span
    if isinstance(window, Calendar):
        return calendar_window_before(window, span)
    if isinstance(window, Cumulate):
        if end == start + window.step:
            return start - window.size, start
        return start, end - window.step
    assert isinstance(window, Sliding), f"the judge does not know {window!r}"
    return start - window.every, end - window.every


def usable(window: Window, time: int | None) -> bool:
    """True if a time is not null, and within the usable range."""
    if time is None or not -FARTHEST < time < FARTHEST:
        return False
    return not isinstance(window, Calendar) or in_calendar(window, math.floor(time))


def empty_between(window: Window, before: Span | None, span: Span) -> list[Span]:
    """The empty windows to emit between two windows of a key that hold events, one by one.

    >>> from sash.windows import tumbling
    >>> empty_between(tumbling(2, empty="zero", idle=4), (0, 2), (6, 8))
    [(2, 4), (4, 6)]
    >>> empty_between(tumbling(2, empty="zero", idle=3), (0, 2), (6, 8))
    []
    """
    if before is None or not isinstance(window, Aligned) or window.empty is None:
        return []
    if window.idle is not None and span[0] - before[1] > window.idle:
        return []
    made: list[Span] = []
    at = window_before(window, span)
    while at != before:
        if at[0] < at[1]:
            made.append(at)
        at = window_before(window, at)
    return made[::-1]
