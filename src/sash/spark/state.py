"""Keeps a bucket's records in Spark's state: a store over one MapState.

Each access to a record is a message to the JVM and an answer.  Its cost depends on the number of
messages more than on their bytes: so records have some kilobytes, and many travel in one trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pyspark.sql.types import BinaryType, StructField, StructType

from ..stores.contract import Store
from .trips import Trips

__all__ = ["KEY", "VALUE", "SparkStore"]

KEY = StructType([StructField("name", BinaryType(), False)])
VALUE = StructType([StructField("data", BinaryType(), False)])

T = TypeVar("T")


class SparkStore(Store):
    """The records of the bucket for which Spark makes the present call.  The store counts the
    records and bytes that it reads and writes."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self.records = 0
        self.bytes = 0
        try:
            self._trips: Trips | None = Trips(state)
        except AttributeError:
            self._trips = None

    def reset(self) -> None:
        """Start counting again."""
        self.records = self.bytes = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        rows = self._called(lambda state, key: state.getValue((key,)), keys)
        found = [None if row is None else bytes(row[0]) for row in rows]
        for data in found:
            self._count(data)
        return found

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self._called(lambda state, r: state.updateValue((r[0],), (r[1],)), list(records.items()))
        for data in records.values():
            self._count(data)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        gone = list(keys)
        self._called(lambda state, key: state.removeKey((key,)), gone)
        for _ in gone:
            self._count(None)

    def _called(self, call: Callable[[Any, T], Any], given: Sequence[T]) -> list[Any]:
        """Call the state for each item: several calls in one trip, if this PySpark allows it."""
        trips = self._trips
        if trips is None or len(given) < 2:
            return [call(self._state, each) for each in given]
        return trips.call(lambda each: call(trips.state, each), given)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        found = ((bytes(key[0]), bytes(value[0])) for key, value in self._state.iterator())
        yield from sorted((key, data) for key, data in found if key.startswith(prefix))

    def _count(self, data: bytes | None) -> None:
        self.records += 1
        self.bytes += len(data or b"")
