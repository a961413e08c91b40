"""The registry of ready operators: complete, true, and no concern of a user's operators."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash import operators as ops
from sash.operators import Operator
from sash.query.registry import REGISTRY, counts_rows, is_nullable, result_type
from sash.testing import agrees, answer, counting

#: A ready operator of each name; the factories with some parameters.
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "bloom": (64,),
    "count_min": (8, 2),
    "ewm": (1000,),
    "first_n": (2,),
    "hll": (),
    "last_n": (2,),
    "nth_youngest": (2,),
    "quantile": (0.5,),
    "quantiles": (),
    "rate": (60.0,),
    "top_k": (2,),
}
READY = {
    name: facts.make if isinstance(facts.make, Operator) else facts.make(*PARAMETERS[name])
    for name, facts in REGISTRY.items()
}
HALF_COUNT = sash.operator(
    identity=0.0, lift=lambda x: 0.5, combine=ops.count.combine, name="count"
)


def test_every_ready_operator_and_every_alias_has_its_row() -> None:
    rows = {name: facts.make for name, facts in REGISTRY.items()}
    rows |= {alias: facts.make for facts in REGISTRY.values() for alias in facts.aliases}
    others = {"Operator", "operator", "together", "estimate", "might_contain"}
    assert rows == {name: getattr(ops, name) for name in set(ops.__all__) - others}


@pytest.mark.parametrize("name", READY)
def test_an_operator_is_ready_whatever_is_done_with_it(name: str) -> None:
    op = READY[name]
    forms = [op, op.ignore_nulls(), counting(op).operator]
    for type_ in ("int64", "float64", "timestamp", "bool", "object"):
        try:
            forms.append(op.of(*(type_,) * len(op.skips)))
        except TypeError:
            continue
    assert len(forms) > 3
    assert {form.ready for form in forms} == {name}
    assert {form.commutative for form in forms} == {op.commutative}, "types do not decide it"


@pytest.mark.parametrize("name", READY)
def test_an_answer_is_null_over_nothing_if_it_can_be_null(name: str) -> None:
    op = READY[name].ignore_nulls()
    lower = op.python_lower()
    nothing = None if len(op.skips) == 1 else (None,) * len(op.skips)
    assert (lower(op.fold([nothing])) is None) == (lower(op.fold([])) is None) == is_nullable(op)


def test_a_copy_in_another_process_is_ready_and_a_changed_one_is_not() -> None:
    assert pickle.loads(pickle.dumps(ops.count)).ready == "count"
    assert dataclasses.replace(ops.max, lower=lambda a: 1).ready == ""
    assert ops.together(ops.max, ops.min).ready == ""


def test_only_count_counts_rows() -> None:
    assert [name for name, op in READY.items() if counts_rows(op)] == ["count"]
    halved = dataclasses.replace(ops.count, lower=lambda n: n / 2)
    for op in (HALF_COUNT, halved, ops.count.ignore_nulls()):
        assert not counts_rows(op)
        with pytest.raises(TypeError, match="count reads 1 column, and was given none"):
            sash.aggregate(op)


def test_an_operator_of_a_ready_one_s_name_has_its_own_answers() -> None:
    """Half a row each: were it taken for the ready count, its answers would be whole numbers."""
    chosen = sash.aggregate(HALF_COUNT, "x")
    assert result_type(chosen, [pa.int64()]) is None
    assert is_nullable(HALF_COUNT)
    q = sash.Query(time="t", window=sash.tumbling(10), select={"n": chosen})
    assert q.run(pa.table({"t": [1, 2, 3], "x": [1, 2, 3]}))["n"].to_pylist() == [1.5]


def test_the_oracle_has_no_definition_of_an_operator_of_a_ready_one_s_name() -> None:
    least = sash.operator(identity=9, lift=lambda x: x, combine=min, name="max")
    with pytest.raises(TypeError, match="the oracle has no definition of <operator max>"):
        answer(least, [1, 2])
    assert agrees(least, [1, 2], 1, definition=min)
