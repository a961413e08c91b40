"""The state of a stream of sessions: the events of open sessions, as few partials.

A new event is at most a gap older than the watermark.  So the events of an open session before that
time are one partial, and its newer events have a partial for each time:

    a key's events      x x  x   x    |  x    x
    kept                [one partial] |  [x]  [x]
                              watermark less gap

If all operators commute, all events before the watermark itself are one partial.  A new event
before the watermark touches the open session, if there is one.  It may also touch the closed
session before that, so the state keeps the end of each key's last closed session for a gap.  If
gaps are in a column, or sessions have a `max_size`, no new event is before the watermark.  With
both, a session may end between events at one time, so each event has a partial.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sized
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.types import value_type
from ..tables.answers import concat_answers
from ..tables.arrow import from_ipc, one_array, to_ipc
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time
from ..tables.threads import side_by_side
from ..windows import Merging
from .answers import by_key_and_time, joined_reasons
from .by_key import ByKey, Listed
from .contract import StepFailed
from .due import NEVER, Due
from .folds import KeyRuns
from .key_numbers import KeyNumbers
from .keyed import Keyed
from .labels import Labels, Values
from .lanes import Lanes
from .live_sessions import LIVE, LiveSessions, Withdrawn
from .measures import Spans, gaps_of, sessions_of
from .numbered import Numbered, folds_of
from .parted_forest import PARTS, batch_in_order, threads_for
from .pieces import cut_pieces
from .ragged import ragged, run_starts
from .session_work import Kit, Worked, joined

__all__ = ["Parts", "SessionState", "Sessions"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class Parts:
    """Parts of sessions: the keys, the bounds of each key's parts, the time at which each part
    begins, the time that it reaches, and the partials of each group of aggregates."""

    keys: list[pa.Array]
    bounds: Array
    times: Array
    reaches: Array
    partials: list[Any]


@dataclass
class Sessions:
    """Sessions to emit, in order of key and time: the columns of their keys, start and end, the
    values by name, and why sessions lack values.  In live mode, also the revision of each session,
    and True for withdrawn sessions, whose values are null."""

    keys: list[pa.Array]
    starts: Array
    ends: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]
    revisions: Array | None = None
    deleted: Array | None = None


class SessionState:
    """The open sessions of all keys, in memory."""

    def __init__(self, plan: Plan, *, live: bool = False) -> None:
        self._plan = plan
        assert isinstance(plan.query.window, Merging)
        self._window = plan.query.window
        self._kits = [Kit.of(plan)]  # of threads that work side by side
        self._folds = self._kits[0].folds
        self._columns = folds_of(plan)  # as what partials leave this state
        reach, longest = self._window.reach, self._window.longest
        self._by_event = isinstance(reach, str) and longest is not None  # a session may cut peers
        #: How long before the watermark the time of a new event may be.
        self.waits = reach if isinstance(reach, int) and longest is None else 0
        self._live = LiveSessions() if live else None
        self.visited = 0  # the number of keys that steps have visited
        self._clear()

    def _clear(self) -> None:
        """Begin without keys and sessions."""
        self._keys = KeyNumbers([value_type(field.type) for field in self._plan.keys])
        self._lanes = Lanes([_NONE, _NONE, *(folds.array(folds.join([])) for folds in self._folds)])
        self._ended = np.zeros(0, np.int64)  # by key number: the end of the last closed session
        self._due = Due()
        groups = self._plan.groups
        self._labels = [Labels(group) if group.labelled else None for group in groups]
        if self._live is not None:
            self._live = LiveSessions()

    def __deepcopy__(self, memo: Any) -> SessionState:
        """A copy, whose kernels have memories of their own."""
        made = SessionState(self._plan)
        for name in ("_keys", "_lanes", "_ended", "_due", "_live", "_labels"):
            setattr(made, name, copy.deepcopy(getattr(self, name), memo))
        return made

    def cut(self, table: pa.Table) -> Parts:
        """Cut rows into distinct times.  The state stays as it is."""
        read = table.select([f.name for f in self._plan.schema])
        threads = self._threads_for(table)
        given = batch_in_order(self._plan, read, threads)
        rows, times, bounds = given.rows, given.times, given.bounds
        apart = np.arange(len(times)) if self._by_event else times
        scans = self._kits[0].scans
        if threads > 1:
            starts, partials, ends = cut_pieces(
                self._plan.groups,
                [scan.columns(read) for scan in scans],
                lambda slices: [scan.room_for(slices) for scan in scans],
                given,
                apart,
                lambda part, i, *piece: self._kits[part].scans[i].cut_piece(*piece),
                pieces=PARTS,
                threads=threads,
            )
        else:
            cuts = [scan.cut(read, rows, apart, bounds, whole=False) for scan in scans]
            starts, partials, ends = cuts[0][0], [made for _, made, _ in cuts], cuts[0][2]
        reach = self._window.reach
        if isinstance(reach, str):
            gaps = gaps_of(read, reach)
            reaches = times + (gaps if rows is None else gaps[rows])
            heads = run_starts(given.codes, apart)
            starts = times[heads]
            reaches = np.maximum.reduceat(reaches, heads) if len(heads) else reaches
        else:
            reaches = starts + reach
        return Parts(given.keys, ends, starts, reaches, partials)

    def step(self, new: Parts | None, watermark: int | None) -> Sessions:
        """Add parts, and take out the sessions that end before the watermark.  Return these; in
        live mode, return the sessions that are new, changed or withdrawn."""
        mark = -NEVER if watermark is None else watermark
        self._compact()
        touched = _NONE if new is None else self._keys.add(new.keys, len(new.bounds) - 1)
        arrays = [] if new is None else self._arrays(new.partials)
        self._make_room()
        due = self._due.take(mark)
        due = due[self._keys.there(due) & ~np.isin(due, touched)]
        visits = np.concatenate([touched, due])
        self.visited += len(visits)
        counts = self._lanes.counts(visits)  # has a place for each key
        more = np.zeros(len(visits), np.int64)
        more[: len(touched)] = _NONE if new is None else np.diff(new.bounds)
        given = [] if new is None else [new.times, new.reaches, *arrays]
        many = 0 if new is None else len(new.times)
        threads = 1 if self._live is not None else self._threads_for(range(many))
        pieces = [(0, len(visits))]
        if threads > 1:
            rows = np.cumsum(counts + more)
            ends = np.searchsorted(rows, int(rows[-1]) * np.arange(1, PARTS) // PARTS) + 1
            pieces = list(pairwise(np.unique([0, *ends, len(visits)]).tolist()))
        before = np.append(0, np.cumsum(more))

        def work(part: int) -> Worked:
            first, last = pieces[part]
            own = slice(int(before[first]), int(before[last]))
            some = [column[own] for column in given]
            return self._work(visits[first:last], more[first:last], some, mark, self._kits[part])

        try:
            made = joined(side_by_side(work, range(len(pieces)), threads), pieces)
        except StepFailed:
            if threads > 1:  # which error comes first, one thread tells
                self._work(visits, more, given, mark, self._kits[0])
            raise
        found, closed = made.found, made.closed
        self._lanes.put(visits, made.counts, made.columns)
        self._close(visits, found, closed, made.counts, mark - self.waits, threads)
        for i, labels in enumerate(self._labels):
            if labels is not None and labels.grown():
                self._sweep(i)
        answers = made.values, made.failed
        return self._sessions(visits, found, made.asked, answers, made.revisions, made.withdrawn)

    def _threads_for(self, rows: Sized) -> int:
        """How many threads work on some rows."""
        kits = self._kits
        threads = threads_for(rows) if all(scan.divisible for scan in kits[0].scans) else 1
        while threads > 1 and len(kits) < PARTS:
            kits.append(Kit.of(self._plan))
        return threads

    def _work(self, visits: Array, more: Array, new: list[Array], mark: int, kit: Kit) -> Worked:
        """The sessions of some keys, of which each has so many new parts: what is asked of them,
        and what is left of them."""
        counts, kept = self._lanes.get(visits)
        owners = np.repeat(np.arange(len(visits)), counts)
        if new:
            kept = [np.concatenate(both) for both in zip(kept, new, strict=True)]
            owners = np.append(owners, np.repeat(np.arange(len(visits)), more))
        fresh = np.arange(len(owners)) >= int(counts.sum())
        order, bounds = by_group(owners, len(visits), in_time(kept[0]))
        times, reaches, *partials = (column[order] for column in kept)
        fresh, owners = fresh[order], owners[order]
        found = sessions_of(times, reaches, bounds, self._window.longest)
        closed = found.ends < mark
        first, last = found.frames.first, found.frames.last
        asked, revisions, withdrawn = closed, None, None
        if self._live is not None:
            touches = np.add.reduceat(fresh, first) > 0 if len(first) else closed
            since = mark - self.waits
            asked, revisions, withdrawn = self._live.step(visits, found, touches, closed, since)
        whose = visits[owners], times
        folded = self._fold(kit, partials, first[asked], last[asked], *whose)
        values, failed = self._answers(kit, folded, int(asked.sum()))
        # what is left: one part for what no event can come between, the others as they are
        owner = np.repeat(np.arange(len(first)), last - first)
        apart = mark - (self.waits if self._plan.ordered else 0)
        heads = (np.arange(len(times)) == first[owner]) | (times >= apart)
        begins = np.flatnonzero(heads)
        ends = np.append(begins[1:], len(times))[: len(begins)]
        left = ~closed[owner[begins]]
        begins, ends = begins[left], ends[left]
        columns = [times[begins], _most(reaches, begins, ends)]
        columns += self._fold(kit, partials, begins, ends, *whose)
        counts = np.bincount(owners[begins], minlength=len(visits))
        return Worked(found, asked, closed, values, failed, counts, columns, revisions, withdrawn)

    def _arrays(self, partials: list[Any]) -> list[Array]:
        """The partials of new parts as arrays, with labels for their values."""
        made = []
        for i, (folds, given) in enumerate(zip(self._folds, partials, strict=True)):
            if isinstance(given, Numbered):
                labels = self._labels[i]
                assert labels is not None
                given = labels.insert(given, partial(self._sweep, i))
            made.append(folds.array(given))
        return made

    def _sweep(self, i: int, more: Values | None = None) -> None:
        """Drop the values that no part holds any more, and give the others new labels, with room
        for `more` values."""
        labels = self._labels[i]
        if labels is not None:
            column, rows = self._lanes.held(2 + i)
            labels.sweep([(column.reshape(-1), rows * self._folds[i].width, _NONE)], more)

    def _close(
        self,
        visits: Array,
        found: Spans,
        closed: Array,
        counts: Array,
        since: int,
        threads: int,
    ) -> None:
        """Note the ends of closed sessions, remove keys without sessions, and note when the other
        keys are due next."""
        ended = self._ended[visits]
        np.maximum.at(ended, found.groups[closed], found.ends[closed])
        self._ended[visits] = ended
        self._keys.remove(visits[(counts == 0) & (ended < since)])
        some = np.array_split(visits, PARTS) if threads > 1 else [visits]
        self._due.note(visits, np.concatenate(side_by_side(self._notes, some, threads)))

    def _notes(self, numbers: Array) -> Array:
        """For each key the time at which a step must visit it, even without new events: when one of
        its sessions ends, or when no event can touch its last session any more.  If an event
        reaches farther than the `max_size`, a later session may end before an earlier one."""
        found, counts = self._open(numbers), self._lanes.counts(numbers)
        notes: Array = np.where(counts == 0, self._ended[numbers] + self.waits, NEVER)
        heads = run_starts(found.groups) if len(found.groups) else _NONE
        if len(heads):
            notes[found.groups[heads]] = np.minimum.reduceat(found.ends, heads)
        return notes

    def _open(self, numbers: Array) -> Spans:
        """The open sessions of some keys."""
        counts, (times, reaches, *_) = self._lanes.get(numbers)
        return sessions_of(times, reaches, np.append(0, np.cumsum(counts)), self._window.longest)

    def _sessions(
        self,
        visits: Array,
        found: Spans,
        asked: Array,
        answers: tuple[dict[str, pa.Array], dict[int, str]],
        revisions: Array | None,
        withdrawn: Withdrawn | None,
    ) -> Sessions:
        """Put sessions, and withdrawn ones, in order of key and time."""
        groups, starts, ends = found.groups[asked], found.starts[asked], found.ends[asked]
        values, failed = answers
        deleted = None
        if revisions is not None:
            assert withdrawn is not None
            count, many = len(groups), len(withdrawn.groups)
            groups = np.append(groups, withdrawn.groups)
            starts, ends = np.append(starts, withdrawn.starts), np.append(ends, withdrawn.ends)
            revisions = np.append(revisions[asked], withdrawn.revisions)
            deleted = np.arange(count + many) >= count
            if many:
                nulls = {name: pa.nulls(many, column.type) for name, column in values.items()}
                values = {n: concat_answers(column, nulls[n]) for n, column in values.items()}
        there = self._keys.take(visits)
        ranks = key_codes(there, len(visits))[0]
        at = pa.array(groups)
        keys = [column.take(at) for column in there]
        given = keys, starts, values, failed, ranks[groups]
        order, keys, values, failed = by_key_and_time(*given)
        return Sessions(
            keys,
            starts[order],
            ends[order],
            values,
            failed,
            None if revisions is None else revisions[order],
            None if deleted is None else deleted[order],
        )

    def in_closed(self, table: pa.Table, times: Array) -> Array:
        """True for rows that would join a closed session."""
        given = [one_array(table.column(field.name)) for field in self._plan.keys]
        codes, keys = key_codes(given, len(times))
        numbers = self._keys.find(keys, len(keys[0]) if keys else 1)
        ended = np.full(len(numbers), -NEVER)
        ended[numbers >= 0] = self._ended[numbers[numbers >= 0]]
        found: Array = times <= ended[codes]
        return found

    def _fold(
        self,
        kit: Kit,
        partials: list[Array],
        first: Array,
        last: Array,
        numbers: Array,
        times: Array,
    ) -> list[Array]:
        """Combine the runs of parts from `first` up to `last` into one partial each.  `numbers` and
        `times` are those of all parts."""
        if not len(first):
            return [folds.array(folds.join([])) for folds in self._folds]
        order, bounds = ragged(first, last - first), np.append(0, np.cumsum(last - first))
        runs = KeyRuns(order, bounds, self._keys.columns, numbers[first], times[first])
        made = runs.fold(self._plan.groups, kit.folds, partials)
        return [folds.array(held) for folds, held in zip(self._folds, made, strict=True)]

    def _answers(
        self, kit: Kit, partials: list[Array], count: int
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        values: dict[str, pa.Array] = {}
        failed: list[dict[int, str]] = []
        zeros = np.zeros(count, np.int64)
        for scan, held, labels in zip(kit.scans, partials, self._labels, strict=True):
            given = held.tolist() if held.dtype == object else held
            asked = given, zeros, np.arange(count + 1), zeros, zeros
            made = scan.windows_of_slices(*asked, None if labels is None else labels.sources)
            values |= made.values
            failed.append(made.lacking)
        return values, joined_reasons(*failed)

    def _make_room(self) -> None:
        """Make room for the end of each key's last closed session."""
        have, most = len(self._ended), self._keys.most
        if most > have:
            self._ended = np.append(self._ended, np.full(max(most, 2 * have) - have, -NEVER))

    def _compact(self) -> None:
        """Renumber the keys if many were removed."""
        kept = self._keys.compact()
        if kept is not None:
            self._due.renumber(kept)
            self._lanes.renumber(kept)
            self._ended = self._ended[kept]
            if self._live is not None:
                self._live.lanes.renumber(kept)

    def size(self) -> dict[str, int]:
        """The number of keys and of parts of sessions, and the bytes that they take."""
        live = 0 if self._live is None else self._live.lanes.nbytes()
        return {
            "keys": len(self._keys),
            "slices": len(self._lanes),
            "bytes": self._lanes.nbytes() + self._ended.nbytes + live + self._label_bytes(),
        }

    def _label_bytes(self) -> int:
        return sum(labels.nbytes for labels in self._labels if labels is not None)

    @property
    def shapes(self) -> list[str]:
        """The types of a partial's words, for each group of aggregates."""
        return [folds.kinds or "objects" for folds in self._columns]

    def held(self) -> Keyed:
        """The whole state as rows of keys, for a store."""
        self._make_room()
        numbers = self._keys.numbers()
        counts, (times, reaches, *partials) = self._lanes.get(numbers)
        columns = [pa.array(times), pa.array(reaches)]
        for folds, labels, some in zip(self._columns, self._labels, partials, strict=True):
            given = some if labels is None else labels.numbered(some)
            columns.append(folds.as_column(given))
        lists = [Listed(counts, columns)]
        if self._live is not None:
            many, emitted = self._live.lanes.get(numbers)
            lists.append(Listed(many, [pa.array(column) for column in emitted]))
        at = pa.array(numbers)
        keys = [column.take(at) for column in self._keys.columns]
        table = ByKey(keys, [pa.array(self._ended[numbers])], lists).table()
        opens = np.bincount(self._open(numbers).groups, minlength=len(numbers))
        due = np.minimum(self._notes(numbers) + 1, NEVER)
        return Keyed(table, keys, due, np.full(len(numbers), NEVER), opens)

    def hold(self, table: pa.Table) -> None:
        """Replace the state with these rows of keys, which `held` returned."""
        live = [] if self._live is None else [len(LIVE)]
        many = len(self._plan.keys)
        held = ByKey.of(table, many, 1, [2 + len(self._folds), *live])
        self._clear()
        numbers = self._keys.add(list(held.keys), table.num_rows)
        self._ended = held.known[0].to_numpy().copy()
        times, reaches, *partials = held.lists[0].columns
        both = zip(self._columns, partials, strict=True)
        arrays = self._arrays([folds.from_column(column) for folds, column in both])
        columns = [times.to_numpy(), reaches.to_numpy(), *arrays]
        self._lanes.put(numbers, held.lists[0].counts, columns)
        if self._live is not None:
            emitted = [column.to_numpy() for column in held.lists[1].columns]
            self._live.lanes.put(numbers, held.lists[1].counts, emitted)
        self._due.note(numbers, self._notes(numbers))

    def dump(self) -> list[bytes]:
        """The whole state as bytes; objects as the operator encodes them."""
        return [json.dumps(self._partials()).encode(), to_ipc(self.held().table)]

    def load(self, blobs: list[bytes]) -> None:
        """Restore what `dump` returned into an empty state."""
        head, held = blobs
        said, mine = json.loads(head), self._partials()
        if said != mine:
            raise ValueError(f"these bytes hold partials of {said}; the query has {mine}")
        self.hold(from_ipc(held))

    def _partials(self) -> list[Any]:
        """A description of each group's partials, for JSON."""
        both = zip(self._plan.groups, self._columns, strict=True)
        return [[group.operator.name, folds.kinds] for group, folds in both]

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        numbers = self._keys.numbers()
        assert len(self._lanes) == self._lanes.counts(numbers).sum(), "a key holds parts, and left"
        assert (self._due.noted(numbers) <= self._notes(numbers)).all(), "a key has no note in time"
        if self._live is not None:
            self._live._check(numbers)


def _most(values: Array, begins: Array, ends: Array) -> Array:
    """The greatest value of each run.  No run may be empty."""
    if not len(begins):
        return values[:0]
    found: Array = np.maximum.reduceat(
        values[ragged(begins, ends - begins)], np.cumsum(ends - begins) - (ends - begins)
    )
    return found
