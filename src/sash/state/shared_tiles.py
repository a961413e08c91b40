"""A state in a store that several queries share: one copy of the slices of all keys, in tiles.

Slices are cut at the edges of all queries (`slicing.composite`), and inserted once.  The windows of
each query are ranges of these slices, in all sizes of its aggregates.  Each query has its own
revisions and last values of emitted windows: a `TileView` is the state as one of the queries sees
it.  Records, index and levels work as in the tiles of one query (`tiles`), with joint windows
(`joint`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..slicing.composite import Composite
from ..stores.contract import Store
from ..windows import Aligned
from .contract import Emitted, Recalled, Slices, Step, StepFailed
from .emission import Reader, emit
from .joint import Ask, Joint, joint_step
from .projection import Projection
from .remembered import recall, remember
from .revisions import revise
from .scan import Scan
from .tile import Form
from .tiles import Tiles, cut_rows
from .visit import Visit

__all__ = ["SharedTiles", "Sight", "Size"]

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Size:
    """Aggregates of a query over another size than its own windows: windows of that size, with the
    same numbers; the plan of these aggregates; and the words of the partials that it reads."""

    window: Aligned
    plan: Plan
    reads: Projection


@dataclass(frozen=True)
class Sight:
    """A query's view of the state: its plan over the partials of all queries; the words of these
    partials that it reads; for each column of its result the aggregate of the state; its windows,
    as long as its longest aggregate; and the other sizes of its aggregates."""

    plan: Plan
    reads: Projection
    columns: Mapping[str, str]
    reach: Aligned
    sizes: tuple[Size, ...] = ()


class TileView:
    """The revisions and last values of one query's emitted windows."""

    def __init__(self, state: SharedTiles, place: int) -> None:
        self._state, self._place = state, place

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count one more revision of the windows in these rows, and return the new revisions."""
        visit = self._state.visited(emitted)
        return revise(visit, self._place, emitted.codes[rows], emitted.windows[rows], last)

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """The remembered values of some keys."""
        return recall(self._state.visited(emitted), self._place, emitted, codes)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember the last emitted values of some keys, in place of those remembered so far."""
        remember(self._state.visited(emitted), self._place, codes, covered, values)


class SharedTiles(Tiles):
    """The slices of all keys, for several aligned queries with the same keys."""

    def __init__(
        self,
        union: Plan,
        composite: Composite,
        sights: Mapping[str, Sight],
        store: Store,
        prefix: bytes = b"",
    ) -> None:
        """`union` is the plan of all aggregates, `composite` has the edges of all queries, and
        `sights` the view of each query."""
        self._edges = composite.edges
        self._joint = Joint(tuple(sight.reach for sight in sights.values()))
        form = Form(union, self._joint, self._edges, len(sights))
        super().__init__(union, form, store, prefix)
        self._sights = dict(sights)
        self.views = {name: TileView(self, place) for place, name in enumerate(sights)}
        self._readers: dict[str, tuple[Reader, list[Reader]]] = {}
        self._cutting: list[Scan] | None = None
        self._nothing: dict[str, dict[str, pa.Array]] = {}  # values without rows, by query

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows, in any order, into slices.  The state stays as it is."""
        if self._cutting is None:
            query, types = self._plan.query, self._plan.types
            self._cutting = [Scan(group, query.aligned, types) for group in self._plan.groups]
        return cut_rows(self._plan, self._cutting, table, times, self._edges)

    def step(self, slices: Slices | None, steps: Mapping[str, Step]) -> dict[str, Emitted]:
        """Insert slices, emit the windows of all queries, forget the slices that no open window
        holds.
        """
        if any(step.early for step in steps.values()):
            raise ValueError("windows that are not due cannot be emitted from a store")
        asks = self._asks_of(steps)
        try:
            visit = self._begun(slices, list(asks.values()))
        except StepFailed as failed:  # whose window is a joint window
            failed.window = self._plan.query.aligned.first(self._joint.end(failed.window) - 1)
            raise
        made = {name: self._emitted(visit, name, one) for name, one in asks.items()}
        self._stepped(visit)
        return made

    def _asks_of(self, steps: Mapping[str, Step]) -> dict[str, Ask]:
        """What each query asks."""
        return {
            name: Ask(
                sight.plan.query.aligned,
                sight.reach,
                tuple(size.window for size in sight.sizes),
                steps[name],
            )
            for name, sight in self._sights.items()
        }

    def joint_step(self, steps: Mapping[str, Step]) -> Step:
        """The steps of all queries as one, in numbers of joint windows."""
        step = joint_step(self._joint, list(self._asks_of(steps).values()))
        step.again = any(one.again for one in steps.values())
        return step

    def _emitted(self, visit: Visit, name: str, one: Ask) -> Emitted:
        """The windows of a query that a step emits."""
        step = one.step
        if name in self._nothing and step.fresh >= step.due and not step.again:
            # often only a few of many queries have due windows
            covered = _NONE if step.changes else None
            none = _NONE, _NONE, _NONE, self._nothing[name]
            return Emitted(visit.keys, *none, covered=covered)
        reader, sized = self._reader(name, changes=one.step.changes)
        try:
            emitted = emit(visit, one, reader, sized)
        except StepFailed as failed:
            failed.window = self._plan.query.aligned.first(one.window.start(failed.window))
            raise
        select = self._sights[name].plan.query.select
        emitted.values = {column: emitted.values[column] for column in select}
        if sized and one.step.changes:
            # a window with the same slices as the window before may differ from it in a longer size
            emitted.covered = emitted.windows
        if name not in self._nothing:
            self._nothing[name] = {c: v.slice(0, 0) for c, v in emitted.values.items()}
        return emitted

    def _reader(self, name: str, *, changes: bool) -> tuple[Reader, list[Reader]]:
        """The reader of a query's windows, and those of its other sizes."""
        if name not in self._readers:
            sight = self._sights[name]
            window = sight.plan.query.aligned
            own = _reader(sight.plan, sight.reads, window, changes and not sight.sizes)
            more = [_reader(size.plan, size.reads, window, False) for size in sight.sizes]
            self._readers[name] = own, more
        return self._readers[name]

    def ask(self, name: str, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one query and key over the times from `lo` up to but not including `hi`."""
        found = self._asked(self._plan, key, lo, hi)
        sight = self._sights[name]
        return {column: found[sight.columns[column]] for column in sight.plan.query.select}

    def next_end(self) -> int | None:
        """The first watermark that needs a step, even if no slices come."""
        visit = self.next_visit()
        return None if visit is None else int(self._joint.end(visit))


def _reader(plan: Plan, reads: Projection, window: Aligned, changes: bool) -> Reader:
    scans = [Scan(group, window, plan.types, changes=changes) for group in plan.groups]
    return Reader(scans, [group.names for group in plan.groups], reads)
