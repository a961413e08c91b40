"""Windows by the change of a column, by marks, and by any pair of measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sash
from sash.windows import Delta, Punctuated


def held(window: Any, **events: Any) -> list[tuple[int, str]]:
    """The times of the events that fire, and what their windows hold."""
    q = sash.Query(time="t", window=window, select={"all": sash.concat("x")})
    found = q.run(events)
    return list(zip(found["t"].to_pylist(), found["all"].to_pylist()))


def test_delta() -> None:
    #   v     0    4    9    13   30   28
    #         a    b    c    d    e    f
    events = {"t": [1, 2, 3, 4, 5, 6], "x": list("abcdef"), "v": [0, 4, 9, 13, 30, 28]}
    every = ["a", "ab", "abc", "bcd", "e", "ef"]
    assert held(sash.delta("v", 10), **events) == list(enumerate(every, 1))
    # from 0 to 9, from 9 to 30
    assert held(sash.delta("v", 10, every=5), **events) == [(3, "abc"), (5, "e")]
    # an event that has left does not come back, though its value is near again
    back = {"t": [1, 2, 3], "x": list("abc"), "v": [0.0, 5.0, 0.5]}
    assert held(sash.delta("v", 1), **back) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_null_is_no_change() -> None:
    events = {"t": [1, 2, 3, 4, 5], "x": list("abcde"), "v": [None, 3, None, float("nan"), 9]}
    assert [a for _, a in held(sash.delta("v", 2), **events)] == ["a", "ab", "abc", "abcd", "e"]
    assert held(sash.delta("v", 2, every=1), **events) == [(5, "e")]
    nothing = {"t": [1, 2], "x": list("ab"), "v": [float("nan")] * 2}
    assert held(sash.delta("v", 2), **nothing) == [(1, "a"), (2, "ab")]


def test_punctuated() -> None:
    #   last     .  x  .  .  x  x  .
    #            a  b  c  d  e  f  g
    last = [False, True, None, False, True, True, False]
    events = {"t": [1, 2, 3, 4, 5, 6, 7], "x": list("abcdefg"), "last": last}
    window = sash.punctuated("last")
    assert held(window, **events) == [(2, "ab"), (5, "cde"), (6, "f")]
    kept = sash.window(keep=window, every=sash.rows(1))
    assert [a for _, a in held(kept, **events)] == ["a", "ab", "c", "cd", "cde", "f", "g"]


def test_ticks_of_the_clock() -> None:
    #   t        0         10        20        30        40
    #              a  b         c                   d
    #   ticks              |         |         |        |
    q = sash.Query(
        time="t",
        window=sash.window(keep=sash.rows(2), every=10),
        select={"all": sash.concat("x")},
    )
    found = q.run({"t": [3, 5, 12, 33], "x": list("abcd")})
    assert found.to_pylist() == [
        {"window_start": 3, "window_end": 10, "all": "ab"},
        {"window_start": 5, "window_end": 20, "all": "bc"},
        {"window_start": 5, "window_end": 30, "all": "bc"},
        {"window_start": 12, "window_end": 40, "all": "cd"},
    ]


def test_names_and_fields() -> None:
    assert repr(sash.delta("v", 2, every=0.5)) == "delta('v', 2, every=0.5)"
    assert sash.delta("v", 2) == Delta("v", 2)
    assert repr(sash.delta("v", np.int64(2), np.float32(0.5))) == "delta('v', 2, every=0.5)"
    assert sash.punctuated("last") == Punctuated("last")
    window = sash.window(keep="1 hour", every=sash.delta("v", 2))
    assert repr(window) == "window(keep='1 hour', every=delta('v', 2))"
    assert window.columns == ("v",)
    assert sash.window(keep=sash.delta("v", 2), every=sash.punctuated("m")).columns == ("v", "m")
    clock = sash.window(keep=sash.delta("v", 2), every="1 minute")
    assert repr(clock) == "window(keep=delta('v', 2), every='1 minute')"
    assert (clock.columns, clock.kind) == (("v",), "driven")
    assert sash.window(keep="1 hour", every="1 minute") == sash.sliding("1 hour", "1 minute")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sash.delta(3, 1), TypeError, "a delta is of a column, by its name, not 3"),
        (lambda: sash.delta("v", "1"), TypeError, "size is a number by which values change"),
        (lambda: sash.delta("v", np.bool_(True)), TypeError, "size is a number by which values"),
        (lambda: sash.delta("v", 0), ValueError, "size is a number above 0, not 0"),
        (lambda: sash.delta("v", 1, float("inf")), ValueError, "every is a number above 0"),
        (lambda: sash.punctuated(None), TypeError, "marks are in a column, given by its name"),
        (
            lambda: sash.window(keep=sash.policies.at_most(3), every=sash.rows(1)),
            TypeError,
            r"keep is a duration, sash.rows\(n\), .* not <at_most\(3\) over count>",
        ),
        (
            lambda: sash.window(keep="1 hour", every=2.5),
            TypeError,
            r"every is a duration, sash.rows\(n\), .* not 2.5",
        ),
        (
            lambda: sash.window(keep=sash.trailing(3), every=sash.rows(1)),
            TypeError,
            r"keep is a duration, sash\.rows\(n\)",
        ),
        (
            lambda: sash.window(keep=sash.rows(3, every=2), every=sash.rows(1)),
            ValueError,
            r"keep=rows\(3, every=2\) has an `every` of its own; leave it out there",
        ),
        (
            lambda: sash.window(keep=3, every=sash.delta("v", 1, 2)),
            ValueError,
            r"has an `every` of its own; leave it out there",
        ),
        (lambda: sash.window(keep=0, every=sash.rows(1)), ValueError, "a window's size must be"),
    ],
)
def test_refuses_what_makes_no_sense(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()
