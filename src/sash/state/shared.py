"""A state in memory that several queries share: one copy of the slices of all keys.

Slices are cut at the edges of all queries (`slicing.composite`), and inserted once.  The windows of
each query are ranges of them.  What is remembered of emitted windows is each query's own: a `View`
is the state as one of the queries sees it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..slicing.composite import Composite
from ..tables.arrow import one_array
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time, nanoseconds
from .answers import joined_reasons, told
from .contract import Emitted, Recalled, Slices, Step, StepFailed
from .emitted_before import EmittedBefore
from .grove import Grove
from .shared_fields import MORE_FIRST
from .shared_forest import AnsweredAll, Asks, SharedForest

__all__ = ["SharedState", "View"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class View:
    """What one query has of its own in a shared state: its plan, for each column of its result the
    aggregate of the state, its further sizes with the columns of each, and what is remembered of
    its emitted windows."""

    plan: Plan
    columns: Mapping[str, str]
    sizes: Sequence[tuple[int, tuple[str, ...]]]
    before: EmittedBefore
    keep: int | None = None  # windows before it are closed

    @property
    def remembers(self) -> bool:
        """True if a window is compared with the one before, so that a key must be known for as
        long."""
        return bool(self.plan.query.aligned.empty) or self.plan.query.emit == "changes"

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count a revision of the windows in some rows, and return its number."""
        return self.before.revise(emitted, rows, last)

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """What is remembered of some keys."""
        return self.before.recall(codes)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember the last emitted values of some keys, instead of what was remembered."""
        self.before.remember(codes, covered, values)


class SharedState:
    """The slices of all keys in memory, for several aligned queries with the same keys.

    A step changes it at once.  So if a batch that was begun is abandoned, further ones are refused.
    """

    def __init__(
        self,
        union: Plan,
        composite: Composite,
        plans: Mapping[str, Plan],
        columns: Mapping[str, Mapping[str, str]],
        sizes: Mapping[str, Sequence[tuple[int, tuple[str, ...]]]],
    ) -> None:
        """The plan of all aggregates, the edges of all queries, and for each query its plan, the
        aggregate of each column of its result, and its further sizes with the columns of each."""
        self._union = union
        self._composite = composite
        self._clock = composite.clock
        self._grove: Grove[SharedForest] = Grove(union, union.query.aligned, SharedForest)
        self.views = {
            name: self._view(plan, columns[name], sizes[name]) for name, plan in plans.items()
        }
        self._idle = _NONE  # keys that hold nothing, and may be remembered
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
        """Let another query share what is here, whose aggregates and edges are those of others."""
        self.views[name] = self._view(plan, columns, sizes)

    def remove(self, name: str) -> None:
        """Take a query away; the partials that only it read stay."""
        del self.views[name]

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows into slices; changes nothing.  The rows can be in any order."""
        names = [field.name for field in self._union.keys]
        codes, keys = key_codes([one_array(table.column(name)) for name in names], len(times))
        finer = nanoseconds(one_array(table.column(self._union.query.time)), times)
        rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times, finer))
        shown = self._clock.reading(times[rows])
        if not self._union.ordered:
            shown = self._composite.starts(shown) if len(shown) else shown
        cuts = [f.cut(table, rows, shown, bounds, whole=False) for f in self._grove.forests]
        starts, _, ends = cuts[0]
        return Slices(keys, ends, starts, [partials for _, partials, _ in cuts])

    def step(self, slices: Slices | None, steps: Mapping[str, Step]) -> dict[str, Emitted]:
        """Insert slices, emit the windows of all queries, forget what no open window holds."""
        self._check_sound()
        self._changed = True
        self._settle()
        visits, bounds, starts = _NONE, np.zeros(1, dtype=np.int64), _NONE
        partials: list[Any] = [_NONE] * len(self._grove.forests)
        if slices is not None and len(slices.starts):
            bounds, partials, starts = slices.bounds, slices.partials, slices.starts
            visits = self._grove.keys.add(slices.keys, len(bounds) - 1)
        self._grove.make_room()
        windows = [view.plan.query.aligned for view in self.views.values()]
        sizes = [[size for size, _ in view.sizes] for view in self.views.values()]
        asks = Asks.of(windows, [steps[name] for name in self.views], sizes)
        moves = any(step.keep > step.opened for step in steps.values())
        if moves or asks.visits_all():
            # any key may have something to emit or to forget
            bounds = self._grove.spread(visits, np.diff(bounds))
            visits = self._grove.keys.in_order()
        answered = []
        for forest, part in zip(self._grove.forests, partials, strict=True):
            try:
                with self._grove.naming(forest):
                    answered.append(forest.step_all(asks, visits, bounds, starts, part))
            except StepFailed as failed:  # which names what the clock shows
                failed.window = self._union.query.aligned.cycle.first(failed.window)
                raise
        for name, view in self.views.items():
            view.keep = steps[name].keep
        gone = answered[0].gone
        if any(view.remembers for view in self.views.values()):
            self._idle = np.union1d(self._idle, gone)
        else:
            self._grove.keys.remove(gone)
        return self._emitted(asks, answered, steps)

    def _emitted(
        self, asks: Asks, answered: list[AnsweredAll], steps: Mapping[str, Step]
    ) -> dict[str, Emitted]:
        """What a step answered, by query."""
        first = answered[0]
        values = {name: column for a in answered for name, column in a.values.items()}
        owners = np.arange(len(self.views) + len(asks.sizes) + 1)
        # numpy sorts small numbers by radix, in a tenth of the time
        small = first.owners.astype(np.int16 if len(owners) < 2**15 else np.int64)
        order = np.argsort(small, kind="stable")
        ends = np.searchsorted(first.owners[order], owners).tolist()
        places = np.argsort(asks.queries)
        keys = self._grove.keys.columns
        # all are put into order at once, and what is each query's own is a stretch of that
        codes, windows, reasons = (a[order] for a in (first.keys, first.windows, first.reasons))
        at = pa.array(order)
        ordered = {name: column.take(at) for name, column in values.items()}
        made: dict[str, Emitted] = {}
        for i, (name, view) in enumerate(self.views.items()):
            row = int(places[i])
            own = slice(ends[row], ends[row + 1])
            rows = order[own]
            given = {c: ordered[of][own] for c, of in view.columns.items()}
            at_columns = dict.fromkeys(view.columns, rows)
            more = len(self.views) + int(asks.fields[row, MORE_FIRST])
            for owner, (_, columns) in enumerate(view.sizes, more):
                others = order[ends[owner] : ends[owner + 1]]
                # each has the row of its window
                at_columns |= dict.fromkeys(columns, others[np.argsort(first.windows[others])])
                taken = pa.array(at_columns[columns[0]])
                given |= {c: values[view.columns[c]].take(taken) for c in columns}
            failed = [_failed_of(a.failed, at_columns, view.columns) for a in answered]
            covered = first.windows if view.sizes else first.covered
            made[name] = Emitted(
                keys=keys,
                codes=codes[own],
                windows=windows[own],
                reasons=reasons[own],
                values=given,
                failed=joined_reasons(*failed),
                covered=covered[rows] if steps[name].changes else None,
            )
        return made

    def _release(self) -> None:
        """Let keys leave that hold nothing and are not remembered."""
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
        """Forget what is remembered of closed windows and of keys that left, and number the others
        anew if many left."""
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
        """Nothing can fail in `commit`."""

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
        """How many keys and slices there are, and how many bytes they take."""
        return self._grove.size()

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._check_sound()
        self.broken = True  # unless it ends
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
        """Take back what `dump` gave, into a state that is empty."""
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


def _failed_of(
    failed: dict[int, dict[str, str]], rows: Mapping[str, Array], columns: Mapping[str, str]
) -> dict[int, str]:
    """The rows that lack answers of some columns, and why; `rows` says where the answers of each
    column are."""
    made: dict[int, dict[str, str]] = {}
    if failed:
        for column, of in columns.items():
            for place, row in enumerate(rows[column].tolist()):
                if of in failed.get(row, {}):
                    made.setdefault(place, {})[column] = failed[row][of]
    return {place: told(reasons) for place, reasons in made.items()}
