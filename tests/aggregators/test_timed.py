"""The adapter that gives times to in-order aggregators, against the oracle.

The oracle keeps the raw (time, value) pairs, sorted by time and then by arrival.
"""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import operators as ops
from sash.aggregators import (
    Amta,
    BInt,
    Daba,
    DabaLite,
    FlatFatFifo,
    FlatFit,
    InOrder,
    LogMta,
    Recalc,
    SubtractOnEvict,
    Timed,
    TwoStacks,
    TwoStacksLite,
)
from sash.aggregators.timed_fifo import Queue
from sash.kernels.program import jit_enabled
from sash.testing import agrees
from thinning import examples

SUM = ops.sum.of(int)
ALL: list[type[InOrder]] = [
    *(Recalc, TwoStacks, TwoStacksLite, Daba, DabaLite, FlatFatFifo, BInt, FlatFit, LogMta, Amta),
]
#: Compiled, some speak for all: the adapter's own loop is the same in each.
TYPED: list[type[InOrder]] = (
    [DabaLite, FlatFatFifo, Amta] if jit_enabled() else [*ALL, SubtractOnEvict]
)
PAIRS = [(kind, ops.collect) for kind in ALL] + [(kind, SUM) for kind in TYPED]


class Pair:
    """A window and the raw list it must agree with."""

    def __init__(self, kind: type[InOrder], op: sash.Operator) -> None:
        self.op, self.window = op, Timed(kind(op))
        self.raw: list[tuple[int, object]] = []

    def do(self, what: str, *given: object) -> None:
        getattr(self, what)(*given)
        self.window._check()
        assert len(self.window) == len(self.raw)
        assert self.window.oldest() == (self.raw[0][0] if self.raw else None)
        assert self.window.youngest() == (self.raw[-1][0] if self.raw else None)

    def insert(self, time: int, value: object) -> None:
        self.window.insert(time, value)
        self.raw.append((time, value))

    def evict(self, time: int) -> None:
        if self.raw and time != self.raw[0][0] and time in [t for t, _ in self.raw]:
            with pytest.raises(ValueError, match="use Reactive or Fiba"):
                self.window.evict(time)
            return
        assert self.window.evict(time) is None  # type: ignore[func-returns-value]
        self.raw = [(t, v) for t, v in self.raw if t != time]

    def bulk_insert(self, times: list[int], values: list[object]) -> None:
        self.window.bulk_insert(times, values)
        self.raw += zip(times, values, strict=True)

    def bulk_evict(self, time: int) -> None:
        self.window.bulk_evict(time)
        self.raw = [(t, v) for t, v in self.raw if t > time]

    def query(self) -> None:
        values = [v for _, v in self.raw]
        got = self.window.query()
        assert agrees(self.op, values, got), f"{got!r} is not the answer over {values!r}"


@pytest.mark.thin
@pytest.mark.parametrize(("kind", "op"), PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_any_steps(kind: type[InOrder], op: sash.Operator, seed: int) -> None:
    source = random.Random(seed)
    pair = Pair(kind, op)
    young = -9
    for grows in (0.9, 0.4, 0.7, 0.1):
        for _ in range(40):
            what = source.random()
            if what < grows:
                young += source.choice([0, 0, 1, 3])
                pair.do("insert", young, source.choice([None, 1, 2, -7, 40]))
            elif what < 0.9:
                held = [t for t, _ in pair.raw] or [0]
                some = [held[0], held[0], source.choice(held), young + 1, held[0] - 1]
                pair.do("evict", source.choice(some))
            elif what < 0.95:
                size = source.randint(0, 20)
                gaps = source.choices([0, 0, 1, 2], k=size)
                times = [young + sum(gaps[: j + 1]) for j in range(size)]
                pair.do("bulk_insert", times, [source.randint(-9, 9) for _ in times])
                young = max([young, *times])
            else:
                pair.do("bulk_evict", source.randint(young - 15, young + 1))
            pair.do("query")


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
@given(
    runs=st.lists(
        st.one_of(
            st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), min_size=1, max_size=12),
            st.integers(-2, 25),
        ),
        max_size=12,
    )
)
@settings(max_examples=examples(40))
def test_generated_steps(op: sash.Operator, runs: list[object]) -> None:
    pair = Pair(DabaLite, op)
    young = 0
    for run in runs:
        if isinstance(run, int):
            pair.do("bulk_evict", run)
        else:
            times = []
            for gap, _ in run:  # type: ignore[attr-defined]
                young += gap
                times.append(young)
            pair.do("bulk_insert", times, [v for _, v in run])  # type: ignore[attr-defined]
        pair.do("query")


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
@pytest.mark.parametrize("n", [1, 7, 8, 33])
def test_bulk_of_every_size(op: sash.Operator, n: int) -> None:
    for m in range(1, n + 1):
        pair = Pair(TwoStacksLite, op)
        pair.do("bulk_insert", list(range(n)), list(range(n)))
        pair.do("bulk_evict", m - 1)
        pair.do("query")
        pair.do("bulk_insert", list(range(n, n + m)), list(range(m)))
        pair.do("query")


