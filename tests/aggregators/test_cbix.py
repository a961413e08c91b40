"""CBiX: against the oracle, its paper's figures, and its costs.

The oracle keeps the raw (time, value) pairs of the window's partitions.
"""

from __future__ import annotations

import math
import random
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import operators as ops
from sash.aggregators import Cbix
from sash.aggregators.cbix import TREE_END
from sash.aggregators.checkpoints import average_combines, best_checkpoints
from sash.kernels.program import jit_enabled
from sash.testing import DISORDERS, agrees, arrivals, counting
from sash.testing.schedules import value_source
from thinning import examples

SUM = ops.sum.of(int)
OPERATORS = [SUM, ops.sum, ops.max, ops.count, ops.count_min(4, 2)]
if not jit_enabled():
    OPERATORS += [ops.max.of(float), ops.together(ops.count, ops.min).of(int)]

#: n and k: one of each, as many as partitions, dividing or not.
SHAPES = [(1, 1), (5, 1), (5, 5), (9, 3), (9, 4), (10, 3), (16, 4), (23, 5), (40, 7)]


class Pair:
    """A window and the raw list it must agree with."""

    def __init__(self, op: sash.Operator, n: int, k: int, size: int = 1, offset: int = 0) -> None:
        self.op, self.n, self.size, self.offset = op, n, size, offset
        self.window = Cbix(op, n, k, size=size, offset=offset)
        self.raw: list[tuple[int, object]] = []
        self.newest: int | None = None

    def partition(self, time: int) -> int:
        return (time - self.offset) // self.size

    def start(self) -> int:
        """When the window starts."""
        assert self.newest is not None
        return self.offset + (self.newest - self.n + 1) * self.size

    def advance(self, time: int, *, move: bool = True) -> None:
        if move:
            self.window.advance(time)
        q = self.partition(time)
        self.newest = q if self.newest is None else max(q, self.newest)
        self.raw = [(t, v) for t, v in self.raw if t >= self.start()]

    def insert(self, time: int, value: object) -> None:
        if self.newest is not None and time < self.start():
            with pytest.raises(ValueError, match=f"window, which starts at {self.start()};"):
                self.window.insert(time, value)
            return
        self.window.insert(time, value)
        self.advance(time, move=False)
        self.raw.append((time, value))

    def check(self) -> None:
        self.window._check()
        values = [v for _, v in self.raw]
        got = self.window.query()
        assert agrees(self.op, values, got), f"{got!r} is not the answer over {values!r}"
        starts = sorted(self.offset + self.partition(t) * self.size for t, _ in self.raw)
        assert self.window.youngest() == (starts[-1] if starts else None)
        if starts:
            oldest = self.window.oldest()
            assert oldest is not None
            assert self.start() <= oldest <= starts[0]
            assert len(self.window) == (starts[-1] - oldest) // self.size + 1
        else:
            assert (len(self.window), self.window.oldest()) == (0, None)


