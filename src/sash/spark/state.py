"""A bucket's records in Spark's state: a store over one MapState.

Each call of Spark's state from Python is a round trip of some tenths of a millisecond, for one
record: `get_many` and `put_many` make one call a record, so records are pages of some kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.types import BinaryType, StructField, StructType

from ..stores.contract import Store

__all__ = ["KEY", "VALUE", "SparkStore"]

KEY = StructType([StructField("name", BinaryType(), False)])
VALUE = StructType([StructField("data", BinaryType(), False)])


class SparkStore(Store):
    """The records of the bucket that Spark is calling, with a count of what is moved."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self.records = 0
        self.bytes = 0

    def reset(self) -> None:
        """Start counting again."""
        self.records = self.bytes = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = []
        for key in keys:
            value = self._state.getValue((key,))
            found.append(None if value is None else bytes(value[0]))
            self._count(found[-1])
        return found

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        for key, data in records.items():
            self._count(data)
            self._state.updateValue((key,), (data,))

    def delete_many(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._count(None)
            self._state.removeKey((key,))

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        found = ((bytes(key[0]), bytes(value[0])) for key, value in self._state.iterator())
        yield from sorted((key, data) for key, data in found if key.startswith(prefix))

    def _count(self, data: bytes | None) -> None:
        self.records += 1
        self.bytes += len(data or b"")
