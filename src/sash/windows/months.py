"""The arithmetic of the calendar: days and months by number, counted from 1970-01-01.

Every 400 years have 146,097 days and 4,800 months.  `month_of` guesses the month of a day from that
ratio, and corrects the guess by the first day of that month.

Windows that start on any day and last months differ in their number of days: a month after January
31 is the last day of February, as everywhere (SQL's `+ INTERVAL 1 MONTH`, Polars, Java).  So
windows that start in the last days of January may end together:

    sliding("1 month", "1 day")     Jan 28  29  30  31  Feb 1           Feb 28  Mar 1
                                        [--------------------------------)
                                            [----------------------------)
                                                [------------------------)
                                                    [--------------------)
                                                        [------------------------)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .contract import PLAIN, Arithmetic, Cycle

__all__ = ["Months", "first_day", "first_later", "month_of", "months_later"]

_JANUARY = 23_640  # the months from the beginning of year 0 to 1970


def first_day(month: Any) -> Any:
    """The first day of a month.

    >>> [first_day(month) for month in (-1, 0, 1, 2)]
    [-31, 0, 31, 59]
    """
    # count years from March, so that the leap day is the last day of the year
    since = month + (_JANUARY - 2)
    year = since // 12
    days = year * 365 + year // 4 - year // 100 + year // 400
    return days + ((since - year * 12) * 153 + 2) // 5 - 719_468


def month_of(day: Any) -> Any:
    """The month that a day is in.

    >>> [month_of(day) for day in (-1, 0, 30, 31)]
    [-1, 0, 0, 1]
    """
    month = day * 4800 // 146_097
    return month + (day >= first_day(month + 1)) - (day < first_day(month))


def months_later(day: Any, months: int) -> Any:
    """The day that is `months` months after a day, or the last day of that month.

    >>> [months_later(day, 1) - 31 for day in (27, 29, 30, 31)]
    [27, 27, 27, 28]
    """
    month = month_of(day)
    same = first_day(month + months) + (day - first_day(month))
    last = first_day(month + (months + 1)) - 1
    return same + (last - same) * (same > last)


def first_later(day: Any, months: int) -> Any:
    """The first day for which `months` months later is after this day.

    >>> [first_later(31 + day, 1) for day in (0, 26, 27)]
    [1, 27, 31]
    """
    month = month_of(day)
    next_month, after = first_day(month + 1), first_day(month - (months - 1))
    same = first_day(month - months) + (day - first_day(month) + 1)
    return same + (after - same) * ((day + 1 == next_month) | (same > after))


@dataclass(frozen=True)
class Months(Cycle):
    """Windows that start every few days and last whole months.  Each day has `day` readings; no
    window is longer than `longest`.

    >>> daily = Months.of(1, day=10)
    >>> [(daily.start(n), daily.end(n)) for n in (29, 30, 31)]
    [(290, 580), (300, 580), (310, 590)]
    >>> daily.first(575), daily.first(580), daily.last(579)
    (27, 31, 57)
    """

    months: int = 1
    day: int = 1

    @classmethod
    def of(cls, months: int, *, day: int, days: int = 1, offset: int = 0) -> Months:
        """Windows of `months` months, one every `days` days from the day `offset` on."""
        most = 31 * months * day
        return cls(days * day, most, most, 1, offset * day, months, day)

    def end(self, number: Any, on: Arithmetic = PLAIN) -> Any:
        """The end of a window."""
        assert on is PLAIN, "on other columns see `among`"
        return months_later(self.start(number) // self.day, self.months) * self.day

    def first(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        """The first window that ends after a time."""
        assert on is PLAIN, "on other columns see `among`"
        start = first_later(time // self.day, self.months) * self.day
        return -((self.offset - start) // self.length)
