"""One lifecycle for every stream of aligned windows: it decides which rows are late, and which
windows are due, emitted again, unchanged or closed.

    batch ─→ judge ─→ cut ─→ state.step ─→ changes ─→ revisions ─→ outcome
               │                │
               └─ late rows     └─ insert, answer due windows, forget

Streams and Spark's processor call it; its state is a forest in memory, or tiles in a store.
Stream time is the largest event time so far; windows that end by the watermark are closed.  The
lifecycle judges the rows of a batch by the watermark that earlier batches reached, then inserts
them, then closes windows by the watermark after the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.signatures import Mode
from ..state.contract import AGAIN, Emitted, Recalled, Slices, State, Step, StepFailed, some_slices
from ..state.filling import NONE, filled_values, gaps_filled, remembered_until
from ..state.portions import Among
from ..tables.answers import changed, concat_answers
from .delays import delay_counts, no_delays
from .failures import name_step_failure
from .joined import Finished, joined, slim
from .late import Late, late_rows
from .taken import Judge, Taken, take_in

__all__ = ["UNBOUNDED", "Lifecycle", "Outcome", "Progress", "Sliced", "latest", "taken_slices"]


class Keeper(Protocol):
    """Remembers emitted windows: a state, or one query's view of a shared state."""

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count a revision of the windows in some rows, and return its number."""

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """Return what `remember` noted of some keys."""

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Note values of some keys."""


#: A time after all others: a watermark here closes every window.
UNBOUNDED = 2**62


@dataclass
class Progress:
    """How far a stream has come, and its counts.  A row is `counted` if it is in some window, and
    `late` if it is in none.  A `partly_late` row is counted, but missed other windows."""

    stream_time: int | None = None
    watermark: int | None = None
    rows: int = 0
    counted: int = 0
    late: int = 0
    partly_late: int = 0
    emitted: int = 0

    def at(self, other: Progress) -> Progress:
        """These counts, with the stream time and the watermark of another progress."""
        made = object.__new__(Progress)
        vars(made).update(vars(self), stream_time=other.stream_time, watermark=other.watermark)
        return made


@dataclass
class Outcome:
    """What a batch emits: windows, in live mode their revisions, and late rows."""

    emitted: Emitted
    revisions: Array | None
    late: Late
    rows: int
    lost: int  # rows in no window
    partly_late: int  # rows in some of their windows
    corrections: int = 0
    delays: Array = field(default_factory=no_delays)  # a histogram of how late rows came

    @property
    def counted(self) -> int:
        """The number of rows that are in some window."""
        return self.rows - self.lost


@dataclass
class Sliced:
    """A batch that the caller has cut into slices.  `rows` has the number of rows of each slice,
    `newest` their newest time, and `refused` counts the rows that could not be used and are in no
    slice.  All rows of a slice are in the same windows, so they are late together."""

    slices: Slices
    rows: Array
    newest: Array
    refused: int = 0


