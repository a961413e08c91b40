"""What every store does: one suite over all of them.

A new store is one more kind of `Home`.
"""

from __future__ import annotations

import multiprocessing
import random
from pathlib import Path
from typing import Any

import pytest

import sash
from sash.stores import Claimed, Damaged, MemoryStore, Store, StoreError
from sash.stores.contract import Space
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


class Refusing(MemoryStore):
    """A store that may refuse a claim when it has made a space for it."""

    refuses = True

    def _claim(self, name: str) -> Space:
        self.last = super()._claim(name)
        if self.refuses:
            raise StoreError("it refuses")
        return self.last


def test_a_claim_that_was_refused_lets_go_of_no_later_one() -> None:
    store = Refusing()
    with pytest.raises(StoreError, match="it refuses"):
        store.claim("w")
    refused, store.refuses = store.last, False
    space = store.claim("w")
    refused.release()
    with pytest.raises(Claimed, match="one at a time"):
        store.claim("w")
    space.release()
    store.claim("w")


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


# Errors


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
