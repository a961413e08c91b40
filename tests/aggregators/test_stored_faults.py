"""LogMta and Amta over stores that are damaged, or away: an error, and never a wrong answer."""

from __future__ import annotations

import dataclasses
import random
from contextlib import suppress
from typing import Any

import pytest

import sash
from sash.aggregators import Amta
from sash.aggregators.level_window import LevelWindow
from sash.kernels.slots import END
from sash.stores import Damaged, MemoryStore, Store, StoreError
from sash.testing import agrees
from servers import Home
from stored_windows import BOTH, SMALL, SUM


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
