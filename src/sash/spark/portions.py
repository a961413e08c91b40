"""Cuts the rows of a task into portions of its keys, so that a task's memory is bounded.

    batches ─→ in memory, as long as they are few ─────→ portions with a bounded number of windows
            └→ else files, by the first bits of the key's hash ─→ the rows of each file, likewise

A portion has all rows of its keys.  It cannot be cut further than to one key of the task, which is
one stretch of windows of a user's key: memory must hold all its rows, however many they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.key_hash import hash_keys
from ..tables.arrow import one_array

__all__ = ["Portions"]

_BYTES = 128 << 20  # the most bytes of rows in memory; a task needs about four times as much in all
_CHUNK = 16 << 20  # bytes of rows that are written to files at a time
_BITS = 5  # so many bits of a hash choose a row's file
_LEVELS = 4  # so many times the rows of a file may go to files again
_WINDOWS = 1 << 20  # the most windows of a portion, by an estimate
_MOST = 4096  # the most portions of rows in memory: each takes some milliseconds


@dataclass(frozen=True)
class Portions:
    """Cuts the rows of a task.  The columns at `places` are the key; a time is in `held` windows; a
    key has at most `length` windows, or any number if `length` is 0."""

    places: list[int]
    held: int
    length: int

    def of(self, batches: Iterable[pa.RecordBatch], level: int = 0) -> Iterator[pa.Table]:
        """Cut the rows of batches into portions."""
        rest = (batch for batch in batches if batch.num_rows)
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rest:
            held.append(batch)
            size += batch.nbytes
            if size > _BYTES and level < _LEVELS:
                yield from self._from_files(held, rest, level)
                return
        if held:
            yield from self._cut(pa.Table.from_batches(held))

    def _cut(self, table: pa.Table) -> Iterator[pa.Table]:
        """Cut rows in memory by their keys, so that each portion has a bounded number of windows.
        The estimate of their number is the less of two: `held` for each row, or `length` for each
        key."""
        rows = table.num_rows
        most = rows * self.held
        if most > _WINDOWS:
            hashes = self._hashes(table)
            if self.length:
                most = min(most, len(pa.array(hashes).unique()) * self.length)
        portions = min(-(-most // _WINDOWS), _MOST)
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
        with TemporaryDirectory(prefix="sash-", dir=_folder()) as folder:
            paths = [Path(folder) / f"{number}" for number in range(1 << _BITS)]
            with ExitStack() as opened:
                files = [
                    opened.enter_context(pa.ipc.new_stream(str(path), schema)) for path in paths
                ]
                while held:
                    table = pa.Table.from_batches(held)
                    held.clear()
                    of = (self._hashes(table) >> shift).astype(np.uint16) % (1 << _BITS)
                    for number, part in _parts(table, of):
                        files[number].write_table(part)
                    size = 0
                    for batch in rest:
                        held.append(batch)
                        size += batch.nbytes
                        if size > _CHUNK:
                            break
            for path in paths:
                with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                    yield from self.of(reader, level + 1)
                path.unlink()

    def _hashes(self, table: pa.Table) -> Array:
        return hash_keys([one_array(table.column(at)) for at in self.places], table.num_rows)


def _parts(table: pa.Table, of: Array) -> Iterator[tuple[int, pa.Table]]:
    """Split rows by their numbers `of`: each number, and its rows."""
    order = np.argsort(of, kind="stable")
    numbers, starts = np.unique(of[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    for number, start, end in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield number, table.take(pa.array(order[start:end]))


def _folder() -> str | None:
    """The folder of Spark's own temporary files; None if it is not known."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
