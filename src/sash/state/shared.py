"""A state in memory that several queries share: one copy of the slices of all keys.

Slices are cut at the edges of all queries (`slicing.composite`), and inserted once.  The windows of
each query are ranges of these slices.  Each query has its own revisions and last values of emitted
windows: a `View` is the state as one of the queries sees it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..slicing.composite import Composite
from ..tables.arrow import one_array
from ..tables.keys import key_codes
from ..tables.order import nanoseconds
from ..windows import Aligned
from ..windows.contract import EVER, UTC
from .by_keys import ByKeys, in_key_order
from .contract import NEW, Emitted, Recalled, Slices, Step, StepFailed
from .emitted_before import EmittedBefore
from .grove import Grove
from .parted_forest import threads_for
from .pyramid import PyramidFailed
from .shared_answers import AnsweredAll
from .shared_fields import ACTIVE, MORE_FIRST
from .shared_forest import Asks, Queries, SharedForest
from .shared_pyramids import pays, windows_due
from .shared_rows import SharedRows

__all__ = ["SharedState", "View", "reaches_back"]

_NONE = np.zeros(0, dtype=np.int64)

#: The numbers of the keys to visit, in order; the bounds of each key's new slices; the slices'
#: starts, and their partials for each group of aggregates.
_Changed: TypeAlias = tuple[Array, Array, Array, list[Any]]


@dataclass
class View:
    """The parts of a shared state that belong to one query: its plan; for each column of its result
    the aggregate of the state; the other sizes of its aggregates, with the columns of each; and the
    revisions and last values of its emitted windows."""

    plan: Plan
    columns: Mapping[str, str]
    sizes: Sequence[tuple[int, tuple[str, ...]]]
    before: EmittedBefore
    keep: int | None = None  # windows before it are closed

    @cached_property
    def by(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return tuple(self.plan.query.by)

    @cached_property
    def selected(self) -> dict[str, str]:
        """The columns of the result, and the aggregate of each."""
        return {name: self.columns[name] for name in self.plan.query.select}

    @cached_property
    def remembers(self) -> bool:
        """True if a window is compared with the window before, so that the state must keep the key
        until then."""
        return bool(self.plan.query.aligned.empty) or self.plan.query.emit == "changes"

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count one more revision of the windows in these rows, and return the new revisions."""
        return self.before.revise(emitted, rows, last)

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """The remembered values of some keys."""
        return self.before.recall(codes)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember the last emitted values of some keys, in place of those remembered so far."""
        self.before.remember(codes, covered, values)


class SharedState:
    """The slices of all keys in memory, for several aligned queries with the same keys.

    A step changes the forests at once.  So if a batch is abandoned after a step began, the state
    refuses all further batches.
    """

    def __init__(
        self,
        union: Plan,
        composite: Composite,
        plans: Mapping[str, Plan],
        columns: Mapping[str, Mapping[str, str]],
        sizes: Mapping[str, Sequence[tuple[int, tuple[str, ...]]]],
    ) -> None:
        """`union` is the plan of all aggregates, `composite` has the edges of all queries.  For
        each query: its plan, the aggregate of each column of its result, and the other sizes of its
        aggregates, with the columns of each."""
        self._union = union
        self._composite = composite
        self._clock = composite.clock
        self._grove: Grove[SharedForest] = Grove(union, union.query.aligned, SharedForest)
        self.views = {
            name: self._view(plan, columns[name], sizes[name]) for name, plan in plans.items()
        }
        self._asked: Queries | None = None
        self._merges = any(map(_lifetime, sizes.values()))  # also if that query has left since
        self._idle = _NONE  # keys without slices, whose last windows may be remembered
        self._changed = False  # since the last commit
        self.broken = False

    def _view(
        self,
        plan: Plan,
        columns: Mapping[str, str],
        sizes: Sequence[tuple[int, tuple[str, ...]]],
    ) -> View:
        none = self._grove.no_values
        last = {column: none[name] for column, name in columns.items()}
        if plan.query.aligned.empty:
            last = {"last": pa.array([], pa.int64())}
        return View(plan, columns, sizes, EmittedBefore(last))

    def add(
        self,
        name: str,
        plan: Plan,
        columns: Mapping[str, str],
        sizes: Sequence[tuple[int, tuple[str, ...]]],
    ) -> None:
        """Add a query to the state, which must have all its aggregates and edges already."""
        self.views[name] = self._view(plan, columns, sizes)
        self._merges |= _lifetime(sizes)
        self._asked = None
        # keys were noted for a step at which a window of the other queries is due
        keys = self._grove.keys.numbers()
        for forest in self._grove.forests:
            forest.visit_again(keys)

    def merged_before(self) -> int | None:
        """The reading before which the slices of a key may be one entry, because some window held
        all since the beginning; None if there is no such entry."""
        edges = [
            reaches_back(view.plan.query.aligned, view.keep, [size for size, _ in view.sizes])
            for view in self.views.values()
            if view.keep is not None
        ]
        return min(edges) if self._merges and edges else None

    def remove(self, name: str) -> None:
        """Remove a query.  The partials that only this query read stay."""
        del self.views[name]
        self._asked = None

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows, in any order, into slices.  The state stays as it is."""
        names, threads = [field.name for field in self._union.keys], threads_for(times)
        columns = [one_array(table.column(name)) for name in names]
        codes, keys = key_codes(columns, len(times), threads)
        finer = nanoseconds(one_array(table.column(self._union.query.time)), times)
        divisible = self._clock is UTC and self._grove.divisible
        if threads > 1 and divisible and keys and len(keys[0]) > 1:
            cut = ByKeys(self._grove, in_key_order, self._marks(times), whole=False, spread=False)
            return cut(table, times, finer, codes, keys, threads)
        rows, bounds = in_key_order(codes, len(keys[0]) if keys else 1, times, finer)
        shown = self._clock.reading(times[rows])
        shown = self._marks(shown)(shown)
        cuts = [f.cut(table, rows, shown, bounds, whole=False) for f in self._grove.forests]
        starts, _, ends = cuts[0]
        return Slices(keys, ends, starts, [partials for _, partials, _ in cuts])

    def _marks(self, shown: Array) -> Callable[[Array], Array]:
        """By what some of the times of a batch are cut into slices: the starts of their slices, or
        themselves."""
        if self._union.ordered or not len(shown):
            return lambda some: some
        found: Callable[[Array], Array]
        found = self._composite.starter(int(shown.min()), int(shown.max()), len(shown))
        return found

    def step(self, slices: Slices | None, steps: Mapping[str, Step]) -> dict[str, Emitted]:
        """Insert slices, emit the windows of all queries, forget the slices that no open window
        holds.
        """
        self._check_sound()
        self._changed = True
        self._settle()
        visits, bounds, starts = _NONE, np.zeros(1, dtype=np.int64), _NONE
        partials: list[Any] = [_NONE] * len(self._grove.forests)
        if slices is not None and len(slices.starts):
            bounds, partials, starts = slices.bounds, slices.partials, slices.starts
            visits = self._grove.keys.add(slices.keys, len(bounds) - 1)
        self._grove.make_room()
        asks = Asks.of(self._queries(), [steps[name] for name in self.views])
        moves = any(step.keep > step.opened for step in steps.values())
        if moves or asks.visits_all():
            # any key may have windows to emit, or slices to forget
            bounds = self._grove.spread(visits, np.diff(bounds))
            visits = self._grove.keys.in_order()
        changed = visits, bounds, starts, partials
        rows, gone = None, _NONE
        if pays(asks, self._grove.forests[0], visits, starts):
            rows, gone = self._by_pyramids(asks, changed)
            changed = visits, np.zeros(len(visits) + 1, np.int64), _NONE, [_NONE] * len(partials)
        if rows is None:
            answered = self._step_all(asks, changed, self._grove.forests[0].answered)
            rows, gone = self._by_trees(asks, answered), answered[0].gone
        for name, view in self.views.items():
            view.keep = steps[name].keep
        if any(view.remembers for view in self.views.values()):
            self._idle = np.union1d(self._idle, gone)
        else:
            self._grove.keys.remove(gone)
        return self._emitted(asks, rows, steps)

    def _step_all(self, asks: Asks, changed: _Changed, answered: int) -> list[AnsweredAll]:
        """Insert slices into each forest, answer, and forget.  The last step answered so many
        windows."""
        visits, bounds, starts, partials = changed
        made, threads = [], threads_for(starts, answered)
        for forest, part in zip(self._grove.forests, partials, strict=True):
            try:
                with self._grove.naming(forest):
                    made.append(forest.step_all(asks, visits, bounds, starts, part, threads))
            except StepFailed as failed:  # which names what the clock shows
                failed.window = self._union.query.aligned.cycle.first(failed.window)
                raise
        return made

    def _queries(self) -> Queries:
        """What the queries ask in every step."""
        if self._asked is None:
            windows = [view.plan.query.aligned for view in self.views.values()]
            sizes = [[size for size, _ in view.sizes] for view in self.views.values()]
            self._asked = Queries(windows, sizes)
        return self._asked

    def _by_pyramids(self, asks: Asks, changed: _Changed) -> tuple[SharedRows | None, Array]:
        """Insert slices, answer windows from pyramids of all slices, and evict.  Return the rows,
        and the keys that hold no slices any more.  If `combine` raises an error, the slices are
        inserted and there are no rows: the caller answers by trees, which name the window of the
        error."""
        answered = self._grove.forests[0].answered
        self._step_all(asks.only_inserting(), changed, answered)
        visits, forests = changed[0], self._grove.forests
        cycles, due = self._queries().cycles.some(asks.queries), asks.call[ACTIVE]
        try:
            found = windows_due(forests, visits, asks, cycles.some(slice(due)))
        except PyramidFailed:
            for forest in forests:
                forest.visit_again(visits)
            return None, _NONE
        none = visits, np.zeros(len(visits) + 1, np.int64), _NONE, [_NONE] * len(forests)
        gone = self._step_all(asks.only_forgetting(), none, answered)[0].gone
        each = np.diff(found.ends.reshape(-1), prepend=0)
        codes = np.repeat(np.tile(visits, due), each)
        for forest in forests:
            forest.answered = len(codes)
        rows = SharedRows(
            self._grove.keys.columns,
            codes,
            found.numbers,
            np.full(len(codes), NEW, dtype=np.int64),
            found.covered,
            found.values,
            found.failed,
            # queries without due windows come last
            found.bounds.tolist() + [len(codes)] * (len(cycles) - due),
            self._clock,
            cycles,
        )
        return rows, gone

    def _by_trees(self, asks: Asks, answered: list[AnsweredAll]) -> SharedRows:
        """The rows that a step answered by trees, in order of the queries."""
        first, names = answered[0], list(self.views)
        values = {name: column for a in answered for name, column in a.values.items()}
        failed: dict[int, dict[str, str]] = {}
        for row, reasons in (item for a in answered for item in a.failed.items()):
            failed.setdefault(row, {}).update(reasons)
        owners = np.arange(len(names) + len(asks.sizes) + 1)
        # numpy sorts small numbers by radix, in a tenth of the time
        small = first.owners.astype(np.int16 if len(owners) < 2**15 else np.int64)
        order = np.argsort(small, kind="stable")
        ends = np.searchsorted(first.owners[order], owners)
        own = order[ends[0] : ends[len(names)]]  # without the rows of other sizes, or of no query
        at = pa.array(own)
        rows = SharedRows(
            self._grove.keys.columns,
            first.keys[own],
            first.windows[own],
            first.reasons[own],
            first.covered[own] if len(first.covered) else first.covered,
            {name: column.take(at) for name, column in values.items()},
            _moved(failed, own),
            (ends[: len(names) + 1] - ends[0]).tolist(),
            self._clock,
            self._queries().cycles.some(asks.queries),
        )
        for q, name in enumerate(names[i] for i in asks.queries.tolist()):
            view, more = self.views[name], len(names) + int(asks.fields[q, MORE_FIRST])
            for owner, (_, columns) in enumerate(view.sizes, more):
                others = order[ends[owner] : ends[owner + 1]]
                # `windows` has the row of each one's own window
                others = others[np.argsort(first.windows[others])]
                at, of = pa.array(others), {view.columns[c] for c in columns}
                taken = {name: values[name].take(at) for name in of}
                rows.sized.setdefault(q, []).append((columns, taken, _moved(failed, others)))
        return rows

    def _emitted(
        self, asks: Asks, rows: SharedRows, steps: Mapping[str, Step]
    ) -> dict[str, Emitted]:
        """The windows that each query emits, from the rows of all queries."""
        made: dict[str, Emitted] = {}
        places, time = np.argsort(asks.queries).tolist(), self._union.time_type
        for q, (name, view) in zip(places, self.views.items(), strict=True):
            own = rows.own(q)
            covered = rows.windows if view.sizes else rows.covered
            made[name] = Emitted(
                keys=rows.keys,
                codes=rows.codes[own],
                windows=rows.windows[own],
                reasons=rows.reasons[own],
                values=rows.values_of(q, view.columns),
                failed=rows.failed_of(q, view.columns),
                covered=covered[own] if steps[name].changes else None,
                table=None if view.sizes else partial(rows.table, q, view.by, view.selected, time),
            )
        return made

    def _release(self) -> None:
        """Remove the keys that have neither slices nor a remembered last window."""
        if not len(self._idle):
            return
        waiting = self._idle[~self._grove.holds(self._idle)]
        gone = waiting
        for view in self.views.values():
            if view.keep is not None:
                gone = np.setdiff1d(gone, view.before.remembered(view.keep))
        self._idle = np.setdiff1d(waiting, gone)
        self._grove.keys.remove(gone)

    def _settle(self) -> None:
        """Forget the revisions and last values of closed windows and of removed keys; renumber the
        other keys if many were removed."""
        self._release()
        for view in self.views.values():
            if view.keep is not None:
                view.before.forget(view.keep, self._grove.keys.there)
        kept = self._grove.compact()
        if kept is not None:
            self._idle = np.searchsorted(kept, self._idle)
            for view in self.views.values():
                view.before.renumber(kept)

    def _check_sound(self) -> None:
        if self.broken:
            raise RuntimeError(
                "an error stopped this stream in the middle of a batch, and its state is not sound "
                "any more: make a new stream, or restore one from its bytes"
            )

    def prepare(self) -> None:
        """Do nothing: `commit` cannot fail."""

    def commit(self) -> None:
        """Make the changes since the last commit final."""
        self._release()
        self._changed = False

    def abandon(self) -> None:
        """Refuse further use, if anything changed since the last commit."""
        self.broken |= self._changed

    def ask(self, name: str, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one query and key over the times from `lo` up to but not including `hi`."""
        self._check_sound()
        number = self._grove.keys.number(key)
        found: dict[str, Any] = {}
        lo, hi = self._clock.reading(lo), self._clock.reading(hi)
        for forest in self._grove.forests:
            found |= forest.ask(number, lo, hi - 1)
        columns = self.views[name].columns
        return {column: found[columns[column]] for column in columns}

    def size(self) -> dict[str, int]:
        """The number of keys and of slices, and the bytes that they take."""
        return self._grove.size()

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._check_sound()
        self.broken = True  # until the next line has succeeded
        self._settle()
        self.broken = False
        saved = {name: view.before.dump() for name, view in self.views.items()}
        head = {
            "forests": self._grove.describe(),
            "keep": {name: view.keep for name, view in self.views.items()},
            "revisions": {name: revisions for name, (revisions, _) in saved.items()},
        }
        lasts = [last for _, last in saved.values()]
        return [json.dumps(head).encode(), *lasts, *self._grove.dump()]

    def load(self, blobs: list[bytes]) -> None:
        """Restore what `dump` returned into an empty state."""
        head = json.loads(blobs[0])
        self._grove.check_same(head["forests"])
        names = list(head["keep"])
        for name, last in zip(names, blobs[1 : 1 + len(names)], strict=True):
            self.views[name].keep = head["keep"][name]
            self.views[name].before.load(head["revisions"][name], last)
        self._grove.load(blobs[1 + len(names) :])
        there = self._grove.keys.in_order()
        self._idle = np.sort(there[~self._grove.holds(there)])

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        self._grove._check(all_hold=not any(view.remembers for view in self.views.values()))
        for view in self.views.values():
            view.before._check()


def reaches_back(window: Aligned, keep: int, sizes: Sequence[int]) -> int:
    """The first reading that windows hold if all windows before `keep` are closed.  Of the other
    sizes of aggregates, a lifetime does not count."""
    end = int(window.cycle.end(keep))
    return min([int(window.cycle.start(keep)), *(end - size for size in sizes if size < EVER)])


def _lifetime(sizes: Sequence[tuple[int, tuple[str, ...]]]) -> bool:
    """True if one of these other sizes of a query's aggregates is a lifetime."""
    return any(size >= EVER for size, _ in sizes)


def _moved(failed: dict[int, dict[str, str]], rows: Array) -> dict[int, dict[str, str]]:
    """The reasons of these rows, by the rows' places in `rows`."""
    if not failed:
        return {}
    return {i: failed[row] for i, row in enumerate(rows.tolist()) if row in failed}
