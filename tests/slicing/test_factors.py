"""Factor windows against what they are defined as, and against counting by brute force."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import chain, combinations
from math import lcm
from typing import Any

import pytest

import sash
from sash.slicing.factors import FactorPlan, can_be_from, factor_windows


def drawn(seed: int) -> list[sash.Sliding]:
    """A few windows with much in common, of offsets that agree and that do not."""
    source = random.Random(seed)
    made = []
    for _ in range(source.randint(1, 5)):
        every = source.choice((1, 2, 3, 4, 5, 6, 10, 12, 20, 30))
        size = every * source.randint(1, 4) + source.choice((0, 0, 0, 1, every // 2))
        made.append(sash.sliding(size, every, source.choice((0, 0, 0, 1, 2))))
    return made


def spans(window: sash.Sliding, low: int, high: int) -> list[tuple[int, int]]:
    """The windows within a stretch of time, by definition."""
    first = window.offset - 1000 * window.every
    starts = range(first, high, window.every)
    return [(t, t + window.size) for t in starts if low <= t and t + window.size <= high]


@pytest.mark.parametrize("seed", range(200))
def test_a_window_is_a_run_of_what_it_is_computed_from(seed: int) -> None:
    """The parent's windows inside are disjoint, and fill it."""
    plan = factor_windows(drawn(seed))
    for one in plan.windows:
        if one.parent is None:
            continue
        parent = plan.windows[one.parent].window
        for low, high in spans(one.window, 0, 200):
            inside = spans(parent, low, high)
            edges = list(chain.from_iterable(inside))
            assert edges[0] == low
            assert edges[-1] == high
            assert edges[1:-1:2] == edges[2::2]


@pytest.mark.parametrize("seed", range(100))
def test_windows_can_be_computed_from_others_exactly_if_these_fill_them(seed: int) -> None:
    source = random.Random(seed)
    window = drawn(seed)[0]
    size = source.randint(1, 12)
    parent = sash.tumbling(size, source.randrange(size))
    low, high = spans(window, 0, 500)[0]
    fits = True
    for low, high in spans(window, 0, 500)[: parent.size]:
        inside = spans(parent, low, high)
        fits &= bool(inside) and inside[0][0] == low and inside[-1][1] == high
    assert can_be_from(window, parent) == (fits and window != parent)


def counted(plan: FactorPlan, rate: int) -> Fraction:
    """What the windows of a plan read in a unit of time: by going through a common cycle."""
    cycle = lcm(*(one.window.every for one in plan.windows))
    read = 0
    for one in plan.windows:
        longest = 3 * cycle + one.window.size
        mine = [s for s in spans(one.window, cycle, cycle + longest) if s[0] < 2 * cycle]
        for low, high in mine:
            if one.parent is None:
                read += rate * (high - low)
            else:
                read += len(spans(plan.windows[one.parent].window, low, high))
    return Fraction(read, cycle)


@pytest.mark.parametrize("seed", range(60))
def test_the_cost_is_what_is_read(seed: int) -> None:
    rate = 1 + seed % 3
    plan = factor_windows(drawn(seed), rate=rate)
    assert plan.cost == counted(plan, rate)
    assert plan.cost <= plan.shared <= plan.apart


def cheapest(windows: list[sash.Sliding], rate: int, how: Any) -> Fraction:
    """The least cost of all sets of tumbling windows that might be added, by trying them."""
    lengths = range(1, max(w.size for w in windows) + 1)
    useful = [
        sash.tumbling(n, o)
        for n in lengths
        for o in range(n)
        if any(can_be_from(w, sash.tumbling(n, o)) for w in windows)
    ]
    best: Fraction | None = None
    for many in range(3):
        for added in combinations(useful, many):
            every = [*windows, *(w for w in added if w not in windows)]
            total = Fraction(0)
            for window in every:
                parents = [p for p in every if can_be_from(window, p)]
                ways = [Fraction(rate), *(Fraction(1, p.every) for p in parents)]
                if how == "fold":
                    total += Fraction(window.size, window.every) * min(ways)
                else:
                    total += 2 * min(ways) + Fraction(1, window.every)
            best = total if best is None else min(best, total)
    assert best is not None
    return best


@pytest.mark.parametrize("how", ["fold", "queue"])
@pytest.mark.parametrize("seed", range(12))
def test_no_set_of_up_to_two_added_windows_is_cheaper(seed: int, how: Any) -> None:
    windows = list(dict.fromkeys(drawn(seed)[:3]))
    assert factor_windows(windows, rate=3, how=how).cost <= cheapest(windows, 3, how)


def test_windows_of_20_30_and_40_take_150_instead_of_360() -> None:
    """In 120 units of time at one event a unit: apart, sharing alone, with a window of 10."""
    plan = factor_windows([sash.tumbling(n) for n in (20, 30, 40)])
    assert [120 * c for c in (plan.apart, plan.shared, plan.cost)] == [360, 246, 150]
    assert plan.added == (sash.tumbling(10),)
    whole = factor_windows([sash.tumbling(n) for n in (10, 20, 30, 40)])
    assert [120 * c for c in (whole.apart, whole.cost)] == [480, 150]
    assert whole.added == ()


def test_for_queues_a_factor_window_pays_where_several_windows_read_fine_events() -> None:
    long = [sash.sliding(3600 * n, 3600) for n in (2, 5, 24)]
    assert factor_windows(long, rate=1, how="queue").added == (sash.tumbling(3600),)
    assert factor_windows(long[:1], rate=1, how="queue").added == ()


def test_many_windows_are_planned_too() -> None:
    windows = [sash.sliding(60 * n, 60 * (1 + n % 4), n % 2) for n in range(4, 60)]
    plan = factor_windows(windows)
    assert plan.cost < plan.shared <= plan.apart
    for one in plan.windows:
        assert one.parent is None or can_be_from(one.window, plan.windows[one.parent].window)


def test_other_windows_are_refused() -> None:
    with pytest.raises(TypeError, match="sliding and tumbling windows, not cumulate"):
        factor_windows([sash.cumulate(6, 2)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="how is 'fold' or 'queue'"):
        factor_windows([sash.tumbling(5)], how="tree")  # type: ignore[arg-type]


def plainly(windows: list[sash.Sliding], added: list[sash.Sliding], how: Any) -> Fraction:
    """What windows read if some are added, by the definition."""
    total = Fraction(0)
    for window in (every := [*windows, *added]):
        ways = [Fraction(1), *(Fraction(1, p.every) for p in every if can_be_from(window, p))]
        size = Fraction(window.size, window.every)
        total += size * min(ways) if how == "fold" else 2 * min(ways) + Fraction(1, window.every)
    return total


@pytest.mark.parametrize("how", ["fold", "queue"])
@pytest.mark.parametrize("seed", range(6))
def test_of_many_candidates_the_best_is_added_as_long_as_it_pays(seed: int, how: Any) -> None:
    """Each of those added saves something, and one more would not."""
    source = random.Random(seed)
    windows = []
    for every in source.sample(range(10, 60), 30):
        windows.append(sash.sliding(every * source.randint(1, 3), every))
    plan = factor_windows(windows, how=how)
    assert plan.cost == plainly(windows, list(plan.added), how)
    for i in range(len(plan.added)):
        some = list(plan.added[: i + 1])
        assert plainly(windows, some, how) < plainly(windows, some[:-1], how)
    for n in {n for w in windows for n in range(1, w.every) if w.every % n == 0}:
        more = [*plan.added, sash.tumbling(n)]
        assert plainly(windows, more, how) >= plan.cost
