"""Windows of days, weeks, months, quarters and years of the calendar of a time zone.

    tumbling("1 day", timezone="America/New_York")       over the second Sunday of March

    local     Sat 0:00            Sun 0:00        3:00     Mon 0:00            Tue 0:00
              [---------------------)[-----------------------)[-------------------)
    UTC           5:00                5:00        7:00        4:00                4:00
                     24 hours             23 hours                 24 hours

With a time zone, `"1 day"` is a day of the calendar, which has 23 or 25 hours where the clock
changes; `"24 hours"` never is a calendar day.  Weeks begin on Mondays.  sash counts windows of
several days from 1970-01-01, of several weeks from Monday 1970-01-05, and of several months from
January 1970.  A window that starts on any day may last months (`months`).  `zones` says when each
day begins.

A calendar's clock gives each day three days of readings, or each month thirty-three: more than any
day or month lasts.  No time has one of the readings left over at the end.  So all windows have one
length in readings, and are numbered like the windows in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from typing import Any, Literal
from zoneinfo import ZoneInfo

from .contract import LATEST, PLAIN, Aligned, Arithmetic, Clock, Cycle
from .durations import terms
from .empty import Empty, check_empty, empty_text, idle_of
from .months import Months, first_day, month_of
from .zones import DAY, FIRST, LAST, days_of

__all__ = ["INSTEAD", "Calendar", "Length", "calendar"]

#: What to do about months in a window that has no time zone.
INSTEAD = "say it in days or weeks, or give the window a calendar with timezone='Europe/Berlin'"

_UNITS: dict[str, tuple[int, Literal["day", "week", "month"]]] = {
    "d": (1, "day"),
    "day": (1, "day"),
    "w": (1, "week"),
    "week": (1, "week"),
    "mo": (1, "month"),
    "mon": (1, "month"),
    "month": (1, "month"),
    "q": (3, "month"),
    "quarter": (3, "month"),
    "y": (12, "month"),
    "year": (12, "month"),
}
_MONDAY = 4  # the first after 1970-01-01
_YEARS = 10_000  # no window is longer


@dataclass(frozen=True)
class Length:
    """A number of days, weeks or months.

    >>> print(Length(18, "month"), Length(24, "month"), Length(1, "week"))
    18 months 2 years 1 week
    """

    count: int
    unit: Literal["day", "week", "month"]

    def __post_init__(self) -> None:
        if self.unit not in ("day", "week", "month"):
            raise ValueError(f"a calendar counts in days, weeks and months, not {self.unit!r}")
        if not 0 < self.least < 366 * _YEARS:
            raise ValueError(
                f"the windows of a calendar last at least a day, and at most {_YEARS:,} years, "
                f"not {self}"
            )

    @property
    def least(self) -> int:
        """The smallest number of days that the length can have."""
        return self.count * {"day": 1, "week": 7, "month": 28}[self.unit]

    def __str__(self) -> str:
        count, unit = self.count, str(self.unit)
        if unit == "month" and count and count % 12 == 0:
            count, unit = count // 12, "year"
        elif unit == "month" and count == 3:
            count, unit = 1, "quarter"
        return f"{count} {unit}{'s' if count != 1 else ''}"


@dataclass(frozen=True)
class CalendarClock(Clock):
    """The clock of a time zone: in its readings, all days, or all months, have one length.

    >>> clock = CalendarClock("America/New_York", monthly=False)
    >>> clock.reading(0) == -clock.unit + 19 * 3_600_000_000
    True
    """

    zone: str
    monthly: bool
    beyond = "beyond the years 1 to 9999, which a calendar has"

    @property
    def unit(self) -> int:
        """The readings of a day, or of a month: more than the longest one lasts."""
        return (33 if self.monthly else 3) * DAY

    @cached_property
    def limits(self) -> tuple[int, int]:  # type: ignore[override]
        """The times just before and just after the years 1 to 9999, all that a calendar knows."""
        days = days_of(self.zone)
        return days.begin(FIRST) - 1, days.begin(LAST + 1)

    def reading(self, time: Any) -> Any:
        """The reading at a time, or at each time of an array."""
        days = days_of(self.zone)
        many = days.near(time)
        if many is not None:  # reading minus time is the same for all times of a day
            held, at = many
            return time + self._ahead(held)[at]
        shown = PLAIN.most(time, -LATEST)  # as far as days are numbered
        shown = -PLAIN.most(-shown, -LATEST)
        return shown + self._ahead(days.of(time))

    def _ahead(self, day: Any) -> Any:
        """Reading minus time, on a day."""
        number = day
        if self.monthly:
            number = month_of(day)
            day = first_day(number)
        return number * self.unit - days_of(self.zone).begin(day)

    def time(self, reading: Any) -> Any:
        """The time of a reading."""
        number = reading // self.unit
        day = first_day(number) if self.monthly else number
        return days_of(self.zone).begin(day) + (reading - number * self.unit)

    def around(self, time: Any, on: Arithmetic) -> tuple[Any, Any]:
        """From the start of the day before in UTC to the end of the day after: no zone differs
        from UTC by a day.  For months, by their average length: no month begins a month away from
        where that puts it."""
        number = on.div(time, DAY)
        if self.monthly:
            number = on.div(number * 4800, 146_097)
        return (number - 1) * self.unit, (number + 1) * self.unit + (self.unit - 1)


@dataclass(frozen=True)
class Calendar(Aligned):
    """Sliding or tumbling windows on the calendar of a time zone.

    >>> Calendar(Length(1, "month"), Length(1, "day"), "Europe/Berlin")
    sliding('1 month', '1 day', timezone='Europe/Berlin')
    """

    size: Length
    every: Length
    timezone: str
    empty: Empty | None = None
    idle: int | None = None

    def __post_init__(self) -> None:
        _check_zone(self.timezone)
        check_empty(self)
        size, every = self.size, self.every
        if every.unit == "month" != size.unit:
            raise ValueError(
                f"windows that start every {every} begin with a month, so their size is in months, "
                f"quarters or years, not {size}; or let them start every so many days"
            )
        months = size.unit == every.unit == "month"
        if (every.count > size.count) if months else (every.least > size.least):
            raise ValueError(
                f"windows of {size} every {every} would leave out what is between them; make "
                "`every` at most the size"
            )

    @cached_property
    def clock(self) -> CalendarClock:
        """The calendar of the time zone."""
        return CalendarClock(self.timezone, self.every.unit == "month")

    @cached_property
    def cycle(self) -> Cycle:
        """One window for each slide."""
        unit, size, every = self.clock.unit, self.size, self.every
        if every.unit == "month":
            length = size.count * unit
            return Cycle(every.count * unit, length, length)
        offset = _MONDAY if every.unit == "week" else 0
        if size.unit == "month":
            return Months.of(size.count, day=unit, days=every.least, offset=offset)
        length = size.least * unit
        return Cycle(every.least * unit, length, length, offset=offset * unit)

    def __repr__(self) -> str:
        zone = f"timezone={self.timezone!r}{empty_text(self)}"
        if self.every == self.size:
            return f"tumbling({str(self.size)!r}, {zone})"
        return f"sliding({str(self.size)!r}, {str(self.every)!r}, {zone})"


def calendar(
    size: Any, every: Any, offset: Any, timezone: str | tzinfo, empty: Empty | None, idle: Any
) -> Calendar:
    """Build calendar windows from the arguments of `sliding`."""
    if offset != 0:
        raise ValueError(
            f"windows of a calendar begin when its days, weeks or months do, so they have no "
            f"offset; leave out offset={offset!r}, or the timezone"
        )
    return Calendar(
        _length(size, "a window's size"),
        _length(every, "a window's slide"),
        _name(timezone),
        empty,
        idle_of(idle),
    )


def _length(given: Any, what: str) -> Length:
    """Parse a calendar length from text."""
    if not isinstance(given, str):
        raise TypeError(
            f"with a timezone, {what} is text such as '1 day', '1 week' or '1 month', not {given!r}"
        )
    found: dict[Literal["day", "week", "month"], Any] = {}
    for number, name in terms(given, what, "1 month"):
        singular = name if name in _UNITS else name.removesuffix("s")
        if singular not in _UNITS:
            raise ValueError(
                f"with a timezone, {what} is in days, weeks, months, quarters or years, and "
                f"{given!r} is not; leave out the timezone for time that is always as long"
            )
        many, unit = _UNITS[singular]
        found[unit] = found.get(unit, 0) + number * many
    if "day" in found and "week" in found:
        found["day"] += 7 * found.pop("week")
    if len(found) > 1:
        raise ValueError(
            f"with a timezone, {what} is in days or in months, and {given!r} mixes them"
        )
    ((unit, count),) = found.items()
    if count.denominator != 1:
        raise ValueError(f"with a timezone, {what} is whole days or months, not {given!r}")
    return Length(int(count), unit)


def _name(timezone: Any) -> str:
    """The name of a time zone."""
    name = timezone.key if isinstance(timezone, ZoneInfo) else timezone
    if isinstance(name, str):
        return name
    raise TypeError(
        "timezone is the name of a time zone such as 'Europe/Berlin', or a zoneinfo.ZoneInfo that "
        f"has one, not {timezone!r}"
    )


def _check_zone(name: str) -> None:
    """Raise an error if no time zone has this name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{name!r} is no time zone that is known here; give a name such as 'Europe/Berlin', "
            "'UTC' or 'Etc/GMT-2'.  Where the system has no time zones, install the package tzdata "
            f"({error})"
        ) from None
