"""Shared plans against FlatFIT's definitions, by brute force."""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.slicing.composite import Composite
from sash.slicing.edges import Union
from sash.windows import Aligned, Sliding, cumulate, sliding, tumbling
from thinning import examples

sliding_windows = st.integers(1, 12).flatmap(
    lambda size: st.builds(
        Sliding, st.just(size), st.integers(1, size), offset=st.integers(-20, 20)
    )
)
sets = st.lists(sliding_windows, min_size=1, max_size=4).map(
    lambda windows: {f"q{i}": window for i, window in enumerate(windows)}
)


def test_example_1_of_the_paper() -> None:
    """Two queries, slides 2 and 4, ranges 6 and 8: the composite slide is 4, slices are made every
    2, the first query reads three of them, the second four; every other edge is common."""
    both = Composite({"first": sliding(6, 2), "second": sliding(8, 4)})
    assert both.slide == 4
    assert both.slices == 2
    assert both.common == 1
    assert both.held("first") == 3
    assert both.held("second") == 4
    assert both.longest == "second"
    edges = both.between(8, 14)
    assert [e.time for e in edges] == [8, 10, 12]
    assert [e.common for e in edges] == [True, False, True]
    assert [list(e.closes) for e in edges] == [["first", "second"], ["first"], ["first", "second"]]


def brute(windows: dict[str, Aligned], low: int, high: int) -> dict[int, tuple[set[str], set[str]]]:
    """The edges of windows in `[low, high)`: who starts or ends there, and who ends there."""
    made: dict[int, tuple[set[str], set[str]]] = {}
    for name, window in windows.items():
        for n in range(window.first(low) - 20, window.last(high) + 20):
            for time, closes in ((window.start(n), False), (window.end(n), True)):
                if low <= time < high:
                    marked, closed = made.setdefault(time, (set(), set()))
                    marked.add(name)
                    if closes:
                        closed.add(name)
    return made


@given(sets, st.integers(-50, 50))
@settings(max_examples=examples(60))
def test_a_plan_has_the_edges_and_the_closings_of_all_windows(
    windows: dict[str, Aligned], low: int
) -> None:
    plan = Composite(windows)
    found = plan.between(low, low + 40)
    right = brute(windows, low, low + 40)
    assert [e.time for e in found] == sorted(right)
    for edge in found:
        marked, closed = right[edge.time]
        assert set(edge.marked_by) == marked
        assert set(edge.closes) == closed
        for name, (first, last) in edge.closes.items():
            assert all(windows[name].end(n) == edge.time for n in range(first, last + 1))
    whole = brute(windows, 0, plan.slide)
    assert plan.slide == lcm(*(w.cycle.length for w in windows.values()))
    assert plan.slices == len(whole)
    assert plan.common == sum(len(marked) > 1 for marked, _ in whole.values())


@given(sets, st.integers(-50, 50), st.integers(0, 60), st.sampled_from([10_000, 40, 0]))
@settings(max_examples=examples(60))
def test_times_are_numbered_by_the_edges_up_to_them(
    windows: dict[str, Aligned], low: int, length: int, most: int
) -> None:
    plan = Composite(windows)
    times = np.arange(low, low + length + 1)
    edges = np.array(sorted(brute(windows, low - 30, low + length + 1)))
    right = edges[np.searchsorted(edges, times, side="right") - 1]
    assert plan.edges.start(times).tolist() == right.tolist()
    numbered = plan.numbered(low, low + length, most)
    if numbered is not None:
        assert numbered.time(numbered.number(times)).tolist() == right.tolist()
    else:
        assert most < 10_000


def test_a_huge_composite_slide_is_not_written_out() -> None:
    seconds = {f"q{n}": sliding(f"{2 * n} seconds", f"{n} seconds") for n in range(1, 101)}
    plan = Composite(seconds)
    assert plan.slide == 1_000_000 * lcm(*range(1, 101))
    assert plan.slices is None
    assert plan.common is None
    assert isinstance(plan.cuts, Union)
    edges = plan.between(100_000_000, 104_000_000)
    assert [e.time for e in edges] == [100_000_000, 101_000_000, 102_000_000, 103_000_000]
    assert set(edges[0].closes) == {f"q{n}" for n in (1, 2, 4, 5, 10, 20, 25, 50, 100)}
    assert plan.held("q1") == 2


def test_windows_of_one_day_share_edges_with_those_of_a_month() -> None:
    zone = "Europe/Berlin"
    days = tumbling("1 day", timezone=zone)
    plan = Composite({"day": days, "month": sliding("1 month", "1 day", timezone=zone)})
    march = 1_743_202_800_000_000  # 2025-03-29, the day before one of 23 hours
    edges = plan.between(march, march + 3 * 86_400_000_000)
    hours = [(b.time - a.time) // 3_600_000_000 for a, b in pairwise(edges)]
    assert hours == [24, 23, 24]
    assert all(e.common for e in edges)


def test_many_windows_that_start_together() -> None:
    plan = Composite({"up": cumulate(24, 4), "in": sliding(24, 12)})
    assert plan.slide == 24
    assert plan.slices == 6
    assert plan.common == 2
