"""Windows that are listed by their edges, against the windows themselves."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sash
from sash.slicing.cycles import Cycles
from sash.state import listing
from sash.state.listing import Listing, numbers_between
from sash.windows.months import Months

CYCLES = [
    sash.sliding(10, 3).cycle,
    sash.tumbling(7, offset=2).cycle,
    sash.sliding(9, 5, offset=4).cycle,
    sash.cumulate(12, 4).cycle,
    Months.of(1, day=3),
]


@pytest.mark.parametrize("cells", [0, 1 << 10])
@pytest.mark.parametrize("seed", range(8))
def test_all_windows_that_hold_something_are_listed(
    seed: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a table of their grid, or by sorting where that has many cells."""
    monkeypatch.setattr(listing, "_CELLS", cells)
    monkeypatch.setattr(listing, "_CELLS_PER_EDGE", 4 if cells else 0)
    source = random.Random(seed)
    cycles = Cycles([source.choice(CYCLES) for _ in range(source.randint(1, 6))])
    shown = np.array([source.randint(-90, 90) for _ in range(20)])
    limits = None
    if seed % 2:
        limits = np.array([[source.randint(-20, 0), source.randint(0, 20)] for _ in cycles.each])
    listed = Listing.of(cycles, numbers_between(cycles, shown, limits))
    assert listed.times.tolist() == sorted(set(listed.times.tolist()))
    for q, cycle in enumerate(cycles.each):
        own = range(listed.bounds[q], listed.bounds[q + 1])
        numbers = [i + int(listed.first[q]) for i in own]
        wanted = {
            n
            for time in shown.tolist()
            for n in range(cycle.first(time), cycle.last(time) + 1)
            if limits is None or limits[q, 0] <= n < limits[q, 1]
        }
        assert wanted <= set(numbers)
        if numbers and limits is None:
            assert {numbers[0], numbers[-1]} <= wanted
        for i, n in zip(own, numbers, strict=True):
            assert listed.times[listed.lows[i]] == cycle.start(n)
            assert listed.times[listed.highs[i]] == cycle.end(n)


def test_no_slices_have_no_windows() -> None:
    cycles = Cycles(CYCLES)
    listed = Listing.of(cycles, numbers_between(cycles, np.zeros(0, dtype=np.int64)))
    assert listed.bounds.tolist() == [0] * (len(CYCLES) + 1)
    assert not len(listed.times)
