"""A part of a state: the records that hold the slices of some keys, as a tree over time.

A step that visits a part reads the part's root record.  While the root is small, it holds all
slices of its keys.  When it has grown and its slices lie far apart in time, they move into tiles,
which are records of 64 neighbouring slices each.  The root then holds one entry for each key and
tile: the aggregate of the key's slices there.  When that root has grown, its entries move into
tiles of a level above, and so on.

    height 0    root: slices
    height 1    root: entries of level 1    tiles of level 0: slices
    height 2    root: entries of level 2    tiles of level 1    tiles of level 0

A step reads low levels only near a window's edges, and high levels between them, so a window's
result needs few records, however many slices it has.  If a part has too many keys, it is split by
the hashes of its keys.

The root also holds notes on its keys: revisions of windows, and the last emitted values.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["NOTES", "NO_NOTE", "Head", "Note", "pack_part", "tile_name", "unpack_part"]

_HEAD = struct.Struct("<BqdI")  # after it come a line for each note, the entries, and the notes
_NOTE = struct.Struct("<qII")
_TILE = struct.Struct(">cBQBQ")


def tile_name(prefix: int, bits: int, level: int, number: int) -> bytes:
    """The name of a tile's record."""
    return _TILE.pack(b"t", bits, prefix, level, number + 2**63)


#: The number of notes that a query can have in a part.
NOTES = 2


@dataclass(frozen=True)
class Note:
    """A note on some keys of a part, as bytes.  It is needed until window `until` is closed; `keys`
    is the number of the keys."""

    until: int
    keys: int
    data: bytes | memoryview


NO_NOTE = Note(-(2**62), 0, b"")


@dataclass(frozen=True)
class Head:
    """The head of a part's root: the height of the part's tree, the youngest slice that the part
    ever held, the approximate number of its slices, and the notes of each query."""

    height: int
    youngest: int
    slices: float
    notes: tuple[Note, ...]


def pack_part(head: Head, entries: bytes) -> bytes:
    """The bytes of a root."""
    fixed = _HEAD.pack(head.height, head.youngest, head.slices, len(entries))
    lines = [_NOTE.pack(note.until, note.keys, len(note.data)) for note in head.notes]
    return b"".join([fixed, *lines, entries, *(note.data for note in head.notes)])


def unpack_part(body: memoryview, queries: int = 1) -> tuple[Head, memoryview]:
    """The head of a root, and the bytes of its entries."""
    height, youngest, slices, size = _HEAD.unpack_from(body)
    many = NOTES * queries
    start = _HEAD.size + many * _NOTE.size
    at = start + size
    notes = []
    for number in range(many):
        until, keys, length = _NOTE.unpack_from(body, _HEAD.size + number * _NOTE.size)
        notes.append(Note(until, keys, body[at : at + length]))
        at += length
    return Head(height, youngest, slices, tuple(notes)), body[start : start + size]
