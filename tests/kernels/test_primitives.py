"""Primitives that do more than one step, in each way to run a kernel."""

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
    HEADER,
    WIDTH,
    Columns,
    Memory,
    Outputs,
    accumulate,
    alike,
    below,
    fold,
    fold_rows,
    get,
    item,
    lanes,
    lanes_by,
    lift,
    lower,
    number,
    root,
    set_item,
    set_lanes,
    set_lanes_by,
    set_number,
    set_ranks,
    splice,
    weave,
    zeros,
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
        ops.mean.of(int),
        ops.last.of(int),  # tells orders apart
        ops.together(ops.first, ops.sum).of(int),
        sash.operator(identity=np.zeros(2, dtype=np.int64), lift=_one, combine=_add).of(int),
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


def joined(
    m: Memory, columns: Columns, outputs: Outputs, count: int, at: int, head: int, tail: int
) -> int:
    answer = HEADER + WIDTH
    first = HEADER + 2 * WIDTH
    between = HEADER + 12 * WIDTH
    for i in range(count):
        lift(m, first + WIDTH * i, columns, i)
    for i in range(count + 1):
        lift(m, between + WIDTH * i, columns, count + i)
    fold(m, answer, first, count)
    lower(m, answer, outputs, 0)
    splice(m, answer, first, count, at, between)
    lower(m, answer, outputs, 1)
    weave(m, answer, between, first, count, head, tail, at)
    lower(m, answer, outputs, 2)
    found = 0
    if alike(m, first, first):
        found += 1
    if alike(m, first, between):
        found += 2
    return found


JOINED = Kernel("joined", (joined,), ("joined",), own=True)


def _digits(out: Any, a: Any, b: Any) -> None:
    out[0] = a[0] * b[1] + b[0]
    out[1] = a[1] * b[1]


def _digit(out: Any, x: Any) -> None:
    out[0] = x
    out[1] = 10


DIGITS = sash.operator(
    identity=(0, 1),
    lift=lambda x: (x, 10),
    combine=lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
    lower=lambda a: a[0],
    name="digits",
)
DIGITS_IN_A_VECTOR = sash.operator(
    identity=np.array([0, 1]),
    lift=_digit,
    combine=_digits,
    lower=lambda a: a[0],
    name="digits in a vector",
)


@pytest.mark.parametrize(
    "operator",
    [
        DIGITS,
        DIGITS.of(int),
        DIGITS_IN_A_VECTOR.of(int),
        ops.together(DIGITS, DIGITS_IN_A_VECTOR).of(int),
        ops.together(DIGITS, ops.sum).of(int),
    ],
    ids=lambda o: f"{o.name}-{'typed' if o.types else 'untyped'}",
)
def test_primitives_that_combine_many_keep_the_order(operator: Any) -> None:
    core = make_core(JOINED, operator, HEADER)
    core.resize(HEADER + 30 * core.width, [])
    lowered = operator.python_lower()

    def wanted(values: list[int]) -> Any:
        return lowered(operator.fold(values))

    for count in range(1, 8):
        firsts = list(range(1, count + 1))
        betweens = [(count + i) % 8 + 2 for i in range(count + 1)]
        kept, columns = core.take(read([*firsts, *betweens], 1))
        out, outputs = core.outputs(3)
        for head, tail in ((0, 0), (0, 1), (1, 0), (1, 1)):
            for at in range(1 - head, count + tail):
                found = core.run.joined(core.m, columns, outputs, count, at, head, tail)
                woven = [x for pair in zip(betweens, firsts, strict=False) for x in pair]
                woven = [*woven, betweens[-1]][1 - head : 2 * count + tail]
                assert core.give(out, "list") == [
                    wanted(firsts),
                    wanted([*firsts[:at], betweens[0], *firsts[at:]]),
                    wanted(woven),
                ]
                assert found == 1
        del kept


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


def counts_below(m: Memory, values: Any, bound: int, rows: int, found: Any) -> None:
    for i in range(rows - 7):
        set_item(found, i, below(values, i, bound))


BELOW = Kernel("below", (counts_below,), ("counts_below",))


@pytest.mark.parametrize("operator", [ops.count.of(int), ops.concat], ids=["typed", "untyped"])
@pytest.mark.parametrize("bound", [-(2**63), -5, 0, 7, 2**63 - 1])
def test_below_counts_eight_from_any_place_on(operator: Any, bound: int) -> None:
    values = np.random.default_rng(bound % 97).integers(-9, 9, 40)
    values[3], values[20] = -(2**63), 2**63 - 1
    core = make_core(BELOW, operator, 1)
    with core.call() as call:
        found, at = call.space(33)
        core.run.counts_below(core.m, call.integers(values), bound, 40, at)
        wanted = [int((values[i : i + 8] < bound).sum()) for i in range(33)]
        assert np.asarray(found).tolist() == wanted


