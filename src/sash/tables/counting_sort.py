"""Rows by key in one pass, where each key has few enough neighbours: a counting sort.

codes   1 0 1 2 0          the key of each row, by number
counts  2 2 1              how many rows each key has, and so where its rows begin: 0 2 4
places  2 0 3 4 1          where the order by key has each row; rows of one key stay as they were

Pieces of the rows are placed side by side: each knows how many rows of a key the ones before it
have.  A row's values then move to its place, reading in the table's order and writing to as many
neighbourhoods as there are keys.  For 2 million rows of 1,000 keys, places take 1.6 ns a row and a
column 2.2, where a radix sort of the codes and a gather took 20.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array, Column, Table
from ..kernels.core import make_core
from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item
from ..operators import count
from .threads import cut_rows, side_by_side

__all__ = ["MOST_KEYS", "inverse", "moved", "moved_table", "places_by_key"]

#: Keys for which the ends of their rows stay in the processor's caches.
MOST_KEYS = 1 << 12


def count_rows(m: Memory, codes: Any, rows: int, counts: Any) -> None:
    """Count the rows of each key; numpy's bincount takes four times as long."""
    for i in range(rows):
        key = item(codes, i)
        set_item(counts, key, item(counts, key) + 1)


def place_rows(m: Memory, codes: Any, rows: int, ends: Any, places: Any) -> None:
    """Give each row the next place of its key."""
    for i in range(rows):
        key = item(codes, i)
        at = item(ends, key)
        set_item(places, i, at)
        set_item(ends, key, at + 1)


#: The kernel, for no operator in particular.
PLACED = Kernel("placed", (count_rows, place_rows), ("count_rows", "place_rows"))


def places_by_key(codes: Array, keys: int, threads: int) -> tuple[Array, Array]:
    """Where the order by key has each row, and where each key's rows begin, with the end of the
    last."""
    pieces = cut_rows(len(codes))

    def count_of(piece: tuple[int, int]) -> Array:
        first, last = piece
        counts = np.zeros(keys, dtype=np.int64)
        core = make_core(PLACED, count.of("int64"), 1)
        with core.call() as call:
            given = call.integers(codes[first:last]), last - first
            core.run.count_rows(core.m, *given, call.integers(counts))
        return counts

    counts = np.stack(side_by_side(count_of, pieces, threads), axis=1)
    begins = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    bounds = np.append(begins[:, 0], len(codes))
    places = np.empty(len(codes), dtype=np.int64)

    def place(i: int) -> None:
        first, last = pieces[i]
        core = make_core(PLACED, count.of("int64"), 1)
        with core.call() as call:
            given = call.integers(codes[first:last]), last - first
            ends, to = call.integers(begins[:, i].copy()), call.integers(places[first:last])
            core.run.place_rows(core.m, *given, ends, to)

    side_by_side(place, range(len(pieces)), threads)
    return places, bounds


def moved(items: Array, places: Array, threads: int) -> Array:
    """Items, each at its place."""
    made = np.empty_like(items)

    def put(piece: tuple[int, int]) -> None:
        some = slice(*piece)
        made[places[some]] = items[some]

    side_by_side(put, cut_rows(len(items)), threads)
    return made


def moved_table(table: Table, places: Array, threads: int) -> Table:
    """Typed columns, each row at its place."""
    columns = tuple(
        Column(
            c.type,
            moved(c.data, places, threads),
            None if c.valid is None else moved(c.valid, places, threads),
        )
        for c in table.columns
    )
    return Table(columns, table.kind, table.rows)


def inverse(places: Array, threads: int) -> Array:
    """Which item is at each place."""
    made = np.empty_like(places)

    def put(piece: tuple[int, int]) -> None:
        made[places[slice(*piece)]] = np.arange(*piece)

    side_by_side(put, cut_rows(len(places)), threads)
    return made
