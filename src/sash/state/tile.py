"""Entries of many keys as bytes, and back.

An entry has a key, a unit of time, and a partial for each group of aggregates.  On level 0 a unit
is a slice; on level 1 it is a tile of level 0, which covers 64 neighbouring slices; and so on.

    level 1    |  tile 0                                         |  tile 1     64 × 64 slices each
    level 0    |  tile 0  |  tile 1  |  tile 2  |  …  |  tile 63 |  …          64 slices each

If the order of events matters, a slice cannot be one partial, because a later batch may have events
between the slice's events.  Then level 0 has an entry for each time, and with a tie column for each
(time, tie).  The time and the tie are the entry's `marks`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import decoder, encoder
from ..query.plan import Plan
from ..slicing.edges import Edges, cuts_of, edges_of
from ..windows import Aligned
from .joint import Joint
from .numbered import NumberedFolds, folds_of

__all__ = ["BITS", "Form", "Packer", "Tile"]

#: A tile covers 2^BITS units.
BITS = 6

_HEAD = struct.Struct("<IIqBBI")  # keys, entries, first unit, sizes of counts and units, of keys
_SIZE = struct.Struct("<Q")


@dataclass
class Tile:
    """The entries of a record: for each key as many as `counts` says, in order of time."""

    keys: list[pa.Array]
    counts: Array
    units: Array
    partials: list[Any]
    marks: list[Array] = field(default_factory=list)


class Form:
    """The layout of all records of a state: of one query, or of several queries with joint windows
    and edges."""

    def __init__(
        self, plan: Plan, joint: Joint | None = None, edges: Edges | None = None, queries: int = 1
    ) -> None:
        self.window: Aligned | Joint = joint or plan.query.aligned
        self.edges = edges or edges_of(plan.query.aligned)
        self.queries = queries
        self.operators = [group.operator for group in plan.groups]
        self.names = [group.names for group in plan.groups]
        self.folds = folds_of(plan)
        self.widths = [folds.width for folds in self.folds]
        #: True if all entries take the same number of bytes.
        self.fixed = all(f.width and not isinstance(f, NumberedFolds) for f in self.folds)
        self.encoders = [encoder(o) if not f.width else None for o, f in self._pairs()]
        self._decoders = [decoder(o) if not f.width else None for o, f in self._pairs()]
        cycle, cuts = plan.query.aligned.cycle, cuts_of(plan.query.aligned)
        start = cycle.start(cycle.windows - 1)  # of the last window of a cycle
        self.slices_held = cuts.number(start + cycle.longest) - cuts.number(start)
        if joint is not None:
            self.slices_held = self.edges.number(joint.longest) - self.edges.number(0)
        self.ordered = plan.ordered
        self.marks = (1 + (plan.query.tie is not None)) if plan.ordered else 0
        self.key_schema = pa.schema(
            [(str(i), _value_type(key.type)) for i, key in enumerate(plan.keys)]
        )

    def visited_at(self, window: Aligned, number: Any) -> Any:
        """The number that the index uses for a window of a query."""
        return self.window.numbered(window, number) if isinstance(self.window, Joint) else number

    def _pairs(self) -> Any:
        return zip(self.operators, self.folds, strict=True)

    def unpack(self, body: memoryview, level: int) -> Tile:
        """The entries in a record's body that a `Packer` wrote."""
        keys, entries, base, count_size, unit_size, key_bytes = _HEAD.unpack_from(body)
        at = _HEAD.size
        counts = np.frombuffer(body, dtype=f"<u{count_size}", count=keys, offset=at)
        at += count_size * keys
        units = np.frombuffer(body, dtype=f"<u{unit_size}", count=entries, offset=at)
        at += unit_size * entries
        columns: list[pa.Array] = []
        if key_bytes:
            raw = pa.py_buffer(body[at : at + key_bytes])
            columns = pa.ipc.read_record_batch(raw, self.key_schema).columns
        at += key_bytes
        marks = []
        for _ in range(0 if level else self.marks):
            marks.append(np.frombuffer(body, dtype="<i8", count=entries, offset=at))
            at += 8 * entries
        partials: list[Any] = []
        for folds, width, decode in zip(self.folds, self.widths, self._decoders, strict=True):
            if isinstance(folds, NumberedFolds):
                numbered, at = folds.unpacked(body, entries, at)
                partials.append(numbered)
                continue
            if width or decode is None:
                words = np.frombuffer(body, dtype="<i8", count=entries * width, offset=at)
                partials.append(words.reshape(entries, width))
                at += 8 * entries * width
                continue
            sizes = np.frombuffer(body, dtype="<u4", count=entries, offset=at).tolist()
            at += 4 * entries
            objects = []
            for size in sizes:
                objects.append(decode(bytes(body[at : at + size])))
                at += size
            partials.append(objects)
        return Tile(
            columns, counts.astype(np.int64), units.astype(np.int64) + base, partials, marks
        )


class Packer:
    """Turns entries of one level into bytes.

    `keys` has a row for each run of entries of one key, and `counts` the number of entries in each
    run.  For each group of aggregates, `partials` has rows of words, or a list of encoded objects,
    or `Numbered` partials.
    """

    def __init__(
        self,
        form: Form,
        keys: list[pa.Array],
        counts: Array,
        units: Array,
        partials: Sequence[Any],
        marks: Sequence[Array],
    ) -> None:
        names = [str(i) for i in range(len(keys))]
        self._keys = pa.RecordBatch.from_arrays(keys, names=names) if keys else None
        self._counts = counts
        self._units = units
        self._marks = [mark.astype("<i8", copy=False) for mark in marks]
        self._partials: list[Any] = [
            p.astype("<i8", copy=False) if isinstance(p, np.ndarray) else p for p in partials
        ]
        self._folds = form.folds
        self._ends = np.append(0, np.cumsum(counts))

    def pack(self, start: int, end: int) -> bytes:
        """The entries of the runs from `start` up to `end`, as bytes."""
        low, high = int(self._ends[start]), int(self._ends[end])
        counts, units = self._counts[start:end], self._units[low:high]
        base = int(units.min()) if high > low else 0
        count_size, unit_size = _size_of(int(counts.max(initial=0))), 1
        if high > low:
            unit_size = _size_of(int(units.max()) - base)
        keys = b""
        if self._keys is not None:
            keys = self._keys.slice(start, end - start).serialize().to_pybytes()
        head = _HEAD.pack(end - start, high - low, base, count_size, unit_size, len(keys))
        made: list[Any] = [
            head,
            counts.astype(f"<u{count_size}").data,
            (units - base).astype(f"<u{unit_size}").data,
            keys,
        ]
        made += [mark[low:high].data for mark in self._marks]
        for folds, partials in zip(self._folds, self._partials, strict=True):
            if isinstance(folds, NumberedFolds):
                made += folds.packed(partials[low:high])
            elif isinstance(partials, np.ndarray):
                made.append(partials[low:high].tobytes())
            else:
                encoded = partials[low:high]
                made.append(np.array([len(e) for e in encoded], dtype="<u4").tobytes())
                made += encoded
        return b"".join(made)


def _size_of(most: int) -> int:
    """The number of bytes that a whole number up to this takes."""
    return next(size for size in (1, 2, 4, 8) if most < 1 << 8 * size)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
