"""Processes the micro-batches of a bucket: reads payloads, returns rows, and keeps Spark's state.

payloads ─→ arrivals ─→ windows (`bucket_windows`) ─→ results, late rows, metrics, as pandas
                            │
            records, progress and a timer in Spark's state

What is large is done in portions of keys (`in_portions`), whose rows leave before the next portion.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext

from ..engine.delays import no_delays
from ..engine.identity import differences, fingerprint
from ..engine.late import Late, Spanned
from ..engine.lifecycle import Progress, Sliced, latest
from ..kernels.columns import Array
from ..stores.sealed import seal, unseal
from ..tables.arrow import flat
from ..windows.contract import LATEST
from .arrivals import Arrivals
from .bucket_windows import Part, Windows, windows_for
from .buckets import for_stream
from .in_portions import in_portions
from .processor import EACH, METRICS, Work
from .state import SparkStore

__all__ = ["STATE_VERSION", "Bucket", "Metrics", "about", "check_same", "travelling"]

_PROGRESS = b"progress"
_BATCH_ID = "streaming.sql.batchId"
STATE_VERSION = "4"
_FRAME = 65_536  # rows that leave without waiting for others


def _batch_id() -> int | None:
    """The number of the present micro-batch; None outside of one."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_BATCH_ID)
    return None if found is None else int(found)


@dataclass
class Metrics:
    """What is counted of a query's portions."""

    rows_in: int = 0
    rows_late: int = 0
    rows_unusable: int = 0
    rows_partly_late: int = 0
    corrections: int = 0
    rows_out: int = 0
    rows_without_answer: int = 0
    delays: Array = field(default_factory=no_delays)

    def add(self, batch: Any, part: Part) -> None:
        """Count a portion with these rows."""
        self.rows_in += part.rows
        self.rows_late += part.lost
        self.rows_unusable += _unusable(batch, part)
        self.rows_partly_late += part.partly_late
        self.corrections += part.corrections
        self.rows_out += len(part.moments)
        self.rows_without_answer += part.lacking
        self.delays = self.delays + part.delays

    def amounts(self) -> dict[str, int]:
        """Those that each of several queries has for itself."""
        return {name: getattr(self, name) for name in EACH if hasattr(self, name)}


