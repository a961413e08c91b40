"""Copies of windows: the same answers, and a memory of their own."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import sash
from sash import aggregators, operators
from sash.aggregators import BTree, Cbix, DabaLite, Fiba, FlatFat, Reactive, Timed
from sash.aggregators.in_order import InOrder
from sash.kernels.program import jit_enabled

OPERATORS = [operators.sum, operators.bloom(64)]
if not jit_enabled():
    OPERATORS += [op.of(int) for op in OPERATORS]
IN_ORDER = [
    made
    for made in (getattr(aggregators, name) for name in aggregators.__all__)
    if isinstance(made, type) and issubclass(made, InOrder) and made is not InOrder
]
TIMED: list[Any] = [Fiba, BTree, Reactive, lambda op: Cbix(op, 60), lambda op: Timed(DabaLite(op))]


def same(a: Any, b: Any) -> bool:
    return bool(np.all(a == b))


def test_what_is_not_pickled_says_what_to_do() -> None:
    for made in (DabaLite(operators.max), Fiba(operators.max.of(float))):
        with pytest.raises(TypeError, match=r"cannot be pickled; save it with to_bytes\(\)"):
            pickle.dumps(made)
    q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    for name, stream in {
        "Stream": q.stream(),
        "SharedStream": sash.share({"q": q}).stream(),
    }.items():
        with pytest.raises(TypeError, match=rf"restore it with sash\.{name}\.from_bytes"):
            pickle.dumps(stream)


@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize("made", IN_ORDER)
def test_in_order(made: type[InOrder], op: Any) -> None:
    try:
        window = made(op)
    except TypeError:
        pytest.skip("needs an inverse")
    for value in range(20):
        window.insert(value)
    check(window, lambda w: w.insert(1000), lambda w: [w.evict() for _ in range(15)])


@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize("made", TIMED)
def test_timed(made: Any, op: Any) -> None:
    window = made(op)
    window.bulk_insert(list(range(50)), list(range(50)))

    def less(w: Any) -> None:
        w.advance(100) if isinstance(w, Cbix) else w.bulk_evict(45)

    check(window, lambda w: w.insert(50, 1000), less)


def test_compiled() -> None:
    test_in_order(DabaLite, operators.sum.of(int))
    test_timed(lambda op: Fiba(op, min_arity=2), operators.sum.of(int))  # compiled anyway


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_flat_fat(how: Any) -> None:
    tree = FlatFat(operators.sum.of(int), np.arange(8))
    other = how(tree)
    other.update([3], np.array([100]))
    assert (tree.aggregate(), other.aggregate()) == (28, 125)


def check(window: Any, more: Any, less: Any) -> None:
    """A copy answers as its original does, and a change of the one is none of the other."""
    for how in (copy.copy, copy.deepcopy):
        before, length = window.query(), len(window)
        other = how(window)
        assert type(other) is type(window)
        assert other.operator is window.operator
        other._check()
        assert same(other.query(), before)
        more(other)
        less(other)
        other._check()
        window._check()
        assert same(window.query(), before)
        assert (len(window), len(other) < length) == (length, True)
        third = how(other)
        assert same(third.query(), other.query())
