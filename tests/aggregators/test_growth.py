"""Memories that grow and shrink: right answers, few slots copied an operation, room reserved, and
memory given back.

The sizes from which a memory has a span, and of the pieces in which a ring moves, are made small
here, so that small windows go through all that large ones do.
"""

from __future__ import annotations

import copy
import mmap
import random
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sash
from sash import aggregators
from sash import operators as ops
from sash.aggregators import (
    BTree,
    Daba,
    DabaLite,
    Fiba,
    Reactive,
    SubtractOnEvict,
    Timed,
    timed_fifo,
)
from sash.aggregators.in_order import InOrder
from sash.kernels import buffer_memory, moving
from sash.kernels.buffer_memory import BufferCore
from sash.kernels.program import jit_enabled
from sash.kernels.slots import CAPACITY
from sash.kernels.spans import Span
from trouble import interrupted

PRIME = 1_000_003
THIRD = pow(3, -1, PRIME)

#: Affine maps of numbers modulo a prime, one after another: neither order nor multiplicity of
#: values can be wrong without showing, and the oldest can be taken out again.
affine = sash.operator(
    identity=(1, 1, 0),
    lift=lambda x: (3, THIRD, x),
    combine=lambda a, b: (a[0] * b[0] % PRIME, a[1] * b[1] % PRIME, (b[0] * a[2] + b[2]) % PRIME),
    inverse=lambda total, old: (
        total[0] * old[1] % PRIME,
        total[1] * old[0] % PRIME,
        (total[2] - total[0] * old[1] % PRIME * old[2]) % PRIME,
    ),
    lower=lambda a: a[2],
    name="affine",
).of(int)

#: Compiled, one of them is enough: the kernels are those that other tests run, and all that is
#: tested here is around them.
GRADUAL: list[type[InOrder]] = [DabaLite] if jit_enabled() else [DabaLite, Daba, SubtractOnEvict]
IN_ORDER: list[type[InOrder]] = [
    made
    for made in (getattr(aggregators, name) for name in aggregators.__all__)
    if isinstance(made, type) and issubclass(made, InOrder) and made is not InOrder
]


def answer(values: Any) -> int:
    found = 0
    for x in values:
        found = (3 * found + x) % PRIME
    return found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_memory, "MODERATE", 1 << 10)
    monkeypatch.setattr(timed_fifo, "MODERATE", 1 << 10)
    monkeypatch.setattr(buffer_memory, "TRIMMED", 1 << 9)
    monkeypatch.setattr(moving, "PIECE", 1 << 9)


def walk(window: Any, seed: int, steps: int, most: int = 700) -> Iterator[deque[int]]:
    """Take a window through random insertions and evictions, longer spells of more of the one or
    of the other, and yield what it must hold after each."""
    rng, held, up = random.Random(seed), deque[int](), 0.9
    for step in range(steps):
        if step % 400 == 0:
            up = rng.choice([0.95, 0.95, 0.5, 0.05])
        if not held or (rng.random() < up and len(held) < most):
            value = rng.randrange(PRIME)
            window.insert(value)
            held.append(value)
        else:
            window.evict()
            held.popleft()
        yield held


