"""What a store does: it keeps bytes by key, and knows nothing of what they mean.

Calls are few and large, because each one may be a round trip to another process.  Lookups go by
known keys; `scan` serves restoring, checking and dumping, and may be slow.

Many windows share a store, each under a name.  `claim` hands out the records of one name to one
writer at a time, and `Space` keeps them apart from others by a prefix:

    n NAME          the root of a window: what it was at its last `sync`
    r NAME \\0 KEY   its other records
    q NAME \\0 KEY   its records that come and go in order: written once, the oldest deleted first

The root is written last, in one step with all that belongs to it, so a name is there exactly if a
`sync` was completed.
"""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from threading import Lock
from typing import Any, Self

from .sealed import Damaged, seal, unseal

__all__ = ["QUEUE", "Claimed", "Space", "Store", "StoreError"]

QUEUE = b"q"  # keys of records that come and go in order begin so

_LONGEST = 200  # bytes of a name
_MANY = 1000  # records that are removed at a time


class StoreError(RuntimeError):
    """A store cannot do what is asked of it: it is out of reach, full, closed, or refuses.

    >>> import sash
    >>> sash.stores.memory().claim("")
    Traceback (most recent call last):
    ...
    ValueError: a window in a store needs a name: some text without zero bytes, not ''
    """


class Claimed(StoreError):
    """Another writer has the window of this name, or took it over.

    >>> import sash
    >>> store = sash.stores.memory()
    >>> space = store.claim("delays")
    >>> store.claim("delays")
    Traceback (most recent call last):
    ...
    sash.stores.contract.Claimed: 'delays' in the store in memory has a writer in this process; \
one at a time can have it: use that one, or let it go with release()
    """


