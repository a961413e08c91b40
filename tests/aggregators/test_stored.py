"""LogMta and Amta over every store: against the oracle, and in what they cost."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash import policies
from sash.aggregators import Amta
from sash.aggregators.level_window import LevelWindow
from sash.aggregators.resident import DELETED_AT_ONCE
from sash.kernels.program import specialise
from sash.stores import MemoryStore
from sash.testing import KINDS, agrees, counting, schedule, windows
from servers import Home
from stored_windows import BOTH, FIRST_AND_SUM, SMALL, SUM
from thinning import FULL

OPERATORS = [ops.collect, FIRST_AND_SUM, ops.bloom(64).of(int), ops.max.of(float)]
#: Pages of so many, some with levels that are not in the store.
SIZES: list[dict[str, Any]] = [SMALL, {"cache": 64, "buffer": 16}, {"cache": 256, "buffer": 100}]


def replay(window: LevelWindow, steps: list[Any], *, every: int) -> list[Any]:
    answers = []
    for number, (what, *given) in enumerate(steps):
        if what == "insert":
            window.insert(given[0])
        elif what == "evict":
            window.bulk_evict(given[0])
        else:
            answers.append(window.query())
        if number % every == 0:
            window._check()
    return answers


@pytest.mark.thin
@pytest.mark.plain
@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize("kind", BOTH)
def test_every_schedule_over_every_store(
    kind: type[LevelWindow], op: sash.Operator, home: Home
) -> None:
    store = home.open()
    near = home.kind == "memory"
    for seed, name in enumerate(KINDS if near else ("steady", "bulk", "sawtooth")):
        steps = schedule(name, op, size=30, seed=seed)
        window = kind(op, store=store, name=name, **SIZES[seed % 3])
        every = 1 if near and (FULL or (name == "bulk" and op in OPERATORS[:2])) else 41
        for held, got in zip(windows(steps), replay(window, steps, every=every), strict=True):
            assert agrees(op, held, got), f"{got!r} is not the answer over {held!r}"
        window._check()
        window.release()


@pytest.mark.plain
@pytest.mark.parametrize("op", [ops.collect, SUM], ids=repr)
@pytest.mark.parametrize("kind", BOTH)
def test_every_number_leaves_at_once(kind: type[LevelWindow], op: sash.Operator) -> None:
    for start in (0, 5, 64):
        for size in (1, 9, 40, 150):
            for count in range(0, size + 1, 1 if size < 10 else 13):
                window = kind(op, store=MemoryStore(), name="w", **SIZES[count % 2])
                for i in range(start + size):
                    window.insert(i)
                    if i < start:
                        window.evict()
                window.bulk_evict(count)
                window._check()
                held = list(range(start + count, start + size))
                assert agrees(op, held, window.query())
                for i in range(20):
                    window.insert(i)
                assert agrees(op, [*held, *range(20)], window.query())


POLICIES = [policies.at_most(60), policies.at_most_sum(1500)]


@pytest.mark.thin
@pytest.mark.plain
@pytest.mark.parametrize("rule", POLICIES, ids=repr)
@pytest.mark.parametrize("kind", BOTH)
def test_policies_and_many_dimensions(
    kind: type[LevelWindow], rule: sash.Policy, home: Home
) -> None:
    """As in memory, with bulk evictions by rules, and a restart now and then."""
    op, source, store = FIRST_AND_SUM, random.Random(4), home.open()
    sizes = SIZES[rule is POLICIES[1]]
    window, plain = kind(op, rule, store=store, name="w", **sizes), kind(op, rule)
    for i in range(400 if home.kind == "memory" else 150):
        value = source.randrange(30) if source.random() < 0.97 else 1400
        window.insert(value)
        plain.insert(value)
        if source.random() < 0.1:
            window.enforce()
            plain.enforce()
        assert (len(window), window.query()) == (len(plain), plain.query())
        if i % 29 == 0:
            window._check()
            window.sync()
            window.release()
            window = kind.open(store, "w", op, rule)
    values = np.array([source.randrange(60) for _ in range(300)])
    for found, right in zip(window.slide(values), plain.slide(values), strict=True):
        assert (found == right).all()
    window._check()


@pytest.mark.once
@pytest.mark.parametrize("kind", BOTH)
def test_compiled_with_the_sizes_of_the_paper(kind: type[LevelWindow]) -> None:
    source = np.random.default_rng(1)
    window, plain = kind(SUM, store=MemoryStore(), name="w"), kind(SUM)
    for size in (1, 3000, 700, 5000):
        values = source.integers(-9, 9, 9000)
        assert (window.slide(values, size) == plain.slide(values, size)).all()
    for count in (1, 2000, 1500):
        window.bulk_evict(count)
        plain.bulk_evict(count)
        assert (window.query(), len(window)) == (plain.query(), len(plain))
    window._check()


@pytest.mark.plain
def test_slides_of_any_size_in_plain_python() -> None:
    source = np.random.default_rng(1)
    for kind, sizes in zip(BOTH * 3, sorted(SIZES * 2, key=str), strict=True):
        window, plain = kind(SUM, store=MemoryStore(), name="w", **sizes), kind(SUM)
        for size in (1, 5, 100, 250, 50):
            values = source.integers(-9, 9, 300)
            assert (window.slide(values, size) == plain.slide(values, size)).all()
            window._check()


# Costs


class Counting(MemoryStore):
    """A store that counts the records that are moved, and the calls."""

    calls = records = 0

    def get_many(self, keys: Any) -> Any:
        self.calls += 1
        self.records += len(keys)
        return super().get_many(keys)

    def put_many(self, records: Any) -> Any:
        self.calls += 1
        self.records += len(records)
        super().put_many(records)


@pytest.mark.plain
@pytest.mark.parametrize("n", [1 << 8, 1 << 11, 1 << 13])
def test_amta_takes_constant_combines_and_few_calls_a_round(n: int) -> None:
    counted, store = counting(SUM), Counting()
    window = Amta(counted.operator, store=store, name="w", cache=64, buffer=64)
    for i in range(n):
        window.insert(i)
    window._pages.drain()  # type: ignore[attr-defined]
    counted.reset()
    store.calls = store.records = 0
    for i in range(n):
        window.evict()
        window.insert(i)
        window.query()
    window._pages.drain()  # type: ignore[attr-defined]
    assert counted.combines <= 5 * n
    # a page of 32 nodes is written and read once; there are two nodes for each value
    assert store.records <= 4 * n / 32 + 4 * math.log2(n)
    assert store.calls <= store.records


@pytest.mark.plain
@pytest.mark.parametrize("kind", BOTH)
def test_a_bulk_eviction_takes_logarithmic_combines_and_records(kind: type[LevelWindow]) -> None:
    for n, cache in ((1 << 9, 64), (1 << 12, 64), (1 << 12, 512)):
        for rule in (None, policies.at_most(7)):
            for count in (1, n // 3, n - 7):
                counted, store = counting(SUM), Counting()
                window = kind(counted.operator, rule, store=store, name="w", cache=cache)
                for i in range(n):
                    window.insert(i)
                window._pages.drain()  # type: ignore[attr-defined]
                counted.reset()
                store.calls = store.records = 0
                if rule is None:
                    window.bulk_evict(count)
                else:
                    window.enforce()
                window.query()
                most = math.log2(n)
                assert counted.combines <= 12 * most + 12, "whatever the size of pages"
                assert store.records <= 4 * most + 4
                assert store.calls <= 3 * most + 4


@pytest.mark.plain
def test_what_is_in_memory_does_not_grow_with_the_window() -> None:
    sizes, window = [], Amta(SUM, store=MemoryStore(), name="w", **SMALL)
    for i in range(1 << 13):
        window.insert(i)
        sizes.append(window._core.buffer.nbytes)  # type: ignore[union-attr]
    slot = 8 * window._core.width
    assert sizes[-1] <= slot * (12 * 24 * 8 + 200) + 1000
    assert len(window) == 1 << 13


@pytest.mark.plain
def test_records_that_are_not_needed_are_deleted_after_a_sync() -> None:
    store = MemoryStore()
    window = Amta(SUM, store=store, name="w", **SMALL)
    most = 0
    for i in range(3000):
        window.insert(i)
        if len(window) > 100:
            window.bulk_evict(1 + i % 90)
        if i % 50 == 0:
            window.sync()
            window._pages.drain()  # type: ignore[attr-defined]
            most = max(most, len(list(store.scan())))
    assert most <= 2 * (100 + 60) / 8 + 30
    store_before = len(list(store.scan()))
    for i in range(500):
        window.insert(i)
    window._pages.flush()  # type: ignore[attr-defined]
    assert len(list(store.scan())) > store_before
    window.release()
    window = Amta.open(store, "w", buffer=16)
    window._pages.drain()  # type: ignore[attr-defined]
    assert len(list(store.scan())) <= store_before, "what came after the sync is gone"


def test_a_window_that_was_never_synced_takes_no_more_than_it_holds(home: Home) -> None:
    """No root needs what has left, so it is deleted; from the first sync on, it waits for the
    next."""
    store, size = home.open(), 400
    window = Amta(SUM, store=store, name="w", **SMALL)
    held = 2 * (size // 8 + DELETED_AT_ONCE) + 20  # with pages above
    for turn in range(4):
        for _ in range(5):
            assert window.slide(range(1000), size)[-1] == sum(range(1000 - size, 1000))
        window._check()
        if not turn:
            window.bulk_evict(size - 5)
            assert window.query() == sum(range(995, 1000))
        window._pages.flush()  # type: ignore[attr-defined]
        there = len(list(store.scan(b"q")))
        assert there <= held if turn < 2 else there > 2 * held
        if turn == 1:
            window.sync()
    window.sync()
    window._pages.drain()  # type: ignore[attr-defined]
    assert len(list(store.scan(b"q"))) <= held
    window.release()
    assert Amta.open(store, "w").query() == sum(range(1000 - size, 1000))


@pytest.mark.plain
def test_a_window_that_was_never_synced_and_loses_many_at_once_keeps_no_more(home: Home) -> None:
    """Whether they leave by `bulk_evict` or by a policy."""
    store, most = home.open(), 2 * (400 // 8 + DELETED_AT_ONCE) + 20
    window = Amta(SUM, store=store, name="w", **SMALL)
    under = Amta(SUM, policies.at_most_sum(500.0), store=store, name="v", **SMALL)
    for turn in range(12):
        for i in range(400):
            window.insert(i)
            under.insert(1)
        window.bulk_evict(len(window) - 5)
        under.insert(495)
        under.enforce()
        assert (window.query(), under.query()) == (sum(range(395, 400)), 500)
        for each, name in ((window, "w"), (under, "v")):
            each._pages.flush()  # type: ignore[attr-defined]
            there = len(list(store.scan(b"q" + name.encode())))
            assert there <= most, (name, turn)


@pytest.mark.plain
def test_pages_after_the_root_are_deleted_also_behind_a_gap(home: Home) -> None:
    """As there is one where pages left while they waited to be written."""
    store = home.open()
    window = Amta(SUM, store=store, name="w", **SMALL)
    window.slide(range(500), 100)
    window.sync()
    window._pages.drain()  # type: ignore[attr-defined]
    before = list(store.scan(b"q"))
    window.slide(range(2500), 5000)
    window._pages.flush()  # type: ignore[attr-defined]
    gone = [(level, page) for level in (0, 3) for page in range(90, 300)]
    window._pages.delete(gone)  # type: ignore[attr-defined]
    window.release()
    assert len(list(store.scan(b"q"))) > len(before) + 50
    window = Amta.open(store, "w", SUM, buffer=16)
    window._pages.drain()  # type: ignore[attr-defined]
    assert list(store.scan(b"q")) == before
    assert window.query() == sum(range(400, 500))


SAME = [ops.count, ops.mean, ops.together(ops.count, ops.max), ops.together(ops.first, ops.sum)]


@pytest.mark.plain
@pytest.mark.parametrize("op", [op.of(float) for op in SAME], ids=repr)
@pytest.mark.parametrize("constant", [True, False])
def test_words_that_are_the_same_are_written_once(op: sash.Operator, constant: bool) -> None:
    """In pages of 128 nodes, of which the store has 146."""
    store, words = MemoryStore(), specialise(Amta._kernels[0], op).layout.words  # type: ignore[union-attr]
    window, memory = Amta(op, store=store, name="w", cache=256, buffer=16), Amta(op)
    for turn in range(3):
        x = np.full(1000, 3.5) if constant else np.arange(1000.0) + turn
        np.testing.assert_array_equal(window.slide(x, 700), memory.slide(x, 700))
        window._check()
        window.bulk_evict(100)
        memory.bulk_evict(100)
        assert window.query() == memory.query()
    window._pages.flush()  # type: ignore[attr-defined]
    pages = [len(data) for _, data in store.scan(b"q")]
    varying = 0 if constant else words - ("count" in repr(op) or "mean" in repr(op))
    assert max(pages) <= 8 * 146 * varying + 40 * words
    window.sync()
    window.release()
    assert Amta.open(store, "w").query() == memory.query()
