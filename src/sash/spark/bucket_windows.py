"""Computes a bucket's windows from the rows of a micro-batch, for each kind of window.

payloads ─→ rows or slices ─→ lifecycle, over tiles in Spark's state           aligned windows
payloads ─→ rows ─→ a stream of events, over rows by key in Spark's state      all others

A bundle of queries, or of the sizes of one query, has one lifecycle over one copy of the slices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..engine.bundle_lifecycle import BundleLifecycle
from ..engine.bundle_plans import plan_bundle
from ..engine.bundles import ALONE, Bundle, bundle_alone
from ..engine.event_stream import Admitted
from ..engine.late import Late, Spanned
from ..engine.lifecycle import Lifecycle, Outcome, Progress, Sliced
from ..engine.stored_events import StoredEvents
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..state.shared_tiles import SharedTiles
from ..state.tiles import TileState
from ..stores.contract import Store
from ..tables.arrow import one_array, times_of
from ..windows import Aligned, Driven
from .payloads import unpacked, unpacked_rows
from .processor import Work

__all__ = ["BundleWindows", "EventWindows", "Part", "Windows", "windows_for"]

_RECORDS = b"t"  # the first byte of the records' keys


@dataclass
class Part:
    """What a query computes in a micro-batch: the columns of results, as they travel, and the last
    moment of each result; late rows, and the windows that they missed; and counts.  `delays` is the
    histogram of lateness."""

    results: dict[str, Any]
    moments: Array
    late: Late
    missed: Spanned
    rows: int
    lost: int
    partly_late: int
    corrections: int
    lacking: int  # results without some answer
    delays: Array


class Windows(ABC):
    """The windows of a query, over the records of the bucket for which Spark makes the present
    call."""

    plan: Plan
    shapes: list[str]  # the types of a partial's words, for each group of aggregates

    @abstractmethod
    def unpacked(self, payloads: list[bytes]) -> pa.Table | Sliced:
        """The batch in the payloads of a bucket."""

    @abstractmethod
    def process(
        self, progress: Progress, batch: pa.Table | Sliced | None, watermark: int | None
    ) -> Part:
        """Insert rows, whose lateness the watermark of `progress` decides; then move to another
        watermark, and emit the windows that are due."""

    @abstractmethod
    def next_visit(self) -> int | None:
        """The first watermark at which there is work to do, if no rows come."""

    @abstractmethod
    def open_windows(self, progress: Progress) -> int:
        """The number of open windows that may contain events."""


def windows_for(work: Work, store: Store) -> Windows:
    """Make the windows for the work of a stream."""
    if isinstance(work.query.window, Aligned) and work.query.several:
        return _SizedWindows(work, store)
    if isinstance(work.query.window, Aligned):
        return _AlignedWindows(work, store)
    return EventWindows(work, store)


class _AlignedWindows(Windows):
    """Aligned windows."""

    def __init__(self, work: Work, store: Store) -> None:
        self.plan = make_plan(work.query, work.schema, labelled=True)
        self._state = TileState(self.plan, store, _RECORDS)
        self._lifecycle = Lifecycle(self.plan, mode=work.mode, behind=work.behind)
        self._window = work.query.aligned
        self.shapes = self._state.shapes

    def unpacked(self, payloads: list[bytes]) -> pa.Table | Sliced:
        return unpacked(self.plan, payloads)

    def process(
        self, progress: Progress, batch: pa.Table | Sliced | None, watermark: int | None
    ) -> Part:
        made = self._lifecycle.process(progress, self._state, batch, watermark=watermark)
        return _part(self.plan.query, made)

    def next_visit(self) -> int | None:
        visit = self._state.next_visit()
        return None if visit is None else self._window.end(visit)

    def open_windows(self, progress: Progress) -> int:
        nothing = self._state.next_visit() is None
        return 0 if nothing else self._lifecycle.open_windows(progress)


def _part(query: Query, made: Outcome) -> Part:
    """The part of a query with aligned windows."""
    window = query.aligned
    return Part(
        _results(query, made),
        window.end(made.emitted.windows) - 1,
        made.late,
        window,
        made.rows,
        made.lost,
        made.partly_late,
        made.corrections,
        len(made.emitted.failed),
        made.delays,
    )


def _results(query: Query, outcome: Outcome) -> dict[str, Any]:
    emitted, window = outcome.emitted, query.aligned
    codes = pa.array(emitted.codes)
    made: dict[str, Any] = {
        "start": pa.array(window.start(emitted.windows)),
        "end": pa.array(window.end(emitted.windows)),
    }
    for i, keys in enumerate(emitted.keys):
        made[f"kept_{i}"] = keys.take(codes)
    for i, name in enumerate(query.select):
        made[f"value_{i}"] = emitted.values[name]
    if outcome.revisions is not None:
        made["revision"] = pa.array(outcome.revisions)
    return made


class BundleWindows:
    """The windows of queries that share slices, over the records of the bucket for which Spark
    makes the present call."""

    def __init__(
        self,
        bundle: Bundle,
        schema: pa.Schema,
        mode: Mode,
        store: Store,
        prefix: bytes = _RECORDS,
        behind: int | None = None,
    ) -> None:
        self._schema = schema
        self.made = plan_bundle(bundle, schema, stored=True)
        self._state = SharedTiles(
            self.made.union, self.made.composite, self.made.sights(), store, prefix
        )
        self._lifecycle = BundleLifecycle(self.made, mode=mode, behind=behind)
        self.shapes = self._state.shapes

    def unpacked(self, payloads: list[bytes]) -> pa.Table | Sliced:
        """The batch in the payloads of a bucket."""
        return unpacked(self.made.union, payloads, self.made.composite.edges, self._schema)

    def process(
        self,
        progress: dict[str, Progress],
        batch: pa.Table | Sliced | None,
        watermark: int | None,
    ) -> dict[str, Part]:
        """Insert rows once for all queries, and emit each query's due windows; see
        `Windows.process`."""
        made = self._lifecycle.process(progress, self._state, batch, watermark=watermark)
        return {name: _part(self.made.plans[name].query, one) for name, one in made.items()}

    def next_visit(self) -> int | None:
        """The first watermark at which there is work to do, if no rows come."""
        return self._state.next_end()

    def open_by_query(self, progress: dict[str, Progress]) -> dict[str, int]:
        """The number of each query's open windows that may contain events."""
        if self._state.next_visit() is None:
            return dict.fromkeys(progress, 0)
        return self._lifecycle.open_windows(progress)


