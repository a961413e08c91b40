"""The windows of calendars by brute force: try dates of the standard library one by one.

A day begins at the first moment at which the clock of its time zone shows its date, or a later one.
The search reads the clock at one moment after another.
"""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from ..windows import Calendar

__all__ = ["calendar_window_before", "calendar_windows", "in_calendar"]

Span = tuple[int, int]  # a window's start and end
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _MINUTE = timedelta(microseconds=1), timedelta(minutes=1)


def in_calendar(window: Calendar, time: int) -> bool:
    """True if a time is in a year that the standard library supports."""
    try:
        return (_EPOCH + time * _MICROSECOND).astimezone(ZoneInfo(window.timezone)).year > 0
    except OverflowError:
        return False


def calendar_windows(window: Calendar, time: int) -> list[Span]:
    """The windows that hold a time, in order.

    >>> from sash.windows import tumbling
    >>> ((start, end),) = calendar_windows(tumbling("1 year", timezone="UTC"), -1)
    >>> (end - start) // 86_400_000_000, end
    (365, 0)
    """
    made: list[Span] = []
    at = _start_by(window, (_EPOCH + time * _MICROSECOND).date() + timedelta(days=2))
    while True:
        span = _span(window, at)
        if span[1] <= time:
            return made[::-1]
        if span[0] <= time:
            made.append(span)
        at = _start_by(window, at - timedelta(days=1))


def calendar_window_before(window: Calendar, span: Span) -> Span:
    """The window before a window."""
    at = _start_by(window, (_EPOCH + span[0] * _MICROSECOND).date() + timedelta(days=2))
    while _span(window, at) != span:
        at = _start_by(window, at - timedelta(days=1))
    return _span(window, _start_by(window, at - timedelta(days=1)))


def _start_by(window: Calendar, day: date) -> date:
    """The last day, up to a given day, on which a window starts."""
    count = window.every.count
    if window.every.unit == "month":
        months = (day.year - 1970) * 12 + day.month - 1
        months -= months % count
        return date(1970 + months // 12, months % 12 + 1, 1)
    if window.every.unit == "week":
        weeks = (day - date(1970, 1, 5)).days // 7
        return date(1970, 1, 5) + timedelta(weeks=weeks - weeks % count)
    days = (day - date(1970, 1, 1)).days
    return date(1970, 1, 1) + timedelta(days=days - days % count)


def _span(window: Calendar, day: date) -> Span:
    """The window that starts on a day."""
    count = window.size.count
    if window.size.unit == "month":
        year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
        last = calendar.monthrange(year, month + 1)[1]
        end = date(year, month + 1, min(day.day, last))
    else:
        end = day + timedelta(days=count * (7 if window.size.unit == "week" else 1))
    return _begin(window.timezone, day), _begin(window.timezone, end)


@cache
def _begin(timezone: str, day: date) -> int:
    """The begin of a day, in microseconds."""
    zone = ZoneInfo(timezone)
    midnight = datetime(day.year, day.month, day.day)
    # no clock is further from UTC, and none has shown a later date for less than a minute
    at = midnight.replace(tzinfo=UTC) - timedelta(hours=16)
    while at.astimezone(zone).replace(tzinfo=None) < midnight:
        at += _MINUTE
    at -= _MINUTE
    while at.astimezone(zone).replace(tzinfo=None) < midnight:
        at += timedelta(seconds=1)
    return (at - _EPOCH) // _MICROSECOND
