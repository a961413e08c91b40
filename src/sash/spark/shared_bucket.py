"""Processes the micro-batches of a bucket for several queries in one operator.

payloads ─→ rows of each lane ─→ members ─→ results of each query, late rows

A member is a bundle of queries that share slices, or one other query; each member has its own
records in Spark's state.  A lane has the rows of queries with the same keys and condition.  A row
may be in different buckets in different lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..engine.bundles import bundled
from ..engine.identity import fingerprint
from ..engine.late import Late, Spanned
from ..engine.lifecycle import Progress, Sliced
from ..engine.members import check_same_queries
from ..engine.sizes import reach_of
from ..query.shared import Shared
from ..stores.contract import Store
from ..windows import Aligned
from .bucket_windows import BundleWindows, EventWindows, Part
from .buckets import for_stream
from .micro_batch import STATE_VERSION, Bucket, check_same, unusable
from .packer import LANE
from .payloads import unpacked_rows
from .processor import EACH, Output, SharedWork, Work

__all__ = ["SharedBucket", "SharedWindows"]

Rows = dict[int, pa.Table | Sliced]  # by lane
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

    def unpacked(self, payloads: list[bytes]) -> Rows:
        """The rows in the payloads of a bucket, by lane."""
        by_lane: dict[int, list[bytes]] = {}
        for payload in payloads:
            (lane,) = LANE.unpack_from(payload)
            by_lane.setdefault(lane, []).append(payload[LANE.size :])
        made: Rows = {}
        for lane, some in by_lane.items():
            members = [m for names, m in self._members if self._lane_of[names[0]] == lane]
            if len(members) == 1:  # the rows may come as slices of this member
                made[lane] = members[0].unpacked(some)
            else:
                schema = _some(self._work.schema, self._work.lanes[lane].travels)
                made[lane] = unpacked_rows(schema, some)
        return made

    def process(
        self, progress: dict[str, Progress], batch: Rows | None, watermark: int | None
    ) -> Parts:
        """Insert rows, whose lateness the watermark of `progress` decides; then move to another
        watermark, and emit the due windows of each query."""
        made: Parts = {}
        for names, member in self._members:
            rows = (batch or {}).get(self._lane_of[names[0]])
            if isinstance(member, BundleWindows):
                made |= member.process({name: progress[name] for name in names}, rows, watermark)
            else:
                made[names[0]] = member.process(progress[names[0]], rows, watermark)
        return made

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

    def rows_of(self, name: str, batch: Rows | None) -> pa.Table | Sliced | None:
        """The rows of a batch that a query reads."""
        return (batch or {}).get(self._lane_of[name])

    def late(
        self, batch: Rows | None, parts: Parts
    ) -> list[tuple[pa.Table, Late, Spanned, list[str]]]:
        """The late rows: for each set of queries with the same late rows, the rows of the lane, the
        late ones among them, the windows that they missed, and the names of the queries.  Queries
        of a bundle have the same late rows if they have the same windows with the same reach."""
        made: list[tuple[pa.Table, Late, Spanned, list[str]]] = []
        for names, _ in self._members:
            alike: dict[Any, list[str]] = {}
            for name in names:
                if len(parts[name].late.rows):
                    query = self._work.queries[name]
                    reach = reach_of(query) if isinstance(query.window, Aligned) else None
                    alike.setdefault((parts[name].missed, reach), []).append(name)
            for some in alike.values():
                rows, part = self.rows_of(some[0], batch), parts[some[0]]
                if isinstance(rows, pa.Table):
                    made.append((rows, part.late, part.missed, some))
        return made


class SharedBucket(Bucket):
    """Processes all buckets of a task, one after the other, for several queries."""

    def _set_up(self, work: Any) -> None:
        self._work: SharedWork = work
        self._windows = SharedWindows(work, self._store)
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

    def _frame(
        self, batch: Any, made: list[Any], before: int, watermark: int, progress: Any
    ) -> pd.DataFrame:
        every: list[Parts] = made
        now = watermark + 1000
        parts = []
        for each in every:
            for name, part in each.items():
                if len(part.moments):
                    parts.append(self._of_query(name, self._results(part, before, watermark)))
        last = every[-1]
        if self._output.late:
            for rows, late, missed, names in self._windows.late(batch, last):
                told = self._late(self._whole(rows), late, missed, now)
                told["queries"] = pa.array([names] * len(late.rows), pa.list_(pa.string()))
                parts.append(told)
        first = last[next(iter(self._work.queries))]
        own = self._own_metrics(batch, every, progress)
        sums = {metric: sum(one[metric] for one in own) for metric in EACH}
        metrics = sums | {
            "rows_in": first.rows,
            "rows_counted": first.rows - first.lost,
            "rows_without_answer": sum(p.lacking for each in every for p in each.values()),
            "state_records": self._store.records,
            "state_bytes": self._store.bytes,
            "watermark": watermark,
        }
        amounts = np.array([one[metric] for one in own for metric in EACH], np.int64)
        parts.append(self._measured(metrics, np.concatenate([first.delays, amounts]), now))
        return self._joined(parts)

    def _own_metrics(self, batch: Any, every: list[Parts], progress: Any) -> list[dict[str, int]]:
        """The metrics of each query."""
        made = []
        still_open = self._windows.open_windows(progress)
        for name in self._work.queries:
            last = every[-1][name]
            made.append(
                {
                    "rows_in": last.rows,
                    "rows_late": last.lost,
                    "rows_unusable": unusable(self._windows.rows_of(name, batch), last),
                    "rows_partly_late": last.partly_late,
                    "corrections": sum(each[name].corrections for each in every),
                    "rows_out": sum(len(each[name].moments) for each in every),
                    "open_windows": still_open[name],
                }
            )
        return made

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
