"""Aligned windows by number, against windows that are looked for one by one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sash.slicing.edges import edges_of
from sash.windows import Aligned, Cumulate, Sliding
from sash.windows.contract import PLAIN, Cycle

slidings = st.integers(1, 40).flatmap(
    lambda size: st.builds(
        Sliding, st.just(size), st.integers(1, size), offset=st.integers(-50, 50)
    )
)
cumulates = st.integers(1, 9).flatmap(
    lambda step: st.builds(
        Cumulate,
        st.integers(1, 9).map(lambda n: n * step),
        st.just(step),
        offset=st.integers(-50, 50),
    )
)
windows: st.SearchStrategy[Aligned] = st.one_of(slidings, cumulates)

Span = tuple[int, int]


def holding(window: Aligned, time: int) -> list[Span]:
    """The windows that hold a time, by the definition of each kind."""
    if isinstance(window, Cumulate):
        lengths = range(window.step, window.size + 1, window.step)
        every = window.size
    else:
        assert isinstance(window, Sliding)
        lengths, every = range(window.size, window.size + 1), window.every
    return [
        (start, start + length)
        for start in range(time - window.size + 1, time + 1)
        for length in lengths
        if (start - window.offset) % every == 0 and start <= time < start + length
    ]


def span(window: Aligned, number: int) -> Span:
    return window.start(number), window.end(number)


@given(windows, st.integers(-200, 200))
def test_the_windows_that_hold_a_time_are_neighbours(window: Aligned, time: int) -> None:
    numbers = range(window.first(time), window.last(time) + 1)
    assert [span(window, n) for n in numbers] == holding(window, time)


@given(windows, st.integers(-200, 200))
def test_windows_before_the_first_are_closed(window: Aligned, watermark: int) -> None:
    first = window.first(watermark)
    assert window.end(first - 1) <= watermark < window.end(first)


@given(windows)
def test_starts_and_ends_rise_with_the_number(window: Aligned) -> None:
    spans = [span(window, n) for n in range(-30, 30)]
    assert all(a[0] <= b[0] and a[1] <= b[1] and a != b for a, b in pairwise(spans))
    assert {n for t in range(-20, 20) for n in range(window.first(t), window.last(t) + 1)} == set(
        range(window.first(-20), window.last(19) + 1)
    ), "no number is left out"


@given(windows, st.integers(-200, 200))
def test_a_slice_is_in_the_same_windows_throughout(window: Aligned, time: int) -> None:
    edges = edges_of(window)
    start = edges.time(edges.number(time))
    assert start <= time
    assert all(holding(window, t) == holding(window, time) for t in range(start, time))
    assert holding(window, start - 1) != holding(window, start)


@given(windows)
def test_many_at_once_are_as_one_at_a_time(window: Aligned) -> None:
    many = np.arange(-60, 60)
    for ask in (window.start, window.end, window.first, window.last):
        assert ask(many).tolist() == [ask(n) for n in many.tolist()]


@given(
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1, 5),
    st.integers(0, 4),
    st.integers(-9, 9),
    st.integers(-50, 50),
)
def test_any_cycle_numbers_its_windows_both_ways(
    length: int, shortest: int, step: int, more: int, offset: int, time: int
) -> None:
    """The last window of a cycle may end when one of the next has, but not later."""
    longest = shortest + min(more, length // step) * step
    cycle = Cycle(length, shortest, longest, step, offset)
    first, last = cycle.first(time), cycle.last(time)
    assert cycle.end(first - 1) <= time < cycle.end(first)
    assert cycle.start(last) <= time < cycle.start(last + 1)


def test_arithmetic_of_plain_numbers_and_arrays() -> None:
    numbers = np.array([-3, 0, 2, 5])
    assert PLAIN.div(numbers, 2).tolist() == [-2, 0, 1, 2]
    assert PLAIN.most(numbers, 1).tolist() == [1, 1, 2, 5]
    assert PLAIN.at_least(numbers, 2).tolist() == [0, 0, 1, 1]
    assert [PLAIN.div(-3, 2), PLAIN.most(-3, 1), PLAIN.at_least(5, 2)] == [-2, 1, 1]
