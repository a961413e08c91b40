"""Rows of keys in a store.  A batch reads and writes only a few of the records.

    index     which parts exist, and when a step must visit each            part_index
    part      the rows of the keys whose hashes begin alike, as one record

A visit reads the parts of some keys, the parts with a row that is due, and the parts whose rows are
all useless by now.  The caller works on the rows of all these parts at once, and returns the rows
that are left.  If the record of a part grows beyond `layout.PAGE`, the part is divided by the next
bit of the hash; so records stay small, whatever the number of keys.  The rows of one key stay
together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..stores.contract import Store
from .checking import check_index, check_names
from .key_hash import hash_keys
from .layout import MOST_BITS, PAGE
from .part_index import NEVER, ROWS, Index, Visited, part_name
from .portions import Among, Coming, portions
from .records import Records

__all__ = ["Keyed", "KeyedTables"]

_SIZE = struct.Struct("<I")

#: Bytes of records that take as much memory on their way as a slice does.
_BYTES = 32


@dataclass(frozen=True)
class Keyed:
    """Rows of keys.  For each row a store needs its key, the watermark at which the stream must
    look at the row (NEVER if it need not), the watermark from which the row is useless, and the
    number of open windows that the row stands for."""

    table: pa.Table
    keys: list[pa.Array]
    due: Array
    until: Array
    windows: Array


class KeyedTables:
    """Tables of rows of keys, in the records of a store whose keys begin with a prefix.

    A batch is a visit, then `replace`, then `commit`; until then the store stays as it was.
    Nothing is kept in memory between batches, so the store may be exchanged for another one.
    """

    def __init__(self, schemas: Sequence[pa.Schema], store: Store, prefix: bytes = b"") -> None:
        self._schemas = [schema.remove_metadata() for schema in schemas]
        self._records = Records(store, prefix)
        self._index: Index | None = None
        self._visited: Visited | None = None
        self._root: Array | None = None

    def visit(
        self, keys: list[pa.Array], rows: int, watermark: int | None, among: Among = None
    ) -> list[pa.Table]:
        """The rows of the parts that some keys are in, and of those that must be visited at a
        watermark, in some slots of the index's root alone.  The rows of a key are in the order in
        which they were put there."""
        self.abandon()
        self._index = Index(self._records)
        reached = _reached(watermark)
        hashes = np.unique(hash_keys(keys, rows))
        self._visited = self._index.visit(hashes, reached, reached, among)
        found = self._visited.rows[self._visited.exists]
        names = [part_name(p, b) for p, b in zip(found["prefix"].tolist(), found["bits"].tolist())]
        bodies = [_blobs(body) for body in self._records.need(names)]
        return [
            _read(schema, [blobs[i] for blobs in bodies]) for i, schema in enumerate(self._schemas)
        ]

    def replace(self, tables: Sequence[Keyed]) -> None:
        """Replace all rows that the last visit returned with these rows, whose keys are in the
        parts that the visit read."""
        assert self._visited is not None
        assert self._index is not None
        given = [_Sorted(table) for table in tables]
        made: list[tuple[int, ...]] = []
        for row, exists in zip(self._visited.rows, self._visited.exists.tolist(), strict=True):
            prefix, bits = int(row["prefix"]), int(row["bits"])
            parts = list(self._put(given, prefix, bits))
            if exists and not any(part[1] == bits for part in parts):
                self._records.delete(part_name(prefix, bits))
            made += parts
        rows = np.array(made, dtype=ROWS)
        self._root = self._index.replace(rows)
        self._visited = self._index = None

    def _put(self, given: list[_Sorted], prefix: int, bits: int) -> Iterator[tuple[int, ...]]:
        """Write a part, and yield its row for the index.  If the part is too large, divide it, and
        yield the rows of the new parts."""
        ranges = [rows.between(prefix, bits) for rows in given]
        if all(start == end for start, end in ranges):
            return
        pairs = list(zip(given, ranges, strict=True))
        body = b"".join(rows.packed(*at) for rows, at in pairs)
        hashes = np.concatenate([rows.hashes[start:end] for rows, (start, end) in pairs])
        if len(body) > PAGE and bits < MOST_BITS and (hashes != hashes[0]).any():
            yield from self._put(given, prefix, bits + 1)
            yield from self._put(given, prefix | 1 << 63 - bits, bits + 1)
            return
        self._records.put(part_name(prefix, bits), body)
        due = min(int(rows.due[start:end].min(initial=NEVER)) for rows, (start, end) in pairs)
        until = max(int(rows.until[start:end].max(initial=-NEVER)) for rows, (start, end) in pairs)
        windows = sum(int(rows.windows[start:end].sum()) for rows, (start, end) in pairs)
        yield prefix, bits, 0, due, min(until, NEVER), len(np.unique(hashes)), windows, len(body)

    def commit(self) -> None:
        """Write the batch to the store."""
        assert self._visited is None, "what was visited was not replaced"
        self._records.flush()

    def abandon(self) -> None:
        """Discard the batch: the rows are again those of the store."""
        self._index = self._visited = self._root = None
        self._records.discard()

    def ranges(
        self, watermark: int | None, weight: float, coming: Callable[[], Coming]
    ) -> list[Among]:
        """The portions to visit at a watermark, for rows that weigh so much; see `portions`."""
        self._root = None  # the store may be that of another bucket since the last batch
        children, reached = self._children(), _reached(watermark)
        held = children["bytes"].astype(np.float64) / _BYTES
        return portions(children, held, weight, coming, reached, reached)

    def next_visit(self) -> int | None:
        """The first watermark at which a part must be visited, even if no rows come."""
        rows = self._children()
        first = min(rows["due"].min(initial=NEVER), rows["drop"].min(initial=NEVER))
        return None if first == NEVER else int(first)

    def size(self) -> dict[str, int]:
        """The approximate number of keys and of open windows, and the bytes that all rows take.  If
        only a count has changed, the index is written only if the count has changed by more than a
        quarter."""
        rows = self._children()
        found = {name: round(float(rows[name].sum())) for name in ("keys", "slices", "bytes")}
        return {"keys": found["keys"], "windows": found["slices"], "bytes": found["bytes"]}

    def _check(self) -> None:
        """Raise AssertionError if a record is missing, is not needed, or contradicts the index."""
        assert not self._records.changed, "a batch is not committed"
        rows, used = check_index(self._records)
        names = [part_name(p, b) for p, b in zip(rows["prefix"].tolist(), rows["bits"].tolist())]
        for row, body in zip(rows, self._records.need(names), strict=True):
            blobs = _blobs(body)
            held = [_read(schema, [b]) for schema, b in zip(self._schemas, blobs, strict=True)]
            assert any(table.num_rows for table in held), "a part without rows"
            assert row["bytes"] > 0
        check_names(self._records, used | set(names))
        self._records.discard()

    def _children(self) -> Array:
        if self._root is None:
            self._root = Index(self._records).children()
        return self._root


def _reached(watermark: int | None) -> int:
    """Before what a part must be visited, in the numbers that the index has."""
    return -NEVER if watermark is None else min(watermark + 1, NEVER)


class _Sorted:
    """Rows in the order of their keys' hashes, so that the rows of a part are neighbours."""

    def __init__(self, given: Keyed) -> None:
        hashes = hash_keys(given.keys, given.table.num_rows)
        order = np.argsort(hashes, kind="stable")
        self.hashes = hashes[order]
        self.due, self.until = given.due[order], given.until[order]
        self.windows = given.windows[order]
        table = given.table.take(pa.array(order)).replace_schema_metadata(None).combine_chunks()
        self._batch = table.to_batches()[0] if table.num_rows else None

    def between(self, prefix: int, bits: int) -> tuple[int, int]:
        """The places at which the rows of a part begin and end."""
        last = prefix | (1 << 64 - bits) - 1
        start = np.searchsorted(self.hashes, np.uint64(prefix))
        end = np.searchsorted(self.hashes, np.uint64(last), side="right")
        return int(start), int(end)

    def packed(self, start: int, end: int) -> bytes:
        """The rows from `start` up to `end` as bytes, after the number of bytes."""
        if self._batch is None or start == end:
            return _SIZE.pack(0)
        data: bytes = self._batch.slice(start, end - start).serialize().to_pybytes()
        return _SIZE.pack(len(data)) + data


def _blobs(body: memoryview | bytes) -> list[memoryview]:
    """The bytes of each table of a part."""
    view, at, made = memoryview(body), 0, []
    while at < len(view):
        (size,) = _SIZE.unpack_from(view, at)
        at += _SIZE.size + size
        made.append(view[at - size : at])
    return made


def _read(schema: pa.Schema, blobs: list[memoryview]) -> pa.Table:
    """The rows of some parts, as one table."""
    some = [pa.py_buffer(blob) for blob in blobs if len(blob)]
    batches = [pa.ipc.read_record_batch(data, schema) for data in some]
    return pa.Table.from_batches(batches, schema).combine_chunks()
