"""A store in a Redis server: leases, fencing, and what a server may do to its records."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import sash
from sash.stores import Claimed, StoreError
from servers import RedisServer


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


def test_a_store_that_is_closed_lets_go_of_its_leases(redis_server: RedisServer) -> None:
    """The client would connect again by itself, and renew them for as long as the process lives."""
    store = sash.stores.redis(redis_server.url, lease=60)
    space = store.claim("closed")
    space.write({b"a": b"1"}, root=b"1")
    store.close()
    store.close()
    for call in (lambda: store.get_many([b"a"]), store.names, lambda: store.claim("closed")):
        with pytest.raises(StoreError, match=r"it is closed; open it again with sash\.stores"):
            call()
    with pytest.raises(StoreError, match="open it again"):
        space.put_many({b"a": b"2"})
    with sash.stores.redis(redis_server.url, lease=60) as other:
        before = time.monotonic()
        assert other.claim("closed").get_many([b"a"]) == [b"1"]
        assert time.monotonic() - before < 5


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
