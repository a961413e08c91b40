"""LogMta and Amta in a store, opened again: the state of the last `sync`, and who may have it."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

import sash
from sash import operators as ops
from sash import policies
from sash.aggregators import Amta, LogMta
from sash.aggregators.level_window import LevelWindow
from sash.stores import Claimed, MemoryStore, StoreError
from sash.testing import agrees
from servers import Home
from stored_windows import BOTH, FIRST_AND_SUM, SMALL, SUM


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
