"""The Reactive Aggregator: against the oracle, its paper's figure, and its costs.

The oracle keeps the raw (time, value) pairs, sorted by time and then by arrival.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import operators as ops
from sash.aggregators import Reactive
from sash.aggregators.flat_fat import TREE
from sash.testing import agrees, counting, timed_replay, timed_schedule, timed_windows
from thinning import FULL, examples

SUM = ops.sum.of(int)
OPERATORS = [ops.collect, SUM, ops.sum, ops.together(ops.first, ops.count_min(4, 2)).of(int)]


class Pair:
    """A window and the raw list it must agree with."""

    def __init__(self, op: sash.Operator) -> None:
        self.op, self.window = op, Reactive(op)
        self.raw: list[tuple[int, object]] = []

    def do(self, what: str, *given: object) -> None:
        getattr(self, what)(*given)
        self.window._check()
        times = [t for t, _ in self.raw]
        assert len(self.window) == len(times)
        assert self.window.oldest() == (times[0] if times else None)
        assert self.window.youngest() == (times[-1] if times else None)

    def insert(self, time: int, value: object) -> None:
        self.window.insert(time, value)
        self.raw.append((time, value))

    def evict(self, time: int) -> None:
        assert self.window.evict(time) is None  # type: ignore[func-returns-value]
        self.raw = [(t, v) for t, v in self.raw if t != time]

    def evict_one(self, time: int, nth: int) -> None:
        self.window.evict(time, nth)
        there = [i for i, (t, _) in enumerate(self.raw) if t == time]
        if nth < len(there):
            del self.raw[there[nth]]

    def bulk_insert(self, times: list[int], values: list[object]) -> None:
        self.window.bulk_insert(times, values)
        self.raw += zip(times, values, strict=True)

    def bulk_evict(self, time: int) -> None:
        self.window.bulk_evict(time)
        self.raw = [(t, v) for t, v in self.raw if t > time]

    def query(self) -> None:
        self.right([v for _, v in self.raw], self.window.query())

    def range(self, lo: int, hi: int) -> None:
        self.right([v for t, v in self.raw if lo <= t < hi], self.window.query(lo, hi))

    def right(self, values: list[object], got: object) -> None:
        assert agrees(self.op, values, got), f"{got!r} is not the answer over {values!r}"

    @property
    def times(self) -> list[int]:
        return sorted({t for t, _ in self.raw})


def steps(pair: Pair, source: random.Random, count: int, grows: float) -> None:
    """Steps of every kind.  Above one half, `grows` makes more times come than go."""
    young = pair.window.youngest() or -20
    for i in range(count):
        value = None if source.random() < 0.1 else source.randint(-9, 9)
        what = source.random()
        if what < grows:
            young = max(pair.times, default=young) + source.choice([0, 1, 1, 2, 7])
            pair.do("insert", young, value)
        elif what < 0.9 and pair.times:
            inner = source.choice(pair.times)
            ends = [pair.times[0], pair.times[-1], inner + 1, -1000, 10_000]
            if source.random() < 0.4:
                pair.do("evict_one", inner, source.choice([0, 0, 1, 2]))
            else:
                pair.do("evict", inner if source.random() < 0.6 else source.choice(ends))
        elif what < 0.95:
            size = source.randint(0, 20)
            gaps = source.choices([0, 1, 2, 5], k=size)
            first = max(pair.times, default=young)
            times = [first + sum(gaps[: j + 1]) for j in range(size)]
            pair.do("bulk_insert", times, [source.randint(-9, 9) for _ in times])
        elif pair.times:
            pair.do("bulk_evict", source.choice([*pair.times, pair.times[0] - 1]))
        if i % 3 == 0:
            pair.do("query")
            lo, hi = sorted(source.choices(range(-25, young + 5), k=2))
            pair.do("range", lo, hi)


@pytest.mark.thin
@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_any_steps(op: sash.Operator, seed: int) -> None:
    source = random.Random(seed)
    pair = Pair(op)
    for grows in (0.8, 0.45, 0.2, 0.7, 0.1):
        steps(pair, source, 60, grows)


def in_order(kind: str, op: sash.Operator, seed: int) -> list[Any]:
    """A schedule of a kind, with the times that are inserted in order; evictions stay anywhere."""
    schedule = timed_schedule(kind, op, size=20, seed=seed)
    inserted = [s[1] if s[0] == "bulk_insert" else [s[1]] for s in schedule if "insert" in s[0]]
    times = iter(sorted(t for many in inserted for t in many))
    made: list[Any] = []
    for step in schedule:
        if step[0] == "insert":
            made.append(("insert", next(times), step[2]))
        elif step[0] == "bulk_insert":
            made.append(("bulk_insert", [next(times) for _ in step[1]], step[2]))
        else:
            made.append(step)
    return made


@pytest.mark.plain
def test_any_operator(ready: sash.Operator) -> None:
    kinds = list(enumerate(("in order", "in order", "duplicates", "at a distance")))
    for seed, kind in kinds if FULL else kinds[len(ready.name) % 2 :: 2]:
        schedule = in_order(kind, ready, seed)
        window = Reactive(ready)
        answers = timed_replay(window, schedule, after=window._check)
        for held, got in zip(timed_windows(schedule), answers, strict=True):
            assert agrees(ready, held, got), f"{got!r} is not the answer over {held!r}"


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
@given(data=st.data())
@settings(max_examples=examples(40))
def test_generated_steps(op: sash.Operator, data: st.DataObject) -> None:
    pair = Pair(op)
    small = st.integers(-3, 6)
    for _ in range(data.draw(st.integers(1, 30))):
        what = data.draw(st.sampled_from(["insert", "insert", "evict", "bulk_evict", "query"]))
        if what == "insert":
            young = max(pair.times, default=0) + data.draw(st.integers(0, 2))
            pair.do("insert", young, data.draw(small))
        elif what == "query":
            pair.do("query")
        else:
            pair.do(what, data.draw(st.integers(-1, 30)))
    pair.do("query")
    pair.do("range", *sorted((data.draw(st.integers(-2, 30)), data.draw(st.integers(-2, 30)))))


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 33])
def test_bulk_of_every_size(op: sash.Operator, n: int) -> None:
    for m in range(1, n + 1):
        pair = Pair(op)
        pair.do("bulk_insert", list(range(0, 2 * n, 2)), list(range(n)))
        pair.do("query")
        pair.do("bulk_evict", 2 * (m - 1))
        pair.do("query")
        pair.do("bulk_insert", list(range(2 * n, 2 * (n + m), 2)), list(range(m)))
        pair.do("query")


def slid(
    events: list[tuple[int, object]], *, span: int | None, count: int | None
) -> list[list[object]]:
    """What each answer of a slide is over."""
    held: list[tuple[int, object]] = []
    made = []
    for t, v in events:
        held.append((t, v))
        if span is not None:
            held = [x for x in held if x[0] >= t - span]
        else:
            held = held[-(count or 0) :]
        made.append([x for _, x in held])
    return made


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
@pytest.mark.parametrize(
    "how", [{"span": 0}, {"span": 9}, {"span": 500}, {"count": 1}, {"count": 8}, {"count": 40}]
)
def test_slide_is_insert_evict_query(op: sash.Operator, how: dict[str, int]) -> None:
    source = random.Random(5)
    times = sorted(source.choices(range(-200, 200), k=150))
    values = [source.choice([None, 3, -4, 0, 12]) for _ in times]
    window = Reactive(op)
    cut = 60
    got = window.slide(times[:cut], values[:cut], **how)
    window._check()
    got += window.slide(np.array(times[cut:]), values[cut:], **how)
    window._check()
    wanted = slid(list(zip(times, values)), span=how.get("span"), count=how.get("count"))
    for held, answer in zip(wanted, got, strict=True):
        assert agrees(op, held, answer)


def test_slide_over_a_window_with_holes() -> None:
    pair = Pair(ops.collect)
    for t in range(32):
        pair.do("insert", t, t)
    for t in range(1, 32, 3):
        pair.do("evict", t)
    held = [t for t, _ in pair.raw]
    assert pair.window.slide([32, 33], [32, 33], count=5) == [
        (held + [32])[-5:],
        (held + [32, 33])[-5:],
    ]
    pair.window._check()


def test_times_at_the_ends_of_int64() -> None:
    least, most = -(2**63), 2**63 - 1
    window = Reactive(SUM)
    assert window.slide([least, 0, most], [1, 2, 4], span=1) == [1, 2, 4]
    window = Reactive(SUM)
    times = [least, 1 - 2**62, 0, most]
    assert window.slide(times, [1, 8, 2, 4], span=2**63) == [1, 9, 11, 6]
    assert window.query(least) == window.query(0, None) == 6
    assert window.query(least, most) == window.query(None, most) == 2
    assert window.query(least, least) is window.query(most, most) is None
    window.bulk_evict(most)
    assert (len(window), window.query()) == (0, None)


@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
def test_slide_grows_while_times_leave(op: sash.Operator) -> None:
    times = [*range(0, 100, 5), *range(100, 300)]
    got = Reactive(op).slide(times, times, span=30)
    wanted = slid(list(zip(times, times)), span=30, count=None)
    assert all(agrees(op, held, answer) for held, answer in zip(wanted, got, strict=True))


def test_times_may_be_datetimes() -> None:
    day = datetime(2024, 2, 29, tzinfo=UTC)
    window = Reactive(ops.collect)
    window.insert(day, "a")
    window.insert(np.datetime64("2024-02-29T01:00"), "b")
    assert window.query(day, day + timedelta(hours=1)) == ["a"]
    hours = np.array(["2024-02-29T02:00", "2024-02-29T04:00"], dtype="M8[h]")
    assert window.slide(hours, ["c", "d"], span=timedelta(hours=2)) == [["a", "b", "c"], ["c", "d"]]
    assert window.slide(hours[1:], ["e"], span=np.timedelta64(1, "h")) == [["d", "e"]]


def test_figure_5_with_an_inverted_buffer() -> None:
    """4, 7, 3, 2 arrive, 4 leaves and 9 arrives in its place, before 7 in the array.  Our least
    capacity is 8, so the buffer is first moved to where the figure's capacity of 4 wraps."""
    window = Reactive(ops.concat)
    for time in range(8):
        window.insert(time, "0472"[0] if time < 4 else "4732"[time - 4])
    window.bulk_evict(3)
    assert window.query() == "4732"
    window.evict(4)
    assert window.query() == "732"
    window.insert(8, "9")
    leaves = [window._core.peek(TREE + 8 + i) for i in range(8)]
    assert [x[1] if x[0] else None for x in leaves] == ["9", *[None] * 4, "7", "3", "2"]
    assert window.query() == "7329"
    assert window._core.peek(TREE + 1)[1] == "9732", "the root has the array's order"
    window._check()


