"""Tiles: the slices of many keys in one stretch of time, as arrays and as bytes.

A tile of level 0 covers 64 neighbouring slices and has an entry for each key and slice that holds
something.  A tile of level 1 covers 64 tiles of level 0, with an entry for each key and tile: the
aggregate of that key's slices there.  And so on up: what is far from a window's edges is read
from high tiles, so that a window's result needs a few tiles, however many slices it has.

    level 1    |  tile 0                                         |  tile 1     64 × 64 slices each
    level 0    |  tile 0  |  tile 1  |  tile 2  |  …  |  tile 63 |  …          64 slices each

Time comes before key in where an entry lives, as all keys' windows move on together: a batch adds
to the young tiles and reads the old ones at the windows' tail, for all keys at once, and
dead tiles are dropped whole.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import decoder, encoder
from ..operators.contract import Operator
from ..windows import Sliding

__all__ = [
    "ASIDE",
    "BITS",
    "REVISIONS",
    "Positions",
    "Tile",
    "decode_tile",
    "encode_tile",
    "open_sealed",
    "seal",
]

BITS = 6  # 64 entries a key in each tile
#: Levels of records that are not the tree's: numbers of revisions, and a window put aside.
REVISIONS, ASIDE = 100, 101

_VERSION = 1
_SEAL = struct.Struct("<4sBI")  # magic, version, checksum
_MAGIC = b"sash"
_COUNTS = struct.Struct("<II")  # keys, entries


@dataclass(frozen=True)
class Positions:
    """Slices numbered in order of time."""

    window: Sliding

    @property
    def per(self) -> int:
        """How many slices there are in a slide."""
        return 2 if self.window.rest else 1

    def of(self, starts: Array) -> Array:
        """The numbers of slices, from their starts."""
        w = self.window
        k, into = np.divmod(starts - w.offset, w.every)
        numbers: Array = k * 2 + (into >= w.rest) if w.rest else k
        return numbers

    def start(self, positions: Array) -> Array:
        """The starts of slices, from their numbers."""
        w = self.window
        if not w.rest:
            positions = positions * w.every
            return positions + w.offset
        k, second = np.divmod(positions, 2)
        starts: Array = w.offset + k * w.every + second * w.rest
        return starts

    def first(self, window: int) -> int:
        """The first slice of the window that starts then."""
        return (window - self.window.offset) // self.window.every * self.per

    @property
    def levels(self) -> int:
        """How many levels of tiles there are: a window has no more slices than a highest tile."""
        levels = 3
        while self.last(0) - self.first(0) >= 1 << BITS * levels:
            levels += 1
        return levels

    def last(self, window: int) -> int:
        """Its last slice."""
        w = self.window
        k = (window - w.offset) // w.every + w.size // w.every
        return 2 * k if w.rest else k - 1


@dataclass
class Tile:
    """Entries of one tile: for each key, in the order of `keys`, `counts` of them, at these
    places; and for each operator their partials.

    Where the order of events matters, a slice cannot be one partial, as more events may come
    between those it has.  Then a tile of level 0 has an entry for each time, and with ties put in
    order by a column, for each value of it: these are the `marks`.
    """

    keys: list[pa.Array]
    counts: Array
    at: Array
    partials: list[Any]
    marks: list[Array] = field(default_factory=list)


def seal(body: bytes, place: bytes = b"") -> bytes:
    """A record of the state, with a version and a checksum, which is also of its place."""
    return _SEAL.pack(_MAGIC, _VERSION, zlib.crc32(body, zlib.crc32(place))) + body


def open_sealed(data: bytes, place: bytes = b"") -> memoryview:
    """What is in a record, or an error if it is not as it was written."""
    if len(data) < _SEAL.size:
        raise ValueError(f"a record of the state is damaged: it has {len(data)} bytes")
    magic, version, checksum = _SEAL.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError(f"this state is not of version {_VERSION}; it begins {data[:5]!r}")
    body = memoryview(data)[_SEAL.size :]
    if zlib.crc32(body, zlib.crc32(place)) != checksum:
        raise ValueError("a record of the state is damaged: its checksum is not right")
    return body


def encode_tile(tile: Tile, operators: list[Operator]) -> bytes:
    """A tile as bytes."""
    parts = [_COUNTS.pack(len(tile.counts), len(tile.at))]
    parts += [tile.counts.astype("<u4").tobytes(), tile.at.astype("u1").tobytes()]
    keys = b""
    if tile.keys:
        batch = pa.RecordBatch.from_arrays(tile.keys, names=[str(i) for i in range(len(tile.keys))])
        keys = batch.serialize().to_pybytes()
    parts.append(_sized(keys))
    parts += [m.astype("<i8", copy=False).tobytes() for m in tile.marks]
    for operator, partials in zip(operators, tile.partials, strict=True):
        if isinstance(partials, np.ndarray):
            parts.append(_sized(partials.astype("<i8", copy=False).tobytes()))
        else:
            encode = encoder(operator)
            encoded = [encode(p) for p in partials]
            sizes = np.array([len(e) for e in encoded], dtype="<u4").tobytes()
            parts.append(_sized(sizes + b"".join(encoded)))
    return b"".join(parts)


def decode_tile(
    body: bytes | memoryview,
    key_schema: pa.Schema,
    operators: list[Operator],
    widths: list[int],
    marks: int = 0,
) -> Tile:
    """A tile again, from its bytes; `widths` are the words a partial has, 0 for objects, and
    `marks` how many there are."""
    body = memoryview(body)
    keys, entries = _COUNTS.unpack_from(body)
    at = _COUNTS.size
    counts = np.frombuffer(body[at : at + 4 * keys], dtype="<u4").astype(np.int64)
    at += 4 * keys
    places = np.frombuffer(body[at : at + entries], dtype="u1").astype(np.int64)
    at += entries
    raw, at = _take(body, at)
    columns: list[pa.Array] = []
    if len(key_schema):
        columns = pa.ipc.read_record_batch(pa.py_buffer(raw), key_schema).columns
    marked = []
    for _ in range(marks):
        marked.append(np.frombuffer(body[at : at + 8 * entries], dtype="<i8"))
        at += 8 * entries
    partials: list[Any] = []
    for operator, width in zip(operators, widths, strict=True):
        raw, at = _take(body, at)
        if width:
            partials.append(np.frombuffer(raw, dtype="<i8").reshape(entries, width))
        else:
            partials.append(_decode_objects(raw, entries, decoder(operator)))
    return Tile(columns, counts, places, partials, marked)


def _decode_objects(raw: memoryview, count: int, decode: Any) -> list[Any]:
    sizes = np.frombuffer(raw[: 4 * count], dtype="<u4").tolist()
    at, made = 4 * count, []
    for size in sizes:
        made.append(decode(bytes(raw[at : at + size])))
        at += size
    return made


def _sized(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def _take(body: memoryview, at: int) -> tuple[memoryview, int]:
    (size,) = struct.unpack_from("<Q", body, at)
    return body[at + 8 : at + 8 + size], at + 8 + size
