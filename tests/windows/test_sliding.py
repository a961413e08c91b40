"""Windows aligned to the clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.windows import Sliding, sliding
from sash.windows.sliding import LATEST

windows = st.integers(1, 40).flatmap(
    lambda size: st.builds(
        Sliding, st.just(size), st.integers(1, size), offset=st.integers(-50, 50)
    )
)


def holding(window: Sliding, time: int) -> list[int]:
    """The starts of windows that hold a time, looked for one by one."""
    return [
        start
        for start in range(time - window.size + 1, time + 1)
        if (start - window.offset) % window.every == 0
    ]


@given(windows, st.integers(-200, 200))
def test_first_and_last_window_of_a_time(window: Sliding, time: int) -> None:
    held = holding(window, time)
    assert (window.first_of(time), window.last_of(time)) == (held[0], held[-1])


@given(windows, st.integers(-200, 200))
def test_a_slice_is_in_the_same_windows_throughout(window: Sliding, time: int) -> None:
    start = window.slice_of(time)
    assert start <= time
    assert all(holding(window, t) == holding(window, time) for t in range(start, time))
    assert holding(window, start - 1) != holding(window, start)


def test_the_common_ones_have_names() -> None:
    assert sash.sliding("1 hour", "1 minute") == Sliding(3_600_000_000, 60_000_000)
    assert sash.tumbling("5 s", offset="7 s") == Sliding(5_000_000, 5_000_000, 2_000_000)
    assert repr(sash.sliding("90 s", "1 min")) == "sliding('1 minute 30 seconds', '1 minute')"
    assert repr(sash.tumbling("1 day", offset="-1 h")) == "tumbling('1 day', offset='23 hours')"


def test_refuses_windows_that_make_no_sense() -> None:
    with pytest.raises(
        ValueError,
        match="a window's size must be more than 0 seconds and at most 36,000 years, not 0 seconds",
    ):
        sash.tumbling(0)
    with pytest.raises(ValueError, match=r"slide must be more than 0 .* not -1 second"):
        sash.sliding("1 s", "-1 s")
    with pytest.raises(ValueError, match="at most 36,000 years"):
        sash.tumbling(LATEST + 1)
    with pytest.raises(
        ValueError,
        match="windows of 1 second every 2 seconds would leave out what is between them; "
        "make `every` at most the size",
    ):
        sash.sliding("1 s", "2 s")
    with pytest.raises(ValueError, match="a window's slide of 'x' is not understood"):
        sash.sliding("1 s", "x")


def test_sizes_may_be_numbers_of_numpy() -> None:
    made = sliding(np.int64(5), np.uint8(2))
    assert made == sliding(5, 2)
    assert type(made.size) is type(made.every) is int
    for wrong in (True, np.bool_(True), np.array([5]), 5.0):
        with pytest.raises(TypeError, match="a window's size is text"):
            sliding(wrong, 2)


def test_the_windows_of_many_times_at_once() -> None:
    window, times = sliding(5, 2, 1), np.arange(-20, 20)
    assert window.first_of(times).tolist() == [window.first_of(t) for t in times.tolist()]
    assert window.last_of(times).tolist() == [window.last_of(t) for t in times.tolist()]
