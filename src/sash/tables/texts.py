"""Numbers texts whose distinct values are known from earlier batches.

Batch after batch of a stream mostly has the same keys.  So a stream keeps the distinct texts of a
key column in order, and a hash table of them: one pass of a kernel finds the place of each row's
text among them.  Arrow's `dictionary_encode` and a sort of its values take twice as long, and hold
the interpreter's lock in between.

    known      place 0   1    2                 row    "b"  "d"  "b"
               "a"  "b"  "d"                    place   1    2    1

If a row has another text, or the texts of a batch are few among the known ones, the batch is
numbered without them, and its own texts are known from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import shared_core
from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item
from ..kernels.spans import room
from .threads import cut_rows, side_by_side

__all__ = ["KnownTexts"]

#: From so many rows on, the kernel is worth the time to compile it in a new process.
MANY = 1 << 12
#: At least so many rows for each known text; otherwise the table is seldom worth its making.
REPEATS = 4
#: At least one in so many known texts must be in a batch.
SHARE = 8


def text_begin(offsets: Any, wide: int, i: int) -> int:
    """The byte at which text i begins."""
    if wide:
        return item(offsets, i)
    return item(offsets + 4 * i, 0) & 0xFFFFFFFF  # a word has two offsets of 32 bits


def text_end(offsets: Any, wide: int, i: int) -> int:
    """The byte at which text i ends."""
    if wide:
        return item(offsets, i + 1)
    return item(offsets + 4 * i, 0) >> 32


def text_word(data: Any, total: int, at: int, left: int) -> int:
    """The word of a text of which `left` bytes are left, from byte `at` on, with zeros behind the
    text.  All texts together have `total` bytes, at least 8."""
    if at + 8 <= total:
        found = item(data + at, 0)
    else:
        found = item(data + total - 8, 0) >> (8 * (at + 8 - total))
    if left < 8:
        found &= (1 << (8 * left)) - 1
    return found


def text_hash(data: Any, total: int, at: int, end: int) -> int:
    """A number for a text, from 0 to 2^63 - 1; equal texts have the same."""
    found = end - at
    while at < end:
        found ^= text_word(data, total, at, end - at)
        found ^= found >> 32
        found = (found * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
        found ^= found >> 32
        at += 8
    return found


def enter_texts(
    m: Memory, offsets: Any, wide: int, data: Any, total: int, count: int, mask: int, table: Any
) -> None:
    """Enter distinct texts into an empty hash table of `mask` + 1 entries, each with the hash and
    the place of a text, counted from 1 on."""
    for k in range(count):
        begin = text_begin(offsets, wide, k)
        hashed = text_hash(data, total, begin, text_end(offsets, wide, k))
        j = hashed & mask
        while item(table, 2 * j + 1):
            j = (j + 1) & mask
        set_item(table, 2 * j, hashed)
        set_item(table, 2 * j + 1, k + 1)


def find_texts(
    m: Memory,
    offsets: Any,
    wide: int,
    data: Any,
    total: int,
    first: int,
    last: int,
    known_offsets: Any,
    known: Any,
    known_total: int,
    mask: int,
    table: Any,
    codes: Any,
    seen: Any,
) -> int:
    """Write the place of each row's text among the known ones into `codes`, and 1 into `seen` for
    each place that occurs.  Return how many places occur, or -1 at the first text that is not
    known."""
    many = 0
    for i in range(first, last):
        begin = text_begin(offsets, wide, i)
        end = text_end(offsets, wide, i)
        hashed = text_hash(data, total, begin, end)
        j = hashed & mask
        place = -1
        while place < 0 and item(table, 2 * j + 1):
            if item(table, 2 * j) == hashed:
                k = item(table, 2 * j + 1) - 1
                at = text_begin(known_offsets, wide, k)
                stop = text_end(known_offsets, wide, k)
                if stop - at == end - begin:
                    b = begin
                    while b < end and text_word(data, total, b, end - b) == text_word(
                        known, known_total, at, stop - at
                    ):
                        b += 8
                        at += 8
                    if b >= end:
                        place = k
            j = (j + 1) & mask
        if place < 0:
            return -1
        set_item(codes, i, place)
        if not item(seen, place):
            set_item(seen, place, 1)
            many += 1
    return many


#: The kernel; it does not depend on an operator.
TEXTS = Kernel(
    "texts",
    (text_begin, text_end, text_word, text_hash, enter_texts, find_texts),
    ("enter_texts", "find_texts"),
)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class _Texts:
    """The offsets and the bytes of a column of texts without nulls, for the kernel.  If there are
    fewer than 8 bytes in `total`, the kernel cannot read them."""

    def __init__(self, column: pa.Array) -> None:
        _, offsets, data = column.buffers()
        self.wide = int(pa.types.is_large_string(column.type))
        self.total = 0 if data is None else data.size
        if self.total >= 8:
            first, core = column.offset * (8 if self.wide else 4), shared_core(TEXTS)
            self._offsets, self.offsets = core.raw(np.frombuffer(offsets, np.uint8)[first:])
            self._data, self.data = core.raw(np.frombuffer(data, np.uint8))


@dataclass(frozen=True)
class _Known:
    """Distinct texts in order, and a hash table of them."""

    values: pa.Array
    texts: _Texts
    table: Array

    @classmethod
    def of(cls, values: pa.Array) -> _Known | None:
        texts = _Texts(values)
        if texts.total < 8:
            return None
        table = np.zeros(2 << (2 * len(values) - 1).bit_length(), dtype=np.int64)
        core = shared_core(TEXTS)
        with core.call() as call:
            given = texts.offsets, texts.wide, texts.data, texts.total
            into = len(values), len(table) // 2 - 1, call.integers(table)
            core.run.enter_texts(core.m, *given, *into)
        return cls(values, texts, table)

    def find(
        self, column: pa.Array, texts: _Texts, threads: int
    ) -> tuple[Array, Array | None] | None:
        """The place of each row's text, and a mask of the places that occur, or None if all do.
        None if a text is not known."""
        core, codes, own = shared_core(TEXTS), room(len(column), np.int64), self.texts
        counts: list[int] = []  # of the places that occur in each piece

        def look(piece: tuple[int, int]) -> Array:
            seen, many = np.zeros(len(self.values), dtype=np.int64), -1
            if -1 not in counts:
                with core.call() as call:
                    given = texts.offsets, texts.wide, texts.data, texts.total
                    known = own.offsets, own.data, own.total
                    table = len(self.table) // 2 - 1, call.integers(self.table)
                    into = call.integers(codes), call.integers(seen)
                    many = core.run.find_texts(core.m, *given, *piece, *known, *table, *into)
            counts.append(many)
            return seen

        pieces = cut_rows(len(column), weight=2) if threads > 1 else [(0, len(column))]
        seen = side_by_side(look, pieces, threads)
        if -1 in counts:
            return None
        return codes, None if len(self.values) in counts else np.logical_or.reduce(seen)


class KnownTexts:
    """The distinct texts of a key column, as far as they are known."""

    def __init__(self) -> None:
        self._known: _Known | None = None
        self._wait = self._next = 0  # batches until texts are kept again, now and the next time

    def __deepcopy__(self, memo: object) -> KnownTexts:
        """A copy that knows no texts yet."""
        return KnownTexts()

    def codes(self, column: pa.Array, threads: int = 1) -> tuple[Array, pa.Array] | None:
        """The place of each row's text among the distinct texts of the column, and these in order;
        None if that is not known."""
        known = self._known
        if known is None or len(column) < MANY or column.type != known.values.type:
            return None
        if column.null_count:
            return None
        texts = _Texts(column)
        found = known.find(column, texts, threads) if texts.total >= 8 else None
        if found is None:
            return None
        codes, seen = found
        self._next = 0
        if seen is None or seen.all():
            return codes, known.values
        there = np.flatnonzero(seen)
        if SHARE * len(there) < len(seen):
            return None
        return (np.cumsum(seen) - 1)[codes], known.values.take(pa.array(there))

    def learn(self, found: pa.Array, rows: int) -> None:
        """Keep the distinct texts of a batch of so many rows, which are in order.  If batches have
        other texts again and again, only ever fewer of them are kept."""
        if rows < MANY or REPEATS * len(found) > rows or found.null_count:
            return
        if not _is_text(found.type):
            return
        if self._wait:
            self._wait -= 1
            return
        self._known, self._wait = _Known.of(found), self._next
        self._next = min(2 * self._next + 1, 63)
