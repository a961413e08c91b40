"""Notes on keys, kept in the roots of their parts: revisions of windows, and remembered values.

A note is a table, as Arrow's own bytes.  Its columns k0, k1, … are the keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .key_hash import hash_keys, prefixes_of
from .part import NO_NOTE, Note

__all__ = ["key_columns", "note_of", "split_note", "table_of"]


def note_of(table: pa.Table, until: int, keys: int) -> Note:
    """A table as a note on some keys."""
    if not table.num_rows:
        return NO_NOTE
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Note(until, keys, sink.getvalue().to_pybytes())


def table_of(note: Note) -> pa.Table:
    """The table in a note that is not empty."""
    with pa.ipc.open_stream(pa.py_buffer(note.data)) as reader:
        return reader.read_all().combine_chunks()


def key_columns(table: pa.Table) -> list[pa.Array]:
    """The key columns of a note's table, or of several that were joined."""
    keys = [name for name in table.column_names if name.startswith("k")]
    return [pa.concat_arrays(table.column(name).chunks) for name in keys]


def split_note(note: Note, bits: int) -> dict[int, Note]:
    """The parts of a note by the first bits of the keys' hashes."""
    if not note.data:
        return {}
    table = table_of(note)
    hashes = hash_keys(key_columns(table), table.num_rows)
    prefixes = prefixes_of(hashes, bits)
    made = {}
    for prefix in np.unique(prefixes).tolist():
        at = np.flatnonzero(prefixes == prefix)
        # rows of one key are neighbours
        keys = int((np.diff(hashes[at]) != 0).sum()) + 1
        made[prefix] = note_of(table.take(pa.array(at)), note.until, keys)
    return made
