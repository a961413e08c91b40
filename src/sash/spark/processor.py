"""What runs on the executors of a streaming query: rows packed by bucket, and a bucket's batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ..engine.batch import filtered
from ..engine.bucket import Bucket, Given, Mark, Outcome
from ..engine.identity import differences, fingerprint
from ..engine.tables import flat
from ..engine.tiles import open_sealed, seal
from ..query.plan import make_plan
from ..query.query import Query
from .state import KEY, VALUE, Records

__all__ = ["BUCKET", "PAYLOAD", "Output", "Processor", "pack"]

BUCKET, PAYLOAD = "bucket", "payload"
_ROW = "__sash_row"
_MANY = 1_000_000  # rows that are packed at a time
_VERSION = "2"  # of the state


def pack(
    query: Query, names: list[str], always: Sequence[int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of each bucket as one value, in Arrow's own format; some buckets always have a value, so
    that they are called in every batch, and state of another query is found at once.  The columns
    are called so, and after them comes the bucket.

    A stateful operator in Python is given pandas, which has no null integers and cannot tell NaN
    from null; and it is given each row at a price.  Bytes pass unharmed, and a few of them cheaply.
    """
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _MANY:
            yield from _packed(query, names, always, held)
            held, rows = [], 0
    if held:
        yield from _packed(query, names, always, held)


