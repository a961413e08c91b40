"""What a store does: it keeps bytes by key, and knows nothing of what they mean.

Calls are few and large, because each one may be a round trip to another process.  Lookups go by
known keys; `scan` serves restoring, checking and dumping, and may be slow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Store"]


class Store(ABC):
    """A home for records."""

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
