"""Streams with their state in a store, as Spark runs them, for tests without Spark.

Between two batches, only bytes in the store and JSON survive; these streams carry nothing over in
memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..engine.aligned_stream import AlignedStream
from ..engine.lifecycle import Progress
from ..engine.stored_events import stored_stream
from ..engine.supported import Place
from ..query import Query
from ..query.plan import Plan
from ..state.tiles import TileState
from ..stores import MemoryStore, Store

__all__ = ["STATES", "CountingStore", "TileStream", "open_stream"]


#: The places where a stream can keep its state.
STATES = ("memory", "tiles")


class CountingStore(Store):
    """A store in memory that counts the records and bytes that it reads and writes."""

    def __init__(self) -> None:
        self.kept = MemoryStore()
        self.reset()

    def reset(self) -> None:
        self.records = self.bytes = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = self.kept.get_many(keys)
        self._count(found)
        return found

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self._count(records.values())
        self.kept.put_many(records)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        keys = list(keys)
        self._count([b""] * len(keys))
        self.kept.delete_many(keys)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return self.kept.scan(prefix)

    def _count(self, moved: Iterable[bytes | None]) -> None:
        for data in moved:
            self.records += 1
            self.bytes += len(data or b"")

    def __len__(self) -> int:
        return sum(1 for _ in self.kept.scan())

    def size(self) -> int:
        return sum(len(data) for _, data in self.kept.scan())


class TileStream(AlignedStream):
    """A stream that keeps its state as tiles in a store."""

    _place: Place = "Spark stream"

    def __init__(self, query: Query, **more: Any) -> None:
        self.store = CountingStore()
        super().__init__(query, **more)

    def _set_up(self, schema: Any) -> None:
        super()._set_up(schema)
        self._pending = None  # each batch must go through the store

    def _make_state(self, plan: Plan) -> Any:
        return TileState(plan, self.store)

    def _anew(self) -> None:
        """Rebuild progress and state, so that only bytes survive."""
        self._progress = Progress(**json.loads(json.dumps(asdict(self._progress))))
        if self._plan is not None:
            self._state = self._make_state(self._plan)

    def _process(self, *given: Any, **times: Any) -> Any:
        self._anew()
        return super()._process(*given, **times)


def open_stream(state: str, query: Query, **more: Any) -> Any:
    """Start a stream of a query with one of the states: "memory", or "tiles", which are records of
    a store; for driven windows and sessions, the records are rows by key."""
    if state == "memory":
        return query.stream(**more)
    if query.window.kind == "aligned":
        return TileStream(query, **more)
    return stored_stream(query, CountingStore(), **{"lateness": 0, **more})
