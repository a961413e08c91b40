"""Windows out of slices, group by group, against windows that are put together one by one."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.query.plan import Plan, make_plan
from sash.slicing.edges import edges_of
from sash.state.answers import columns_of
from sash.state.scan import NoAnswer, Scan, ScanFailed, Windows
from sash.windows import Aligned, cumulate, sliding, tumbling

WINDOWS = [sliding(10, 2), sliding(7, 3, offset=1), tumbling(4), cumulate(12, 3, offset=-2)]
SCHEMA = pa.schema({"t": pa.int64(), "x": pa.int64()})

#: In order, and with ties: concatenation finds every mistake in the order.
SELECT: dict[str, sash.Aggregate] = {
    "n": sash.count(),
    "last": sash.last("x"),
    "all": sash.collect("x"),
}

groups_of_times = st.lists(st.lists(st.integers(-40, 40), max_size=8), min_size=1, max_size=4)
wanted = st.tuples(st.integers(-12, 12), st.integers(-3, 12))


def plan_of(window: Aligned, select: dict[str, Any] = SELECT) -> Plan:
    return make_plan(sash.Query(time="t", window=window, select=select), SCHEMA)


class Case:
    """Groups of events in order of time, each with its arrival as value."""

    def __init__(self, groups: list[list[int]]) -> None:
        self.groups = [sorted(times) for times in groups]
        self.times = np.array([t for g in self.groups for t in g], dtype=np.int64)
        self.bounds = np.append(0, np.cumsum([len(g) for g in self.groups])).astype(np.int64)
        self.table = pa.table({"t": self.times, "x": np.arange(len(self.times))}, SCHEMA)

    def held(self, window: Aligned, g: int, number: int) -> list[int]:
        """The values of a group's events in a window."""
        low = int(self.bounds[g])
        times = enumerate(self.groups[g], start=low)
        return [i for i, t in times if window.start(number) <= t < window.end(number)]

    def rows(self, window: Aligned, first: list[int], last: list[int]) -> list[Any]:
        """Each window of each group that holds something: group, number, values."""
        return [
            (g, n, self.held(window, g, n))
            for g in range(len(self.groups))
            for n in range(first[g], last[g] + 1)
            if self.held(window, g, n)
        ]


def scanned(plan: Plan, case: Case, first: Any, last: Any, **how: Any) -> Windows:
    """The windows of a case, by way of slices."""
    whole, changes = how.get("whole", False), how.get("changes", False)
    found: Windows | None = None
    for group in plan.groups:
        scan = Scan(group, plan.query.window, plan.types, changes=changes)
        starts, partials, ends = scan.cut(case.table, None, case.times, case.bounds, whole)
        made = scan.windows_of_slices(partials, starts, ends, first, last)
        if found is None:
            found = made
        else:
            assert found.numbers.tolist() == made.numbers.tolist()
            found.join(made)
    assert found is not None
    return found


def as_rows(windows: Windows) -> list[Any]:
    values = {name: v.to_pylist() for name, v in windows.values.items()}
    rows = zip(windows.groups.tolist(), windows.numbers.tolist(), values["all"], strict=True)
    made = list(rows)
    assert values["n"] == [len(held) for _, _, held in made]
    assert values["last"] == [held[-1] for _, _, held in made]
    return made


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@pytest.mark.parametrize("whole", [True, False])
@given(groups_of_times, wanted)
def test_the_windows_wanted_of_each_group(
    window: Aligned, whole: bool, groups: list[list[int]], asked: tuple[int, int]
) -> None:
    case, (low, many) = Case(groups), asked
    first = np.array([low - g for g in range(len(groups))])
    last = np.array([low - g + many - 2 * g for g in range(len(groups))])
    found = scanned(plan_of(window), case, first, last, whole=whole)
    assert as_rows(found) == case.rows(window, first.tolist(), last.tolist())
    assert not found.lacking
    assert len(found.covered) == 0
    assert len(found.ends) == len(groups)


close_times = st.lists(st.lists(st.integers(0, 9), max_size=30), min_size=1, max_size=4)


@pytest.mark.parametrize("window", [*WINDOWS, tumbling(2), sliding(4, 2).of_length(1)], ids=repr)
@given(st.one_of(groups_of_times, close_times))
def test_room_without_a_count_is_enough_and_not_much(
    window: Aligned, groups: list[list[int]]
) -> None:
    """Windows are counted only where events have long gaps."""
    plan, case = plan_of(window, {"n": sash.count()}), Case(groups)
    (group,) = plan.groups
    scan = Scan(group, window, plan.types)
    columns = columns_of(scan.group, case.table)
    made = len(scan.windows_of_events(*columns, None, case.times, case.bounds).numbers)
    most = scan.most_windows(case.times, case.bounds)
    assert most is None or made <= most <= 9 / 8 * len(case.times)
    if window.cycle.windows == 1 and all(set(times) == set(range(10)) for times in groups):
        assert most == made


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(groups_of_times, wanted)
def test_windows_of_events_are_those_of_their_slices(
    window: Aligned, groups: list[list[int]], asked: tuple[int, int]
) -> None:
    case, (low, many) = Case(groups), asked
    plan = plan_of(window, {"n": sash.count(), "last": sash.last("x")})
    (group,) = plan.groups
    first, last = (np.full(len(groups), n) for n in (low, low + many))
    scan = Scan(group, window, plan.types)
    some = scan.windows_of_events(
        *columns_of(scan.group, case.table), None, case.times, case.bounds, first, last
    )
    rows = [(g, n, len(held), held[-1]) for g, n, held in case.rows(window, first, last)]
    values = [v.to_pylist() for v in some.values.values()]
    assert list(zip(some.groups, some.numbers, *values, strict=True)) == rows
    every = scan.windows_of_events(
        *columns_of(scan.group, case.table), None, case.times, case.bounds
    )
    most = case.rows(window, [-60] * len(groups), [60] * len(groups))
    assert list(zip(every.groups, every.numbers, strict=True)) == [row[:2] for row in most]
    backwards = np.arange(len(case.times))[::-1]
    turned = case.table.take(pa.array(backwards))
    again = scan.windows_of_events(
        *columns_of(scan.group, turned), backwards, case.times, case.bounds
    )
    assert again.values == every.values


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@given(groups_of_times, wanted)
def test_windows_with_the_same_slices_are_one_row(
    window: Aligned, groups: list[list[int]], asked: tuple[int, int]
) -> None:
    case, (low, many) = Case(groups), asked
    first, last = (np.full(len(groups), n) for n in (low, low + many))
    found = scanned(plan_of(window), case, first, last, changes=True)
    runs = []
    for (g, held), same in groupby(case.rows(window, first, last), lambda row: (row[0], row[2])):
        numbers = [n for _, n, _ in same]
        runs.append((g, numbers[0], held, numbers[-1]))
    rows = [(*row, end) for row, end in zip(as_rows(found), found.covered.tolist(), strict=True)]
    assert rows == runs


