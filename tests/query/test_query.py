"""What a query refuses when it is made, and how it says so."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas
import pyarrow.compute as pc
import pytest

import sash

WINDOW = sash.tumbling("1 minute")


def make(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "window": WINDOW, "select": {"n": sash.count()}} | given)


def test_a_query_is_frozen_and_knows_its_columns() -> None:
    q = make(
        by="k",
        tie="o",
        select={"m": sash.max("x"), "who": sash.arg_max("t", "x")},
        where=pc.field("z") > 0,
    )
    assert q.by == ("k",)
    assert q.columns == ("t", "k", "o", "x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        q.time = "other"  # type: ignore[misc]


def test_a_query_keeps_its_own_select() -> None:
    select = {"n": sash.count()}
    q = make(select=select)
    select["m"] = sash.max("x")
    assert list(q.select) == ["n"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"time": 3}, TypeError, "time is the name of a column, not 3"),
        (
            {"window": "1 minute"},
            TypeError,
            r"window is one of sash.sliding\(…\), sash.tumbling\(…\)",
        ),
        ({"by": None}, TypeError, r"by is a list of column names, such as \['k'\], not None"),
        ({"by": ["k", 1]}, TypeError, "by is a list of column names, and 1 is not text"),
        ({"by": ["n"]}, ValueError, "'n' would be in the result twice; choose another name"),
        ({"by": ["k", "k"]}, ValueError, "'k' would be in the result twice"),
        ({"by": ["window"]}, ValueError, "a result has 'window' of its own; choose another name"),
        ({"select": {"revision": sash.count()}}, ValueError, "a result has 'revision' of its own"),
        ({"select": {}}, TypeError, r"select has a name and an aggregate for each column of the"),
        ({"select": {1: sash.count()}}, TypeError, "a name in select is text, not 1"),
        (
            {"select": {"m": sash.operators.max}},
            TypeError,
            r"select has <operator max> for 'm', which is no aggregate; use one such as sash.max",
        ),
        (
            {"select": {"m": sash.count}},
            TypeError,
            r"has the function sash\.count for 'm', which is no aggregate; call it, as in sash\.c",
        ),
        (
            {"window": sash.tumbling},
            TypeError,
            r"not the function sash\.tumbling; call it, as in sash\.tumbling\(…\)$",
        ),
        ({"where": pandas.Series([True, False])}, TypeError, r"> 0, not a pandas\..*\.Series$"),
        ({"emit": "some"}, ValueError, "emit is 'all' or 'changes', not 'some'"),
        ({"tie": 1}, TypeError, "tie is the name of a column, not 1"),
        ({"where": "x > 0"}, TypeError, r"where is an Arrow expression such as pyarrow.compute."),
    ],
)
def test_refuses(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**given)


def test_aggregates_say_what_they_are_and_refuse_what_they_cannot_read() -> None:
    assert repr(sash.arg_max("who", "x")) == "arg_max('who', 'x')"
    assert repr(sash.first_n("x", n=3)) == "first_n(3)('x')"
    assert sash.first("x", ignore_nulls=True).operator.skips == (True,)
    with pytest.raises(TypeError, match="max reads 1 column, and was given none"):
        sash.aggregate(sash.operators.max)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'column'"):
        sash.max()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'by'"):
        sash.arg_max("x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="max reads columns by name, and was given 3"):
        sash.max(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"by name, and was given a pandas\.core\.series\.Series$"):
        sash.max(pandas.Series([1, 2]))
    with pytest.raises(TypeError, match=r"an aggregate needs an operator, .* not 'max'"):
        sash.aggregate("max", "x")


def test_a_result_that_does_not_fit_into_memory_says_why() -> None:
    q = sash.Query(time="t", window=sash.sliding("30 days", 1), select={"n": sash.count()})
    with pytest.raises(MemoryError, match=r"in 2,592,000,000,000 windows of .*emit='changes'"):
        q.run({"t": [1]})


def test_a_schema_is_one_of_arrow() -> None:
    q = sash.Query(time="t", window=sash.tumbling(1), select={"n": sash.count()})
    with pytest.raises(TypeError, match=r"schema is a pyarrow\.Schema such as"):
        q.stream(schema={"t": "int64"})
