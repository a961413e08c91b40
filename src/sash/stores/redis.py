"""A store in a Redis server, by the package redis.

A window has a lease: a key that lives for some seconds and is renewed while its writer lives.  With
each lease the window gets another fencing token: a number that rises by one, and the name of the
lease.  All writes go through a script that compares the writer's token with the window's, and all
reads get the token along with the records.  So a writer that was held up for so long that another
took its window over can neither write any more, nor take the other's records for its own.  The
name is there for servers that lost what they had, and count from one again.  A script runs as one
step, so a kill leaves all of a write or nothing.

How durable a write is, the server decides: with `appendonly yes`, records outlive it.  A server
that may throw records away when its memory is full is refused.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from .contract import Claimed, Space, Store, StoreError

__all__ = ["RedisStore", "redis"]

_PREFIX = b"sash:"
_LEASES = b"sash lease: "
_MANY = 1000  # keys of a call
_abandoned: set[bytes] = set()  # holders of leases in this process that are no more

_TAKE = """
local held = redis.call('get', KEYS[2])
if held and held ~= ARGV[3] and held ~= ARGV[1] then
  return {0, held, redis.call('pttl', KEYS[2])}
end
local before = string.match(redis.call('get', KEYS[1]) or '0', '^%d+')
local token = string.format('%d %s', before + 1, ARGV[4])
redis.call('set', KEYS[1], token)
redis.call('set', KEYS[2], ARGV[1], 'px', ARGV[2])
return {1, token}
"""

_CHECK = """
local token = redis.call('get', KEYS[1])
if token ~= ARGV[1] then return token or 'none' end
"""

_RENEW = _CHECK + "redis.call('set', KEYS[2], ARGV[2], 'px', ARGV[3])\nreturn false"

_LET_GO = _CHECK + "redis.call('del', KEYS[2])\nreturn false"

# ARGV: token, holder, milliseconds, how many puts, keys and records in turn, keys to delete
_WRITE = (
    _CHECK
    + """
