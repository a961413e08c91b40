"""Entries of one level, of all keys that a step touches, in order of key and time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from .contract import StepFailed
from .folds import FoldFailed, Folds
from .numbered import NumberedFolds
from .ragged import Places, ragged, run_starts
from .tile import Form, Tile

__all__ = ["Entries", "EntryFailed", "join_tiles", "naming_failures"]

_NONE = np.empty(0, dtype=np.int64)


class EntryFailed(RuntimeError):
    """`combine` raised an error for an entry of these aggregates, this key and this window."""

    def __init__(self, error: Exception, names: tuple[str, ...], code: int, window: int) -> None:
        super().__init__(f"combine of {', '.join(names)} raised")
        self.error, self.names, self.code, self.window = error, names, code, window


@contextmanager
def naming_failures(keys: list[pa.Array]) -> Iterator[None]:
    """Turn an `EntryFailed` into a `StepFailed`, which names the key."""
    try:
        yield
    except EntryFailed as at:
        raise StepFailed(at.error, at.names, keys, at.code, at.window) from at.error


@dataclass
class Entries:
    """Entries in order of code, unit and marks.  A code is the number of a key.  `old` is True for
    entries that the state held before it inserted the step's slices."""

    form: Form
    codes: Array = field(default_factory=_NONE.copy)
    units: Array = field(default_factory=_NONE.copy)
    partials: list[Any] = field(default_factory=list)
    marks: list[Array] = field(default_factory=list)
    old: Array = field(default_factory=lambda: np.empty(0, dtype=bool))

    def __post_init__(self) -> None:
        if not self.partials:
            self.partials = [folds.join([]) for folds in self.form.folds]
        self._places: Places | None = None
        self._encoded: dict[int, list[bytes | None]] = {}

    def __len__(self) -> int:
        return len(self.codes)

    def find(self, codes: Array, units: Array) -> Array:
        """For each code and unit the place of the first entry at or after it."""
        if self._places is None:
            self._places = Places(self.codes, self.units)
        return self._places.find(codes, units)

    def take(self, at: Array) -> Entries:
        """The entries at these places, which rise."""
        return Entries(
            self.form,
            self.codes[at],
            self.units[at],
            [f.take(p, at) for f, p in zip(self.form.folds, self.partials, strict=True)],
            [mark[at] for mark in self.marks],
            self.old[at],
        )

    def merge(self, new: Entries, *, replace: bool = False) -> Entries:
        """These entries and new ones.  Where both have an entry, combine the two partials or, with
        `replace`, take the new one."""
        if not len(new):
            return self
        codes = np.concatenate([self.codes, new.codes])
        units = np.concatenate([self.units, new.units])
        marks = [np.concatenate(pair) for pair in zip(self.marks, new.marks, strict=True)]
        order = _order(codes, units, marks)
        at = run_starts(*(column[order] for column in (codes, *(marks or [units]))))
        heads = order[at]
        # the place that each entry goes to; an old entry comes before a new one in the same place
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.repeat(np.arange(len(at)), np.diff(np.append(at, len(order))))
        merging = _Merging(len(at), place[: len(self)], place[len(self) :])
        partials: list[Any] = []
        for folds, old, more in zip(self.form.folds, self.partials, new.partials, strict=True):
            try:
                partials.append(
                    merging.replaced(folds, old, more)
                    if replace
                    else merging.combined(folds, old, more)
                )
            except FoldFailed as failed:
                row = heads[merging.place_of(failed.run)]
                raise self._failure(failed, len(partials), codes[row], units[row], 0) from failed
        was = np.concatenate([self.old, new.old])[heads]
        return Entries(
            self.form, codes[heads], units[heads], partials, [m[heads] for m in marks], was
        )

    def totals(self, codes: Array, tiles: Array, shift: int) -> Entries:
        """One entry for each of these pairs of key and tile: the key's entries in the tile,
        combined.  A tile has 2^shift units; every pair has at least one entry."""
        start = self.find(codes, tiles << shift)
        counts = self.find(codes, (tiles + 1) << shift) - start
        order, bounds = ragged(start, counts), np.append(0, np.cumsum(counts))
        partials: list[Any] = []
        for folds, held in zip(self.form.folds, self.partials, strict=True):
            try:
                partials.append(folds.fold(held, order, bounds))
            except FoldFailed as failed:
                run = failed.run
                raise self._failure(
                    failed, len(partials), codes[run], tiles[run], shift
                ) from failed
        return Entries(self.form, codes, tiles, partials, [], np.zeros(len(codes), dtype=bool))

    def _failure(
        self, failed: FoldFailed, group: int, code: Any, unit: Any, shift: int
    ) -> EntryFailed:
        time = self.form.edges.time(int(unit) << shift)
        return EntryFailed(
            failed.error, self.form.names[group], int(code), self.form.window.first(time)
        )

    def encoded(self, at: Array) -> list[Any]:
        """The partials of the entries at these places, for each group of aggregates: rows of words,
        a list of encoded objects, or `Numbered` partials."""
        made: list[Any] = []
        for i, (width, encode) in enumerate(zip(self.form.widths, self.form.encoders, strict=True)):
            if width or encode is None:
                made.append(self.partials[i][at])
                continue
            known = self._encoded.setdefault(i, [None] * len(self))
            objects = self.partials[i]
            for j in at.tolist():
                if known[j] is None:
                    known[j] = encode(objects[j])
            made.append([known[j] for j in at.tolist()])
        return made

    @property
    def fixed_size(self) -> int:
        """The bytes that an entry takes without its key and objects."""
        return 1 + 8 * (sum(self.form.widths) + len(self.marks))

    def sizes(self, at: Array) -> Array:
        """The bytes that the entries at these places take, without their keys."""
        sizes = np.full(len(at), self.fixed_size, dtype=np.int64)
        for folds, partials in zip(self.form.folds, self.encoded(at), strict=True):
            if isinstance(folds, NumberedFolds):
                sizes += folds.sizes(partials)
            elif not folds.width:
                sizes += np.array([4 + len(e) for e in partials], dtype=np.int64)
        return sizes


