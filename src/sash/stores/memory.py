"""A store in a dict of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .contract import Store

__all__ = ["MemoryStore", "memory"]


class MemoryStore(Store):
    """Records in a dict.

    >>> store = MemoryStore()
    >>> store.put_many({b"a": b"1", b"ab": b"2"})
    >>> store.get_many([b"a", b"b"]), list(store.scan(b"ab"))
    ([b'1', None], [(b'ab', b'2')])
    """

    def __init__(self) -> None:
        self._records: dict[bytes, bytes] = {}

    def __repr__(self) -> str:
        return "the store in memory"

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._records.get(key) for key in keys]

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self._records.update(records)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._records.pop(key, None)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(key for key in list(self._records) if key.startswith(prefix)):
            if (data := self._records.get(key)) is not None:
                yield key, data


def memory() -> MemoryStore:
    """A store in this process, for tests, and for windows that need not outlive it.

    >>> import sash
    >>> sash.stores.memory()
    the store in memory
    """
    return MemoryStore()