redis.call('set', KEYS[2], ARGV[2], 'px', ARGV[3])
local puts = tonumber(ARGV[4])
for i = 5, 4 + 2 * puts, 2 do redis.call('set', ARGV[i], ARGV[i + 1]) end
for i = 5 + 2 * puts, #ARGV do redis.call('unlink', ARGV[i]) end
return false
"""
)


class RedisStore(Store):
    """Records in a Redis server; made by `sash.stores.redis`."""

    def __init__(self, url: str, lease: float, patience: float) -> None:
        try:
            import redis
            from redis.backoff import ConstantBackoff
            from redis.retry import Retry
        except ImportError:
            raise ImportError(
                "a store on Redis needs the package redis: pip install 'sash[redis]'"
            ) from None
        self.lease = lease
        self._leased: weakref.WeakSet[_Leased] = weakref.WeakSet()
        self._closed = False
        self._errors_of = redis.exceptions
        self._shown = _without_credentials(url)
        turns = max(int(patience / 0.25), 0)
        with self._errors("cannot be opened"):
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=max(patience, 1.0) + 5,
                socket_connect_timeout=max(patience, 1.0),
                retry=Retry(ConstantBackoff(0.25), 0),
            )
            self._client.ping()  # at once, or it is the wrong server
            self._check_keeps()
            self._client.set_retry(Retry(ConstantBackoff(0.25), turns))
            register = self._client.register_script
            self._take, self._renew, self._let_go, self._store = map(
                register, (_TAKE, _RENEW, _LET_GO, _WRITE)
            )

    def __repr__(self) -> str:
        return f"the Redis store {self._shown}"

    def _check_keeps(self) -> None:
        """Refuse a server that throws records away when its memory is full."""
        try:
            found = self._client.info("memory")
        except (self._errors_of.NoPermissionError, self._errors_of.ResponseError):
            return  # who may not ask has to know
        policy = str(found.get("maxmemory_policy"))
        if found.get("maxmemory") and policy.startswith("allkeys"):
            raise StoreError(
                f"{self!r} cannot be opened: its maxmemory-policy is {policy}, so it may throw "
                "records away when its memory is full; set it to noeviction"
            )

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Errors that say which server, and no credentials."""
        errors = self._errors_of
        if self._closed:
            raise StoreError(
                f"{self!r} {what}: it is closed; open it again with sash.stores.redis(…)"
            )
        try:
            yield
        except (errors.RedisError, OSError, ValueError) as error:
            if isinstance(error, errors.AuthenticationError | errors.NoPermissionError):
                said = "it refuses the user or the password"
                said += "; give them in the URL: redis://user:password@host:port/0"
            elif "NOAUTH" in str(error) or "Authentication required" in str(error):
                said = "it asks for a password; give it in the URL: redis://:password@host:port/0"
            elif isinstance(error, errors.ConnectionError | errors.TimeoutError | OSError):
                said = "it does not answer; nothing is lost, try again when the server is back"
            elif isinstance(error, errors.ResponseError):
                said = str(error)
            else:
                said = f"the URL is not one of Redis ({type(error).__name__})"
            raise StoreError(f"{self!r} {what}: {said}") from None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found: list[bytes | None] = []
        with self._errors("cannot be read"):
            for i in range(0, len(keys), _MANY):
                found += self._client.mget([_PREFIX + key for key in keys[i : i + _MANY]])
        return found

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self.write(records)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        self.write({}, keys)

    def write(
        self, puts: Mapping[bytes, bytes], deletes: Iterable[bytes] = (), *, durable: bool = False
    ) -> None:
        gone = [_PREFIX + key for key in deletes]
        with self._errors("cannot be written"), self._client.pipeline(transaction=True) as pipe:
            if puts:
                pipe.mset({_PREFIX + key: data for key, data in puts.items()})
            if gone:
                pipe.unlink(*gone)
            pipe.execute()

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        keys = self._keys_below(prefix)
        for i in range(0, len(keys), _MANY):
            some = keys[i : i + _MANY]
            for key, data in zip(some, self.get_many(some), strict=True):
                if data is not None:
                    yield key, data

    def _keys_below(self, prefix: bytes) -> list[bytes]:
        pattern = b"".join(_literal(byte) for byte in _PREFIX + prefix) + b"*"
        with self._errors("cannot be read"):
            return sorted({key[len(_PREFIX) :] for key in self._client.scan_iter(pattern, _MANY)})

    def _claim(self, name: str) -> Space:
        made = _Leased(self, name)
        self._leased.add(made)
        return made

    def close(self) -> None:
        """Let go of all windows and streams, so that others can open them, and of the server."""
        if not self._closed:
            for space in list(self._leased):
                space.release()
            self._closed = True
            self._client.close()


