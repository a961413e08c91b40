"""A state in memory: a forest for each group of aggregates, over the same numbered keys.

Revisions and last values of emitted windows are kept by the numbers of keys too.  An `Emitted`
identifies keys by these numbers, so the caller can use it only until the next step.  The times in
the forests are readings of the window's clock (`windows.contract.Clock`).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..slicing.edges import cuts_of, edges_of
from ..tables.arrow import one_array
from ..tables.keys import by_group_and_number, key_codes
from ..tables.order import nanoseconds
from ..tables.texts import KnownTexts
from ..windows.contract import UTC
from .answers import joined_reasons
from .by_keys import ByKeys, in_key_order
from .contract import Emitted, Recalled, Slices, State, Step
from .emitted_before import EmittedBefore
from .grove import Grove
from .parted_forest import PartedForest, threads_for
from .slice_order import SliceOrder

__all__ = ["ForestState"]

_NONE = np.zeros(0, dtype=np.int64)


class ForestState(State):
    """The slices of all keys in memory.

    A step changes the forests at once.  So if a batch is abandoned after a step began, the state
    refuses all further batches.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._clock = plan.query.aligned.clock
        self._edges = edges_of(plan.query.aligned)
        self._cuts = cuts_of(plan.query.aligned)
        self._grove = Grove(plan, plan.query.aligned, PartedForest)
        # a calendar's clock computes its tables when they are first needed, which several threads
        # would do at once
        self._divisible = self._clock is UTC and all(f.divisible for f in self._grove.forests)
        self._texts = [KnownTexts() for _ in plan.keys]
        self._before = EmittedBefore(self._no_last())
        self._idle = _NONE  # keys without slices, whose last windows may be remembered
        self._keep: int | None = None  # windows before it are closed
        self._changed = False  # since the last commit
        self.broken = False

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows into slices.  The state stays as it is."""
        names = [field.name for field in self._plan.keys]
        threads = threads_for(times)
        columns = [one_array(table.column(name)) for name in names]
        codes, keys = key_codes(columns, len(times), threads, self._texts)
        finer = nanoseconds(one_array(table.column(self._plan.query.time)), times)
        groups, whole, quick = len(keys[0]) if keys else 1, not self._plan.ordered, None
        if whole:
            quick = SliceOrder.of(codes, self._clock.reading(times), self._cuts)
        if threads > 1 and self._divisible and groups > 1:
            cut = ByKeys(self._grove, self._order, lambda own: own, whole=whole, quick=quick)
            return cut(table, times, finer, codes, keys, threads)
        found = None if quick is None else quick.rows(0, groups, len(times))
        if found is not None:
            rows, shown, bounds = found
        else:
            rows, bounds = self._order(codes, groups, times, finer)
            shown = self._clock.reading(times[rows])
        cuts = [f.cut(table, rows, shown, bounds, whole=whole) for f in self._grove.forests]
        starts, _, ends = cuts[0]
        return Slices(keys, ends, self._clock.time(starts), [partials for _, partials, _ in cuts])

    def _order(
        self, codes: Array, groups: int, times: Array, finer: Array | None
    ) -> tuple[Array, Array]:
        """Put rows in order of key and time; see `by_group`.  If the order of events within a slice
        does not matter, put them in order of key and slice, because small numbers are quickly
        sorted; the events of a slice then stay as they came."""
        if self._plan.ordered:
            return in_key_order(codes, groups, times, finer)
        return by_group_and_number(codes, groups, self._edges.number(times))

    def step(self, slices: Slices | None, step: Step) -> Emitted:
        """Insert slices, emit windows, forget the slices that no open window holds.

        A row's `covered` may be a window that is not due yet: later steps do not emit the windows
        up to `covered`, unless a slice enters one of them.
        """
        self._check_sound()
        self._changed = True
        self._settle()
        visits, spans, starts = _NONE, (_NONE, _NONE), _NONE
        partials: list[Any] = [_NONE] * len(self._grove.forests)
        if slices is not None and len(slices.starts):
            spans, partials = slices.spans, slices.partials
            starts = self._clock.reading(slices.starts)
            visits = self._grove.keys.add(slices.keys, len(spans[0]))
        self._grove.make_room()
        if step.early or step.keep > step.opened or step.due > step.fresh:
            # any key may have windows to emit, or slices to forget
            spans = self._grove.spread_spans(visits, spans)
            visits = self._grove.keys.in_order()
        threads = threads_for(starts, self._grove.forests[0].answered)
        answered = []
        for forest, part in zip(self._grove.forests, partials, strict=True):
            with self._grove.naming(forest):
                answered.append(forest.step(step, visits, spans, starts, part, threads))
        self._keep = step.keep
        if self._plan.query.aligned.empty:
            self._idle = np.union1d(self._idle, answered[0].gone)
        else:
            self._grove.keys.remove(answered[0].gone)
        first = answered[0]
        return Emitted(
            keys=self._grove.keys.columns,
            codes=first.keys,
            windows=first.windows,
            reasons=first.reasons,
            values={name: v for a in answered for name, v in a.values.items()},
            failed=joined_reasons(*(a.failed for a in answered)),
            covered=first.covered if step.changes else None,
        )

    def _no_last(self) -> dict[str, pa.Array]:
        """The columns of remembered values, without rows: the last values of keys or, if the query
        wants empty windows, the numbers of the keys' last windows."""
        if self._plan.query.aligned.empty:
            return {"last": pa.array([], pa.int64())}
        return self._grove.no_values

    def _release(self) -> None:
        """Remove the keys that have neither slices nor a remembered last window."""
        if not len(self._idle) or self._keep is None:
            return
        waiting = self._idle[~self._grove.holds(self._idle)]
        gone = np.setdiff1d(waiting, self._before.remembered(self._keep))
        self._idle = np.setdiff1d(waiting, gone)
        self._grove.keys.remove(gone)

    def _settle(self) -> None:
        """Forget the revisions and last values of closed windows and of removed keys; renumber the
        other keys if many were removed."""
        self._release()
        if self._keep is not None:
            self._before.forget(self._keep, self._grove.keys.there)
        kept = self._grove.compact()
        if kept is not None:
            self._before.renumber(kept)
            self._idle = np.searchsorted(kept, self._idle)

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count one more revision of the windows in these rows, and return the new revisions."""
        return self._before.revise(emitted, rows, last)

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """The remembered values of some keys; `covered` is 0 for keys without any."""
        return self._before.recall(codes)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember the last emitted values of some keys, in place of those remembered so far."""
        self._before.remember(codes, covered, values)

    def _check_sound(self) -> None:
        if self.broken:
            raise RuntimeError(
                "an error stopped this stream in the middle of a batch, and its state is not sound "
                "any more: make a new stream, or restore one from its bytes"
            )

    def commit(self) -> None:
        """Make the changes since the last commit final."""
        self._release()
        self._changed = False

    def abandon(self) -> None:
        """Refuse further use, if anything changed since the last commit."""
        self.broken |= self._changed

    def ask(self, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one key over the times from `lo` up to but not including `hi`."""
        self._check_sound()
        number = self._grove.keys.number(key)
        made: dict[str, Any] = {}
        lo, hi = self._clock.reading(lo), self._clock.reading(hi)
        for forest in self._grove.forests:
            made |= forest.ask(number, lo, hi - 1)
        return {name: made[name] for name in self._plan.query.select}

    def no_values(self) -> dict[str, pa.Array]:
        """The columns of values of a result without rows."""
        return self._grove.no_values

    def size(self) -> dict[str, int]:
        """The number of keys and of slices, and the bytes that they take."""
        return self._grove.size()

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._check_sound()
        self.broken = True  # until the next line has succeeded
        self._settle()
        self.broken = False
        revisions, last = self._before.dump()
        head = {
            "forests": self._grove.describe(),
            "keep": self._keep,
            "revisions": revisions,
        }
        keys, *forests = self._grove.dump()
        return [json.dumps(head).encode(), keys, last, *forests]

    def load(self, blobs: list[bytes]) -> None:
        """Restore what `dump` returned into an empty state."""
        head, keys, last, *forests = blobs
        saved = json.loads(head)
        self._grove.check_same(saved["forests"])
        self._keep = saved["keep"]
        self._before.load(saved["revisions"], last)
        self._grove.load([keys, *forests])
        if self._plan.query.aligned.empty:
            there = self._grove.keys.in_order()
            self._idle = np.sort(there[~self._grove.holds(there)])

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        all_hold = self._plan.query.emit != "changes" and not self._plan.query.aligned.empty
        self._grove._check(all_hold=all_hold)
        self._before._check()