@pytest.mark.parametrize("window", [WINDOWS[0], WINDOWS[1], WINDOWS[3]], ids=repr)
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=12), st.integers(-8, 8))
def test_slices_that_all_windows_hold_may_come_as_one(
    window: Aligned, times: list[int], low: int
) -> None:
    case = Case([times])
    plan = plan_of(window, {"last": sash.last("x"), "n": sash.count()})
    (group,) = plan.groups
    first, last = np.array([low]), np.array([low + 1])
    scan = Scan(group, window, plan.types)
    starts, partials, ends = scan.cut(case.table, None, case.times, case.bounds, True)
    right = scan.windows_of_slices(partials, starts, ends, first, last)
    # from the last start to the first end no window wanted has an edge
    from_, to = window.start(low + 1), window.end(low)
    edges = edges_of(window)
    assert [edges.time(edges.number(s)) for s in starts.tolist()] == starts.tolist()
    at = np.where((case.times >= from_) & (case.times < to), from_, case.times)
    longer = Scan(group, tumbling(1), plan.types)
    starts, partials, ends = longer.cut(case.table, None, at, case.bounds, True)
    found = scan.windows_of_slices(partials, starts, ends, first, last)
    assert found.numbers.tolist() == right.numbers.tolist()
    assert found.values == right.values


def _lower(x: int) -> int:
    if x % 3 == 0:
        raise ValueError(f"{x} is no answer")
    return x


def _combine(a: int, b: int) -> int:
    if a + b > 100:
        raise ValueError("too much")
    return a + b


@pytest.mark.parametrize("compiled", [True, False])
def test_a_window_without_an_answer_is_null_and_named(compiled: bool) -> None:
    odd = sash.operator(
        identity=0,
        lift=lambda x: x,
        combine=lambda a, b: a + b,
        lower=_lower,
        commutative=True,
        compile=compiled,
    )
    plan = plan_of(tumbling(2), {"odd": sash.aggregate(odd, "x", returns=pa.int64())})
    case = Case([[0, 2, 3, 4], [5]])  # 0 | 1 + 2 | 3, and 4
    low, high = np.full(2, -5), np.full(2, 5)
    (group,) = plan.groups
    scan = Scan(group, tumbling(2), plan.types)
    starts, partials, ends = scan.cut(case.table, None, case.times, case.bounds, True)
    found = scan.windows_of_slices(partials, starts, ends, low, high)
    assert found.numbers.tolist() == [0, 1, 2, 2]
    assert found.values["odd"].to_pylist() == [None, None, None, 4]
    assert set(found.lacking) == {0, 1, 2}
    assert all("is no answer" in why or why for why in found.lacking.values())
    kept = found.where(np.array([False, True, False, True]))
    assert (set(kept.lacking), kept.ends.tolist()) == ({0}, [1, 2])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_combine_that_raises_is_no_missing_answer(compiled: bool) -> None:
    few = sash.operator(
        identity=0, lift=lambda x: x, combine=_combine, commutative=True, compile=compiled
    )
    plan = plan_of(sliding(4, 2), {"few": sash.aggregate(few, "x", returns=pa.int64())})
    table = pa.table({"t": [0, 2, 4], "x": [1, 60, 60]}, SCHEMA)
    (group,) = plan.groups
    scan = Scan(group, sliding(4, 2), plan.types)
    bounds = np.array([0, 3])
    times = np.array([0, 2, 4])
    starts, partials, ends = scan.cut(table, None, times, bounds, True)
    with pytest.raises(ScanFailed, match="too much"):
        scan.windows_of_slices(partials, starts, ends, np.array([-5]), np.array([5]))


def test_an_answer_out_of_range_names_its_window() -> None:
    plan = plan_of(sliding(4, 2), {"sum": sash.sum("x")})
    (group,) = plan.groups
    scan = Scan(group, sliding(4, 2), plan.types)
    table = pa.table({"t": [0, 8, 9, 8], "x": [1, 2**62, 2**62, 1]}, SCHEMA)
    given = *columns_of(group, table), None
    with pytest.raises(NoAnswer) as raised:
        scan.windows_of_events(*given, np.array([0, 8, 9, 8]), np.array([0, 1, 3, 4]))
    assert (raised.value.group, raised.value.number) == (1, 3)
