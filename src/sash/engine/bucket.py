"""A bucket of keys on a stream whose state lives in a store: what one batch does to it.

    rows → those too late, and slices → the tree of tiles → windows that are due

Between batches nothing is kept here: a batch reads what it touches, and writes what it changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.query import Query
from ..state.scan import Pass, Windows
from ..state.tile_store import Store, Tiles, TileTree
from ..state.tile_tree import Slices, Visit
from ..tables.arrow import flat, tie_numbers, times_of
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time, tie_ranks
from ..windows import Sliding
from ..windows.contract import LATEST
from .before import drop_closed, keep_closed, same_as_closed
from .revisions import Revisions
from .run import only_changes

__all__ = ["Bucket", "Fixes", "Given", "Late", "Mark", "Outcome", "check_mode"]


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
    put_aside: int | None = None  # changes: the closed window whose values were put aside


@dataclass
class Late:
    """Rows that missed windows, or could not be used: where they are in the batch, why, whether
    they are in no window at all, and the starts of the first and last window missed (the last
    before the first where none can be told)."""

    rows: Array
    reasons: list[str]
    lost: Array
    first: Array
    last: Array


@dataclass
class Given:
    """Windows that were given, by the numbers of their keys among `keys`, and which revision each
    is in live mode."""

    keys: list[pa.Array]
    windows: Windows
    revisions: Array | None


@dataclass
class Outcome:
    """What a batch gave."""

    given: list[Given]
    late: Late
    rows: int  # that were counted in some window
    corrections: int = 0
    open_windows: int = 0


_NONE = np.empty(0, dtype=np.int64)
_NOT_LATE = Late(_NONE, [], _NONE.astype(bool), _NONE, _NONE)

_UNUSABLE = "its time is null or out of range"
_CLOSED = "its windows were closed"
_SOME_CLOSED = "some of its windows were closed"


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
        check_mode(plan.query, mode)
        self._revisions = Revisions(plan) if self.live else None

    def process(
        self, mark: Mark, store: Store, batch: pa.Table | None, watermark: int | None
    ) -> Outcome:
        """Move the watermark to where earlier batches have brought it, give what closes by it; then
        take in a batch.  `mark` is changed in place."""
        if watermark is not None:
            mark.watermark = _later(mark.watermark, min(watermark, LATEST))
        tiles = Tiles(self.tree, store)
        outcome = Outcome([], _NOT_LATE, 0)
        self._close(mark, tiles, outcome)
        if batch is not None and batch.num_rows:
            slices, outcome.late, outcome.rows = self._take_in(mark, batch)
            if slices is not None:
                self._insert(mark, tiles, slices, outcome)
        tiles.flush()
        outcome.open_windows = self._open(mark)
        return outcome

    def _close(self, mark: Mark, tiles: Tiles, outcome: Outcome) -> None:
        """Give the windows that end by the watermark, unless they were; forget what no other
        needs."""
        w = self._window
        if mark.watermark is None or mark.next is None or mark.kept_from is None:
            return
        last = self._last_by(mark.watermark)
        if last < mark.next or mark.stream_time is None:
            return
        first = mark.next if mark.given is None else max(mark.next, mark.given + w.every)
        until = min(last, w.last_of(mark.stream_time))  # those after it hold nothing
        before, position = mark.kept_from, self._needed_after(mark, last)
        visit = Visit(self.tree, tiles, mark.tops)
        # what the first is compared with
        prior = self._changes and mark.put_aside != first - w.every
        if first <= until:
            asked = first - w.every if prior else first
            reach = visit.reach(asked, until)
        visit.reach_old(before, position)
        visit.number()
        if first <= until:
            count = len(visit.keys[0]) if visit.keys else 1
            windows = visit.windows(reach, np.full(count, asked), np.full(count, until))
            if self._changes:
                windows = only_changes(windows)
                keep = windows.starts >= first
                if not prior:
                    rows = np.flatnonzero(windows.starts == first)
                    keep[rows] = ~same_as_closed(tiles.store, visit.keys, windows, rows)
                windows = windows.where(keep)
            revisions = np.zeros(len(windows.starts), dtype=np.int64) if self.live else None
            outcome.given.append(Given(visit.keys, windows, revisions))
        if mark.put_aside is not None:
            drop_closed(tiles.store)
            mark.put_aside = None
        visit.forget(before, position)
        visit.save()
        if self._revisions is not None:
            self._revisions.forget(mark, tiles, last + w.every)
        mark.tops = sorted(visit.tops)
        mark.next, mark.kept_from = last + w.every, position
        mark.given = _later(mark.given, last) if self.live else None

    def _last_by(self, time: int) -> int:
        """The last window that ends by a time."""
        return self._window.last_of(time - self._window.size)

    def _needed_after(self, mark: Mark, closed: int) -> int:
        """The first slice that is needed once a window is closed, and those before it."""
        w = self._window
        # the window before is what the next is compared with
        needed = closed if self._changes else closed + w.every
        position = self.tree.positions.first(needed)
        assert mark.stream_time is not None
        if needed > w.last_of(mark.stream_time):
            position = self.tree.end_of(position)  # nothing is left: drop all
        return position

    def _insert(self, mark: Mark, tiles: Tiles, slices: Slices, outcome: Outcome) -> None:
        """Take in slices; live, give the windows that the stream has passed, and those given
        before that are changed."""
        w = self._window
        if self._changes:
            self._put_aside(mark, tiles, int(slices.starts.min()))
        oldest = w.first_of(int(slices.starts.min()))
        if mark.watermark is not None:  # no window that is closed
            oldest = max(oldest, self._last_by(mark.watermark) + w.every)
        if mark.next is None or mark.kept_from is None or not mark.tops:
            mark.next, mark.kept_from = oldest, self.tree.positions.first(oldest)
        mark.next = min(mark.next, oldest)
        mark.kept_from = min(mark.kept_from, self.tree.positions.first(mark.next))
        visit = Visit(self.tree, tiles, mark.tops, slices)
        if self.live:
            self._give(visit, mark, tiles, slices, outcome)
        else:
            visit.number()
        visit.save()
        mark.tops = sorted(visit.tops)

    def _put_aside(self, mark: Mark, tiles: Tiles, oldest: int) -> None:
        """Keep the last closed window as it is, if what comes would change it."""
        if mark.watermark is None:
            return
        closed = self._last_by(mark.watermark)
        if mark.put_aside == closed or oldest >= closed + self._window.size:
            return
        visit = Visit(self.tree, tiles, mark.tops)
        reach = visit.reach(closed, closed)
        visit.number()
        only = np.full(len(visit.keys[0]) if visit.keys else 1, closed)
        keep_closed(tiles.store, visit.keys, visit.windows(reach, only, only))
        mark.put_aside = closed

    # rows in

    def _take_in(self, mark: Mark, batch: pa.Table) -> tuple[Slices | None, Late, int]:
        query, w = self.plan.query, self._window
        times, bad = times_of(flat(batch.column(query.time)))
        first, last = w.first_of(times), w.last_of(times)
        closed = -(2**62) if mark.watermark is None else mark.watermark - w.size
        missed = (first <= closed) & ~bad
        gone = (last <= closed) & ~bad
        late_rows = np.flatnonzero(missed | bad)
        # the last window that ends by the watermark
        end = w.last_of(closed)
        lost = gone | bad
        why = np.where(bad, _UNUSABLE, np.where(gone, _CLOSED, _SOME_CLOSED))
        late = Late(
            late_rows,
            why[late_rows].tolist(),
            lost[late_rows],
            np.where(bad, 0, first)[late_rows],
            np.where(bad, -1, np.minimum(last, end))[late_rows],
        )
        use = ~lost
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
        rows, bounds = by_group(
            codes, count, in_time(times, tie_ranks(query.tie, batch) if query.tie else None)
        )
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

    def _give(
        self, visit: Visit, mark: Mark, tiles: Tiles, slices: Slices, outcome: Outcome
    ) -> None:
        """Give the windows that the stream has passed, and those given before that are changed."""
        assert self._revisions is not None
        assert mark.stream_time is not None
        assert mark.next is not None
        w = self._window
        given = mark.given if mark.given is not None else mark.next - w.every
        first, last = max(mark.next, given + w.every), self._last_by(mark.stream_time)
        stretches = self._fixes(slices, mark.next, given)
        reaches = [visit.reach(int(f.firsts.min()), int(f.lasts.max())) for f in stretches]
        new = visit.reach(first, last) if first <= last else None
        visit.number()
        count = len(visit.keys[0]) if visit.keys else 1
        for fixes, reach in zip(stretches, reaches, strict=True):
            codes = visit.code_of(fixes.codes)
            begin, end = np.full(count, LATEST), np.full(count, -LATEST)
            np.minimum.at(begin, codes, fixes.firsts)
            np.maximum.at(end, codes, fixes.lasts)
            windows = visit.windows(reach, begin, end)
            windows, revisions = self._revisions.number(mark, visit, tiles, reach, windows, fixes)
            outcome.corrections += int((revisions > 0).sum())
            outcome.given.append(Given(visit.keys, windows, revisions))
        if new is not None:
            windows = visit.windows(new, np.full(count, first), np.full(count, last))
            revisions = np.zeros(len(windows.starts), dtype=np.int64)
            outcome.given.append(Given(visit.keys, windows, revisions))
        mark.given = max(given, last)

    def _fixes(self, slices: Slices, next_: int, given: int) -> list[Fixes]:
        """The windows given before that slices change, in stretches that have more than a window
        between them: what lies there is not read."""
        w, at = self._window, slices.starts
        first = np.maximum(w.first_of(at), next_)
        last = np.minimum(w.last_of(at), given)
        wrong = np.flatnonzero(first <= last)
        if not len(wrong):
            return []
        wrong = wrong[np.argsort(first[wrong], kind="stable")]
        reached = np.maximum.accumulate(last[wrong])
        cuts = np.flatnonzero(first[wrong][1:] > reached[:-1] + w.size) + 1
        return [Fixes(slices.codes[s], first[s], last[s]) for s in np.split(wrong, cuts)]

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


def check_mode(query: Query, mode: str) -> None:
    """Refuse what a mode cannot do."""
    if mode == "live" and query.emit == "changes":
        raise ValueError(
            "emit='changes' compares a window with the one before it, and in live mode both "
            "may still change; use mode='final'"
        )


@dataclass
class Fixes:
    """Windows to be given again: ranges of them, by the numbers of their keys in the batch."""

    codes: Array
    firsts: Array
    lasts: Array


def _later(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
