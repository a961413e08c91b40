"""The index of a state: which parts exist, and when a step must visit each of them next.

A part holds the keys whose hashes begin with the same bits: its prefix.  The index is a trie over
the hash.  A node looks at NODE_BITS bits of the hash, so it has 2^NODE_BITS slots.  A child that is
a part covers an aligned range of slots, whose number is a power of two; a child that is a node
covers one slot.

    root          |  part 0…  |  part 10…  |  node 110…  |  node 111…  |     here with NODE_BITS = 3
    node 110…                              |  part 1100… |  part 1101… |

A node says for each child when a step must visit it: `due` is the first window that may hold one of
the child's slices and was not due yet; when the window `drop` is closed, everything in the child
can be dropped.  A step reads the nodes on the way to its keys' parts, and to the parts that it must
visit.  It removes children that have become empty, and nodes without children.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.columns import Array
from .ragged import ragged
from .records import Records

__all__ = ["FIRST", "NEVER", "ROWS", "Index", "Visited", "above", "part_name", "root_slots"]

#: Bits of the hash that a node looks at.  A node with all its 256 slots takes 8 KB.
NODE_BITS = 8
#: A window that no stream reaches.
NEVER = 2**62

_STORED = np.dtype(
    [
        ("slot", "u1"),
        ("span", "u1"),  # the child covers 2^span slots
        ("node", "u1"),
        ("due", "<i8"),
        ("drop", "<i8"),
        ("keys", "<f4"),
        ("slices", "<f4"),
        ("bytes", "<f4"),
    ]
)
#: Children as rows.  The upper `bits` bits of `prefix` are the child's prefix.
ROWS = np.dtype([("prefix", "u8"), ("bits", "i8"), *_STORED.descr[2:]])
_COUNTS = ("keys", "slices", "bytes")
_SHARED = ("node", "due", "drop", *_COUNTS)  # fields of both types
_NAME = struct.Struct(">cBQ")


def part_name(prefix: int, bits: int) -> bytes:
    """The name of a part's record."""
    return _NAME.pack(b"p", bits, prefix)


#: The name of the index's root, which exists if the state has any part.
FIRST = _NAME.pack(b"n", 0, 0)


def _node_names(prefixes: Array, depth: int) -> list[bytes]:
    return [_node_name(prefix, depth) for prefix in prefixes.tolist()]


def _node_name(prefix: int, depth: int) -> bytes:
    return _NAME.pack(b"n", depth, prefix)


@dataclass
class Visited:
    """The parts that a step visits: their rows in the index, whether each one exists already, and
    for each of the step's keys the place of its part in `rows`."""

    rows: Array
    exists: Array
    of_keys: Array


