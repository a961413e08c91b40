"""LogMta and Amta over every store: against the oracle, in what they cost, after a restart, and
with stores that are damaged or away."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import random
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash import policies
from sash.aggregators import Amta, LogMta
from sash.aggregators.level_window import LevelWindow
from sash.aggregators.pages import Pages, _Worker
from sash.aggregators.resident import DELETED_AT_ONCE
from sash.kernels.program import specialise
from sash.kernels.slots import END
from sash.stores import Claimed, Damaged, MemoryStore, Store, StoreError
from sash.testing import KINDS, agrees, counting, schedule, windows
from servers import Home
from trouble import interrupted

BOTH: list[type[LevelWindow]] = [LogMta, Amta]
SUM = ops.sum.of(int)
FIRST_AND_SUM = ops.together(ops.first, ops.sum).of(int)
OPERATORS = [ops.collect, FIRST_AND_SUM, ops.bloom(64).of(int), ops.max.of(float)]
SMALL: dict[str, Any] = {"cache": 16, "buffer": 16}  # pages of eight nodes
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
        every = 1 if near and name == "bulk" and op in OPERATORS[:2] else 41
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
def test_a_deletion_that_is_interrupted_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come while the thread's queue is full, before it has what is to be deleted."""
    store = MemoryStore()
    window = Amta(SUM, store=store, name="w", **SMALL)
    window.slide(range(2000), 100)
    window.sync()
    window.slide(range(2000), 100)
    do, calls = _Worker.do, 0

    def interrupted(worker: _Worker, work: Any) -> None:
        nonlocal calls
        calls += 1
        raise KeyboardInterrupt

    window._pages.flush()  # type: ignore[attr-defined]
    monkeypatch.setattr(_Worker, "do", interrupted)
    with pytest.raises(KeyboardInterrupt):
        window.sync()
    assert calls == 1
    monkeypatch.setattr(_Worker, "do", do)
    window.sync()
    window._pages.drain()  # type: ignore[attr-defined]
    assert len(list(store.scan(b"q"))) <= 2 * 100 // 8 + 20
    assert window.query() == sum(range(1900, 2000))


