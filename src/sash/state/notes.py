"""Notes on keys, kept in the roots of their parts.

A note is a table in Arrow's IPC format, with the columns k0, k1, … for the keys.  A part has up to
two notes for each query: the revisions of windows (`revisions`), and the last emitted values of
keys (`remembered`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.keys import key_codes
from .key_hash import hash_keys, prefixes_of
from .part import NO_NOTE, NOTES, Note
from .ragged import run_starts
from .visit import Visit

__all__ = ["REMEMBERED", "REVISIONS", "Noted", "key_columns", "note_of", "split_note", "table_of"]

#: The places of the two kinds among a query's notes.
REVISIONS, REMEMBERED = 0, 1


def note_of(table: pa.Table, until: int, keys: int) -> Note:
    """A note with this table, on `keys` keys."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Note(until, keys, sink.getvalue().to_pybytes())


def table_of(note: Note) -> pa.Table:
    """The table of a note, which must not be empty."""
    with pa.ipc.open_stream(pa.py_buffer(note.data)) as reader:
        return reader.read_all()


def key_columns(table: pa.Table, keys: int) -> list[pa.Array]:
    """The first columns of a table, each in one piece."""
    return [pa.concat_arrays(column.chunks) for column in table.columns[:keys]]


def split_note(note: Note, keys: int, bits: int) -> dict[int, Note]:
    """Divide a note by the first bits of its keys' hashes.  The first `keys` columns are the
    keys."""
    if not note.data:
        return {}
    table = table_of(note)
    hashes = hash_keys(key_columns(table, keys), table.num_rows)
    prefixes = prefixes_of(hashes, bits)
    made = {}
    for prefix in np.unique(prefixes).tolist():
        at = np.flatnonzero(prefixes == prefix)
        some = len(np.unique(hashes[at]))
        made[prefix] = note_of(table.take(pa.array(at)), note.until, some)
    return made


class Noted:
    """The notes of one kind and query in the parts of some keys.  These keys, chosen by their codes
    in a visit, and the keys in the notes are numbered together, in order of the keys."""

    def __init__(self, visit: Visit, query: int, kind: int, codes: Array) -> None:
        self._visit = visit
        self._kind = kind = NOTES * query + kind
        self._parts = np.unique(visit.part_of[codes])
        some = [int(p) for p in self._parts if visit.notes[p][kind].data]
        self.tables = [table_of(visit.notes[part][kind]) for part in some]
        rows = [table.num_rows for table in self.tables]
        width = len(visit.keys)
        noted = [key_columns(table, width) for table in self.tables]
        taken = pa.array(codes)
        columns = [
            pa.concat_arrays([column.take(taken), *(keys[i] for keys in noted)])
            for i, column in enumerate(visit.keys)
        ]
        numbers, self._keys = key_codes(columns, len(codes) + sum(rows))
        self.codes = numbers[: len(codes)]
        self.rows = numbers[len(codes) :]  # the key of each row of the tables
        self.part_of = np.empty(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
        self.part_of[self.rows] = np.repeat(np.array(some, dtype=np.int64), rows)
        self.part_of[self.codes] = visit.part_of[codes]

    def replace(self, keys: Array, columns: dict[str, pa.Array], until: Array) -> None:
        """Replace the notes with these rows.  `keys` has the number of each row's key, `until` the
        window until which the row is needed."""
        parts = self.part_of[keys]
        order = np.lexsort((keys, parts))
        taken = pa.array(keys[order])
        made = {f"k{i}": column.take(taken) for i, column in enumerate(self._keys)}
        made |= {name: column.take(pa.array(order)) for name, column in columns.items()}
        table = pa.table(made)
        keys, parts, until = keys[order], parts[order], until[order]
        visit = self._visit
        for part in self._parts.tolist():
            visit.notes[part][self._kind] = NO_NOTE
            visit.noted[part] = True
        starts = run_starts(parts)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(parts)], strict=False):
            count = len(run_starts(keys[start:end]))
            note = note_of(table.slice(start, end - start), int(until[start:end].max()), count)
            visit.notes[int(parts[start])][self._kind] = note