def join_tiles(form: Form, tiles: list[Tile], codes: Array, level: int) -> Entries:
    """The entries of tiles, in order.  `codes` has the codes of the tiles' keys, one tile after the
    other.  A key's entries in one tile are all before, or all after, its entries in another."""
    marks = 0 if level else form.marks
    if not tiles:
        return Entries(form, marks=[_NONE] * marks)
    counts = np.concatenate([tile.counts for tile in tiles])
    units = np.concatenate([tile.units for tile in tiles])
    starts = np.cumsum(counts) - counts
    runs = np.lexsort((units[starts], codes))
    at = ragged(starts[runs], counts[runs])
    return Entries(
        form,
        np.repeat(codes[runs], counts[runs]),
        units[at],
        [
            folds.take(folds.join([tile.partials[i] for tile in tiles]), at)
            for i, folds in enumerate(form.folds)
        ],
        [np.concatenate([tile.marks[i] for tile in tiles])[at] for i in range(marks)],
        np.ones(len(at), dtype=bool),
    )


def _order(codes: Array, units: Array, marks: list[Array]) -> Array:
    """The order of rows by code, then by marks or unit; most rows are in order already."""
    if marks:
        return np.lexsort((*marks[::-1], codes))
    low, span = int(units.min()), int(units.max()) - int(units.min()) + 1
    if (int(codes.max()) + 1) * span >= 2**63:
        return np.lexsort((units, codes))
    # This merges the two sorted runs.  A sort by several columns would not make use of their order.
    return np.argsort(codes * span + (units - low), kind="stable")


class _Merging:
    """A merge of old entries with new ones, by the place that each one goes to.  No two old entries
    go to one place, and no two new ones do.  So an old and a new entry in one place are combined as
    a pair, and all others are only moved."""

    def __init__(self, count: int, old: Array, new: Array) -> None:
        there = np.full(count, -1, dtype=np.int64)
        there[old] = np.arange(len(old))
        self._count, self._old, self._new = count, old, new
        self._alone = np.flatnonzero(there[new] < 0)
        self._met = np.flatnonzero(there[new] >= 0)
        self._meets = there[new[self._met]]
        assert count == len(old) + len(self._alone), "two new entries in one place"

    def place_of(self, pair: int) -> int:
        """The place of a pair of an old entry and a new one."""
        return int(self._new[self._met[pair]])

    def replaced(self, folds: Folds, old: Any, new: Any) -> Any:
        """The partials of all places; a new one replaces an old one."""
        return self._put(folds, [(old, self._old), (new, self._new)])

    def combined(self, folds: Folds, old: Any, new: Any) -> Any:
        """The partials of all places; an old and a new one in one place are combined."""
        pairs = len(self._met)
        both = folds.join([folds.take(old, self._meets), folds.take(new, self._met)])
        order = np.arange(2 * pairs).reshape(2, pairs).T.reshape(-1)  # an old one, a new one, …
        made = folds.fold(both, order, np.arange(0, 2 * pairs + 1, 2))
        alone = folds.take(new, self._alone), self._new[self._alone]
        return self._put(folds, [(old, self._old), alone, (made, self._new[self._met])])

    def _put(self, folds: Folds, groups: list[tuple[Any, Array]]) -> Any:
        if isinstance(folds, NumberedFolds):
            at = np.empty(self._count, dtype=np.int64)
            first = 0
            for _, places in groups:
                at[places] = np.arange(first, first + len(places))
                first += len(places)
            return folds.take(folds.join([partials for partials, _ in groups]), at)
        if folds.width:
            words = np.empty((self._count, folds.width), dtype=np.int64)
            for partials, places in groups:
                words[places] = partials
            return words
        objects: list[Any] = [None] * self._count
        for partials, places in groups:
            for place, partial in zip(places.tolist(), partials, strict=True):
                objects[place] = partial
        return objects
