"""What comes to a bucket in a micro-batch: held, or in files if it is much.

    payloads ─→ held, as long as they are few ───────────────────→ all, or the rows of some keys
             └→ else files, by the first bits of the key's hash ─→ the rows of some keys

Rows of a key keep the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.lifecycle import Sliced, latest
from ..kernels.columns import Array
from ..state.part_index import root_slots
from ..state.portions import SLOTS, Among, Coming, no_coming
from .payload_slices import Unpacker
from .row_files import RowFile

__all__ = ["Arrivals"]

_BYTES = 64 << 20  # that are held
_CHUNK = 16 << 20  # that are written at a time
#: Files, each with the rows of some slots of the index's root, and as many with slices.  Lanes
#: share them, because they are open at the same time.
_FILES = 64
_SAMPLE = 8192  # rows that say how many keys there are
_MARKS = 20  # bits of a hash that tell keys apart
_NEWEST = 64  # rows of a value among which the newest that counts is, most often
#: What a row weighs by itself, and how many bytes weigh as much as a slice.
_ROW, _SLICE_BYTES = 0.125, 256
#: The same of an event that waits, with all its columns.
_EVENT, _EVENT_BYTES = 1.0, 64


@dataclass(frozen=True)
class _Piece:
    """Rows or slices; in order of their keys' slots, if `bounds` says where each slot begins."""

    table: pa.Table
    sliced: bool
    bounds: Array | None = None

    def among(self, among: Among) -> pa.Table:
        """Those whose keys are in some slots."""
        if among is None:
            return self.table
        assert self.bounds is not None
        start, end = int(self.bounds[among[0]]), int(self.bounds[among[1] + 1])
        return self.table.slice(start, end - start)