def ranks(m: Memory, times: Any, rows: int, less: int, found: Any) -> None:
    low = 0
    for i in range(0, rows - 22, 8):
        set_ranks(found, i, times, i, less, low)
        low = item(found, i + 7)


RANKS = Kernel("ranks", (ranks,), ("ranks",))


@pytest.mark.parametrize("operator", [ops.count.of(int), ops.concat], ids=["typed", "untyped"])
@pytest.mark.parametrize("less", [0, 1, 40, 2**61])
@pytest.mark.parametrize("step", [1, 5, 1000])
def test_ranks_are_the_first_places_from_a_time_on(operator: Any, less: int, step: int) -> None:
    source = np.random.default_rng(step)
    times = np.cumsum(source.integers(0, step, 200) * (source.random(200) < 0.9))
    times[100:] += 3 * step  # so that many leave at once
    times -= 2**60
    core = make_core(RANKS, operator, 1)
    with core.call() as call:
        found, at = call.space(len(times))
        core.run.ranks(core.m, call.integers(times), len(times), less, at)
        ranked = range(0, len(times) - 22, 8)[-1] + 8
        wanted = np.searchsorted(times, times[:ranked] - less)
        assert np.asarray(found)[:ranked].tolist() == wanted.tolist()


def counts_zeros(m: Memory, values: Any, rows: int, found: Any) -> None:
    for i in range(rows):
        set_item(found, i, zeros(item(values, i)))


ZEROS = Kernel("zeros", (counts_zeros,), ("counts_zeros",))


@pytest.mark.parametrize("operator", [ops.count.of(int), ops.concat], ids=["typed", "untyped"])
def test_zeros_counts_the_bits_below_the_lowest_one(operator: Any) -> None:
    values = np.array([1 << i for i in range(63)] + [-(2**63), -1, -8, 12, 2**62 + 2**40, ~7])
    core = make_core(ZEROS, operator, 1)
    with core.call() as call:
        found, at = call.space(len(values))
        core.run.counts_zeros(core.m, call.integers(values), len(values), at)
        wanted = [(x & -x).bit_length() - 1 for x in values.tolist()]
        assert np.asarray(found).tolist() == wanted
    assert wanted[:3] == [0, 1, 2]
    assert wanted[-4:] == [3, 2, 40, 3]


def halves(m: Memory, values: Any, rows: int, found: Any) -> None:
    for i in range(rows):
        set_number(found, i, number(values, i) * 0.5)


HALVES = Kernel("halves", (halves,), ("halves",))


def test_numbers_are_floats_by_their_bits() -> None:
    values = np.array([1.5, -0.0, np.inf, 1e-310, np.nan])
    core = make_core(HALVES, ops.count.of(int), 1)
    found = np.empty(5)
    with core.call() as call:
        at = call.integers(found.view(np.int64))
        core.run.halves(core.m, call.integers(values.view(np.int64)), 5, at)
    assert found.tobytes() == (values * 0.5).tobytes()


def by_lanes(m: Memory, values: Any, stride: int, by: Any, together: Any, apart: Any) -> None:
    a, b = lanes(values, 1), lanes_by(values, 2, stride)
    c = (a - b * number(by, 0)) * a + number(by, 1) / b
    set_lanes(together, 0, c)
    set_lanes_by(apart, 3, stride, root(c))
    set_number(apart, 0, root(number(by, 0)))


BY_LANES = Kernel("by lanes", (by_lanes,), ("by_lanes",))


@pytest.mark.parametrize("stride", [1, 3, 7])
def test_lanes_have_the_bits_of_single_floats(stride: int) -> None:
    values = np.random.default_rng(stride).standard_normal(64) * 1e3
    values[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310
    core = make_core(BY_LANES, ops.count.of(int), 1)
    with core.call() as call, np.errstate(all="ignore"):
        given = np.array([0.1, 3.0])
        (together, at), (apart, to) = call.space(8), call.space(64)
        arrays = [call.integers(array.view(np.int64)) for array in (values, given)]
        core.run.by_lanes(core.m, arrays[0], stride, arrays[1], at, to)
        a, b = values[1:9], values[2 : 2 + 8 * stride : stride]
        c = (a - b * 0.1) * a + 3.0 / b
        found = np.asarray(together).view(np.float64), np.asarray(apart).view(np.float64)
        roots = np.sqrt(c)
    np.testing.assert_array_equal(found[0], c)
    np.testing.assert_array_equal(found[1][3 : 3 + 8 * stride : stride], roots)
    assert found[1][0] == np.sqrt(0.1)
