"""When the days of a time zone begin: a table that sash computes from the zone's rules, as needed.

A day begins at the first moment at which the zone's clock shows the day's midnight, or a later
time.  So a day on which the clock moves forward an hour has 23 hours, and a day on which it moves
back has 25.  A day whose first hour the clock skips begins at one o'clock.  A day that a zone skips
altogether, as Samoa did when it changed sides of the date line, has length 0.

The table consists of pages of days; a page is loaded when a time falls into it.  Beyond the years 1
to 9999, every day has 24 hours.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from threading import Lock
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from .contract import LATEST

__all__ = ["DAY", "FIRST", "LAST", "Days", "days_of"]

DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1).toordinal()
#: The first and the last day of the table, counted from 1970-01-01.
FIRST, LAST = datetime.min.toordinal() - _EPOCH, datetime.max.toordinal() - _EPOCH
_BITS = 10  # a page has 2^_BITS days
_BASE = FIRST >> _BITS


class Days:
    """The days of a time zone, numbered from 1970-01-01; each method takes one number or time, or
    an array of them.

    >>> days = Days("America/New_York")
    >>> days.begin(0) // 3_600_000_000, days.of(0), days.of(5 * 3_600_000_000)
    (5, -1, 0)
    """

    def __init__(self, name: str) -> None:
        self._zone = ZoneInfo(name)
        self._lock = Lock()
        # the place of each page among the loaded pages, or -1; and for each day of a loaded page,
        # how much later than in UTC it begins
        self._places = np.full((LAST >> _BITS) - _BASE + 1, -1)
        self._pages = np.empty((0, 1 << _BITS), dtype=np.int64)

    def begin(self, day: Any) -> Any:
        """When a day begins."""
        if np.ndim(day):
            return day * DAY + self._later(day)
        return int(day) * DAY + int(self._later(np.array([day]))[0])

    def of(self, time: Any) -> Any:
        """The day of a time; times beyond 36,000 years count as 36,000 years."""
        if not np.ndim(time):
            return int(self.of(np.array([min(max(int(time), -LATEST), LATEST)]))[0])
        at = np.clip(time, -LATEST, LATEST)
        # a zone is less than a day away from UTC
        day = at // DAY
        return day + (at >= self.begin(day + 1)) - (at < self.begin(day))

    def near(self, times: Any) -> tuple[Any, Any] | None:
        """The days around many times, from the first to the last, and for each time the place of
        its day among these; None if there are more days than times."""
        if not np.ndim(times) or not len(times):
            return None
        low, high = int(times.min()), int(times.max())
        first, last = low // DAY - 1, high // DAY + 2
        if not -LATEST <= low <= high <= LATEST or last - first > len(times):
            return None
        days = np.arange(first, last + 1)
        begins = self.begin(days)
        at = times // DAY - first
        at += (times >= begins[at + 1]).view(np.int8) - (times < begins[at]).view(np.int8)
        return days, at

    def _later(self, days: Any) -> Any:
        """How much later than in UTC the days begin."""
        days = np.clip(days, FIRST, LAST)
        pages = (days >> _BITS) - _BASE
        places = self._places[pages]
        if places.size and places.min() < 0:
            self._load(np.unique(pages[places < 0]).tolist())
            places = self._places[pages]
        return self._pages[places, days & ((1 << _BITS) - 1)]

    def _load(self, pages: list[int]) -> None:
        with self._lock:
            missing = [page for page in pages if self._places[page] < 0]
            places = self._places.copy()
            places[missing] = len(self._pages) + np.arange(len(missing))
            # other threads read without the lock, so a page must be there before its place is
            self._pages = np.concatenate([self._pages, *(self._page(page) for page in missing)])
            self._places = places

    def _page(self, page: int) -> Any:
        """Compute a page of the table."""
        first = (page + _BASE) << _BITS
        made = np.zeros((1, 1 << _BITS), dtype=np.int64)
        for i in range(max(0, FIRST - first), min(1 << _BITS, LAST - first + 1)):
            midnight = datetime.fromordinal(_EPOCH + first + i)
            made[0, i] = self._begins(midnight) // timedelta(microseconds=1)
        return made

    def _begins(self, midnight: datetime) -> timedelta:
        """How much later than in UTC a day begins."""
        shown = midnight.replace(tzinfo=self._zone)
        before, after = self._offset(shown), self._offset(shown.replace(fold=1))
        if after <= before:  # if midnight comes twice, the first one counts
            return -before
        # the clock moves forward over midnight: find the moment, to the second
        low, high = -after, -before
        while high - low > timedelta(seconds=1):
            middle = low + (high - low) // timedelta(seconds=2) * timedelta(seconds=1)
            moment = (midnight + middle).replace(tzinfo=UTC)
            if middle + self._offset(moment.astimezone(self._zone)) < timedelta(0):
                low = middle
            else:
                high = middle
        return high

    @staticmethod
    def _offset(shown: datetime) -> timedelta:
        offset = shown.utcoffset()
        assert offset is not None
        return offset


@cache
def days_of(name: str) -> Days:
    """The days of a time zone; all callers share one table."""
    return Days(name)