@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_any_steps(op: sash.Operator, n: int, k: int) -> None:
    source = random.Random(n * k)
    for size, offset in ((1, 0), (7, -30), (3, 1000)):
        pair = Pair(op, n, k, size, offset)
        now = source.randint(-50, 50)
        for _ in range(60):
            what = source.random()
            value = None if source.random() < 0.1 else source.randint(-9, 9)
            if what < 0.5:
                now += source.choice([0, 1, size, 2 * size])
                pair.insert(now, value)
            elif what < 0.9:
                pair.insert(now - source.randint(0, (n + 1) * size), value)
            elif what < 0.95:
                now += source.choice([size, n * size // 2, n * size, 3 * n * size])
                pair.advance(now)
            else:
                pair.advance(now - 5)
            pair.check()


@pytest.mark.plain
def test_any_operator(ready: sash.Operator) -> None:
    if not ready.commutative:
        with pytest.raises(TypeError, match="commut"):
            Cbix(ready, 9)
        return
    draw = value_source(ready)
    for seed, disorder in enumerate(DISORDERS):
        source = random.Random(seed)
        pair = Pair(ready, 40, 6)
        for time in arrivals(disorder, 40, seed=seed):
            pair.insert(time % 1_000_000, draw(source))  # the block that comes first, near
            pair.check()
        pair.advance(55)
        pair.check()


@given(
    shape=st.sampled_from(SHAPES),
    events=st.lists(st.tuples(st.integers(-12, 6), st.integers(-5, 5)), min_size=1, max_size=40),
)
@settings(max_examples=examples(60))
def test_generated_steps(shape: tuple[int, int], events: list[tuple[int, int]]) -> None:
    for op in (SUM, ops.max):
        pair = Pair(op, *shape, size=2)
        now = 0
        for step, value in events:
            now = max(now, now + step)
            pair.insert(now + min(step, 0), value)
            pair.check()


@pytest.mark.parametrize("op", [SUM, ops.max, ops.count], ids=repr)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_slide_and_bulk_insert(op: sash.Operator, n: int, k: int) -> None:
    source = random.Random(n)
    slid, bulk, one = (Cbix(op, n, k, size=3, offset=2) for _ in range(3))
    newest = -40
    for rows in (1, 2, 17, 60):
        times = []
        for _ in range(rows):
            newest += source.choice([0, 0, 1, 4])
            times.append(newest - source.choice([0, 0, source.randint(0, 3 * (n - 1))]))
        values = [source.choice([None, 1, -2, 30]) for _ in times]
        got = slid.slide(times, values)
        slid._check()
        bulk.bulk_insert(np.array(times), values)
        bulk._check()
        wanted = []
        for time, value in zip(times, values, strict=True):
            one.insert(time, value)
            wanted.append(one.query())
        assert got == wanted
        assert bulk.query() == wanted[-1]
        assert (len(bulk), bulk.oldest(), bulk.youngest()) == (
            *(len(one), one.oldest(), one.youngest()),
        )


def figure_1() -> Cbix:
    """18 seconds by 2 seconds, and 5 … 22 are there; each record is its own time."""
    window = Cbix(SUM, partitions=9, checkpoints=3, size=2, offset=5)
    for record in range(5, 23):
        window.insert(record, record)
    return window


def b_and_g(window: Cbix) -> tuple[object, object]:
    """The b-value and the g-value, lowered."""
    lower = window.operator.python_lower()
    b, g = window._values()
    return lower(b) or 0, lower(g) or 0


def test_figure_1() -> None:
    """The late record 19 is in the window at the 24th second, and 5 and 6 are no more."""
    window = figure_1()
    assert window.query() == sum(range(5, 23)) == 243
    for record in (19, 23, 24):
        window.insert(record, record)
    assert window.query() == sum(range(7, 25)) + 19 == 298


def test_figure_7() -> None:
    window = figure_1()
    for late, b, g, result in ((19, 34, 264, 298), (15, 19, 330, 349), (21, 0, 406, 406)):
        newest = (window.youngest() or 0) + 2
        for record in (late, newest, newest + 1):
            window.insert(record, record)
        assert (*b_and_g(window), window.query()) == (b, g, result)
        window._check()
    window._turn()  # 7e: the first checkpoint is done, and the second is the oldest
    window._check()
    assert b_and_g(window) == (96, 310)
    assert window.query() == 406
    window.insert(29, 29)
    window._check()
    assert b_and_g(window) == (96 - 23, 310 + 29)


def test_checkpoints_that_take_the_fewest_combines() -> None:
    assert Cbix(SUM, 1024).checkpoints == best_checkpoints(1024, 0) == 32
    assert Cbix(SUM, 1024, late_in_oldest=4).checkpoints == best_checkpoints(1024, 4) == 64
    assert [best_checkpoints(n, 0) for n in (1, 2, 3)] == [1, 2, 3]
    assert best_checkpoints(10, 1e9) == 10
    for n in (5000, 65536, 100_000):  # above 4096 not every k is compared
        for p1 in (0, 0.5, 20):
            least = min(average_combines(n, k, p1, 0) for k in range(1, n + 1, 3))
            assert average_combines(n, best_checkpoints(n, p1), p1, 0) <= 1.001 * least
    assert best_checkpoints(2**62 - 1, 3.0) > 2**30


def counted_slides(n: int, k: int, in_tree: int, others: int) -> tuple[float, float, float, Cbix]:
    """Combines of a slide, with so many late values for the oldest checkpoint and for others; what
    came of either; and the window."""
    counted = counting(
        ops.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b, commutative=True)
    )
    window = Cbix(counted.operator, n, k)
    for time in range(2 * n):
        window.insert(time, 1)
    counted.reset()
    source = random.Random(n)
    p1 = p2 = 0
    for time in range(2 * n, 4 * n):
        window.insert(time, 1)
        p2 += 1
        first, end = time - n + 1, window._core.get(TREE_END)
        for _ in range(in_tree if first < end else 0):
            window.insert(source.randrange(first, end), 1)
            p1 += 1
        for _ in range(others):
            window.insert(source.randint(max(first, end), time), 1)
            p2 += 1
    slides = 2 * n
    combines = counted.combines / slides
    counted.reset()
    window.query()
    assert counted.combines == 1
    return combines, p1 / slides, p2 / slides, window


LATE = [(0, 0), (1, 0), (0, 3), (2, 1), (3, 2), (8, 0), (20, 5)]


@pytest.mark.parametrize(("n", "k"), [(64, 8), (256, 16), (64, 4), (128, 32)])
@pytest.mark.parametrize(("in_tree", "others"), LATE)
def test_costs_on_average(n: int, k: int, in_tree: int, others: int) -> None:
    combines, p1, p2, window = counted_slides(n, k, in_tree, others)
    stated = (p1 + 1) * math.log2(n / k) + p1 + 1 + (k * k - 2 * k) / n + 3 * p2
    assert combines == pytest.approx(stated)
    assert combines == pytest.approx(average_combines(n, k, p1, p2))
    leaves = n // k
    assert len(window._core.m.slots) == n + k + 3 + 2 * leaves  # type: ignore[union-attr]


@pytest.mark.parametrize(("n", "k"), [(250, 16), (240, 7), (100, 3)])
@pytest.mark.parametrize(("in_tree", "others"), [(0, 0), (2, 1), (8, 3)])
def test_costs_where_leaves_are_not_equally_deep(n: int, k: int, in_tree: int, others: int) -> None:
    """Late values meet the leaves that are still there, which may be the deeper ones."""
    combines, p1, p2, _ = counted_slides(n, k, in_tree, others)
    assert combines == pytest.approx(average_combines(n, k, p1, p2), rel=0.05)


def test_a_long_silence_costs_nothing_but_the_window() -> None:
    window = Cbix(SUM, 9, 3)
    window.insert(0, 1)
    window.insert(10**15, 2)
    window._check()
    assert (window.query(), len(window)) == (2, 1)
    window.advance(10**15 + 9)
    window._check()
    assert (window.query(), len(window), window.oldest()) == (None, 0, None)
    with pytest.raises(ValueError, match="has expired"):
        window.insert(10**15, 3)


def test_oldest_starts_anew_when_all_has_expired() -> None:
    window = Cbix(SUM, 9, 3)
    window.insert(0, 1)
    for time in (5, 12):
        window.advance(time)
    assert len(window) == 0
    window.insert(11, 2)
    assert (len(window), window.oldest(), window.youngest()) == (1, 11, 11)
    window.insert(4, 3)
    assert (len(window), window.oldest(), window.youngest()) == (8, 4, 11)


def test_a_value_that_is_refused_does_not_move_the_window() -> None:
    picky = ops.operator(
        identity=0, lift=lambda x: 10 // x, combine=lambda a, b: a + b, commutative=True
    )
    window = Cbix(picky, 3, 2)
    window.insert(0, 5)
    with pytest.raises(ZeroDivisionError):
        window.insert(9, 0)
    assert (window.query(), window.youngest()) == (2, 0)


def test_times_spans_and_types() -> None:
    window = Cbix(ops.max, 3, size=timedelta(hours=1))
    hours = np.array(["2024-01-01T00", "2024-01-01T03", "2024-01-01T01"], dtype="M8[h]")
    assert window.slide(hours, np.array([9.0, 1.0, 4.0])).tolist() == [9.0, 1.0, 4.0]
    assert window.operator.types == ("float64",)
    moved = Cbix(ops.sum, 3)
    moved.advance(10)
    moved.bulk_insert([8], np.array([2]))
    assert (moved.operator.types, moved.query(), len(moved)) == (("int64",), 2, 1)
    with pytest.raises(ValueError, match="row 0: time 7 is before the window"):
        moved.bulk_insert([7], np.array([2]))


def test_times_at_the_ends_of_int64() -> None:
    least, most = -(2**63), 2**63 - 1
    for size, offset, answer in ((2**40, 3, 4), (2**40, most, 4), (2**62, least, 6)):
        window = Cbix(SUM, 2, size=size, offset=offset)
        assert window.slide([least, 0, most], [1, 2, 4]) == [1, 2, answer]
        window._check()
        one = Cbix(SUM, 2, size=size, offset=offset)
        for t, v in ((least, 1), (0, 2), (most, 4)):
            one.insert(t, v)
        assert (one.query(), one.oldest()) == (window.query(), window.oldest())
    with pytest.raises(OverflowError, match="too far from 0"):
        Cbix(SUM, 2).insert(most, 1)
    with pytest.raises(OverflowError, match="too far from 0"):
        Cbix(SUM, 2).slide([0, least], [1, 2])


def test_overflow_names_the_row_and_keeps_the_window() -> None:
    window = Cbix(SUM, 2, 1)
    with pytest.raises(OverflowError, match="row 2: the sum leaves int64"):
        window.slide([1, 2, 3, 4], [1, 2**62, 2**62, 5])
    assert window.slide([4, 5], [-5, 7]) == [2**62 - 5, 2]


@pytest.mark.parametrize("op", [SUM, ops.count, ops.count_min(8, 2)], ids=repr)
def test_bytes_round_trip(op: sash.Operator) -> None:
    window = Cbix(op, 10, 3, size=2, offset=1)
    source = random.Random(0)
    for t in range(60):
        window.insert(max(0, t - source.randint(0, 15)), t)
    again = Cbix.from_bytes(window.to_bytes(), op)
    again._check()
    assert repr(again) == repr(window)
    for t in range(60, 90):
        for one in (window, again):
            one.insert(t - t % 7, t)
        np.testing.assert_equal(again.query(), window.query())
        assert (again.oldest(), again.youngest()) == (window.oldest(), window.youngest())
    again._check()


def test_bytes_of_something_else_are_refused() -> None:
    from sash.aggregators import Reactive

    data = Cbix(SUM, 9).to_bytes()
    with pytest.raises(ValueError, match=r"hold a Cbix of sum\(int64\)"):
        Cbix.from_bytes(data, ops.max)
    with pytest.raises(ValueError, match="hold a Reactive"):
        Cbix.from_bytes(Reactive(SUM).to_bytes(), SUM)
    with pytest.raises(ValueError, match="hold a Cbix"):
        Reactive.from_bytes(data, SUM)
    with pytest.raises(ValueError, match="checksum"):
        Cbix.from_bytes(data[:-1] + b"x", SUM)


@pytest.mark.parametrize("op", [ops.collect, ops.first, ops.concat, ops.arg_max], ids=repr)
def test_operators_that_do_not_commute_are_refused(op: sash.Operator) -> None:
    with pytest.raises(TypeError, match=r"needs a commutative operator.*; use Fiba"):
        Cbix(op, 9)


def test_bad_use_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match="partitions is at least 1, so it cannot be 0"):
        Cbix(SUM, 0)
    with pytest.raises(TypeError, match=r"partitions is a whole number, not 2\.5"):
        Cbix(SUM, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="checkpoints is at least 1 and at most 9"):
        Cbix(SUM, 9, 10)
    with pytest.raises(ValueError, match="size is at least 1"):
        Cbix(SUM, 9, size=0)
    with pytest.raises(ValueError, match="late_in_oldest is a number of spans"):
        Cbix(SUM, 9, late_in_oldest=-1)
    with pytest.raises(ValueError, match="late_in_oldest is a number of spans"):
        Cbix(SUM, 9, late_in_oldest=math.inf)
    with pytest.raises(TypeError, match="needs an operator"):
        Cbix(sum, 9)  # type: ignore[arg-type]
    window = Cbix(SUM, 3, size=10)
    window.insert(45, 1)
    with pytest.raises(ValueError, match="time 19 is before the window, which starts at 20"):
        window.insert(19, 1)
    with pytest.raises(ValueError, match=r"row 1: time 30 is before the window.* at 40"):
        window.slide([60, 30], [1, 2])
    with pytest.raises(ValueError, match="2 times were given for 1 values"):
        window.slide([60, 61], [1])
    assert window.query() == 1
    window._check()


def test_empty() -> None:
    window = Cbix(ops.max, 4)
    window._check()
    assert window.slide([], []) == []
    window.bulk_insert([], [])
    assert (window.query(), len(window), window.oldest(), window.youngest()) == (
        *(None, 0, None, None),
    )
    window._check()
