"""Windows of calendars by number, against dates of the standard library that are looked for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.slicing.edges import edges_of
from sash.testing.calendars import calendar_window_before, calendar_windows
from sash.windows import Calendar
from sash.windows.calendars import Length
from sash.windows.contract import LATEST, PLAIN
from sash.windows.months import first_day, first_later, month_of, months_later
from sash.windows.zones import DAY, FIRST, LAST, Days, days_of
from thinning import examples

HOUR = 3_600_000_000
EPOCH = date(1970, 1, 1)

#: A zone, a day near which its clock changes in some odd way, and hours of the days around it.
CHANGES = [
    ("America/New_York", date(2024, 3, 10), [24, 23, 24]),
    ("America/New_York", date(2024, 11, 3), [24, 25, 24]),
    ("Australia/Lord_Howe", date(2024, 4, 7), [24, 24.5, 24]),  # half an hour
    ("Africa/Casablanca", date(2024, 3, 10), [24, 25, 24]),  # around Ramadan
    ("Africa/Casablanca", date(2024, 4, 14), [24, 23, 24]),
    ("America/Sao_Paulo", date(2018, 11, 4), [24, 23, 24]),  # begins at one o'clock
    ("America/Sao_Paulo", date(2018, 2, 17), [24, 25, 24]),  # ends twice
    ("America/Havana", date(2024, 11, 3), [24, 25, 24]),  # begins twice
    ("America/St_Johns", date(2006, 10, 29), [24, 25, 24]),  # at a minute after midnight
    ("America/Toronto", date(1919, 3, 31), [23.5, 23.5, 24]),  # from 23:30 to 0:30
    ("Pacific/Apia", date(2011, 12, 30), [24, 0, 24]),  # a day that never was
    ("America/Juneau", date(1867, 10, 19), [24, 48, 24]),  # a day that was twice
    ("Asia/Kathmandu", date(1986, 1, 1), [24, 23.75, 24]),
    ("UTC", date(2000, 2, 29), [24, 24, 24]),
]
ZONES = sorted({zone for zone, _, _ in CHANGES})


def number(day: date) -> int:
    return (day - EPOCH).days


lengths = st.one_of(
    st.tuples(st.just("day"), st.integers(1, 9)),
    st.tuples(st.just("week"), st.integers(1, 3)),
    st.tuples(st.just("month"), st.sampled_from([1, 2, 3, 5, 12])),
)


def possible(size: Any, every: Any, zone: str) -> Calendar | None:
    try:
        return Calendar(Length(size[1], size[0]), Length(every[1], every[0]), zone)
    except ValueError:
        return None


windows = st.builds(possible, lengths, lengths, st.sampled_from(ZONES)).filter(bool)
#: Times near the odd days, and anywhere.
times = st.one_of(
    st.builds(
        lambda change, hours, micros: number(change[1]) * DAY + hours * HOUR + micros,
        st.sampled_from(CHANGES),
        st.integers(-60, 60),
        st.sampled_from([-1, 0, 0, 1, 1_800_000_000]),
    ),
    st.integers(-100 * 365 * DAY, 100 * 365 * DAY),
)


@pytest.mark.parametrize(("zone", "day", "hours"), CHANGES, ids=str)
def test_the_lengths_of_days(zone: str, day: date, hours: list[float]) -> None:
    begins = [days_of(zone).begin(number(day) + i) for i in (-1, 0, 1, 2)]
    assert [(b - a) / HOUR for a, b in pairwise(begins)] == hours
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=begins[1])).astimezone(
        ZoneInfo(zone)
    )
    assert local.date() == day or hours[1] == 0


@given(windows, times)
def test_the_windows_that_hold_a_time(window: Calendar, time: int) -> None:
    numbers = range(window.first(time), window.last(time) + 1)
    spans = [(window.start(n), window.end(n)) for n in numbers]
    assert spans == calendar_windows(window, time)
    if spans[0][0] < spans[0][1]:
        before = window.first(time) - 1
        assert (window.start(before), window.end(before)) == calendar_window_before(
            window, spans[0]
        )


@given(windows, times)
def test_windows_before_the_first_are_closed(window: Calendar, watermark: int) -> None:
    first, last = window.first(watermark), window.last(watermark)
    assert window.end(first - 1) <= watermark < window.end(first)
    assert window.start(last) <= watermark < window.start(last + 1)
    assert first <= last


@given(windows, st.lists(times, min_size=2, max_size=9))
def test_a_clock_rises_with_the_time_and_can_be_turned_back(window: Calendar, at: Any) -> None:
    clock, some = window.clock, np.unique(at)
    shown = clock.reading(some)
    assert (np.diff(shown) > 0).all()
    assert clock.time(shown).tolist() == some.tolist()
    assert [clock.reading(t) for t in some.tolist()] == shown.tolist()
    # many times in few days are looked up together
    many = at[0] + np.arange(-100, 100) * HOUR
    assert clock.reading(many).tolist() == [clock.reading(t) for t in many.tolist()]
    low, high = clock.around(some, PLAIN)
    assert ((low <= shown) & (shown <= high)).all()
    first, last = window.cycle.among(low, high, PLAIN)
    assert ((first <= window.first(some)) & (window.last(some) <= last)).all()
    for ask in (window.first, window.last):
        assert ask(some).tolist() == [ask(t) for t in some.tolist()]
    for ask in (window.start, window.end):
        numbers = window.first(some)
        assert ask(numbers).tolist() == [ask(n) for n in numbers.tolist()]


@given(windows, times)
@settings(max_examples=examples(25))
def test_a_slice_is_in_the_same_windows_throughout(window: Calendar, time: int) -> None:
    edges = edges_of(window)
    start, end = (edges.time(edges.number(time) + i) for i in (0, 1))
    assert start <= time < end
    here = calendar_windows(window, time)
    assert calendar_windows(window, start) == calendar_windows(window, end - 1) == here


def test_months_and_days_by_number() -> None:
    """All days of 400 years, after which the calendar begins anew."""
    days = np.arange(number(date(1800, 1, 1)), number(date(2200, 1, 1)))
    dates = [date.fromordinal(EPOCH.toordinal() + d) for d in days.tolist()]
    months = np.array([(d.year - 1970) * 12 + d.month - 1 for d in dates])
    assert month_of(days).tolist() == months.tolist()
    assert (days - first_day(months)).tolist() == [d.day - 1 for d in dates]
    assert np.array_equal(month_of(days + 146_097 * 9), months + 4800 * 9)
    for many in (1, 2, 12):
        later = months_later(days, many)
        same = np.array([d.day for d in dates]) - 1
        lasts = first_day(months + many + 1) - first_day(months + many) - 1
        assert np.array_equal(later, first_day(months + many) + np.minimum(same, lasts))
        first = first_later(days, many)
        assert (months_later(first, many) > days).all()
        assert (months_later(first - 1, many) <= days).all()


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York", "Etc/GMT+12"])
def test_from_year_1_to_year_9999_and_beyond(zone: str) -> None:
    window = sash.tumbling("1 month", timezone=zone)
    low, high = window.clock.limits
    assert days_of(zone).of(low) == FIRST - 1
    assert days_of(zone).of(high) == LAST + 1
    far = np.array([-(2**62), -LATEST, low, low + 1, 0, high - 1, high, LATEST, 2**62])
    for w in (window, sash.sliding("10000 years", "1 day", timezone=zone)):
        assert (np.diff(w.first(far)) >= 0).all()
        assert w.first(2**62) > w.last(high - 1), "closing a stream closes all its windows"
        assert w.first(-(2**62)) <= w.first(low + 1)
        assert (np.diff(w.clock.reading(far[1:-1])) > 0).all()


def test_a_table_is_loaded_where_it_is_needed() -> None:
    days = Days("Europe/Berlin")
    assert len(days._pages) == 0
    days.of(np.array([0, 253_402_000_000_000_000]))
    assert len(days._pages) <= 4, "not the 8,000 years between"
    assert days.begin(np.array([], dtype=np.int64)).tolist() == []


def test_weeks_begin_on_mondays_and_days_are_counted_from_1970() -> None:
    zone = "America/New_York"
    monday = number(date(2024, 1, 1))
    noon = days_of(zone).begin(monday + 3) + 12 * HOUR
    begin = days_of(zone).begin
    for text, days in (("1 week", (0, 7)), ("7 days", (3, 10)), ("2 weeks", (-7, 7))):
        window = sash.tumbling(text, timezone=zone)
        n = window.first(noon)
        assert (window.start(n), window.end(n)) == tuple(begin(monday + d) for d in days), text
    quarter = sash.tumbling("1 quarter", timezone=zone)
    assert quarter.start(quarter.first(noon)) == begin(number(date(2024, 1, 1)))


def test_names_and_fields() -> None:
    window = sash.sliding("1 month", "1 day", timezone=ZoneInfo("Europe/Berlin"))
    assert window == Calendar(Length(1, "month"), Length(1, "day"), "Europe/Berlin")
    assert window.kind == "aligned"
    texts = {
        "1 day": "1 day",
        "2d": "2 days",
        "1 week": "1 week",
        "1 week 1 day": "8 days",
        "1mo": "1 month",
        "3 months": "1 quarter",
        "1 year 6 months": "18 months",
        "4 quarters": "1 year",
        "INTERVAL 2 years": "2 years",
    }
    for given_, shown in texts.items():
        made = sash.tumbling(given_, timezone="UTC")
        assert repr(made) == f"tumbling({shown!r}, timezone='UTC')"
        assert sash.tumbling(shown, timezone="UTC") == made


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ({"size": "24 hours"}, "leave out the timezone for time that is always as long"),
        ({"size": "1 day", "every": "1 hour"}, "a window's slide is in days, weeks, months"),
        ({"size": "1 month", "every": "1 hour"}, "a window's slide is in days, weeks, months"),
        ({"size": "1 month 1 day"}, "in days or in months, and '1 month 1 day' mixes them"),
        ({"size": "1.5 days"}, "whole days or months, not '1.5 days'"),
        ({"size": "1 M"}, "'M' is a minute to some and a month to others"),
        ({"size": ""}, "a window's size is empty; write it as '1 month'"),
        ({"size": "0 days"}, "at least a day, and at most 10,000 years, not 0 days"),
        ({"size": "-1 month"}, "at least a day, and at most 10,000 years, not -1 months"),
        ({"size": "20000 years"}, "at most 10,000 years"),
        ({"size": "45 days", "every": "1 month"}, "their size is in months, quarters or years"),
        ({"size": "1 day", "every": "2 days"}, "would leave out what is between them"),
        ({"size": "1 month", "every": "1 quarter"}, "would leave out what is between them"),
        ({"size": "1 month", "every": "5 weeks"}, "would leave out what is between them"),
        ({"size": "1 day", "offset": "1 hour"}, "so they have no offset"),
        ({"size": "1 day", "timezone": "Mars/Olympus"}, "'Mars/Olympus' is no time zone"),
        ({"size": "1 day", "timezone": "../etc"}, "is no time zone that is known here"),
        ({"size": "1 day", "timezone": "America"}, "is no time zone that is known here"),
        ({"size": "1 day", "timezone": ""}, "is no time zone that is known here"),
    ],
    ids=str,
)
def test_refuses_what_makes_no_sense(given_: dict[str, str], why: str) -> None:
    asked: dict[str, Any] = {"timezone": "Europe/Berlin", "every": given_["size"]} | given_
    with pytest.raises(ValueError, match=why):
        sash.sliding(**asked)


def test_refuses_other_types() -> None:
    with pytest.raises(TypeError, match="is text such as '1 day', '1 week' or '1 month'"):
        sash.tumbling(timedelta(days=1), timezone="Europe/Berlin")
    with pytest.raises(TypeError, match="timezone is the name of a time zone"):
        sash.tumbling("1 day", timezone=timezone(timedelta(hours=2)))
    with pytest.raises(ValueError, match="a calendar counts in days, weeks and months"):
        Length(1, "hour")  # type: ignore[arg-type]


def test_without_a_time_zone_as_spark_has_it() -> None:
    assert sash.tumbling("1 day") == sash.tumbling("24 hours")
    with pytest.raises(ValueError, match=r"months are not all of one length; .* timezone='Europe"):
        sash.tumbling("1 month")
    with pytest.raises(ValueError, match=r"quarters are not all of one length; .* timezone='Eur"):
        sash.sliding("1 quarter", "1 day")