class _SizedWindows(Windows):
    """Aligned windows, with aggregates over several sizes."""

    def __init__(self, work: Work, store: Store) -> None:
        bundle = bundle_alone(work.query)
        self._windows = BundleWindows(bundle, work.schema, work.mode, store, behind=work.behind)
        self.plan = self._windows.made.union
        self.shapes = self._windows.shapes

    def unpacked(self, payloads: list[bytes]) -> pa.Table | Sliced:
        return self._windows.unpacked(payloads)

    def process(
        self, progress: Progress, batch: pa.Table | Sliced | None, watermark: int | None
    ) -> Part:
        return self._windows.process({ALONE: progress}, batch, watermark)[ALONE]

    def next_visit(self) -> int | None:
        return self._windows.next_visit()

    def open_windows(self, progress: Progress) -> int:
        return self._windows.open_by_query({ALONE: progress})[ALONE]


class EventWindows(Windows):
    """Windows that depend on events: driven windows, and windows that merge."""

    def __init__(self, work: Work, store: Store, prefix: bytes = _RECORDS) -> None:
        self._schema = work.schema
        self._kept = work.output.kept
        self._events = StoredEvents(
            work.query, work.schema, work.mode, store, prefix, behind=work.behind
        )
        self.plan = self._events.plan
        self.shapes = self._events.shapes

    def unpacked(self, payloads: list[bytes]) -> pa.Table | Sliced:
        return unpacked_rows(self._schema, payloads)

    def process(
        self, progress: Progress, batch: pa.Table | Sliced | None, watermark: int | None
    ) -> Part:
        assert not isinstance(batch, Sliced)
        made = self._events.process(progress, batch, watermark)
        results = self._results(made)
        again = int((results["revision"].to_numpy() > 0).sum()) if "revision" in results else 0
        return Part(
            results,
            self._moments(made),
            made.late,
            self._events.missed,
            made.rows,
            lost=made.rows - made.counted,
            partly_late=0,
            corrections=again,
            lacking=len(made.failed),
            delays=made.delays,
        )

    def _results(self, admitted: Admitted) -> dict[str, Any]:
        rows, query = admitted.made, self.plan.query
        made = {edge: one_array(rows.column(f"window_{edge}")) for edge in ("start", "end")}
        for i, name in enumerate(self._kept):
            made[f"kept_{i}"] = one_array(rows.column(name))
        for i, name in enumerate(query.select):
            made[f"value_{i}"] = one_array(rows.column(name))
        more = [name for name in ("revision", "deleted") if name in rows.column_names]
        return made | {name: one_array(rows.column(name)) for name in more}

    def _moments(self, admitted: Admitted) -> Array:
        """The times of the results: for driven windows the time of the event that fired, else the
        last moment of the window."""
        query, rows = self.plan.query, admitted.made
        if isinstance(query.window, Driven):
            return times_of(one_array(rows.column(query.time)))[0]
        ends: Array = times_of(one_array(rows.column("window_end")))[0] - 1
        return ends

    def next_visit(self) -> int | None:
        return self._events.next_visit()

    def open_windows(self, progress: Progress) -> int:
        return self._events.open_windows()
