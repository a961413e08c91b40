"""Lay out the entries of a visit in records: which entries to drop, which records to divide, and
which ones to write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from .entries import Entries
from .key_hash import hash_keys, prefixes_of
from .notes import split_note
from .part import NO_NOTE, NOTES
from .part_index import NEVER, ROWS
from .ragged import in_pairs, ragged, run_starts, unique_pairs
from .tile import BITS
from .visit import Visit

__all__ = ["PAGE", "Layout", "Runs"]

#: A record of more bytes than this is divided.
PAGE = 32_768
#: The largest number of bits in a part's prefix.
MOST_BITS = 56

_Pairs = tuple[Array, Array]


@dataclass
class Runs:
    """Runs of entries of one level.  A run is all entries of one key in one tile; `starts` is the
    place of its first entry, `counts` the number of its entries."""

    codes: Array
    tiles: Array
    starts: Array
    counts: Array

    @classmethod
    def of(cls, entries: Entries) -> Runs:
        """The runs of all entries of a level."""
        tiles = entries.units >> BITS
        starts = run_starts(entries.codes, tiles)
        counts = np.diff(np.append(starts, len(entries)))
        return cls(entries.codes[starts], tiles[starts], starts, counts)

    def where(self, some: Array) -> Runs:
        """Some of the runs."""
        return Runs(self.codes[some], self.tiles[some], self.starts[some], self.counts[some])


@dataclass
class _Measures:
    """Measures of the roots of parts: the bytes of the root, of its entries, and of its entries in
    the largest tile; the numbers of its keys, entries and runs, and of the tiles they lie in."""

    total: Array
    held: Array
    largest: Array
    keys: Array
    entries: Array
    runs: Array
    tiles: Array


class Layout:
    """The records of a visit.  `roots` is True for parts whose root must be written.  For each
    level, `tiles` has the parts and numbers of the tiles to write, `dropped` those of the tiles to
    delete, and `runs` the entries that are left."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.roots = visit.touched_parts | visit.noted
        self.tiles: list[_Pairs] = list(visit.touched)
        self.dropped: list[_Pairs] = [_empty_pairs() for _ in visit.tiles]
        self.gone = np.zeros(len(visit.rows), dtype=bool)  # parts that were split
        self._count_new()
        self._drop_notes()
        self._forget()
        self._lower()

    def parts(self, level: int) -> Array:
        """The part of each run of a level."""
        return self.visit.part_of[self.runs[level].codes]

    def _sum(self, parts: Array, weights: Array | None = None) -> Array:
        """For each part, how often it occurs in `parts`, or the sum of its weights."""
        return np.bincount(parts, weights, minlength=len(self.visit.rows))

    # what is dropped

    def _count_new(self) -> None:
        """Add the new slices to each part's count."""
        entries = self.visit.levels[0]
        new = entries.codes[~entries.old]
        self.visit.slices += self._sum(self.visit.part_of[new])

    def _drop_notes(self) -> None:
        """Drop the notes that were needed until a window that is closed by now."""
        visit = self.visit
        for part, notes in enumerate(visit.notes):
            for kind, note in enumerate(notes):
                if note.data and note.until < visit.asks[kind // NOTES].step.keep:
                    notes[kind] = NO_NOTE
                    self.roots[part] = True

    def _forget(self) -> None:
        """Drop dead entries: those that no window from `keep` on holds.

        A tile is dropped when all its units are dead.  A root of slices is trimmed if it is written
        anyway, or if half of its slices are dead.  So a dead slice costs little more than a live
        one.
        """
        visit = self.visit
        kept = visit.kept_from()
        lost = _empty_pairs()  # pairs of a key and a tile below that have lost all their entries
        for level in range(1, len(visit.levels)):
            lost = self._forget_units(level, kept, lost)
        self.runs = [Runs.of(entries) for entries in visit.levels]
        self._forget_slices(kept)
        for level, pairs in enumerate(self.tiles):
            alive = ~in_pairs(*pairs, self.dropped[level])
            self.tiles[level] = pairs[0][alive], pairs[1][alive]

    def _forget_units(self, level: int, kept: Array, lost: _Pairs) -> _Pairs:
        """Drop the dead tiles of the level below, and the entries of this level that stand for
        them.  Return the pairs of a key and a tile of this level that have lost all their entries.

        The totals on the levels above stay as they are: no window that is kept holds all of a unit
        with a dead unit in it."""
        visit = self.visit
        entries = visit.levels[level]
        parts = visit.part_of[entries.codes]
        dead = ((entries.units + 1) << BITS * level) <= kept[parts]
        if len(lost[0]):
            dead |= in_pairs(entries.codes, entries.units, lost)
        if not dead.any():
            return _empty_pairs()
        left = entries.take(np.flatnonzero(~dead))
        gone = unique_pairs(parts[dead], entries.units[dead])
        stays = in_pairs(*gone, (parts[~dead], left.units))
        self._drop_tiles(level - 1, gone[0][~stays], gone[1][~stays])
        self._change(level, parts[dead], entries.units[dead])
        top = visit.heights[parts] == level
        # estimate the slices that are gone: each entry of a root stands for equally many
        visit.slices *= 1 - self._sum(parts[top & dead]) / self._sum(parts[top]).clip(1)
        inner = dead & ~top
        lost = unique_pairs(entries.codes[inner], entries.units[inner] >> BITS)
        stays = in_pairs(*lost, (left.codes, left.units >> BITS))
        visit.levels[level] = left
        return lost[0][~stays], lost[1][~stays]

    def _forget_slices(self, kept: Array) -> None:
        """Leave out dead runs of slices, and the dead slices of roots that are trimmed."""
        visit, runs, parts = self.visit, self.runs[0], self.parts(0)
        flat = visit.heights[parts] == 0
        first = visit.form.edges.number(visit.form.window.start(visit.step.keep))
        # slices are in order, so the dead ones come first
        alive = visit.levels[0].find(runs.codes, np.full(len(parts), first))
        dead = np.where(flat, np.clip(alive - runs.starts, 0, runs.counts), 0)
        losses = self._sum(parts, dead)
        half = 2 * losses >= self._sum(parts[flat], runs.counts[flat])
        trim = (losses > 0) & (self.roots | half)
        self.roots |= trim
        dead[~trim[parts]] = 0
        runs.starts, runs.counts = runs.starts + dead, runs.counts - dead
        below = ~flat & ((runs.tiles + 1) << BITS <= kept[parts])
        self.runs[0] = runs.where((runs.counts > 0) & ~below)

    def _drop_tiles(self, level: int, parts: Array, numbers: Array) -> None:
        self.dropped[level] = _joined(self.dropped[level], (parts, numbers))

    def _change(self, level: int, parts: Array, units: Array) -> None:
        """Note that the records with these units of a level must be written."""
        top = self.visit.heights[parts] == level
        self.roots[parts[top]] = True
        if level < len(self.tiles):
            more = parts[~top], units[~top] >> BITS
            self.tiles[level] = _joined(self.tiles[level], more)

    def _lower(self) -> None:
        """Move all slices of a part back into its root, if they are few and all were read."""
        visit = self.visit
        if not visit.heights.any():
            return
        whole = self.roots & (visit.heights > 0)
        for level in range(1, len(visit.levels)):
            owners = visit.part_of[visit.levels[level].codes]
            whole[owners[self.unknown(level)]] = False
        parts = self.parts(0)
        some = whole[parts]
        held = self._sum(parts[some], self._sizes(0, self.runs[0].where(some)))
        low = whole & (held <= PAGE // 2)
        for level in range(1, len(visit.levels)):
            entries = visit.levels[level]
            owners = visit.part_of[entries.codes]
            self._drop_tiles(level - 1, owners[low[owners]], entries.units[low[owners]])
            visit.levels[level] = entries.take(np.flatnonzero(~low[owners]))
            self.runs[level] = Runs.of(visit.levels[level])
            owners, numbers = self.tiles[level - 1]
            self.tiles[level - 1] = owners[~low[owners]], numbers[~low[owners]]
        visit.heights[low] = 0

    def unknown(self, level: int) -> Array:
        """True for entries of a level above 0 that stand for a tile that was not read."""
        visit = self.visit
        entries = visit.levels[level]
        owners = visit.part_of[entries.codes]
        return ~in_pairs(owners, entries.units, visit.tiles[level - 1])

    # what is divided

    def divide(self) -> Array:
        """Divide roots that are too large: by time, into tiles, if the entries lie in several
        tiles; otherwise by keys, into two or more parts.  Return the parts that have tiles and must
        still be split by keys."""
        visit = self.visit
        self._key_sizes()
        pending = self.roots.copy()
        crowded = np.zeros(len(visit.rows), dtype=bool)
        while pending.any():
            divided = np.zeros(len(visit.rows), dtype=bool)
            for level in range(len(visit.levels)):
                here = pending & (visit.heights == level)
                if not here.any():
                    continue
                raised, split = self._judge(level, here)
                if raised.any():
                    self._raise(level, raised)
                    divided |= raised
                if level:
                    crowded |= split > 0
                elif split.any():
                    new = self._split(split)
                    divided = _grown(divided, len(new), False) | new
                    crowded = _grown(crowded, len(new), False)
                pending = _grown(pending, len(divided), False)
            pending = divided
        for level, pairs in enumerate(self.tiles):
            if len(pairs[0]):
                crowded[self._crowded_tiles(level, pairs)] = True
        return np.flatnonzero(crowded & (visit.rows["bits"] < MOST_BITS))

    def _judge(self, level: int, here: Array) -> tuple[Array, Array]:
        """Decide which of these parts get tiles, and by how many bits each part is split."""
        visit = self.visit
        m = self._measure(level, here)
        large = here & (m.total > PAGE)
        # Tiles pay if no tile has nearly all entries; a root with one key cannot be divided in any
        # other way.  If windows are longer than a few tiles, they will soon need tiles.
        share = 4 / 3 if visit.form.slices_held > 4 << BITS else 4
        several = (m.largest <= PAGE) & (share * m.largest <= m.held)
        # units before 0 and from 0 on lie in different tiles, however high the level
        fewer = (m.tiles > 3) | ((m.tiles > 1) & (2 * m.runs <= m.entries))
        raised = large & (2 * m.held > PAGE) & fewer & ((m.keys == 1) | several)
        split = large & ~raised & (m.keys > 1) & (visit.rows["bits"] < MOST_BITS)
        more = np.log2(np.maximum(m.total, 1) / PAGE).astype(np.int64)
        return raised, np.where(split, np.maximum(more, 1), 0)

    def _key_sizes(self) -> None:
        """Estimate the bytes that each key takes in a record."""
        sizes = np.full(self.visit.key_count, 2, dtype=np.int64)
        for column in self.visit.keys:
            kind = column.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy() + 4
            else:
                sizes += -(-column.nbytes // max(len(column), 1))
        self._bytes_of_keys = sizes

    def _sizes(self, level: int, runs: Runs) -> Array:
        """The bytes that runs of a level take, without their keys."""
        entries = self.visit.levels[level]
        if self.visit.form.fixed or not len(runs.counts):
            return runs.counts * entries.fixed_size
        at = ragged(runs.starts, runs.counts)
        starts = np.cumsum(runs.counts) - runs.counts
        sizes: Array = np.add.reduceat(entries.sizes(at), starts)
        return sizes

    def _measure(self, level: int, here: Array) -> _Measures:
        """Measure the roots of parts that have this height."""
        visit, parts = self.visit, self.parts(level)
        runs, parts = self.runs[level].where(here[parts]), parts[here[parts]]
        sizes = self._sizes(level, runs)
        heads = run_starts(runs.codes)
        held = self._sum(parts, sizes)
        total = held + self._sum(parts[heads], self._bytes_of_keys[runs.codes[heads]])
        keys = self._sum(parts[heads])
        for part, notes in enumerate(visit.notes):
            if any(note.data for note in notes):
                total[part] += sum(len(note.data) for note in notes)
                keys[part] = max(keys[part], *(note.keys for note in notes))
        # only roots that are too large need measures of tiles
        large = total[parts] > PAGE
        owners, _, each, _ = _by_tile(parts[large], runs.where(large), sizes[large])
        largest = np.zeros(len(visit.rows))
        np.maximum.at(largest, owners, each)
        counts = self._sum(parts, runs.counts), self._sum(parts), self._sum(owners)
        return _Measures(total, held, largest, keys, *counts)

    def _crowded_tiles(self, level: int, pairs: _Pairs) -> Array:
        """The parts that have one of these tiles, which is too large and has several keys."""
        runs, parts = self.runs[level], self.parts(level)
        some = in_pairs(parts, runs.tiles, pairs)
        runs, parts = runs.where(some), parts[some]
        sizes = self._sizes(level, runs) + self._bytes_of_keys[runs.codes]
        owners, _, each, keys = _by_tile(parts, runs, sizes)
        crowded: Array = owners[(each > PAGE) & (keys > 1)]
        return crowded

    def _raise(self, level: int, raised: Array) -> None:
        """Move the entries of these parts' roots into tiles, and put one entry for each key and
        tile into the roots."""
        visit, parts = self.visit, self.parts(level)
        runs = self.runs[level].where(raised[parts])
        if level + 1 == len(visit.levels):
            visit.levels.append(Entries(visit.form))
            visit.tiles.append(_empty_pairs())
            self.tiles.append(_empty_pairs())
            self.dropped.append(_empty_pairs())
            self.runs.append(Runs.of(visit.levels[-1]))
        pairs = unique_pairs(parts[raised[parts]], runs.tiles)
        self.tiles[level] = _joined(self.tiles[level], pairs)
        visit.tiles[level] = _joined(visit.tiles[level], pairs)
        totals = visit.levels[level].totals(runs.codes, runs.tiles, BITS)
        visit.levels[level + 1] = visit.levels[level + 1].merge(totals, replace=True)
        self.runs[level + 1] = Runs.of(visit.levels[level + 1])
        if not level:
            visit.slices[raised] = self._sum(parts, self.runs[0].counts)[raised]
        visit.heights[raised] += 1

    def _split(self, more: Array) -> Array:
        """Split parts by this many more bits of their keys' hashes.  Return True for the new
        parts."""
        visit, split = self.visit, more > 0
        bits = np.minimum(visit.rows["bits"] + more, MOST_BITS)
        codes = np.flatnonzero(split[visit.part_of] & (visit.part_of >= 0))
        keys = [column.take(pa.array(codes)) for column in visit.keys]
        old = visit.part_of[codes]
        prefixes = prefixes_of(hash_keys(keys, len(codes)), bits[old])
        # notes go to the new parts of their keys, which may have no entries
        noted = [
            (part, kind, prefix, note)
            for part in np.flatnonzero(split).tolist()
            for kind in range(len(visit.notes[part]))
            for prefix, note in split_note(
                visit.notes[part][kind], len(visit.keys), int(bits[part])
            ).items()
        ]
        prefixes = np.append(prefixes, np.array([n[2] for n in noted], dtype=np.uint64))
        old = np.append(old, np.array([n[0] for n in noted], dtype=np.int64))
        found, head, at = np.unique(prefixes, return_index=True, return_inverse=True)
        first = len(visit.rows)
        visit.part_of[codes] = first + at[: len(codes)]
        rows = np.zeros(len(found), dtype=ROWS)
        rows["prefix"], rows["bits"] = found, bits[old[head]]
        rows["due"] = rows["drop"] = NEVER
        self._grow(rows, visit.youngest[old[head]])
        for (_, kind, _, note), place in zip(noted, at[len(codes) :].tolist(), strict=True):
            visit.notes[first + place][kind] = note
        self.gone[:first] |= split
        self.roots[:first] &= ~split
        made = np.zeros(len(visit.rows), dtype=bool)
        made[first:] = True
        return made

    def _grow(self, rows: Array, youngest: Array) -> None:
        """Add new parts, whose roots must be written."""
        visit = self.visit
        visit.rows = np.concatenate([visit.rows, rows])
        count = len(visit.rows)
        visit.exists = _grown(visit.exists, count, False)
        visit.heights = _grown(visit.heights, count, 0)
        visit.slices = _grown(visit.slices, count, 0.0)
        visit.youngest = np.append(visit.youngest, youngest)
        visit.notes += [[NO_NOTE] * (NOTES * visit.form.queries) for _ in range(len(rows))]
        self.gone = _grown(self.gone, count, False)
        self.roots = _grown(self.roots, count, True)


def _by_tile(parts: Array, runs: Runs, sizes: Array) -> tuple[Array, Array, Array, Array]:
    """The part and number of each tile, the bytes of its runs, and the number of its runs."""
    order = np.lexsort((runs.tiles, parts))
    parts, tiles = parts[order], runs.tiles[order]
    starts = run_starts(parts, tiles)
    if not len(starts):
        return parts, tiles, sizes, sizes
    counts = np.diff(np.append(starts, len(parts)))
    return parts[starts], tiles[starts], np.add.reduceat(sizes[order], starts), counts


def _grown(array: Array, count: int, value: object) -> Array:
    more = np.full(count - len(array), value, dtype=array.dtype)
    return np.concatenate([array, more])


def _empty_pairs() -> _Pairs:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def _joined(one: _Pairs, two: _Pairs) -> _Pairs:
    return unique_pairs(np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]]))