class _Rows:
    """Rows that leave together, because Spark takes its price for each frame."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._count = 0

    def add(self, part: dict[str, Any]) -> None:
        self._parts.append(part)
        self._count += len(part["event_time"])

    @property
    def many(self) -> bool:
        """True if they should leave."""
        return self._count >= _FRAME

    def taken(self) -> list[dict[str, Any]]:
        """All of them, which are then gone."""
        parts, self._parts, self._count = self._parts, [], 0
        return parts


@dataclass
class Place:
    """What a bucket remembers between two micro-batches, besides its slices or rows."""

    progress: Any  # the progress of the query, or of each query by name
    batch: int | None = None  # the last micro-batch in which Spark called the bucket
    timer: int | None = None  # the timer that is registered, in milliseconds


class Bucket:
    """Processes all buckets of a task, one after the other.  Spark's state is always that of the
    bucket for which Spark makes the present call."""

    def __init__(self, work: Any, handle: Any, records: Any) -> None:
        self._handle = handle
        self._store = SparkStore(records)
        self._output, self._trust = work.output, work.trust
        self._travels = work.schema.names
        self._set_up(work)

    def _set_up(self, work: Work) -> None:
        self._windows: Any = windows_for(work, self._store)
        self._about: dict[str, Any] = about(work, self._windows, for_stream(work.buckets))

    def rows(self, payloads: Iterable[bytes], timers: Any) -> Iterator[pd.DataFrame]:
        """Process a micro-batch.  There are no payloads if it has no rows for this bucket."""
        arrivals = None
        try:
            for payload in payloads:
                if arrivals is None:
                    arrivals = self._arrivals()
                arrivals.add(payload)
            yield from self._process(arrivals, timers, None)
        finally:
            if arrivals is not None:
                arrivals.close()

    def _arrivals(self) -> Any:
        """What takes in the values of a micro-batch."""
        return Arrivals(self._windows.unpacker)

    def expired(self, timers: Any, expired: int) -> Iterator[pd.DataFrame]:
        """Process a micro-batch without rows in which the timer expired: the watermark has passed a
        window's end."""
        yield from self._process(None, timers, expired)

    def _process(self, arrivals: Any, timers: Any, expired: int | None) -> Iterator[pd.DataFrame]:
        self._store.reset()
        place = self._read_place()
        progress = place.progress
        millis = timers.getCurrentWatermarkInMs()
        # Spark returns 0 until there is a watermark
        watermark = min(millis * 1000, LATEST) if millis > 0 else None
        metrics = self._no_metrics()
        missed = self._missed_batches(place)
        before = latest(self._reached(progress), watermark if missed else None) or 0
        moved = max(millis, 0) * 1000
        rows = _Rows()
        for given in [None, arrivals] if missed else [arrivals]:
            for batch, made in self._portions(progress, given, watermark):
                for some in self._rows_of(batch, made, before, moved, metrics):
                    rows.add(some)
                if rows.many:
                    yield self._joined(rows.taken())
        wanted = _next_timer(self._windows.next_visit(), millis)
        if place.timer is not None and place.timer not in (wanted, expired):
            self._handle.deleteTimer(place.timer)
        if wanted is not None and (wanted != place.timer or expired == wanted):
            self._handle.registerTimer(wanted)
        place.timer = wanted
        self._write_place(place)
        rows.add(self._measures(metrics, progress, moved))
        yield self._joined(rows.taken())

    def _missed_batches(self, place: Place) -> bool:
        """True if Spark did not call the bucket in the micro-batch before, or never called it.

        Spark judges lateness by the watermark of the micro-batch before, and the bucket does so by
        the watermark in its progress.  Spark calls every bucket in each micro-batch that packs
        rows.  So the micro-batches that the bucket missed had no rows, the watermark has not moved
        since, and the bucket first moves its progress to the present watermark.
        """
        before, place.batch = place.batch, _batch_id()
        return place.batch is not None and (before is None or place.batch > before + 1)

    # what the bucket remembers

    def _read_place(self) -> Place:
        (data,) = self._store.get_many([_PROGRESS])
        if data is None:
            return Place(self._progress(None))
        said = json.loads(bytes(unseal(data, _PROGRESS)))
        self._check_same(said["about"])
        return Place(self._progress(said["progress"]), said["batch"], said["timer"])

    def _progress(self, said: dict[str, Any] | None) -> Any:
        """The progress of the query, from its stored fields, which are None in a new bucket."""
        return Progress(**(said or {}))

    def _reached(self, progress: Any) -> int | None:
        """The watermark that the query has reached."""
        found: int | None = progress.watermark
        return found

    def _check_same(self, old: dict[str, Any]) -> None:
        check_same(old, self._about, self._trust)

    def _write_place(self, place: Place) -> None:
        said = {"about": self._about, **asdict(place)}
        body = json.dumps(said, separators=(",", ":")).encode()
        self._store.put_many({_PROGRESS: seal(body, _PROGRESS)})

    # rows out

    def _portions(
        self, progress: Any, arrivals: Any, watermark: int | None
    ) -> Iterator[tuple[Any, Any]]:
        """Process a micro-batch: the rows of each portion, and what it makes of them."""
        return in_portions(self._windows, progress, arrivals, watermark)

    def _no_metrics(self) -> Any:
        """The metrics of a micro-batch that are counted portion by portion."""
        return Metrics()

    def _rows_of(
        self, batch: Any, part: Any, before: int, watermark: int, metrics: Any
    ) -> Iterator[dict[str, Any]]:
        """The rows of a portion: columns of results and of late rows."""
        metrics.add(batch, part)
        if len(part.moments):
            yield self._results(part, before, watermark)
        # what is not about a window is put after the present watermark
        if self._output.late and len(part.late.rows) and isinstance(batch, pa.Table):
            yield self._late(batch, part.late, part.missed, watermark + 1000)

    def _measures(self, metrics: Metrics, progress: Any, watermark: int) -> dict[str, Any]:
        """The rows of metrics."""
        amounts = metrics.amounts() | {
            "rows_counted": metrics.rows_in - metrics.rows_late,
            "rows_without_answer": metrics.rows_without_answer,
            "open_windows": self._windows.open_windows(progress),
            "state_records": self._store.records,
            "state_bytes": self._store.bytes,
            "watermark": watermark,
        }
        return self._measured(amounts, metrics.delays, watermark + 1000)

    def _measured(self, metrics: dict[str, int], more: Array, now: int) -> dict[str, Any]:
        """The rows with the metrics of `METRICS`, and with those metrics after them (`more`) that
        are not zero."""
        there = np.flatnonzero(more)
        amounts = np.append([metrics[name] for name in METRICS], more[there])
        places = np.append(np.arange(len(METRICS)), len(METRICS) + there)
        return {
            "event_time": np.full(len(places), now),
            "metric": pa.array(places, pa.int32()),
            "amount": pa.array(amounts, pa.int64()),
        }

    def _results(self, part: Part, before: int, watermark: int) -> dict[str, Any]:
        """The columns of results, with event times that Spark accepts.  Spark refuses a row whose
        time is not after the watermark of the micro-batch before (`before`).  A result of a window
        that is still open gets a time after the present watermark."""
        least = np.where(part.moments >= watermark, watermark, before) + 1
        return {"event_time": np.maximum(part.moments, least), **part.results}

    def _late(self, batch: pa.Table, late: Late, missed: Spanned, now: int) -> dict[str, Any]:
        rows = batch.take(pa.array(late.rows))
        made: dict[str, Any] = {"event_time": np.full(len(late.rows), now)}
        made["reason"] = pa.array(late.reasons, pa.string())
        made["missed_start"], made["missed_end"] = late.spans(missed, pa.int64())
        for i, name in enumerate(self._travels):
            made[f"late_{i}"] = flat(rows.column(name))
        return made

    def _joined(self, parts: list[dict[str, Any]]) -> pd.DataFrame:
        """Join the rows of several parts.  Columns keep their Arrow types, so that nulls stay
        nulls."""
        rows = [len(part["event_time"]) for part in parts]
        columns: dict[str, Any] = {}
        for name, type_ in zip(self._output.names, self._output.types, strict=True):
            if name == "event_time":
                stamps = np.concatenate([part[name] for part in parts]).view("M8[us]")
                columns[name] = pd.Series(stamps).dt.tz_localize("UTC")
                continue
            given = [
                travelling(part[name], type_) if name in part else pa.nulls(count, type_)
                for part, count in zip(parts, rows, strict=True)
            ]
            array = pa.concat_arrays(given)
            if pa.types.is_nested(type_):
                columns[name] = pd.Series(array.to_pylist(), dtype=object)
            else:
                columns[name] = pd.Series(array, dtype=pd.ArrowDtype(type_))
        return pd.DataFrame(columns)


