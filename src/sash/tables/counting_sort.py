"""A counting sort: puts rows in order of key in one pass, if there are few enough keys.

codes   1 0 1 2 0          the number of each row's key
counts  2 2 1              the number of rows of each key; so the keys' rows begin at 0 2 4
places  2 0 3 4 1          each row's place in the order by key; rows of one key keep their order

Threads place pieces of the rows at the same time: each knows how many rows of a key the pieces
before it have.  Then the values move to their places: a thread reads them in the table's order and
writes to as many areas of memory as there are keys.  For 2 million rows of 1,000 keys, places take
1.6 ns a row and a column takes 2.2 ns, where a radix sort of the codes and a gather took 20 ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array, Column, Table
from ..kernels.core import make_core
from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item
from ..kernels.spans import room
from ..operators import count
from .threads import cut_rows, side_by_side

__all__ = ["MOST_KEYS", "counts_by_key", "inverse", "moved", "moved_table", "places_by_key"]

#: For up to so many keys, the ends of the keys' rows fit into the processor's caches.
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


#: The kernel; it does not depend on an operator.
PLACED = Kernel("placed", (count_rows, place_rows), ("count_rows", "place_rows"))


def counts_by_key(codes: Array, keys: int) -> Array:
    """How many rows each key has.  numpy's bincount would hold the interpreter's lock meanwhile."""
    counts = np.zeros(keys, dtype=np.int64)
    core = make_core(PLACED, count.of("int64"), 1)
    with core.call() as call:
        given = call.integers(codes), len(codes)
        core.run.count_rows(core.m, *given, call.integers(counts))
    return counts


def places_by_key(codes: Array, keys: int, threads: int) -> tuple[Array, Array]:
    """Each row's place in the order by key, and the bounds of the keys' rows in that order: one
    more than there are keys."""
    pieces = cut_rows(len(codes))

    def count_of(piece: tuple[int, int]) -> Array:
        return counts_by_key(codes[slice(*piece)], keys)

    counts = np.stack(side_by_side(count_of, pieces, threads), axis=1)
    begins = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    bounds = np.append(begins[:, 0], len(codes))
    places = room(len(codes), np.int64)

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
    """Move each item to its place in a new array."""
    made = room(len(items), items.dtype)

    def put(piece: tuple[int, int]) -> None:
        some = slice(*piece)
        made[places[some]] = items[some]

    side_by_side(put, cut_rows(len(items)), threads)
    return made


def moved_table(table: Table, places: Array, threads: int) -> Table:
    """Move each row of typed columns to its place in new columns."""
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
    """The number of the item at each place."""
    made = room(len(places), places.dtype)

    def put(piece: tuple[int, int]) -> None:
        made[places[slice(*piece)]] = np.arange(*piece)

    side_by_side(put, cut_rows(len(places)), threads)
    return made
