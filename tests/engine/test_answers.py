"""Answers that cannot be converted: they are null, with a warning, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.kernels.program import jit_enabled
from sash.testing.fuzz.streams import SELECTS
from sash.testing.stored import STATES, open_stream

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
    if compiled:  # of a lone value, the difference to what was before it is the value
        operator = SELECTS["in order"]["own"].operator
        select = SELECTS["in order"]
    else:
        operator, select = own(lambda x: x), {}
    v = sash.aggregate(operator, "n", returns=pa.int32())
    s = sash.Query(time="t", window=W, select={**select, "own": v}).stream()
    times, values = [1, 11, 21, 31], [3, 2**40 + 2, 5, 0]
    with pytest.warns(RuntimeWarning, match=r"1 window\(s\) have no answer"):
        made = s.push({"t": times, "n": values, "x": [0.5] * 4})
    made = made.rename_columns({"own": "v"})
    assert made["v"].to_pylist() == [3, None, 5]
    assert made["v"].type == pa.int32()
    assert s.close()["own"].to_pylist() == [0]


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


#: A sum that leaves int64 among others, over compiled aggregates of every shape and over objects.
MANY = {
    "n": sash.count(),
    "sum": sash.sum("x"),
    "span": sash.span("x"),
    "when": sash.last("at"),
    "ends": sash.m4("at", "x"),
    "seen": sash.bloom("x", bits=64),
    "all": sash.collect("x"),
}
BIG = 2**62
OVERFLOWING = pa.table(
    {
        "t": [1, 2, 11, 12, 13, 21],
        "x": pa.array([BIG, BIG, 1, -BIG, BIG, 7], pa.int64()),
        "at": pa.array([5, 6, 7, 8, 9, None], pa.timestamp("us")),
    }
)


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
def test_only_the_answer_that_does_not_exist_is_null(state: str) -> None:
    q = sash.Query(time="t", window=W, select=MANY)
    s = open_stream(state, q)
    with pytest.warns(RuntimeWarning, match=r"2 window.*span: the span leaves.*, sum: the sum"):
        made = pa.concat_tables([s.push(OVERFLOWING), s.close()])
    found = made.select(list(MANY)).to_pylist()
    assert [(row["sum"], row["span"]) for row in found] == [(None, 0), (1, None), (7, 0)]
    for i, (start, end) in enumerate([(0, 2), (2, 5), (5, 6)]):  # each aggregate by itself
        held = OVERFLOWING[start:end].to_pydict()
        for name in ("n", "when", "ends", "all"):
            assert found[i][name] == MANY[name].answer(held), name
        assert found[i]["seen"] == MANY["seen"].answer(held).tolist()


@pytest.mark.once
@pytest.mark.parametrize("state", STATES)
def test_only_the_compiled_answer_that_does_not_exist_is_null(state: str) -> None:
    q = sash.Query(time="t", window=W, select=SELECTS["numbers"])
    s = open_stream(state, q)
    given = {"t": [1, 2, 11], "i": [BIG, BIG, 7], "x": [1.0, 2.0, 4.0]}
    with pytest.warns(RuntimeWarning, match=r"1 window.*total: the sum leaves int64"):
        made = pa.concat_tables([s.push(given), s.close()]).select(list(SELECTS["numbers"]))
    assert [tuple(row.values()) for row in made.to_pylist()] == [(2, None, 2, 1.5), (1, 7, 4, 4)]


@pytest.mark.plain
def test_a_question_to_a_stream_lacks_only_what_does_not_exist() -> None:
    s = sash.Query(time="t", window=W, select=MANY).stream(lateness=100)
    s.push(OVERFLOWING)
    with pytest.warns(RuntimeWarning, match=r"1 window.*sum: the sum leaves int64"):
        found = s.query(lo=0, hi=10)
    assert (found["n"], found["sum"], found["span"], found["all"]) == (2, None, 0, [BIG, BIG])


@pytest.mark.plain
def test_run_names_the_answer_that_does_not_exist() -> None:
    q = sash.Query(time="t", window=W, select=MANY)
    with pytest.raises(OverflowError, match=r"^sum: the sum leaves int64 in the .*from 0 to 10$"):
        q.run(OVERFLOWING)


@pytest.mark.parametrize("state", STATES)
def test_the_greatest_struct_or_list_comes_out_of_a_stream(state: str) -> None:
    structs = [{"a": None, "b": "z"}, {"a": 1, "b": None}, {"a": 1, "b": "a"}, None]
    lists = [[1, None], [1], [1, None, 5], [None, 9]]
    table = pa.table({"t": [1, 2, 3, 4], "s": structs, "l": lists, "x": [4, 3, 2, 1]})
    select = {
        "most": sash.max("s"),
        "least": sash.min("s"),
        "longest": sash.max("l"),
        "of": sash.arg_min("x", by="l"),
    }
    s = open_stream(state, sash.Query(time="t", window=W, select=select))
    for i in range(4):
        s.push(table[i : i + 1])
    (row,) = s.close().select(list(select)).to_pylist()
    right = {"most": structs[2], "least": structs[0], "longest": lists[2], "of": 1}
    assert row == right


def test_maps_have_no_order() -> None:
    table = pa.table({"t": [1], "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.raises(TypeError, match=r"v = max\('m'\): maps have no order.*'m' has map"):
        query(sash.max("m")).run(table)
