"""Windows that start together and end one step after the other."""

from __future__ import annotations

import numpy as np
import pytest

import sash
from sash.windows import Cumulate


def test_windows_of_a_cycle_start_together() -> None:
    #    cumulate(6, 2)     0   2   4   6   8
    #                       [---)
    #                       [-------)
    #                       [-----------)
    #                                   [---)
    window = sash.cumulate(6, 2)
    spans = [(window.start(n), window.end(n)) for n in range(-1, 5)]
    assert spans == [(-6, 0), (0, 2), (0, 4), (0, 6), (6, 8), (6, 10)]
    assert [(window.first(t), window.last(t)) for t in (-1, 0, 1, 2, 5, 6)] == [
        (-1, -1),
        (0, 2),
        (0, 2),
        (1, 2),
        (2, 2),
        (3, 5),
    ]


def test_one_step_as_long_as_the_size_is_tumbling() -> None:
    numbers = np.arange(-9, 9)
    one, other = sash.cumulate(4, 4, offset=1), sash.tumbling(4, offset=1)
    for ask in ("start", "end", "first", "last"):
        assert getattr(one, ask)(numbers).tolist() == getattr(other, ask)(numbers).tolist()


def test_names_and_fields() -> None:
    window = sash.cumulate("1 day", "1 hour", offset="-1 hour")
    assert window == Cumulate(86_400_000_000, 3_600_000_000, 82_800_000_000)
    assert repr(window) == "cumulate('1 day', '1 hour', offset='23 hours')"
    assert window.kind == "aligned"


def test_refuses_windows_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="10 seconds is no multiple of 3 seconds"):
        sash.cumulate("10 s", "3 s")
    with pytest.raises(ValueError, match="a window's step must be more than 0 seconds"):
        sash.cumulate("10 s", 0)
    with pytest.raises(TypeError, match="a window's step is text"):
        sash.cumulate("10 s", 2.5)


def test_a_day_so_far() -> None:
    q = sash.Query(
        time="t", window=sash.cumulate(6, 2), select={"n": sash.count(), "sum": sash.sum("x")}
    )
    found = q.run({"t": [1, 5, 8], "x": [10, 20, 30]})
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert rows == [
        (0, 2, 1, 10),
        (0, 4, 1, 10),
        (0, 6, 2, 30),
        (6, 10, 1, 30),
        (6, 12, 1, 30),
    ]
