"""A counting sort: puts rows in order of key in one pass, if there are few enough keys.

codes   1 0 1 2 0          the number of each row's key
counts  2 2 1              the number of rows of each key; so the keys' rows begin at 0 2 4
places  2 0 3 4 1          each row's place in the order by key; rows of one key keep their order

Threads place pieces of the rows at the same time: each knows how many rows of a key the pieces
before it have.  Then the values move to their places: a thread reads them in the table's order and
writes to as many areas of memory as there are keys.  For 2 million rows of 1,000 keys, places take
1.6 ns a row and a column takes 2.2 ns, where a radix sort of the codes and a gather took 20 ns.

`deal` sorts a piece of a table by ranges of keys, in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..kernels.call import Call
from ..kernels.columns import Array, Column, Table
from ..kernels.core import shared_core
from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_half, set_item
from ..kernels.spans import room
from .threads import cut_rows, side_by_side

__all__ = [
    "MOST_KEYS",
    "counts_by_key",
    "deal",
    "inverse",
    "moved",
    "moved_table",
    "places_by_key",
    "put",
    "repeat",
]

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


def count_parts(m: Memory, codes: Any, rows: int, shift: int, counts: Any) -> None:
    """Count the rows of each range of keys; keys of one range begin with the same digits."""
    for i in range(rows):
        key = item(codes, i) >> shift
        set_item(counts, key, item(counts, key) + 1)


def place_parts(
    m: Memory, codes: Any, rows: int, shift: int, part_of: Any, ends: Any, places: Any
) -> None:
    """Give each row the next place of its part."""
    for i in range(rows):
        part = item(part_of, item(codes, i) >> shift)
        at = item(ends, part)
        set_item(places, i, at)
        set_item(ends, part, at + 1)


def put_narrow(
    m: Memory, codes: Any, first: int, places: Any, rows: int, own: Any, numbers: Any
) -> None:
    """Write each row's code and number to its place, in 32 bits.  Within `place_parts` this would
    take three times as long: the processor would have to find out whether a store changes one of
    the ends that it has loaded ahead."""
    for i in range(rows):
        at = item(places, i)
        set_half(own, at, item(codes, i))
        set_half(numbers, at, first + i)


def put_items(m: Memory, items: Any, places: Any, rows: int, made: Any) -> None:
    """Write each item to its place."""
    for i in range(rows):
        set_item(made, item(places, i), item(items, i))


def repeat_items(m: Memory, items: Any, bounds: Any, count: int, made: Any) -> None:
    """Write item k to the places from bounds[k] up to bounds[k + 1], counted from bounds[0]."""
    begin = item(bounds, 0)
    for k in range(count):
        value = item(items, k)
        for i in range(item(bounds, k) - begin, item(bounds, k + 1) - begin):
            set_item(made, i, value)


_FUNCTIONS = (
    count_rows,
    place_rows,
    count_parts,
    place_parts,
    put_narrow,
    put_items,
    repeat_items,
)

#: The kernel; it does not depend on an operator.
PLACED = Kernel("placed", _FUNCTIONS, tuple(f.__name__ for f in _FUNCTIONS))


def counts_by_key(codes: Array, keys: int, shift: int = 0) -> Array:
    """How many rows each key has, or with `shift` each range of keys.  numpy's bincount would hold
    the interpreter's lock meanwhile."""
    counts = np.zeros(keys, dtype=np.int64)
    core = shared_core(PLACED)
    with core.call() as call:
        given = call.integers(codes), len(codes)
        if shift:
            core.run.count_parts(core.m, *given, shift, call.integers(counts))
        else:
            core.run.count_rows(core.m, *given, call.integers(counts))
    return counts


def deal(
    codes: Array, shift: int, part_of: Array, counts: Array, first: int, own: Array, numbers: Array
) -> Array:
    """Sort the rows of a piece by part, and return each row's place; rows of one part keep their
    order.  A row whose code is c is in the part part_of[c >> shift].  `counts` has the number of
    rows of each part.  Write each row's code to its place in `own`, and its number, counted from
    `first`, to its place in `numbers`."""
    places = np.empty(len(codes), dtype=np.int64)
    core = shared_core(PLACED)
    with core.call() as call:
        given, to = call.integers(codes), call.integers(places)
        ends = call.integers(np.cumsum(counts) - counts)
        core.run.place_parts(core.m, given, len(codes), shift, call.integers(part_of), ends, to)
        if own.dtype == np.int32:
            into = call.halves(own), call.halves(numbers)
            core.run.put_narrow(core.m, given, first, to, len(codes), *into)
            return places
    put(codes, places, own)
    put(np.arange(first, first + len(codes)), places, numbers)
    return places


def put(items: Array, places: Array, made: Array) -> None:
    """Write each item to its place in `made`."""
    if not _in_words(items, made):
        made[places] = items
        return
    core = shared_core(PLACED)
    with core.call() as call:
        given = _words(call, items), call.integers(places), len(items)
        core.run.put_items(core.m, *given, _words(call, made))


def repeat(items: Array, bounds: Array, made: Array) -> None:
    """Write item k to the places of `made` from bounds[k] up to bounds[k + 1], counted from
    bounds[0].  numpy's repeat would hold the interpreter's lock meanwhile, and make an array of its
    own, from which the items would have to be copied."""
    core = shared_core(PLACED)
    with core.call() as call:
        given = _words(call, items), call.integers(bounds), len(items)
        core.run.repeat_items(core.m, *given, _words(call, made))


def _in_words(*arrays: Array) -> bool:
    """True if all items are words of 8 bytes, side by side."""
    return all(a.ndim == 1 and a.dtype.kind in "if" and a.strides == (8,) for a in arrays)


def _words(call: Call, items: Array) -> Any:
    return call.integers(items.view(np.int64))


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
        core = shared_core(PLACED)
        with core.call() as call:
            given = call.integers(codes[first:last]), last - first
            ends, to = call.integers(begins[:, i].copy()), call.integers(places[first:last])
            core.run.place_rows(core.m, *given, ends, to)

    side_by_side(place, range(len(pieces)), threads)
    return places, bounds


def moved(items: Array, places: Array, threads: int) -> Array:
    """Move each item to its place in a new array."""
    made = room(len(items), items.dtype)

    def move(piece: tuple[int, int]) -> None:
        some = slice(*piece)
        made[places[some]] = items[some]  # as fast as `put` if the areas are far apart

    side_by_side(move, cut_rows(len(items)), threads)
    return made


def moved_table(
    table: Table, places: Array, threads: int, known: Iterable[tuple[Array, Array]] = ()
) -> Table:
    """Move each row of typed columns to its place in new columns.  An array that two columns share
    moves once, and one that is `known`, with what it becomes, does not move again."""
    there = {(old.ctypes.data, old.dtype): new for old, new in known}

    def move(values: Array) -> Array:
        which = values.ctypes.data, values.dtype
        if which not in there:
            there[which] = moved(values, places, threads)
        return there[which]

    columns = tuple(
        Column(c.type, move(c.data), None if c.valid is None else move(c.valid))
        for c in table.columns
    )
    return Table(columns, table.kind, table.rows)


def inverse(places: Array, threads: int) -> Array:
    """The number of the item at each place."""
    made = room(len(places), places.dtype)

    def move(piece: tuple[int, int]) -> None:
        made[places[slice(*piece)]] = np.arange(*piece)

    side_by_side(move, cut_rows(len(places)), threads)
    return made
