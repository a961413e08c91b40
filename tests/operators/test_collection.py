"""collect, collect_distinct, concat and count_distinct, against plain lists."""

import math
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import collect, collect_distinct, concat, count_distinct
from sash.operators.contract import same

NAN = math.nan
SCALARS = st.one_of(
    st.integers(-2, 2),
    st.sampled_from([NAN, -0.0, 0.0, 1.0, math.inf, 2**63 - 1, -(2**63), 2**70]),
    st.text("ab", max_size=2),
    st.binary(max_size=1),
    st.booleans(),
)
PLAIN = SCALARS | st.lists(SCALARS, max_size=2) | st.tuples(SCALARS)
JOINED = st.one_of(
    st.lists(st.text("ab", max_size=2) | st.none()),
    st.lists(st.binary(max_size=2) | st.none()),
    st.lists(st.lists(st.integers(0, 2), max_size=2) | st.none()),
    st.lists(st.tuples(st.integers(0, 2)) | st.none()),
)


def answer(op, values):
    return op.lower(op.fold(values))


def bracketed(op, values, random):
    if len(values) <= 1 and random.random() < 0.8:
        return op.python_lift()(values[0]) if values else op.identity
    cut = random.randint(0, len(values))
    return op.combine(bracketed(op, values[:cut], random), bracketed(op, values[cut:], random))


def distinct(values):
    found = []
    for v in values:
        if v is not None and not any(same(v, x) and is_list(v) == is_list(x) for x in found):
            found.append(v)
    return found


def is_list(value):
    return isinstance(value, list)


@given(st.lists(PLAIN | st.none()), st.randoms())
def test_against_lists(values, random):
    expected = {
        collect: [v for v in values if v is not None],
        collect_distinct: distinct(values),
        count_distinct: len(distinct(values)),
    }
    for op, want in expected.items():
        partial = bracketed(op, values, random)
        assert same(op.lower(partial), want)
        assert same(op.lower(op.decode(op.encode(partial))), want)
        assert (op.equal or same)(partial, op.fold(values))
        assert (op.equal or same)(partial, op.decode(op.encode(partial)))


@given(JOINED, st.randoms())
def test_concat_joins(values, random):
    there = [v for v in values if v is not None]
    want = None
    for v in there:
        want = v if want is None else want + v
    partial = bracketed(concat, values, random)
    assert concat.lower(partial) == want
    assert concat.decode(concat.encode(partial)) == partial


@given(JOINED, st.data())
def test_inverses_drop_the_prefix(values, data):
    cut = data.draw(st.integers(0, len(values)))
    for op in (collect, concat):
        left = op.inverse(op.fold(values), op.fold(values[:cut]))
        assert left == op.fold(values[cut:])


def test_declared_abilities():
    assert [op.commutative for op in (collect, collect_distinct, concat, count_distinct)] == [
        False,
        False,
        False,
        True,
    ]
    assert [op.invertible for op in (collect, collect_distinct, concat, count_distinct)] == [
        True,
        False,
        True,
        False,
    ]


def test_worked_examples():
    assert answer(collect, []) == []
    assert answer(collect, [None, None]) == []
    assert answer(collect, [3, None, 1]) == [3, 1]
    assert answer(count_distinct, [None]) == 0
    assert answer(concat, [None]) is None
    assert answer(concat, [""]) == ""
    assert answer(concat, ["a", None, "b"]) == "ab"
    assert answer(concat, [[1], [], [2]]) == [1, 2]
    assert answer(collect_distinct, [2, 1, 2, 3, 1]) == [2, 1, 3]


def test_which_values_are_equal():
    other_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    assert answer(count_distinct, [NAN, other_nan, np.float64("nan"), Decimal("nan")]) == 1
    assert answer(count_distinct, [-0.0, 0.0, 0, False]) == 1
    assert answer(count_distinct, ["1", 1, b"1"]) == 3
    assert answer(count_distinct, [[1, NAN], [1, NAN], (1, NAN)]) == 2
    assert answer(count_distinct, [{"a": 1, "b": 2}, {"b": 2, "a": 1}]) == 1
    kept = answer(collect_distinct, [-0.0, 0.0])
    assert len(kept) == 1
    assert math.copysign(1, kept[0]) == -1


def test_inverse_tells_an_empty_string_from_an_empty_window():
    total = concat.fold(["ab", ""])
    assert concat.lower(concat.inverse(total, concat.fold(["ab"]))) == ""
    assert concat.lower(concat.inverse(total, total)) is None


def test_an_answer_is_not_the_window_s_own_list():
    for op, given_ in ((concat, [1]), (collect, 1), (collect_distinct, 1)):
        partial = op.lift(given_)
        op.lower(partial).append(2)
        assert op.lower(partial) == [1]


def test_concat_refuses_what_has_no_plus_that_joins():
    for wrong in (1, 2.5, {"a"}):
        with pytest.raises(TypeError, match="concat joins"):
            concat.lift(wrong)
    with pytest.raises(TypeError):
        concat.fold(["a", b"b"])


@pytest.mark.parametrize("op", [collect, collect_distinct, count_distinct])
@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, -0.0, 0.0, NAN, NAN, math.inf]),
        np.array([1, 2, 2, 2**63 - 1, -(2**63)]),
        np.array([True, False, True]),
        np.array(["2024-01-01", "2024-01-02", "2024-01-01"], dtype="M8[us]"),
    ],
    ids=["float64", "int64", "bool", "timestamp"],
)
def test_arrays_agree_with_lists(op, column):
    values = list(column) if column.dtype.kind == "M" else column.tolist()
    got = TwoStacksLite(op).slide(column, 3)
    want = TwoStacksLite(op).slide(values, 3)
    assert all(same(a, b) for a, b in zip(got, want, strict=True))
    assert same(want, [answer(op, values[max(0, i - 2) : i + 1]) for i in range(len(values))])


def test_tied_to_types_they_stay_objects():
    for op in (collect, collect_distinct, count_distinct, concat):
        assert op.of("object").shape == "object"
        assert same(answer(op.of(str), ["a", None, "b"]), answer(op, ["a", None, "b"]))


def test_times_leave_and_come_back():
    times = [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), np.datetime64(5, "us")]
    assert collect.decode(collect.encode(collect.fold(times))) == tuple(times)
