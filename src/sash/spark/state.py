"""A bucket's state in Spark: its tiles and its mark, in one MapState.

A record of a few kilobytes costs as much to move as one of a few bytes, so tiles are records; and
each is read at most once a batch, and written at most once.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

__all__ = ["KEY", "VALUE", "Records"]

KEY = StructType(
    [StructField("level", IntegerType(), False), StructField("number", LongType(), False)]
)
VALUE = StructType([StructField("data", BinaryType(), False)])

_MARK = (-1, 0)


class Records:
    """The records of the bucket that is being worked on, with a count of what is moved."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self.records = 0
        self.bytes = 0

    def reset(self) -> None:
        """Start counting again."""
        self.records = self.bytes = 0

    def get(self, level: int, number: int) -> bytes | None:
        """A tile, if there is one."""
        found = self._state.getValue((level, number))
        if found is None:
            return None
        return self._count(bytes(found[0]))

    def put(self, level: int, number: int, data: bytes) -> None:
        """Keep a tile."""
        self._state.updateValue((level, number), (self._count(data),))

    def drop(self, level: int, number: int) -> None:
        """Forget a tile."""
        self._count(b"")
        self._state.removeKey((level, number))

    def _count(self, data: bytes) -> bytes:
        self.records += 1
        self.bytes += len(data)
        return data

    def get_mark(self) -> bytes | None:
        """Where the bucket stands."""
        return self.get(*_MARK)

    def put_mark(self, data: bytes) -> None:
        """Note where the bucket stands."""
        self.put(*_MARK, data)