def held(events: list[tuple[int, object]], span: int | None, count: int | None) -> list[object]:
    """What the last of these events' answer is over."""
    if span is not None:
        return [v for t, v in events if t >= events[-1][0] - span]
    return [v for _, v in events[-(count or 0) :]]


@pytest.mark.parametrize(("kind", "op"), PAIRS)
@pytest.mark.parametrize(
    "how", [{"span": 0}, {"span": 9}, {"span": 500}, {"count": 1}, {"count": 8}, {"count": 40}]
)
def test_slide_is_insert_evict_query(
    kind: type[InOrder], op: sash.Operator, how: dict[str, int]
) -> None:
    source = random.Random(5)
    times = sorted(source.choices(range(-60, 60), k=100))
    values = [source.choice([None, 3, -4, 0, 12]) for _ in times]
    window = Timed(kind(op))
    got = window.slide(times[:40], values[:40], **how)
    window._check()
    got += window.slide(np.array(times[40:]), values[40:], **how)
    window._check()
    events = list(zip(times, values))
    for i, answer in enumerate(got):
        assert agrees(op, held(events[: i + 1], how.get("span"), how.get("count")), answer)
    assert len(window) == len(held(events, how.get("span"), how.get("count")))


def test_slide_over_a_window_that_is_too_full() -> None:
    window = Timed(DabaLite(ops.collect))
    window.bulk_insert(range(40), list(range(40)))
    assert window.slide([40, 41], [40, 41], count=3) == [[38, 39, 40], [39, 40, 41]]
    window._check()
    assert window.slide([100], [100], span=5) == [[100]]
    window._check()


def test_times_at_the_ends_of_int64() -> None:
    least, most = -(2**63), 2**63 - 1
    assert Timed(DabaLite(SUM)).slide([least, 0, most], [1, 2, 4], span=1) == [1, 2, 4]
    times = [least, 1 - 2**62, 0, most]
    assert Timed(DabaLite(SUM)).slide(times, [1, 8, 2, 4], span=2**63) == [1, 9, 11, 6]


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
def test_slide_grows_while_times_leave(op: sash.Operator) -> None:
    times = [*range(0, 100, 5), *range(100, 300)]
    events = list(zip(times, times))
    for i, answer in enumerate(Timed(DabaLite(op)).slide(times, times, span=30)):
        assert agrees(op, held(events[: i + 1], 30, None), answer)


def test_types_come_from_arrays_and_spans_from_timedeltas() -> None:
    window = Timed(DabaLite(ops.max))
    hours = np.arange("2024-01-01T00", "2024-01-01T04", dtype="M8[h]")
    values = np.array([4.0, 3.0, 2.0, 1.0])
    got = window.slide(hours, values, span=timedelta(hours=1))
    assert got.tolist() == [4.0, 4.0, 3.0, 2.0]
    assert window.operator.types == ("float64",)
    assert repr(window.fifo) == "<DabaLite of <operator max(float64)>, 2 values>"


