"""FlatFAT with a fixed number of locations."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sash import operators as ops
from sash.aggregators import FlatFat
from sash.testing import answer


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 32])
@pytest.mark.parametrize("typed", [False, True])
def test_every_range(n: int, typed: bool) -> None:
    source = random.Random(n)
    op = ops.sum.of(int) if typed else ops.collect
    values = [source.randint(-9, 9) for _ in range(n)]
    tree = FlatFat(op, values)
    for round_ in range(4):
        tree._check()
        assert tree.aggregate() == answer(op, values)
        for i in range(n + 1):
            assert tree.prefix(i) == answer(op, values[:i])
            assert tree.suffix(i) == answer(op, values[i:])
            for j in range(i, n + 1):
                assert tree.range(i, j) == answer(op, values[i:j])
        count = source.randint(1, n + 2)
        where = [source.randrange(n) for _ in range(count)]
        fresh = [100 * round_ + i for i in range(count)]
        tree.update(where, fresh)
        for location, value in zip(where, fresh, strict=True):
            values[location] = value


@pytest.mark.parametrize("op", [ops.collect, ops.sum.of(int)])
def test_bytes_round_trip(op: ops.Operator) -> None:
    tree = FlatFat(op, [3, 1, 4, 1, 5])
    again = FlatFat.from_bytes(tree.to_bytes(), op)
    again._check()
    for one in (tree, again):
        one.update([2], [9])
    assert (len(again), again.range(1, 3)) == (5, tree.range(1, 3))
    with pytest.raises(ValueError, match="cannot become a FlatFat of max"):
        FlatFat.from_bytes(tree.to_bytes(), ops.max.of(int) if op.types else ops.max)


def test_from_an_array() -> None:
    tree = FlatFat(ops.max, np.array([1.0, 4.0, 2.0]))
    assert tree.aggregate() == 4.0
    tree.update([1], np.array([0.5]))
    assert (tree.aggregate(), len(tree)) == (2.0, 3)


def test_bad_use_is_a_clear_error() -> None:
    tree = FlatFat(ops.max, [1, 2, 3])
    with pytest.raises(IndexError, match="location 4 is not one of 0 … 3"):
        tree.prefix(4)
    with pytest.raises(IndexError, match="location 3 is not one of 0 … 2"):
        tree.update([3], [7])
    with pytest.raises(TypeError, match=r"a location is a whole number, not 1\.5"):
        tree.prefix(1.5)  # type: ignore[arg-type]
    for bad in (0.5, True, "1"):
        with pytest.raises(TypeError, match="a location is a whole number"):
            tree.update([bad], [9])  # type: ignore[list-item]
    with pytest.raises(IndexError, match="location -1"):
        tree.update([-1], [7])
    with pytest.raises(ValueError, match="2 locations were given for 1 values"):
        tree.update([0, 1], [7])
    with pytest.raises(ValueError, match="from an older to a younger location"):
        tree.range(2, 1)
    with pytest.raises(ValueError, match="at least one location"):
        FlatFat(ops.max, [])
    with pytest.raises(TypeError, match="needs an operator"):
        FlatFat(max, [1])  # type: ignore[arg-type]
    assert tree.aggregate() == 3
