"""The lifecycle of queries that share one copy of the slices.

    batch ─→ judge, for each query ─→ cut ─→ state.step ─→ each query: changes, revisions, outcome

The state inserts a row once, if any query has an open window that holds it.  Each query's own
lifecycle decides what is late, due, emitted again or unchanged for that query (`lifecycle`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.signatures import Mode
from ..slicing.cycles import Cycles
from ..state.contract import Slices, Step, StepFailed, some_slices
from ..state.portions import Among
from ..state.shared import SharedState
from ..state.shared_tiles import SharedTiles
from ..windows import Aligned
from .bundle_plans import BundlePlan
from .failures import name_step_failure
from .late import Late, late_rows
from .lifecycle import UNBOUNDED, Lifecycle, Outcome, Progress, Sliced, taken_slices
from .sizes import reach_of
from .taken import Judge, Taken, take_in

__all__ = ["BundleLifecycle"]

Outcomes = dict[str, Outcome]


class BundleLifecycle:
    """The lifecycle of the queries of a bundle.  A `Progress` for each query, and the state, hold
    all that lasts between batches."""

    def __init__(
        self,
        plan: BundlePlan,
        *,
        mode: Mode,
        lateness: int | None = None,
        early: bool = False,
        behind: int | None = None,
    ) -> None:
        """See `Lifecycle`."""
        self._plan = plan
        self._each = {
            name: Lifecycle(one, mode=mode, lateness=lateness, early=early, behind=behind)
            for name, one in plan.plans.items()
        }
        self._live, self._lateness = mode == "live", lateness
        self._early = early
        windows = [one.query.aligned for one in plan.plans.values()]
        self._clock, self._cycles = windows[0].clock, Cycles([w.cycle for w in windows])
        self._changes = [one.query.emit == "changes" for one in plan.plans.values()]
        self._stood: tuple[Any, Array, Array] | None = None
        self.abandoned = False  # True if the last batch failed, and none of it is in the state

    def process(
        self,
        progress: dict[str, Progress],
        state: SharedState | SharedTiles,
        batch: pa.Table | Sliced | None = None,
        refused: dict[int, str] | None = None,
        *,
        watermark: int | None = None,
        stream_time: int | None = None,
        came: Array | None = None,
        among: Among = None,
    ) -> Outcomes:
        """Insert the usable rows of a batch, move stream time and watermark, and emit due windows;
        see `Lifecycle.process`."""
        self.abandoned = commits = False
        try:
            outcomes, moved = self._process(
                progress, state, batch, dict(refused or {}), watermark, stream_time, came, among
            )
            state.prepare()
            commits = True
            state.commit()
        except BaseException as error:
            state.abandon()
            self.abandoned = not commits
            if isinstance(error, StepFailed):
                raise name_step_failure(self._plan.union, error, broken=state.broken) from error
            raise
        for name, at in progress.items():
            vars(at).update(vars(moved[name]))
        return outcomes

    def _process(
        self,
        progress: dict[str, Progress],
        state: SharedState | SharedTiles,
        batch: pa.Table | Sliced | None,
        refused: dict[int, str],
        watermark: int | None,
        stream_time: int | None,
        came: Array | None,
        among: Among,
    ) -> tuple[Outcomes, dict[str, Progress]]:
        """Process a batch without committing it: the outcome of each query, and its progress after
        the batch."""
        taken = dict.fromkeys(self._each, Taken(None, Late.none()))
        # all queries get the same rows, so they have the same stream time and watermark
        first, life = next(iter(progress.values())), next(iter(self._each.values()))
        at = came if came is not None else life.came(first, watermark)
        slices, newest = None, None
        if isinstance(batch, Sliced):
            slices, newest, taken = self._take_in_slices(first.watermark, batch, at)
        elif batch is not None and batch.num_rows:
            made = take_in(self._plan.union, state, batch, refused, self._by(first.watermark), at)
            slices, late, newest, delays = made
            counted = {id(one): one for one in late.values()}
            each = {
                known: Taken.of(None, one, newest, batch.num_rows, delays)
                for known, one in counted.items()
            }
            taken = {name: each[id(one)] for name, one in late.items()}
        ahead = life.moved(first, newest, watermark, stream_time)
        moved = {name: at.at(ahead) for name, at in progress.items()}
        emitted = state.step(slices, self._steps(first, ahead, among))
        outcomes = {}
        for name, one in self._each.items():
            outcomes[name] = one.finish(state.views[name], emitted[name], taken[name], moved[name])
        return outcomes, moved

    def newest(
        self, progress: dict[str, Progress], state: SharedTiles, batch: pa.Table | Sliced
    ) -> int | None:
        """The newest time of the rows of a batch that count; changes nothing."""
        watermark = next(iter(progress.values())).watermark
        if isinstance(batch, Sliced):
            return self._take_in_slices(watermark, batch, None)[1]
        return take_in(self._plan.union, state, batch, {}, self._by(watermark), None)[2]

    def ahead(
        self, progress: dict[str, Progress], newest: int | None, watermark: int | None
    ) -> dict[str, Step]:
        """What a batch with this newest time will ask of the state for each query."""
        first, life = next(iter(progress.values())), next(iter(self._each.values()))
        return self._steps(first, life.moved(first, newest, watermark, None))

    def _steps(self, before: Progress, after: Progress, among: Among = None) -> dict[str, Step]:
        """The step of each query; see `Lifecycle.step`."""
        opened, fresh = (numbers.tolist() for numbers in self._stands(before))
        keep, due = (numbers.tolist() for numbers in self._stands(after))
        early = self._early and (after.stream_time or 0) < UNBOUNDED
        each = zip(self._each, opened, fresh, due, keep, self._changes, strict=True)
        return {
            name: Step(a, b, c, d, self._live, early, changes, among)
            for name, a, b, c, d, changes in each
        }

    def _stands(self, at: Progress) -> tuple[Array, Array]:
        """The number of each query's first open window, and of its first window that is not due."""
        times = at.stream_time, at.watermark
        if self._stood is None or self._stood[0] != times:
            watermark = -UNBOUNDED if at.watermark is None else at.watermark
            opened = undue = self._cycles.first(self._clock.reading(watermark))
            if self._live and at.stream_time is not None:
                seen = self._cycles.first(self._clock.reading(at.stream_time))
                undue = np.maximum(opened, seen)
            self._stood = times, opened, undue
        return self._stood[1:]

    def _by(self, watermark: int | None) -> Judge[dict[str, Late]]:
        """Judges rows by the watermark."""
        none = dict.fromkeys(self._each, Late.none())
        return Judge(watermark, partial(self._judge, watermark), none)

    def _judge(
        self, watermark: int | None, times: Array, refused: dict[int, str]
    ) -> tuple[Array, dict[str, Late]]:
        """Judge rows by the watermark: a mask of the rows that are in an open window of some query,
        and the late rows of each query.  From the watermark on, no row is late."""
        usable = np.ones(len(times), dtype=bool)
        usable[list(refused)] = False
        old = ~usable if watermark is None else ~usable | (times < watermark)
        rows = np.flatnonzero(old)
        if not len(rows):
            return usable, dict.fromkeys(self._each, Late.none())
        own = {int(np.searchsorted(rows, row)): why for row, why in refused.items()}
        held = np.zeros(len(rows), dtype=bool)
        found: dict[Aligned, Late] = {}
        for plan in self._plan.plans.values():
            window = reach_of(plan.query)
            if window not in found:
                counts, late = late_rows(window, watermark, times[rows], own)
                held |= counts
                late.rows = rows[late.rows]
                found[window] = late
        usable[rows] = held
        return usable, {
            name: found[reach_of(plan.query)] for name, plan in self._plan.plans.items()
        }

    def _take_in_slices(
        self, watermark: int | None, batch: Sliced, came: Array | int | None
    ) -> tuple[Slices | None, int | None, dict[str, Taken]]:
        """Judge slices: the slices that are in an open window of some query, the newest time in
        them, and the counts of each query."""
        starts, held = batch.slices.starts, np.zeros(len(batch.slices.starts), dtype=bool)
        found: dict[Aligned, Taken] = {}
        for plan in self._plan.plans.values():
            window = reach_of(plan.query)
            if window not in found:
                usable, late = late_rows(window, watermark, starts, {})
                held |= usable
                found[window] = taken_slices(batch, late, came)
        taken = {name: found[reach_of(plan.query)] for name, plan in self._plan.plans.items()}
        if not held.any():
            return None, None, taken
        return some_slices(batch.slices, held), int(batch.newest[held].max()), taken

    def open_windows(self, progress: dict[str, Progress]) -> dict[str, int]:
        """The number of each query's open windows that may hold events."""
        return {name: one.open_windows(progress[name]) for name, one in self._each.items()}

    def quiet(self, progress: dict[str, Progress]) -> tuple[int, int]:
        """The span `[low, high)` of times in which events change nothing that any query emits; see
        `Lifecycle.quiet`."""
        at = next(iter(progress.values()))
        if at.stream_time is None or at.stream_time >= UNBOUNDED:
            return UNBOUNDED, UNBOUNDED
        _, undue = self._stands(at)
        last, next_end = self._cycles.end(undue - 1).max(), self._cycles.end(undue).min()
        low, high = self._clock.time(int(last)), self._clock.time(int(next_end))
        return int(low), int(high) + (0 if self._live else self._lateness or 0)
