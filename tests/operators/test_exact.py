"""Sums and means that are correctly rounded, whatever the order."""

import contextlib
import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.operators import exact_mean, exact_sum
from sash.operators.exact import _MANY, COUNT, DIGITS, _carry
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import batches
from thinning import examples

MOST = 1.7976931348623157e308
FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [1e308, -1e308, MOST, -MOST, 5e-324, -5e-324, 2.2250738585072014e-308, 1.0, 2.0**53, 0.5, -0.0]
)
SUM, MEAN = exact_sum.of(float), exact_mean.of(float)


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def bits(x: float) -> bytes:
    return np.float64(x).tobytes()


@given(st.lists(FINITE, min_size=1), st.randoms())
def test_floats_are_rounded_once(values, random):
    total = sum(map(Fraction, values), Fraction(0))
    cut = random.randint(0, len(values))
    for op, right in ((SUM, nearest(total)), (MEAN, nearest(total / len(values)))):
        partial = op.python_combine()(op.fold(values[cut:]), op.fold(values[:cut]))
        assert bits(op.lower(partial)) == bits(right + 0.0)
        left = op.python_inverse()(partial, op.fold(values[:cut]))
        assert (left == op.fold(values[cut:])).all()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_means_of_integers_are_rounded_once(values):
    op = exact_mean.of(int)
    assert op.lower(op.fold(values)) == nearest(Fraction(sum(values), len(values)))


@settings(max_examples=examples(500))
@given(st.integers(0, 2**62 - 1), st.integers(-1140, 970), st.integers(1, 40), st.booleans())
def test_ties_and_numbers_too_small_to_be_normal(whole, exponent, parts, negative):
    """A few neighbours of a tie, and quotients below the least float."""
    value = math.ldexp(float(whole >> 9), max(exponent, -1074))
    if not math.isfinite(value):
        return
    values = [-value if negative else value] + [0.0] * (parts - 1)
    values[-1] += math.copysign(5e-324, value) * (whole & 1)
    exact = sum(map(Fraction, values), Fraction(0))
    assert MEAN.lower(MEAN.fold(values)) == nearest(exact / len(values))


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ([1e308, 1.0, -1e308], 1.0),
        ([1e308, 1e308, -1e308], 1e308),
        ([MOST, MOST], math.inf),
        ([-MOST, -MOST], -math.inf),
        ([2.0**53, 1.0], 2.0**53),
        ([2.0**53, 1.0, 5e-324], 2.0**53 + 2),
        ([0.1] * 10, 1.0),
        ([-0.0], 0.0),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, math.inf], math.nan),
        ([], None),
        ([None], None),
    ],
)
def test_by_hand(values, right):
    got = SUM.lower(SUM.fold(values))
    assert got == right or (got != got and right != right)
    if right is not None and math.isfinite(right):
        with contextlib.suppress(OverflowError):  # which fsum raises for sums on its way
            assert got == math.fsum(values)


def test_digits_are_carried_on_before_they_overflow():
    one = SUM.fold([MOST, -1.5, 5e-324])
    held = one.copy()
    total = Fraction(MOST) - Fraction(3, 2) + Fraction(5e-324)
    for doubled in range(60):
        held = SUM.python_combine()(held, held)
        assert held[COUNT] == 3 << (doubled + 1)
        assert held[COUNT] < _MANY or (held[: DIGITS - 1] < 2**32).all()
    digits = held[:DIGITS].copy()
    _carry(digits)
    assert sum(int(d) * 2 ** (32 * i) for i, d in enumerate(digits)) == total * 2**60 * 2**1074
    back = SUM.python_inverse()(held, held)
    assert SUM.lower(back) is None
    assert not back.any()


def events(count=240):
    """Sums that cancel, and late in time what is no number."""
    source = random.Random(1)
    kinds = (1e308, -1e308, 1.0, 1e-300, -1.0, 3.3, 1e16, 0.1, None, math.inf, -math.inf, math.nan)
    times = [source.randrange(60) for _ in range(count)]
    return pa.table(
        {
            "t": [t * 1000 for t in times],
            "k": [source.choice("ab") for _ in times],
            "x": [source.choice(kinds if t > 50 else kinds[:9]) for t in times],
        }
    )


@pytest.mark.once
def test_tables_and_streams_agree_to_the_bit():
    """In any order of rows, any cutting, memory and store."""
    table = events()
    select = {"sum": sash.sum("x", exact=True), "mean": sash.mean("x", exact=True)}
    q = sash.Query(time="t", by=["k"], window=sash.sliding("12 ms", "3 ms"), select=select)
    right = q.run(table)
    windows = {}
    rows = table.to_pylist()
    for row in right.to_pylist():
        held = [
            r["x"]
            for r in rows
            if r["k"] == row["k"]
            and row["window_start"] <= r["t"] < row["window_end"]
            and r["x"] is not None
        ]
        if held and all(map(math.isfinite, held)):
            exact = sum(map(Fraction, held), Fraction(0))
            assert bits(row["sum"]) == bits(nearest(exact) + 0.0)
            assert bits(row["mean"]) == bits(nearest(exact / len(held)) + 0.0)
            windows[row["k"], row["window_start"]] = exact
    assert len(windows) > 20
    said = [str(row) for row in right.to_pylist()]
    turned = table.take(pa.array(random.Random(2).sample(range(len(table)), len(table))))
    assert [str(row) for row in q.run(turned).to_pylist()] == said
    for state in STATES:
        for most in (7, 200):
            s = open_stream(state, q, lateness="1 hour")
            given = [s.push(part) for part in batches(turned, seed=most, most=most)]
            got = pa.concat_tables([*given, s.close()])
            assert [str(row) for row in got.to_pylist()] == said
