"""Records that are, after a kill, what they were at the last `sync`.

    changes ─→ buffer in memory ─→ records, and what they were before ─→ sync
                    │                                                     │
                    └──────────── sync: all at once, with the root ───────┘

Changes wait in memory.  If they outgrow the buffer, they are written before the `sync`, and beside
each record that is changed for the first time since the last one, what it was:

    d KEY    a record
    u KEY    what it was at the last sync: nothing, or a byte and the record

`sync` removes what is under `u`, in one step with the last changes and the root.  Whoever opens the
records first puts back what is there.  So memory is bounded, however rare a `sync` is, and a record
is written twice only if it has to be.

The `first` record is the one by which all others are found.  Without it there would seem to be none
at all, so the root says whether it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from .contract import Space, Store
from .sealed import Damaged

__all__ = ["Journal"]

_BUFFER = 32 << 20  # bytes of changes that wait in memory


class Journal(Store):
    """The records of a name, with changes that become final by `sync`.

    >>> from sash.stores import MemoryStore
    >>> store = MemoryStore()
    >>> journal = Journal(store.claim("w"), buffer=0)
    >>> journal.put_many({b"a": b"1"})
    >>> journal.sync(b"root")
    >>> journal.put_many({b"a": b"2", b"b": b"3"})
    >>> journal.spill()
    >>> journal.space.release()
    >>> journal = Journal(store.claim("w"))  # after a kill, say
    >>> journal.root, journal.get_many([b"a", b"b"])
    (b'root', [b'1', None])
    """

    def __init__(self, space: Space, buffer: int = _BUFFER, first: bytes | None = None) -> None:
        self.space = space
        self._buffer, self._first = buffer, first
        kept = space.root()
        #: What `sync` was given last, None if there was none.
        self.root = None if kept is None else kept[1:]
        self._there = kept is not None and kept[:1] == b"+"  # whether the first record is there
        self._changed: dict[bytes, bytes | None] = {}
        self._size = 0
        self._noted: set[bytes] = set()  # keys of which the store has what they were
        self._doubtful: set[bytes] = set()  # the same, perhaps: a write failed, or came through
        self._undo()

    def __repr__(self) -> str:
        return repr(self.space)

    def _undo(self) -> None:
        """Put back what records were at the last sync."""
        puts, deletes = {}, []
        for key, was in self.space.scan(b"u"):
            deletes.append(key)
            if was:
                puts[b"d" + key[1:]] = was[1:]
            else:
                deletes.append(b"d" + key[1:])
        self.space.write(puts, deletes)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        changed = self._changed
        unknown = [key for key in keys if key not in changed]
        found = dict(zip(unknown, self.space.get_many([b"d" + k for k in unknown]), strict=True))
        if self._there and self._first in found and found[self._first] is None:
            raise Damaged(f"{self!r} is damaged: its record {self._first!r} is missing")
        return [changed[key] if key in changed else found[key] for key in keys]

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        for key, data in records.items():
            self._change(key, data)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._change(key, None)

    def _change(self, key: bytes, data: bytes | None) -> None:
        before = self._changed.get(key)
        self._changed[key] = data
        self._size += len(data or b"") - len(before or b"")
        if key == self._first:
            self._there = data is not None

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        found = {key[1:]: data for key, data in self.space.scan(b"d" + prefix)}
        for key, change in self._changed.items():
            if change is None:
                found.pop(key, None)
            elif key.startswith(prefix):
                found[key] = change
        yield from sorted(found.items())

    @property
    def full(self) -> bool:
        """True if the changes have outgrown the buffer."""
        return self._size + 100 * len(self._changed) > self._buffer

    def spill(self) -> None:
        """Write the changes, if they have outgrown the buffer; a kill still undoes them.  If this
        fails, they wait on."""
        if not self.full:
            return
        puts, deletes = self._writes()
        new = [key for key in self._changed if key not in self._noted]
        unsure = [key for key in new if key in self._doubtful]
        there = zip(unsure, self.space.get_many([b"u" + k for k in unsure]), strict=True)
        kept = {key for key, was in there if was is not None}
        for key, was in zip(new, self.space.get_many([b"d" + k for k in new]), strict=True):
            if key not in kept:
                puts[b"u" + key] = b"" if was is None else b"+" + was
        with self._in_doubt(new):
            self.space.write(puts, deletes)
        self._noted.update(new)
        self._changed, self._size = {}, 0

    def sync(self, root: bytes) -> None:
        """Make all changes final, and with them a root."""
        puts, deletes = self._writes()
        whole = (b"+" if self._there else b"-") + root
        noted = [b"u" + key for key in self._noted | self._doubtful]
        with self._in_doubt([]):
            self.space.write(puts, [*deletes, *noted], root=whole)
        self.root = root
        self._changed, self._size, self._noted, self._doubtful = {}, 0, set(), set()

    @contextmanager
    def _in_doubt(self, new: list[bytes]) -> Iterator[None]:
        """A write that fails may have come through nevertheless, when the answer was lost."""
        try:
            yield
        except BaseException:
            self._doubtful |= {*self._noted, *new}
            self._noted = set()
            raise

    def _writes(self) -> tuple[dict[bytes, bytes], list[bytes]]:
        puts = {b"d" + key: data for key, data in self._changed.items() if data is not None}
        return puts, [b"d" + key for key, data in self._changed.items() if data is None]
