"""A state in a store: the slices of many keys, as records.  A step reads and writes only a few.

    index      which parts exist, and when a step must visit each       part_index
    part       the slices of the keys whose hashes begin alike          part, tile
    batch      one step, or several over disjoint sets of keys          portions
    step       reads the parts that it needs, all at once as arrays     visit, entries
               emits windows                                            emission
               drops, divides and writes entries                        layout, saving

A step reads and writes the parts of its keys, and the parts that must be visited because a window
that may hold one of their slices is due, or because all of the part can be dropped.  It also reads
and writes the nodes of the index on the way to these parts.  All these records are small, and their
number does not depend on how many keys the state holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..slicing.edges import Edges
from ..stores.contract import Store
from ..stores.journal import Journal
from ..tables.arrow import flat, tie_numbers
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time
from .asking import ask
from .checking import check
from .contract import Emitted, Recalled, Slices, State, Step
from .emission import Reader, emit
from .entries import naming_failures
from .joint import Ask
from .part_index import NEVER, Index
from .portions import Among, Coming, by_slot, portions, slices_among, slots_of
from .records import Records
from .remembered import recall, remember
from .revisions import revise
from .saving import save
from .scan import Scan
from .tile import Form
from .visit import Visit

__all__ = ["ROWS", "TileState", "Tiles"]


#: Rows that are emitted in the memory that a slice takes on its way.
ROWS = 2


class Tiles:
    """The base of all states over tiles: slices in the records of a store whose keys begin with a
    prefix.

    A batch is a step, then calls about the windows that the step emitted, then `commit`; until then
    the store stays as it was.  Nothing is kept in memory between batches, so the store may be
    exchanged for another one.
    """

    broken = False

    def __init__(self, plan: Plan, form: Form, store: Store, prefix: bytes) -> None:
        self._plan = plan
        self._form = form
        self._records = Records(store, prefix)
        self._visit: Visit | None = None
        self._root: Array | None = None
        self._asks: Sequence[Ask] = ()  # of the last step, for `_check`
        self._divided: Journal | None = None  # the store, while a batch runs in portions

    @property
    def shapes(self) -> list[str]:
        """The types of a partial's words, for each group of aggregates."""
        return [folds.kinds or "objects" for folds in self._form.folds]

    def _begun(self, slices: Slices | None, asks: Sequence[Ask]) -> Visit:
        """Begin a step: read the records that it needs, and insert slices."""
        self._save()
        self._asks = asks
        return Visit(self._form, self._records, slices, asks)

    def _stepped(self, visit: Visit) -> None:
        """Keep the step's visit until the next step or `commit`."""
        self._visit, self._root = visit, None

    def _save(self) -> None:
        """Bring the records up to date with the last step."""
        if self._visit is not None:
            visit, self._visit = self._visit, None
            try:
                with naming_failures(visit.keys):
                    self._root = save(visit)
            except BaseException:
                self.abandon()
                raise

    def prepare(self) -> None:
        """Compute the records of the batch."""
        self._save()

    def commit(self) -> None:
        """Write the batch to the store."""
        self._save()
        self._records.flush()
        if self._divided is not None:
            self._divided.end()
            self._divided = None

    def abandon(self) -> None:
        """Discard the batch.  The state is again what the store holds; if the batch ran in
        portions, the journal first restores the records from before the batch."""
        self._visit = self._root = None
        self._records.discard()
        if self._divided is not None:
            self._divided.revert()
            self._divided = None

    def visited(self, emitted: Emitted) -> Visit:
        """The visit of the last step, which emitted these windows."""
        if self._visit is None or self._visit.keys is not emitted.keys:
            raise ValueError("these windows are not of the last step, or the batch was committed")
        return self._visit

    def _asked(self, plan: Plan, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one key over the times from `lo` up to but not including `hi`."""
        self._save()
        clock = plan.query.window.clock
        try:
            given = clock.reading(lo), clock.reading(hi)
            return ask(plan, self._form, self._records, key, *given)
        finally:
            if not self._records.changed:
                self._records.discard()

    def ranges(
        self, step: Step, weight: float, coming: Callable[[], Coming], windows: int = 0
    ) -> list[Among]:
        """The portions to do a step in, for slices that weigh so much; see `portions`.  A slice is
        in so many windows, whose rows take memory too; 0 if they need not be counted."""
        self._root = None  # the store may be that of another bucket since the last batch
        children = self._children()
        slices, keys = (children[name].astype(np.float64) for name in ("slices", "keys"))
        held = slices + keys
        if windows:
            emitted = np.minimum(keys * float(step.due - step.fresh), slices * windows)
            held += np.where(children["due"] < step.due, emitted / ROWS, 0)
        return portions(children, held, weight, coming, step.due, step.keep)

    def next_visit(self) -> int | None:
        """The number of the first window whose closing needs a step, even one without slices,
        because a window that may hold slices becomes due, or because slices can be dropped."""
        rows = self._children()
        first = min(rows["due"].min(initial=NEVER), rows["drop"].min(initial=NEVER))
        return None if first == NEVER else int(first)

    def size(self) -> dict[str, int]:
        """The approximate number of keys and of slices, and the bytes that they take.

        The root of the index has the sums.  The counts of a part in one record are exact; the
        slices of a part in tiles are an estimate.  If only a count has changed, the index is
        written only if the count has changed by more than a quarter.
        """
        rows = self._children()
        return {name: round(float(rows[name].sum())) for name in ("keys", "slices", "bytes")}

    def _children(self) -> Array:
        self._save()
        if self._root is None:
            self._root = Index(self._records).children()
        return self._root

    def _check(self) -> None:
        self._save()
        assert not self._records.changed, "a batch is not committed"
        check(self._form, self._records, self._asks)
        self._records.discard()


class TileState(Tiles, State):
    """The slices of all keys of one query."""

    def __init__(self, plan: Plan, store: Store, prefix: bytes = b"") -> None:
        super().__init__(plan, Form(plan), store, prefix)
        self._scans: dict[bool, list[Scan]] = {}

    def _scans_for(self, changes: bool) -> list[Scan]:
        if changes not in self._scans:
            query, types = self._plan.query, self._plan.types
            self._scans[changes] = [
                Scan(group, query.aligned, types, changes=changes) for group in self._plan.groups
            ]
        return self._scans[changes]

    def cut(self, table: pa.Table, times: Array) -> Slices:
        return cut_rows(self._plan, self._scans_for(False), table, times, None)

    def portions(self, slices: Slices | None, step: Step) -> Iterator[tuple[Slices | None, Step]]:
        journal = self._records.store
        if not isinstance(journal, Journal):
            yield slices, step
            return
        counts = np.zeros(0, np.int64) if slices is None else np.diff(slices.bounds)
        slots = np.empty(0, np.int64)

        def coming() -> Coming:
            nonlocal slots
            slots = slots_of(slices)
            return by_slot(slots, counts)

        ranges = self.ranges(step, int(counts.sum()), coming)
        if len(ranges) == 1:
            yield slices, step
            return
        self._records.discard()
        journal.begin()
        self._divided = journal
        for among in ranges:
            yield slices_among(slices, slots, among), replace(step, among=among)
            self._save()
            self._records.flush()
            journal.spill()

    def step(self, slices: Slices | None, step: Step) -> Emitted:
        if step.early:
            raise ValueError("windows that are not due cannot be emitted from a store")
        one = Ask.of(self._plan.query.aligned, step)
        visit = self._begun(slices, [one])
        emitted = emit(visit, one, Reader(self._scans_for(step.changes), self._form.names))
        self._stepped(visit)
        return emitted

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        visit = self.visited(emitted)
        return revise(visit, 0, emitted.codes[rows], emitted.windows[rows], last)

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        return recall(self.visited(emitted), 0, emitted, codes)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        remember(self.visited(emitted), 0, codes, covered, values)

    def ask(self, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one key over the times from `lo` up to but not including `hi`."""
        return self._asked(self._plan, key, lo, hi)


def cut_rows(
    plan: Plan, scans: Sequence[Scan], table: pa.Table, times: Array, edges: Edges | None
) -> Slices:
    """Cut rows, in any order, into the slices of a plan's window, or at other edges."""
    query, ordered = plan.query, plan.ordered
    codes, keys = key_codes([flat(table.column(c)) for c in query.by], table.num_rows)
    ties = tie_numbers(flat(table.column(query.tie))) if query.tie else None
    count = len(keys[0]) if keys else 1
    rows, bounds = by_group(codes, count, in_time(times, ties))
    at, whole = times[rows], not ordered
    if ordered and ties is not None:
        # each distinct (time, tie) of a key gets a time of its own
        stamps, marks = at, ties[rows]
        change = np.ones(len(rows), dtype=np.int64)
        change[1:] = (at[1:] != at[:-1]) | (marks[1:] != marks[:-1])
        change[bounds[:-1]] = 1
        at = np.cumsum(change)
    elif edges is not None and not ordered:
        at, whole = edges.start(at), False
    partials = []
    for scan in scans:
        starts, made, ends = scan.cut(table, rows, at, bounds, whole)
        partials.append(made)
    if not ordered or ties is None:
        return Slices(keys, ends, starts, partials)
    heads = np.searchsorted(at, starts)
    return Slices(keys, ends, stamps[heads], partials, marks[heads])
