"""What runs on the executors of a streaming query: rows packed by bucket, and a bucket's batch.

rows ─ pack ─→ one payload a bucket ─ shuffle ─→ Processor ─→ results, late rows, metrics
                                                    │
                         lifecycle over tiles in Spark's state store
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ..engine.identity import differences, fingerprint
from ..engine.lifecycle import Lifecycle, Outcome, Progress, Sliced
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..state.tiles import TileState
from ..stores.sealed import seal, unseal
from ..tables.arrow import filtered, flat
from ..windows.contract import LATEST
from .buckets import for_stream
from .payloads import BUCKET, HASH, PAYLOAD, packed_rows, packed_slices, unpacked, worth_combining
from .shipping import parcel
from .state import KEY, VALUE, SparkStore

__all__ = ["BUCKET", "HASH", "PAYLOAD", "Combines", "Output", "Packer", "Processor"]

Combines: TypeAlias = Literal["always", "auto", "never"]

_ROW = "__sash_row"
_MANY = 1_000_000  # rows that are packed at a time
_PROGRESS = b"progress"
_TILES = b"t"
_BATCH_ID = "streaming.sql.batchId"
_VERSION = "2"  # of the state


@dataclass(frozen=True)
class Packer:
    """Packs the rows of each bucket into one value, in Arrow's own format.  The columns of the
    batches are `names`, and after them a hash of the key.

    A stateful operator in Python receives pandas, which has no null integers and cannot tell NaN
    from null; and it receives each row at a price.  Bytes pass unharmed, and a few of them
    cheaply.

    The first task adds an empty value for every bucket.  So each bucket is called in every
    micro-batch that has a task here, and knows the watermark of the micro-batch before, by which
    Spark judges lateness: rows that an operator upstream emits on the watermark lie between
    that one and the present one.
    """

    query: Query
    names: tuple[str, ...]
    called: tuple[int, ...]  # what buckets are called; the first of them, if there are fewer
    buckets: int | None
    combines: Combines = "never"  # rows into slices; "auto": where a slice has several rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        called = np.array(self.called[: for_stream(self.buckets)], np.int32)
        if _task(0) == 0:
            empty = pa.array([b""] * len(called), pa.binary())
            yield pa.record_batch({BUCKET: pa.array(called), PAYLOAD: empty})
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= _MANY:
                yield from self._packed(called, held)
                held, rows = [], 0
        if held:
            yield from self._packed(called, held)

    def _packed(self, called: Array, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of some batches, packed."""
        query, names = self.query, self.names
        table = pa.Table.from_batches(batches)
        hashes = flat(table.column(len(names))).to_numpy(zero_copy_only=False)
        table = table.select(list(range(len(names)))).rename_columns(list(names))
        if query.where is not None:
            table = table.append_column(_ROW, pa.array(np.arange(len(hashes))))
            table = filtered(table, query.where)
            hashes = hashes[flat(table.column(_ROW)).to_numpy()]
        if not len(hashes):
            return
        buckets = called[hashes % len(called)]
        table = table.select(query.columns).combine_chunks()
        if self.combines == "always" or (
            self.combines == "auto" and worth_combining(query, table, hashes)
        ):
            yield packed_slices(query, table, buckets)
        else:
            yield packed_rows(table, buckets)


def _task(default: int) -> int:
    """The number of this task among those of its stage."""
    context = TaskContext.get()
    return default if context is None else context.partitionId()


def _batch_id() -> int | None:
    """The number of the present micro-batch, None if Spark does not say."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_BATCH_ID)
    return None if found is None else int(found)


@dataclass(frozen=True)
class Output:
    """The columns that come out of the operator, by their names and Arrow types.

    Rows are results, rows that missed windows (`late`), and one row of metrics a bucket.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    late: bool


@dataclass
class Place:
    """Where a bucket stands between two micro-batches."""

    progress: Progress
    batch: int | None = None  # the last micro-batch in which the bucket was called
    timer: int | None = None


