"""A step's work on the parts of a state: read records, number the keys, insert slices.

A step works on all its parts together.  The entries of each level are one set of arrays, with each
entry's key and time.  First the step reads all records that it will need: the roots of the parts
that slices go to and of the parts that it must visit; then, level by level, the tiles that slices
go to, and the tiles at the edges of the windows that it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.keys import key_codes
from ..windows import Aligned
from .contract import Slices, Step
from .entries import Entries, join_tiles, naming_failures
from .joint import Ask, Joint, joint_step
from .key_hash import hash_keys
from .part import NO_NOTE, NOTES, Note, tile_name, unpack_part
from .part_index import NEVER, Index, part_name
from .ragged import in_pairs, merged_ranges, ragged, unique_pairs
from .records import Records
from .tile import BITS, Form, Tile

__all__ = ["Reach", "Visit"]

_NONE = np.empty(0, dtype=np.int64)
_Pairs = tuple[Array, Array]


@dataclass
class Reach:
    """The slices of ranges of windows.  At least one window of a range holds the slices from `low`
    up to `high`; all windows of the range hold the slices from `inner_low` up to `inner_high`."""

    low: Array
    high: Array
    inner_low: Array
    inner_high: Array

    @classmethod
    def of(cls, form: Form, window: Aligned, first: Array, last: Array) -> Reach:
        """The slices of the windows from `first` to `last`."""
        number = form.edges.number
        return cls(
            number(window.start(first)),
            number(window.end(last)),
            number(window.start(last)),
            number(window.end(first)),
        )

    @classmethod
    def joined(cls, parts: Sequence[Reach], order: Array) -> Reach:
        """Several one after the other, then put into this order."""

        def column(name: str) -> Array:
            return np.concatenate([_NONE, *(getattr(part, name) for part in parts)])[order]

        return cls(*(column(name) for name in ("low", "high", "inner_low", "inner_high")))


class Visit:
    """The parts that a step works on, and their entries.  `asks` says what each query asks of the
    step.  An array with an item for each part is in the order of `rows`."""

    def __init__(
        self, form: Form, records: Records, slices: Slices | None, asks: Sequence[Ask]
    ) -> None:
        self.form = form
        self.records = records
        self.asks = asks
        #: The step in the numbers of windows that the index uses.
        self.step: Step = asks[0].step
        if isinstance(form.window, Joint):
            self.step = joint_step(form.window, asks)
        self._slices = slices
        self.index = Index(records)
        hashes = np.empty(0, dtype=np.uint64)
        if slices is not None:
            hashes = hash_keys(slices.keys, len(slices.bounds) - 1)
        visited = self.index.visit(hashes, self.step.due, self.step.keep, self.step.among)
        self.rows, self.exists = visited.rows, visited.exists
        count = len(self.rows)
        self.heights = np.zeros(count, dtype=np.int64)
        self.youngest = np.full(count, -NEVER, dtype=np.int64)
        self.slices = np.zeros(count)  # about how many slices each part has
        self.notes: list[list[Note]] = [[NO_NOTE] * (NOTES * form.queries) for _ in range(count)]
        self.noted = np.zeros(count, dtype=bool)  # True for parts whose notes changed
        #: the tiles of each level that the step reads, or that slices create, by part and number
        self.tiles: list[_Pairs] = []
        self.touched: list[_Pairs] = []
        self._read: list[list[tuple[int, Tile]]] = [[]]
        self._place(visited.of_keys)
        self._read_roots()
        self._read_tiles()
        self._number()
        with naming_failures(self.keys):
            self._insert()

    # slices

    def _place(self, of_keys: Array) -> None:
        """Find each slice's key in the batch, its unit, and its part."""
        slices = self._slices
        if slices is None:
            self._keys_of = self._units = self._parts = _NONE
            return
        self._keys_of = np.repeat(np.arange(len(of_keys)), np.diff(slices.bounds))
        self._units = self.form.edges.number(slices.starts)
        self._parts = of_keys[self._keys_of]
        self._of_keys = of_keys

    def again(self, ask: Ask) -> tuple[Array, Array, Array]:
        """The windows of a query to emit again: places of slices, and for each place the first and
        the last window that the slice changes."""
        step, slices = ask.step, self._slices
        if not step.again or slices is None:
            return _NONE, _NONE, _NONE
        first = np.maximum(ask.reach.first(slices.starts), step.opened)
        last = np.minimum(ask.reach.last(slices.starts), step.fresh - 1)
        at = np.flatnonzero(first <= last)
        return at, first[at], last[at]

    def codes_of(self, places: Array) -> Array:
        """The codes of the keys of the slices at these places."""
        return self._codes[self._keys_of[places]]

    # records

    def _read_roots(self) -> None:
        at = np.flatnonzero(self.exists).tolist()
        prefixes, bits = self.rows["prefix"].tolist(), self.rows["bits"].tolist()
        names = [part_name(prefixes[part], bits[part]) for part in at]
        for part, body in zip(at, self.records.need(names), strict=True):
            head, entries = unpack_part(memoryview(body), self.form.queries)
            self.heights[part] = head.height
            self.youngest[part] = head.youngest
            self.slices[part] = head.slices
            self.notes[part] = list(head.notes)
            self._add(part, head.height, self.form.unpack(entries, head.height))

    def _add(self, part: int, level: int, tile: Tile) -> None:
        while len(self._read) <= level:
            self._read.append([])
        self._read[level].append((part, tile))

    def _read_tiles(self) -> None:
        """Read the tiles that the step needs, level by level."""
        levels = int(self.heights.max(initial=0))
        self.tiles = [(_NONE, _NONE)] * levels
        self.touched = [self._touched(level) for level in range(levels)]
        if levels:
            self._find_reach()
        for level in range(levels - 1, -1, -1):
            parts, units = self._exist(level)
            wanted = in_pairs(parts, units, self.touched[level])
            wanted |= self._reached(level, parts, units)
            wanted |= self._old(level, parts, units)
            found = parts[wanted], units[wanted]
            rows = self.rows[found[0]]
            places = (rows["prefix"].tolist(), rows["bits"].tolist(), found[1].tolist())
            names = [tile_name(p, b, level, n) for p, b, n in zip(*places, strict=True)]
            bodies = self.records.need(names)
            for part, body in zip(found[0].tolist(), bodies, strict=True):
                self._add(part, level, self.form.unpack(memoryview(body), level))
            both = zip(found, self.touched[level], strict=True)
            self.tiles[level] = unique_pairs(*(np.concatenate(pair) for pair in both))

    def _touched(self, level: int) -> _Pairs:
        """The tiles of a level that slices go to."""
        here = self.heights[self._parts] > level
        return unique_pairs(self._parts[here], self._units[here] >> BITS * (level + 1))

    def _exist(self, level: int) -> _Pairs:
        """The tiles of a level that exist: each is a unit of the level above."""
        above = self._read[level + 1]
        sizes = [len(tile.units) for _, tile in above]
        parts = np.repeat(np.array([part for part, _ in above], dtype=np.int64), sizes)
        return unique_pairs(parts, np.concatenate([_NONE, *(tile.units for _, tile in above)]))

    def _find_reach(self) -> None:
        """Find the windows that the step will answer, by part."""
        owners, found = [_NONE], []
        for ask in dict.fromkeys(self.asks):  # equal asks once
            at, first, last = self.again(ask)
            parts, step = self._parts[at], ask.step
            if step.fresh < step.due:
                every = np.arange(len(self.rows))
                parts = np.concatenate([parts, every])
                first = np.concatenate([first, np.full(len(every), step.fresh)])
                last = np.concatenate([last, np.full(len(every), step.due - 1)])
            parts, first, last = merged_ranges(parts, first, last)
            for window in (ask.window, *ask.sizes):
                owners.append(parts)
                found.append(Reach.of(self.form, window, first, last))
        of = np.concatenate(owners)
        self._reach = Reach.joined(found, np.argsort(of, kind="stable"))
        self._ranges = np.bincount(of, minlength=len(self.rows))
        self._first_range = np.cumsum(self._ranges) - self._ranges

    def _reached(self, level: int, parts: Array, tiles: Array) -> Array:
        """True for tiles at an edge of the windows that the step will answer."""
        times = self._ranges[parts]
        at = np.repeat(np.arange(len(parts)), times)
        reach, i = self._reach, ragged(self._first_range[parts], times)
        start, end = tiles[at] << BITS * (level + 1), (tiles[at] + 1) << BITS * (level + 1)
        touches = (end > reach.low[i]) & (start < reach.high[i])
        inside = (start >= reach.inner_low[i]) & (end <= reach.inner_high[i])
        reached = np.zeros(len(parts), dtype=bool)
        reached[at[touches & ~inside]] = True
        return reached

    def _old(self, level: int, parts: Array, tiles: Array) -> Array:
        """True for tiles whose entries stand for tiles below, some of which can be dropped."""
        if not level:
            return np.zeros(len(parts), dtype=bool)
        old: Array = (tiles << BITS * (level + 1)) < self.kept_from()[parts]
        return old

    def kept_from(self) -> Array:
        """For each part the first slice to keep: the step drops the tiles before it.  If no window
        becomes due, the step does not look for tiles to drop, unless all of a part can be dropped.
        """
        step = self.step
        first = self.form.edges.number(self.form.window.start(step.keep))
        moves = step.fresh < step.due
        kept = np.full(len(self.rows), first if moves else -NEVER)
        young = self.youngest.copy()
        np.maximum.at(young, self._parts, self._units)
        kept[young < first] = NEVER  # drop the whole part
        return kept

    # arrays

    def _number(self) -> None:
        """Number all keys that were read, and the keys of the slices, in order of the keys, and
        make the arrays of entries."""
        form, slices = self.form, self._slices
        read = [tile for level in self._read for _, tile in level]
        sources = [tile.keys for tile in read] + ([slices.keys] if slices else [])
        sizes = [len(tile.counts) for tile in read]
        if form.key_schema:
            columns = [
                pa.concat_arrays([s[i] for s in sources]) if sources else pa.array([], f.type)
                for i, f in enumerate(form.key_schema)
            ]
            codes, self.keys = key_codes(columns, len(columns[0]))
        else:
            codes, self.keys = np.zeros(sum(sizes) + 1, dtype=np.int64), []
        self.key_count = len(self.keys[0]) if self.keys else 1
        self.part_of = np.full(self.key_count, -1, dtype=np.int64)
        self.levels = []
        at = 0
        for level, tiles in enumerate(self._read):
            counts = [len(tile.counts) for _, tile in tiles]
            end = at + sum(counts)
            parts = np.array([part for part, _ in tiles], dtype=np.int64)
            self.part_of[codes[at:end]] = np.repeat(parts, counts)
            self.levels.append(join_tiles(form, [tile for _, tile in tiles], codes[at:end], level))
            at = end
        self._read = []
        if slices is not None:
            self._codes = codes[at:]
            self.part_of[self._codes[: len(self._of_keys)]] = self._of_keys

    def _insert(self) -> None:
        """Insert the slices, and update the totals on the levels above."""
        slices = self._slices
        if slices is None:
            return
        codes = self._codes[self._keys_of]
        marks = [slices.starts, slices.ties][: self.form.marks]
        new = Entries(
            self.form,
            codes,
            self._units,
            slices.partials,
            [mark for mark in marks if mark is not None],
            np.zeros(len(codes), dtype=bool),
        )
        self.levels[0] = self.levels[0].merge(new)
        np.maximum.at(self.youngest, self._parts, self._units)
        for level in range(len(self.levels) - 1):
            here = self.heights[self._parts] > level
            owners, tiles = unique_pairs(codes[here], self._units[here] >> BITS * (level + 1))
            totals = self.levels[level].totals(owners, tiles, BITS)
            self.levels[level + 1] = self.levels[level + 1].merge(totals, replace=True)

    @cached_property
    def times(self) -> Array:
        """When each entry starts, on all levels."""
        edges = self.form.edges
        times = [
            entries.marks[0] if entries.marks else edges.time(entries.units << BITS * level)
            for level, entries in enumerate(self.levels)
        ]
        return times[0] if len(times) == 1 else np.concatenate(times)

    def until(self, kind: int, note: Note) -> int:
        """The window until which a note is needed, in the numbers that the index uses."""
        return int(self.form.visited_at(self.asks[kind // NOTES].window, note.until))

    @property
    def touched_parts(self) -> Array:
        """True for parts that slices go to."""
        touched = np.zeros(len(self.rows), dtype=bool)
        touched[self._parts] = True
        return touched
