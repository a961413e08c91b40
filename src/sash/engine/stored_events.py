"""Streams whose windows events make, with their state in a store; Spark's processor calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..query.plan import Plan
from ..query.query import Query
from ..query.signatures import Mode
from ..state.portions import Among, Coming
from ..stores.contract import Store
from .event_stream import Admitted, EventStream
from .late import Spanned
from .lifecycle import Progress, latest
from .stream import Stream

__all__ = ["StoredEvents", "stored_stream"]


def stored_stream(
    query: Query, store: Store, prefix: bytes = b"", *, lateness: Any = None, **more: Any
) -> EventStream:
    """Make a stream whose windows events make, with its state in the records of a store whose keys
    begin with a prefix.  Without a `lateness`, the caller moves the watermark."""
    kind = Stream._for(query)
    made = kind.__new__(kind)
    assert isinstance(made, EventStream)
    made._place, made._store, made._prefix = "Spark stream", store, prefix
    made._follows = lateness is not None
    made.__init__(query, lateness=lateness or 0, **more)  # type: ignore[misc]
    return made


class StoredEvents:
    """A query over rows of one schema, with its state in a store.  The caller keeps the progress
    and moves the watermark."""

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        mode: Mode,
        store: Store,
        prefix: bytes = b"",
        *,
        behind: int | None = None,
    ) -> None:
        """`behind` is how far the caller keeps the watermark behind stream time, if it does."""
        self._stream = stored_stream(query, store, prefix, mode=mode, schema=schema)
        self._stream._behind = behind
        #: A description of a partial's words, for each group of aggregates.
        self.shapes = self._stream._shapes()

    @property
    def plan(self) -> Plan:
        """The query, bound to the types of the rows."""
        assert self._stream._plan is not None
        return self._stream._plan

    @property
    def missed(self) -> Spanned:
        """The windows that late rows missed."""
        return self._stream._missed

    def ranges(
        self,
        progress: Progress,
        watermark: int | None,
        weight: float,
        coming: Callable[[], Coming],
    ) -> list[Among]:
        """The portions to process a batch in that weighs so much; see `state.portions`."""
        return self._stream._parts.ranges(latest(progress.watermark, watermark), weight, coming)

    def process(
        self,
        progress: Progress,
        batch: pa.Table | None,
        watermark: int | None,
        among: Among = None,
    ) -> Admitted:
        """Insert the rows of a batch, which are judged by the watermark of `progress`, move on to
        another, and emit what is due, of keys in some slots of the index alone.  If this raises,
        the store has not changed."""
        stream = self._stream
        stream._progress = progress
        known = stream._schema
        # beside other queries, rows have the columns of all of them
        given = known.empty_table() if batch is None else batch.select(known.names)
        return stream._admit(given, {}, watermark=watermark, among=among)

    def next_visit(self) -> int | None:
        """The first watermark at which a batch without rows has work to do."""
        return self._stream._parts.next_visit()

    def open_windows(self) -> int:
        """The approximate number of open windows."""
        return self._stream._parts.size()["windows"]
