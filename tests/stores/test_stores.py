"""What every store does: one suite over all of them.

A new store is one more kind of `Home`.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sash
from sash.stores import Claimed, Damaged, MemoryStore, Store, StoreError
from sash.stores.contract import QUEUE, Space
from sash.stores.journal import Journal
from sash.stores.sealed import seal, unseal
from servers import Home, RedisServer


@pytest.fixture
def store(home: Home) -> Store:
    return home.open()


def test_records_are_kept_replaced_and_deleted(store: Store) -> None:
    store.put_many({b"a": b"1", b"b": b"", b"\x00\xff": bytes(range(256))})
    assert store.get_many([b"b", b"a", b"c", b"\x00\xff", b"a"]) == [
        b"",
        b"1",
        None,
        bytes(range(256)),
        b"1",
    ]
    store.put_many({b"a": b"2"})
    store.delete_many([b"b", b"nothing"])
    assert store.get_many([b"a", b"b"]) == [b"2", None]
    store.put_many({})
    store.delete_many([])
    assert store.get_many([]) == []


def test_scan_is_in_order_of_keys_below_a_prefix(store: Store) -> None:
    store.put_many({b"p\xff": b"4", b"p": b"1", b"q": b"5", b"p\x00": b"2", b"pa": b"3", b"": b"0"})
    assert [data for _, data in store.scan(b"p")] == [b"1", b"2", b"3", b"4"]
    assert [data for _, data in store.scan()] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert list(store.scan(b"none")) == []


def test_keys_in_ranges(store: Store) -> None:
    names = [b"p\0", b"p\1\0", b"p\1\5", b"p\1\xff", b"p\2\0", b"p\3\7", b"q\1\5", b"q\2", b"r"]
    store.put_many(dict.fromkeys(names, b"x"))
    ranges = [(b"p\1\5", b"p\2\0"), (b"p\3\1", b"p\4")]
    assert store.keys_in(ranges) == [b"p\1\5", b"p\1\xff", b"p\3\7"]
    assert store.keys_in([(b"q", b"q\2")]) == [b"q\1\5"]
    assert store.keys_in([(b"p\1\6", b"p\1\7")]) == []
    assert store.keys_in([(b"", b"p\1"), (b"p\3", b"s")]) == [b"p\0", *names[5:]]
    assert store.keys_in([]) == []
    space = store.claim("w").in_order()
    space.put_many(dict.fromkeys(names, b"y"))
    assert space.keys_in(ranges) == [b"p\1\5", b"p\1\xff", b"p\3\7"]


def test_like_a_dict(store: Store) -> None:
    source, kept = random.Random(1), dict[bytes, bytes]()
    for _ in range(200):
        names = [bytes([source.randrange(4), source.randrange(4)]) for _ in range(4)]
        if source.random() < 0.6:
            records = {name: source.randbytes(source.randrange(20)) for name in names}
            store.put_many(records)
            kept |= records
        else:
            store.delete_many(names)
            for name in names:
                kept.pop(name, None)
        assert store.get_many(names) == [kept.get(name) for name in names]
    assert dict(store.scan()) == kept


def test_a_write_puts_and_deletes(store: Store) -> None:
    store.put_many({b"a": b"1", b"b": b"2"})
    store.write({b"a": b"3", b"c": b"4"}, [b"b", b"x"], durable=True)
    assert dict(store.scan()) == {b"a": b"3", b"c": b"4"}
    store.write({}, [b"a"])
    store.write({})
    assert dict(store.scan()) == {b"c": b"4"}


def test_records_outlive_the_store_object(home: Home) -> None:
    with home.open() as store:
        store.write({bytes([i]) * 2000: bytes([i]) * 5000 for i in range(50)}, durable=True)
    with home.open() as store:
        assert store.get_many([bytes([7]) * 2000]) == [bytes([7]) * 5000]
        assert len(list(store.scan())) == 50


# Names

NAMES = ["a", "ab", "a b", "a*", "a?", "[a]", "ä", "nr", "a/b"]


def test_windows_share_a_store_and_their_names_are_kept_apart(home: Home) -> None:
    store = home.open()
    for name in NAMES:
        space = store.claim(name)
        assert space.root() is None
        space.write({b"x": name.encode(), b"": b"empty"}, root=f"root of {name}".encode())
        space.release()
    assert store.names() == sorted(NAMES, key=str.encode)
    for name in NAMES:
        space = store.claim(name)
        assert space.root() == f"root of {name}".encode()
        assert dict(space.scan()) == {b"": b"empty", b"x": name.encode()}
        space.delete_many([b""])
        assert space.get_many([b"", b"x"]) == [None, name.encode()]
        space.release()
    store.drop("a")
    store.drop("never there")
    assert store.names() == sorted(set(NAMES) - {"a"}, key=str.encode)
    assert dict(store.claim("ab").scan()) == {b"x": b"ab"}
    assert dict(store.claim("a").scan()) == {}


def test_names_that_cannot_be() -> None:
    store = sash.stores.memory()
    wrong: list[Any] = ["", "a\0b", "x" * 201, None, b"a", 3]
    for name in wrong:
        with pytest.raises((ValueError, TypeError), match="name"):
            store.claim(name)


def test_one_writer_at_a_time_in_a_process(store: Store) -> None:
    space = store.claim("w")
    for claim in (store.claim, store.drop):
        with pytest.raises(Claimed, match=r"'w' in .* one at a time"):
            claim("w")
    store.claim("v")  # another name is free, and let go of with the object
    store.claim("v")
    space.release()
    for call in (lambda: space.put_many({b"a": b"1"}), lambda: space.write({}, root=b"")):
        with pytest.raises(StoreError, match="let go of"):
            call()
    store.claim("w").put_many({b"a": b"1"})


def _second(kind: str, place: str, found: Any) -> None:
    """What a second process is told."""
    try:
        if kind == "redis":
            sash.stores.redis(place, lease=0.4).claim("w")
        else:
            sash.stores.rocksdb(place)
    except StoreError as error:
        found.put(str(error))
    else:
        found.put("it has it")


@pytest.mark.parametrize("kind", ["rocksdb", "redis"])
def test_a_second_process_is_refused(kind: str, tmp_path: Path, redis_server: RedisServer) -> None:
    store: Store
    if kind == "redis":
        place = redis_server.url
        store = sash.stores.redis(place, lease=0.4)
    else:
        place = str(tmp_path)
        store = sash.stores.rocksdb(place)
    space: Space | None = store.claim("w")
    context = multiprocessing.get_context("spawn")
    said: list[str] = []
    for _ in range(2):
        found = context.Queue()
        other = context.Process(target=_second, args=(kind, place, found))
        other.start()
        said.append(found.get(timeout=60))
        other.join()
        assert space is not None
        space.release()
        store.close()
    assert "one at a time" in said[0]
    assert said[1] == "it has it"


def test_a_lease_that_ran_out_goes_to_another_and_never_comes_back(
    redis_server: RedisServer,
) -> None:
    one = sash.stores.redis(redis_server.url, lease=0.3)
    other = sash.stores.redis(redis_server.url, lease=0.3)
    first = one.claim("held up")
    first.write({b"a": b"1"}, root=b"1")
    vars(first)["_done"].set()  # as in a process that stands still
    second = other.claim("held up")
    for call in (lambda: first.put_many({b"a": b"2"}), lambda: first.get_many([b"a"])):
        with pytest.raises(Claimed, match="another writer took it over"):
            call()
    first.release()  # does not let go of what it has no more
    with pytest.raises(Claimed, match=r"has a writer, process \d+"):
        sash.stores.redis(redis_server.url, lease=0.3).claim("held up")
    assert second.get_many([b"a"]) == [b"1"]
    second.release()


def test_a_lease_that_the_server_lost_never_comes_back(tmp_path: Path) -> None:
    """The server counts from one again, so another writer's number may be the same."""
    server = RedisServer(tmp_path)
    try:
        one, other = (sash.stores.redis(server.url, lease=5) for _ in range(2))
        first = one.claim("w")
        first.write({b"a": b"1"}, root=b"1")
        one._client.flushall()
        for call in (lambda: first.put_many({b"a": b"2"}), lambda: first.get_many([b"a"])):
            with pytest.raises(Claimed, match="forgotten the lease"):
                call()
        second = other.claim("w")
        second.write({b"a": b"3"}, root=b"3")
        for call in (lambda: first.put_many({b"a": b"2"}), lambda: first.get_many([b"a"])):
            with pytest.raises(Claimed, match="another writer took it over"):
                call()
        assert (second.get_many([b"a", b"b"]), second.root()) == ([b"3", None], b"3")
    finally:
        server.close()


