"""Queries, windows and operators in another process."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash import operators
from sash.operators.contract import Operator

VALUES: dict[str, list[Any]] = {
    "int64": [3, 1, 2],
    "timestamp": [3, 1, 2],
    "float64": [2.5, 0.5, 1.5],
    "bool": [True, False, True],
    "object": ["b", "a", "c"],
}


def facts(op: Operator) -> Any:
    return repr(op), op.ready, op.parameters, op.skips, op.types, op.fields, op.commutative


def test_a_ready_operator_comes_back(form: Operator) -> None:
    made = pickle.loads(pickle.dumps(form))
    assert facts(made) == facts(form)
    if getattr(operators, form.ready, None) is form:
        assert made is form
    if form.types:
        rows = list(zip(*(VALUES[t] for t in form.types), strict=True))
        values = rows if len(form.types) > 1 else [row[0] for row in rows]
        try:
            right = repr(form.python_lower()(form.fold(values)))
        except TypeError:  # text where numbers are wanted
            return
        assert repr(made.python_lower()(made.fold(values))) == right


def first(x: Any) -> Any:
    return x


def test_an_operator_of_module_functions_comes_back() -> None:
    own = sash.operator(identity=0, lift=first, combine=max, name="own")
    made = pickle.loads(pickle.dumps(own))
    assert (made.name, made.lift, made.combine, made.ready) == ("own", first, max, "")
    both = operators.together(own, operators.max)
    assert pickle.loads(pickle.dumps(both)).fold([1, 3]) == both.fold([1, 3])


QUERIES = [
    sash.Query(time="t", by=["k"], window=window, select=select, where=where, emit="changes")
    for window in (sash.sliding("4 us", "2 us"), sash.tumbling("1 hour"), sash.cumulate(6, 2))
    for select in ({"n": sash.count(), "v": sash.first("x", ignore_nulls=True)},)
    for where in (None, pc.field("x") > 1)
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: f"{q.window!r} {q.where}")
def test_a_query_comes_back(query: sash.Query) -> None:
    made = pickle.loads(pickle.dumps(query))
    assert repr(made) == repr(query)
    assert made.window == query.window
    assert copy.deepcopy(query) is query


def test_a_query_runs_in_a_process_that_knows_nothing_of_it() -> None:
    select = {"n": sash.count(), "v": sash.max("x"), "q": sash.last_n("x", 2)}
    q = sash.Query(time="t", window=sash.tumbling(10), select=select)
    code = "import pickle, sys; q, t = pickle.load(sys.stdin.buffer); print(q.run(t).to_pylist())"
    table = pa.table({"t": [1, 2, 13], "x": [5, 7, 6]})
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((q, table)),
        env={**os.environ, "SASH_JIT": "0"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().strip() == str(q.run(table).to_pylist())
