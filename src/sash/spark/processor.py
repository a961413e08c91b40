"""The stateful operator of a streaming query: the class that Spark calls.

Before the first micro-batch, Spark makes a processor on the driver, in its own process, only to ask
which state it uses, and waits for that.  So a processor travels unopened: it imports nothing of
sash before Spark calls it for a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ..query.query import Query
from ..query.signatures import Mode
from .buckets import PAYLOAD
from .shipping import parcel
from .state import KEY, VALUE

if TYPE_CHECKING:
    import pandas as pd

    from .micro_batch import Bucket

__all__ = ["EACH", "METRICS", "Lane", "Output", "Processor", "SharedOutput", "SharedWork", "Work"]

#: The metrics of a micro-batch.  Each travels as a row with its place in this list, and its amount.
#: The places after those of this list are the histogram of lateness.
METRICS = (
    "rows_in",
    "rows_counted",
    "rows_late",
    "rows_unusable",
    "rows_partly_late",
    "corrections",
    "rows_out",
    "rows_without_answer",
    "open_windows",
    "state_records",
    "state_bytes",
    "watermark",
)

#: The metrics that each of several queries has for itself.  Their places come after all others,
#: query by query.
EACH = (
    "rows_in",
    "rows_late",
    "rows_unusable",
    "rows_partly_late",
    "corrections",
    "rows_out",
    "open_windows",
)


@dataclass(frozen=True)
class Output:
    """The columns that the operator returns: their names and Arrow types.

    An output row is a result, which contains the columns `kept` of events; or a row that missed
    windows, if `late` is true; or one of a bucket's metrics.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    kept: tuple[str, ...]
    late: bool


@dataclass(frozen=True)
class Work:
    """The work of a stream's operator: the query, and how to run it."""

    query: Query
    schema: pa.Schema  # of the incoming rows
    mode: Mode
    buckets: int | None
    output: Output
    trust: tuple[str, ...] = ()
    behind: int | None = None  # microseconds from stream time to the watermark


@dataclass(frozen=True)
class Lane:
    """Queries with the same keys and condition: their rows travel together."""

    names: tuple[str, ...]
    travels: tuple[str, ...]  # the columns of these rows


@dataclass(frozen=True)
class SharedOutput:
    """The columns that the operator of several queries returns: their names and Arrow types.

    The results of different queries travel in the same columns where these have the same type:
    for each query, `slots` maps its own columns to these.  For each query, `kept` has the columns
    of events that its results contain.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    slots: Mapping[str, Mapping[str, str]]
    kept: Mapping[str, tuple[str, ...]]
    late: bool


@dataclass(frozen=True)
class SharedWork:
    """The work of the operator of several queries.  Each of the `bundles` has the names of queries
    that share slices."""

    queries: Mapping[str, Query]
    bundles: tuple[tuple[str, ...], ...]
    lanes: tuple[Lane, ...]
    schema: pa.Schema  # of the incoming rows, in all lanes
    mode: Mode
    buckets: int | None
    output: SharedOutput
    trust: tuple[str, ...] = ()
    behind: int | None = None  # microseconds from stream time to the watermark


class Processor(StatefulProcessor):
    """Passes each call of Spark on to the `Bucket` of the task."""

    def __init__(self, work: Work | SharedWork) -> None:
        self._work = work
        self._made: Bucket | None = None

    def __reduce__(self) -> Any:
        """Send the processor to other processes in a parcel, which stays closed until there is a
        bucket."""
        return parcel(partial(Processor, self._work), _unopened)

    def init(self, handle: Any) -> None:
        """Spark calls this before the first bucket of a task."""
        self.begin(handle, handle.getMapState(_RECORDS, KEY, VALUE))

    def begin(self, handle: Any, records: Any) -> None:
        """Begin a task, in which this is Spark's state."""
        self._handle, self._records = handle, records
        self._made = None

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Spark calls this in a micro-batch with rows for a bucket, which may be empty payloads."""
        payloads = (payload for frame in rows for payload in frame[PAYLOAD] if payload)
        yield from self._bucket().rows(payloads, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """Spark calls this when the watermark has passed the timer of a bucket."""
        yield from self._bucket().expired(timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Spark calls this at the end.  There is nothing to close: all state is Spark's."""

    def _bucket(self) -> Bucket:
        if self._made is None:
            if isinstance(self._work, SharedWork):
                from .shared_bucket import SharedBucket

                self._made = SharedBucket(self._work, self._handle, self._records)
            else:
                from .micro_batch import Bucket

                self._made = Bucket(self._work, self._handle, self._records)
        return self._made


_RECORDS = "records"  # the name of the operator's state


def _unopened(opened: Callable[[], Callable[[], Processor]]) -> StatefulProcessor:
    """A processor that opens its parcel when Spark calls it for a bucket.  To import sash, only to
    tell the driver which state there is, would take 0.2 s."""

    class Unopened(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._given = handle, handle.getMapState(_RECORDS, KEY, VALUE)
            self._processor: Processor | None = None

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            yield from self._made().handleInputRows(key, rows, timerValues)

        def handleExpiredTimer(
            self, key: Any, timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield from self._made().handleExpiredTimer(key, timerValues, expiredTimerInfo)

        def close(self) -> None:
            pass

        def _made(self) -> Processor:
            if self._processor is None:
                self._processor = opened()()
                self._processor.begin(*self._given)
            return self._processor

    return Unopened()


_unopened.__module__ = "__main__"  # so pickle sends its code, and not its name in sash