@pytest.mark.plain
def test_pages_whose_writing_is_interrupted_are_in_the_next_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C may come before the thread has been asked to write."""
    do, left = _Worker.do, 0

    def interrupted(worker: _Worker, work: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        do(worker, work)

    monkeypatch.setattr(_Worker, "do", interrupted)
    for at in range(1, 8):
        store, left = MemoryStore(), at
        window = Amta(SUM, store=store, name="w", **SMALL)
        for _ in range(120):
            with suppress(KeyboardInterrupt):
                window.insert(len(window))
        assert left < 0
        total = sum(range(len(window)))
        window.sync()
        window.release()
        window = Amta.open(store, "w")  # type: ignore[assignment]
        window._check()
        assert window.query() == total


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


# Restarts


@pytest.mark.thin
@pytest.mark.plain
@pytest.mark.parametrize("op", [ops.collect, ops.mean.of(float)], ids=repr)
@pytest.mark.parametrize("kind", BOTH)
def test_open_has_the_state_of_the_last_sync(
    kind: type[LevelWindow], op: sash.Operator, home: Home
) -> None:
    """No more and no less, to the last digit."""
    source, store = random.Random(7), home.open()
    window = kind(op, store=store, name="w", **SMALL)
    window.sync()
    held, kept, answer = [], [], window.query()
    for i in range(400 if home.kind == "memory" else 120):
        for _ in range(source.randrange(12)):
            held.append(source.random() * 100)
            window.insert(held[-1])
        leave = source.randrange(len(held) + 1) if source.random() < 0.1 else min(5, len(held))
        window.bulk_evict(leave)
        del held[:leave]
        chance = source.random()
        if chance < 0.3:
            assert agrees(op, held, window.query())
        elif chance < 0.5:
            answer = window.query()
            window.sync()
            kept = list(held)
        elif chance < 0.7:
            window.release()
            if home.kind != "memory" and i % 5 == 0:
                store.close()
                store = home.open()
            window = kind.open(store, "w", op)
            held = list(kept)
            assert len(window) == len(held)
            assert window.query() == answer
            if i % 3 == 0:
                window._check()


@pytest.mark.plain
def test_a_window_of_another_release_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    monkeypatch.setattr("sash.aggregators.stored_root._VERSION", 2)
    window = Amta(SUM, store=store, name="w")
    window.sync()
    window.release()
    monkeypatch.undo()
    for call in (lambda: Amta.open(store, "w"), lambda: Amta(SUM, store=store, name="w")):
        with pytest.raises(ValueError, match=r"another release .* version 2, .*drop\(") as found:
            call()
        assert "Amta.open" not in str(found.value), "which would be refused"
    store.drop("w")
    assert len(Amta(SUM, store=store, name="w")) == 0


@pytest.mark.plain
def test_names_writers_copies_and_bytes(home: Home) -> None:
    store = home.open()
    window = Amta(SUM, store=store, name="w", **SMALL)
    for i in range(100):
        window.insert(i)
    with pytest.raises(Claimed, match="one at a time"):
        Amta(SUM, store=store, name="w")
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(window)
    again = Amta.from_bytes(window.to_bytes(), SUM)
    again._check()
    assert (again.query(), len(again)) == (window.query(), len(window))
    assert store.names() == []
    window.sync()
    assert store.names() == ["w"]
    assert "'w' in the" in repr(window)
    window.release()
    for call in (window.sync, window.query, lambda: window.insert(3), window.evict):
        with pytest.raises(StoreError, match="let go of"):
            call()
    window.release()
    with pytest.raises(ValueError, match="there already"):
        Amta(SUM, store=store, name="w")
    assert Amta.open(store, "w").query() == sum(range(100))
    with pytest.raises(KeyError, match="no window 'v'"):
        Amta.open(store, "v")
    store.drop("w")
    assert list(store.scan()) == []
    never = Amta(SUM, store=store, name="w", **SMALL)  # and never synced
    for i in range(100):
        never.insert(i)
    never._pages.flush()  # type: ignore[attr-defined]
    never.release()
    window = Amta(SUM, store=store, name="w", **SMALL)
    assert (len(window), list(store.scan())) == (0, [])


@pytest.mark.plain
def test_what_is_refused() -> None:
    store: Any = sash.stores.memory()
    wrong: Any = "here"
    with pytest.raises(TypeError, match=r"sash\.stores\.rocksdb"):
        Amta(SUM, store=wrong, name="w")
    with pytest.raises(TypeError, match="store is where"):
        Amta(SUM, name="w")
    with pytest.raises(TypeError, match="has a name"):
        Amta(SUM, store=store)
    for cache in (0, 15, 100, "many"):
        with pytest.raises(ValueError, match="power of two"):
            Amta(SUM, store=store, name="w", cache=cache)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="buffer"):
        Amta(SUM, store=store, name="w", buffer=0)
    with pytest.raises(TypeError, match="capacity"):
        Amta(SUM, store=store, name="w", capacity=10)
    own = sash.operator(identity=(), lift=lambda x: (x,), combine=lambda a, b: a + b)
    with pytest.raises(TypeError, match="encode"):
        Amta(own, store=store, name="w")
    with pytest.raises(TypeError, match="no store to sync with"):
        Amta(SUM).sync()
    mine = sash.operator(identity=0, lift=lambda x: x, combine=max, name="mine").of(int)
    window = Amta(mine, policies.at_most(3), store=store, name="w")
    window.insert(3)
    window.sync()
    window.release()
    with pytest.raises(TypeError, match="needs the operator"):
        Amta.open(store, "w")
    with pytest.raises(ValueError, match="at_most"):
        Amta.open(store, "w", mine)
    with pytest.raises(ValueError, match="cannot become a LogMta"):
        LogMta.open(store, "w", mine, policies.at_most(3))
    assert Amta.open(store, "w", mine, policies.at_most(3)).query() == 3


@pytest.mark.plain
def test_ready_operators_are_known_by_name_also_together() -> None:
    two = ops.together(ops.sum, ops.first_n(2), columns=[0, 1]).of(int, float)
    for number, op in enumerate([SUM, FIRST_AND_SUM, ops.together(SUM, FIRST_AND_SUM), two]):
        store = MemoryStore()
        window = Amta(op, store=store, name="w", **SMALL)
        for i in range(50):
            window.insert((i, i / 2) if op is two else i)
        window.sync()
        wanted = window.query()
        window.release()
        again = Amta.open(store, "w")
        assert again.query() == wanted, f"operator {number}"
        again._check()
    own = sash.operator(identity=0, lift=lambda x: x, combine=max, name="mine")
    window = Amta(ops.together(SUM, own).of(int), store=store, name="own")
    window.sync()
    window.release()
    with pytest.raises(TypeError, match="needs the operator"):
        Amta.open(store, "own")


# Pages on their way


class Gated(MemoryStore):
    """A store that writes when its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def put_many(self, records: Any) -> None:
        assert self.gate.wait(60)
        super().put_many(records)