class Lifecycle:
    """The lifecycle of one query.  `Progress` and the state hold all that lasts between batches."""

    def __init__(
        self,
        plan: Plan,
        *,
        mode: Mode,
        lateness: int | None = None,
        early: bool = False,
        behind: int | None = None,
    ) -> None:
        """With `lateness`, the watermark follows stream time.  Without it, the caller moves the
        watermark; if the caller keeps it a fixed time behind a stream time that this state does
        not see, `behind` is that time."""
        self._plan = plan
        self._window = plan.query.aligned
        self._live = mode == "live"
        self._early = early
        self._lateness = lateness
        self._behind = behind
        self._changes = plan.query.emit == "changes"
        self.abandoned = False  # True if the last batch failed, and none of it is in the state

    def process(
        self,
        progress: Progress,
        state: State,
        batch: pa.Table | Sliced | None = None,
        refused: dict[int, str] | None = None,
        *,
        watermark: int | None = None,
        stream_time: int | None = None,
        came: Array | None = None,
        among: Among = None,
    ) -> Outcome:
        """Insert the rows of a batch that can be used, move on, and emit the windows that are due,
        of keys in some slots of a store's index alone.  `refused` has rows that the caller cannot
        use, with the reason; `came` the stream time when each row came, if the batch is of several
        pushes.

        If this raises and `abandoned` is true, neither progress nor state has changed, or the state
        is `broken`.  If `abandoned` is false, the error came while the state wrote the batch."""
        self.abandoned = commits = False
        try:
            outcome, moved = self._process(
                progress, state, batch, dict(refused or {}), watermark, stream_time, came, among
            )
            state.prepare()
            commits = True
            state.commit()
            vars(progress).update(vars(moved))
        except BaseException as error:
            state.abandon()
            self.abandoned = not commits
            if isinstance(error, StepFailed):
                raise name_step_failure(self._plan, error, broken=state.broken) from error
            raise
        return outcome

    def _process(
        self,
        progress: Progress,
        state: State,
        batch: pa.Table | Sliced | None,
        refused: dict[int, str],
        watermark: int | None,
        stream_time: int | None,
        came: Array | None,
        among: Among,
    ) -> tuple[Outcome, Progress]:
        """Process a batch without committing it: its outcome, and the progress after it."""
        taken = Taken(None, Late.none())
        at = came if came is not None else self.came(progress, watermark)
        if isinstance(batch, Sliced):
            taken = self._take_in_slices(progress, batch, at)
        elif batch is not None and batch.num_rows:
            taken = self._take_in(progress, state, batch, refused, at)
        moved = self.moved(progress, taken.newest, watermark, stream_time)
        step = self.step(progress, moved)
        step.among = among
        finished = list(self._in_portions(state, taken, step))
        return self._counted(*joined(finished), taken, moved), moved

    def finish(self, state: Keeper, emitted: Emitted, taken: Taken, moved: Progress) -> Outcome:
        """Leave out unchanged windows, or add empty ones, as the query asks; number revisions; and
        count."""
        return self._counted(*self._finished(state, emitted), taken, moved)

    def _finished(self, state: Keeper, emitted: Emitted) -> Finished:
        """Leave out unchanged windows, or add empty ones, as the query asks; number revisions."""
        if self._changes:
            emitted = self._only_changes(state, emitted)
        elif self._window.empty:
            emitted = self._with_empty(state, emitted)
        return emitted, self._revisions(state, emitted) if self._live else None

    def _in_portions(self, state: State, taken: Taken, step: Step) -> Iterator[Finished]:
        """Do a step portion by portion, and yield what each emits.  To free memory early, `taken`
        drops its slices."""
        steps = state.portions(taken.slices, step)
        taken.slices = None
        for some, part in steps:
            emitted, revisions = self._finished(state, state.step(some, part))
            yield (emitted if part is step else slim(emitted)), revisions

    def newest(self, progress: Progress, state: State, batch: pa.Table | Sliced) -> int | None:
        """The newest time of the rows of a batch that count; changes nothing."""
        if isinstance(batch, Sliced):
            return self._take_in_slices(progress, batch, None).newest
        return self._take_in(progress, state, batch, {}, None).newest

    def _counted(
        self, emitted: Emitted, revisions: Array | None, taken: Taken, moved: Progress
    ) -> Outcome:
        """Count what a batch emits, and add its counts to the progress after it."""
        corrections = 0 if revisions is None else int((revisions > 0).sum())
        counts = taken.rows, taken.lost, taken.partly_late
        outcome = Outcome(emitted, revisions, taken.late, *counts, corrections, taken.delays)
        moved.rows += outcome.rows
        moved.counted += outcome.counted
        moved.late += outcome.lost
        moved.partly_late += outcome.partly_late
        moved.emitted += len(emitted.windows)
        return outcome

    def open_windows(self, progress: Progress) -> int:
        """The number of open windows that may hold events."""
        if progress.stream_time is None:
            return 0
        last = self._window.last(min(progress.stream_time, UNBOUNDED))
        if progress.watermark is None:
            return last - self._window.first(progress.stream_time) + 1
        return max(0, last - self._window.first(progress.watermark) + 1)

    def quiet(self, progress: Progress) -> tuple[int, int]:
        """The span `[low, high)` of times in which events change nothing that is emitted: from
        `low` on, an event is in no closed or emitted window; before `high`, it makes no window
        due."""
        if progress.stream_time is None or progress.stream_time >= UNBOUNDED:
            return UNBOUNDED, UNBOUNDED
        undue = self._undue(progress)
        end = self._window.end(undue)
        if not self._live:
            end += self._lateness or 0
        return self._window.end(undue - 1), end

    # the intake of rows

    def came(self, progress: Progress, watermark: int | None) -> int | None:
        """Stream time, over all keys, at the start of a batch; computed from the watermark if the
        caller keeps it a fixed time behind."""
        if self._behind is None or watermark is None:
            return progress.stream_time
        return watermark + self._behind

    def _take_in(
        self,
        progress: Progress,
        state: State,
        batch: pa.Table,
        refused: dict[int, str],
        came: Array | int | None,
    ) -> Taken:
        """Judge the rows of a batch, and cut the usable ones into slices."""
        watermark = progress.watermark
        judge = Judge(watermark, partial(late_rows, self._window, watermark), Late.none())
        slices, late, newest, delays = take_in(self._plan, state, batch, refused, judge, came)
        return Taken.of(slices, late, newest, batch.num_rows, delays)

    def _take_in_slices(self, progress: Progress, batch: Sliced, came: Array | int | None) -> Taken:
        """Judge the slices of a batch, and keep the usable ones."""
        slices = batch.slices
        usable, late = late_rows(self._window, progress.watermark, slices.starts, {})
        taken = taken_slices(batch, late, came)
        if not usable.any():
            return taken
        newest = int(batch.newest[usable].max())
        return replace(taken, slices=some_slices(slices, usable), newest=newest)

    # steps: what a batch needs from the state

    def moved(
        self,
        progress: Progress,
        newest: int | None,
        watermark: int | None,
        stream_time: int | None,
    ) -> Progress:
        """The progress after a batch: stream time and watermark moved, counts as before."""
        moved = replace(progress)
        moved.stream_time = latest(moved.stream_time, newest, stream_time)
        if self._lateness is not None and newest is not None:
            watermark = latest(watermark, newest - self._lateness)
        moved.watermark = latest(moved.watermark, watermark)
        return moved

    def step(self, before: Progress, after: Progress) -> Step:
        """The step that a batch needs from the state, from the progress before and after it."""
        return Step(
            opened=self._opened(before),
            fresh=self._undue(before),
            due=self._undue(after),
            keep=self._opened(after),
            again=self._live,
            early=self._early and (after.stream_time or 0) < UNBOUNDED,
            changes=self._changes,
        )

    def _opened(self, at: Progress) -> int:
        """The number of the first open window."""
        return self._window.first(-UNBOUNDED if at.watermark is None else at.watermark)

    def _undue(self, at: Progress) -> int:
        """The number of the first window that is not due: in final mode the first open window, in
        live mode the first window that ends after stream time."""
        opened = self._opened(at)
        if not self._live or at.stream_time is None:
            return opened
        return max(opened, self._window.first(at.stream_time))

    # what is emitted

    def _only_changes(self, state: Keeper, emitted: Emitted) -> Emitted:
        """The windows whose values differ from the values of the same key's window before."""
        codes, covered = emitted.codes, emitted.covered
        if not len(codes):
            return emitted
        assert covered is not None
        firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        keys = codes[firsts]
        old = state.recall(emitted, keys)
        # put the remembered row of a key before the key's first row
        place = firsts[old.there]
        many = len(place)
        order = np.insert(np.arange(many, many + len(codes)), place, np.arange(many))
        at = pa.array(order)
        values = {
            name: concat_answers(old.values[name], v).take(at) if many else v
            for name, v in emitted.values.items()
        }
        keep = changed(
            np.concatenate([keys[old.there], codes])[order],
            np.concatenate([old.covered[old.there], emitted.windows])[order],
            np.concatenate([old.covered[old.there], covered])[order],
            values,
        )
        lasts = np.append(firsts[1:], len(codes)) - 1
        taken = pa.array(lasts)
        state.remember(
            emitted, keys, covered[lasts], {n: v.take(taken) for n, v in emitted.values.items()}
        )
        return _where(emitted, keep[order >= many])

    def _with_empty(self, state: Keeper, emitted: Emitted) -> Emitted:
        """The emitted windows, and the empty windows between each and its key's window before.
        Windows close in order, so once a window is emitted, no event fills an earlier one."""
        codes, windows = emitted.codes, emitted.windows
        if not len(codes):
            return emitted
        firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        lasts = np.append(firsts[1:], len(codes)) - 1
        # the state remembers the number of each key's last window
        noted = replace(emitted, values={"last": pa.array(windows)})
        old = state.recall(noted, codes[firsts])
        before = np.append(NONE, windows[:-1])
        before[firsts] = NONE
        before[firsts[old.there]] = old.values["last"].to_numpy()
        until = remembered_until(self._window, windows[lasts])
        state.remember(noted, codes[firsts], until - 1, {"last": pa.array(windows[lasts])})
        filled = gaps_filled(self._window, windows, before)
        return replace(
            emitted,
            codes=codes[filled.rows],
            windows=filled.numbers,
            reasons=emitted.reasons[filled.rows],
            values=filled_values(self._plan, filled, emitted.values),
            failed=filled.moved(emitted.failed),
            table=None,
        )

    def _revisions(self, state: Keeper, emitted: Emitted) -> Array:
        """The revision number of each row.  A window that was empty when it was due starts at 0,
        like any window that is emitted for the first time."""
        made = np.zeros(len(emitted.windows), dtype=np.int64)
        again = emitted.reasons == AGAIN
        rows = np.arange(len(made)) if self._early else np.flatnonzero(again)
        if len(rows):
            made[rows] = state.revise(emitted, rows, np.where(again[rows], 0, -1))
        return made