# Errors


def test_a_server_that_throws_records_away_is_refused(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    try:
        client = sash.stores.redis(server.url)._client
        client.config_set("maxmemory", 100 << 20)
        sash.stores.redis(server.url)
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(StoreError, match=r"policy is allkeys-lru.* noeviction"):
            sash.stores.redis(server.url)
        client.config_set("maxmemory", 0)
        sash.stores.redis(server.url)
    finally:
        server.close()


def test_a_server_that_refuses_or_is_away(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, password="s3cret-word")
    try:
        assert sash.stores.redis(server.url).names() == []
        for wrong in (f"redis://127.0.0.1:{server.port}/0", server.url.replace("word", "w0rd")):
            with pytest.raises(StoreError, match="password") as found:
                sash.stores.redis(wrong)
            _no_secret(found.value)
        store = sash.stores.redis(server.url, patience=0.3)
        space = store.claim("w")
        space.write({b"a": b"1"}, root=b"")
        assert "s3cret" not in repr(store) + repr(space)
        server.stop()
        for call in (lambda: space.put_many({b"a": b"2"}), lambda: space.get_many([b"a"])):
            with pytest.raises(StoreError, match="does not answer") as found:
                call()
            _no_secret(found.value)
        server.start()
        assert space.get_many([b"a"]) == [b"1"]
        space.put_many({b"a": b"2"})
        assert space.get_many([b"a"]) == [b"2"]
    finally:
        server.close()


def _no_secret(error: BaseException | None) -> None:
    import traceback

    assert error is not None
    assert "s3cret" not in "".join(traceback.format_exception(error))


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


def test_what_cannot_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        sash.stores.rocksdb(tmp_path / "file")
    wrong: Any = 3
    with pytest.raises(TypeError, match="folder"):
        sash.stores.rocksdb(wrong)
    with pytest.raises(ValueError, match="bytes"):
        sash.stores.rocksdb(tmp_path, cache=10)
    for url in ("localhost", wrong):
        with pytest.raises(TypeError, match="URL"):
            sash.stores.redis(url)
    with pytest.raises(StoreError, match="not one of Redis"):
        sash.stores.redis("http://user:s3cret@localhost")
    store = sash.stores.rocksdb(tmp_path / "store")
    store.close()
    with pytest.raises(StoreError, match="it is closed"):
        store.get_many([b"a"])


# Journals


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


def test_a_damaged_root_is_named(home: Home) -> None:
    store = home.open()
    space = store.claim("w")
    space.write({}, root=b"what it was")
    key, data = next(store.scan(b"n"))
    store.put_many({key: data[:-1] + b"!"})
    with pytest.raises(Damaged, match=r"'w' in .* checksum"):
        space.root()


def test_a_sealed_record_is_refused_unless_it_is_as_it_was_written() -> None:
    data = seal(b"what is kept", b"here")
    assert bytes(unseal(data, b"here")) == b"what is kept"
    for at in range(len(data)):
        broken = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(ValueError, match=r"damaged|no record of sash|version"):
            unseal(broken, b"here")
    for size in range(len(data)):
        with pytest.raises(ValueError, match="damaged"):
            unseal(data[:size], b"here")
    with pytest.raises(ValueError, match="damaged"):
        unseal(data, b"there")
