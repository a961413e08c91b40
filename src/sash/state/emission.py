"""Compute windows from the entries of a visit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..windows import Aligned
from .answers import Sources, joined_reasons
from .contract import AGAIN, NEW, Emitted, StepFailed
from .joint import Ask
from .numbered import Numbered
from .projection import Projection
from .ragged import Places, merged_ranges, ragged
from .scan import Scan, ScanFailed, Windows
from .tile import BITS
from .visit import Reach, Visit

__all__ = ["Reader", "emit"]


@dataclass
class _Chosen:
    """Ranges of windows of keys, and the entries from which each range is computed.  The entries of
    range r are at[bounds[r]] up to at[bounds[r + 1]], in order of time: places among the entries of
    all levels."""

    codes: Array
    first: Array
    last: Array
    at: Array
    bounds: Array


@dataclass(frozen=True)
class Reader:
    """Computes the windows of one query from entries, which may have the partials of other queries
    too."""

    scans: Sequence[Scan]
    names: Sequence[tuple[str, ...]]  # the aggregates of each scan
    reads: Projection | None = None  # the query's words of the partials; None for all of them

    def partials(self, held: list[Any]) -> list[Any]:
        """The partials for each scan."""
        return held if self.reads is None else self.reads.partials(held)


def emit(visit: Visit, ask: Ask, reader: Reader, sized: Sequence[Reader] = ()) -> Emitted:
    """The windows of a query that a step emits.  `sized` has a reader for each other size of the
    query's aggregates."""
    chosen = _choose(visit, ask)
    windows = _windows(visit, reader, chosen)
    codes = chosen.codes[windows.groups]
    reasons = np.full(len(codes), NEW, dtype=np.int64)
    before = np.flatnonzero(windows.numbers < ask.step.fresh)
    if len(before):
        held = _held(visit, ask, chosen, windows.groups[before], windows.numbers[before])
        reasons[before[held]] = AGAIN
    if ask.sizes:
        _add_sizes(visit, ask, sized, chosen, windows)
    return Emitted(
        visit.keys,
        codes,
        windows.numbers,
        reasons,
        windows.values,
        windows.lacking,
        windows.covered if ask.step.changes else None,
    )


def _choose(visit: Visit, ask: Ask) -> _Chosen:
    """Find the windows to compute for each key, and the entries that they are computed from."""
    step = ask.step
    at, first, last = visit.again(ask)
    codes = visit.codes_of(at) if len(at) else at
    if step.fresh < step.due:
        every = np.flatnonzero(
            visit.part_of >= 0
        )  # a query without key columns has one key, which may be in no part
        codes = np.concatenate([codes, every])
        first = np.concatenate([first, np.full(len(every), step.fresh)])
        last = np.concatenate([last, np.full(len(every), step.due - 1)])
    if len(at):
        codes, first, last = merged_ranges(codes, first, last)
    return _entries_of(visit, ask.window, codes, first, last)


def _entries_of(visit: Visit, window: Aligned, codes: Array, first: Array, last: Array) -> _Chosen:
    """The entries from which ranges of windows are computed, without the ranges that have none."""
    starts, counts = _pieces(visit, window, codes, first, last)
    totals = counts.sum(axis=1)
    some = np.flatnonzero(totals)
    bounds = np.append(0, np.cumsum(totals[some]))
    places = ragged(starts[some].reshape(-1), counts[some].reshape(-1))
    return _Chosen(codes[some], first[some], last[some], places, bounds)


def _pieces(
    visit: Visit, window: Aligned, codes: Array, first: Array, last: Array
) -> tuple[Array, Array]:
    """For each range of windows the runs of entries from which it is computed, in order of time.
    From the windows' edges inwards, each level covers the time up to the first whole unit of the
    next level:

        level 1              |   whole units   |
        level 0    |  slices |                 |  slices  |
    """
    reach = Reach.of(visit.form, window, first, last)
    heights = visit.heights[visit.part_of[codes]]
    top = len(visit.levels) - 1
    low, high = [reach.low], [reach.high]
    for level in range(1, top + 1):
        shift = BITS * level
        a, b = -(-reach.inner_low >> shift), reach.inner_high >> shift
        low.append(a)
        high.append(np.where(heights >= level, np.maximum(a, b), a))
    left: list[tuple[Array, Array]] = []
    right: list[tuple[Array, Array]] = []
    offset = 0
    for level, entries in enumerate(visit.levels):
        a, b = low[level], high[level]
        inner = np.zeros(len(codes), dtype=bool)
        end = start = b
        if level < top:
            inner = low[level + 1] < high[level + 1]
            end = np.where(inner, low[level + 1] << BITS, b)
            start = np.where(inner, high[level + 1] << BITS, b)
        found = entries.find(codes, a)
        left.append((found + offset, entries.find(codes, end) - found))
        if level < top:
            found = entries.find(codes, start)
            right.append((found + offset, entries.find(codes, b) - found))
        offset += len(entries)
    pieces = [*left, *reversed(right)]
    return np.stack([p[0] for p in pieces], axis=1), np.stack([p[1] for p in pieces], axis=1)


