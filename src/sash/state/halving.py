"""Split a part that has tiles: divide each of its records among the new parts.

This reads and writes all records of the part.  A part is split when its records have doubled in
size, so each slice moves only a few times in its life, whatever the number of keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from . import layout
from .key_hash import hash_keys, prefixes_of
from .notes import split_note
from .part import NO_NOTE, Head, Note, pack_part, tile_name, unpack_part
from .part_index import NEVER, ROWS, part_name
from .ragged import ragged
from .records import Records
from .tile import Form, Packer, Tile
from .visit import Visit

__all__ = ["halve"]


def halve(visit: Visit, row: Array) -> Array:
    """Split a part, by its row in the index, so that its records become small enough; return the
    rows of the new parts."""
    form, records = visit.form, visit.records
    prefix, bits = int(row["prefix"]), int(row["bits"])
    (body,) = records.need([part_name(prefix, bits)])
    head, entries = unpack_part(memoryview(body), form.queries)
    root = form.unpack(entries, head.height)
    tiles, largest = _read(form, records, prefix, bits, head.height, root)
    largest = max(largest, len(body))
    more = max(1, int(np.ceil(np.log2(largest / layout.PAGE))))
    deep = min(bits + more, layout.MOST_BITS)
    notes: dict[int, list[Note]] = {}
    for kind, note in enumerate(head.notes):
        for part, piece in split_note(note, len(root.keys), deep).items():
            notes.setdefault(part, [NO_NOTE] * len(head.notes))[kind] = piece
    made = {}
    pieces = _pieces(form, root, head.height, deep)
    for part in sorted({*pieces, *notes}):
        body_of, keys = pieces.get(part) or (_nothing(form, root), 0)
        noted = notes.get(part, [NO_NOTE] * len(head.notes))
        share = keys / max(len(root.counts), 1)
        height = head.height if keys else 0
        now = Head(height, head.youngest, head.slices * share, tuple(noted))
        records.put(part_name(part, deep), pack_part(now, body_of))
        untils = [visit.until(kind, note) for kind, note in enumerate(noted) if note.data]
        due, drop = NEVER, max(untils, default=NO_NOTE.until)
        if keys:
            due = int(row["due"])
            drop = max(drop, form.window.last(form.edges.time(head.youngest)))
        rest = (float(row[name]) * share for name in ("slices", "bytes"))
        made[part] = (part, deep, 0, due, drop, keys, *rest)
    for (level, number), tile in tiles.items():
        for part, (packed, _) in _pieces(form, tile, level, deep).items():
            records.put(tile_name(part, deep, level, number), packed)
        records.delete(tile_name(prefix, bits, level, number))
    records.delete(part_name(prefix, bits))
    return np.array(list(made.values()), dtype=ROWS)


def _read(
    form: Form, records: Records, prefix: int, bits: int, height: int, root: Tile
) -> tuple[dict[tuple[int, int], Tile], int]:
    """All tiles of a part by level and number, and the size of the largest one in bytes."""
    tiles: dict[tuple[int, int], Tile] = {}
    above, largest = [root], 0
    for level in range(height - 1, -1, -1):
        numbers = np.unique(np.concatenate([tile.units for tile in above])).tolist()
        bodies = records.need([tile_name(prefix, bits, level, n) for n in numbers])
        above = [form.unpack(memoryview(body), level) for body in bodies]
        largest = max(largest, *map(len, bodies))
        tiles |= {(level, n): tile for n, tile in zip(numbers, above, strict=True)}
    return tiles, largest


def _pieces(form: Form, tile: Tile, level: int, bits: int) -> dict[int, tuple[bytes, int]]:
    """Divide the entries of a tile by the first bits of their keys' hashes.  For each prefix,
    return the entries as bytes and the number of their keys."""
    prefixes = prefixes_of(hash_keys(tile.keys, len(tile.counts)), bits)
    order = np.argsort(prefixes, kind="stable")
    counts = tile.counts[order]
    at = ragged((np.cumsum(tile.counts) - tile.counts)[order], counts)
    packer = _packer(form, tile, order, counts, at)
    found, starts = np.unique(prefixes[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    return {
        prefix: (packer.pack(start, end), end - start)
        for prefix, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True)
    }


def _packer(form: Form, tile: Tile, order: Array, counts: Array, at: Array) -> Packer:
    partials = []
    for folds, encode, kept in zip(form.folds, form.encoders, tile.partials, strict=True):
        taken = folds.take(kept, at)
        partials.append(taken if encode is None else [encode(p) for p in taken])
    keys = [column.take(pa.array(order)) for column in tile.keys]
    marks = [mark[at] for mark in tile.marks]
    return Packer(form, keys, counts, tile.units[at], partials, marks)


def _nothing(form: Form, tile: Tile) -> bytes:
    none = np.empty(0, dtype=np.int64)
    return _packer(form, tile, none, none, none).pack(0, 0)
