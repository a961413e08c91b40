"""The oracle against answers worked out by hand, and every ready operator against the oracle."""

import math
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import operators as o
from sash.operators.contract import Operator
from sash.operators.together import together
from sash.testing import agrees, answer, values_of
from thinning import examples

NAN, INF = math.nan, math.inf
BY_HAND = [
    # adding up
    (o.count, [], 0),
    (o.count, [5, None, 5], 3),
    (o.count.ignore_nulls(), [5, None, 5], 2),
    (o.sum, [], None),
    (o.sum, [None], None),
    (o.sum, [1, None, 5], 6),
    (o.sum, [True, True], 2),
    (o.sum, [1, 2.5], 3.5),
    (o.sum, [2**62, 2**62, -(2**62)], 2**62),
    (o.sum, [1e16, 1.0, -1e16], 1.0),
    (o.sum, [1.0, NAN], NAN),
    (o.sum, [INF, -INF], NAN),
    (o.sum, [INF, 1.0], INF),
    (o.sum, [Decimal("0.1"), Decimal("0.2")], Decimal("0.3")),
    (o.sum_of_squares, [3, None, -4], 25),
    (o.sum_of_squares, [0.5, 1], 1.25),
    (o.sum_of_squares, [INF, -INF], INF),
    (o.sum_of_squares, [INF, NAN], NAN),
    (o.sum_of_squares, [], None),
    (o.product, [2, 3, None, -4], -24.0),
    (o.product, [], None),
    (o.product, [0.0, INF], NAN),
    (o.product, [-2.0, INF], -INF),
    (o.mean, [1, 2, None], 1.5),
    (o.mean, [2**62] * 4, float(2**62)),
    (o.mean, [None], None),
    (o.mean, [1, NAN], NAN),
    (o.geometric_mean, [1, 4, 16], 4.0),
    (o.geometric_mean, [1, 0], 0.0),
    (o.geometric_mean, [1, -1], NAN),
    (o.geometric_mean, [INF, 0.0], NAN),
    (o.geometric_mean, [], None),
    (o.variance, [2, 4, 4, 4, 5, 5, 7, 9], 32 / 7),
    (o.variance, [3], None),
    (o.variance, [1.0, INF], NAN),
    (o.variance, [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], 30.0),
    (o.population_variance, [2, 4, 4, 4, 5, 5, 7, 9], 4.0),
    (o.population_variance, [3], 0.0),
    (o.population_variance, [INF], NAN),
    (o.population_variance, [], None),
    (o.stddev, [1, 3, None], math.sqrt(2)),
    (o.stddev, [1], None),
    (o.population_stddev, [2, 4, 4, 4, 5, 5, 7, 9], 2.0),
    (o.population_stddev, [], None),
    (o.linear_regression, [(0, 1), (1, 3), (2, 5)], (2.0, 1.0, 1.0)),
    (o.linear_regression, [(0, 0), (1, 1), (2, 0), (None, 9), (9, None)], (0.0, 1 / 3, 0.0)),
    (o.linear_regression, [(1, 1), (1, 2)], None),
    (o.linear_regression, [(1, 1)], None),
    (o.linear_regression, [(1, 4), (2, 4)], (0.0, 4.0, 1.0)),
    (o.linear_regression, [(1, 4), (2, NAN)], (NAN, NAN, NAN)),
    # order
    (o.max, [3, None, 9, 4], 9),
    (o.max, [-3, -9], -3),
    (o.max, [], None),
    (o.max, [1.0, NAN, INF], NAN),
    (o.max, ["b", "a"], "b"),
    (o.min, [3, None, -9, 4], -9),
    (o.min, [NAN, 5.0], 5.0),
    (o.min, [NAN], NAN),
    (o.min.of(bool), [True, False], False),
    (o.span, [3, 9, None, 4], 6),
    (o.span, [1.0, NAN], NAN),
    (o.span, [None], None),
    (o.span, [datetime(2020, 1, 2), datetime(2020, 1, 1)], datetime(1, 1, 2) - datetime(1, 1, 1)),
    (o.min_count, [1, 2, 1, None], 2),
    (o.min_count, [0.0, -0.0, 1.0], 2),
    (o.max_count, [NAN, 1.0, NAN], 2),
    (o.max_count, [], 0),
    (o.arg_max, [("a", 1), ("b", 7), ("c", 7), ("d", None)], "b"),
    (o.arg_max, [("a", 1), ("b", NAN), ("c", NAN)], "b"),
    (o.arg_max, [(None, 2), ("a", 1)], None),
    (o.arg_max, [], None),
    (o.arg_min, [("a", 1), ("b", 0), ("c", 0), ("d", NAN)], "b"),
    (o.arg_min, [("a", 0.0), ("b", -0.0)], "a"),
    # position
    (o.first, [None, 2, 3], None),
    (o.first.ignore_nulls(), [None, 2, 3], 2),
    (o.first, [], None),
    (o.last, [1, 2, None], None),
    (o.last.ignore_nulls(), [1, 2, None], 2),
    (o.first_n(2), [1, None, 3], (1, None)),
    (o.first_n(2), [1], (1,)),
    (o.last_n(2), [1, None, 3], (None, 3)),
    (o.last_n(2), [], ()),
    (o.nth_youngest(1), [1, 2, 3], 3),
    (o.nth_youngest(3), [1, 2, 3], 1),
    (o.nth_youngest(4), [1, 2, 3], None),
    (o.m4, [(1, 5), (2, 9), (3, None), (4, 2), (5, 9), (6, 2), (7, 3)], (1, 5, 7, 3, 4, 2, 2, 9)),
    (o.m4, [(1, NAN), (2, 3.0)], (1, NAN, 2, 3.0, 2, 3.0, 1, NAN)),
    (o.m4, [(None, 1)], None),
    # runs:      3 5 | 4 6 9 | 2
    (o.longest_run, [(10, 3), (20, 5), (30, 4), (45, 6), (50, 9), (60, 2)], (30, 50, 20, 3)),
    (o.longest_run, [(1, 1), (2, 2), (3, 1), (4, 2)], (1, 2, 1, 2)),
    (o.longest_run, [(1, 5), (2, 5)], (1, 1, 0, 1)),
    (o.longest_run, [(1, 5), (2, INF), (3, NAN), (4, NAN)], (1, 3, 2, 3)),
    (o.longest_run, [(1, 5), (2, None), (3, 6)], (1, 3, 2, 2)),
    (o.longest_run, [], None),
    # collections
    (o.collect, [3, None, 1, 3], [3, 1, 3]),
    (o.collect, [None], []),
    (o.collect_distinct, [3, None, 1, 3, NAN, 1.0, float("nan")], [3, 1, NAN]),
    (o.count_distinct, [3, None, 1, 3, NAN, NAN, 0.0, -0.0], 4),
    (o.count_distinct, [], 0),
    (o.concat, ["b", None, "", "a"], "ba"),
    (o.concat, [], None),
    (o.concat, [""], ""),
    # together
    (together(o.sum, o.max), [3, None, 9], (12, 9)),
    (together(o.sum, o.arg_max, columns=[0, (0, 1)]), [(3, 1), (4, 0)], (7, 3)),
    (together(o.count, together(o.min, o.max)), [4, 2], (2, (2, 4))),
    (together(o.sum, o.max), [], (None, None)),
]  # fmt: skip