def _unusable(batch: pa.Table | Sliced | None, part: Part) -> int:
    """How many rows were refused, and not only late."""
    if isinstance(batch, Sliced):
        return batch.refused
    return int((part.late.missed <= 0).sum())


def travelling(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values to the type in which they travel to Spark."""
    if values.type == wanted:
        return values
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(wanted)


def _next_timer(visit: int | None, millis: int) -> int | None:
    """The watermark, in milliseconds, at which Spark must call the bucket if no rows come: `visit`,
    where the bucket has work to do.  If possible, the timer is a millisecond earlier: the watermark
    may stop there, on the event time of a result, which is just before `visit`, and then the bucket
    must know this watermark."""
    if visit is None:
        return None
    end = max(-(-visit // 1000), 1)  # without a watermark, Spark returns 0
    return end - 1 if end - 1 > millis else max(end, millis + 1)


def about(work: Work, windows: Windows, buckets: int) -> dict[str, str]:
    """Describe the query, mode, columns and partials to which state belongs; `check_same` refuses
    state with another description."""
    partials = [
        f"{', '.join(g.names)}: {shape} of {', '.join(g.operator.types)}"
        for g, shape in zip(windows.plan.groups, windows.shapes, strict=True)
    ]
    return fingerprint(work.query) | {
        "state version": STATE_VERSION,
        "buckets": str(buckets),
        "mode": work.mode,
        "columns": ", ".join(f"{f.name} {f.type}" for f in work.schema),
        "partials": "; ".join(partials),
    }


def check_same(old: dict[str, str], new: dict[str, str], trust: Sequence[str] = ()) -> None:
    """Refuse state of another query, or in another version of its format."""
    if old.get("state version") != STATE_VERSION:
        raise ValueError(
            f"this checkpoint has state of version {old.get('state version')}, and this sash reads "
            f"{STATE_VERSION}; start with a new checkpoint and a new path for results"
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
