"""A bucket's micro-batch: a pass through the lifecycle, over tiles in Spark's state store.

payloads ─→ lifecycle ─→ results, late rows, metrics, as pandas
                │
     tiles, progress and a timer in Spark's state
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext

from ..engine.identity import differences, fingerprint
from ..engine.lifecycle import Lifecycle, Outcome, Progress, Sliced
from ..query.plan import Plan, make_plan
from ..state.tiles import TileState
from ..stores.sealed import seal, unseal
from ..tables.arrow import flat
from ..windows.contract import LATEST
from .buckets import for_stream
from .payloads import unpacked
from .processor import METRICS, Work
from .state import SparkStore

__all__ = ["Bucket", "about", "check_same", "travelling"]

_PROGRESS = b"progress"
_TILES = b"t"
_BATCH_ID = "streaming.sql.batchId"
_VERSION = "3"  # of the state


def _batch_id() -> int | None:
    """The number of the present micro-batch, None if Spark does not say."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_BATCH_ID)
    return None if found is None else int(found)


@dataclass
class Place:
    """Where a bucket stands between two micro-batches."""

    progress: Progress
    batch: int | None = None  # the last micro-batch in which the bucket was called
    timer: int | None = None


class Bucket:
    """What a task does with its buckets, one after the other: the state is that of the bucket which
    Spark is calling."""

    def __init__(self, work: Work, handle: Any, records: Any) -> None:
        self._handle = handle
        self._store = SparkStore(records)
        self._query, self._output, self._trust = work.query, work.output, work.trust
        plan = make_plan(work.query, work.schema)
        self._plan = plan
        self._state = TileState(plan, self._store, _TILES)
        self._lifecycle = Lifecycle(plan, mode=work.mode)
        self._about = about(plan, self._state.shapes, work.mode, for_stream(work.buckets))
        self._window = work.query.aligned

    def rows(self, payloads: list[bytes], timers: Any) -> Iterator[pd.DataFrame]:
        """A micro-batch with rows, or with none in it for this bucket."""
        batch = unpacked(self._plan, payloads) if payloads else None
        yield from self._process(batch, timers, None)

    def expired(self, timers: Any, expired: int) -> Iterator[pd.DataFrame]:
        """The watermark has passed a window's end, and there are no new rows."""
        yield from self._process(None, timers, expired)

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
        yield self._frame(batch, outcomes, before + 1000, now, open_windows)

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
        check_same(said["about"], self._about, self._trust)
        return Place(Progress(**said["progress"]), said["batch"], said["timer"])

    def _write_place(self, place: Place) -> None:
        said = {"about": self._about, **asdict(place)}
        body = json.dumps(said, separators=(",", ":")).encode()
        self._store.put_many({_PROGRESS: seal(body, _PROGRESS)})

    # rows out

    def _frame(
        self,
        batch: pa.Table | Sliced | None,
        outcomes: list[Outcome],
        after: int,
        now: int,
        open_windows: int,
    ) -> pd.DataFrame:
        """All rows of the micro-batch, in one frame, because Spark takes its price for each."""
        parts = [self._results(part, after, now) for part in outcomes if len(part.emitted.windows)]
        outcome = outcomes[-1]
        if self._output.late and len(outcome.late.rows) and isinstance(batch, pa.Table):
            parts.append(self._late(batch, outcome, now))
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
        parts.append(
            {
                "event_time": np.full(len(METRICS), now),
                "metric": pa.array(range(len(METRICS)), pa.int32()),
                "amount": pa.array([metrics[name] for name in METRICS], pa.int64()),
            }
        )
        return self._joined(parts)

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

    def _joined(self, parts: list[dict[str, Any]]) -> pd.DataFrame:
        """The rows of some parts: columns keep their Arrow types, so that nulls stay nulls."""
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


def check_same(old: dict[str, str], new: dict[str, str], trust: Sequence[str] = ()) -> None:
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
