"""When the days of a time zone begin: a table, made from the zone's rules as far as it is needed.

A day begins at the first moment at which the zone's clock shows its midnight, or more.  So a day on
which the clock is put forward by an hour has 23 hours, one on which it is put back 25; a day whose
first hour is left out begins at one o'clock; and a day that a zone left out altogether, as Samoa
did when it changed sides of the date line, has no length.

The table has pages of days, loaded when a time falls into them.  Beyond the years 1 to 9999 days go
on with 24 hours each.
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
_BITS = 10  # a page has 2^BITS days
_BASE = FIRST >> _BITS


class Days:
    """The days of a time zone, numbered from 1970-01-01; each question takes one number or time, or
    an array of them.

    >>> days = Days("America/New_York")
    >>> days.begin(0) // 3_600_000_000, days.of(0), days.of(5 * 3_600_000_000)
    (5, -1, 0)
    """

    def __init__(self, name: str) -> None:
        self._zone = ZoneInfo(name)
        self._lock = Lock()
        # where each page is among those that are loaded, or -1; how much later than in UTC each
        # day of a page begins
        self._places = np.full((LAST >> _BITS) - _BASE + 1, -1)
        self._pages = np.empty((0, 1 << _BITS), dtype=np.int64)

    def begin(self, day: Any) -> Any:
        """When a day begins."""
        if np.ndim(day):
            return day * DAY + self._later(day)
        return int(day) * DAY + int(self._later(np.array([day]))[0])

    def of(self, time: Any) -> Any:
        """The day that a time is in; times beyond 36,000 years are taken for those."""
        if not np.ndim(time):
            return int(self.of(np.array([min(max(int(time), -LATEST), LATEST)]))[0])
        at = np.clip(time, -LATEST, LATEST)
        # a zone is less than a day away from UTC
        day = at // DAY
        return day + (at >= self.begin(day + 1)) - (at < self.begin(day))

    def near(self, times: Any) -> tuple[Any, Any] | None:
        """The days in which many times are, from the first to the last, and the place among these
        of each time; None if there are more days than times."""
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
        """How much later than in UTC days begin."""
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
            # other threads read without the lock: a place is known when its page is there
            self._pages = np.concatenate([self._pages, *(self._page(page) for page in missing)])
            self._places = places

    def _page(self, page: int) -> Any:
        """A row of the table."""
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
        if after <= before:  # where midnight comes twice, it is the first that counts
            return -before
        # the clock is put forward over midnight: find when, to the second
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
    """The days of a time zone, whose table all its users share."""
    return Days(name)
