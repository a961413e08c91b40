"""Events that are close to each other."""

from __future__ import annotations

from typing import Any

import pytest

import sash
from sash.windows import Session


def spans(window: Any, **events: Any) -> list[tuple[int, int]]:
    """The start and end of each session."""
    q = sash.Query(time="t", window=window, select={"many": sash.count()})
    found = q.run(events)
    return list(zip(found["window_start"].to_pylist(), found["window_end"].to_pylist()))


def test_events_one_gap_apart_are_in_one_session() -> None:
    #   t     0  1  2  3  4  5  6  7  8  9
    #         x        x              x
    #         [-----------------)     [--------)     session(3)
    assert spans(sash.session(3), t=[0, 3, 8]) == [(0, 6), (8, 11)]
    assert spans(sash.session(2), t=[0, 3, 8]) == [(0, 2), (3, 5), (8, 10)]


def test_a_gap_for_each_event() -> None:
    window = sash.session("g")
    assert spans(window, t=[0, 2, 3, 9], g=[8, 1, 1, 4]) == [(0, 8), (9, 13)]
    assert spans(window, t=[0, 2, 3, 9], g=[9, 1, 1, 4]) == [(0, 13)]
    assert spans(window, t=[0, 2, 3, 9], g=[None, 1, 0, -4]) == [(2, 3)]  # no gap, no session
    assert spans(window, t=[0], g=[2**62]) == [(0, 2**60)]


def test_a_session_that_would_grow_too_long_ends() -> None:
    #   session(3, max_size=6)     0  1  2  3  4  5  6  7
    #                              x     x     x  x
    #                              [-----------)             with 4 it would be 7 long
    #                                          [-----------)
    assert spans(sash.session(3, max_size=6), t=[0, 2, 4, 5]) == [(0, 5), (4, 8)]


def test_names_and_fields() -> None:
    window = sash.session("30 minutes", max_size="1 day")
    assert window == Session(1_800_000_000, 86_400_000_000)
    assert repr(window) == "session('30 minutes', max_size='1 day')"
    assert repr(sash.session("gap")) == "session('gap')"
    assert sash.session("gap").columns == ("gap",)
    assert window.kind == "merging"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0,), "a window's gap must be more than 0 seconds"),
        (("1 month",), "months are not all of one length"),
        ((10, 9), "make max_size at least that"),
        ((10, 0), "a window's max_size must be more than 0 seconds"),
    ],
    ids=repr,
)
def test_refuses_what_makes_no_sense(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sash.session(*given)


def test_refuses_a_column_that_has_no_gaps() -> None:
    with pytest.raises(TypeError, match=r"column of gaps 'g' has type string; it must hold dur"):
        spans(sash.session("g"), t=[1], g=["1 hour"])
    with pytest.raises(KeyError, match="the query reads column 'g', which is not there"):
        spans(sash.session("g"), t=[1])