def test_overflow_names_the_row_and_keeps_the_window() -> None:
    window = Timed(TwoStacksLite(SUM))
    with pytest.raises(OverflowError, match="row 2: the sum leaves int64"):
        window.slide([1, 2, 3, 4], [1, 2**62, 2**62, 5], span=1)
    window._check()
    assert (len(window), window.youngest()) == (2, 3)
    assert window.slide([4, 5], [-5, 7], span=1) == [2**62 - 5, 2]


def test_a_lift_that_raises_keeps_times_and_values_together() -> None:
    picky = ops.operator(identity=0, lift=lambda x: 10 // x, combine=lambda a, b: a + b)
    window = Timed(TwoStacksLite(picky))
    with pytest.raises(ZeroDivisionError):
        window.slide([1, 5, 9], [1, 2, 0], span=1)
    window._check()
    with pytest.raises(ZeroDivisionError):
        window.insert(9, 0)
    window._check()
    assert window.slide([10], [5], span=0) == [2]


def test_memory_follows_the_window() -> None:
    queue = Queue()
    queue.extend(np.arange(1000))
    for t in range(1000, 5000):
        queue.append(t)
        queue.drop(1)
        assert (queue.first(), queue.last(), len(queue)) == (t - 999, t, 1000)
        assert len(queue._array) <= 4000
    queue.drop(997)
    assert (queue.times().tolist(), len(queue._array)) == ([4997, 4998, 4999], 8)


@pytest.mark.parametrize(("kind", "op"), PAIRS)
def test_bytes_round_trip(kind: type[InOrder], op: sash.Operator) -> None:
    window = Timed(kind(op))
    window.bulk_insert(range(30), list(range(30)))
    window.bulk_evict(11)
    again = Timed.from_bytes(window.to_bytes(), kind(op))
    again._check()
    assert (len(again), again.oldest(), again.youngest()) == (18, 12, 29)
    for t in range(30, 50):
        for one in (window, again):
            one.insert(t, -t)
            one.evict(t - 18)
        assert again.query() == window.query()


def test_bytes_of_something_else_are_refused() -> None:
    data = Timed(DabaLite(SUM)).to_bytes()
    with pytest.raises(ValueError, match="hold a Timed of DabaLite; they cannot become"):
        Timed.from_bytes(data, TwoStacks(SUM))
    with pytest.raises(ValueError, match=r"hold a DabaLite of sum\(int64\)"):
        Timed.from_bytes(data, DabaLite(ops.collect))
    with pytest.raises(ValueError, match="checksum"):
        Timed.from_bytes(data[:-1] + b"x", DabaLite(SUM))


def test_bad_use_is_a_clear_error() -> None:
    window = Timed(DabaLite(ops.collect))
    window.bulk_insert([5, 6, 7], ["a", "b", "c"])
    with pytest.raises(ValueError, match="4 is older than 7, the youngest time; use Fiba"):
        window.insert(4, "d")
    with pytest.raises(ValueError, match="row 1: Timed takes values in order of time, and 8"):
        window.bulk_insert([9, 8], ["d", "e"])
    with pytest.raises(ValueError, match="oldest time only, which is 5, and not of 6"):
        window.evict(6)
    with pytest.raises(ValueError, match="3 times were given for 2 values"):
        window.slide([7, 8, 9], ["d", "e"], count=2)
    with pytest.raises(TypeError, match="give one of them"):
        window.slide([7], ["d"])
    with pytest.raises(TypeError, match="such as DabaLite"):
        Timed(ops.collect)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="holds values without times"):
        Timed(window.fifo)
    window._check()
    assert window.query() == ["a", "b", "c"]


def test_empty() -> None:
    window = Timed(DabaLite(ops.collect))
    window.evict(3)
    window.bulk_evict(3)
    window.bulk_insert([], [])
    assert window.slide([], [], span=1) == []
    assert (window.query(), window.oldest(), window.youngest(), len(window)) == ([], None, None, 0)
    window._check()