@pytest.mark.parametrize("spans", [True, False])
@pytest.mark.parametrize("aggregator", GRADUAL)
def test_rings_that_move_answer_as_the_oracle(
    aggregator: type[InOrder], spans: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not spans:  # Windows, or a limit of address space
        monkeypatch.setattr(buffer_memory, "reserve", lambda needed: None)
    capacities, moved = set(), 0
    for seed in range(2):
        window = aggregator(affine)
        for step, held in enumerate(walk(window, seed, 3000)):
            capacities.add(window._core.get(CAPACITY))
            moved += window._core.moving is not None
            if step % 41 == 0:
                assert window.query() == answer(held)
                assert len(window) == len(held)
            if step % 397 == 0:
                window._check()
    assert {8, 512, 1024} <= capacities
    assert (moved > 20) == spans


@pytest.mark.parametrize("aggregator", GRADUAL)
def test_what_changes_behind_the_copying_is_copied_again(
    aggregator: type[InOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above would see it if it were not: it does see it, with DABA, if `ring` says that
    nothing changes."""
    if aggregator is SubtractOnEvict:
        return  # nothing does change
    kernel = aggregator._kernel
    monkeypatch.setattr(aggregator, "_kernel", _without_changes(kernel))
    wrong = 0
    for seed in range(2):
        window = aggregator(affine)
        for step, held in enumerate(walk(window, seed, 3000)):
            wrong += step % 10 == 0 and window.query() != answer(held)
    assert wrong


def _without_changes(kernel: Any) -> Any:
    import dataclasses

    return dataclasses.replace(kernel, ring=lambda before, after, operations: [])


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number of slots that were copied so far."""
    count = [0]
    copy_slots, resize = BufferCore.copy_slots, BufferCore.resize

    def copy_counted(self: BufferCore, to: int, start: int, n: int) -> None:
        count[0] += n
        copy_slots(self, to, start, n)

    def resize_counted(
        self: BufferCore, capacity: int, blocks: Any, *, roomy: bool = False
    ) -> None:
        count[0] += sum(n for _, _, n in blocks)
        resize(self, capacity, blocks, roomy=roomy)

    monkeypatch.setattr(BufferCore, "copy_slots", copy_counted)
    monkeypatch.setattr(BufferCore, "resize", resize_counted)
    return count


@pytest.mark.parametrize("offset", [0, 300])
@pytest.mark.parametrize("aggregator", GRADUAL)
def test_few_slots_are_copied_in_an_operation(
    aggregator: type[InOrder], offset: int, copied: list[int]
) -> None:
    """Whatever the window's length, and also where it starts in the middle of the ring."""
    window, worst = aggregator(affine), 0
    each, size = window._core.kernel.each, 2500

    def count(operation: Callable[..., None], *given: int) -> None:
        nonlocal worst
        before = copied[0]
        operation(*given)
        worst = max(worst, copied[0] - before)

    for _ in range(offset):
        window.insert(1)
        window.evict()
    for value in range(size):
        count(window.insert, value)
    assert window.query() == answer(range(size))
    for _ in range(size - 20):
        count(window.evict)
    assert window.query() == answer(range(size - 20, size))
    window._check()
    assert copied[0] > 0
    # a memory of a moderate size as a whole, or a piece and what is near the inner positions
    assert worst <= max((1 << 10) // 24 + 3, each * ((1 << 9) // 24 + 4 * 2 * 4))


@pytest.mark.parametrize("aggregator", GRADUAL)
def test_windows_in_the_middle_of_a_move(aggregator: type[InOrder]) -> None:
    """Copies, bytes, and calls with many rows."""
    window, seen = aggregator(affine), 0
    for held in walk(window, 5, 3000):
        if window._core.moving is None:
            continue
        seen += 1
        if seen % 4 == 1:
            others = [copy.copy(window), aggregator.from_bytes(window.to_bytes(), affine)]
            for other in others:
                assert other.slide([1, 2, 3], 2000)[-1] == answer([*held, 1, 2, 3])
            others[seen % 2]._check()
        if seen % 9 == 0:
            assert window.slide([4, 5], 2000)[-1] == answer([*held, 4, 5])
            held.extend([4, 5])
    assert seen > 40
    assert window.query() == answer(held)


def test_an_interrupted_move_leaves_the_window_sound() -> None:
    """Ctrl-C before any line of code that sees to the memory, again and again."""
    window, held, broken = DabaLite(affine), deque[int](), 0
    for value in range(100):
        window.insert(value)
        held.append(value)
    assert window._core.gradual
    for value in range(1100):
        grows = value < 700
        try:
            with interrupted(value % 83 + 1, "sash/kernels/"):
                window.insert(value) if grows else window.evict()
        except KeyboardInterrupt:
            broken += 1
        # an insertion sees to the memory before it changes anything, an eviction after that
        if not grows:
            held.popleft()
        elif len(window) > len(held):
            held.append(value)
        if value % 10 == 0:
            assert window.query() == answer(held)
    assert broken > 30
    for _ in range(100):
        window.evict()
        held.popleft()
    assert window.query() == answer(held)
    window._check()


@pytest.mark.plain
def test_an_interrupted_move_and_a_call_with_many_rows() -> None:
    """Ctrl-C before any line of code that sees to the memory; then a slide fills the ring."""
    for at in range(1, 10_000):
        window, held = DabaLite(affine), deque[int]()
        for value in range(5):
            window.insert(value)
            window.evict()
        for value in range(48):
            window.insert(value)
            held.append(value)
        try:
            with interrupted(at, "sash/kernels/"):
                while window._core.moving is not None or window._core.get(CAPACITY) == 64:
                    window.insert(7)
                    held.append(7)
        except KeyboardInterrupt:
            held.extend([7] * (len(window) - len(held)))
        else:
            break
        capacity = window._core.get(CAPACITY)
        rest = list(range(capacity - len(held)))
        if rest:
            window.slide(rest, capacity)
        held.extend(rest)
        for value in range(3):
            window.insert(value)
            held.append(value)
        assert window.query() == answer(held)
        for _ in range(len(held) * 2 // 3):
            window.evict()
            held.popleft()
        assert window.query() == answer(held)
        window._check()
    else:
        raise AssertionError("the move does not end")
    assert at > 100


@pytest.mark.parametrize("made", [Fiba] if jit_enabled() else [Fiba, BTree])
def test_trees_grow_where_they_are(made: Any) -> None:
    window = made(affine, min_arity=2)
    addresses = []
    for time in range(1500):
        window.insert(time * 7 % 1500, time)
        addresses.append(window._core.m)
    assert len(set(addresses)) < 5
    assert len(set(addresses[200:])) == 1
    assert window.query() == answer([t * 643 % 1500 for t in range(1500)])  # 7 * 643 = 1 mod 1500
    window._check()
    bytes_ = window.to_bytes()
    assert len(bytes_) < 8 * window._core.get(CAPACITY)
    again = made.from_bytes(bytes_, affine)
    again.insert(2000, 5)
    window.insert(2000, 5)
    assert again.query() == window.query()


def test_no_insertion_into_a_tree_reserves_a_span_and_moves_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them takes long, and can be left to another insertion."""
    did: list[str] = []
    reserve, allocate = buffer_memory.reserve, BufferCore._allocate

    def reserved(needed: int) -> Span | None:
        did.append("reserves")
        return reserve(needed)

    def moved(core: BufferCore, capacity: int, *, roomy: bool) -> None:
        did.append("moves")
        allocate(core, capacity, roomy=roomy)

    monkeypatch.setattr(buffer_memory, "reserve", reserved)
    monkeypatch.setattr(buffer_memory, "MODERATE", 1 << 14)
    window = Fiba(affine, min_arity=2)
    monkeypatch.setattr(BufferCore, "_allocate", moved)
    seen = []
    for time in range(1500):
        did.clear()
        window.insert(time, time)
        seen += [" and ".join(did)] if did else []
    assert seen in (["moves"] * i + ["reserves", "moves"] for i in range(1, 4))
    assert window.query() == answer(list(range(1500)))
    window._check()


def test_many_small_windows_reserve_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    asked = []
    monkeypatch.setattr(buffer_memory, "reserve", asked.append)
    windows = [DabaLite(affine), Fiba(affine, min_arity=2)]
    if not jit_enabled():
        windows.append(Fiba(ops.bloom(1024).of(int)))
    for window in windows:
        for i in range(40):
            window.insert(i) if isinstance(window, DabaLite) else window.insert(i, i)
        copy.copy(window)
        type(window).from_bytes(window.to_bytes(), window.operator)
    assert not asked


def test_only_large_memories_ask_for_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large page is charged as a whole, however little of it is used."""
    asked = []
    monkeypatch.setattr(Span, "use_large_pages", lambda span, wanted: asked.append(wanted))
    window = DabaLite(affine)
    window.slide(np.arange(1100), 400)
    assert asked
    assert not any(asked)
    monkeypatch.setattr(buffer_memory, "LARGE", 1 << 12)
    window.slide(np.arange(1100), 400)
    assert asked[-2:] == [True, False]


def test_times_go_through_a_span() -> None:
    window = Timed(DabaLite(ops.sum.of(int)))
    held, rng, at = deque[int](), random.Random(1), 0
    for step in range(3000):
        at += rng.randrange(3)
        window.insert(at, at)
        held.append(at)
        if rng.random() < (0.3 if step < 1500 else 0.9):
            window.evict(held[0])
            oldest = held[0]
            while held and held[0] == oldest:
                held.popleft()
        if step % 100 == 0:
            window._check()
            assert (len(window), window.query()) == (len(held), sum(held) if held else None)
    assert window._queue._span is not None
    other = copy.copy(window)
    other.bulk_evict(at)
    assert (len(other), len(window)) == (0, len(held))


@pytest.mark.parametrize("together", [7, 65, 900])
def test_memory_is_given_back_if_many_leave_at_once(together: int, copied: list[int]) -> None:
    """And as much is copied as leaves, about, whatever the window's length."""
    window, n = Timed(DabaLite(affine)), 4000
    times = np.arange(n) // together
    window.bulk_insert(times, np.arange(n))
    worst, last = 0, int(times[-1])
    for time in range(last + 1):
        before = copied[0]
        window.evict(time)
        worst = max(worst, copied[0] - before)
        core = window._fifo._core
        assert core.moving or core.get(CAPACITY) <= max(4 * len(window), 8)
        if time % 50 == 0:
            left = range((time + 1) * together, n)
            assert window.query() == (answer(left) if left else 0)
            window._check()
    assert isinstance(core, BufferCore)
    assert core.get(CAPACITY) <= 256
    assert core.buffer.nbytes <= 1 << 14
    assert worst <= 12 * together + 60


def test_many_leave_while_a_ring_is_on_its_way() -> None:
    """It goes on to the capacity for those that are left."""
    window = Timed(DabaLite(affine))
    window.bulk_insert(range(2000), range(2000))
    core = window.fifo._core
    for time, capacity in ((1487, 2048), (1488, 2048), (1888, 1024)):
        window.bulk_evict(time)
        assert core.get(CAPACITY) == capacity
        assert core.moving or capacity <= 4 * len(window)
    for time in range(1889, 1970):
        window.evict(time)
    assert core.get(CAPACITY) <= 4 * len(window)
    assert window.query() == answer(range(1970, 2000))


def test_pages_behind_the_times_are_given_back_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are dropped in steps that do not end at a page."""
    given, give_back = set[int](), Span.give_back

    def noted(span: Span, start: int, end: int) -> int:
        page = mmap.PAGESIZE // 8
        given.update(range(-(-start // page), end // page))
        return give_back(span, start, end)

    monkeypatch.setattr(Span, "give_back", noted)
    queue = timed_fifo.Queue()
    queue.extend(np.arange(3000))
    for _ in range(100):
        queue.extend(np.arange(1001))
        queue.drop(1001)
    assert len(given) > 100
    assert given == set(range(max(given) + 1))


def test_pages_behind_many_times_are_given_back_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the eviction and the changes after it, so that none of them waits for all pages."""
    given, give_back = list[int](), Span.give_back

    def noted(span: Span, start: int, end: int) -> int:
        given.append(end - start)
        return give_back(span, start, end)

    monkeypatch.setattr(Span, "give_back", noted)
    piece, queue = timed_fifo.PIECE, timed_fifo.Queue()
    queue.extend(np.arange(10 * piece))
    queue.drop(10 * piece - 2)
    queue.append(10 * piece)
    queue.drop(1)
    assert given == [piece] * 3
    for time in range(100):
        queue.append(10 * piece + 1 + time)
    assert max(given) == piece
    assert len(given) == 10
    assert sum(given) > 10 * piece - timed_fifo.MUCH
    assert queue.times().tolist() == list(range(10 * piece - 1, 10 * piece + 101))


def test_restored_times_keep_the_capacity_of_the_aggregator() -> None:
    window = Timed(DabaLite(affine))
    window.bulk_insert(range(100), range(100))
    again = Timed.from_bytes(window.to_bytes(), DabaLite(affine, capacity=1000))
    assert again.query() == window.query()
    assert again.fifo._core.get(CAPACITY) == again.fifo._core.floor == 1024
    memory = again.fifo._core.m
    again.bulk_insert(range(100, 1000), range(900))
    again.bulk_evict(990)
    assert again.fifo._core.m == memory
    assert len(again) == 9
    again._check()
    small = Timed.from_bytes(window.to_bytes(), DabaLite(affine, capacity=30))
    small.bulk_evict(98)
    assert small.fifo._core.get(CAPACITY) == 32


@pytest.mark.parametrize("op", [affine, ops.collect], ids=["typed", "objects"])
@pytest.mark.parametrize("aggregator", IN_ORDER)
def test_capacity_is_kept_for_in_order_windows(aggregator: type[InOrder], op: Any) -> None:
    if jit_enabled() and op is affine and aggregator is not DabaLite:
        return  # the same Python code
    if aggregator is SubtractOnEvict and op is not affine:
        op = ops.count
    window = aggregator(op, capacity=300)
    memory, capacity = window._core.m, window._core.get(CAPACITY)
    assert capacity >= 300
    for value in range(300):
        window.insert(value)
    assert window._core.m is memory or window._core.m == memory
    window._check()
    again = aggregator.from_bytes(window.to_bytes(), op) if op is affine else copy.copy(window)
    for _ in range(295):
        window.evict()
        again.evict()
    window._check()
    again._check()
    assert window._core.get(CAPACITY) == capacity
    assert (again._core.get(CAPACITY) == capacity) == (op is not affine)  # a copy keeps it
    for value in range(1000):
        window.insert(value)
    assert window._core.get(CAPACITY) > capacity
    assert copy.copy(window)._core.floor == capacity


@pytest.mark.parametrize("made", [Fiba, BTree, Reactive])
def test_capacity_is_kept_for_timed_windows(made: Any) -> None:
    window = made(ops.sum, capacity=3000)
    size = len(window._core.m.slots)
    for time in range(3000):
        window.insert(time if made is Reactive else time * 7 % 3000, 1)
    window.bulk_evict(2990)
    assert len(window._core.m.slots) == size
    assert window.query() == 9
    window._check()


def test_an_array_that_says_the_types_finds_the_capacity() -> None:
    window = DabaLite(ops.max, capacity=300)
    window.slide(np.arange(5), 3)
    assert window.operator.types
    assert window._core.get(CAPACITY) == 512


@pytest.mark.parametrize("made", [DabaLite, aggregators.Amta, aggregators.FlatFit, Fiba, Reactive])
def test_capacities_that_cannot_be(made: Any) -> None:
    for wrong in (2.5, "many", True):
        with pytest.raises(TypeError, match=r"capacity is a number of .* to reserve room for, not"):
            made(ops.sum, capacity=wrong)
    for wrong in (0, -3):
        with pytest.raises(ValueError, match=f"at least 1, not {wrong}; leave it out"):
            made(ops.sum, capacity=wrong)
    with pytest.raises(MemoryError, match=r"no memory for a capacity of .*; give a smaller"):
        made(ops.sum, capacity=10**18)


def resident() -> int:
    """Bytes of memory that this process is charged for; 0 if the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def test_memory_is_charged_when_it_is_used_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = resident()
    idle = DabaLite(ops.sum.of(int), capacity=1 << 22)  # 64 MiB
    assert resident() - before < 1 << 23
    n = 1 << 18 if jit_enabled() else 1 << 13
    window = DabaLite(ops.sum.of(int))
    for value in range(n):
        window.insert(value)
    words, used = len(window._core.buffer), resident()  # type: ignore[union-attr]
    for _ in range(n - n // 64):
        window.evict()
    assert len(window._core.buffer) < words // 8  # type: ignore[union-attr]
    assert not used or not jit_enabled() or used - resident() > 8 * words // 4
    assert window.query() == sum(range(n - n // 64, n))
    assert len(idle) == 0