class Arrivals:
    """The rows or slices of a bucket's micro-batch; of so many `lanes`, each holds its share."""

    def __init__(self, unpacker: Unpacker, lanes: int = 1) -> None:
        self._unpacker = unpacker
        self._most_bytes, self._chunk = _BYTES // lanes, _CHUNK // lanes
        self._most_files = max(1, _FILES >> (lanes - 1).bit_length())
        self._held: list[_Piece] = []
        self._size = 0  # bytes that are held
        self._files: _Files | None = None
        self._refused = 0
        self._sliced = False
        self._rows, self._slices, self._bytes = 0, 0, 0
        self._marked = np.zeros(0, dtype=bool)
        self._counts = np.zeros(SLOTS)  # of what is in order of slots

    def add(self, payload: bytes | memoryview) -> None:
        """Take in a value."""
        table, refused = self._unpacker.read(payload)
        sliced = refused is not None
        self._sliced |= sliced
        self._refused += refused or 0
        if not table.num_rows:
            return
        self._held.append(_Piece(table, sliced))
        if sliced:
            self._slices += table.num_rows
        else:
            self._rows += table.num_rows
        self._bytes += len(payload)
        self._size += len(payload)
        if self._size > (self._most_bytes if self._files is None else self._chunk):
            self._spill()

    def close(self) -> None:
        """Let go of everything."""
        self._held = []
        if self._files is not None:
            self._files.close()

    # how much it is

    def weight(self, more: float = 0) -> float:
        """About how many slices take as much memory on their way; each slice, and each row that may
        be a slice, takes so much more."""
        return self._plain + (1 + more) * min(self._most, float(self._slices + self._rows))

    @property
    def _plain(self) -> float:
        """What rows weigh by themselves."""
        return _ROW * self._rows + self._bytes / _SLICE_BYTES

    @cached_property
    def _most(self) -> float:
        """About how many keys rows have, and all slices."""
        if self._files is not None or self._rows <= _SAMPLE:
            return float(self._slices + self._rows)
        pieces = [piece.table for piece in self._held if not piece.sliced]
        step = -(-self._rows // _SAMPLE)
        some = pa.concat_tables(
            [table.take(pa.array(np.arange(0, table.num_rows, step))) for table in pieces]
        ).combine_chunks()
        hashes = self._unpacker.hashes(some, sliced=False)
        _, times = np.unique(hashes, return_counts=True)
        # keys that are in the sample once say how many are not in it
        unseen = self._rows * float((times == 1).sum()) / len(hashes)
        return self._slices + len(times) + unseen

    def coming(self, more: float = 0) -> Coming:
        """What there is by slot of the index's root: how much it weighs, and how many keys."""
        if self._files is not None:
            self._spill()
        for at, piece in enumerate(self._held):  # one by one, so that few are there twice
            self._held[at] = self._in_slots(piece)
        if not len(self._marked):
            return no_coming()
        marks = self._marked.reshape(SLOTS, -1).sum(axis=1)
        of_slot = self._marked.size / SLOTS
        with np.errstate(divide="ignore"):
            keys = np.minimum(-of_slot * np.log(1 - marks / of_slot), self._counts)
        every = max(self._rows + self._slices, 1)
        plain = self._plain / every * self._counts
        slices = keys * max(1.0, self._slices / max(float(keys.sum()), 1.0))
        return plain + (1 + more) * np.minimum(slices, self._counts), keys

    def weight_of_events(self) -> float:
        """The same, where each row may be a row of state, and one that is emitted."""
        return _EVENT * self._rows + self._bytes / _EVENT_BYTES

    def coming_events(self) -> Coming:
        """The same, where each row may be a row of state, and one that is emitted."""
        _, keys = self.coming()
        return self.weight_of_events() / max(self._rows, 1) * self._counts, keys

    def _in_slots(self, piece: _Piece) -> _Piece:
        """The same in order of slots, and counted."""
        if piece.bounds is not None:
            return piece
        hashes = self._unpacker.hashes(piece.table, sliced=piece.sliced)
        slots = root_slots(hashes)
        if not len(self._marked):
            self._marked = np.zeros(1 << _MARKS, dtype=bool)
        self._marked[(hashes >> np.uint64(64 - _MARKS)).astype(np.int64)] = True
        counts = np.bincount(slots, minlength=SLOTS)
        self._counts += counts
        return _sorted(piece.table, slots, counts, sliced=piece.sliced)

    def span(self) -> tuple[int, int] | None:
        """The oldest and the newest time, as far as times can be used."""
        found = [
            self._unpacker.span(piece.table, sliced=piece.sliced) for piece in self._pieces(None)
        ]
        spans = [span for span in found if span is not None]
        if not spans:
            return None
        return min(oldest for oldest, _ in spans), max(newest for _, newest in spans)

    # what it is

    def whole(self) -> pa.Table | Sliced:
        """All rows or slices."""
        return self.among(None)

    def among(self, among: Among) -> pa.Table | Sliced:
        """The rows or slices of keys in some slots, after `coming`.  The rows that were refused
        before they came are in the first batch that is asked for."""
        refused, self._refused = self._refused, 0
        rows: list[pa.Table] = []
        slices: list[pa.Table] = []
        for piece in self._pieces(among):
            (slices if piece.sliced else rows).append(piece.among(among))
        return self._unpacker.batch(rows, slices if self._sliced else None, refused)

    def newest(self, newest: Any) -> int | None:
        """The newest time, of all values, as `newest` finds it in a batch."""
        found = None
        for piece in self._pieces(None):
            if piece.sliced:
                batch = self._unpacker.batch([], [piece.table])
                found = latest(found, newest(batch))
                continue
            some = self._unpacker.youngest(piece.table, _NEWEST)
            here = newest(self._batch([some]))
            if here is None and some is not piece.table:  # none of these counts
                here = newest(self._batch([piece.table]))
            found = latest(found, here)
        return found

    def _batch(self, rows: list[pa.Table]) -> pa.Table | Sliced:
        return self._unpacker.batch(rows, [] if self._sliced else None)

    def _pieces(self, among: Among) -> Iterator[_Piece]:
        if self._files is None:
            yield from self._held
            return
        self._spill()
        for slots, tables in self._files.read(among):
            for sliced, table in tables:
                if among is None or (among[0] <= slots[0] and slots[1] <= among[1]):
                    at = np.zeros(SLOTS + 1, dtype=np.int64)
                    at[slots[1] + 1 :] = table.num_rows
                    yield _Piece(table, sliced, at)
                else:
                    of = root_slots(self._unpacker.hashes(table, sliced=sliced))
                    yield _sorted(table, of, np.bincount(of, minlength=SLOTS), sliced=sliced)

    def _spill(self) -> None:
        """Write what is held to files."""
        if self._files is None:
            self._files = _Files(self._most_files)
        held, self._held, self._size = self._held, [], 0
        while held:
            self._files.write(self._in_slots(held.pop(0)))


def _sorted(table: pa.Table, slots: Array, counts: Array, *, sliced: bool) -> _Piece:
    """Rows in order of slots, of which each has so many."""
    order = np.argsort(slots.astype(np.uint8), kind="stable")
    bounds = np.append(0, np.cumsum(counts))
    return _Piece(table.take(pa.array(order)).combine_chunks(), sliced, bounds)


class _Files:
    """Rows and slices in files, each with those of some slots; so many files of each, which is a
    power of two."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._made: dict[tuple[int, bool], RowFile] = {}
        self._last: tuple[int, list[tuple[bool, pa.Table]]] | None = None  # that was read

    def write(self, piece: _Piece) -> None:
        """Write rows or slices in order of slots."""
        for number in range(self._files):
            table = piece.among(self._slots(number))
            if not table.num_rows:
                continue
            key = number, piece.sliced
            if key not in self._made:
                self._made[key] = RowFile(table.schema)
            self._made[key].write(table)

    def read(self, among: Among) -> Iterator[tuple[tuple[int, int], list[tuple[bool, pa.Table]]]]:
        """The files that have keys in some slots: those slots, and their tables.  What was read
        last is held, for the next portion may be in the same file."""
        first, last = among or (0, SLOTS - 1)
        for number in range(first * self._files // SLOTS, last * self._files // SLOTS + 1):
            if self._last is None or self._last[0] != number:
                self._last = None
                self._last = number, list(self._tables(number))
            yield self._slots(number), self._last[1]

    def _tables(self, number: int) -> Iterator[tuple[bool, pa.Table]]:
        for sliced in (False, True):
            file = self._made.get((number, sliced))
            if file is not None:
                yield sliced, file.read().read_all().combine_chunks()

    def _slots(self, number: int) -> tuple[int, int]:
        """The first and the last slot of a file's keys."""
        each = SLOTS // self._files
        return number * each, (number + 1) * each - 1

    def close(self) -> None:
        """Remove the files."""
        self._last = None
        for file in self._made.values():
            file.close()
