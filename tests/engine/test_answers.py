"""Answers that cannot be converted: they are null, with a warning, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.kernels.program import jit_enabled

W = sash.tumbling(10)


def own(lower: Callable[[Any], Any]) -> sash.Operator:
    """The last value, told in some way."""
    return sash.operator(
        identity=(),
        lift=lambda x: (x,),
        combine=lambda a, b: b or a,
        lower=lambda a: lower(a[0]) if a else None,
        compile=False,
        name="own",
    )


def query(select: Any, **more: Any) -> sash.Query:
    return sash.Query(time="t", window=W, select={"v": select}, **more)


@pytest.mark.parametrize("compiled", [True, False])
def test_an_answer_that_does_not_fit_is_null(compiled: bool) -> None:
    largest = sash.operator(
        identity=0, lift=lambda x: x, combine=lambda a, b: max(a, b), name="largest"
    )
    operator = largest if compiled else own(lambda x: x)
    s = query(sash.aggregate(operator, "x", returns=pa.int32())).stream()
    with pytest.warns(RuntimeWarning, match=r"1 window\(s\) have no answer"):
        made = s.push({"t": [1, 11, 21, 31], "x": [3, 2**40 + 2, 5, 0]})
    assert made["v"].to_pylist() == [3, None, 5]
    assert made["v"].type == pa.int32()
    assert s.close()["v"].to_pylist() == [0]


def test_answers_of_several_types_in_one_push() -> None:
    odd = own(lambda x: "odd" if x == 7 else x + 0.5 if x > 8 else x)
    s = query(sash.aggregate(odd, "x")).stream()
    with pytest.warns(RuntimeWarning, match="an answer is string, and others are"):
        made = s.push({"t": [1, 11, 21, 31], "x": [6, 7, 9, 0]})
    assert made["v"].to_pylist() == [6.0, None, 9.5]


def test_changes_between_answers_of_two_types() -> None:
    def told(x: Any) -> Any:
        return {6: 6.5, 7: "odd", 8: 2**60 + 1}.get(x, x)

    s = query(sash.aggregate(own(told), "x"), emit="changes").stream()
    found: list[Any] = []
    for i, x in enumerate([5, 5, 6, 6, 5, 8, 6, 7, 7, 5, 0]):
        found += s.push({"t": 10 * i, "x": x})["v"].to_pylist()
    assert found == [5, 6.5, 5, 2**60 + 1, 6.5, "odd", 5]


@pytest.mark.skipif(not jit_enabled(), reason="only compiled answers have a type beforehand")
def test_a_type_that_answers_cannot_have_is_refused_at_once() -> None:
    most = sash.operator(
        identity=0.0, lift=lambda x: x, combine=lambda a, b: max(a, b), name="most"
    )
    s = query(sash.aggregate(most, "x", returns=pa.date32())).stream()
    with pytest.raises(TypeError, match="let `returns` have another type"):
        s.push({"t": [1, 11], "x": [1.5, 2.5]})
    assert s.counts["rows"] == 0