class Index:
    """The index during a step."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._loaded: list[Array] = []  # at each depth, all children of the nodes that were read
        self._kept: list[Array] = []  # at each depth, the children that the step does not visit
        self._nodes: list[Array] = []  # at each depth, the prefixes of the nodes that were read

    def visit(
        self, hashes: Array, due: int, closed: int, among: tuple[int, int] | None = None
    ) -> Visited:
        """Find the parts of the keys with these hashes.  Also find all parts with a window to emit
        before `due`, and all parts that can be dropped because the windows before `closed` are
        closed; with `among`, only those between these two slots of the root, both inclusive."""
        of_keys = np.full(len(hashes), -1, dtype=np.int64)
        keys, node_of = np.arange(len(hashes)), np.zeros(len(hashes), dtype=np.int64)
        nodes = np.zeros(1, dtype=np.uint64)
        found: list[Array] = []
        exists: list[Array] = []
        parts = 0
        while len(nodes):
            depth = len(self._nodes)
            rows, owners = self._read(nodes, depth)
            old = len(rows)
            slots = _slots_of(rows, owners, len(nodes), depth)
            inside = np.ones(old, dtype=bool)
            if among is not None and not depth:
                first, last = among
                inside = (_slot(rows["prefix"], 0) >= first) & (_slot(rows["prefix"], 0) <= last)
                for others in (slots[:first], slots[last + 1 :]):
                    others[others < 0] = old  # no new part may cover these slots
            at = node_of * (1 << NODE_BITS) + _slot(hashes[keys], depth)
            rows = np.concatenate([rows, _new_parts(slots, at, nodes, depth, old)])
            child = slots[at]
            wanted = (rows["due"] < due) | (rows["drop"] < closed)
            wanted[:old] &= inside
            wanted[old:] = True
            wanted[child] = True
            node = rows["node"] != 0
            # parts
            chosen = np.flatnonzero(wanted & ~node)
            place = np.empty(len(rows), dtype=np.int64)
            place[chosen] = parts + np.arange(len(chosen))
            here = ~node[child]
            of_keys[keys[here]] = place[child[here]]
            found.append(rows[chosen])
            exists.append(chosen < old)
            parts += len(chosen)
            # nodes
            below = np.flatnonzero(wanted & node)
            place[below] = np.arange(len(below))
            self._loaded.append(rows[:old])
            self._kept.append(rows[~wanted])
            self._nodes.append(nodes)
            keys, node_of = keys[~here], place[child[~here]]
            nodes = rows["prefix"][below]
        return Visited(np.concatenate(found), np.concatenate(exists), of_keys)

    def children(self) -> Array:
        """The children of the root."""
        return self._read(np.zeros(1, dtype=np.uint64), 0)[0]

    def _read(self, nodes: Array, depth: int) -> tuple[Array, Array]:
        """The children of nodes, and for each child the place of its node."""
        names = _node_names(nodes, depth)
        # a state without a root is empty
        bodies = self._records.need(names) if depth else self._records.get(names)
        stored = [np.frombuffer(b or b"", dtype=_STORED) for b in bodies]
        owners = np.repeat(np.arange(len(nodes)), [len(s) for s in stored])
        table = np.concatenate(stored)
        rows = np.empty(len(table), dtype=ROWS)
        for name in _SHARED:
            rows[name] = table[name]
        shift = np.uint64(64 - NODE_BITS * (depth + 1))
        rows["prefix"] = nodes[owners] | (table["slot"].astype(np.uint64) << shift)
        rows["bits"] = NODE_BITS * (depth + 1) - table["span"].astype(np.int64)
        return rows, owners

    def names(self, depth: int) -> list[bytes]:
        """The names of the nodes that `visit` read at a depth."""
        return _node_names(self._nodes[depth], depth)

    def replace(self, rows: Array) -> Array:
        """Replace the rows of the visited parts with these rows, write the nodes, and return the
        children of the root."""
        depths = np.maximum(rows["bits"] - 1, 0) // NODE_BITS
        deepest = max(len(self._nodes) - 1, int(depths.max(initial=0)))
        below = np.empty(0, dtype=ROWS)
        for depth in range(deepest, -1, -1):
            read = depth < len(self._nodes)
            kept = [self._kept[depth]] if read else []
            made = np.concatenate([*kept, rows[depths == depth], below])
            made = made[np.argsort(made["prefix"])]
            if read:
                _keep_counts(made, self._loaded[depth])
            below = self._write(made, depth, self._nodes[depth] if read else _NO_NODES)
        return made

    def _write(self, rows: Array, depth: int, before: Array) -> Array:
        """Write the nodes that have these children, delete the nodes of `before` that have none,
        and return a row for each node that was written."""
        prefixes = rows["prefix"] & above(depth)
        at = np.flatnonzero(np.append(True, prefixes[1:] != prefixes[:-1])[: len(rows)])
        nodes = prefixes[at]
        table = np.empty(len(rows), dtype=_STORED)
        for name in _SHARED:
            table[name] = rows[name]
        table["slot"] = _slot(rows["prefix"], depth)
        table["span"] = NODE_BITS * (depth + 1) - rows["bits"]
        ends = np.append(at[1:], len(rows))[: len(at)].tolist()
        for prefix, start, end in zip(nodes.tolist(), at.tolist(), ends, strict=True):
            self._records.put(_node_name(prefix, depth), table[start:end].tobytes())
        for prefix in set(before.tolist()) - set(nodes.tolist()):
            if len(self._loaded[depth]):  # else there was no root
                self._records.delete(_node_name(prefix, depth))
        made = np.empty(len(nodes), dtype=ROWS)
        made["prefix"], made["bits"], made["node"] = nodes, NODE_BITS * depth, 1
        if len(nodes):
            for name in ("due", "drop"):
                made[name] = np.minimum.reduceat(rows[name], at)
            for name in _COUNTS:
                made[name] = np.add.reduceat(rows[name].astype(np.float64), at)
        return made


_NO_NODES = np.empty(0, dtype=np.uint64)


def above(depth: int) -> np.uint64:
    """A mask of the bits in a prefix that identify the child's node at a depth."""
    return np.uint64((1 << 64) - (1 << (64 - NODE_BITS * depth)))


def root_slots(hashes: Array) -> Array:
    """The slot of the root for each hash."""
    return _slot(hashes, 0)


def _slot(hashes: Array, depth: int) -> Array:
    shifted = hashes >> np.uint64(64 - NODE_BITS * (depth + 1))
    slots: Array = (shifted & np.uint64((1 << NODE_BITS) - 1)).astype(np.int64)
    return slots


def _slots_of(rows: Array, owners: Array, nodes: int, depth: int) -> Array:
    """For each slot of the nodes the place of the child that covers it, -1 if none does."""
    slots = np.full(nodes << NODE_BITS, -1, dtype=np.int64)
    covered = np.left_shift(1, NODE_BITS * (depth + 1) - rows["bits"])
    first = (owners << NODE_BITS) + _slot(rows["prefix"], depth)
    slots[ragged(first, covered)] = np.repeat(np.arange(len(rows)), covered)
    return slots


def _new_parts(slots: Array, wanted: Array, nodes: Array, depth: int, count: int) -> Array:
    """New parts for the wanted slots that no child covers, each over as many slots as possible.
    Writes the places of the parts, which begin with `count`, into `slots`."""
    made: list[Any] = []
    for at in np.unique(wanted[slots[wanted] < 0]).tolist():
        if slots[at] >= 0:  # the new part of an earlier slot covers it
            continue
        span = NODE_BITS
        start = at >> span << span
        while (slots[start : start + (1 << span)] >= 0).any():
            span -= 1
            start = at >> span << span
        slots[start : start + (1 << span)] = count + len(made)
        shift = 64 - NODE_BITS * (depth + 1)
        prefix = int(nodes[at >> NODE_BITS]) | (start & ((1 << NODE_BITS) - 1)) << shift
        made.append((prefix, NODE_BITS * (depth + 1) - span, 0, NEVER, NEVER, 0, 0, 0))
    return np.array(made, dtype=ROWS)


def _keep_counts(rows: Array, old: Array) -> None:
    """Put a child's old counts back if nothing but counts has changed, and none by more than a
    quarter: its node then need not be written."""
    if not len(old) or not len(rows):
        return
    old = old[np.argsort(old["prefix"])]
    was = old[np.searchsorted(old["prefix"], rows["prefix"]).clip(max=len(old) - 1)]
    same = np.ones(len(rows), dtype=bool)
    for name in ("prefix", "bits", "node", "due", "drop"):
        same &= rows[name] == was[name]
    for name in _COUNTS:
        same &= np.abs(rows[name] - was[name]) * 4 <= was[name]
    rows[same] = was[same]
