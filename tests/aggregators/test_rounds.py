"""A slide whose kernel does many rounds in a row: the very calls, answers and window of as many
single insertions, evictions and questions."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash.aggregators import Amta, Daba, DabaLite, FlatFit, InOrder, TwoStacksLite

AGGREGATORS: list[type[InOrder]] = [TwoStacksLite, Daba, DabaLite, FlatFit, Amta]
SUM = ops.sum.of(int)


class Calls:
    """What an operator on text was called with, and the call at which it raises, if any."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []
        self.last = -1

    def note(self, *call: str) -> None:
        if len(self.seen) == self.last:
            self.last = -1
            raise ValueError("enough")
        self.seen.append(call)

    def operator(self) -> sash.Operator:
        def lift(x: int) -> str:
            self.note("lift", str(x))
            return f"{x} "

        def combine(a: str, b: str) -> str:
            self.note("combine", a, b)
            return a + b

        def lower(a: str) -> str:
            self.note("lower", a)
            return a

        return sash.operator(identity="", lift=lift, combine=combine, lower=lower, name="text")


def single(window: InOrder, values: Any, size: int) -> list[Any]:
    """What a slide does, one operation at a time."""
    answers = []
    for value in values:
        while len(window) >= size:
            window.evict()
        window.insert(value)
        answers.append(window.query())
    return answers


def begin(window: InOrder, source: random.Random, most: int) -> None:
    """Some values, of which some have left, and some questions."""
    for i in range(source.randrange(most)):
        window.insert(-i)
        if source.random() < 0.3:
            window.evict()
        if len(window) and source.random() < 0.5:
            window.query()
        if isinstance(window, FlatFit) and len(window) and source.random() < 0.3:
            window.query(source.randint(1, len(window)))


def both(aggregator: type[InOrder], op: Any, seed: int, most: int) -> list[InOrder]:
    """Two windows with the same past."""
    made = [aggregator(op, capacity=128) for _ in range(2)]
    for window in made:
        begin(window, random.Random(seed), most)
    return made


@pytest.mark.plain
@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 14, 31, 64])
def test_a_slide_makes_the_calls_of_single_rounds(aggregator: type[InOrder], size: int) -> None:
    calls = Calls()
    for seed in range(6):
        slid, stepped = both(aggregator, calls.operator(), seed, 2 * size + 2)
        found = []
        for window, slide in ((slid, aggregator.slide), (stepped, single)):
            calls.seen.clear()
            answers = slide(window, list(range(size)), size)
            answers += slide(window, list(range(size, 4 * size + seed)), size)
            window._check()
            found.append((answers, list(calls.seen)))
        assert found[0] == found[1]


@pytest.mark.plain
@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("size", [7, 16, 20])
def test_a_slide_that_raises_leaves_what_a_single_round_would(
    aggregator: type[InOrder], size: int
) -> None:
    """At any call: either no window can be used any more, or both go on alike."""
    calls, values, sound = Calls(), list(range(3 * size)), 0
    op = calls.operator()
    calls.seen.clear()  # making an operator tries `combine` once
    single(aggregator(op), values, size)
    for last in range(len(calls.seen)):
        found = []
        for slide in (aggregator.slide, single):
            window = aggregator(op, capacity=64)
            calls.seen, calls.last = [], last
            with pytest.raises(ValueError, match="enough"):
                slide(window, values, size)
            calls.seen, calls.last = [], -1
            if window._broken:
                found.append(window._broken)
                continue
            window._check()
            held = len(window), window.query()
            found.append((held, single(window, range(100, 100 + size), size), calls.seen))
        assert found[0] == found[1]
        sound += isinstance(found[0], tuple)
    assert sound > len(values)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_a_slide_leaves_the_window_of_single_rounds(aggregator: type[InOrder]) -> None:
    values = np.random.default_rng(2).integers(-1000, 1000, 260)
    for seed, size in enumerate([1, 2, 3, 5, 8, 16, 33, 60]):
        slid, stepped = both(aggregator, SUM, seed, 70)
        answers = slid.slide(values, size)
        assert answers.tolist() == single(stepped, values.tolist(), size)
        slid._check()
        assert slid.to_bytes() == stepped.to_bytes()


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_an_answer_that_does_not_exist_ends_a_slide_at_its_row(aggregator: type[InOrder]) -> None:
    size = 12
    for row in range(1, 60):
        values = np.zeros(70, dtype=np.int64)
        values[row - 1 : row + 2] = 2**62, 2**62, -(2**62)
        slid, stepped = (aggregator(SUM, capacity=128) for _ in range(2))
        with pytest.raises(OverflowError, match=f"row {row}: the sum leaves int64"):
            slid.slide(values, size)
        with suppress(OverflowError):
            single(stepped, values.tolist(), size)
        slid._check()
        assert slid.to_bytes() == stepped.to_bytes()
        answers = slid.slide(values[row + 1 :], size)
        assert answers.tolist() == single(stepped, values[row + 1 :].tolist(), size)
