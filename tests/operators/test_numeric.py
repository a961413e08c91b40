"""Counts, sums, means, variances and regression, against exact recomputation."""

import math
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import (
    count,
    geometric_mean,
    linear_regression,
    mean,
    population_stddev,
    population_variance,
    product,
    stddev,
    sum_of_squares,
    variance,
)
from sash.operators import sum as sum_
from sash.operators.contract import same
from sash.operators.numeric import close
from sash.operators.together import together

NAN, INF = math.nan, math.inf
MOST, LEAST = 2**63 - 1, -(2**63)
WHOLE = st.integers(-9, 9) | st.integers(LEAST, MOST) | st.sampled_from([MOST, LEAST])
MODEST = st.floats(-1e3, 1e3) | st.integers(-1000, 1000).map(float)


def answer(op, rows):
    return op.python_lower()(op.fold(rows))


def bracketed(op, rows, random):
    if len(rows) <= 1 and random.random() < 0.8:
        return op.python_lift()(rows[0]) if rows else op.identity
    cut = random.randint(0, len(rows))
    return op.combine(bracketed(op, rows[:cut], random), bracketed(op, rows[cut:], random))


def forms(op, *types):
    return op, op.of(*types)


def near(got, want, scale=1.0):
    if want is None or got is None:
        return got is want
    return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9 * max(1.0, scale))


# integers


@given(st.lists(WHOLE | st.none()), st.randoms())
def test_integer_sums_are_exact_or_an_error(values, random):
    there = [v for v in values if v is not None]
    for op, total in ((sum_, sum(there)), (sum_of_squares, sum(v * v for v in there))):
        for form in forms(op, int):
            partial = bracketed(form, values, random)
            if not there:
                assert form.lower(partial) is None
            elif LEAST <= total <= MOST:
                assert form.lower(partial) == total
            else:
                with pytest.raises(OverflowError, match="leaves int64"):
                    form.lower(partial)


@given(st.lists(WHOLE | st.none()), st.lists(WHOLE | st.none()))
def test_integer_sums_have_an_exact_inverse(old, young):
    for op in (sum_, sum_of_squares, mean):
        tied = op.of(int)
        assert tied.inverse(tied.fold(old + young), tied.fold(old)) == tied.fold(young)
    assert count.inverse(count.fold(old + young), count.fold(old)) == count.fold(young)


@given(st.lists(WHOLE, min_size=1), st.randoms())
def test_the_mean_of_integers_is_a_float(values, random):
    want = float(Fraction(sum(values), len(values)))
    scale = max(abs(v) for v in values)
    for form in forms(mean, int):
        got = form.lower(bracketed(form, values, random))
        assert isinstance(got, float)
        assert math.isclose(got, want, rel_tol=1e-12, abs_tol=1e-12 * scale)


def test_only_the_window_s_own_sum_may_overflow():
    for form in forms(sum_, int):
        assert answer(form, [MOST, 1, -1]) == MOST
        assert answer(form, [LEAST, -1, 1]) == LEAST
        assert answer(form, [MOST] * 5 + [-MOST] * 5) == 0
        for wrong in ([MOST, 1], [LEAST, -1]):
            with pytest.raises(OverflowError):
                answer(form, wrong)
    for form in forms(mean, int):
        assert answer(form, [MOST, MOST]) == float(MOST)


def test_bools_add_up_as_zero_and_one():
    for form in forms(sum_, bool):
        assert answer(form, [True, None, True, False]) == 2
        assert type(answer(form, [True])) is int
    for form in forms(mean, bool):
        assert answer(form, [True, False]) == 0.5


def test_numpy_scalars_in_a_list_count_as_python_numbers():
    big = [np.int64(MOST), np.int64(1), np.int64(-1)]
    assert answer(sum_, big) == MOST
    assert answer(sum_of_squares, [np.int32(2**20)] * 2) == 2**41
    assert answer(sum_, [np.float32(0.5), np.True_]) == 1.5
    with pytest.raises(OverflowError):
        answer(sum_, big[:2])


# floats