def test_compact_at_three_quarters_double_above() -> None:
    def full(holes: int) -> Reactive:
        window = Reactive(ops.collect)
        for t in range(64):
            window.insert(t, t)
        for t in range(1, 1 + holes):
            window.evict(t)
        assert window._core.get(0) == 64
        window.insert(64, 64)
        window._check()
        assert window.query() == [0, *range(1 + holes, 65)]
        return window

    assert full(16)._core.get(0) == 64
    assert full(15)._core.get(0) == 128


def test_halves_below_a_quarter() -> None:
    window = Reactive(SUM)
    for t in range(64):
        window.insert(t, 1)
    capacities = []
    for t in random.Random(1).sample(range(64), 64):
        window.evict(t)
        capacities.append((len(window), window._core.get(0)))
        assert window.query() == (len(window) or None)
    assert [(n, c) for n, c in capacities if n in (16, 15, 8, 7, 4, 3, 0)] == [
        *((16, 64), (15, 32), (8, 32), (7, 16), (4, 16), (3, 8), (0, 8)),
    ]


def counted_sum() -> tuple[Reactive, object]:
    counted = counting(ops.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b))
    return Reactive(counted.operator), counted


@pytest.mark.plain
@pytest.mark.parametrize("log", [3, 6, 10])
def test_m_changes_cost_as_in_theorem_4_2(log: int) -> None:
    n = 2**log
    window, counted = counted_sum()
    for t in range(n):
        window.insert(t, t)
    window.query()
    source = random.Random(log)
    young, held = n, list(range(n))
    for _ in range(40):
        m = source.randint(1, max(n // 4, 1))
        counted.reset()  # type: ignore[attr-defined]
        for _ in range(m // 2):  # evictions anywhere, and as many insertions
            window.evict(held.pop(source.randrange(len(held))))
        compacts = False
        for _ in range(m // 2):
            before = window._core.get(2)
            window.insert(young, young)
            held.append(young)
            compacts |= window._core.get(2) != before + 1
            young += 1
        changes = counted.combines  # type: ignore[attr-defined]
        assert changes == 0, "changes wait for the query"
        assert window.query() == sum(held)
        capacity = window._core.get(0)
        m = max(2 * (m // 2), 1)
        update = capacity if compacts else m * (1 + math.ceil(math.log2(capacity / m)))
        inverted = 2 * math.log2(capacity) + 1
        assert counted.combines <= update + inverted  # type: ignore[attr-defined]
    counted.reset()  # type: ignore[attr-defined]
    window.query(held[3], held[-3])
    assert counted.combines <= 2 * math.log2(window._core.get(0)) + 1  # type: ignore[attr-defined]


@pytest.mark.plain
def test_one_change_costs_log_n() -> None:
    window, counted = counted_sum()
    for t in range(256):
        window.insert(t, t)
    window.query()
    counted.reset()  # type: ignore[attr-defined]
    window.evict(77)
    window.query()
    assert counted.combines == 8  # type: ignore[attr-defined]
    window.query()
    assert counted.combines == 8, "nothing changed, nothing to do"  # type: ignore[attr-defined]


@pytest.mark.plain
def test_moves_are_amortised() -> None:
    """Compacting, doubling and halving move no more leaves than there were changes to pay."""
    window, counted = counted_sum()
    source = random.Random(3)
    held: list[int] = []
    for t in range(6000):
        window.insert(t, 1)
        held.append(t)
        while len(held) > 500 + 300 * math.sin(t / 300):
            window.evict(held.pop(source.randrange(len(held))))
        if t % 100 == 0:
            assert window.query() == len(held)
    assert counted.combines <= 12_000 * 10  # type: ignore[attr-defined]


@pytest.mark.usefixtures("only_new")
def test_evicted_objects_are_let_go() -> None:
    import gc
    import weakref

    class Thing:
        pass

    window = Reactive(ops.collect)
    seen = []
    for t in range(64):
        thing = Thing()
        seen.append(weakref.ref(thing))
        window.insert(t, thing)
        del thing
    for t in random.Random(0).sample(range(64), 64):
        window.evict(t)
    window.query()
    gc.collect()
    assert sum(ref() is not None for ref in seen) <= 16


def test_a_combine_that_raises_loses_nothing() -> None:
    window = Reactive(ops.max)
    for t, value in enumerate([3, 1, "text", 5, 2]):
        window.insert(t, value)
    for _ in range(3):
        with pytest.raises(TypeError):
            window.query()
        window._check()
    window.evict(2)
    assert window.query() == 5
    window._check()
    window.insert(9, 8)
    assert window.query() == 8


def test_overflow_names_the_row_and_keeps_the_window() -> None:
    window = Reactive(SUM)
    with pytest.raises(OverflowError, match="row 2: the sum leaves int64"):
        window.slide([1, 2, 3, 4], [1, 2**62, 2**62, 5], span=1)
    assert (len(window), window.youngest()) == (2, 3)
    assert window.slide([4, 5], [-5, 7], span=1) == [2**62 - 5, 2]


@pytest.mark.parametrize("op", [ops.collect, SUM, ops.count_min(8, 2)], ids=repr)
def test_bytes_round_trip(op: sash.Operator) -> None:
    window = Reactive(op)
    for t in range(30):
        window.insert(t, t)
        if t % 3:
            window.evict(t // 2)
    again = Reactive.from_bytes(window.to_bytes(), op)
    again._check()
    assert (len(again), again.oldest(), again.youngest()) == (
        *(len(window), window.oldest(), window.youngest()),
    )
    for t in range(30, 50):
        for one in (window, again):
            one.insert(t, -t)
            one.evict(t - 9)
        np.testing.assert_equal(again.query(), window.query())
    again._check()


def test_bytes_of_something_else_are_refused() -> None:
    data = Reactive(SUM).to_bytes()
    with pytest.raises(ValueError, match=r"hold a Reactive of sum\(int64\)"):
        Reactive.from_bytes(data, ops.collect)
    with pytest.raises(ValueError, match="checksum"):
        Reactive.from_bytes(data[:-1] + b"x", SUM)
    with pytest.raises(ValueError, match="no window of sash"):
        Reactive.from_bytes(b"", SUM)
    with pytest.raises(ValueError, match="version 9"):
        Reactive.from_bytes(data[:4] + b"\x09" + data[5:], SUM)


def test_types_come_from_arrays() -> None:
    window = Reactive(ops.sum)
    window.bulk_insert([1, 2], np.array([1.5, 2.0]))
    assert window.operator.types == ("float64",)
    again = Reactive.from_bytes(window.to_bytes(), ops.sum)
    assert again.slide([3], np.array([1.0]), span=1).tolist() == [3.0]


def test_bad_use_is_a_clear_error() -> None:
    window = Reactive(ops.collect)
    window.insert(5, "a")
    with pytest.raises(ValueError, match="4 is older than 5, the youngest time; use Fiba"):
        window.insert(4, "b")
    with pytest.raises(ValueError, match="row 0: Reactive takes values in order of time, and 3"):
        window.bulk_insert([3, 6], ["b", "c"])
    with pytest.raises(ValueError, match=r"row 2: .* 6 is older than 7"):
        window.slide([6, 7, 6], ["b", "c", "d"], span=1)
    with pytest.raises(ValueError, match="2 times were given for 1 values"):
        window.slide([6, 7], ["b"], span=1)
    for how in ({}, {"span": 1, "count": 1}):
        with pytest.raises(TypeError, match="span=… or by count=…: give one of them"):
            window.slide([6], ["b"], **how)
    with pytest.raises(ValueError, match="cannot be -1"):
        window.slide([6], ["b"], span=-1)
    with pytest.raises(TypeError, match=r"span is a length of time .* not 1\.5"):
        window.slide([6], ["b"], span=1.5)
    with pytest.raises(ValueError, match="cannot be 0"):
        window.slide([6], ["b"], count=0)
    with pytest.raises(ValueError, match="from an older to a younger time, not 5, 3"):
        window.query(5, 3)
    with pytest.raises(TypeError, match="'noon' is no time"):
        window.insert("noon", "b")
    with pytest.raises(TypeError, match="needs an operator"):
        Reactive(max)  # type: ignore[arg-type]
    assert window.query() == ["a"]
    assert len(window) == 1


def test_empty() -> None:
    window = Reactive(ops.collect)
    window.evict(3)
    window.bulk_evict(3)
    window.bulk_insert([], [])
    assert window.slide([], [], span=1) == []
    assert (window.query(), window.query(1, 2), window.oldest(), window.youngest()) == (
        *([], [], None, None),
    )
    window._check()
