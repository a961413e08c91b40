"""Processes the micro-batches of a bucket for several queries in one operator.

payloads ─→ rows of each lane ─→ members ─→ results of each query, late rows

A member is a bundle of queries that share slices, or one other query; each member has its own
records in Spark's state.  A lane has the rows of queries with the same keys and condition.  A row
may be in different buckets in different lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.bundles import bundled
from ..engine.identity import fingerprint
from ..engine.late import Late, Spanned
from ..engine.lifecycle import Progress
from ..engine.members import check_same_queries
from ..engine.sizes import reach_of
from ..query.query import Query
from ..query.shared import Shared
from ..stores.contract import Store
from ..windows import Aligned
from ..windows.contract import UTC
from .arrivals import Arrivals
from .bucket_windows import BundleWindows, EventWindows, Part
from .buckets import for_stream
from .in_portions import in_portions
from .micro_batch import STATE_VERSION, Bucket, Metrics, check_same
from .packer import LANE
from .payload_slices import Unpacker
from .processor import EACH, Output, SharedWork, Work

__all__ = ["LaneArrivals", "SharedBucket", "SharedWindows"]

Parts = dict[str, Part]  # by query


class SharedWindows:
    """The windows of all queries, over the records of the bucket for which Spark makes the present
    call."""

    def __init__(self, work: SharedWork, store: Store) -> None:
        self._work = work
        self._lane_of = {name: i for i, lane in enumerate(work.lanes) for name in lane.names}
        self._members: list[tuple[tuple[str, ...], Any]] = []
        for number, names in enumerate(work.bundles):
            self._members.append((names, self._member(names, store, f"t{number}:".encode())))

    def _member(self, names: tuple[str, ...], store: Store, prefix: bytes) -> Any:
        work = self._work
        schema = _some(work.schema, work.lanes[self._lane_of[names[0]]].travels)
        query = work.queries[names[0]]
        if isinstance(query.window, Aligned):
            bundle = bundled({name: work.queries[name] for name in names})
            return BundleWindows(bundle, schema, work.mode, store, prefix, work.behind)
        output = Output((), (), work.output.kept[names[0]], work.output.late)
        alone = Work(query, schema, work.mode, work.buckets, output, (), work.behind)
        return EventWindows(alone, store, prefix)

    @property
    def shapes(self) -> list[str]:
        """The types of a partial's words, for each member and group of aggregates."""
        return [f"{', '.join(names)}: {', '.join(m.shapes)}" for names, m in self._members]

    def arrivals(self) -> LaneArrivals:
        """What takes in the values of a micro-batch."""
        made = []
        for number, lane in enumerate(self._work.lanes):
            members = [m for names, m in self._members if self._lane_of[names[0]] == number]
            if len(members) == 1:  # whose rows may come as slices
                made.append(members[0].unpacker)
            else:
                schema = _some(self._work.schema, lane.travels)
                made.append(Unpacker(schema, self._widest(lane.names)))
        return LaneArrivals(made)

    def _widest(self, names: Sequence[str]) -> Query:
        """The query whose clock can show all times that any of these queries can use: a calendar
        can show fewer than UTC."""
        queries = [self._work.queries[name] for name in names]
        return next((query for query in queries if query.window.clock is UTC), queries[0])

    def in_portions(
        self, progress: dict[str, Progress], arrivals: LaneArrivals | None, watermark: int | None
    ) -> Iterator[tuple[Any, Parts]]:
        """Insert rows, which are judged by the watermark of `progress`, move on to another, and
        emit what is due of each query: some queries and keys at a time, with their rows."""
        for names, member in self._members:
            given = None if arrivals is None else arrivals.lanes.get(self._lane_of[names[0]])
            if isinstance(member, BundleWindows):
                some = {name: progress[name] for name in names}
                yield from in_portions(member, some, given, watermark)
            else:
                for rows, part in in_portions(member, progress[names[0]], given, watermark):
                    yield rows, {names[0]: part}

    def next_visit(self) -> int | None:
        """The first watermark at which there is work to do, if no rows come."""
        visits = [member.next_visit() for _, member in self._members]
        return min((visit for visit in visits if visit is not None), default=None)

    def open_windows(self, progress: dict[str, Progress]) -> dict[str, int]:
        """The number of each query's open windows that may contain events."""
        made: dict[str, int] = {}
        for names, member in self._members:
            if isinstance(member, BundleWindows):
                made |= member.open_by_query({name: progress[name] for name in names})
            else:
                made[names[0]] = member.open_windows(progress[names[0]])
        return made

    def late(self, parts: Parts) -> list[tuple[Late, Spanned, list[str]]]:
        """The late rows of a portion: with each kind the windows that they missed, and the names
        of the queries.  Queries of a bundle whose windows are the same, and reach as far back, miss
        the same rows."""
        alike: dict[Any, list[str]] = {}
        for name, part in parts.items():
            if len(part.late.rows):
                query = self._work.queries[name]
                reach = reach_of(query) if isinstance(query.window, Aligned) else None
                alike.setdefault((part.missed, reach), []).append(name)
        firsts = [(parts[some[0]], some) for some in alike.values()]
        return [(part.late, part.missed, some) for part, some in firsts]


