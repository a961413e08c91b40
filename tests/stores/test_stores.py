"""What every store does: one suite over all of them.

A new store is one entry of STORES.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from sash.stores import MemoryStore, Store
from sash.stores.sealed import seal, unseal

STORES: dict[str, Callable[[], Store]] = {"memory": MemoryStore}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    return STORES[request.param]()


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
