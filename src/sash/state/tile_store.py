"""The tiles of a query's state: what all of them have in common, and where they are kept."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from .. import operators
from ..query.plan import Plan
from .folds import Runs
from .scan import Pass
from .tile import (
    BITS,
    REVISIONS,
    Positions,
    Tile,
    decode_tile,
    encode_tile,
    open_sealed,
    seal,
)

__all__ = ["Store", "TileTree", "Tiles"]

_COUNT = operators.count.of(int)


class TileTree:
    """What visits to all trees of a query have in common."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.operators = [g.operator for g in plan.groups]
        self.runs = [Runs(o) for o in self.operators]
        self.positions = Positions(plan.query.window)
        self.levels = self.positions.levels
        #: whether the order of events matters, and what puts them in order
        self.ordered = not all(o.commutative for o in self.operators)
        self.marks = (1 + (plan.query.tie is not None)) if self.ordered else 0
        self.passes = [
            Pass(g, plan.query.window, plan.types, changes=plan.query.emit == "changes")
            for g in plan.groups
        ]
        self.key_schema = pa.schema([f.with_name(str(i)) for i, f in enumerate(plan.keys)])

    def end_of(self, position: int) -> int:
        """The end of the highest tile that a slice is in."""
        shift = BITS * self.levels
        return ((position >> shift) + 1) << shift

    def encode(self, tile: Tile, level: int) -> bytes:
        """A tile as bytes."""
        return encode_tile(tile, [_COUNT] if level == REVISIONS else self.operators)

    def decode(self, data: memoryview, level: int) -> Tile:
        """A tile again."""
        if level == REVISIONS:
            return decode_tile(data, self.key_schema, [_COUNT], [1])
        widths = [r.width for r in self.runs]
        marks = 0 if level else self.marks
        return decode_tile(data, self.key_schema, self.operators, widths, marks)


class Store(Protocol):
    """Where tiles live: bytes by level and number."""

    def get(self, level: int, number: int) -> bytes | None:
        """A tile, if there is one."""

    def put(self, level: int, number: int, data: bytes) -> None:
        """Keep a tile."""

    def drop(self, level: int, number: int) -> None:
        """Forget a tile."""


class Tiles:
    """The tiles of a store for the time of a batch: each is read at most once, and written at most
    once, in the end."""

    def __init__(self, tree: TileTree, store: Store) -> None:
        self._tree = tree
        self.store = store
        self._tiles: dict[tuple[int, int], Tile | None] = {}
        self._changed: set[tuple[int, int]] = set()

    def get(self, level: int, number: int) -> Tile | None:
        """A tile, if there is one."""
        at = (level, number)
        if at not in self._tiles:
            data = self.store.get(level, number)
            if data is not None:
                body = open_sealed(data, _place(level, number))
            self._tiles[at] = None if data is None else self._tree.decode(body, level)
        return self._tiles[at]

    def put(self, level: int, number: int, tile: Tile | None) -> None:
        """Change a tile, or drop it."""
        self._tiles[level, number] = tile
        self._changed.add((level, number))

    def flush(self) -> None:
        """Write what was changed."""
        for level, number in sorted(self._changed):
            tile = self._tiles[level, number]
            if tile is None:
                self.store.drop(level, number)
            else:
                body = self._tree.encode(tile, level)
                self.store.put(level, number, seal(body, _place(level, number)))


def _place(level: int, number: int) -> bytes:
    return b"%d %d" % (level, number)
