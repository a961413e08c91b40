"""first, last, first_n, last_n, nth_youngest and m4, against plain lists."""

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import first, first_n, last, last_n, m4, nth_youngest
from sash.operators.contract import same
from sash.operators.together import together

NAN, INF = math.nan, math.inf
EXTREMES = [2**63 - 1, -(2**63), 0, -1, 1]

VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EXTREMES),
    "float64": st.floats() | st.sampled_from([NAN, INF, -INF, -0.0, 0.0, 1.0]),
    "bool": st.booleans(),
    "timestamp": st.integers(-(10**15), 10**15),
}
PLAIN = st.one_of(st.integers(), st.text(max_size=2), st.floats(), st.booleans())


def answer(op, rows):
    return op.python_lower()(op.fold(rows))


def bracketed(op, rows, random):
    """The partial of rows combined in a random order of bracketing, with empty spans."""
    if len(rows) <= 1 and random.random() < 0.8:
        return op.python_lift()(rows[0]) if rows else op.identity
    cut = random.randint(0, len(rows))
    left, right = bracketed(op, rows[:cut], random), bracketed(op, rows[cut:], random)
    return op.python_combine()(left, right)


def by_order(value):
    """NaN above all."""
    return (1, 0) if value != value else (0, value)


def four_points(rows):
    rows = [(t, v) for t, v in rows if t is not None and v is not None]
    if not rows:
        return None
    keys = [by_order(v) for _, v in rows]
    low, high = keys.index(min(keys)), keys.index(max(keys))
    return (*rows[0], *rows[-1], *rows[low], *rows[high])


@given(st.lists(PLAIN | st.none()), st.integers(1, 4), st.randoms())
def test_place_in_a_list(values, n, random):
    expected = {
        first: values[0] if values else None,
        last: values[-1] if values else None,
        first_n(n): tuple(values[:n]),
        last_n(n): tuple(values[-n:]),
        nth_youngest(n): values[-n] if len(values) >= n else None,
    }
    for op, want in expected.items():
        assert same(op.lower(bracketed(op, values, random)), want)
        coded = op.decode(op.encode(op.fold(values)))
        assert same(op.lower(coded), want)


@given(st.lists(PLAIN | st.none()), st.integers(1, 4))
def test_ignoring_nulls_is_leaving_them_out(values, n):
    there = [v for v in values if v is not None]
    for op in (first, last, first_n(n), last_n(n), nth_youngest(n)):
        assert same(answer(op.ignore_nulls(), values), answer(op, there))


@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_typed_first_and_last_agree_with_generic(type_, data):
    values = data.draw(st.lists(VALUES[type_] | st.none(), max_size=8))
    random = data.draw(st.randoms())
    for op in (first, last, first.ignore_nulls(), last.ignore_nulls()):
        tied = op.of(type_)
        assert tied.shape == "tuple"
        assert same(tied.lower(bracketed(tied, values, random)), answer(op, values))


@given(st.lists(PLAIN | st.none()), st.lists(PLAIN | st.none()))
def test_the_inverse_of_last_takes_out_the_oldest(old, young):
    left = last.inverse(last.fold(old + young), last.fold(old))
    assert same(left, last.fold(young))


def test_which_are_invertible_or_commutative():
    ops = [first, first_n(2), last_n(2), nth_youngest(2), m4]
    assert not any(op.invertible for op in ops)
    assert last.invertible
    assert not any(op.commutative for op in [*ops, last])


@pytest.mark.parametrize("make", [first_n, last_n, nth_youngest])
def test_n_must_be_a_positive_whole_number(make):
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            make(wrong)
    for wrong in (1.0, "2", True, None):
        with pytest.raises(TypeError, match="whole number"):
            make(wrong)


def test_worked_examples():
    assert answer(first, []) is None
    assert answer(first, [None, 4]) is None
    assert answer(first.ignore_nulls(), [None, 4]) == 4
    assert answer(last, ["a", "b"]) == "b"
    assert answer(last_n(2), []) == ()
    assert answer(nth_youngest(1), [3, 4]) == 4
    assert answer(nth_youngest(3), [3, 4]) is None


def test_m4_by_hand():
    rows = [(1, 5), (2, 9), (3, 2), (4, 9), (5, 2), (6, 7), (7, None), (None, 99)]
    assert answer(m4, rows) == (1, 5, 6, 7, 3, 2, 2, 9)
    assert answer(m4, [(1, None)]) is None
    assert same(answer(m4, [(1, NAN), (2, 3.0)]), (1, NAN, 2, 3.0, 2, 3.0, 1, NAN))
    assert same(answer(m4, [(1, NAN), (2, NAN)]), (1, NAN, 2, NAN, 1, NAN, 1, NAN))
    assert answer(m4, [("x", "b"), ("y", "a")]) == ("x", "b", "y", "a", "y", "a", "x", "b")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("time", ["int64", "timestamp", "float64"])
@given(data=st.data())
def test_m4_both_forms(time, value, data):
    rows = data.draw(
        st.lists(st.tuples(VALUES[time] | st.none(), VALUES[value] | st.none()), max_size=8)
    )
    random = data.draw(st.randoms())
    want = four_points(rows)
    tied = m4.of(time, value)
    assert tied.shape == "tuple"
    assert same(tied.lower(bracketed(tied, rows, random)), want)
    assert same(m4.lower(bracketed(m4, rows, random)), want)
    assert same(m4.lower(m4.decode(m4.encode(m4.fold(rows)))), want)


def test_m4_says_which_fields_are_times():
    assert m4.of(datetime, int).returns == ("timestamp", "") * 4
    assert m4.of(float, "timestamp").returns == ("", "timestamp") * 4
    assert len(m4.fields) == 8
    assert m4.of(int, str).shape == "object"


def values_of(column):
    """A numpy column as the list that stands for it."""
    if isinstance(column, np.ma.MaskedArray):
        return [None if m else v for v, m in zip(column.data, np.ma.getmaskarray(column))]
    return list(column) if column.dtype.kind == "M" else column.tolist()


@pytest.mark.parametrize(
    "column",
    [
        np.array([4.0, NAN, -0.0, INF, 2.0, 2.0, -INF, NAN]),
        np.ma.MaskedArray([2**63 - 1, 1, -(2**63), 5], mask=[False, True, False, True]),
        np.array([3, 1, 2], dtype="M8[us]"),
    ],
    ids=["float64", "int64", "timestamp"],
)
def test_compiled_first_and_last_agree_with_generic(column):
    window = TwoStacksLite(together(first, last))  # in one kernel
    for op, got in zip((first, last), window.slide(column, 3), strict=True):
        assert window.operator.types
        assert same(values_of(got), TwoStacksLite(op).slide(values_of(column), 3))


@pytest.mark.parametrize(
    "values",
    [np.array([4.0, NAN, -0.0, 0.0, INF, 2.0, NAN]), np.array([2, 2, 7, -1, 7, 7, 7])],
    ids=["float64", "int64"],
)
def test_compiled_m4_agrees_with_generic(values):
    times = np.arange(7).astype("M8[s]").astype("M8[us]")
    got = TwoStacksLite(m4).slide((times, values), 3)
    rows = list(zip(*(values_of(c) for c in got), strict=True))
    assert same(rows, TwoStacksLite(m4).slide((values_of(times), values_of(values)), 3))
