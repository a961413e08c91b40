"""The records of a state during a batch: sealed, each read at most once, all written together."""

from __future__ import annotations

from collections.abc import Sequence

from ..stores.contract import Store
from ..stores.sealed import Damaged, seal, unseal

__all__ = ["Records"]

_HELP = "go back to a checkpoint or a copy that has it, or start anew"


class Records:
    """The records of a store whose keys begin with a prefix.  Changes stay in memory until
    `flush`."""

    def __init__(self, store: Store, prefix: bytes = b"") -> None:
        self.store = store
        self.prefix = prefix
        self._known: dict[bytes, memoryview | bytes | None] = {}
        self._changed: set[bytes] = set()

    def get(self, names: Sequence[bytes]) -> list[memoryview | bytes | None]:
        """The bodies of records, None for a record that does not exist."""
        known = self._known
        unknown = [name for name in names if name not in known]
        if unknown:
            keys = [self.prefix + name for name in unknown]
            for name, key, data in zip(unknown, keys, self.store.get_many(keys), strict=True):
                try:
                    known[name] = None if data is None else unseal(data, key)
                except Damaged as error:
                    raise Damaged(
                        f"the state is damaged: {error} (record {key!r} of {self.store!r}); {_HELP}"
                    ) from None
        return [known[name] for name in names]

    def need(self, names: Sequence[bytes]) -> list[memoryview | bytes]:
        """The bodies of records.  A missing record is an error."""
        made = []
        for name, body in zip(names, self.get(names), strict=True):
            if body is None:
                key = self.prefix + name
                raise Damaged(
                    f"the state is damaged: its record {key!r} is missing from "
                    f"{self.store!r}; {_HELP}"
                )
            made.append(body)
        return made

    def put(self, name: bytes, body: bytes) -> None:
        """Change a record."""
        if self._known.get(name) != body:
            self._known[name] = body
            self._changed.add(name)

    def delete(self, name: bytes) -> None:
        """Remove a record."""
        self._known[name] = None
        self._changed.add(name)

    @property
    def changed(self) -> bool:
        """True if there are changes that were not written to the store yet."""
        return bool(self._changed)

    def flush(self) -> None:
        """Write all changes to the store, and forget all records that were read."""
        puts, deletes = {}, []
        for name in sorted(self._changed):
            body, key = self._known[name], self.prefix + name
            if body is None:
                deletes.append(key)
            else:
                puts[key] = seal(bytes(body), key)
        if puts:
            self.store.put_many(puts)
        if deletes:
            self.store.delete_many(deletes)
        self.discard()

    def discard(self) -> None:
        """Forget all changes, and all records that were read."""
        self._known, self._changed = {}, set()