@given(st.lists(MODEST | st.none()), st.randoms())
def test_float_sums_means_and_products(values, random):
    there = [v for v in values if v is not None]
    scale = sum(abs(v) for v in there)
    squares = math.fsum(v * v for v in there) if there else None
    expected = {
        sum_: math.fsum(there) if there else None,
        sum_of_squares: squares,
        mean: math.fsum(there) / len(there) if there else None,
    }
    for op, want in expected.items():
        for form in forms(op, float):
            assert near(form.lower(bracketed(form, values, random)), want, scale), form
    for form in forms(count, float):
        assert answer(form, values) == len(values)
        assert answer(form.ignore_nulls(), values) == len(there)


@given(st.lists(st.floats(0.5, 2.0) | st.none(), max_size=30), st.randoms())
def test_products_and_geometric_means(values, random):
    there = [v for v in values if v is not None]
    for form in forms(product, float):
        want = math.prod(there) if there else None
        assert near(form.lower(bracketed(form, values, random)), want, 2.0 ** len(there))
    for form in forms(geometric_mean, float):
        want = statistics.geometric_mean(there) if there else None
        assert near(form.lower(bracketed(form, values, random)), want)


@given(st.lists(MODEST | st.none()), st.randoms())
def test_variances(values, random):
    exact = [Fraction(v) for v in values if v is not None]
    sample = float(statistics.variance(exact)) if len(exact) > 1 else None
    whole = float(statistics.pvariance(exact)) if exact else None
    expected = {
        variance: sample,
        population_variance: whole,
        stddev: None if sample is None else math.sqrt(sample),
        population_stddev: None if whole is None else math.sqrt(whole),
    }
    for op, want in expected.items():
        for form in forms(op, float):
            got = form.lower(bracketed(form, values, random))
            if op in (stddev, population_stddev) and want is not None:
                assert math.isclose(got, want, rel_tol=1e-7, abs_tol=1e-7)
            else:
                assert near(got, want), form


def test_a_small_variance_far_from_zero_is_not_lost():
    values = [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]
    for form in forms(variance, float):
        assert answer(form, values) == 30.0
    for form in forms(variance, int):
        assert answer(form, [int(v) for v in values]) == 30.0


def test_nan_and_infinity_reach_the_answer():
    for op in (sum_, sum_of_squares, mean, product, variance, stddev, geometric_mean):
        for form in forms(op, float):
            assert math.isnan(answer(form, [1.0, NAN, 2.0])), form
    for form in (*forms(sum_, float), *forms(mean, float)):
        assert answer(form, [INF, 1.0]) == INF
        assert math.isnan(answer(form, [INF, -INF]))
    for form in (*forms(variance, float), *forms(population_variance, float)):
        assert math.isnan(answer(form, [INF, 1.0]))
    for form in forms(geometric_mean, float):
        assert answer(form, [0.0, 4.0]) == 0.0
        assert math.isnan(answer(form, [-1.0, 4.0]))
        assert answer(form, [INF, 4.0]) == INF
        assert near(answer(form, [1e300] * 100), 1e300, 1e300)


def test_a_float_sum_tells_zero_from_nothing():
    for form in forms(sum_, float):
        assert answer(form, []) is None
        assert answer(form, [None]) is None
        assert answer(form, [-0.0]) == 0.0
        assert answer(form, [-0.0, -0.0, None]) == 0.0
        assert answer(form, [1.0, -1.0]) == 0.0
    for form in forms(sum_of_squares, float):
        assert answer(form, [-0.0]) == 0.0


def test_few_values():
    for op in (variance, stddev):
        for form in forms(op, float):
            assert answer(form, [3.0]) is None
    for op in (population_variance, population_stddev):
        for form in forms(op, float):
            assert answer(form, [3.0]) == 0.0
            assert answer(form, []) is None
    for form in forms(count, float):
        assert answer(form, []) == 0
        assert answer(form, [None, None]) == 2


