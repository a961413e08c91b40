"""A bucket of keys on a stream whose state lives in a store: what one batch does to it.

    rows → those too late, and slices → the tree of tiles → windows that are due

Between batches nothing is kept here: a batch reads what it touches, and writes what it changed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..windows import Sliding
from .batch import in_time, only_changes
from .keys import by_group, key_codes
from .passes import Pass, Windows
from .revisions import Revisions
from .tables import flat, tie_numbers, times_of
from .tile_tree import Slices, Tiles, TileTree, Visit

__all__ = ["Bucket", "Late", "Mark", "Outcome"]


@dataclass
class Mark:
    """Where a bucket stands.  Times are in microseconds; windows are named by their starts."""

    tops: list[int] = field(default_factory=list)  # the highest tiles
    watermark: int | None = None  # windows that end by it are closed
    stream_time: int | None = None  # the largest time seen
    next: int | None = None  # the first window that may still be given, or changed
    given: int | None = None  # live: the last window that was given
    kept_from: int | None = None  # the first slice that is in the state
    revised: list[int] = field(default_factory=list)  # live: tiles with numbers of revisions

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Mark:
        return Mark(**json.loads(text))


@dataclass
class Late:
    """Rows that missed windows, or could not be used: where they are in the batch, why, and the
    starts of the first and last window missed (the same number twice where none could be told)."""

    rows: Array
    reasons: list[str]
    first: Array
    last: Array


@dataclass
class Outcome:
    """What a batch gave."""

    keys: list[pa.Array]
    windows: Windows | None
    revisions: Array | None
    late: Late
    rows: int = 0
    corrections: int = 0
    open_windows: int = 0

    @property
    def given(self) -> int:
        return 0 if self.windows is None else len(self.windows.groups)


class Bucket:
    """How batches are worked on, for one query and mode."""

    def __init__(self, plan: Plan, mode: str) -> None:
        self.plan = plan
        self.live = mode == "live"
        self.tree = TileTree(plan)
        self._window = plan.query.window
        instants = Sliding(1, 1)
        self._slicers = (
            [Pass(g, instants, plan.types) for g in plan.groups]
            if self.tree.ordered
            else self.tree.passes
        )
        self._changes = plan.query.emit == "changes"
        self._revisions = Revisions(plan) if self.live else None

    def process(
        self, mark: Mark, store: Tiles, batch: pa.Table | None, watermark: int | None
    ) -> Outcome:
        """Take in a batch, move the watermark, give what is due.  `mark` is changed in place."""
        slices, late, rows = self._take_in(mark, batch)
        watermark = _later(mark.watermark, watermark)
        stream_time = _later(mark.stream_time, watermark)
        visit = Visit(self.tree, store, mark.tops, slices)
        first, last = self._due(mark, slices, stream_time if self.live else watermark)
        outcome = Outcome([], None, None, late, rows)
        closing = self._closing(mark, watermark)
        if closing is not None:
            visit.reach_old(*closing[1:])
        fixes = None
        if self.live and slices is not None and mark.given is not None:
            fixes = self._fixes(slices, mark)
            if fixes is not None:
                first = fixes.first if first is None else min(fixes.first, first)
                last = mark.given if last is None else last
        if first is not None and last is not None and first <= last and visit.tops:
            if self._changes:
                first -= self._window.every
            visit.reach(first, last)
            visit.number()
            self._give(visit, mark, store, outcome, first, last, fixes)
        else:
            visit.number()
        if self.live and last is not None:
            mark.given = _later(mark.given, last)
        mark.watermark, mark.stream_time = watermark, stream_time
        if closing is not None:
            following, before, position = closing
            visit.forget(before, position)
            if self._revisions is not None:
                self._revisions.forget(mark, store, following)
            mark.next, mark.kept_from = following, position
        visit.save()
        mark.tops = sorted(visit.tops)
        outcome.open_windows = self._open(mark)
        return outcome

    # rows in

    def _take_in(self, mark: Mark, batch: pa.Table | None) -> tuple[Slices | None, Late, int]:
        query, w = self.plan.query, self._window
        none = np.empty(0, dtype=np.int64)
        if batch is None or not batch.num_rows:
            return None, Late(none, [], none, none), 0
        times, bad = times_of(flat(batch.column(query.time)))
        last = times - (times - w.offset) % w.every
        first = last - (last + w.size - times - 1) // w.every * w.every
        closed = -(2**62) if mark.watermark is None else mark.watermark - w.size
        missed = (first <= closed) & ~bad
        gone = (last <= closed) & ~bad
        late_rows = np.flatnonzero(missed | bad)
        # the last window that ends by the watermark
        end = closed - (closed - w.offset) % w.every
        late = Late(
            late_rows,
            [
                "its time is null or out of range" if b else "its windows were closed"
                for b in bad[late_rows].tolist()
            ],
            np.where(bad, 0, first)[late_rows],
            np.where(bad, 0, np.minimum(last, end))[late_rows],
        )
        use = ~(gone | bad)
        if not use.all():
            batch, times = batch.filter(pa.array(use)), times[use]
        rows = int(use.sum())
        if not rows:
            return None, late, 0
        mark.stream_time = _later(mark.stream_time, int(times.max()))
        return self._slices(batch, times), late, rows

    def _slices(self, batch: pa.Table, times: Array) -> Slices:
        query = self.plan.query
        codes, keys = key_codes([flat(batch.column(c)) for c in query.by], batch.num_rows)
        count = len(keys[0]) if keys else 1
        rows, bounds = by_group(codes, count, in_time(times, query, batch))
        at = times[rows]
        marks: list[Array] = []
        if self.tree.ordered:  # slices are instants, numbered in order
            marks = [at]
            if query.tie is not None:
                marks.append(tie_numbers(flat(batch.column(query.tie)))[rows])
            change = np.zeros(len(rows), dtype=np.int64)
            for mark in marks:
                change[1:] |= mark[1:] != mark[:-1]
            change[bounds[1:-1][bounds[1:-1] < len(rows)]] = 1
            at = np.cumsum(change)
        partials: list[Any] = []
        groups = starts = np.empty(0, dtype=np.int64)
        for sweep in self._slicers:
            groups, starts, part = sweep.slices_of_events(sweep.columns(batch), rows, at, bounds)
            partials.append(part)
        if marks:
            heads = np.searchsorted(at, starts)
            marks = [mark[heads] for mark in marks]
            starts = marks[0]
        return Slices(keys, groups, starts, partials, marks)

    # windows out

    def _due(
        self, mark: Mark, slices: Slices | None, until: int | None
    ) -> tuple[int | None, int | None]:
        """The first and last window that end by a time and were not given yet."""
        w = self._window
        if slices is not None:
            oldest = w.first_of(int(slices.starts.min()))
            if mark.watermark is not None:  # no window that is closed
                closed = mark.watermark - w.size
                oldest = max(oldest, closed - (closed - w.offset) % w.every + w.every)
            if mark.next is None or not mark.tops or oldest < mark.next:
                mark.next = oldest
            if mark.kept_from is None or not mark.tops:
                mark.kept_from = self.tree.positions.first(mark.next)
            mark.kept_from = min(mark.kept_from, self.tree.positions.first(mark.next))
        if mark.next is None or until is None:
            return None, None
        last = until - w.size
        last -= (last - w.offset) % w.every
        first = mark.next
        if self.live and mark.given is not None:
            first = max(first, mark.given + w.every)
        return (first, last) if first <= last else (None, None)

    def _fixes(self, slices: Slices, mark: Mark) -> _Fixes | None:
        """The windows given before that a batch changes: for each slice the first and last."""
        w, at = self._window, slices.starts
        last = at - (at - w.offset) % w.every
        first = last - (last + w.size - at - 1) // w.every * w.every
        assert mark.given is not None
        assert mark.next is not None
        first = np.maximum(first, mark.next)
        last = np.minimum(last, mark.given)
        wrong = first <= last
        if not wrong.any():
            return None
        return _Fixes(int(first[wrong].min()), slices.codes[wrong], first[wrong], last[wrong])

    def _give(
        self,
        visit: Visit,
        mark: Mark,
        store: Tiles,
        outcome: Outcome,
        first: int,
        last: int,
        fixes: _Fixes | None,
    ) -> None:
        w = self._window
        count = len(visit.keys[0]) if visit.keys else 1
        begin, end = np.full(count, first), np.full(count, last)
        if fixes is not None:
            assert mark.given is not None
            begin[:] = max(first, mark.given + w.every)
            np.minimum.at(begin, visit.code_of(fixes.codes), fixes.firsts)
        windows = visit.windows(begin, end)
        if self._changes:
            windows = only_changes(windows)
            windows = windows.where(windows.starts > first)
        revisions = None
        if self.live:
            assert self._revisions is not None
            old = mark.given if mark.given is not None else first - w.every
            windows, revisions, outcome.corrections = self._revisions.number(
                mark, visit, store, windows, old, fixes
            )
        outcome.keys, outcome.windows, outcome.revisions = visit.keys, windows, revisions

    def _closing(self, mark: Mark, watermark: int | None) -> tuple[int, int, int] | None:
        """If windows close: the first that stays open, and the first slice needed before and
        from now on."""
        if mark.next is None or mark.kept_from is None or watermark is None:
            return None
        w = self._window
        closed = watermark - w.size
        following = closed - (closed - w.offset) % w.every + w.every
        if following <= mark.next:
            return None
        # the window before is what the next is compared with
        needed = following - w.every if self._changes else following
        return following, mark.kept_from, self.tree.positions.first(needed)

    def _open(self, mark: Mark) -> int:
        """How many windows hold something and are not closed (for a key that has it all)."""
        if mark.next is None or mark.stream_time is None or not mark.tops:
            return 0
        return max(
            0, (self._window.last_of(mark.stream_time) - mark.next) // self._window.every + 1
        )

    def next_close(self, mark: Mark) -> int | None:
        """When the next window closes, if there is one to close."""
        if not self._open(mark):
            return None
        assert mark.next is not None
        return mark.next + self._window.size


@dataclass
class _Fixes:
    """Windows to be given again: the first of all, and for some keys ranges of them."""

    first: int
    codes: Array  # among the batch's keys
    firsts: Array
    lasts: Array


def _later(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
