"""longest_run, against a plain scan for runs."""

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import longest_run
from sash.operators.contract import same

NAN, INF = math.nan, math.inf

VALUES = {
    "int64": st.integers(-4, 4) | st.sampled_from([2**63 - 1, -(2**63)]),
    "float64": st.sampled_from([NAN, INF, -INF, -0.0, 0.0, 1.0, 2.0, 3.0]),
    "bool": st.booleans(),
    "timestamp": st.integers(-4, 4),
}


def answer(op, rows):
    return op.lower(op.fold(rows))


def bracketed(op, rows, random):
    if len(rows) <= 1 and random.random() < 0.8:
        return op.python_lift()(rows[0]) if rows else op.identity
    cut = random.randint(0, len(rows))
    return op.combine(bracketed(op, rows[:cut], random), bracketed(op, rows[cut:], random))


def rises(a, b):
    return a < b or (b != b and a == a)


def scan(rows):
    """Every run in turn; the first of the longest."""
    rows = [(t, v) for t, v in rows if t is not None and v is not None]
    runs = []
    for row in rows:
        if runs and rises(runs[-1][-1][1], row[1]):
            runs[-1].append(row)
        else:
            runs.append([row])
    if not runs:
        return None
    best = max(runs, key=len)
    start, end = best[0][0], best[-1][0]
    return (start, end, end - start, len(best))


def test_worked_examples():
    values = [3, 5, 4, 6, 9, 2, 3, 4, 4]
    assert answer(longest_run, list(enumerate(values))) == (2, 4, 2, 3)
    assert answer(longest_run, []) is None
    assert answer(longest_run, [(1, None)]) is None
    assert answer(longest_run, [(7, 1.0)]) == (7, 7, 0, 1)
    assert answer(longest_run, [(1, 1), (2, None), (3, 2)]) == (1, 3, 2, 2)
    assert answer(longest_run, [(1, "a"), (2, "b"), (3, "b")]) == (1, 2, 1, 2)
    assert answer(longest_run, [(1, -0.0), (2, 0.0)])[3] == 1
    assert answer(longest_run, [(1, 1.0), (2, INF), (3, NAN), (4, NAN)])[3] == 3
    days = [(datetime(2024, 1, d), d) for d in (1, 2, 5)]
    assert answer(longest_run, days)[2] == datetime(2024, 1, 5) - datetime(2024, 1, 1)


def test_declared_as_order_sensitive():
    assert not longest_run.commutative
    assert not longest_run.invertible
    a, b = longest_run.lift(1, 1), longest_run.lift(2, 2)
    assert longest_run.combine(a, b) != longest_run.combine(b, a)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("time", ["int64", "timestamp", "float64"])
@given(data=st.data())
def test_both_forms_agree_with_a_scan(time, value, data):
    values = data.draw(st.lists(VALUES[value] | st.none(), max_size=14))
    steps = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
    times = np.cumsum(steps).tolist()
    if time == "float64":
        times = [t / 2 for t in times]
    rows, random = list(zip(times, values, strict=True)), data.draw(st.randoms())
    tied = longest_run.of(time, value)
    assert tied.shape == "tuple"
    for op in (tied, longest_run):
        assert same(op.lower(bracketed(op, rows, random)), scan(rows))
    coded = longest_run.decode(longest_run.encode(longest_run.fold(rows)))
    assert same(longest_run.lower(coded), scan(rows))


@given(st.data())
def test_partials_associate(data):
    spans = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=5)
    a, b, c = (longest_run.fold(data.draw(spans)) for _ in range(3))
    f = longest_run.combine
    assert f(f(a, b), c) == f(a, f(b, c))


def test_an_interval_that_leaves_int64_is_an_error():
    rows = [(-(2**63), 1), (2**63 - 1, 2)]
    for form in (longest_run, longest_run.of(int, int)):
        for wide in (rows, [(2**63 - 1, 1), (-(2**63), 2)], [(1, 1), (-(2**63), 2)]):
            with pytest.raises(OverflowError, match="interval"):
                answer(form, wide)
        assert answer(form, [(-1, 1), (2**63 - 2, 2)])[2] == 2**63 - 1
        assert answer(form, [(1, 1), (1 - 2**63, 2)])[2] == -(2**63)


def test_object_times_or_values_stay_objects():
    assert longest_run.of(int, str).shape == "object"
    assert longest_run.of(bool, int).shape == "object"
    assert longest_run.of("timestamp", int).returns == ("timestamp", "timestamp", "", "")


def test_compiled_agrees_with_generic():
    random = np.random.default_rng(3)
    for values in (
        random.integers(0, 4, 60),
        np.where(random.random(60) < 0.2, NAN, random.integers(0, 4, 60)),
    ):
        times = np.cumsum(random.integers(0, 3, 60))
        window = TwoStacksLite(longest_run)
        got = window.slide((times, values), 9)
        assert window.operator.types
        rows = list(zip(*(c.tolist() for c in got), strict=True))
        assert rows == TwoStacksLite(longest_run).slide((times.tolist(), values.tolist()), 9)
        held = list(zip(times.tolist(), values.tolist(), strict=True))
        assert rows == [scan(held[max(0, i - 8) : i + 1]) for i in range(60)]
