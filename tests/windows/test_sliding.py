"""Windows of one size at regular distances."""

from __future__ import annotations

import numpy as np
import pytest

import sash
from sash.windows import Sliding, sliding
from sash.windows.contract import LATEST


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