def _gathered(visit: Visit, chosen: _Chosen) -> tuple[Array, list[Any]]:
    """The starts of the chosen entries, and their partials for each group of aggregates."""
    at, levels = chosen.at, visit.levels
    entries = sum(map(len, levels))
    # often all entries are chosen
    whole = len(at) == entries and bool((at[1:] > at[:-1]).all())
    starts = visit.times if whole else visit.times[at]
    made = []
    for i, folds in enumerate(visit.form.folds):
        partials: Any = levels[0].partials[i]
        if len(levels) > 1:
            partials = folds.join([level.partials[i] for level in levels])
        made.append(partials if whole else folds.take(partials, at))
    return starts, made


def _windows(visit: Visit, reader: Reader, chosen: _Chosen) -> Windows:
    """Compute the windows and their answers."""
    starts, held = _gathered(visit, chosen)
    found: Windows | None = None
    each = zip(reader.scans, reader.names, reader.partials(held), strict=True)
    for scan, names, partials in each:
        words, sources = _apart(partials)
        try:
            made = scan.windows_of_slices(
                words, starts, chosen.bounds, chosen.first, chosen.last, sources
            )
        except ScanFailed as failed:
            code = int(chosen.codes[failed.group])
            raise StepFailed(failed.error, names, visit.keys, code, failed.window) from failed.error
        if found is None:
            found = made
        else:
            found.join(made)
    assert found is not None
    return found


def _apart(partials: Any) -> tuple[Any, Sources | None]:
    """Partials as a scan reads them, and the values of those that have numbers for them."""
    if isinstance(partials, Numbered):
        return partials.words, partials.sources
    return partials, None


def _add_sizes(
    visit: Visit, ask: Ask, sized: Sequence[Reader], chosen: _Chosen, windows: Windows
) -> None:
    """Add the answers over other sizes, back from the end of each window."""
    bounds = np.append(0, windows.ends)
    some = np.flatnonzero(np.diff(bounds))  # keys that have windows
    rows = bounds[np.append(some, len(bounds) - 1)]
    first, last = windows.numbers[rows[:-1]], windows.numbers[rows[1:] - 1]
    codes = chosen.codes[some]
    for window, reader in zip(ask.sizes, sized, strict=True):
        # a longer window holds the entries of the query's own window; a shorter one may hold none
        starts, counts = _pieces(visit, window, codes, first, last)
        ends = np.append(0, np.cumsum(counts.sum(axis=1)))
        at = ragged(starts.reshape(-1), counts.reshape(-1))
        times, held = _gathered(visit, _Chosen(codes, first, last, at, ends))
        asked = rows, window.start(windows.numbers), window.end(windows.numbers)
        each = zip(reader.scans, reader.names, reader.partials(held), strict=True)
        for scan, names, partials in each:
            words, sources = _apart(partials)
            try:
                made, lacking = scan.spans_of_slices(words, times, ends, asked, sources)
            except ScanFailed as failed:
                code, number = int(codes[failed.group]), int(first[failed.group])
                raise StepFailed(failed.error, names, visit.keys, code, number) from failed.error
            windows.values |= made
            windows.lacking = joined_reasons(windows.lacking, lacking)


def _held(visit: Visit, ask: Ask, chosen: _Chosen, groups: Array, numbers: Array) -> Array:
    """True for windows that held an entry before the step's slices were inserted."""
    form, levels = visit.form, visit.levels
    units = np.concatenate([e.units << BITS * level for level, e in enumerate(levels)])[chosen.at]
    old = np.concatenate([e.old for e in levels])[chosen.at]
    owners = np.repeat(np.arange(len(chosen.codes)), np.diff(chosen.bounds))
    places = Places(owners, units)
    before = np.append(0, np.cumsum(old))
    low = places.find(groups, form.edges.number(ask.window.start(numbers)))
    high = places.find(groups, form.edges.number(ask.window.end(numbers)))
    held: Array = before[high] > before[low]
    return held
