"""min, max and their kin, against plain Python on the raw values."""

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import arg_max, arg_min, max_count, min_count, span
from sash.operators import max as max_
from sash.operators import min as min_
from sash.operators.contract import same
from sash.operators.together import together
from sash.testing.oracle import answer as oracle_answer

NAN, INF = math.nan, math.inf
VALUES = {
    "int64": st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
    "float64": st.floats() | st.sampled_from([NAN, INF, -INF, -0.0, 0.0, 1.0]),
    "bool": st.booleans(),
    "timestamp": st.integers(-3, 3) | st.sampled_from([10**15, -(10**15)]),
    "object": st.text("abc", max_size=2),
}


def answer(op, rows):
    return op.python_lower()(op.fold(rows))


def bracketed(op, rows, random):
    if len(rows) <= 1 and random.random() < 0.8:
        return op.python_lift()(rows[0]) if rows else op.identity
    cut = random.randint(0, len(rows))
    return op.combine(bracketed(op, rows[:cut], random), bracketed(op, rows[cut:], random))


def by_order(value):
    return (1, 0) if value != value else (0, value)


def pick(choose, values):
    there = [v for v in values if v is not None]
    return choose(there, key=by_order) if there else None


def forms(op, *types):
    """Both forms of an operator."""
    return op, op.of(*types)


@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_extremes_and_how_often_they_occur(type_, data):
    values = data.draw(st.lists(VALUES[type_] | st.none(), max_size=10))
    random = data.draw(st.randoms())
    keys = [by_order(v) for v in values if v is not None]
    least, greatest = pick(min, values), pick(max, values)
    expected = {
        min_: least,
        max_: greatest,
        min_count: keys.count(by_order(least)) if keys else 0,
        max_count: keys.count(by_order(greatest)) if keys else 0,
    }
    for op, want in expected.items():
        for form in forms(op, type_):
            partial = bracketed(form, values, random)
            assert same(form.lower(partial), want), form
            if form.encode:
                assert same(form.lower(form.decode(form.encode(partial))), want)


@pytest.mark.parametrize("type_", ["int64", "float64", "bool", "timestamp"])
@given(data=st.data())
def test_span_is_greatest_less_least(type_, data):
    values = data.draw(st.lists(VALUES[type_] | st.none(), max_size=10))
    random = data.draw(st.randoms())
    want = pick(max, values)
    if want is not None:
        want = want - pick(min, values)
    for form in (span, span.of(type_)):
        partial = bracketed(form, values, random)
        if type_ == "int64" and want is not None and want > 2**63 - 1:
            with pytest.raises(OverflowError, match="leaves int64"):
                form.lower(partial)
        else:
            assert same(form.lower(partial), want)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("by", VALUES)
@given(data=st.data())
def test_what_is_picked_by_an_extreme(value, by, data):
    pairs = st.tuples(VALUES[value] | st.none(), VALUES[by] | st.none())
    rows, random = data.draw(st.lists(pairs, max_size=8)), data.draw(st.randoms())
    there = [r for r in rows if r[1] is not None]
    for op, choose in ((arg_min, min), (arg_max, max)):
        want = choose(there, key=lambda r: by_order(r[1]))[0] if there else None
        for form in forms(op, value, by):
            assert same(form.lower(bracketed(form, rows, random)), want), form


def test_worked_examples():
    for op in (*forms(max_, float), *forms(min_, float), *forms(span, float)):
        assert answer(op, []) is None
        assert answer(op, [None]) is None
    for form in forms(max_, float):
        assert answer(form, [-INF]) == -INF
        assert math.isnan(answer(form, [INF, NAN, 1.0]))
    for form in forms(min_, float):
        assert answer(form, [NAN, INF, None]) == INF
        assert math.isnan(answer(form, [NAN, NAN]))
    for form in forms(max_count, float):
        assert answer(form, [0.0, -0.0, -1.0]) == 2
        assert answer(form, [NAN, 1.0, NAN]) == 2
    for form in forms(arg_max, int, float):
        assert answer(form, [(7, 1.0), (8, 1.0), (9, 0.0)]) == 7
        assert answer(form, [(None, 2.0), (8, 1.0)]) is None
        assert answer(form, [(8, 1.0), (9, None)]) == 8
        assert answer(form, [(1, -0.0), (2, 0.0)]) == 1
    assert answer(arg_max, [("UA", 3), ("AA", 9), ("B6", 5)]) == "AA"
    assert answer(arg_min, [("UA", 3), ("AA", 9), ("B6", 5)]) == "UA"
    assert answer(max_, ["a", "c", "b"]) == "c"
    times = [datetime(2024, 1, 2), datetime(2024, 1, 1)]
    assert answer(min_, times) == times[1]
    assert answer(span, times) == times[0] - times[1]


