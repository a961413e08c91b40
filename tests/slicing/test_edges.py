"""Numbered edges against edges that are listed one by one."""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.slicing.edges import Edges, Periodic, Union, cuts_of, edges_of, union
from sash.windows import Aligned, Cumulate, Sliding, cumulate, sliding
from thinning import examples

windows: st.SearchStrategy[Aligned] = st.one_of(
    st.integers(1, 12).flatmap(
        lambda size: st.builds(
            Sliding, st.just(size), st.integers(1, size), offset=st.integers(-20, 20)
        )
    ),
    st.integers(1, 4).flatmap(
        lambda step: st.builds(
            Cumulate,
            st.integers(1, 5).map(lambda n: n * step),
            st.just(step),
            offset=st.integers(-20, 20),
        )
    ),
)
SPAN = range(-40, 40)


def listed(window: Aligned) -> set[int]:
    """The times at which a window starts or ends, in a span."""
    numbers = range(window.first(SPAN[0]) - 9, window.last(SPAN[-1]) + 9)
    both = {window.start(n) for n in numbers} | {window.end(n) for n in numbers}
    return {t for t in both if t in SPAN}


def check(edges: Edges, right: set[int]) -> None:
    """A new number begins at each edge, and nowhere else; each way back is right."""
    numbers = [edges.number(t) for t in SPAN]
    assert {t for t, (a, b) in zip(SPAN[1:], pairwise(numbers)) if a < b} == right - {SPAN[0]}
    assert numbers == sorted(numbers)
    for t, n in zip(SPAN, numbers, strict=True):
        if t in right:
            assert edges.time(n) == t
        assert edges.time(n) <= t
    assert edges.number(np.array(SPAN)).tolist() == numbers
    assert edges.time(np.array(numbers)).tolist() == [edges.time(n) for n in numbers]


@given(windows)
def test_edges_are_where_windows_start_or_end(window: Aligned) -> None:
    check(edges_of(window), listed(window))


@given(windows, windows, windows)
@settings(max_examples=examples(20))
def test_the_union_has_the_edges_of_all(a: Aligned, b: Aligned, c: Aligned) -> None:
    right = listed(a) | listed(b) | listed(c)
    parts = tuple(edges_of(w) for w in (a, b, c))
    made = union(*parts)
    assert isinstance(made, Periodic)
    check(made, right)
    check(Union(parts), right)


def test_a_union_with_a_huge_cycle_is_not_written_out() -> None:
    cycles = (1_000_003, 999_983, 700_001)
    a, b, c = (edges_of(sliding(cycle, cycle, offset=i)) for i, cycle in enumerate(cycles))
    assert lcm(*cycles) > 10**17
    made = union(a, b, c)
    assert isinstance(made, Union)
    right = {n * cycle + i for i, cycle in enumerate(cycles) for n in range(-40, 40)}
    at = np.array(sorted(t for t in right if abs(t) < 20_000_000))
    assert made.time(made.number(at)).tolist() == at.tolist()
    later = made.number(at[1:] - 1)
    assert made.time(later).tolist() == at[:-1].tolist(), "there is no edge in between"
    for far in (-(2**60), 2**60):
        assert made.time(made.number(far)) <= far < made.time(made.number(far) + 3)


def test_a_union_over_centuries_loses_no_edge() -> None:
    made = Union((Periodic(2**52 + 1), Periodic(2**52 + 7)))
    for last in range(390, 410):  # whatever the last edge of the list is
        numbers = np.array([0, last])
        at = made.time(numbers)
        assert (made.number(at) >= numbers).all()
        assert (made.number(at - 1) < numbers).all()
        dense = np.append(np.arange(at[0], at[0] + 70_000), at[1] + np.arange(3))
        assert (made.number(dense) == sum(part.number(dense) for part in made.parts)).all()
        assert (made.start(dense) == np.max([p.start(dense) for p in made.parts], axis=0)).all()


def test_a_union_of_sets_with_more_cuts_than_a_list_has() -> None:
    size = 100_003
    many = Periodic(size, tuple(range(size)), 5)
    made = union(many, Periodic(70_001, (0, 3)))
    assert isinstance(made, Union)
    assert made.parts == (Periodic(1, (0,), 5), Periodic(70_001, (0, 3))), "edges at every time"
    uneven = union(Periodic(size, tuple(range(size - 1))), Periodic(70_001, (0, 3)))
    for each, parts in ((made, (many, made.parts[1])), (uneven, uneven.parts)):
        for time in (-1, 0, size - 1, size, 123_456_789):
            assert each.number(time) == sum(part.number(time) for part in parts)
            assert each.start(time) == max(part.start(time) for part in parts)
        assert each.start(np.array([size - 1, 7])).tolist() == [each.start(size - 1), each.start(7)]


def test_the_edges_that_slices_have() -> None:
    assert edges_of(sliding(6, 2)) == Periodic(2, (0,), 0), "panes"
    assert edges_of(sliding(5, 2, offset=1)) == Periodic(2, (0, 1), 1), "pairs"
    assert edges_of(cumulate(12, 3, offset=4)) == Periodic(3, (0,), 1)
    assert edges_of(sliding(6, 2)) is edges_of(sliding(6, 2))
    assert union(edges_of(sliding(6, 2))) is edges_of(sliding(6, 2))


@given(st.lists(windows, min_size=1, max_size=5), st.integers(-(2**59), 2**59), st.data())
@settings(max_examples=examples(30))
def test_numbers_of_a_union_are_sums_over_its_sets(
    each: list[Aligned], around: int, data: st.DataObject
) -> None:
    parts = tuple(cuts_of(w) for w in each)
    made = Union(parts)
    few = np.array(data.draw(st.lists(st.integers(-1000, 1000), min_size=1, max_size=9))) + around
    dense = np.arange(around - 2000, around + 2000).repeat(20)  # as many that edges are listed
    for times in (few, dense):
        numbers = made.number(times)
        assert (numbers == sum(part.number(times) for part in parts)).all()
        assert (made.start(times) == np.max([part.start(times) for part in parts], axis=0)).all()
        first = made.time(numbers)
        assert (made.number(first) == numbers).all()
        assert (made.number(first - 1) < numbers).all()
    assert [made.number(int(t)) for t in few] == made.number(few).tolist()
    assert [made.time(int(n)) for n in made.number(few)] == made.time(made.number(few)).tolist()


def test_times_of_numbers_are_found_where_edges_are_far_apart_and_near() -> None:
    made = Union((Periodic(2**58, (0, 3), -(2**57)), Periodic(7, (0, 1, 5), 2**56)))
    for number in (-(2**58), -5, 0, 1, 2**50 + 1):
        time = made.time(number)
        assert made.number(time) >= number > made.number(time - 1)
