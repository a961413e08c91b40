"""The pages of a window's levels on their way to a store and back.

    save ─→ gathered ─→ waiting ─→ a thread writes them, many at once ─→ store
                                                                           │
    load ←─ gathered, waiting, or fetched ahead by another thread ←────────┘

One thread writes and deletes pages in the background, in order.  Another one fetches pages, so that
a page the window needs soon does not wait behind writes.  The writer leaves out pages whose values
have all left the window meanwhile.  If a write fails, its pages wait here, and the next call that
has something to save tries again: it raises, or succeeds, and nothing is lost.

The checksum of a page's record covers the window's name, the page's place and the life it was
written in, because sash turns RocksDB's own checksums of pages off.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..stores.contract import Space
from ..stores.sealed import Damaged, seal, unseal
from .lives import Lives
from .worker import Worker

__all__ = ["Pages"]

_NAME = struct.Struct(">cBQ")
_BEHIND = 24  # batches that may wait to be written, as a disk may be slow for a moment
_AHEAD = 8  # fetches that may wait
_MANY = 1000  # records that are deleted at a time

Place = tuple[int, int]  # level and page


def page_name(place: Place) -> bytes:
    """The key of a page's record."""
    return _NAME.pack(b"p", *place)


class Pages:
    """The pages of one window in a store."""

    def __init__(self, space: Space, most: int = 1) -> None:
        self.space = space
        self.most = most  # pages that are gathered before they are written
        self.lives = Lives()
        self._name = space.name.encode()
        self._lock = threading.Lock()
        self._gathered: dict[Place, bytes] = {}
        self._written: list[dict[Place, bytes]] = []  # batches that are being written, oldest first
        self._fetched: dict[Place, memoryview] = {}
        self._asked: set[Place] = set()
        self._left: list[Place] = []  # to be deleted
        self._failed: BaseException | None = None
        self._writer, self._fetcher = Worker(_BEHIND), Worker(_AHEAD)
        self.first: dict[int, int] = {}  # by level: the window needs no page before this one
        self.calls = 0  # how often the store was called
        self.records = 0  # how many records these calls moved

    # to the store

    def save(self, place: Place, data: bytes) -> None:
        """Keep a page; it is written later, with others."""
        self._gathered[place] = data
        if len(self._gathered) >= self.most:
            self.push()

    def check(self) -> None:
        """Write what could not be written before, or raise why it cannot."""
        if self._failed is not None:
            self._write_all()

    def _write_all(self) -> None:
        """Write what the thread could not write, or was never asked to: `push` was interrupted."""
        self.drain()
        for batch in list(self._written):
            self._write(batch)
        self._failed = None  # only now: until all is written, what comes waits behind it

    def push(self) -> None:
        """Have the thread write what is gathered."""
        if not self._gathered:
            return
        batch = self._gathered
        with self._lock:
            self._written.append(batch)  # first, as Ctrl-C may come at any time
            self._gathered = {}
        self._writer.do(partial(self._write_behind, batch))

    def _write_behind(self, batch: dict[Place, bytes]) -> None:
        if self._failed is None:  # else it waits behind what failed
            try:
                self._write(batch)
            except BaseException as error:
                self._failed = error

    def _write(self, batch: dict[Place, bytes]) -> None:
        first = self.first
        with self._lock:  # against `delete`, so that no page is written that it deletes
            needed = {at: data for at, data in batch.items() if at[1] >= first.get(at[0], 0)}
            # what could not be deleted of an earlier life is written over
            self._left = [place for place in self._left if place not in needed]
        if needed:
            self._count(len(needed))
            self.space.put_many(
                {page_name(at): seal(data, self._sealed_for(at)) for at, data in needed.items()}
            )
        with self._lock:
            self._written = [some for some in self._written if some is not batch]

    def _sealed_for(self, place: Place) -> bytes:
        """What the checksum of a page covers besides its bytes."""
        return b"\0".join((self._name, page_name(place), self.lives.of(*place)))

    def flush(self) -> None:
        """Write all pages."""
        self.push()
        self._write_all()

    def drain(self) -> None:
        """Wait until the threads have nothing to do."""
        self._writer.drain()
        self._fetcher.drain()

    def delete(self, places: Sequence[Place]) -> None:
        """Have the thread delete pages, many at once, and those that it could not delete before."""
        with self._lock:
            self._left.extend(places)
            times = -(-len(self._left) // _MANY)
        for _ in range(times):
            self._writer.do(self._delete)

    def oldest(self, deleted: Sequence[int]) -> list[int]:
        """The first page of each level that the store may have, if those before `deleted` were to
        be deleted."""
        oldest = list(deleted)
        with self._lock:
            for level, page in self._left:
                oldest[level] = min(oldest[level], page)
        return oldest

    def _delete(self) -> None:
        with self._lock:
            places, self._left = self._left[:_MANY], self._left[_MANY:]
        if not places:
            return
        try:
            self._count(len(places))
            self.space.delete_many([page_name(place) for place in places])
        except Exception:  # nothing needs them, so there is time
            with self._lock:
                self._left.extend(places)

    # from the store

    def load(self, places: Sequence[Place]) -> list[bytes | memoryview]:
        """Some pages; those that must come from the store, in one call."""
        found: dict[Place, Any] = {}
        with self._lock:
            for place in places:
                for batch in (self._gathered, *reversed(self._written)):
                    if place in batch:
                        found[place] = batch[place]
                        break
                else:
                    if self._fetched.get(place) is not None:
                        found[place] = self._fetched.pop(place)
            lacking = [place for place in places if place not in found]
            self._asked.difference_update(lacking)  # if they are on their way, nobody waits
        if lacking:
            found |= self._read(lacking)
        return [found[place] for place in places]

    def _read(self, places: Sequence[Place]) -> dict[Place, memoryview]:
        keys = [page_name(place) for place in places]
        self._count(len(keys))
        made = {}
        for place, key, data in zip(places, keys, self.space.get_many(keys), strict=True):
            where = f"page {place[1]} of level {place[0]}, record {key!r} of {self.space!r}"
            if data is None:
                raise Damaged(f"the window is damaged: {where}, is missing")
            try:
                made[place] = unseal(data, self._sealed_for(place))
            except Damaged as error:
                raise Damaged(f"the window is damaged: {error} ({where})") from None
        return made

    def there(self, starts: Sequence[Place]) -> list[Place]:
        """The pages that the store has, each level from a page on."""
        ranges = [(page_name(start), page_name((start[0] + 1, 0))) for start in starts]
        keys = self.space.keys_in(ranges)
        self._count(len(keys))
        return [(level, page) for _, level, page in map(_NAME.unpack, keys)]

    def fetch(self, places: Sequence[Place]) -> None:
        """Have the thread read pages that will be needed soon, two at a time if there are as many,
        unless it is behind."""
        if self._fetcher.full:
            return
        with self._lock:
            known = {p for batch in (self._gathered, *self._written) for p in batch}
            some = [p for p in places if p not in known and p not in self._fetched]
            some = [p for p in some if p not in self._asked]
            if len(some) < min(len(places), 2):
                return
            self._asked.update(some)
        if some:
            self._fetcher.do(partial(self._fetch, some))

    def _fetch(self, places: list[Place]) -> None:
        try:
            found = self._read(places)
        except Exception:  # whoever needs them reads them again, and says what is wrong
            found = {}
        with self._lock:
            self._fetched |= {place: found[place] for place in found if place in self._asked}
            self._asked.difference_update(places)

    def forget_fetched(self) -> None:
        """Let go of all pages that were read ahead."""
        with self._lock:
            self._fetched.clear()
            self._asked.clear()

    def _count(self, records: int) -> None:
        self.calls += 1
        self.records += records

    def close(self) -> None:
        """End the threads, and forget what is not written."""
        self.drain()
        self.space.release()