class Processor(StatefulProcessor):
    """A bucket's micro-batches."""

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        *,
        mode: Mode,
        buckets: int | None,
        output: Output,
        trust: tuple[str, ...] = (),
    ) -> None:
        self._query = query
        self._schema = schema
        self._mode = mode
        self._buckets = buckets
        self._output = output
        self._trust = trust

    def __reduce__(self) -> Any:
        """Send the processor to other processes in a parcel."""
        given: dict[str, Any] = {
            "mode": self._mode,
            "buckets": self._buckets,
            "output": self._output,
            "trust": self._trust,
        }
        return parcel(partial(Processor, self._query, self._schema, **given), call=True)

    def init(self, handle: Any) -> None:
        """Spark calls this on the executor, before the first bucket."""
        self._handle = handle
        self._store = SparkStore(handle.getMapState("records", KEY, VALUE))
        self._plan = plan = make_plan(self._query, self._schema)
        self._state = TileState(plan, self._store, _TILES)
        self._lifecycle = Lifecycle(plan, mode=self._mode)
        buckets = for_stream(self._buckets)
        self._about = about(plan, self._state.shapes, self._mode, buckets)
        self._window = self._query.aligned

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """A micro-batch for one bucket."""
        payloads = [payload for frame in rows for payload in frame[PAYLOAD] if payload]
        batch = unpacked(self._plan, payloads) if payloads else None
        yield from self._process(batch, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """The watermark has passed a window's end, and there are no new rows."""
        yield from self._process(None, timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing is kept outside of Spark's state."""

    def _process(
        self, batch: pa.Table | Sliced | None, timers: Any, expired: int | None
    ) -> Iterator[pd.DataFrame]:
        self._store.reset()
        place = self._read_place()
        progress = place.progress
        millis = timers.getCurrentWatermarkInMs()
        # until there is a watermark, Spark says 0
        watermark = min(millis * 1000, LATEST) if millis > 0 else None
        outcomes = []
        if self._missed_batches(place):
            outcomes.append(self._lifecycle.process(progress, self._state, watermark=watermark))
        before = progress.watermark or 0
        outcome = self._lifecycle.process(progress, self._state, batch, watermark=watermark)
        outcomes.append(outcome)
        visit = self._state.next_visit()
        wanted = self._next_timer(visit, millis)
        if place.timer is not None and place.timer not in (wanted, expired):
            self._handle.deleteTimer(place.timer)
        if wanted is not None and (wanted != place.timer or expired == wanted):
            self._handle.registerTimer(wanted)
        place.timer = wanted
        self._write_place(place)
        open_windows = 0 if visit is None else self._lifecycle.open_windows(progress)
        # Spark refuses rows that are not after the watermark of the batch before, in milliseconds;
        # what is not about a window is put after the present one.
        now = max(millis, 0) * 1000 + 1000
        yield from self._frames(batch, outcomes, before + 1000, now, open_windows)

    def _missed_batches(self, place: Place) -> bool:
        """True if the bucket was not called in the micro-batch before.

        Spark judges lateness by the watermark of that one.  A bucket is called in every
        micro-batch in which rows were packed.  If it missed some, those had no rows, so the
        watermark has not moved since: the bucket first moves to where it stands.
        """
        before, place.batch = place.batch, _batch_id()
        return place.batch is not None and (before is None or place.batch > before + 1)

    def _next_timer(self, visit: int | None, millis: int) -> int | None:
        """When the bucket must be called, if no rows come: when the next window closes, and once
        before if the watermark may come so near to its end that a result's event time, a moment
        before the end, would be at the watermark."""
        if visit is None:
            return None
        end = max(-(-self._window.end(visit) // 1000), 1)  # without a watermark, Spark says 0
        return end - 1 if end - 1 > millis else max(end, millis + 1)

    # where the bucket stands

    def _read_place(self) -> Place:
        (data,) = self._store.get_many([_PROGRESS])
        if data is None:
            return Place(Progress())
        said = json.loads(bytes(unseal(data, _PROGRESS)))
        _check_same(said["about"], self._about, self._trust)
        return Place(Progress(**said["progress"]), said["batch"], said["timer"])

    def _write_place(self, place: Place) -> None:
        said = {"about": self._about, **asdict(place)}
        body = json.dumps(said, separators=(",", ":")).encode()
        self._store.put_many({_PROGRESS: seal(body, _PROGRESS)})

    # rows out

    def _frames(
        self,
        batch: pa.Table | Sliced | None,
        outcomes: list[Outcome],
        after: int,
        now: int,
        open_windows: int,
    ) -> Iterator[pd.DataFrame]:
        for part in outcomes:
            if len(part.emitted.windows):
                yield self._frame(len(part.emitted.windows), self._results(part, after, now))
        outcome = outcomes[-1]
        late = outcome.late
        if self._output.late and len(late.rows) and isinstance(batch, pa.Table):
            yield self._frame(len(late.rows), self._late(batch, outcome, now))
        metrics = {
            "rows_in": outcome.rows,
            "rows_late": outcome.lost,
            "rows_partly_late": outcome.partly_late,
            "rows_counted": outcome.counted,
            "corrections": sum(part.corrections for part in outcomes),
            "rows_out": sum(len(part.emitted.windows) for part in outcomes),
            "rows_without_answer": sum(len(part.emitted.failed) for part in outcomes),
            "open_windows": open_windows,
            "state_records": self._store.records,
            "state_bytes": self._store.bytes,
            "watermark": now - 1000,
        }
        row = {"event_time": np.array([now]), "metrics": pa.array([json.dumps(metrics)])}
        yield self._frame(1, row)

    def _results(self, outcome: Outcome, after: int, now: int) -> dict[str, Any]:
        emitted, query = outcome.emitted, self._query
        start, end = self._window.start(emitted.windows), self._window.end(emitted.windows)
        codes = pa.array(emitted.codes)
        # those that are open end after the present watermark, be it by less than a millisecond
        least = np.where(end > now - 1000, now - 999, after)
        made: dict[str, Any] = {"event_time": np.maximum(end - 1, least)}
        made["start"], made["end"] = pa.array(start), pa.array(end)
        for i, keys in enumerate(emitted.keys):
            made[f"key_{i}"] = keys.take(codes)
        for i, name in enumerate(query.select):
            made[f"value_{i}"] = emitted.values[name]
        if outcome.revisions is not None:
            made["revision"] = pa.array(outcome.revisions)
        return made

    def _late(self, batch: pa.Table, outcome: Outcome, now: int) -> dict[str, Any]:
        late = outcome.late
        rows = batch.take(pa.array(late.rows))
        made: dict[str, Any] = {"event_time": np.full(len(late.rows), now)}
        made["reason"] = pa.array(late.reasons, pa.string())
        made["missed_start"], made["missed_end"] = late.spans(self._window, pa.int64())
        for i, name in enumerate(self._query.columns):
            made[f"late_{i}"] = flat(rows.column(name))
        return made

    def _frame(self, rows: int, given: dict[str, Any]) -> pd.DataFrame:
        """The rows as pandas: columns keep their Arrow types, so that nulls stay nulls."""
        columns: dict[str, Any] = {}
        for name, type_ in zip(self._output.names, self._output.types, strict=True):
            values = given.get(name)
            if name == "event_time":
                stamps = np.asarray(values).view("M8[us]")
                columns[name] = pd.Series(stamps).dt.tz_localize("UTC")
            else:
                array = pa.nulls(rows, type_) if values is None else travelling(values, type_)
                if pa.types.is_nested(type_):
                    columns[name] = pd.Series(array.to_pylist(), dtype=object)
                else:
                    columns[name] = pd.Series(array, dtype=pd.ArrowDtype(type_))
        return pd.DataFrame(columns)


def travelling(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values in the type they travel in."""
    if values.type == wanted:
        return values
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(wanted)


def about(plan: Plan, shapes: Sequence[str], mode: str, buckets: int) -> dict[str, str]:
    """What state belongs to; state of anything else is refused."""
    partials = [
        f"{', '.join(g.names)}: {shape} of {', '.join(g.operator.types)}"
        for g, shape in zip(plan.groups, shapes, strict=True)
    ]
    return fingerprint(plan.query) | {
        "state version": _VERSION,
        "buckets": str(buckets),
        "mode": mode,
        "columns": ", ".join(f"{f.name} {f.type}" for f in plan.schema),
        "partials": "; ".join(partials),
    }


def _check_same(old: dict[str, str], new: dict[str, str], trust: Sequence[str] = ()) -> None:
    """Refuse the state of another query, or of another version of sash."""
    if old.get("state version") != _VERSION:
        raise ValueError(
            f"this checkpoint has state of version {old.get('state version')}, and this sash reads "
            f"{_VERSION}; start with a new checkpoint and a new path for results"
        )
    found = differences(old, new, trust)
    if found and found == differences({"buckets": old["buckets"]}, {"buckets": new["buckets"]}):
        raise ValueError(
            f"this checkpoint has {old['buckets']} buckets of keys, and the query now has "
            f"{new['buckets']}: say sash.spark.aggregate(…, buckets={old['buckets']})"
        )
    if found:
        raise ValueError(
            "this checkpoint was started with another query, and its state cannot be used for this "
            f"one ({'; '.join(found)}); start with a new checkpoint and a new path for results, or "
            "with the query as it was, or name the aggregates whose partials mean the same as "
            "before: trust=['…']"
        )
