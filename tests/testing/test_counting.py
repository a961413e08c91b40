"""Counts of an operator's calls, on every shape of partial."""

import numpy as np
import pytest

from sash import operators
from sash.aggregators.two_stacks_lite import TwoStacksLite
from sash.operators.contract import Operator, same
from sash.operators.together import together
from sash.testing import answer, counting, draw_value


def test_each_function_is_counted() -> None:
    counted = counting(operators.sum.of(int))
    op = counted.operator
    lift, combine, inverse = op.python_lift(), op.python_combine(), op.python_inverse()
    total = combine(lift(3), lift(4))
    assert op.lower is not None
    assert op.lower(inverse(total, lift(3))) == 4
    assert (counted.lifts, counted.combines, counted.inverses, counted.lowers) == (3, 1, 1, 1)
    counted.reset()
    assert (counted.lifts, counted.combines, counted.inverses, counted.lowers) == (0, 0, 0, 0)
    op.fold([1, 2])
    assert counted.combines == 2


def test_the_original_counts_nothing_and_two_copies_count_apart() -> None:
    one, two = counting(operators.max), counting(operators.max)
    operators.max.fold([1, 2, 3])
    one.operator.fold([1])
    assert (one.combines, two.combines) == (1, 0)
    assert "1 × combine" in repr(one)


def test_the_copy_is_the_same_operator(ready: Operator) -> None:
    import random

    source = random.Random(1)
    values = [draw_value(ready, source) for _ in range(9)]
    counted = counting(ready)
    op = counted.operator
    assert (op.name, op.shape, op.skips, op.commutative) == (
        ready.name, ready.shape, ready.skips, ready.commutative,
    )  # fmt: skip
    assert (op.inverse is None, op.encode is None) == (ready.inverse is None, ready.encode is None)
    equal = ready.equal or same
    assert equal(op.fold(values), ready.fold(values))
    assert counted.combines == 9
    assert not op.compile


@pytest.mark.parametrize("types", [(), ("int64",)])
def test_together_counts_one_combine_for_all(types: tuple[str, ...]) -> None:
    counted = counting(together(operators.sum, operators.max, operators.count_min(8, 2)))
    op = counted.operator.of(*types) if types else counted.operator
    partial = op.fold([3, None, 4])
    assert (counted.combines, counted.lifts) == (3, 3)
    assert op.lower is not None
    assert op.lower(partial)[:2] == (7, 4)
    assert (counted.combines, counted.lowers) == (3, 1)


def test_a_copy_tied_to_types_goes_on_counting() -> None:
    counted = counting(operators.max)
    tied = counted.operator.of(float)
    assert tied.types == ("float64",)
    assert tied.shape == operators.max.of(float).shape
    tied.fold([1.0, 2.0])
    assert (counted.combines, counted.lifts) == (2, 2)
    assert tied.of(float).combine is not None
    counting(operators.bloom(64)).operator.of(int).fold([1])
    untyped = counting(operators.collect)
    untyped.operator.of(int).fold([1, 2])
    assert untyped.combines == 2


def test_nulls_stay_skipped() -> None:
    counted = counting(operators.first)
    counted.operator.ignore_nulls().fold([None, 4])
    assert counted.lifts == 1


def test_an_aggregator_is_counted_insert_evict_query_and_slide() -> None:
    counted = counting(operators.max)
    window = TwoStacksLite(counted.operator)
    for x in (3, 9, 4):
        window.insert(x)
    assert (counted.lifts, counted.combines) == (3, 3)
    assert window.query() == 9
    assert counted.lowers == 1
    counted.reset()
    values = np.arange(50)
    slid = TwoStacksLite(counted.operator).slide(values, 8)
    assert slid.tolist() == values.tolist()
    assert 50 <= counted.combines <= 3 * 50
    assert counted.lowers == 50


def test_a_counted_vector_gives_the_same_answers() -> None:
    counted = counting(operators.count_min(8, 2))
    window = TwoStacksLite(counted.operator)
    plain = TwoStacksLite(operators.count_min(8, 2))
    for x in (3, 9, 4, 9):
        window.insert(x)
        plain.insert(x)
    window.evict()
    plain.evict()
    assert window.query().tolist() == plain.query().tolist()
    assert counted.combines > 0


def test_the_oracle_knows_a_counted_operator() -> None:
    assert answer(counting(operators.mean).operator, [1, 2]) == 1.5