def test_other_numbers():
    assert answer(sum_, [Decimal("0.1"), Decimal("0.2")]) == Decimal("0.3")
    assert answer(mean, [Fraction(1, 3), Fraction(2, 3)]) == Fraction(1, 2)


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="no number"):
        sum_.lift("3")
    for op in (sum_, mean, product, variance, geometric_mean, sum_of_squares):
        for type_ in (str, "timestamp"):
            with pytest.raises(TypeError, match="takes numbers"):
                op.of(type_)


# regression


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50))), st.randoms())
def test_regression(points, random):
    xs, ys = [x for x, _ in points], [y for _, y in points]
    for form in forms(linear_regression, int, int):
        got = form.lower(bracketed(form, points, random))
        if len(set(xs)) < 2:
            assert got is None
            continue
        slope, intercept = statistics.linear_regression(xs, ys)
        assert near(got[0], slope)
        assert near(got[1], intercept, 50)
        fit = statistics.correlation(xs, ys) ** 2 if len(set(ys)) > 1 else 1.0
        assert near(got[2], fit)


def test_regression_by_hand():
    for form in forms(linear_regression, float, float):
        assert answer(form, [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, None)]) == (2.0, 1.0, 1.0)
        assert answer(form, [(1.0, 2.0)]) is None
        assert answer(form, [(1.0, 2.0), (1.0, 3.0)]) is None
        assert answer(form, [(1.0, 2.0), (2.0, 2.0)]) == (0.0, 2.0, 1.0)
        assert math.isnan(answer(form, [(1.0, 2.0), (2.0, NAN)])[0])
        tiny = answer(form, [(0.0, 0.0), (1e-100, 1e-100), (3e-100, 1e-100)])
        assert near(tiny[0], 2 / 7)
        assert near(tiny[2], 4 / 7)


# equality up to rounding


def test_close_knows_rounding_from_difference():
    assert close((1, 0.1 + 0.2), (1, 0.3))
    assert close((1, NAN, INF), (1, NAN, INF))
    assert not close((1, 1.0), (1, 1.001))
    assert not close(INF, 1.0)
    assert not close(INF, -INF)
    assert not close(NAN, 1.0)
    assert close((2, Decimal("1.1")), (2, Decimal("1.1000000000000000000001")))


@given(st.lists(MODEST, min_size=1), st.randoms())
def test_declared_commutative_and_equal_when_shuffled(values, random):
    shuffled = random.sample(values, len(values))
    for op in (sum_, mean, variance, product, sum_of_squares):
        assert op.commutative
        for form in forms(op, float):
            a, b = form.fold(values), form.fold(shuffled)
            assume(op is not product or abs(form.lower(a)) < 1e300)
            if op in (sum_, mean):
                assert near(form.lower(a), form.lower(b), sum(abs(v) for v in values))
            else:
                assert form.equal(a, b), form


def test_float_sums_declare_no_inverse():
    for op in (sum_, mean, sum_of_squares):
        assert not op.of(float).invertible
        assert op.of(int).invertible
    assert count.invertible


# compiled


@pytest.mark.parametrize(
    "column",
    [
        np.array([MOST, 1, -1, -5, LEAST, 0, MOST]),
        np.ma.MaskedArray([5, 7, -2, 9], mask=[True, False, True, True]),
        np.array([1.5, -0.0, INF, -INF, NAN, 2.0, 3.0, 4.0, 5.0]),
        np.array([True, True, False, True]),
    ],
    ids=["int64", "nulls", "float64", "bool"],
)
def test_compiled_sum_and_count_agree_with_generic(column):
    values = column.tolist()
    size = 1 if MOST in values else 3
    window = TwoStacksLite(together(sum_, count))  # in one kernel
    for op, got in zip((sum_, count), window.slide(column, size), strict=True):
        assert window.operator.types
        assert same(got.tolist(), TwoStacksLite(op).slide(values, size))


def test_compiled_sum_overflows_only_where_the_answer_does():
    tied = sum_.of(int)
    window = TwoStacksLite(tied)
    with pytest.raises(OverflowError, match="row 1: the sum leaves int64"):
        window.slide(np.array([MOST, 1, -1]), 3)
    window = TwoStacksLite(tied)
    for x in (MOST, 1, -1):
        window.insert(x)
    assert window.query() == MOST
