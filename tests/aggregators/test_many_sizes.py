"""Answers over many sizes at once: FlatFIT's max-multi-query, and those it is compared with."""

from __future__ import annotations

import random
from math import log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import operators as ops
from sash.aggregators import BInt, FlatFatFifo, FlatFit, Recalc
from sash.testing import counting

WINDOWS = [FlatFit, FlatFatFifo, BInt, Recalc]


def brute(values: list[str], sizes: list[int]) -> list[list[str]]:
    """For each size the answers of concat, by their definition."""
    return [
        ["".join(values[max(0, i + 1 - size) : i + 1]) for i in range(len(values))]
        for size in sizes
    ]


@pytest.mark.thin
@pytest.mark.plain
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("window", WINDOWS)
def test_a_slide_over_many_sizes_has_the_answers_of_each(window: Any, seed: int) -> None:
    source = random.Random(seed)
    values = [source.choice("abcdef") for _ in range(60)]
    sizes = [source.choice((1, 2, 3, 7, 8, 20, 100)) for _ in range(source.randint(1, 9))]
    made = window(ops.concat)
    assert made.slide(values, sizes) == brute(values, sizes)
    made._check()
    longest = min(max(sizes), 60)
    asked = [source.randint(1, longest) for _ in range(10)]
    assert made.queries(asked) == ["".join(values[-size:]) for size in asked]
    made._check()


@pytest.mark.plain
@pytest.mark.parametrize("window", [FlatFit, FlatFatFifo])
def test_a_slide_goes_on_where_the_last_one_ended(window: Any) -> None:
    values = list("abcdefghijklmnopqrstuvwxyz")
    made = window(ops.concat)
    parts = [made.slide(values[at : at + 7], [2, 5]) for at in range(0, 26, 7)]
    for i, size in enumerate((2, 5)):
        assert [x for part in parts for x in part[i]] == brute(values, [size])[0]


def test_answers_come_back_in_the_kind_that_was_given() -> None:
    values, sizes = np.array([9.0, 3.0, 5.0, 1.0]), [3, 1]
    by_numpy = FlatFit(ops.max).slide(values, sizes)
    assert [type(found) for found in by_numpy] == [np.ndarray, np.ndarray]
    assert [found.tolist() for found in by_numpy] == [[9, 9, 9, 5], [9, 3, 5, 1]]
    by_arrow = FlatFit(ops.max).slide(pa.array(values), sizes)
    assert [found.to_pylist() for found in by_arrow] == [[9, 9, 9, 5], [9, 3, 5, 1]]
    for order in ([3, 1], [1, 3], [1, 3, 1], [3, 2, 1], [2, 3, 1]):
        whole = FlatFit(ops.max).slide(values, np.array(order))
        assert whole.tolist() == [FlatFit(ops.max).slide(values, n).tolist() for n in order]


@pytest.mark.once
@pytest.mark.parametrize("window", WINDOWS)
def test_compiled_windows_agree(window: Any) -> None:
    values = np.random.default_rng(0).standard_normal(300)
    found = window(ops.max).slide(values, range(1, 65))
    for size, answers in enumerate(found, start=1):
        wanted = [values[max(0, i + 1 - size) : i + 1].max() for i in range(300)]
        assert answers.tolist() == wanted


@pytest.mark.plain
def test_vectors_over_many_sizes() -> None:
    """Vectors have a place, and go by functions of their own."""

    def lift(out: Any, x: int) -> None:
        out[:] = 0
        out[x] = 1

    def add(out: Any, a: Any, b: Any) -> None:
        out[:] = a + b

    counts = sash.operator(identity=np.zeros(3, dtype=np.int64), lift=lift, combine=add)
    values, sizes = np.random.default_rng(3).integers(0, 3, 50), [1, 4, 9]
    found = FlatFit(counts.of("int64")).slide(values, sizes)
    for answers, size in zip(found, sizes, strict=True):
        for i, one in enumerate(np.asarray(answers).tolist()):
            held = values[max(0, i + 1 - size) : i + 1]
            assert one == [int((held == x).sum()) for x in range(3)]


@pytest.mark.plain
@pytest.mark.parametrize("n", [2, 5, 32, 100])
def test_flat_fit_takes_n_minus_1_combines_for_all_sizes_whatever_their_order(n: int) -> None:
    """Table 1: FlatFIT n - 1, Naive n(n - 1)/2, FlatFAT and B-Int at most n log2 n."""
    order = list(range(1, n + 1))
    random.Random(0).shuffle(order)
    spent = {}
    for window in WINDOWS:
        counted = counting(ops.sum)
        made = window(counted.operator)
        made.slide(list(range(3 * n)), order)
        counted.reset()
        made.slide(list(range(4 * n)), order)
        spent[window] = counted.combines / (4 * n)
    assert spent[FlatFit] == n - 1
    assert spent[Recalc] == n * (n - 1) / 2
    for window in (FlatFatFifo, BInt):
        # and what an insert and an evict take
        assert n - 1 <= spent[window] <= n * log2(2 * n) + 2 * log2(2 * n)


@pytest.mark.plain
def test_one_call_answers_many_sizes_longest_first() -> None:
    counted = counting(ops.concat)
    window = FlatFit(counted.operator)
    window.slide(list("abcdefgh"), range(1, 9))
    window.evict()
    window.insert("i")
    counted.reset()
    assert window.queries([1, 8, 3, 3])[1] == "bcdefghi"
    assert counted.combines <= 3


@pytest.mark.plain
def test_sizes_that_cannot_be_are_refused() -> None:
    window = FlatFit(ops.max)
    window.slide([1, 2, 3], 2)
    with pytest.raises(ValueError, match="from 1 to the 2 values held, not 3"):
        window.queries([1, 3])
    with pytest.raises(ValueError, match="an empty list was given"):
        window.slide([1], [])
    with pytest.raises(TypeError, match="size is a number of values"):
        window.slide([1], [2, "3"])
    with pytest.raises(TypeError, match="size is a number of values"):
        window.slide([1], "3")
    with pytest.raises(TypeError, match="size is a number of values"):
        window.slide([1], np.array([2.0]))
    with pytest.raises(ValueError, match="at least one value"):
        window.slide([1], np.array([2, 0]))
    assert window.queries([]) == []
