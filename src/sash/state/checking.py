"""Check that the records of a state are sound: read all of them and compare them with each
other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..stores.sealed import unseal
from . import part_index
from .entries import join_tiles
from .joint import Ask
from .key_hash import hash_keys, prefixes_of
from .notes import key_columns, table_of
from .numbered import NumberedFolds
from .part import NOTES, tile_name, unpack_part
from .part_index import Index, part_name
from .records import Records
from .tile import BITS, Form, Tile

__all__ = ["check", "check_index", "check_names"]


def check(form: Form, records: Records, asks: Sequence[Ask]) -> None:
    """Raise AssertionError if a record is missing, is not needed, or contradicts another one.
    `asks` are those of the last step."""
    rows, used = check_index(records)
    for row in rows:
        used |= _check_part(form, records, row, asks)
    check_names(records, used)


def check_index(records: Records) -> tuple[Array, set[bytes]]:
    """Check the index.  Return the rows of all parts, and the names of the index's records."""
    index = Index(records)
    hashes = np.empty(0, dtype=np.uint64)
    found = index.visit(hashes, part_index.NEVER + 1, part_index.NEVER + 1)
    used = {name for depth in range(len(index._nodes)) for name in index.names(depth)}
    _check_nodes(index)
    _check_apart(found.rows)
    return found.rows, used if len(index._loaded[0]) else set()


def check_names(records: Records, used: set[bytes]) -> None:
    """Check that the store has exactly these records, and that none of them is damaged."""
    names = set()
    for key, data in records.store.scan(records.prefix):
        unseal(data, key)
        names.add(key[len(records.prefix) :])
    assert used == names, (sorted(used - names), sorted(names - used))


def _check_nodes(index: Index) -> None:
    """Check that a node's row has the least `due` and `drop` of its children."""
    for depth, children in enumerate(index._loaded[1:], 1):
        above = index._loaded[depth - 1]
        for node in index._nodes[depth]:
            (row,) = above[(above["prefix"] == node) & (above["node"] != 0)]
            mine = children[children["prefix"] & part_index.above(depth) == node]
            assert len(mine)
            assert row["due"] == mine["due"].min()
            assert row["drop"] == mine["drop"].min()


def _check_apart(rows: Array) -> None:
    """Check that no two parts cover the same hash."""
    spans = sorted((int(p), int(p) + (1 << 64 - int(b))) for p, b in rows[["prefix", "bits"]])
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def _check_part(form: Form, records: Records, row: Any, asks: Sequence[Ask]) -> set[bytes]:
    """Check a part, and return the names of its records."""
    prefix, bits = int(row["prefix"]), int(row["bits"])
    used = {part_name(prefix, bits)}
    (body,) = records.need(list(used))
    head, entries = unpack_part(memoryview(body), form.queries)
    tiles = {0: form.unpack(entries, head.height)}
    _check_keys(form, tiles[0], prefix, bits)
    assert len(tiles[0].counts) or head.height == 0
    assert len(tiles[0].counts) or any(note.data for note in head.notes)
    for level in range(head.height - 1, -1, -1):
        numbers = sorted({int(n) for tile in tiles.values() for n in tile.units})
        names = [tile_name(prefix, bits, level, n) for n in numbers]
        used |= set(names)
        below = {
            n: form.unpack(memoryview(b), level)
            for n, b in zip(numbers, records.need(names), strict=True)
        }
        for number, tile in below.items():
            assert (tile.units >> BITS == number).all()
            _check_keys(form, tile, prefix, bits)
        _check_totals(form, level, tiles, below, asks)
        tiles = below
    slices = np.concatenate([tile.units for tile in tiles.values()])
    _check_visits(form, head, row, slices, asks)
    return used


def _check_keys(form: Form, tile: Tile, prefix: int, bits: int) -> None:
    hashes = hash_keys(tile.keys, len(tile.counts))
    if bits:
        assert (prefixes_of(hashes, bits) == prefix).all()
    assert len(np.unique(hashes)) == len(hashes)
    assert (tile.counts > 0).all()
    for start, count in zip(np.cumsum(tile.counts) - tile.counts, tile.counts, strict=True):
        units = tile.units[start : start + count]
        assert (np.diff(units) >= (0 if tile.marks else 1)).all()
        for mark in tile.marks[:1]:
            assert (np.diff(mark[start : start + count]) >= 0).all()


def _check_totals(
    form: Form, level: int, above: dict[int, Tile], below: dict[int, Tile], asks: Sequence[Ask]
) -> None:
    """Check that an entry above is the aggregate of the entries below, unless some of those were
    dropped."""
    stated = _numbered(form, list(above.values()), level + 1)
    entries = _numbered(form, list(below.values()), level)
    assert len(stated.codes)
    total = entries.totals(stated.codes, stated.units, BITS)
    whole = np.unique(np.stack([entries.codes, entries.units >> BITS]), axis=1)
    assert whole.shape[1] == len(stated)
    at = np.arange(len(stated))
    if asks:
        kept = min(form.edges.number(ask.reach.start(ask.step.keep)) for ask in asks)
        at = np.flatnonzero(stated.units << BITS * (level + 1) >= kept)
    encoded = zip(form.folds, stated.encoded(at), total.encoded(at), strict=True)
    for folds, mine, right in encoded:
        if isinstance(folds, NumberedFolds):
            both = folds.join([mine, right]).words
            mine, right = both[: len(at)], both[len(at) :]
            picked = folds.picked
            assert np.array_equal(np.delete(mine, picked, 1), np.delete(right, picked, 1))
        elif isinstance(mine, np.ndarray):
            assert np.array_equal(mine, right)
        else:
            assert mine == right


def _numbered(form: Form, tiles: list[Tile], level: int) -> Any:
    """The entries of tiles.  A key's code is the rank of its hash, so that two levels with the same
    keys have the same codes."""
    hashes = np.concatenate([hash_keys(tile.keys, len(tile.counts)) for tile in tiles])
    codes = np.unique(hashes, return_inverse=True)[1]
    return join_tiles(form, tiles, codes.astype(np.int64), level)


def _check_visits(form: Form, head: Any, row: Any, slices: Array, asks: Sequence[Ask]) -> None:
    """Check that the index says when a step must visit the part."""
    window, edges = form.window, form.edges
    drop = -part_index.NEVER
    if len(slices):
        assert head.youngest >= slices.max()
        drop = window.last(edges.time(head.youngest))
        right = part_index.NEVER
        times = edges.time(slices)
        for ask in asks:
            first, last, due = ask.window.first(times), ask.window.last(times), ask.step.due
            alive = form.visited_at(ask.window, np.maximum(first, due)[last >= due])
            right = min(right, alive.min(initial=part_index.NEVER))
        if asks:
            assert row["due"] == right if head.height == 0 else row["due"] <= right
    for kind, note in enumerate(head.notes):
        if note.data:
            if asks:
                drop = max(drop, form.visited_at(asks[kind // NOTES].window, note.until))
            table = table_of(note)
            hashes = hash_keys(key_columns(table, len(form.key_schema)), table.num_rows)
            assert (prefixes_of(hashes, int(row["bits"]) or 64) == int(row["prefix"])).all() or (
                not row["bits"]
            )
            assert len(np.unique(hashes)) == note.keys
    assert not asks or row["drop"] == drop
