"""Cuts the rows of a task into portions of its keys, so that a task's memory is bounded.

    batches ─→ in memory, as long as they are few ─────→ portions with a bounded number of windows
            └→ else files, by the first bits of the key's hash ─→ the rows of each file, likewise

A portion has all rows of its keys.  It cannot be cut further than to one key of the task, which is
one stretch of windows of a user's key: memory must hold all its rows, however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.key_hash import hash_keys
from ..tables.arrow import one_array
from ..windows import Aligned
from .row_files import RowFile

__all__ = ["AT_ONCE", "EVENTS", "InPortions", "Portions", "windows_held"]

_BYTES = 128 << 20  # of rows that are held; a task needs about four times as much in all
_CHUNK = 16 << 20  # of rows that are written at a time
_BITS = 5  # of a hash that say which file a row goes to
_LEVELS = 4  # of files whose rows go to files again
_WINDOWS = 1 << 20  # of a portion, as far as that can be told beforehand
_MOST = 4096  # portions of the rows that are held: each takes some milliseconds
AT_ONCE = 65_536  # rows of the result that are handed over at a time: Spark reads as Python writes
#: Windows that take as much memory on their way as a row does where events make the windows.
EVENTS = 4


@dataclass(frozen=True)
class Portions:
    """Cuts the rows of a task.  The columns at `places` are the key; a time is in `held` windows; a
    key has at most `length` windows, or any number if `length` is 0."""

    places: list[int]
    held: int
    length: int
    windows: int = field(default_factory=lambda: _WINDOWS)  # of a portion
    size: int = field(default_factory=lambda: _BYTES)  # of the rows that are held

    def of(self, batches: Iterable[pa.RecordBatch], level: int = 0) -> Iterator[pa.Table]:
        """Cut the rows of batches into portions."""
        rest = (batch for batch in batches if batch.num_rows)
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rest:
            held.append(batch)
            size += batch.nbytes
            if size > self.size and level < _LEVELS:
                yield from self._from_files(held, rest, level)
                return
        if held:
            yield from self._cut(_taken(held))

    def _cut(self, table: pa.Table) -> Iterator[pa.Table]:
        """Cut rows in memory by their keys, so that each portion has a bounded number of windows.
        The estimate of their number is the less of two: `held` for each row, or `length` for each
        key."""
        rows = table.num_rows
        most = rows * self.held
        if most > self.windows:
            hashes = self._hashes(table)
            if self.length:
                most = min(most, len(pa.array(hashes).unique()) * self.length)
        portions = min(-(-most // self.windows), _MOST)
        if portions == 1:
            yield table
        else:
            for _, part in _parts(table, (hashes % np.uint64(portions)).astype(np.uint16)):
                yield part

    def _from_files(
        self, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], level: int
    ) -> Iterator[pa.Table]:
        """Write too many rows for memory (those in `held`, which is emptied, and `rest`) to files,
        and cut the rows of each file into portions."""
        schema = held[0].schema
        shift = np.uint64(64 - _BITS * (level + 1))
        with ExitStack() as opened:
            files = [opened.enter_context(closing(RowFile(schema))) for _ in range(1 << _BITS)]
            while held:
                table = _taken(held)
                of = (self._hashes(table) >> shift).astype(np.uint16) % (1 << _BITS)
                for number, part in _parts(table, of):
                    files[number].write(part)
                size = 0
                for batch in rest:
                    held.append(batch)
                    size += batch.nbytes
                    if size > _CHUNK:
                        break
            for file in files:
                yield from self.of(file.read(), level + 1)
                file.close()

    def _hashes(self, table: pa.Table) -> Array:
        return hash_keys([one_array(table.column(at)) for at in self.places], table.num_rows)


@dataclass(frozen=True)
class InPortions:
    """Does the work of a task on each portion of its rows."""

    portions: Portions
    work: Callable[[pa.Table], pa.Table]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in self.portions.of(batches):
            yield from self.work(table).to_batches(max_chunksize=AT_ONCE)


def windows_held(window: Aligned) -> int:
    """How many windows hold one time."""
    at = window.start(0)
    return int(window.last(at) - window.first(at)) + 1


def _taken(held: list[pa.RecordBatch]) -> pa.Table:
    """A table of batches, which are taken out of the list."""
    table = pa.Table.from_batches(held)
    held.clear()
    return table


def _parts(table: pa.Table, of: Array) -> Iterator[tuple[int, pa.Table]]:
    """Split rows by their numbers `of`: each number, and its rows."""
    table = table.combine_chunks()  # `take` goes through all chunks, for each part
    order = np.argsort(of, kind="stable")
    numbers, starts = np.unique(of[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    for number, start, end in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield number, table.take(pa.array(order[start:end]))
