"""How the entries of a visit are laid out in records: what is dropped, which parts split, and
which records must be written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from .entries import Entries
from .key_hash import hash_keys, prefixes_of
from .notes import split_note
from .part import NO_NOTE
from .part_index import NEVER, ROWS
from .ragged import in_pairs, run_starts, unique_pairs
from .tile import BITS
from .visit import Visit

__all__ = ["PAGE", "Layout"]

#: A record that grows beyond this is divided.
PAGE = 32_768
#: Bits of the hash that parts may be split by.
MOST_BITS = 56

_Pairs = tuple[Array, Array]


class Layout:
    """The records of a visit.  `roots` is True for parts whose root must be written; `tiles` has,
    for each level, the parts and numbers of tiles that must be; `dropped`, of those that must be
    deleted."""

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
        """The part of each entry of a level."""
        visit = self.visit
        return visit.part_of[visit.levels[level].codes]

    def _count_new(self) -> None:
        """Count the slices that came."""
        visit = self.visit
        new = self.parts(0)[~visit.levels[0].old]
        visit.slices += np.bincount(new, minlength=len(visit.rows))

    # what is dropped

    def _drop_notes(self) -> None:
        """Drop notes that are of use until a window that is not kept."""
        visit = self.visit
        for part, notes in enumerate(visit.notes):
            for kind, note in enumerate(notes):
                if note.data and note.until < visit.step.keep:
                    notes[kind] = NO_NOTE
                    self.roots[part] = True

    def _forget(self) -> None:
        """Drop what no window from `keep` on holds.

        A tile is dropped once all its units are dead, and a root of slices is trimmed if it is
        written anyway or half of it is dead: so a dead slice costs little more than a live one.
        """
        visit = self.visit
        kept = visit.kept_from()
        lost = _empty_pairs()  # keys and tiles of the level below that lost all they had together
        for level in range(1, len(visit.levels)):
            lost = self._forget_units(level, kept, lost)
        entries, parts = visit.levels[0], self.parts(0)
        flat = visit.heights[parts] == 0
        first = visit.form.edges.number(visit.form.window.start(visit.step.keep))
        dead = flat & (entries.units < first)
        count = len(visit.rows)
        losses = np.bincount(parts[dead], minlength=count)
        half = 2 * losses >= np.bincount(parts[flat], minlength=count)
        trim = (losses > 0) & (self.roots | half)
        self.roots |= trim
        below = ((entries.units >> BITS) + 1 << BITS) <= kept[parts]
        drop = np.where(flat, dead & trim[parts], below)
        if drop.any():
            visit.levels[0] = entries.take(np.flatnonzero(~drop))
        for level, pairs in enumerate(self.tiles):
            alive = ~in_pairs(*pairs, self.dropped[level])
            self.tiles[level] = pairs[0][alive], pairs[1][alive]

    def _forget_units(self, level: int, kept: Array, lost: _Pairs) -> _Pairs:
        """Drop the tiles below a level that are dead, and the entries that stand for them.  The
        totals above are not computed anew: no window that is kept holds the whole of what a dead
        unit is in."""
        visit = self.visit
        entries, parts = visit.levels[level], self.parts(level)
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
        self._lose_slices(parts[top], parts[top & dead])
        inner = dead & ~top
        lost = unique_pairs(entries.codes[inner], entries.units[inner] >> BITS)
        stays = in_pairs(*lost, (left.codes, left.units >> BITS))
        visit.levels[level] = left
        return lost[0][~stays], lost[1][~stays]

    def _lose_slices(self, entries: Array, dead: Array) -> None:
        """Count the slices that go with dead entries of roots, which have the same on average."""
        count = len(self.visit.rows)
        share = np.bincount(dead, minlength=count) / np.bincount(entries, minlength=count).clip(1)
        self.visit.slices *= 1 - share

    def _drop_tiles(self, level: int, parts: Array, numbers: Array) -> None:
        self.dropped[level] = _joined(self.dropped[level], (parts, numbers))

    def _change(self, level: int, parts: Array, units: Array) -> None:
        """Write the records that have these units of a level."""
        top = self.visit.heights[parts] == level
        self.roots[parts[top]] = True
        if level < len(self.tiles):
            more = parts[~top], units[~top] >> BITS
            self.tiles[level] = _joined(self.tiles[level], more)

    def _lower(self) -> None:
        """Put all slices of a part back into its root, if they are few and all here."""
        visit = self.visit
        count = len(visit.rows)
        if not visit.heights.any():
            return
        whole = visit.heights > 0
        for level in range(1, len(visit.levels)):
            whole[self.parts(level)[self.unknown(level)]] = False
        sizes = self._sizes(0, np.flatnonzero(whole[self.parts(0)]))
        low = whole & self.roots & (np.bincount(*sizes, minlength=count) <= PAGE // 2)
        for level in range(1, len(visit.levels)):
            parts = self.parts(level)
            units = visit.levels[level].units
            self._drop_tiles(level - 1, parts[low[parts]], units[low[parts]])
            visit.levels[level] = visit.levels[level].take(np.flatnonzero(~low[parts]))
            owners, numbers = self.tiles[level - 1]
            self.tiles[level - 1] = owners[~low[owners]], numbers[~low[owners]]
        visit.heights[low] = 0
        visit.slices[low] = np.bincount(self.parts(0), minlength=count)[low]

    def unknown(self, level: int) -> Array:
        """True for entries of a level above 0 that stand for a tile that was not read."""
        visit = self.visit
        return ~in_pairs(self.parts(level), visit.levels[level].units, visit.tiles[level - 1])

    # what is divided

    def divide(self) -> Array:
        """Divide roots that are too large: by time, into tiles, if the entries lie in many of
        them; else by keys, into two or more parts.  Returns the parts that have tiles, and too many
        keys for them."""
        visit = self.visit
        self._key_sizes()
        pending = self.roots.copy()
        crowded = np.zeros(len(visit.rows), dtype=bool)
        while pending.any():
            divided = np.zeros(len(visit.rows), dtype=bool)
            for level in range(len(visit.levels)):
                here = pending & (visit.heights == level)
                at = np.flatnonzero(here[self.parts(level)])
                if not here.any():
                    continue
                total, held, largest, keys, tiles = self._measure(level, at)
                large = here & (total > PAGE)
                # nothing is won by a few tiles of which one has nearly everything
                fits = (largest <= PAGE) & (4 * largest <= held)
                # one key cannot be split, but its root can be made smaller
                entries = np.bincount(self.parts(level)[at], minlength=len(large))
                one = (tiles > 3) | ((tiles > 1) & (2 * tiles <= entries))
                fits = (2 * held > PAGE) & np.where(keys > 1, fits, one)
                raised = large & fits
                split = large & ~fits & (keys > 1) & (visit.rows["bits"] < MOST_BITS)
                if raised.any():
                    self._raise(level, raised)
                    divided |= raised
                if level:
                    crowded |= split
                elif split.any():
                    new = self._split(split, total)
                    divided = _grown(divided, len(new), False) | new
                    crowded = _grown(crowded, len(new), False)
                pending = _grown(pending, len(divided), False)
            pending = divided
        for level, pairs in enumerate(self.tiles):
            if len(pairs[0]):
                crowded[self._crowded_tiles(level, pairs)] = True
        return np.flatnonzero(crowded & (visit.rows["bits"] < MOST_BITS))

    def _key_sizes(self) -> None:
        """About how many bytes each key takes in a record."""
        sizes = np.full(self.visit.key_count, 2, dtype=np.int64)
        for column in self.visit.keys:
            kind = column.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy() + 4
            else:
                sizes += -(-column.nbytes // max(len(column), 1))
        self._bytes_of_keys = sizes

    def _sizes(self, level: int, at: Array) -> tuple[Array, Array]:
        """The part and the bytes of some entries of a level."""
        entries = self.visit.levels[level]
        return self.parts(level)[at], entries.sizes(at)

    def _measure(self, level: int, at: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Of some entries of roots, by part: the bytes of the root, of its entries, and of those in
        the largest tile, and how many keys and tiles there are."""
        visit, count = self.visit, len(self.visit.rows)
        parts, sizes = self._sizes(level, at)
        codes = visit.levels[level].codes[at]
        tiles = visit.levels[level].units[at] >> BITS
        heads = run_starts(codes)
        of_keys = self._bytes_of_keys[codes[heads]]
        held = np.bincount(parts, sizes, minlength=count)
        total = held + np.bincount(parts[heads], of_keys, minlength=count)
        keys = np.bincount(parts[heads], minlength=count)
        for part, notes in enumerate(visit.notes):
            if notes[0].data or notes[1].data:
                total[part] += len(notes[0].data) + len(notes[1].data)
                keys[part] = max(keys[part], notes[0].keys, notes[1].keys)
        # tiles matter where there is too much
        large = np.flatnonzero(total[parts] > PAGE)
        owners, numbers = parts[large], tiles[large]
        order = np.lexsort((numbers, owners))
        owners, numbers = owners[order], numbers[order]
        starts = run_starts(owners, numbers)
        largest = np.zeros(count)
        found = np.zeros(count, dtype=np.int64)
        if len(starts):
            each = np.add.reduceat(sizes[large][order], starts)
            np.maximum.at(largest, owners[starts], each)
            found = np.bincount(owners[starts], minlength=count)
        return total, held, largest, keys, found

    def _crowded_tiles(self, level: int, pairs: _Pairs) -> Array:
        """The parts that have a tile, among these, which is too large and has several keys."""
        entries, parts = self.visit.levels[level], self.parts(level)
        at = np.flatnonzero(in_pairs(parts, entries.units >> BITS, pairs))
        owners, sizes = self._sizes(level, at)
        codes, tiles = entries.codes[at], entries.units[at] >> BITS
        heads = run_starts(codes, tiles)
        sizes[heads] += self._bytes_of_keys[codes[heads]]
        single = np.zeros(len(at), dtype=np.int64)
        single[heads] = 1
        order = np.lexsort((tiles, owners))
        starts = run_starts(owners[order], tiles[order])
        large = np.add.reduceat(sizes[order], starts) > PAGE
        several = np.add.reduceat(single[order], starts) > 1
        crowded: Array = owners[order][starts][large & several]
        return crowded

    def _raise(self, level: int, raised: Array) -> None:
        """Move the entries of roots into tiles, and put one entry for each key and tile there."""
        visit = self.visit
        entries, parts = visit.levels[level], self.parts(level)
        at = np.flatnonzero(raised[parts])
        codes, tiles = entries.codes[at], entries.units[at] >> BITS
        pairs = unique_pairs(parts[at], tiles)
        if level + 1 == len(visit.levels):
            visit.levels.append(Entries(visit.form))
            visit.tiles.append(_empty_pairs())
            self.tiles.append(_empty_pairs())
            self.dropped.append(_empty_pairs())
        self.tiles[level] = _joined(self.tiles[level], pairs)
        visit.tiles[level] = _joined(visit.tiles[level], pairs)
        heads = run_starts(codes, tiles)
        totals = entries.totals(codes[heads], tiles[heads], BITS)
        visit.levels[level + 1] = visit.levels[level + 1].merge(totals, replace=True)
        if not level:
            visit.slices[raised] = np.bincount(parts, minlength=len(visit.rows))[raised]
        visit.heights[raised] += 1

    def _split(self, split: Array, total: Array) -> Array:
        """Split parts by more bits of their keys' hashes; True for the new parts."""
        visit = self.visit
        more = np.maximum(np.log2(np.maximum(total, 1) / PAGE).astype(np.int64), 1)
        bits = np.minimum(visit.rows["bits"] + more, MOST_BITS)
        codes = np.flatnonzero(split[visit.part_of] & (visit.part_of >= 0))
        keys = [column.take(pa.array(codes)) for column in visit.keys]
        old = visit.part_of[codes]
        prefixes = prefixes_of(hash_keys(keys, len(codes)), bits[old])
        # notes go with their keys, which may have nothing else
        noted = [
            (part, kind, prefix, note)
            for part in np.flatnonzero(split).tolist()
            for kind in range(2)
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
        """Have new parts, which must be written."""
        visit = self.visit
        visit.rows = np.concatenate([visit.rows, rows])
        count = len(visit.rows)
        visit.exists = _grown(visit.exists, count, False)
        visit.heights = _grown(visit.heights, count, 0)
        visit.slices = _grown(visit.slices, count, 0.0)
        visit.youngest = np.append(visit.youngest, youngest)
        visit.notes += [[NO_NOTE, NO_NOTE] for _ in range(len(rows))]
        self.gone = _grown(self.gone, count, False)
        self.roots = _grown(self.roots, count, True)


def _grown(array: Array, count: int, value: object) -> Array:
    more = np.full(count - len(array), value, dtype=array.dtype)
    return np.concatenate([array, more])


def _empty_pairs() -> _Pairs:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def _joined(one: _Pairs, two: _Pairs) -> _Pairs:
    return unique_pairs(np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]]))
