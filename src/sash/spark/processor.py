"""The stateful operator of a streaming query, as Spark sees it.

Spark makes one on the driver, in a process of its own, before the first micro-batch, only to ask
which state there is.  So this module imports little, and what works on a micro-batch
(`micro_batch`) is imported when there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

#: The metrics of a micro-batch.  They travel as places in this list, and amounts; behind them come
#: the places of the histogram of lateness.
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

#: Those that each of several queries has for itself.  They travel behind all others, query by
#: query.
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
    """The columns that come out of the operator, by their names and Arrow types.

    Rows are results, which have these columns of events (`kept`), rows that missed windows
    (`late`), and a row for each of a bucket's metrics.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    kept: tuple[str, ...]
    late: bool


@dataclass(frozen=True)
class Work:
    """What is done with the micro-batches of a stream."""

    query: Query
    schema: pa.Schema  # of the rows that come
    mode: Mode
    buckets: int | None
    output: Output
    trust: tuple[str, ...] = ()
    behind: int | None = None  # microseconds from stream time to the watermark


@dataclass(frozen=True)
class Lane:
    """Queries whose rows travel together: they have the same keys and condition."""

    names: tuple[str, ...]
    travels: tuple[str, ...]  # the columns that their rows have


@dataclass(frozen=True)
class SharedOutput:
    """The columns that come out of the operator of several queries, by their names and Arrow types.

    The results of all queries travel in the same columns, wherever those have the same type:
    `slots` says for each query in which column each of its own is.  `kept` has for each query the
    columns of events that its results have.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    slots: Mapping[str, Mapping[str, str]]
    kept: Mapping[str, tuple[str, ...]]
    late: bool


@dataclass(frozen=True)
class SharedWork:
    """What is done with the micro-batches of a stream of several queries.  `bundles` has the names
    of those that share slices."""

    queries: Mapping[str, Query]
    bundles: tuple[tuple[str, ...], ...]
    lanes: tuple[Lane, ...]
    schema: pa.Schema  # of the rows that come, in all lanes
    mode: Mode
    buckets: int | None
    output: SharedOutput
    trust: tuple[str, ...] = ()
    behind: int | None = None  # microseconds from stream time to the watermark


class Processor(StatefulProcessor):
    """A bucket's micro-batches."""

    def __init__(self, work: Work | SharedWork) -> None:
        self._work = work
        self._made: Bucket | None = None

    def __reduce__(self) -> Any:
        """Send the processor to other processes in a parcel."""
        return parcel(partial(Processor, self._work), call=True)

    def init(self, handle: Any) -> None:
        """Spark calls this on the driver once, and on the executor before the first bucket."""
        self._handle = handle
        self._records = handle.getMapState("records", KEY, VALUE)
        self._made = None

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """A micro-batch for one bucket."""
        payloads = (payload for frame in rows for payload in frame[PAYLOAD] if payload)
        yield from self._bucket().rows(payloads, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """The watermark has passed a window's end, and there are no new rows."""
        yield from self._bucket().expired(timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing is kept outside of Spark's state."""

    def _bucket(self) -> Bucket:
        if self._made is None:
            if isinstance(self._work, SharedWork):
                from .shared_bucket import SharedBucket

                self._made = SharedBucket(self._work, self._handle, self._records)
            else:
                from .micro_batch import Bucket

                self._made = Bucket(self._work, self._handle, self._records)
        return self._made