class _Leased(Space):
    """The records of a name, as long as the writer has the lease."""

    def __init__(self, store: RedisStore, name: str) -> None:
        super().__init__(store, name)
        self._redis = store
        # the braces keep both on one server of a cluster
        text = b"{" + name.encode() + b"}"
        self._keys = [_LEASES + b"token " + text, _LEASES + b"holder " + text]
        self._millis = int(store.lease * 1000)
        self._id = os.urandom(8).hex()
        self._holder = json.dumps({"id": self._id, **_process()})
        self._token = self._take()
        self._done = threading.Event()
        # the thread must not keep the space alive
        given = (store, self._keys, [self._token, self._holder, self._millis], self._done)
        threading.Thread(target=_renew, args=given, daemon=True).start()
        discard, done, who = self._let_go, self._done, self._holder.encode()

        def let_go() -> None:
            """No call of the server, as this may come when the object is collected."""
            _abandoned.add(who)
            done.set()
            discard()

        self._let_go: Any = weakref.finalize(self, let_go)
        self._let_go.atexit = False

    def release(self) -> None:
        if not self.released:
            super().release()
            with suppress(StoreError), self._redis._errors("cannot be written"):
                self._redis._let_go(self._keys, [self._token])
                _abandoned.discard(self._holder.encode())  # the server knows

    def _take(self) -> bytes:
        """The fencing token of a new lease.  A writer that lives renews its lease, so it is enough
        to watch the lease for a while; one that is dead is found out at once on its machine."""
        store, gone, left = self._redis, "", None
        while True:
            with store._errors("cannot be written"):
                found = store._take(self._keys, [self._holder, self._millis, gone, self._id])
            if found[0]:
                return bytes(found[1])
            held, now = found[1], found[2]
            if _is_dead(held):
                gone = held
                continue
            if left is not None and now > left:
                who = json.loads(held)
                raise Claimed(
                    f"{self!r} has a writer, process {who['pid']} on {who['host']}; one at a time "
                    "can have it: end that process, or use another name"
                )
            left = now
            time.sleep(min(max(now, 1) / 1000, store.lease / 10))

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        names, found = [_PREFIX + self._key(key) for key in keys], list[bytes | None]()
        for i in range(0, len(names), _MANY):
            with self._redis._errors("cannot be read"):
                token, *data = self._redis._client.mget([self._keys[0], *names[i : i + _MANY]])
            if token != self._token:
                raise self._taken(token, "read")
            found += data
        return found

    def _write(self, puts: dict[bytes, bytes], deletes: list[bytes], durable: bool) -> None:
        given: list[Any] = [self._token, self._holder, self._millis, len(puts)]
        for key, data in puts.items():
            given += (_PREFIX + key, data)
        given += [_PREFIX + key for key in deletes]
        with self._redis._errors("cannot be written"):
            found = self._redis._store(self._keys, given)
        if found is not None:
            raise self._taken(None if found == b"none" else found, "written")

    def _taken(self, token: bytes | None, what: str) -> Claimed:
        """The error for a server that has another token."""
        why = "another writer took it over"
        if token is None:
            why = "the server has forgotten the lease, and with it perhaps records"
        return Claimed(
            f"{self!r} cannot be {what} any more: {why}; open it again, to go on from the last "
            "sync()"
        )


def _renew(store: RedisStore, keys: list[bytes], given: list[Any], done: threading.Event) -> None:
    """Renew a lease until its writer is done with it."""
    while not done.wait(store.lease / 4):
        try:
            if store._renew(keys, given) is not None:
                return
        except Exception:  # the server may come back; writes say what is wrong with it
            continue


def _process() -> dict[str, Any]:
    """What tells this process from all others, on any machine."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": _since(os.getpid())}


def _since(pid: int) -> str:
    """When a process of this machine was started, by its processes' own count; empty if there is no
    such process, or no way to know."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot:
            machine = boot.read().strip()
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        if fields[0] == "Z":
            return ""
        return f"{machine}:{os.stat('/proc/self/ns/pid').st_ino}:{fields[19]}"
    except (OSError, IndexError):
        return ""


def _is_dead(held: bytes) -> bool:
    """True if the holder of a lease was a process of this machine and is no more, or an object of
    this one that is no more."""
    if held in _abandoned:
        return True
    who, mine = json.loads(held), _since(os.getpid())
    if not mine or not who["since"] or who["host"] != socket.gethostname():
        return False
    here = mine.split(":")[:2] == who["since"].split(":")[:2]
    return here and _since(who["pid"]) != str(who["since"])


def _literal(byte: int) -> bytes:
    """A byte of a pattern that stands for itself."""
    return (b"\\" if byte in b"*?[]^\\-" else b"") + bytes([byte])


def _without_credentials(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}"
    except ValueError:
        return "at an address that cannot be read"


def redis(url: str, *, lease: float = 10.0, patience: float = 5.0) -> RedisStore:
    """A store in a Redis server, such as redis://:password@localhost:6379/0.

    A writer that dies loses its window `lease` seconds later, on the same machine at once.  A call
    waits up to `patience` seconds for a server that does not answer.

    >>> import sash
    >>> sash.stores.redis("redis://:secret@localhost:1/0", patience=0)
    Traceback (most recent call last):
    ...
    sash.stores.contract.StoreError: the Redis store redis://localhost:1/0 cannot be opened: it \
does not answer; nothing is lost, try again when the server is back
    """
    if not isinstance(url, str) or "://" not in url:
        raise TypeError("a Redis store has a URL such as redis://localhost:6379/0")
    if not lease > 0 or not patience >= 0:
        raise ValueError(f"lease and patience are seconds, not {lease!r} and {patience!r}")
    return RedisStore(url, lease, patience)
