"""Indices are checked in the functions of users' operators, compiled or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import operators as ops
from sash.aggregators import TwoStacksLite
from sash.kernels.program import _functions
from sash.operators.together import together


def _mark(out: Any, x: float) -> None:
    out[int(x)] += 1


def _add(out: Any, a: Any, b: Any) -> None:
    for i in range(len(out)):
        out[i] = a[i] + b[i]


def _ends(a: Any) -> Any:
    return a[0] + 10 * a[3]


def histogram(**given: Any) -> sash.Operator:
    return sash.operator(
        identity=np.zeros(4, dtype=np.int64),
        lift=_mark,
        combine=_add,
        lower=_ends,
        name="ends",
        commutative=True,
        **given,
    )


def test_an_index_beyond_a_vector_raises_and_the_window_goes_on() -> None:
    window = TwoStacksLite(histogram().of(float))
    window.insert(3.0)
    for x in (4.0, -5.0, 1e9):
        with pytest.raises(IndexError, match="out of bounds"):
            window.insert(x)
    window.insert(-4.0)  # as in Python, negative ones count from the end
    assert window.query() == 11
    with pytest.raises(IndexError, match="out of bounds"):
        window.slide(np.array([1.0, 4.0]), 2)


@pytest.mark.plain
def test_over_a_table_the_error_notes_the_aggregate_and_the_values() -> None:
    select = {"n": sash.count(), "ends": sash.aggregate(histogram(), "x")}
    events = pa.table({"t": [1, 2, 3], "x": [1.0, 77.0, 88.0]})
    for window in (sash.tumbling(10), sash.rows(2), sash.session(5)):
        q = sash.Query(time="t", window=window, select=select)
        with pytest.raises(IndexError, match="out of bounds") as caught:
            q.run(events)
        (note,) = caught.value.__notes__
        assert note.startswith("lift of ends raised IndexError")
        assert note.endswith(", for x = 77.0")
    tens, fives = (
        sash.Query(time="t", window=sash.tumbling(size), select=select) for size in (10, 5)
    )
    with pytest.raises(IndexError) as caught:
        sash.share({"tens": tens, "fives": fives}).run(events)
    assert caught.value.__notes__[0].startswith("lift of ends raised IndexError")


@pytest.mark.plain
def test_over_a_table_the_error_notes_the_function_that_raised() -> None:
    events = pa.table({"t": [1, 2, 3], "x": [1.0, 2.0, 4.0]})

    def note(error: type[Exception], **given: Any) -> str:
        operator = sash.operator(**{"identity": (), "compile": False} | given)
        select = {"n": sash.count(), "own": sash.aggregate(operator, "x")}
        with pytest.raises(error) as caught:
            sash.Query(time="t", window=sash.tumbling(10), select=select).run(events)
        (found,) = caught.value.__notes__
        return found

    pair = {"identity": (0, 0.0), "combine": lambda a, b: (a[0] + b[0], a[1] + b[1])}
    assert note(TypeError, **pair) == (
        "combine of own raised TypeError: 'float' object is not subscriptable, for the partials "
        "(0, 0.0) and 1.0"
    )
    scalar = {"lift": lambda x: (1, x), "combine": lambda a, b: b if a == () else a[0] + b[0]}
    assert note(TypeError, **scalar).endswith("for the partials 2 and (1, 2.0)")
    lists = {"lift": lambda x: (x,), "combine": lambda a, b: a + b}
    found = note(IndexError, **lists, lower=lambda a: a[7])
    assert found.startswith("lower of own raised IndexError: tuple index out of range, for the par")
    mixed = {**lists, "lower": lambda a: len(a) if a[-1] > 2 else "few"}
    select = {"own": sash.aggregate(sash.operator(identity=(), compile=False, **mixed), "x")}
    with pytest.raises(pa.ArrowTypeError) as caught:
        sash.Query(time="t", window=sash.rows(5), select=select).run(events)
    assert caught.value.__notes__ == [
        "answers of own have no common type: see what its `lower` returns"
    ]


def test_a_row_whose_lift_leaves_its_bounds_is_late_on_a_stream() -> None:
    query = sash.Query(
        time="t",
        window=sash.tumbling(10),
        select={"ends": sash.aggregate(histogram(), "x"), "n": sash.count()},
    )
    stream = query.stream()
    # int(inf) raises in Python; compiled, it is an index that is out of bounds
    stream.push({"t": [1, 2, 3, 4], "x": [0.0, 7.0, 3.0, math.inf]})
    assert stream.late["t"].to_pylist() == [2, 4]
    assert "out of bounds" in stream.late["reason"][0].as_py()
    stream.push({"t": [5], "x": [3.0]})
    rows = stream.close().to_pylist()
    assert [(r["ends"], r["n"]) for r in rows] == [(21, 3)]
    assert stream.counts["late"] == 2


def test_ready_operators_and_those_that_ask_for_it_are_not_checked() -> None:
    both = together(ops.count_min(8, 2), histogram(), histogram(unchecked=True), ops.max)
    found = [f.bounds for (_, role), f in _functions(both.of(float)).items() if role == "combine"]
    assert found == [False, True, False, False]
    window = TwoStacksLite(histogram(unchecked=True).of(float))
    assert window.slide(np.array([0.0, 3.0, 3.0]), 2).tolist() == [1, 11, 20]
