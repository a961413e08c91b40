"""Lengths of time, as users write them."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.windows import duration, duration_text

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("90 seconds", 90 * SECOND),
        ("1 hour 30 minutes", 5_400 * SECOND),
        ("1 hour, 30 minutes and 2 s", 5_402 * SECOND),
        ("3h", 10_800 * SECOND),
        ("1.5h", 5_400 * SECOND),
        ("2d12h", 60 * 3_600 * SECOND),
        ("  5 MIN ", 300 * SECOND),
        ("interval 5 minutes", 300 * SECOND),
        ("1 week", 7 * 86_400 * SECOND),
        ("0.25 ms", 250),
        ("1 µs", 1),
        ("-2 seconds", -2 * SECOND),
        ("0 seconds", 0),
        (timedelta(days=-1, microseconds=1), -86_400 * SECOND + 1),
        (17, 17),
        (np.timedelta64(5, "m"), 300 * SECOND),
        (np.timedelta64(5_000, "ns"), 5),
        (np.timedelta64(-2, "W"), -14 * 86_400 * SECOND),
        (np.int32(17), 17),
        (pd.Timedelta("5min"), 300 * SECOND),
        (pd.offsets.Minute(5), 300 * SECOND),
        (pd.offsets.Micro(5), 5),
        ("5 m", 300 * SECOND),
        ("2 hrs 5 mins 3 secs", 7_503 * SECOND),
    ],
)
def test_is_microseconds(text: object, micros: int) -> None:
    assert duration(text) == micros


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("1 month", "a duration of '1 month': months are not all of one length; say it in days"),
        ("2 years", "years are not all of one length"),
        ("5 parsecs", "'parsecs' is none of microsecond, millisecond, second, minute"),
        ("soon", "a duration of 'soon' is not understood; write it as '90 seconds'"),
        ("90", "'90' is not understood"),
        ("1 hour 30", "'1 hour 30' is not understood"),
        ("", "a duration is empty; write it as '90 seconds'"),
        ("0.0000001 s", "'0.0000001 s' is no whole number of microseconds"),
        ("1M", "'M' is a minute to some and a month to others; write '1 min' or '1 month'"),
        ("2 h 1 M", "write '1 min' or '1 month'"),
        (np.timedelta64(5, "ns"), "is no whole number of microseconds"),
        (np.timedelta64("NaT"), "is no whole number of microseconds"),
        (np.timedelta64(5), "is no whole number of microseconds"),
        (np.timedelta64(2, "M"), "months are not all of one length; say it in days or weeks"),
        (pd.Timedelta(5, "ns"), "is no whole number of microseconds"),
        (pd.NaT, "is not always of one length"),
        (pd.offsets.MonthEnd(), "is not always of one length; say it in days, hours or less"),
        (pd.offsets.Nano(5), "is no whole number of microseconds"),
    ],
    ids=repr,
)
def test_refuses_what_has_no_length(given: object, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", "\\(")):
        duration(given)


@pytest.mark.parametrize("given", [None, True, 1.5, [1]])
def test_refuses_what_is_no_duration(given: object) -> None:
    with pytest.raises(TypeError, match="a window's size is text such as '90 seconds'"):
        duration(given, "a window's size")


@given(st.integers(-(10**15), 10**15))
def test_text_says_the_same_length(micros: int) -> None:
    text = duration_text(micros)
    assert duration(text if micros >= 0 else text[1:]) == abs(micros)
