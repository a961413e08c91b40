"""Words that do more than one step, in each way to run a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash.kernels.columns import read
from sash.kernels.core import make_core
from sash.kernels.program import Kernel
from sash.kernels.slots import (
    CAPACITY,
    Columns,
    Memory,
    Outputs,
    accumulate,
    fold_rows,
    get,
    lift,
    lower,
)

RING = 1


def suffixes(
    m: Memory, columns: Columns, outputs: Outputs, rows: int, first: int, last: int
) -> None:
    mask = get(m, CAPACITY) - 1
    for p in range(first, last + 1):
        lift(m, RING + (p & mask), columns, p - first)
    accumulate(m, RING, mask, first, last)
    for p in range(first, last + 1):
        lower(m, RING + (p & mask), outputs, p - first)


SUFFIXES = Kernel("suffixes", (suffixes,), ("suffixes",), scratch=1)


def folds(m: Memory, columns: Columns, outputs: Outputs, first: int, last: int) -> None:
    fold_rows(m, RING, RING + 1, columns, first, last)
    lower(m, RING, outputs, 0)


FOLDS = Kernel("folds", (folds,), ("folds",), scratch=1)


def _add(out: Any, a: Any, b: Any) -> None:
    for i in range(2):
        out[i] = a[i] + b[i]


def _one(out: Any, x: Any) -> None:
    out[x % 2] = 1


OPERATORS = pytest.mark.parametrize(
    "operator",
    [
        ops.concat,
        ops.mean,
        ops.mean.over(int),
        ops.last.over(int),  # tells orders apart
        ops.together(ops.first, ops.sum).over(int),
        sash.operator(identity=np.zeros(2, dtype=np.int64), lift=_one, combine=_add).over(int),
    ],
    ids=lambda o: f"{o.name}-{'typed' if o.types else 'untyped'}",
)


@OPERATORS
@pytest.mark.parametrize(("first", "last"), [(0, 0), (3, 9), (6, 13)])
def test_accumulate_aggregates_from_each_position_to_the_last(
    operator: Any, first: int, last: int
) -> None:
    count = last - first + 1
    values = ["abcdefgh"[i] if operator is ops.concat else (7 * i) % 5 for i in range(count)]
    core = make_core(SUFFIXES, operator, 8)
    kept, columns = core.take(read(values, 1))
    out, outputs = core.outputs(count)
    core.run.suffixes(core.m, columns, outputs, count, first, last)
    got = core.give(out, "list")
    del kept
    lowered = operator.python_lower()
    wanted = [lowered(operator.fold(values[i:])) for i in range(count)]
    assert [np.asarray(g).tolist() for g in got] == [np.asarray(w).tolist() for w in wanted]


@OPERATORS
@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 9), (4, 6)])
def test_fold_rows_is_all_rows_of_a_range_in_order(operator: Any, first: int, last: int) -> None:
    values: list[Any] = ["abcdefghi"[i] if operator is ops.concat else 7 * i % 5 for i in range(9)]
    values[4] = values[8] = None
    core = make_core(FOLDS, operator, 8)
    kept, columns = core.take(read(values, 1))
    out, outputs = core.outputs(1)
    core.run.folds(core.m, columns, outputs, first, last)
    (got,) = core.give(out, "list")
    del kept
    wanted = operator.python_lower()(operator.fold(values[first:last]))
    assert np.asarray(got).tolist() == np.asarray(wanted).tolist()
