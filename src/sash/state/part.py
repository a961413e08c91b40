"""A part of a state: the records that hold the slices of some keys, as a tree over time.

The root record of a part is always read.  While it is small it holds all slices of its keys.  When
it has grown and its slices lie far apart in time, they move into tiles, records of 64 neighbouring
slices each, and the root holds one entry for each key and tile instead: the aggregate of the key's
slices there.  When that root has grown, its entries move into tiles of a level above, and so on.

    height 0    root: slices
    height 1    root: entries of level 1    tiles of level 0: slices
    height 2    root: entries of level 2    tiles of level 1    tiles of level 0

What is far from a window's edges is read from high levels, so that a window's result needs a few
records, however many slices it has.  A part whose records grow in keys is split by their hash.

The root also holds notes on its keys: numbers of revisions, and values to compare with.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["NOTES", "NO_NOTE", "Head", "Note", "pack_part", "tile_name", "unpack_part"]

_HEAD = struct.Struct("<BqdI")  # then a line for each note, the entries, and the notes
_NOTE = struct.Struct("<qII")
_TILE = struct.Struct(">cBQBQ")


def tile_name(prefix: int, bits: int, level: int, number: int) -> bytes:
    """The name of a tile's record."""
    return _TILE.pack(b"t", bits, prefix, level, number + 2**63)


#: A query has up to two notes in a part.
NOTES = 2


@dataclass(frozen=True)
class Note:
    """Something noted on some keys of a part, as bytes, of use until a window is closed."""

    until: int
    keys: int
    data: bytes | memoryview


NO_NOTE = Note(-(2**62), 0, b"")


@dataclass(frozen=True)
class Head:
    """What a root says of its part: the height of its tree, the youngest slice that ever was in it,
    about how many slices it has, and the notes of each query."""

    height: int
    youngest: int
    slices: float
    notes: tuple[Note, ...]


def pack_part(head: Head, entries: bytes) -> bytes:
    """A root as bytes."""
    fixed = _HEAD.pack(head.height, head.youngest, head.slices, len(entries))
    lines = [_NOTE.pack(note.until, note.keys, len(note.data)) for note in head.notes]
    return b"".join([fixed, *lines, entries, *(note.data for note in head.notes)])


def unpack_part(body: memoryview, queries: int = 1) -> tuple[Head, memoryview]:
    """A root, and its entries as bytes."""
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
