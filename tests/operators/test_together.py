"""Several operators as one, against each of them alone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import (
    arg_max,
    bloom,
    collect,
    count,
    count_min,
    first,
    last,
    m4,
    mean,
    together,
)
from sash.operators import max as max_
from sash.operators import min as min_
from sash.operators import sum as sum_
from sash.operators.contract import same

SINGLES = [sum_, max_, min_, count, first, last, collect, bloom(64, 2), count_min(4, 2)]
VALUES = st.integers(-5, 5) | st.none()


def answer(op, rows):
    return op.python_lower()(op.fold(rows))


def bracketed(op, rows, random):
    if len(rows) <= 1 and random.random() < 0.8:
        return op.python_lift()(rows[0]) if rows else op.identity
    cut = random.randint(0, len(rows))
    return op.combine(bracketed(op, rows[:cut], random), bracketed(op, rows[cut:], random))


@given(st.lists(st.sampled_from(SINGLES), min_size=1, max_size=4), st.lists(VALUES), st.randoms())
def test_each_answers_as_alone(ops, values, random):
    both = together(*ops)
    want = tuple(answer(op, values) for op in ops)
    for form in (both, both.of(int)):
        partial = bracketed(form, values, random)
        assert same(form.lower(partial), want)
        assert form.equal(partial, form.fold(values))
    assert both.commutative == all(op.commutative for op in ops)
    assert both.invertible == all(op.invertible for op in ops)


@given(st.lists(st.tuples(VALUES, VALUES)), st.randoms())
def test_each_reads_its_own_columns(rows, random):
    op = together(sum_, arg_max, count, m4, columns=[1, (0, 1), 0, [0, 1]])
    left, right = [r[0] for r in rows], [r[1] for r in rows]
    want = (
        answer(sum_, right),
        answer(arg_max, rows),
        answer(count, left),
        answer(m4, rows),
    )
    for form in (op, op.of(int, int)):
        assert same(form.lower(bracketed(form, rows, random)), want)


@given(st.lists(VALUES), st.lists(VALUES))
def test_the_inverse_of_all_is_each_one_s(old, young):
    op = together(count, last, count_min(4, 2), collect)
    left = op.inverse(op.fold(old + young), op.fold(old))
    assert same(op.lower(left), op.lower(op.fold(young)))


def test_ignoring_nulls_goes_by_each_one_s_columns():
    op = together(count, sum_, count, columns=[0, 1, 1]).ignore_nulls()
    rows = [(1, None), (None, 5), (2, 6)]
    assert answer(op, rows) == (2, 11, 2)
    assert answer(op.of(int, int), rows) == (2, 11, 2)
    left = np.ma.MaskedArray([1, 0, 2], mask=[False, True, False])
    right = np.ma.MaskedArray([0, 5, 6], mask=[True, False, False])
    got = TwoStacksLite(op).slide((left, right), 3)
    assert [c.tolist()[-1] for c in got] == [2, 11, 2]


def test_shape_and_names():
    assert together(sum_, max_).shape == "object"
    assert together(sum_, max_).of(int).shape == "tuple"
    assert together(sum_, collect).of(int).shape == "object"
    assert together(sum_, max_, sum_).fields == ("sum", "max", "sum_2")
    nested = together(count, together(sum_, max_))
    assert answer(nested, [3, 4]) == (2, (7, 4))


def test_wrong_columns_are_refused():
    with pytest.raises(TypeError, match="at least one"):
        together()
    with pytest.raises(TypeError, match="takes operators"):
        together(sum_, sum)
    with pytest.raises(TypeError, match="different numbers of columns"):
        together(sum_, arg_max)
    with pytest.raises(TypeError, match="as many columns"):
        together(sum_, max_, columns=[0])
    with pytest.raises(TypeError, match="reads 2 column"):
        together(arg_max, columns=[0])
    with pytest.raises(TypeError, match="reads 1 column"):
        together(sum_, columns=[-1])
    with pytest.raises(TypeError, match="reads 1 column"):
        together(sum_, max_).of(int, int)


def test_compiled_agrees_with_generic():
    op = together(sum_, max_, mean, first, count)
    for column in (
        np.array([1.0, -0.0, math.inf, 4.0, math.nan, 3.0, 2.0, 2.0]),
        np.array([5, -2, 7, 7, 0, 2**62, 1]),
    ):
        window = TwoStacksLite(op)
        got = window.slide(column, 3)
        assert window.operator.types
        rows = list(zip(*(c.tolist() for c in got), strict=True))
        assert same(rows, TwoStacksLite(op).slide(column.tolist(), 3))
