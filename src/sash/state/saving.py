"""Write the entries of a visit into records, and its parts into the index."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..windows import Aligned
from .halving import halve
from .layout import Layout
from .part import Head, pack_part, tile_name
from .part_index import NEVER, ROWS, part_name
from .ragged import in_pairs, ragged, run_starts
from .tile import BITS, Packer
from .visit import Visit

__all__ = ["save"]

_NO_ENTRIES = np.empty(0, dtype=np.int64)


def save(visit: Visit) -> Array:
    """Write the records that a visit changed, and return the children of the index's root."""
    saving = _Saving(visit, Layout(visit))
    return saving.save()


class _Saving:
    def __init__(self, visit: Visit, layout: Layout) -> None:
        self._visit = visit
        self._layout = layout
        self._records = visit.records

    def save(self) -> Array:
        visit, layout = self._visit, self._layout
        crowded = layout.divide()
        self._prefixes = visit.rows["prefix"].tolist()
        self._bits = visit.rows["bits"].tolist()
        self._sizes = visit.rows["bytes"].astype(np.float64)
        self._describe()
        self._drop()
        for level in range(len(visit.levels)):
            self._write(level)
        self._write_bare()
        rows = self._rows()
        halves = [
            halve(visit, rows[rows["prefix"] == prefix][0])
            for prefix in visit.rows["prefix"][crowded]
        ]
        if halves:
            rows = np.concatenate(
                [rows[~np.isin(rows["prefix"], visit.rows["prefix"][crowded])], *halves]
            )
        return visit.index.replace(rows)

    def _describe(self) -> None:
        """Find how many keys and slices each part has, its youngest slice, and when a step must
        visit it."""
        visit, count = self._visit, len(self._visit.rows)
        self._keys = np.zeros(count, dtype=np.int64)
        for level in range(len(visit.levels)):
            parts = self._layout.parts(level)[run_starts(self._layout.runs[level].codes)]
            here = visit.heights[parts] == level
            self._keys += np.bincount(parts[here], minlength=count)
        runs, parts = self._layout.runs[0], self._layout.parts(0)
        flat = visit.heights == 0
        visit.slices[flat] = np.bincount(parts, runs.counts, minlength=count)[flat]
        visit.youngest[flat] = -NEVER
        youngest = visit.levels[0].units[runs.starts + runs.counts - 1]
        np.maximum.at(visit.youngest, parts, youngest)
        visit.youngest[self._keys == 0] = -NEVER
        visit.rows["due"] = self._due()
        visit.rows["drop"] = self._drop_after()

    def _due(self) -> Array:
        """For each part the first window that may hold one of its slices and is not due yet."""
        visit, step = self._visit, self._visit.step
        asked = list({(ask.window, ask.step.due) for ask in visit.asks})
        number = visit.form.edges.number
        firsts = number(np.array([window.start(undue) for window, undue in asked]))
        oldest = np.stack([self._oldest_from(first) for first in firsts.tolist()])
        due = self._due_of(asked, oldest)
        if step.fresh == step.due:  # then tiles of windows that are not due yet were not read
            deep = visit.heights > 0
            before = np.maximum(visit.rows["due"], step.due)
            due[deep] = np.minimum(due, before)[deep]
        due[visit.youngest < firsts.min()] = NEVER
        return due

    def _oldest_from(self, first: int) -> Array:
        """The first slice of each part from a slice on, which an entry may hold."""
        visit = self._visit
        oldest = np.full(len(visit.rows), NEVER)
        runs, entries = self._layout.runs[0], visit.levels[0]
        at = np.maximum(entries.find(runs.codes, np.full(len(runs.codes), first)), runs.starts)
        alive = at < runs.starts + runs.counts
        np.minimum.at(oldest, self._layout.parts(0)[alive], entries.units[at[alive]])
        for level in range(1, len(visit.levels)):
            entries = visit.levels[level]
            start, end = entries.units << BITS * level, (entries.units + 1) << BITS * level
            alive = (end > first) & self._layout.unknown(level)
            parts = visit.part_of[entries.codes[alive]]
            np.minimum.at(oldest, parts, np.maximum(start[alive], first))
        return oldest

    def _due_of(self, asked: list[tuple[Aligned, int]], oldest: Array) -> Array:
        """The first window of each part that holds something, and that no query was asked for:
        `oldest` has for each query the first slice of each part in such a window."""
        form = self._visit.form
        due = np.full(oldest.shape, NEVER)
        queries, parts = np.nonzero(oldest < NEVER)
        times = form.edges.time(oldest[queries, parts])  # of all queries at once
        ends = np.searchsorted(queries, np.arange(len(asked) + 1))
        for (window, undue), low, high in zip(asked, ends[:-1], ends[1:], strict=True):
            numbers = np.maximum(window.first(times[low:high]), undue)
            due[queries[low:high], parts[low:high]] = form.visited_at(window, numbers)
        least: Array = due.min(axis=0)
        return least

    def _drop_after(self) -> Array:
        """For each part the last window that holds one of its slices or needs one of its notes:
        when it is closed, all of the part can be dropped."""
        visit, form = self._visit, self._visit.form
        drop = np.full(len(visit.rows), -NEVER)
        some = np.flatnonzero(visit.youngest > -NEVER)
        drop[some] = form.window.last(form.edges.time(visit.youngest[some]))
        for part, notes in enumerate(visit.notes):
            for kind, note in enumerate(notes):
                if note.data:
                    drop[part] = max(drop[part], visit.until(kind, note))
        drop[drop == -NEVER] = NEVER
        return drop

    def _drop(self) -> None:
        """Delete the roots of parts that were split, and the tiles that were dropped."""
        for part in np.flatnonzero(self._layout.gone & self._visit.exists).tolist():
            self._records.delete(part_name(self._prefixes[part], self._bits[part]))
        for level, (parts, numbers) in enumerate(self._layout.dropped):
            for part, number in zip(parts.tolist(), numbers.tolist(), strict=True):
                self._records.delete(self._tile_name(part, level, number))

    def _tile_name(self, part: int, level: int, number: int) -> bytes:
        return tile_name(self._prefixes[part], self._bits[part], level, number)

    def _write(self, level: int) -> None:
        """Write the roots and tiles of a level that must be written."""
        visit, layout = self._visit, self._layout
        entries, runs, parts = visit.levels[level], layout.runs[level], layout.parts(level)
        root = visit.heights[parts] == level
        wanted = root & layout.roots[parts]
        if level < len(layout.tiles):
            wanted |= ~root & in_pairs(parts, runs.tiles, layout.tiles[level])
        if not wanted.any():
            return
        # all entries of a root form one record
        runs, parts = runs.where(wanted), parts[wanted]
        tiles = np.where(root[wanted], 0, runs.tiles)
        heads = run_starts(runs.codes, tiles)
        counts = np.add.reduceat(runs.counts, heads)
        order = np.lexsort((runs.codes[heads], tiles[heads], parts[heads]))
        heads, counts = heads[order], counts[order]
        at = ragged(runs.starts[heads], counts)
        parts, tiles = parts[heads], tiles[heads]
        taken = pa.array(runs.codes[heads])
        packer = Packer(
            visit.form,
            [column.take(taken) for column in visit.keys],
            counts,
            entries.units[at],
            entries.encoded(at),
            [mark[at] for mark in entries.marks],
        )
        starts = run_starts(parts, tiles)
        ends = np.append(starts[1:], len(parts))
        places = (parts[starts], tiles[starts], starts, ends)
        for part, tile, start, end in zip(*(p.tolist() for p in places), strict=True):
            body = packer.pack(start, end)
            if visit.heights[part] == level:
                self._put_root(part, body)
            else:
                self._records.put(self._tile_name(part, level, tile), body)

    def _write_bare(self) -> None:
        """Write the roots that have notes but no entries, and delete the roots that have
        neither."""
        visit = self._visit
        packer = Packer(
            visit.form,
            [column.slice(0, 0) for column in visit.keys],
            _NO_ENTRIES,
            _NO_ENTRIES,
            [folds.join([]) for folds in visit.form.folds],
            [_NO_ENTRIES] * visit.form.marks,
        )
        for part in np.flatnonzero(self._layout.roots & (self._keys == 0)).tolist():
            visit.heights[part] = 0
            if any(note.data for note in visit.notes[part]):
                self._put_root(part, packer.pack(0, 0))
            elif visit.exists[part]:
                self._records.delete(part_name(self._prefixes[part], self._bits[part]))

    def _put_root(self, part: int, entries: bytes) -> None:
        visit = self._visit
        head = Head(
            int(visit.heights[part]),
            int(visit.youngest[part]),
            float(visit.slices[part]),
            tuple(visit.notes[part]),
        )
        body = pack_part(head, entries)
        self._sizes[part] = len(body)
        self._records.put(part_name(self._prefixes[part], self._bits[part]), body)

    def _rows(self) -> Array:
        """The rows of the parts that are left, for the index."""
        visit = self._visit
        rows = visit.rows
        rows["keys"], rows["slices"] = self._keys, visit.slices
        fixed = 1 + 8 * (sum(visit.form.widths) + visit.form.marks)
        rows["bytes"] = self._sizes + np.where(visit.heights > 0, visit.slices * fixed, 0)
        noted = np.array([any(n.data for n in notes) for notes in visit.notes], dtype=bool)
        alive: Array = rows[~self._layout.gone & ((self._keys > 0) | noted)]
        assert alive.dtype == ROWS
        return alive