@pytest.mark.parametrize("zeros", [[0.0], [-0.0], [-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0, NAN]])
def test_which_zero_is_kept_does_not_depend_on_order(zeros):
    """min keeps -0.0 and max 0.0; where all are the same, that one."""
    signs = [math.copysign(1.0, x) for x in zeros if x == x]
    for op, want in ((min_, min(signs)), (max_, max(signs))):
        values = zeros if op is min_ else [x for x in zeros if x == x]
        for form in forms(op, float):
            assert math.copysign(1.0, answer(form, values)) == want
        assert math.copysign(1.0, oracle_answer(op, values)) == want
        assert math.copysign(1.0, TwoStacksLite(op).slide(np.array(values), 9)[-1]) == want


def test_values_that_cannot_be_ordered_are_an_error():
    with pytest.raises(TypeError):
        answer(max_, [1, "a"])


def test_declared_abilities():
    for op in (min_, max_, span, min_count, max_count):
        assert op.commutative
    for op in (arg_min, arg_max):
        assert not op.commutative
    assert not any(op.invertible for op in (min_, max_, span, min_count, max_count, arg_max))


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, NAN, -0.0, 0.0, -INF, INF, 2.0, NAN, NAN]),
        np.array([5, 2**63 - 1, -(2**63), 5, 5, 0]),
        np.array([True, False, False, True]),
        np.array(["2024-01-02", "2024-01-01", "1969-01-01"], dtype="M8[us]"),
    ],
    ids=["float64", "int64", "bool", "timestamp"],
)
def test_compiled_agrees_with_generic(column):
    values = list(column) if column.dtype.kind == "M" else column.tolist()
    ops = (max_, min_, max_count)
    window = TwoStacksLite(together(*ops))  # in one kernel
    for op, got in zip(ops, window.slide(column, 3), strict=True):
        assert window.operator.types
        got = list(got) if got.dtype.kind == "M" else got.tolist()
        assert same(got, TwoStacksLite(op).slide(values, 3))


def test_compiled_arg_max_picks_nulls():
    value = np.ma.MaskedArray([10, 20, 30, 40], mask=[False, True, False, False])
    by = np.array([1.0, 5.0, 2.0, 2.0])
    got = TwoStacksLite(arg_max).slide((value, by), 2)
    assert got.tolist() == [10, None, None, 30]
    assert got.tolist() == TwoStacksLite(arg_max).slide((value.tolist(), by.tolist()), 2)


def spark_order(value):
    """Structs and lists part by part, nulls first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, [spark_order(x) for x in value.values()])
    if isinstance(value, list):
        return (1, [spark_order(x) for x in value])
    return (2,) if value != value else (1, value)


NUMBERS = st.integers(-1, 1) | st.sampled_from([NAN, 0.5]) | st.none()
LISTS = st.lists(NUMBERS, max_size=3)
NESTED = {
    "lists": LISTS,
    "structs": st.builds(lambda x, s: {"x": x, "s": s}, NUMBERS, st.sampled_from(["", "a", None])),
    "lists of structs": st.lists(st.fixed_dictionaries({"l": st.none() | LISTS}), max_size=2),
}


@pytest.mark.parametrize("kind", NESTED)
@given(data=st.data())
def test_structs_and_lists_have_the_order_of_spark(kind, data):
    values = data.draw(st.lists(NESTED[kind], min_size=1, max_size=8))
    random = data.draw(st.randoms())
    want = {min_: min(values, key=spark_order), max_: max(values, key=spark_order)}
    for op, right in want.items():
        for form in forms(op, "object"):
            partial = bracketed(form, values, random)
            assert repr(form.lower(partial)) == repr(right)
            assert repr(form.lower(form.decode(form.encode(partial)))) == repr(right)
    times = list(range(len(values)))
    for op, right in ((arg_min, want[min_]), (arg_max, want[max_])):
        first = next(i for i, v in enumerate(values) if spark_order(v) == spark_order(right))
        assert answer(op, list(zip(times, values, strict=True))) == first
    most = sum(spark_order(v) == spark_order(want[max_]) for v in values)
    assert answer(max_count, values) == most


def test_a_span_of_text_says_what_it_takes():
    with pytest.raises(TypeError, match=r"span takes values that can be subtracted.*, not 'b'"):
        answer(span, ["a", "b"])