def alike(a: object, b: object) -> bool:
    """Equal, with NaN equal to NaN and floats to the last digits, but types kept apart."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or a == b or math.isclose(a, b, rel_tol=1e-14)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(("op", "values", "expected"), BY_HAND, ids=lambda x: str(x)[:40])
def test_by_hand(op: Operator, values: list[object], expected: object) -> None:
    assert alike(answer(op, values), expected)
    assert agrees(op, values, expected)


@pytest.mark.parametrize(("op", "values", "expected"), BY_HAND, ids=lambda x: str(x)[:40])
def test_operators_by_hand(op: Operator, values: list[object], expected: object) -> None:
    """The ready operators give the answers worked out by hand, too."""
    got = op.python_lower()(op.fold(values))
    assert agrees(op, values, got)


@pytest.mark.parametrize(
    ("op", "values"),
    [
        (o.sum, [2**63 - 1, 1]),
        (o.sum, [-(2**63), -1]),
        (o.sum.of(int), [2**63 - 1, 1]),
        (o.sum_of_squares.of(int), [2**32]),
        (o.span.of(int), [-(2**63), 1]),
        (o.longest_run.of(int, int), [(-(2**63), 1), (2**62, 2)]),
        (o.longest_run.of(int, str), [(-(2**63), "a"), (2**62, "b")]),
        (together(o.max, o.sum), [2**63 - 1, 1]),
    ],
)
def test_answers_that_leave_int64(op: Operator, values: list[object]) -> None:
    with pytest.raises(OverflowError):
        answer(op, values)
    with pytest.raises(OverflowError) as caught:
        op.python_lower()(op.fold(values))
    assert agrees(op, values, caught.value)
    assert not agrees(op, values, 0)
    assert not agrees(op, values[:1] if len(op.skips) == 2 else [1], caught.value)


def test_values_take_the_types_of_a_tied_operator() -> None:
    assert answer(o.max.of(float), [1, 2]) == 2.0
    assert type(answer(o.max.of(float), [1, 2])) is float
    when = datetime(2020, 1, 1, tzinfo=UTC)
    micros = 1_577_836_800_000_000
    assert answer(o.max.of("timestamp"), [when, micros - 1]) == micros
    assert agrees(o.max.of("timestamp"), [micros], np.datetime64(micros, "us"))
    assert agrees(o.first.of("timestamp"), [np.datetime64(-1, "ns")], np.datetime64(-1, "us"))
    assert agrees(o.max, [when], when)


def test_judging_is_strict_where_it_must_be() -> None:
    assert not agrees(o.sum, [1, 2], None)
    assert not agrees(o.sum, [], 0)
    assert not agrees(o.sum, [2**60, 1], float(2**60))
    assert not agrees(o.max, [0.1, 0.2], 0.2 + 1e-16 * 8)
    assert not agrees(o.max, [1.0], NAN)
    assert not agrees(o.max, [NAN], 1.0)
    assert not agrees(o.sum, [INF], 1e308)
    assert not agrees(o.mean, [1.0, 2.0], 1.5 + 1e-6)
    assert not agrees(o.collect, [1, 2], [2, 1])
    assert not agrees(o.collect, [1, 2], [1])
    assert not agrees(o.collect, [1], 1)
    assert not agrees(o.variance, [1.0, 2.0, 4.0], 2.0)
    assert not agrees(o.linear_regression, [(0, 1), (1, 3), (2, 5)], (2.0, 1.1, 1.0))
    assert not agrees(together(o.sum, o.max), [1, 2], (3, 1))
    assert not agrees(together(o.sum, o.max), [1, 2], (3,))
    assert not agrees(o.sum, [1], OverflowError())
    assert not agrees(o.concat, ["a"], 1)


def test_judging_allows_for_rounding_of_what_cancels() -> None:
    assert agrees(o.sum, [1e9, 0.1, -1e9], (1e9 + 0.1) - 1e9)
    assert agrees(o.mean, [1e9, 0.1, -1e9], ((1e9 + 0.1) - 1e9) / 3)
    assert agrees(o.variance, [0.1] * 7, 1e-33)


def test_an_operator_of_ones_own() -> None:
    clamped = sash.operator(
        identity=0, lift=lambda x: x, combine=lambda a, b: min(a + b, 100), name="clamped"
    )

    def definition(values: list[int]) -> int:
        return min(sum(values), 100)

    assert answer(clamped, [30, None, 50], definition=definition) == 80
    assert agrees(clamped, [30, 50, 40], clamped.fold([30, 50, 40]), definition=definition)
    assert not agrees(clamped, [30], 31, definition=definition)
    with pytest.raises(TypeError, match="the oracle has no definition of <operator clamped>"):
        answer(clamped, [1])
    with pytest.raises(TypeError, match="judged by agrees"):
        answer(o.hll(), [1])


def test_ready_operators_agree(form: Operator) -> None:
    lower = form.python_lower()

    @settings(max_examples=examples(15))
    @given(st.lists(values_of(form), max_size=12))
    def judge(values: list[object]) -> None:
        try:
            got = lower(form.fold(values))
        except OverflowError as error:
            got = error
        assert agrees(form, values, got), (values, got)

    judge()


# Sketches: right ones keep their promise at sizes where they really estimate, wrong ones don't


def folded(op: Operator, values: list[object]) -> object:
    """The answer by a tree of halves, quicker than one by one for sketches."""
    lift, combine = op.python_lift(), op.python_combine()
    partials = [lift(v) for v in values] or [op.identity]
    while len(partials) > 1:
        odd = partials[len(partials) // 2 * 2 :]
        pairs = zip(partials[::2], partials[1::2], strict=False)
        partials = [combine(a, b) for a, b in pairs] + odd
    return op.python_lower()(partials[0])


def test_bloom_filters() -> None:
    op = o.bloom(10_000)
    held: list[object] = [f"value {i}" for i in range(900)] + [1, 2.5, NAN, -0.0, True]
    got = folded(op, held)
    assert agrees(op, held, got)
    assert not agrees(op, [*held, "one more", "and more", "and yet more"], got)
    full = np.full_like(got, 2**64 - 1)  # type: ignore[call-overload]
    full[-1] = 7
    assert not agrees(op, held, full)
    assert agrees(op, [], folded(op, []))
    small = o.bloom(64, 2)
    assert agrees(small, held, folded(small, held))  # full, as its formula says


def test_count_min_sketches() -> None:
    op = o.count_min(40, 4)
    values: list[object] = [i % 83 for i in range(400)] + [1.0, NAN, None]
    got = folded(op, values)
    assert agrees(op, values, got)
    assert not agrees(op, [*values, 1], got)
    assert not agrees(op, values, got + 1)  # type: ignore[operator]
    assert agrees(op, [], folded(op, []))


def test_hyperloglog_sketches() -> None:
    op = o.hll(8)
    values: list[object] = [f"value {i % 1500}" for i in range(2000)]
    got = folded(op, values)
    assert agrees(op, values, got)
    assert not agrees(op, values, got * 1.5)  # type: ignore[operator]
    assert agrees(op, [], 0.0)
    assert not agrees(op, [1], 0.0)
    assert not agrees(op, [1], None)


def test_quantiles_sketches() -> None:
    op = o.quantiles(50, at=(0.0, 0.5, 0.9))
    values: list[object] = [(i * 7919) % 1000 for i in range(1000)]
    got = folded(op, values)
    assert agrees(op, values, got)
    assert not agrees(op, values, (0.0, 800.0, 900.0))
    assert not agrees(op, values, (0.0, 500.0))
    assert not agrees(op, values, None)
    few: list[object] = [3, 1, NAN, 2, 4]
    assert agrees(op, few, (1.0, 2.0, 4.0))
    assert not agrees(op, few, (1.0, 3.0 + 1e-3, 4.0))
    assert agrees(op, [NAN, None], None)
    assert not agrees(op, [], (0.0, 0.0, 0.0))


def test_top_k_sketches() -> None:
    op = o.top_k(2)
    assert agrees(op, ["b", "a", "c", "a", "b", "a"], [("a", 3), ("b", 2)])
    assert not agrees(op, ["b", "a", "c", "a", "b", "a"], [("a", 3), ("c", 1)])
    assert not agrees(op, ["b", "a", "a"], [("a", 3), ("b", 1)])
    assert agrees(op, [None], [])
    many: list[object] = [f"rare {i}" for i in range(1500)]
    many += ["frequent"] * 60 + ["as well"] * 50
    got = folded(op, many)
    assert agrees(op, many, got)
    assert not agrees(op, many, [("frequent", 60), ("rare 1", 1)])
    assert not agrees(op, many, [("frequent", 600), ("as well", 50)])
