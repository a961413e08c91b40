"""A tree of tiles in a store of bytes: slices in, windows out, and only what is touched is read.

A `Visit` changes the tree or asks it.  First all tiles that will be needed are loaded: those that a
batch's slices go to, those at the edges of the windows wanted (`reach`), those that say what is
old (`reach_old`).  Then their keys are numbered together (`number`), and the rest is done on
arrays, one level at a time: `windows`, `forget`, `save`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.keys import key_codes
from .scan import Windows
from .tile import BITS, Tile
from .tile_store import Tiles, TileTree

__all__ = ["Slices", "Visit"]

PLACES = (1 << BITS) - 1
_NONE = np.empty(0, dtype=np.int64)


@dataclass
class Slices:
    """Slices of a batch: the number of each one's key among `keys`, where it starts, and for each
    operator its partial; in order of key and start, none twice.  Where the order of events matters
    they are instants, and `marks` are their times and, with a tie column, its values."""

    keys: list[pa.Array]
    codes: Array
    starts: Array
    partials: list[Any]
    marks: list[Array] = field(default_factory=list)


@dataclass
class _Level:
    """The entries of the tiles loaded at one level; a unit is a slice at level 0, else a tile of
    the level below."""

    tiles: dict[int, Tile | None] = field(default_factory=dict)
    codes: Array = field(default_factory=_NONE.copy)
    units: Array = field(default_factory=_NONE.copy)
    partials: list[Any] = field(default_factory=list)
    marks: list[Array] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)

    def in_order(self) -> Array:
        """The entries in order of key and time."""
        return np.lexsort([*self.marks[::-1], self.units, self.codes])


@dataclass(frozen=True)
class Reach:
    """The slices that windows from one to another need, and those that all of them hold."""

    low: int
    high: int
    inner_low: int
    inner_high: int

    def touches(self, level: int, units: Any) -> Any:
        """Whether units of a level have slices that some of the windows hold."""
        shift = BITS * level
        return ((units + 1 << shift) > self.low) & (units << shift <= self.high)

    def inside(self, level: int, units: Any) -> Any:
        """Whether units of a level lie between the edges of all windows."""
        shift = BITS * level
        last = (units + 1 << shift) - 1
        return (units << shift >= self.inner_low) & (last <= self.inner_high)


class Visit:
    """A batch's work on one tree.  `tops` are the numbers of its highest tiles."""

    def __init__(
        self, tree: TileTree, store: Tiles, tops: Iterable[int], slices: Slices | None = None
    ) -> None:
        self._tree = tree
        self._store = store
        self.tops = set(tops)
        self._slices = slices
        self._top = tree.levels - 1
        self._levels = [_Level() for _ in range(tree.levels)]
        self._positions = _NONE if slices is None else tree.positions.of(slices.starts)
        self._load_touched()

    # what is loaded

    def _load(self, level: int, number: int) -> Tile | None:
        """A tile that is there, or was loaded."""
        tiles = self._levels[level].tiles
        if number not in tiles:
            tiles[number] = self._store.get(level, number)
            if tiles[number] is None:
                raise ValueError(
                    f"the state is damaged: its record {number} of level {level} is missing; go "
                    "back to a checkpoint that has it, or start with a new one"
                )
        return tiles[number]

    def _load_touched(self) -> None:
        """Load the tiles that slices go to, as far as there are any, from the highest down."""
        for level in reversed(range(self._tree.levels)):
            touched = np.unique(self._positions >> BITS * (level + 1)).tolist()
            self._levels[level].changed = set(touched)
            for number in touched:
                if level == self._top:
                    there = number in self.tops
                    self.tops.add(number)
                else:
                    there = number in self._below(level + 1, number >> BITS)
                if there:
                    self._load(level, number)
                else:
                    self._levels[level].tiles[number] = None

    def _below(self, level: int, number: int) -> list[int]:
        """The tiles that one of a higher level stands for."""
        tile = self._load(level, number)
        return [] if tile is None else (np.unique(tile.at) + (number << BITS)).tolist()

    def reach(self, first: int, last: int) -> Reach:
        """Load what is needed for the windows that start from `first` to `last`."""
        where = self._tree.positions
        reach = Reach(where.first(first), where.last(last), where.first(last), where.last(first))
        for number in sorted(self.tops):
            self._reach(reach, self._top, number)
        return reach

    def reach_old(self, before: int, position: int) -> None:
        """Load what says which tiles there are from one slice to another."""
        for number in sorted(self.tops):
            if number << BITS * self._tree.levels < position:
                self._reach_old(self._top, number, before, position)

    def _reach_old(self, level: int, number: int, before: int, position: int) -> None:
        shift = BITS * (level + 1)
        if not level or number + 1 << shift <= before or number << shift >= position:
            return
        for child in self._below(level, number):
            self._reach_old(level - 1, child, before, position)

    def _reach(self, reach: Reach, level: int, number: int) -> None:
        if not reach.touches(level + 1, number):
            return
        if level == 0:
            self._load(level, number)
            return
        below = set(self._below(level, number))
        below |= {n for n in self._levels[level - 1].changed if n >> BITS == number}
        for child in sorted(below):
            if not reach.inside(level, child):
                self._reach(reach, level - 1, child)

    # numbers for keys, and arrays

    def number(self) -> None:
        """Number the keys of all that was loaded together, in their order."""
        tree, slices = self._tree, self._slices
        tiles = [t for level in self._levels for t in level.tiles.values() if t is not None]
        sources = [t.keys for t in tiles] + ([slices.keys] if slices else [])
        sizes = [len(t.counts) for t in tiles]
        if tree.key_schema:
            columns = [
                pa.concat_arrays([s[i] for s in sources]) if sources else pa.array([], type=f.type)
                for i, f in enumerate(tree.key_schema)
            ]
            codes, self.keys = key_codes(columns, len(columns[0]))
        else:
            codes, self.keys = np.zeros(sum(sizes) + 1, dtype=np.int64), []
        at = 0
        for depth, level in enumerate(self._levels):
            codes_here, units = [], []
            partials: list[list[Any]] = [[] for _ in tree.runs]
            marks: list[list[Array]] = [[] for _ in range(0 if depth else tree.marks)]
            for number, tile in level.tiles.items():
                if tile is None:
                    continue
                n = len(tile.counts)
                codes_here.append(np.repeat(codes[at : at + n], tile.counts))
                units.append(tile.at + (number << BITS))
                for many, part in zip(partials, tile.partials, strict=True):
                    many.append(part)
                for stamps, stamp in zip(marks, tile.marks, strict=True):
                    stamps.append(stamp)
                at += n
            if codes_here:
                level.codes, level.units = np.concatenate(codes_here), np.concatenate(units)
            level.partials = [r.join(p) for r, p in zip(tree.runs, partials, strict=True)]
            level.marks = [np.concatenate([_NONE, *m]) for m in marks]
        if slices:
            self._numbers = codes[at:]
            self._before = [replace(level) for level in self._levels]
            self._insert()

    def code_of(self, codes: Array) -> Array:
        """The numbers that keys of the batch have here."""
        return self._numbers[codes] if self._tree.key_schema else codes

    def _insert(self) -> None:
        assert self._slices is not None
        codes, units = self.code_of(self._slices.codes), self._positions
        partials, marks = self._slices.partials, self._slices.marks
        for number, level in enumerate(self._levels):
            self._merge(level, codes, units, partials, marks, replace=number > 0)
            marks = []
            if number < self._top:
                touched = np.isin(level.units >> BITS, list(level.changed))
                codes, units, partials = self._totals(level, touched)

    def _merge(
        self,
        level: _Level,
        codes: Array,
        units: Array,
        partials: list[Any],
        marks: list[Array],
        *,
        replace: bool,
    ) -> None:
        """Put entries into a level, combined with what is there, or instead of it."""
        all_codes = np.concatenate([level.codes, codes])
        all_units = np.concatenate([level.units, units])
        all_marks = [np.concatenate(pair) for pair in zip(level.marks, marks, strict=True)]
        sort = [all_codes, *(all_marks or [all_units])]
        order = np.lexsort(sort[::-1])
        bounds = _bounds(*(column[order] for column in sort))
        heads = order[bounds[:-1]]
        level.codes, level.units = all_codes[heads], all_units[heads]
        level.marks = [m[heads] for m in all_marks]
        made = []
        for runs, old, new in zip(self._tree.runs, level.partials, partials, strict=True):
            both = runs.join([old, new])
            if replace:
                made.append(runs.take(both, order[bounds[1:] - 1]))
            else:
                made.append(runs.fold(both, order, bounds))
        level.partials = made

    def _totals(self, level: _Level, touched: Array) -> tuple[Array, Array, list[Any]]:
        """For each key and touched tile of a level the aggregate of the key's entries there."""
        order = level.in_order()
        order = order[touched[order]]
        above = level.units[order] >> BITS
        bounds = _bounds(level.codes[order], above)
        heads = bounds[:-1]
        partials = [
            runs.fold(p, order, bounds)
            for runs, p in zip(self._tree.runs, level.partials, strict=True)
        ]
        return level.codes[order][heads], above[heads], partials

    # windows

    def had(self, reach: Reach, codes: Array, starts: Array) -> Array:
        """Whether keys had something in windows, which were reached for, before the batch's slices
        came."""
        keys, at, _, _ = self._entries(self._before, reach)
        times = np.unique(at)

        def place(key: Array, time: Array) -> Array:
            """Pairs of a key and a time as numbers in the same order."""
            made: Array = key.astype(np.int64) * (len(times) + 1) + np.searchsorted(times, time)
            return made

        entries = np.sort(place(keys, at))
        first = np.searchsorted(entries, place(codes, starts))
        end = np.searchsorted(entries, place(codes, starts + self._tree.plan.query.window.size))
        found: Array = first < end
        return found

    def _entries(
        self, levels: list[_Level], reach: Reach
    ) -> tuple[Array, Array, Array, list[Array]]:
        """What windows are made of: the key, start and tie of each entry, and which entries of each
        level they are."""
        codes, starts, ties, rows = [], [], [], []
        where = self._tree.positions
        for number, level in enumerate(levels):
            units = level.units
            wanted = reach.touches(number, units)
            if number:
                wanted &= reach.inside(number, units)
            # below what is read as one from a higher tile
            for above in range(number + 1, self._tree.levels):
                wanted &= ~reach.inside(above, units >> BITS * (above - number))
            at = np.flatnonzero(wanted)
            codes.append(level.codes[at])
            shifted = units[at] << BITS * number
            starts.append(level.marks[0][at] if level.marks else where.start(shifted))
            ties.append(level.marks[1][at] if len(level.marks) > 1 else np.zeros(len(at)))
            rows.append(at)
        return np.concatenate(codes), np.concatenate(starts), np.concatenate(ties), rows

    def windows(self, reach: Reach, first: Array, last: Array) -> Windows:
        """The windows from first[key] to last[key], none if last is before first, of all keys that
        hold something; the whole range was reached for.  Groups are keys."""
        all_codes, all_starts, ties, rows = self._entries(self._levels, reach)
        order = np.lexsort((ties, all_starts, all_codes))
        bounds = np.zeros(len(first) + 1, dtype=np.int64)
        np.cumsum(np.bincount(all_codes, minlength=len(first)), out=bounds[1:])
        found: Windows | None = None
        for i, (sweep, runs) in enumerate(zip(self._tree.passes, self._tree.runs, strict=True)):
            parts = [
                runs.take(level.partials[i], at)
                for level, at in zip(self._levels, rows, strict=True)
            ]
            partials = runs.take(runs.join(parts), order)
            made = sweep.windows_of_slices(partials, all_starts[order], bounds, first, last)
            if found is None:
                found = made
            else:
                found.join(made)
        assert found is not None
        return found

    # back to the store

    def forget(self, before: int, position: int) -> None:
        """Nothing before a slice is needed any more (and what was before an earlier one is gone):
        drop the tiles that end before it, and in the others what stands for them.  `reach_old`
        was told."""
        for number in reversed(range(self._tree.levels)):
            level, shift = self._levels[number], BITS * (number + 1)
            low, high = before >> shift, position >> shift
            if number == self._top:
                dead = {n for n in self.tops if n < high}
                self.tops -= dead
            else:
                above = self._levels[number + 1].units
                dead = set(np.unique(above[(above >= low) & (above < high)]).tolist())
            dead |= {n for n in level.tiles if n < high}
            for tile in sorted(dead):
                self._store.put(number, tile, None)
                level.changed.discard(tile)
        for number, level in enumerate(self._levels):
            keep = level.units >> BITS >= position >> BITS * (number + 1)
            if number:
                alive = level.units >= position >> BITS * number
                alive &= self._still_there(number)
                level.changed |= set(np.unique(level.units[keep & ~alive] >> BITS).tolist())
                keep &= alive
            self._keep(level, keep)

    def _still_there(self, number: int) -> Array:
        """Whether a key has entries in a tile that is loaded and was found to have some."""
        level, below = self._levels[number], self._levels[number - 1]
        known = np.isin(level.units, [n for n, t in below.tiles.items() if t is not None])
        known |= np.isin(level.units, list(below.changed))
        there = _pairs(level.codes, level.units)
        return ~known | np.isin(there, _pairs(below.codes, below.units >> BITS))

    def _keep(self, level: _Level, keep: Array) -> None:
        if keep.all():
            return
        at = np.flatnonzero(keep)
        level.codes, level.units = level.codes[at], level.units[at]
        level.marks = [m[at] for m in level.marks]
        level.partials = [
            runs.take(p, at) for runs, p in zip(self._tree.runs, level.partials, strict=True)
        ]

    def save(self) -> None:
        """Write the tiles that changed."""
        for number, level in enumerate(self._levels):
            changed = np.array(sorted(level.changed), dtype=np.int64)
            above = level.units >> BITS
            at = np.flatnonzero(np.isin(above, changed))
            sort = [above, level.codes, level.units, *level.marks]
            order = at[np.lexsort([column[at] for column in reversed(sort)])]
            first = np.searchsorted(above[order], changed).tolist()
            for tile, start, end in zip(changed.tolist(), first, [*first[1:], len(order)]):
                self._save(number, tile, order[start:end])

    def _save(self, number: int, tile: int, at: Array) -> None:
        """Write a tile that has these entries."""
        if not len(at):
            self._store.put(number, tile, None)
            if number == self._top:
                self.tops.discard(tile)
            return
        level = self._levels[number]
        codes, first = np.unique(level.codes[at], return_index=True)
        counts = np.diff(np.append(first, len(at)))
        keys = [k.take(pa.array(codes)) for k in self.keys]
        partials = [
            runs.take(p, at) for runs, p in zip(self._tree.runs, level.partials, strict=True)
        ]
        marks = [m[at] for m in level.marks]
        made = Tile(keys, counts, level.units[at] & PLACES, partials, marks)
        self._store.put(number, tile, made)


def _pairs(codes: Array, units: Array) -> Array:
    """A key's number and a unit as one number; units 2^40 apart do not live at one time."""
    made: Array = codes * (1 << 40) + (units & ((1 << 40) - 1))
    return made


def _bounds(*columns: Array) -> Array:
    """Where runs of equal rows begin, with the end of the last."""
    n = len(columns[0])
    change = np.zeros(n, dtype=bool)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(change), n)
