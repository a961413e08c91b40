"""Windows out of the entries of a visit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.columns import Array
from .contract import AGAIN, NEW, Emitted, StepFailed
from .numbered import Numbered
from .ragged import Places, merged_ranges, ragged
from .scan import Scan, ScanFailed, Windows
from .tile import BITS
from .visit import Reach, Visit

__all__ = ["emit"]


@dataclass
class _Chosen:
    """For ranges of windows, each of one key: the entries that answer them, in order of time, by
    their places among the entries of all levels."""

    codes: Array
    first: Array
    last: Array
    at: Array
    bounds: Array


def emit(visit: Visit, scans: list[Scan]) -> Emitted:
    """The windows that a step emits."""
    chosen = _choose(visit)
    windows = _windows(visit, scans, chosen)
    codes = chosen.codes[windows.groups]
    reasons = np.full(len(codes), NEW, dtype=np.int64)
    before = np.flatnonzero(windows.numbers < visit.step.fresh)
    if len(before):
        held = _held(visit, chosen, windows.groups[before], windows.numbers[before])
        reasons[before[held]] = AGAIN
    return Emitted(
        visit.keys,
        codes,
        windows.numbers,
        reasons,
        windows.values,
        windows.lacking,
        windows.covered if visit.step.changes else None,
    )


def _choose(visit: Visit) -> _Chosen:
    """Which windows are wanted of which keys, and the entries that answer them."""
    step = visit.step
    at, first, last = visit.again()
    codes = visit.codes_of(at) if len(at) else at
    if step.fresh < step.due:
        every = np.flatnonzero(
            visit.part_of >= 0
        )  # the one key of a query without any may have none
        codes = np.concatenate([codes, every])
        first = np.concatenate([first, np.full(len(every), step.fresh)])
        last = np.concatenate([last, np.full(len(every), step.due - 1)])
    if len(at):
        codes, first, last = merged_ranges(codes, first, last)
    starts, counts = _pieces(visit, codes, first, last)
    totals = counts.sum(axis=1)
    some = np.flatnonzero(totals)
    bounds = np.append(0, np.cumsum(totals[some]))
    places = ragged(starts[some].reshape(-1), counts[some].reshape(-1))
    return _Chosen(codes[some], first[some], last[some], places, bounds)


def _pieces(visit: Visit, codes: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """For each range of windows the runs of entries that answer it, in order of time: from the
    windows' edges inwards, each level has what lies beside the next level's whole units.

        level 1              |   whole units   |
        level 0    |  slices |                 |  slices  |
    """
    reach = Reach.of(visit.form, first, last)
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


def _windows(visit: Visit, scans: list[Scan], chosen: _Chosen) -> Windows:
    """The windows and their answers."""
    at, levels = chosen.at, visit.levels
    entries = sum(map(len, levels))
    # often all of them
    whole = len(at) == entries and bool((at[1:] > at[:-1]).all())
    starts = _times(visit) if whole else _times(visit)[at]
    found: Windows | None = None
    for i, (scan, folds) in enumerate(zip(scans, visit.form.folds, strict=True)):
        partials: Any = levels[0].partials[i]
        if len(levels) > 1:
            partials = folds.join([level.partials[i] for level in levels])
        if not whole:
            partials = folds.take(partials, at)
        sources = None
        if isinstance(partials, Numbered):
            partials, sources = partials.words, partials.sources
        try:
            made = scan.windows_of_slices(
                partials, starts, chosen.bounds, chosen.first, chosen.last, sources
            )
        except ScanFailed as failed:
            code = int(chosen.codes[failed.group])
            names = visit.form.names[i]
            raise StepFailed(failed.error, names, visit.keys, code, failed.window) from failed.error
        if found is None:
            found = made
        else:
            found.join(made)
    assert found is not None
    return found


def _times(visit: Visit) -> Array:
    """When each entry starts, on all levels."""
    edges = visit.form.edges
    times = [
        entries.marks[0] if entries.marks else edges.time(entries.units << BITS * level)
        for level, entries in enumerate(visit.levels)
    ]
    return times[0] if len(times) == 1 else np.concatenate(times)


def _held(visit: Visit, chosen: _Chosen, groups: Array, numbers: Array) -> Array:
    """True for windows that held something before the step's slices came."""
    form, levels = visit.form, visit.levels
    units = np.concatenate([e.units << BITS * level for level, e in enumerate(levels)])[chosen.at]
    old = np.concatenate([e.old for e in levels])[chosen.at]
    owners = np.repeat(np.arange(len(chosen.codes)), np.diff(chosen.bounds))
    places = Places(owners, units)
    before = np.append(0, np.cumsum(old))
    low = places.find(groups, form.edges.number(form.window.start(numbers)))
    high = places.find(groups, form.edges.number(form.window.end(numbers)))
    held: Array = before[high] > before[low]
    return held
