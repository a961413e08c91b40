"""A window for each event: its fields, its spans, and what makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

import sash
from sash.windows import Trailing


def test_a_drawing() -> None:
    #   t             0  1  2  3  4  5  6
    #   events           a     b  c     d
    #   of d                   [--------]     trailing(3)
    #   of d                      [--------)  closed="left" ends before d, "right" begins after b
    events = {"t": [1, 3, 4, 6], "x": list("abcd")}
    for given, wanted in {
        "both": ["a", "ab", "abc", "bcd"],
        "left": [None, "a", "ab", "bc"],
        "right": ["a", "ab", "bc", "cd"],
        "none": [None, "a", "b", "c"],
    }.items():
        window = sash.trailing(3, closed=given)  # type: ignore[arg-type]
        q = sash.Query(time="t", window=window, select={"all": sash.concat("x")})
        found = q.run(events)
        assert found["all"].to_pylist() == wanted, given
        assert found["window_start"].to_pylist() == [-2, 0, 1, 3]
        assert found["window_end"].to_pylist() == [1, 3, 4, 6]


def test_names_and_fields() -> None:
    window = sash.trailing("1 hour", closed="left", delay="5 min")
    assert window == Trailing(3_600_000_000, "left", None, 300_000_000)
    assert repr(window) == "trailing('1 hour', closed='left', delay='5 minutes')"
    assert repr(sash.lifetime(exclude="row")) == "lifetime(exclude='row')"
    assert window.kind == sash.lifetime().kind == "driven"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "a window's size must be more than 0 seconds"),
        ({"size": "1 month"}, "months are not all of one length"),
        ({"delay": -1}, "a window's delay is a length of time from 0 seconds on"),
        ({"size": 2**60, "delay": 1}, "at most 36,000 years"),
        ({"closed": "start"}, "closed is 'both', 'left', 'right' or 'none', not 'start'"),
        ({"exclude": "peers"}, "exclude is 'row', 'group' or 'ties', not 'peers'"),
        ({"exclude": "row", "delay": 1}, "which this window does not hold anyway"),
        ({"exclude": "ties", "closed": "none"}, "which this window does not hold anyway"),
    ],
    ids=repr,
)
def test_refuses_windows_that_make_no_sense(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sash.trailing(**{"size": 10} | given)


def test_a_lifetime_has_no_left_end() -> None:
    with pytest.raises(ValueError, match="closed is 'both' or 'left' for a lifetime"):
        sash.lifetime(closed="right")  # type: ignore[arg-type]