class LaneArrivals:
    """The rows of a bucket's micro-batch, by lane: only those lanes that have any."""

    def __init__(self, unpackers: list[Unpacker]) -> None:
        self._unpackers = unpackers
        self.lanes: dict[int, Arrivals] = {}

    def add(self, payload: bytes) -> None:
        """Take in a value."""
        (lane,) = LANE.unpack_from(payload)
        if lane not in self.lanes:
            self.lanes[lane] = Arrivals(self._unpackers[lane], len(self._unpackers))
        self.lanes[lane].add(memoryview(payload)[LANE.size :])

    def close(self) -> None:
        """Let go of everything."""
        with ExitStack() as stack:
            for lane in self.lanes.values():
                stack.callback(lane.close)


class SharedBucket(Bucket):
    """Processes all buckets of a task, one after the other, for several queries."""

    def _set_up(self, work: Any) -> None:
        self._work: SharedWork = work
        self._windows: SharedWindows = SharedWindows(work, self._store)
        self._numbers = {name: number for number, name in enumerate(work.queries)}
        self._about = {
            "queries": {name: fingerprint(query) for name, query in work.queries.items()},
            "rest": {
                "state version": STATE_VERSION,
                "buckets": str(for_stream(work.buckets)),
                "mode": work.mode,
                "columns": ", ".join(f"{f.name} {f.type}" for f in work.schema),
                "partials": "; ".join(self._windows.shapes),
            },
        }

    def _progress(self, said: dict[str, Any] | None) -> dict[str, Progress]:
        return {name: Progress(**(said or {}).get(name, {})) for name in self._work.queries}

    def _reached(self, progress: Any) -> int | None:
        first: Progress = next(iter(progress.values()))
        return first.watermark

    def _check_same(self, old: dict[str, Any]) -> None:
        if "queries" not in old:
            raise ValueError(
                "this checkpoint was started with one query, and its state cannot be used for "
                "several; start with a new checkpoint and a new path for results"
            )
        shared = Shared(self._work.queries)
        check_same_queries(old["queries"], shared, self._trust, what="this checkpoint is")
        check_same(old["rest"], self._about["rest"])

    # rows out

    def _arrivals(self) -> LaneArrivals:
        return self._windows.arrivals()

    def _portions(
        self, progress: Any, arrivals: Any, watermark: int | None
    ) -> Iterator[tuple[Any, Any]]:
        return self._windows.in_portions(progress, arrivals, watermark)

    def _no_metrics(self) -> dict[str, Metrics]:
        return {name: Metrics() for name in self._work.queries}

    def _rows_of(
        self, batch: Any, parts: Any, before: int, watermark: int, metrics: Any
    ) -> Iterator[dict[str, Any]]:
        for name, part in parts.items():
            metrics[name].add(batch, part)
            if len(part.moments):
                yield self._of_query(name, self._results(part, before, watermark))
        if self._output.late and isinstance(batch, pa.Table):
            for late, missed, names in self._windows.late(parts):
                told = self._late(self._whole(batch), late, missed, watermark + 1000)
                told["queries"] = pa.array([names] * len(late.rows), pa.list_(pa.string()))
                yield told

    def _measures(self, metrics: Any, progress: Any, watermark: int) -> dict[str, Any]:
        still_open = self._windows.open_windows(progress)
        own = [one.amounts() | {"open_windows": still_open[name]} for name, one in metrics.items()]
        first: Metrics = next(iter(metrics.values()))
        amounts = {metric: sum(one[metric] for one in own) for metric in EACH} | {
            "rows_in": first.rows_in,
            "rows_counted": first.rows_in - first.rows_late,
            "rows_without_answer": sum(one.rows_without_answer for one in metrics.values()),
            "state_records": self._store.records,
            "state_bytes": self._store.bytes,
            "watermark": watermark,
        }
        each = np.array([one[metric] for one in own for metric in EACH], np.int64)
        return self._measured(amounts, np.concatenate([first.delays, each]), watermark + 1000)

    def _of_query(self, name: str, results: dict[str, Any]) -> dict[str, Any]:
        """Rename the columns of a query's results to those in which they travel."""
        slots = self._output.slots[name]
        made = {slots.get(column, column): values for column, values in results.items()}
        rows = len(results["event_time"])
        return made | {"query": pa.array([self._numbers[name]] * rows, pa.int32())}

    def _whole(self, rows: pa.Table) -> pa.Table:
        """Add to the rows of a lane the missing columns of late rows, as nulls."""
        for field in self._work.schema:
            if field.name not in rows.column_names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows.select(self._travels)


def _some(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])
