"""Journals: after a kill, or a batch that is taken back, records are what they were."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from sash.stores import MemoryStore, StoreError
from sash.stores.journal import Journal
from servers import Home


def test_a_journal_goes_back_to_the_last_sync(home: Home) -> None:
    """Over all stores, buffers of any size, and syncs and reopenings at any time."""
    source, synced, now = random.Random(2), dict[bytes, bytes](), dict[bytes, bytes]()
    journal = Journal(home.open().claim("j"), buffer=300)
    for step in range(150):
        names = [bytes([source.randrange(3), source.randrange(5)]) for _ in range(4)]
        chance = source.random()
        if chance < 0.5:
            records = {name: source.randbytes(source.randrange(40)) for name in names}
            journal.put_many(records)
            now |= records
        elif chance < 0.7:
            journal.delete_many(names)
            now = {name: data for name, data in now.items() if name not in names}
        elif chance < 0.8:
            journal.spill()
        elif chance < 0.9:
            journal.sync(str(step).encode())
            synced = dict(now)
            assert journal.root == str(step).encode()
        elif step % 3 == 0:
            journal.space.release()
            journal.space.store.close()
            journal, now = Journal(home.open().claim("j"), buffer=300), dict(synced)
        assert journal.get_many(names) == [now.get(name) for name in names]
        assert dict(journal.scan()) == now
        assert dict(journal.scan(b"\1")) == {k: d for k, d in now.items() if k[0] == 1}
    journal.sync(b"")
    assert all(key[:1] == b"d" for key, _ in journal.space.scan())


class Unsure(MemoryStore):
    """A store that fails now and then, before a write or after it."""

    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self.source, self.steady = source, False

    def write(self, puts: Any, deletes: Any = (), *, durable: bool = False) -> None:
        chance = 1.0 if self.steady else self.source.random()
        if chance < 0.2:
            raise StoreError("it does not answer")
        super().write(puts, deletes, durable=durable)
        if chance < 0.5:
            raise StoreError("the answer is lost")


def test_a_journal_whose_writes_fail_or_seem_to() -> None:
    """After a kill, the records are those of the last sync that returned, or of one that came
    through after it."""
    source = random.Random(3)
    for _ in range(60):
        store = Unsure(source)
        journal, now = Journal(store.claim("j"), buffer=60), dict[bytes, bytes]()
        allowed = {b"": dict(now)}  # by root
        for step in range(source.randrange(60)):
            records = {bytes([source.randrange(6)]): source.randbytes(source.randrange(30))}
            journal.put_many(records)
            now |= records
            with suppress(StoreError):
                journal.spill()
            if source.random() < 0.2:
                allowed[str(step).encode()] = dict(now)
                with suppress(StoreError):
                    journal.sync(str(step).encode())
                    allowed = {str(step).encode(): dict(now)}
        store.steady = True
        journal.space.release()
        journal = Journal(store.claim("j"))
        assert dict(journal.scan()) == allowed[journal.root or b""]


def test_a_journal_begins_empty_where_a_drop_was_cut_short(home: Home) -> None:
    """The root goes first, so what a kill leaves are records that belong to nothing."""
    store = home.open()
    journal = Journal(store.claim("j"), buffer=0)
    journal.put_many({bytes([i]): b"old" for i in range(5)})
    journal.spill()
    journal.sync(b"root")
    journal.put_many({b"\1": b"newer"})
    journal.spill()
    journal.space.release()
    store.delete_many([b"nj"])
    journal = Journal(store.claim("j"))
    assert journal.root is None
    assert list(journal.scan()) == []
    assert list(store.scan()) == []


class Killed(MemoryStore):
    """A store whose process is killed before one of the next writes."""

    left = 1_000_000

    def write(self, puts: Any, deletes: Any = (), *, durable: bool = False) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        super().write(puts, deletes, durable=durable)


def test_a_kill_while_a_journal_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes back in several writes, so that memory is bounded, and after any of them the next
    process goes on."""
    monkeypatch.setattr("sash.stores.journal._MANY", 4)
    for left in range(5):
        store = Killed()
        journal = Journal(store.claim("j"), buffer=0)
        kept = {bytes([i]): b"kept" for i in range(12)}
        journal.put_many(kept)
        journal.sync(b"root")
        journal.put_many({bytes([i]): b"lost" for i in range(6, 18)})
        journal.delete_many([bytes([i]) for i in range(3)])
        journal.spill()
        journal.space.release()
        store.left = left
        with pytest.raises(KeyboardInterrupt):
            Journal(store.claim("j"))
        store.left = 1_000_000
        space = store.claim("j")
        assert dict(Journal(space).scan()) == kept
        assert all(key[:1] == b"d" for key, _ in space.scan())
