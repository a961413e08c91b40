"""The forests of all groups of aggregates, over the same numbered keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.types import value_type
from ..tables.arrow import from_ipc, to_ipc
from ..tables.rows import Ordered
from ..windows import Aligned
from .answers import joined_reasons
from .contract import StepFailed
from .forest import CombineRaised, Forest
from .key_numbers import KeyNumbers
from .parted_forest import PARTS, PartedForest
from .pieces import cut_pieces
from .range_answers import Found, Inserted, Ranges

__all__ = ["Grove"]


F = TypeVar("F", bound=PartedForest)


class Grove(Generic[F]):
    """The forests of all groups of aggregates.  Their trees have the same slices; each forest has
    the partials of its group."""

    def __init__(self, plan: Plan, window: Aligned, made: type[F]) -> None:
        self.forests = [made(group, window, plan.types) for group in plan.groups]
        self.divisible = all(forest.divisible for forest in self.forests)
        # an error here says that answers cannot have the types that are wanted
        self.no_values = {n: v for f in self.forests for n, v in f.no_values().items()}
        self.keys = KeyNumbers([value_type(field.type) for field in plan.keys])

    def borrow(self) -> None:
        """Take all partials with values of their own: the forests last for one step."""
        for forest in self.forests:
            forest.borrow()

    def make_room(self) -> None:
        """Make records for all keys."""
        for forest in self.forests:
            forest.make_room(self.keys.most)

    def compact(self) -> Array | None:
        """Renumber the keys if many were removed; return the old number of each new number."""
        kept = self.keys.compact()
        if kept is not None:
            for forest in self.forests:
                forest.renumber(kept)
        return kept

    def spread(self, numbers: Array, counts: Array) -> Array:
        """The bounds of the items of all keys, in order of the keys: `counts` items for each of the
        keys in `numbers`, none for other keys."""
        bounds = np.zeros(len(self.keys) + 1, dtype=np.int64)
        if len(numbers):
            bounds[self.keys.places(numbers) + 1] = counts
        return np.cumsum(bounds)

    def spread_spans(self, numbers: Array, spans: tuple[Array, Array]) -> tuple[Array, Array]:
        """The spans of all keys, in order of the keys: those in `spans` for the keys in `numbers`,
        empty ones for other keys."""
        if len(numbers) == len(self.keys):  # all keys, in their order
            return spans
        made = np.zeros((2, len(self.keys)), dtype=np.int64)
        if len(numbers):
            made[:, self.keys.places(numbers)] = spans
        return made[0], made[1]

    def ranges(
        self,
        visits: Array,
        inserted: tuple[Array, Array, list[Any]],
        asked: Ranges,
        edges: Array,
        threads: int = 1,
    ) -> Found:
        """Insert entries into all forests and answer ranges; see `Forest.ranges`.  `inserted` has
        the entries' bounds and numbers, and their partials for each group of aggregates."""
        bounds, numbers, partials = inserted
        made: dict[str, pa.Array] = {}
        failed: list[dict[int, str]] = []
        gone = np.zeros(0, dtype=np.int64)
        for forest, part in zip(self.forests, partials, strict=True):
            with self.naming(forest):
                entries = Inserted(bounds, numbers, part)
                found = forest.ranges(visits, entries, asked, edges, threads)
            made |= found.values
            failed.append(found.failed)
            gone = found.gone
        return Found(made, joined_reasons(*failed), gone)

    def cut(
        self, table: pa.Table, given: Ordered, marks: Array, threads: int = 1
    ) -> tuple[Array, list[Any], Array]:
        """Cut rows wherever their marks rise, or a key begins: the mark of each slice, the partials
        of each group of aggregates, the bounds of each key's slices.  Changes nothing."""
        rows, bounds, forests = given.rows, given.bounds, self.forests
        if threads == 1 or not self.divisible or len(marks) < PARTS:
            cuts = [f.cut(table, rows, marks, bounds, whole=False) for f in forests]
            return cuts[0][0], [partials for _, partials, _ in cuts], cuts[0][2]
        return cut_pieces(
            [forest.group for forest in forests],
            [forest.columns(table) for forest in forests],
            lambda slices: [forest.room_for(slices) for forest in forests],
            given,
            marks,
            lambda part, i, *piece: forests[i].cut_some(part, *piece, whole=False),
            pieces=PARTS,
            threads=threads,
        )

    def no_partials(self) -> list[Any]:
        """The partials of no entries, for each group of aggregates."""
        return [np.zeros(0, dtype=np.int64)] * len(self.forests)

    @contextmanager
    def naming(self, forest: Forest) -> Iterator[None]:
        """Turn an error of a forest's `combine` into one that names the aggregates, the key and the
        window."""
        try:
            yield
        except CombineRaised as at:
            error, names = at.__cause__, forest.group.names
            assert isinstance(error, Exception)
            raise StepFailed(error, names, self.keys.columns, at.key, at.window) from error

    def holds(self, numbers: Array) -> Array:
        """True for keys that hold slices."""
        return self.forests[0].holds(numbers)

    def size(self) -> dict[str, int]:
        """The number of keys and of slices, and the bytes that they take."""
        return {
            "keys": len(self.keys),
            "slices": sum(f.slices() for f in self.forests),
            "bytes": sum(f.size() for f in self.forests),
        }

    def describe(self) -> list[Any]:
        """A description of each group's partials, for JSON."""
        return [f.describe() for f in self.forests]

    def check_same(self, described: list[Any]) -> None:
        """Raise an error if the description is of other partials."""
        mine = self.describe()
        if described != mine:
            raise ValueError(f"these bytes hold partials of {described}; the query has {mine}")

    def dump(self) -> list[bytes]:
        """Keys and forests as bytes."""
        keys: pa.Table = self.keys.table()
        return [to_ipc(keys), *(blob for forest in self.forests for blob in forest.dump())]

    def load(self, blobs: list[bytes]) -> None:
        """Restore what `dump` returned into an empty grove."""
        keys, *forests = blobs
        self.keys.restore(from_ipc(keys))
        for i, forest in enumerate(self.forests):
            forest.load(*forests[3 * i : 3 * i + 3])

    def _check(self, *, all_hold: bool) -> None:
        """Raise AssertionError if a forest is not sound, or if forests and keys do not fit
        together.  With `all_hold`, every key must have slices."""
        for forest in self.forests:
            forest._check()
            assert forest.held() == self.forests[0].held(), "groups hold different slices"
        held = {number for number, _ in self.forests[0].held()}
        there = set(self.keys.in_order().tolist())
        assert held <= there, "a key holds slices, and left"
        if all_hold:
            assert held == there, "a key is there, and holds nothing"