class Store(ABC):
    """A home for records.

    A store of your own has the four methods that are abstract here, and `write` if a process may
    be killed in the middle of it.

    >>> import sash
    >>> isinstance(sash.stores.memory(), Store)
    True
    """

    def __repr__(self) -> str:
        return f"a {type(self).__name__}"

    @abstractmethod
    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The record of each key, None for a key that has none."""

    @abstractmethod
    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        """Keep these records, instead of those that the keys had."""

    @abstractmethod
    def delete_many(self, keys: Iterable[bytes]) -> None:
        """Remove the records of these keys; a key that has none is no error."""

    @abstractmethod
    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All keys that begin so, with their records, in order of the keys."""

    def keys_in(self, ranges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """The keys from `low` on and before `high`, for each such pair; the pairs rise and do not
        overlap.  A store that can find them without reading other records has a method of its own.
        """
        bounds = [bound for pair in ranges for bound in pair] or [b""]
        first, last = min(bounds), max(bounds)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        keys = self._keys_below(bytes(byte for byte, _ in same))
        return [key for key in keys if any(low <= key < high for low, high in ranges)]

    def _keys_below(self, prefix: bytes) -> Iterable[bytes]:
        """All keys that begin so, in order."""
        return (key for key, _ in self.scan(prefix))

    def write(
        self, puts: Mapping[bytes, bytes], deletes: Iterable[bytes] = (), *, durable: bool = False
    ) -> None:
        """Put and delete records in one step: all of it or nothing is there after a kill.  What is
        `durable`, and all that was written before it, outlives a failure of the machine."""
        if puts:
            self.put_many(puts)
        self.delete_many(deletes)

    # Windows by name

    def names(self) -> list[str]:
        """The windows and streams that are kept here, as of their last `sync`.

        >>> import sash
        >>> sash.stores.memory().names()
        []
        """
        return [key[1:].decode() for key, _ in self.scan(b"n")]

    def drop(self, name: str) -> None:
        """Remove a window or stream and all its records; a name that is not there is no error."""
        space = self.claim(name)
        try:
            space.clear()
        finally:
            space.release()

    def claim(self, name: str) -> Space:
        """The records of a name, for one writer at a time."""
        check_name(name)
        with _claiming:
            claims: dict[str, object] = vars(self).setdefault("_claimed", {})
            if name in claims:
                raise Claimed(
                    f"{name!r} in {self!r} has a writer in this process; one at a time can have "
                    "it: use that one, or let it go with release()"
                )
            claims[name] = claim = object()
        try:
            return self._claim(name)
        except BaseException:
            _end_claim(claims, name, claim)
            raise

    def _claim(self, name: str) -> Space:
        """The records of a name that nobody else in this process has."""
        return Space(self, name)

    def close(self) -> None:  # noqa: B027 -- most have nothing to close
        """Let go of files and connections; windows that were not synced lose what came since."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        """The store itself: there is one of it, whoever uses it."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


_claiming = Lock()


def _end_claim(claims: dict[str, object], name: str, claim: object) -> None:
    """End a claim, unless another one has taken its place."""
    if claims.get(name) is claim:
        del claims[name]


def check_name(name: Any) -> None:
    """Refuse what cannot be a name."""
    good = isinstance(name, str) and name and "\0" not in name
    if not good or len(name.encode()) > _LONGEST:
        wanted = f"some text without zero bytes, of at most {_LONGEST} bytes"
        if good:
            raise ValueError(f"a window's name is {wanted}, not of {len(name.encode())}")
        raise (ValueError if isinstance(name, str) else TypeError)(
            f"a window in a store needs a name: some text without zero bytes, not {name!r}"
        )


class Space(Store):
    """The records of one name, claimed by one writer; made by `Store.claim`."""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name, self._process = store, name, os.getpid()
        text = name.encode()
        self._root = b"n" + text
        self._prefixes = [first + text + b"\0" for first in (b"r", QUEUE)]
        self._prefix = self._prefixes[0]
        claims = vars(store)["_claimed"]
        self._let_go: Any = weakref.finalize(self, _end_claim, claims, name, claims[name])
        self._let_go.atexit = False

    def __repr__(self) -> str:
        return f"{self.name!r} in {self.store!r}"

    def in_order(self) -> Self:
        """Use keys that tell the store that the writer writes each record once and deletes the
        oldest first; a store may keep such records apart from others."""
        self._prefix = self._prefixes[1]
        return self

    @property
    def released(self) -> bool:
        """True if another writer may have it."""
        return not self._let_go.alive

    def release(self) -> None:
        """Let another writer have it."""
        self._let_go()

    def _key(self, key: bytes) -> bytes:
        self._check_held()
        return self._prefix + key

    def _check_held(self) -> None:
        if self.released:
            raise StoreError(f"{self!r} was let go of by release(); open it again")
        if os.getpid() != self._process:
            raise StoreError(f"{self!r} belongs to the process that this one was forked from")

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.store.get_many([self._key(key) for key in keys])

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self.write(records)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        self.write({}, keys)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        start = len(self._prefix)
        for key, data in self.store.scan(self._key(prefix)):
            yield key[start:], data

    def keys_in(self, ranges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        found = self.store.keys_in([(self._key(low), self._key(high)) for low, high in ranges])
        return [key[len(self._prefix) :] for key in found]

    def write(
        self,
        puts: Mapping[bytes, bytes],
        deletes: Iterable[bytes] = (),
        *,
        durable: bool = False,
        root: bytes | None = None,
    ) -> None:
        """Put and delete records in one step, with a new root if there is one, which is durable."""
        self._check_held()
        made = {self._key(key): data for key, data in puts.items()}
        if root is not None:
            made[self._root] = seal(root, self._root)
        gone = [self._key(key) for key in deletes]
        if made or gone:
            self._write(made, gone, durable or root is not None)

    def _write(self, puts: dict[bytes, bytes], deletes: list[bytes], durable: bool) -> None:
        self.store.write(puts, deletes, durable=durable)

    def root(self) -> bytes | None:
        """The root that was written last, None if there is none."""
        self._check_held()
        (data,) = self.store.get_many([self._root])
        try:
            return None if data is None else bytes(unseal(data, self._root))
        except Damaged as error:
            raise Damaged(f"{self!r} is damaged: {error} (record {self._root!r})") from None

    def clear(self) -> None:
        """Remove the root, then all records."""
        self._write({}, [self._root], True)
        self.clear_unrooted()

    def clear_unrooted(self) -> None:
        """Remove the records of a name without a root: those of a window or stream that was never
        synced, or whose removal was cut short."""
        keys: list[bytes] = []
        for prefix in self._prefixes:
            for key, _ in self.store.scan(prefix):
                keys.append(key)
                if len(keys) == _MANY:
                    self._write({}, keys, False)
                    keys = []
        if keys:
            self._write({}, keys, False)