def _packed(
    query: Query, names: list[str], always: Sequence[int], batches: list[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(batches)
    where = table.column(len(names))
    table = table.select(list(range(len(names)))).rename_columns(names)
    if query.where is not None:
        table = table.append_column(_ROW, pa.array(np.arange(len(where))))
        table = filtered(table, query.where)
        where = where.take(table.column(_ROW))
    buckets = flat(where).to_numpy(zero_copy_only=False)
    order = np.argsort(buckets, kind="stable")
    table = table.select(query.columns).take(pa.array(order)).combine_chunks()
    found = np.union1d(buckets, always)
    first = np.searchsorted(buckets[order], found).tolist()
    payloads = []
    for start, end in zip(first, [*first[1:], len(order)], strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(start, end - start))
        payloads.append(sink.getvalue().to_pybytes())
    yield pa.record_batch(
        {BUCKET: pa.array(found, pa.int32()), PAYLOAD: pa.array(payloads, pa.binary())}
    )


@dataclass(frozen=True)
class Output:
    """The columns that come out of the operator, by their names and Arrow types.

    Rows are results, rows that missed windows (`late`), and one row of figures a bucket.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    late: bool


class Processor(StatefulProcessor):
    """A bucket's batches."""

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        *,
        mode: str,
        buckets: int,
        output: Output,
        trust: Sequence[str] = (),
    ) -> None:
        self._query = query
        self._schema = schema
        self._mode = mode
        self._buckets = buckets
        self._output = output
        self._trust = tuple(trust)

    def __reduce__(self) -> Any:
        """On its way to other processes: with where sash is.  Spark starts one beside the driver
        that does not know of `--py-files`."""
        given: dict[str, Any] = {
            "mode": self._mode,
            "buckets": self._buckets,
            "output": self._output,
            "trust": self._trust,
        }
        made = partial(Processor, self._query, self._schema, **given)
        packed = cloudpickle.dumps(made)  # type: ignore[no-untyped-call]
        return _arrive, (str(Path(__file__).parents[2]), packed)

    def init(self, handle: Any) -> None:
        """Called on the executor, before the first bucket."""
        self._handle = handle
        self._records = Records(handle.getMapState("tiles", KEY, VALUE))
        self._bucket = Bucket(make_plan(self._query, self._schema), self._mode)
        self._about = about(self._query, self._bucket, self._mode, self._buckets)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """A batch for one bucket."""
        tables = []
        for frame in rows:
            for payload in frame[PAYLOAD]:
                with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
                    tables.append(reader.read_all().cast(self._schema))
        yield from self._process(pa.concat_tables(tables) if tables else None, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """The watermark has passed a window's end, and there are no new rows."""
        yield from self._process(None, timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing is kept outside of Spark's state."""

    def _process(
        self, batch: pa.Table | None, timers: Any, expired: int | None
    ) -> Iterator[pd.DataFrame]:
        self._records.reset()
        mark, timer = self._read_mark()
        millis = timers.getCurrentWatermarkInMs()
        watermark = millis * 1000 if millis > 0 else None  # until there is one, Spark says 0
        before = mark.watermark or 0
        outcome = self._bucket.process(mark, self._records, batch, watermark)
        wanted = self._next_timer(mark, millis)
        if timer is not None and timer not in (wanted, expired):
            self._handle.deleteTimer(timer)
        if wanted is not None and (wanted != timer or expired == wanted):
            self._handle.registerTimer(wanted)
        self._write_mark(mark, wanted)
        # Spark refuses rows that are not after the watermark of the batch before, in milliseconds;
        # what is not about a window is put after the present one.
        yield from self._frames(batch, outcome, before + 1000, max(millis, 0) * 1000 + 1000)

    def _next_timer(self, mark: Mark, millis: int) -> int | None:
        """When the bucket must be called, if no rows come: when the next window closes, and once
        before if the watermark may come so near to its end that a result's event time, a moment
        before the end, would be at the watermark."""
        due = self._bucket.next_close(mark)
        if due is None:
            return None
        end = max(-(-due // 1000), 1)  # until there is a watermark, Spark says 0
        return end - 1 if end - 1 > millis else end

    # where the bucket stands

    def _read_mark(self) -> tuple[Mark, int | None]:
        data = self._records.get_mark()
        if data is None:
            return Mark(), None
        said = json.loads(bytes(open_sealed(data)))
        _check_same(said["about"], self._about, self._trust)
        return Mark(**said["mark"]), said["timer"]

    def _write_mark(self, mark: Mark, timer: int | None) -> None:
        said = {"about": self._about, "mark": asdict(mark), "timer": timer}
        self._records.put_mark(seal(json.dumps(said, separators=(",", ":")).encode()))

    # rows out

    def _frames(
        self, batch: pa.Table | None, outcome: Outcome, after: int, now: int
    ) -> Iterator[pd.DataFrame]:
        rows_out = lacking = 0
        for given in outcome.given:
            rows = len(given.windows.starts)
            rows_out += rows
            lacking += int(given.windows.lacking.sum())
            if rows:
                yield self._frame(rows, self._result(given, after, now))
        if self._output.late and len(outcome.late.rows) and batch is not None:
            yield self._frame(len(outcome.late.rows), self._late(batch, outcome, now))
        figures = {
            "rows_in": 0 if batch is None else batch.num_rows,
            "rows_late": int(outcome.late.lost.sum()),
            "rows_partly_late": int((~outcome.late.lost).sum()),
            "rows_counted": outcome.rows,
            "corrections": outcome.corrections,
            "rows_out": rows_out,
            "rows_without_answer": lacking,
            "open_windows": outcome.open_windows,
            "state_records": self._records.records,
            "state_bytes": self._records.bytes,
            "watermark": now - 1000,
        }
        figures_row = {"event_time": np.array([now]), "figures": pa.array([json.dumps(figures)])}
        yield self._frame(1, figures_row)

    def _result(self, given: Given, after: int, now: int) -> dict[str, Any]:
        windows, query = given.windows, self._query
        end = windows.starts + query.window.size
        groups = pa.array(windows.groups)
        # those that are open end after the present watermark, be it by less than a millisecond
        least = np.where(end > now - 1000, now - 999, after)
        made: dict[str, Any] = {"event_time": np.maximum(end - 1, least)}
        made["start"] = pa.array(windows.starts)
        for i, keys in enumerate(given.keys):
            made[f"key_{i}"] = keys.take(groups)
        for i, name in enumerate(query.select):
            made[f"value_{i}"] = windows.values[name]
        if given.revisions is not None:
            made["revision"] = pa.array(given.revisions)
        return made

    def _late(self, batch: pa.Table, outcome: Outcome, now: int) -> dict[str, Any]:
        late = outcome.late
        rows = batch.take(pa.array(late.rows))
        made: dict[str, Any] = {"event_time": np.full(len(late.rows), now)}
        made["reason"] = pa.array(late.reasons, pa.string())
        unknown = late.first > late.last
        made["missed_start"] = pa.array(late.first, mask=unknown)
        made["missed_end"] = pa.array(late.last + self._query.window.size, mask=unknown)
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


def _arrive(place: str, packed: bytes) -> Any:
    """Make what was packed, by a sash that can be found."""
    import pickle
    import sys
    from importlib.util import find_spec

    if find_spec("sash") is None:
        sys.path.append(place)
    return pickle.loads(packed)()


_arrive.__module__ = "__main__"  # so it is sent as it is, and not by its name in sash


def travelling(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values in the type they travel in."""
    if values.type == wanted:
        return values
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(wanted)


def about(query: Query, bucket: Bucket, mode: str, buckets: int) -> dict[str, str]:
    """What state belongs to; state of anything else is refused."""
    shapes = []
    for group, runs in zip(bucket.plan.groups, bucket.tree.runs, strict=True):
        words = runs.kinds or "objects"
        skips = [p.operator.skips for p in group.operator.parts]
        nulls = "".join("-" if any(s) else "+" for s in skips)  # skipped or not
        types = ", ".join(group.operator.types)
        shapes.append(f"{', '.join(group.names)}: {words} of {types} {nulls}")
    return fingerprint(query) | {
        "state version": _VERSION,
        "buckets": str(buckets),
        "mode": mode,
        "columns": ", ".join(f"{f.name} {f.type}" for f in bucket.plan.schema),
        "partials": "; ".join(shapes),
    }


def _check_same(old: dict[str, str], new: dict[str, str], trust: Iterable[str] = ()) -> None:
    """Refuse the state of another query, or of another version of sash."""
    if old.get("state version") != _VERSION:
        raise ValueError(
            f"this checkpoint has state of version {old.get('state version')}, and this sash reads "
            f"{_VERSION}; start with a new checkpoint and a new path for results"
        )
    found = differences(old, new, trust)
    if found:
        raise ValueError(
            "this checkpoint was started with another query, and its state cannot be used for this "
            f"one ({'; '.join(found)}); start with a new checkpoint and a new path for results, or "
            "with the query as it was, or name the aggregates whose partials mean the same as "
            "before: trust=['…']"
        )
