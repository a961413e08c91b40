"""Records that are, after a kill, what they were at the last `sync`.

    changes ─→ buffer in memory ─→ records, and what they were before ─→ sync
                    │                                                     │
                    └──────────── sync: all at once, with the root ───────┘

Changes wait in memory.  If they outgrow the buffer, the journal writes them before the `sync`.
Where it changes a record for the first time since the last `sync`, it notes beside it what the
record was:

    d KEY    a record
    u KEY    what it was at the last sync: nothing, or a byte and the record

`sync` removes the notes under `u`, in one step with the last changes and the root.  The next
process that opens the journal puts back what the notes say.  So memory is bounded, however rare a
`sync` is, and the journal writes a record twice only if it has to.

The caller can take back a batch that was written in several spills: `begin`, then `end` or
`revert`.  A record that the batch is the first to change since the last `sync` has its note under
`u`; for the others the journal keeps until the batch's end:

    b KEY    what a record was when the batch began: nothing, or a byte and the record

A record whose key ends with `first` is the one by which all others of a state are found.  Without
it the state would seem to be empty, so the journal remembers which of these it has seen, and the
root says whether there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from .contract import Space, Store, StoreError
from .sealed import Damaged

__all__ = ["Journal"]

_BUFFER = 32 << 20  # bytes of changes that wait in memory
_MANY = 500  # records that are put back, or deleted, at a time


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
        #: The root of the last `sync`, None if there was none.
        self.root = None if kept is None else kept[1:]
        #: The first records that are there, as far as they were read or written.
        self._there: set[bytes] = set()
        if kept is not None and kept[:1] == b"+" and first is not None:
            self._there.add(first)
        self._changed: dict[bytes, bytes | None] = {}
        self._size = 0
        self._noted: set[bytes] = set()  # keys with a note under `u`
        self._doubtful: set[bytes] = set()  # keys that may have one: the write failed, or seemed to
        #: In a batch: the keys that were changed before it since the last sync, those of them that
        #: are doubtful, and the first records that were there.
        self._began: tuple[set[bytes], set[bytes], set[bytes]] | None = None
        self._before: set[bytes] = set()  # keys with a note under `b`
        self._ended: set[bytes] = set()  # notes of batches that have ended
        self._failed = False  # whether a batch is to be taken back
        if kept is None:
            space.clear_unrooted()
        else:
            self._undo()

    def __repr__(self) -> str:
        return repr(self.space)

    def _undo(self) -> None:
        """Put back what records were at the last sync, some at a time: each goes with its note, so
        what a kill leaves undone, the next one does."""
        self._delete([key for key, _ in self.space.scan(b"b")])
        puts: dict[bytes, bytes] = {}
        deletes: list[bytes] = []
        for key, was in self.space.scan(b"u"):
            deletes.append(key)
            if was:
                puts[b"d" + key[1:]] = was[1:]
            else:
                deletes.append(b"d" + key[1:])
            if len(puts) + len(deletes) >= _MANY:
                self.space.write(puts, deletes)
                puts, deletes = {}, []
        self.space.write(puts, deletes)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._settle()
        changed = self._changed
        unknown = [key for key in keys if key not in changed]
        found = dict(zip(unknown, self.space.get_many([b"d" + k for k in unknown]), strict=True))
        for key in filter(self._is_first, found):
            if found[key] is not None:
                self._there.add(key)
            elif key in self._there:
                raise Damaged(f"{self!r} is damaged: its record {key!r} is missing")
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
        if self._is_first(key):
            if data is None:
                self._there.discard(key)
            else:
                self._there.add(key)

    def _is_first(self, key: bytes) -> bool:
        return self._first is not None and key.endswith(self._first)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        self._settle()
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
        """Write the changes if they have outgrown the buffer; a kill still undoes them.  If the
        write fails, they go on waiting."""
        if self.full:
            self._spill()

    def _spill(self) -> None:
        puts, deletes = self._writes()
        new = [key for key in self._changed if key not in self._noted]
        if self._began is not None:
            changed = self._began[0] - self._before
            old = [key for key in self._changed if key in changed]
            for key, was in zip(old, self.space.get_many([b"d" + k for k in old]), strict=True):
                puts[b"b" + key] = b"" if was is None else b"+" + was
            self._before.update(old)  # if it is not there, nothing was changed
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

    def begin(self) -> None:
        """Begin a batch that `revert` can take back; this writes all earlier changes."""
        self._settle()
        self._delete(sorted(self._ended))
        self._ended = set()
        if self._changed:
            self._spill()
        self._began = self._noted | self._doubtful, set(self._doubtful), set(self._there)

    def end(self) -> None:
        """End the batch; it can no longer be taken back."""
        self._ended, self._before, self._began = {b"b" + key for key in self._before}, set(), None

    def revert(self) -> None:
        """Take the batch back, now or, if the store is away, before anything else is done."""
        self._changed, self._size, self._failed = {}, 0, True
        with suppress(StoreError):
            self._settle()

    def _settle(self) -> None:
        """Take back a batch that failed."""
        if not self._failed:
            return
        assert self._began is not None
        changed, doubtful, there = self._began
        self._put_back(b"b", sorted(self._before))
        self._put_back(b"u", sorted((self._noted | self._doubtful) - changed))
        self._noted, self._doubtful, self._there = changed - doubtful, doubtful, there
        self._before, self._began, self._failed = set(), None, False

    def _put_back(self, kind: bytes, keys: list[bytes]) -> None:
        """Make records what their notes say, where there is a note."""
        for at in range(0, len(keys), _MANY):
            some = keys[at : at + _MANY]
            puts, deletes = {}, []
            for key, was in zip(some, self.space.get_many([kind + k for k in some]), strict=True):
                if was is not None:
                    deletes.append(kind + key)
                    if was:
                        puts[b"d" + key] = was[1:]
                    else:
                        deletes.append(b"d" + key)
            self.space.write(puts, deletes)

    def _delete(self, keys: list[bytes]) -> None:
        for at in range(0, len(keys), _MANY):
            self.space.write({}, keys[at : at + _MANY])

    def sync(self, root: bytes) -> None:
        """Make all changes final, and with them a root."""
        self._settle()
        puts, deletes = self._writes()
        whole = (b"+" if self._there else b"-") + root
        noted = [b"u" + key for key in self._noted | self._doubtful]
        noted += sorted(self._ended)
        with self._in_doubt([]):
            self.space.write(puts, [*deletes, *noted], root=whole)
        self.root = root
        self._changed, self._size, self._noted, self._doubtful = {}, 0, set(), set()
        self._ended = set()

    @contextmanager
    def _in_doubt(self, new: list[bytes]) -> Iterator[None]:
        """Doubt the notes if a write fails: perhaps only the store's answer was lost."""
        try:
            yield
        except BaseException:
            self._doubtful |= {*self._noted, *new}
            self._noted = set()
            raise

    def _writes(self) -> tuple[dict[bytes, bytes], list[bytes]]:
        puts = {b"d" + key: data for key, data in self._changed.items() if data is not None}
        return puts, [b"d" + key for key, data in self._changed.items() if data is None]
