"""Several cycles asked together against each alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sash
from sash.slicing.cycles import Cycles
from sash.windows.contract import Cycle
from sash.windows.months import Months

CYCLES = [
    sash.sliding(10, 3).cycle,
    sash.tumbling(7, offset=2).cycle,
    sash.sliding(9, 5, offset=4).cycle,
    sash.cumulate(12, 4).cycle,
    Months.of(1, day=10),
    Months.of(2, day=10, days=7, offset=3),
    Cycle(length=4, shortest=2, step=2, longest=6),
]


@pytest.mark.parametrize("seed", range(6))
def test_each_is_as_it_is_alone(seed: int) -> None:
    source = random.Random(seed)
    chosen = [source.choice(CYCLES) for _ in range(source.randint(1, 9))]
    several = Cycles(chosen)
    for _ in range(40):
        time = source.randint(-2000, 2000)
        assert several.first(time).tolist() == [c.first(time) for c in chosen]
        assert several.last(time).tolist() == [c.last(time) for c in chosen]
        numbers = np.array([source.randint(-200, 200) for _ in chosen])
        pairs = list(zip(chosen, numbers.tolist(), strict=True))
        assert several.start(numbers).tolist() == [c.start(n) for c, n in pairs]
        assert several.end(numbers).tolist() == [c.end(n) for c, n in pairs]


@pytest.mark.parametrize("seed", range(6))
def test_spans_of_several_windows_of_each(seed: int) -> None:
    source = random.Random(seed)
    several = Cycles([source.choice(CYCLES) for _ in range(12)])
    order = np.array(source.sample(range(12), 8))
    for some in (several, several.some(slice(3, 9)), several.some(order)):
        counts = np.array([source.randint(0, 4) for _ in some.each])
        numbers = np.array([source.randint(-200, 200) for _ in range(counts.sum())], dtype=np.int64)
        owners = np.repeat(np.arange(len(some)), counts).tolist()
        each = [(some.each[q], n) for q, n in zip(owners, numbers.tolist(), strict=True)]
        starts, ends = some.spans(counts, numbers)
        assert starts.tolist() == [c.start(n) for c, n in each]
        assert ends.tolist() == [c.end(n) for c, n in each]
    assert several.some(order).each == [several.each[q] for q in order]