def taken_slices(batch: Sliced, late: Late, came: Array | int | None) -> Taken:
    """The counts of a batch of slices, of which some are late.  For how late rows came, all rows of
    a slice count with their newest time."""
    lost = int(batch.rows[late.rows[late.lost]].sum()) + batch.refused
    partly = int(batch.rows[late.rows[~late.lost]].sum())
    delays = delay_counts(batch.newest, came, weights=batch.rows)
    rows = int(batch.rows.sum()) + batch.refused
    return Taken(None, Late.none(), None, rows, lost, partly, delays)


def _where(emitted: Emitted, keep: Array) -> Emitted:
    """The rows where `keep` is true."""
    rows = np.flatnonzero(keep)
    at = pa.array(rows)
    new = {row: int(np.searchsorted(rows, row)) for row in emitted.failed if keep[row]}
    return Emitted(
        emitted.keys,
        emitted.codes[rows],
        emitted.windows[rows],
        emitted.reasons[rows],
        {name: v.take(at) for name, v in emitted.values.items()},
        {i: emitted.failed[row] for row, i in new.items()},
        None if emitted.covered is None else emitted.covered[rows],
    )


def latest(*times: Any) -> int | None:
    """The latest of the times that are not None; None if all are."""
    return max((t for t in times if t is not None), default=None)