@pytest.mark.plain
def test_pages_that_have_left_while_they_waited_are_not_written() -> None:
    store = Gated()
    pages = Pages(store.claim("w"))
    store.gate.clear()
    for page in range(6):
        pages.save((0, page), b"data")
    pages.save((5, 0), b"data")
    pages.first[0] = 4
    store.gate.set()
    pages.flush()
    assert pages.there([(0, 1), (5, 0)]) == [(0, 4), (0, 5), (5, 0)]  # the first was on its way
    pages.close()


@pytest.mark.plain
def test_pages_are_fetched_while_others_are_being_written() -> None:
    store = Gated()
    pages = Pages(store.claim("w"))
    pages.save((0, 0), b"data")
    pages.flush()
    store.gate.clear()
    pages.save((0, 9), b"more")
    calls = pages.calls
    pages.fetch([(0, 0)])
    pages._fetcher.drain()
    assert pages._written, "nothing was written meanwhile"
    done = pages.calls
    assert [bytes(data) for data in pages.load([(0, 0), (0, 9)])] == [b"data", b"more"]
    assert pages.calls == done <= calls + 2
    store.gate.set()
    pages.close()


class Late(MemoryStore):
    """A store that answers threads in the background when its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.asked = threading.Event(), threading.Event()

    def get_many(self, keys: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self.asked.set()
            assert self.gate.wait(60)
        return super().get_many(keys)


@pytest.mark.plain
def test_pages_that_are_fetched_too_late_are_not_kept() -> None:
    store = Late()
    pages = Pages(store.claim("w"))
    for page in range(3):
        pages.save((0, page), b"data")
    pages.flush()
    pages.fetch([(0, 0), (0, 1)])
    assert store.asked.wait(60)
    pages.load([(0, 0)])  # which cannot wait
    store.gate.set()
    pages.drain()
    assert list(pages._fetched) == [(0, 1)]
    store.asked.clear()
    store.gate.clear()
    pages.fetch([(0, 2)])
    assert store.asked.wait(60)
    pages.forget_fetched()
    store.gate.set()
    pages.drain()
    assert not pages._fetched
    pages.close()


# Faults


def opened_and_used(kind: type[LevelWindow], store: Store) -> None:
    """Open a window and look at all of it."""
    window = kind.open(store, "w")
    try:
        while len(window):
            window.bulk_evict(min(5, len(window)))
            window.query()
    finally:
        window.release()


@pytest.mark.plain
@pytest.mark.parametrize("kind", BOTH)
def test_damage_is_named_and_never_a_wrong_answer(kind: type[LevelWindow], home: Home) -> None:
    store = home.open()
    window = kind(SUM, store=store, name="w", **SMALL)
    for i in range(120):
        window.insert(i)
    window.bulk_evict(20)
    window.sync()
    window.release()
    records = dict(store.scan())
    assert len(records) > 10
    harmless, named = 0, []
    for key, data in records.items():
        at = len(data) // 2
        broken = data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]
        for change in ({key: broken}, {}):
            store.write(change, [] if change else [key])
            try:
                opened_and_used(kind, store)
            except (Damaged, KeyError) as found:
                named.append(str(found))
            else:
                harmless += 1  # the page holds nothing that is looked at
            store.put_many(records)
    assert harmless <= 4
    assert all("'w' in the" in text or "no window 'w'" in text for text in named)


@pytest.mark.plain
@pytest.mark.parametrize("kind", BOTH)
def test_a_sound_page_that_belongs_elsewhere_is_damage(kind: type[LevelWindow]) -> None:
    """One of another window, or one that this window wrote after a sync and before a kill, in the
    place of the one that it wrote when it was opened again."""
    store = MemoryStore()
    window = kind(SUM, store=store, name="other", **SMALL)
    for i in range(300):
        window.insert(i)
    window.sync()
    pages = {b"qw" + key[6:]: data for key, data in store.scan(b"q")}
    window.release()
    window = kind(SUM, store=store, name="w", **SMALL)
    for i in range(200):
        window.insert(i)
    window.sync()
    for _ in range(100):
        window.insert(-1)
    window._pages.flush()  # type: ignore[attr-defined]
    lost = dict(store.scan(b"qw\0"))
    for life in range(3):
        window.release()
        window = kind.open(store, "w")
        for i in range(200 + 40 * life, 240 + 40 * life):
            window.insert(i)
        window.sync()
    window.release()
    kept = dict(store.scan(b"qw\0"))
    opened_and_used(kind, store)
    store.put_many(kept)
    again = {key for key, data in lost.items() if kept.get(key, data) != data}
    assert len(again) > 10
    assert len(pages.keys() & kept.keys()) > 30
    for key in again:
        store.put_many({key: lost[key]})
        with pytest.raises(Damaged, match="checksum"):
            opened_and_used(kind, store)
        store.put_many(kept)
    for key in pages.keys() & kept.keys():
        store.put_many({key: pages[key]})
        with pytest.raises(Damaged, match="checksum"):
            opened_and_used(kind, store)
        store.put_many(kept)


@pytest.mark.plain
def test_lives_are_forgotten_with_their_pages() -> None:
    store, held = MemoryStore(), list(range(100))
    window = Amta(SUM, store=store, name="w", **SMALL)
    for x in held:
        window.insert(x)
    counts = []
    for life in range(12):
        window.sync()
        counts.append(len(window._pages.lives._lives))  # type: ignore[attr-defined]
        window.release()
        window = Amta.open(store, "w")  # type: ignore[assignment]
        for x in range(40):
            window.insert(life * x)
            held.append(life * x)
        window.bulk_evict(40)
        del held[:40]
        assert window.query() == sum(held)
        window._check()
    assert counts[:2] == [1, 2]
    assert max(counts) <= 6


class Undeleted(MemoryStore):
    """A store that deletes nothing while it is stuck."""

    stuck = False

    def delete_many(self, keys: Any) -> None:
        if (keys := list(keys)) and self.stuck:
            raise StoreError("it does not answer")
        super().delete_many(keys)


@pytest.mark.plain
def test_a_page_that_could_not_be_deleted_is_not_deleted_after_it_was_written_anew() -> None:
    store = Undeleted()
    window = Amta(SUM, store=store, name="w", **SMALL)
    for i in range(200):
        window.insert(i)
    window.sync()
    for _ in range(100):
        window.insert(-1)
    window._pages.flush()  # type: ignore[attr-defined]
    window.release()
    store.stuck = True
    window = Amta.open(store, "w")  # type: ignore[assignment]
    window._pages.drain()  # type: ignore[attr-defined]
    store.stuck = False
    for i in range(200, 320):
        window.insert(i)
    window.sync()
    window.release()
    window = Amta.open(store, "w")  # type: ignore[assignment]
    window._check()
    assert window.query() == sum(range(320))


@pytest.mark.plain
def test_pages_that_could_not_be_deleted_are_deleted_by_the_next_process() -> None:
    store = Undeleted()
    window = Amta(SUM, store=store, name="w", **SMALL)
    for i in range(400):
        window.insert(i)
    window.sync()
    window.bulk_evict(300)
    store.stuck = True
    window.sync()
    window._pages.drain()  # type: ignore[attr-defined]
    window.sync()  # of which the process is killed before anything is deleted
    killed = MemoryStore()
    killed.put_many(dict(store.scan()))
    window = Amta.open(killed, "w")  # type: ignore[assignment]
    window._pages.drain()  # type: ignore[attr-defined]
    assert len([*killed.scan(b"q")]) < 30 < len([*store.scan(b"q")])
    assert window.query() == sum(range(300, 400))


class Unsteady(MemoryStore):
    """A store that is away now and then."""

    away = False

    def delete_many(self, keys: Any) -> None:
        if self.away:
            raise StoreError("it does not answer")
        super().delete_many(keys)

    def get_many(self, keys: Any) -> Any:
        if self.away:
            raise StoreError("it does not answer")
        return super().get_many(keys)

    def put_many(self, records: Any) -> None:
        if self.away:
            raise StoreError("it does not answer")
        super().put_many(records)


@pytest.mark.plain
@pytest.mark.parametrize("kind", BOTH)
def test_a_store_that_is_away_loses_nothing(kind: type[LevelWindow]) -> None:
    """A call goes through, or raises and has changed nothing; later all goes on."""
    source, store = random.Random(5), Unsteady()
    window = kind(SUM, store=store, name="w", **SMALL)
    held: list[int] = []
    errors = 0
    for i in range(3000):
        store.away = i % 100 > 60
        try:
            chance = source.random()
            if chance < 0.6:
                window.insert(i)
                held.append(i)
            elif chance < 0.9 and held:
                window.evict()
                del held[0]
            elif chance < 0.92:
                count = source.randrange(len(held) + 1)
                window.bulk_evict(count)
                del held[:count]
            elif chance < 0.94:
                window.sync()
        except StoreError:
            errors += 1
        assert len(window) == len(held)
        assert agrees(SUM, held, window.query())
    store.away = False
    window.sync()
    assert errors
    assert window._core.get(END) > 1000
    window._pages.drain()  # type: ignore[attr-defined]
    assert len(list(store.scan())) <= 2 * len(held) / 8 + 30, "what has left is deleted"
    window.release()
    assert agrees(SUM, held, kind.open(store, "w").query())


@pytest.mark.plain
@pytest.mark.parametrize("kind", BOTH)
def test_pages_that_could_not_be_written_are_in_the_next_sync(kind: type[LevelWindow]) -> None:
    """Whatever fails in the background, a sync that returns has written all."""
    source, store = random.Random(8), Unsteady()
    window = kind(SUM, store=store, name="w", **SMALL)
    held: list[int] = []
    syncs = 0
    for i in range(700):
        store.away = source.random() < 0.3
        with suppress(StoreError):
            window.insert(i)
            held.append(i)
        if i % 40 == 39:
            try:
                window.sync()
            except StoreError:
                continue
            syncs += 1
            store.away = False
            other = MemoryStore()
            other.put_many(dict(store.scan()))
            again = kind.open(other, "w")
            again._check()
            assert (len(again), again.query()) == (len(held), sum(held))
            again.release()
    assert syncs > 5


@pytest.mark.plain
def test_a_window_in_use_is_neither_synced_nor_released() -> None:
    refused: list[str] = []

    def lift(x: int) -> int:
        for call in (window.sync, window.release):
            try:
                call()
            except sash.InUse:
                refused.append(call.__name__)
        return x

    op = sash.operator(identity=0, lift=lift, combine=lambda a, b: a + b, compile=False)
    codec = {"encode": lambda x: str(x).encode(), "decode": lambda b: int(b)}
    op = dataclasses.replace(op, **codec)
    window = Amta(op, store=MemoryStore(), name="w")
    window.insert(3)
    assert refused == ["sync", "release"]
    window.release()
    with pytest.raises(StoreError, match="let go of"):
        window.insert(4)


@pytest.mark.plain
def test_a_release_that_is_interrupted_can_be_called_again() -> None:
    store, wanted = MemoryStore(), 0
    for at in itertools.count(1):
        window = Amta(SUM, store=store, name=f"w{at}", **SMALL)
        for i in range(60):
            window.insert(i)
        try:
            with interrupted(at, "aggregators/pages"):
                window.release()
        except KeyboardInterrupt:
            with pytest.raises((StoreError, RuntimeError), match="let go of"):
                window.insert(3)
            window.release()
            wanted += 1
        else:
            break
        finally:
            assert len(Amta(SUM, store=store, name=f"w{at}")) == 0
    assert wanted > 5


@pytest.mark.plain
def test_a_value_that_is_refused_at_the_end_of_a_page_changes_nothing() -> None:
    """A page is saved before the value that needs its room is lifted."""
    for count in range(20, 80):
        store = MemoryStore()
        window = Amta(SUM, store=store, name="w", cache=16)
        for x in range(count):
            window.insert(x)
        with pytest.raises((TypeError, ValueError)):
            window.insert("x")
        window.bulk_evict(count - 9)
        if count % 2:
            window.sync()
            window.release()
            window = Amta.open(store, "w", SUM)
        for x in range(count, count + 30):
            window.insert(x)
            assert window.query() == sum(range(count - 9, x + 1))
        window._check()
