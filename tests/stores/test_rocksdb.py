"""A store on RocksDB: when files are written, what becomes of dead ones, and how it is closed."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sash
from sash.stores import Store, StoreError
from sash.stores.contract import QUEUE


class Watched:
    """A RocksDB of which is known how many bytes were written since the last flush."""

    def __init__(self, db: Any, main: Any) -> None:
        self._db, self._main = db, main
        self.waiting = self.most = self.flushes = 0

    def write(self, batch: Any, *options: Any) -> None:
        self.waiting += batch.size_in_bytes()
        self.most = max(self.most, self.waiting)
        self._main.write(batch, *options)

    def flush(self, *given: Any, **options: Any) -> None:
        self.waiting, self.flushes = 0, self.flushes + 1
        self._db.flush(*given, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


@pytest.mark.parametrize("first", [b"r", QUEUE])
def test_rocksdb_begins_files_before_a_write_would_have_to_wait(
    first: bytes, tmp_path: Path
) -> None:
    """A write that waits holds Python's lock, so that nothing would be done in the background."""
    cache = 1 << 20
    with sash.stores.rocksdb(tmp_path, cache=cache) as store:
        main, family = store._families[0], store._families[first == QUEUE]
        kept = main.db, family.db
        watched = main.db = family.db = Watched(family.db, main.db)
        for i in range(300):
            size = 1000 if i % 3 else 60_000
            store.write({first + bytes([i % 250]) * 9: bytes(size)}, durable=i % 50 == 49)
        main.db, family.db = kept
        assert watched.most <= cache // 8
        assert 40 <= watched.flushes <= 100
        assert len(list(store.scan())) == 250


def test_a_slow_window_does_not_keep_the_files_of_a_fast_one(tmp_path: Path) -> None:
    """Each turn writes 8 MB that live until the next, and four small records that stay, one in each
    file."""
    with sash.stores.rocksdb(tmp_path) as store:
        fast, slow = store.claim("fast").in_order(), store.claim("slow").in_order()
        page, most, turns = random.Random(5).randbytes(1 << 16), 0, 40
        for turn in range(turns):
            for i in range(128):
                fast.put_many({b"%06d" % (128 * turn + i): page})
                if i % 32 == 0:
                    slow.put_many({b"%06d" % (128 * turn + i): page[:2000]})
            fast.write({}, root=b"")
            if turn:
                fast.delete_many([b"%06d" % (128 * (turn - 1) + i) for i in range(128)])
            store._collector.wait()  # as disks are slow at times
            there = 0
            for file in tmp_path.glob("*.blob"):
                with suppress(FileNotFoundError):  # that goes just now
                    there += file.stat().st_size
            most = max(most, there)
        assert most < 100 << 20, "of 320 MB that were written"
        assert [key for key, _ in slow.scan()] == [b"%06d" % i for i in range(0, 128 * turns, 32)]
        assert all(data == page[:2000] for _, data in slow.scan())
        assert len(list(fast.scan())) == 128


class Late:
    """A RocksDB whose store is written to while it is being closed."""

    def __init__(self, db: Any, store: Store) -> None:
        self._db, self._store, self.said = db, store, list[str]()
        self.writer = threading.Thread(target=self._write)

    def close(self) -> None:
        self._db.close()
        self.writer.start()
        self.writer.join(0.2)

    def _write(self) -> None:
        try:
            self._store.put_many({QUEUE + b"w\0page": b"x"})
        except StoreError as error:
            self.said.append(str(error))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def test_a_write_while_a_store_is_being_closed_is_refused(tmp_path: Path) -> None:
    """Else its pages would be among other records, where nobody finds them."""
    store = sash.stores.rocksdb(tmp_path)
    store.put_many({QUEUE + b"w\0": b"first"})
    queues = store._families[1]
    late = queues.db = Late(queues.db, store)
    store.close()
    store.close()
    late.writer.join()
    assert len(late.said) == 1
    assert "cannot be written: it is closed" in late.said[0]
    with sash.stores.rocksdb(tmp_path) as store:
        assert dict(store.scan()) == {QUEUE + b"w\0": b"first"}
