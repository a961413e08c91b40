"""A batch cut into slices in threads, by ranges of keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.counting_sort import counts_by_key
from ..tables.keys import by_group
from ..tables.order import in_time
from ..tables.threads import side_by_side
from .contract import Slices
from .grove import Grove
from .numbered import Numbered
from .parted_forest import PARTS
from .slice_order import SliceOrder

__all__ = ["ByKeys", "in_key_order"]


def in_key_order(
    codes: Array, groups: int, times: Array, finer: Array | None
) -> tuple[Array, Array]:
    """Put rows in order of key and time; return what `by_group` returns."""
    return by_group(codes, groups, in_time(times, finer))


@dataclass
class _Spread(Slices):
    """Slices with room between those of one key and another's: key k has those from bounds[k] up to
    ends[k]."""

    ends: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def spans(self) -> tuple[Array, Array]:
        return self.bounds, self.ends


@dataclass(frozen=True)
class ByKeys:
    """Cuts batches for the forests of a grove.  `order` puts rows in order, of which it has the
    numbers of the keys, how many these are, the times and the nanoseconds; it returns what
    `by_group` returns.  `marks` says by what the times are cut.  With `quick`, that does both.
    With `spread`, there may be room between the slices of two keys."""

    grove: Grove[Any]
    order: Callable[[Array, int, Array, Array | None], tuple[Array, Array]]
    marks: Callable[[Array], Array]
    whole: bool
    spread: bool = True
    quick: SliceOrder | None = None

    def __call__(
        self,
        table: pa.Table,
        times: Array,
        finer: Array | None,
        codes: Array,
        keys: list[pa.Array],
        threads: int,
    ) -> Slices:
        """The slices of rows, of which `codes` has the keys by number.  A range of keys has room
        for a slice of each of its rows."""
        forests = self.grove.forests
        read = [forest.columns(table) for forest in forests]
        rows_before = np.append(0, np.cumsum(counts_by_key(codes, len(keys[0]))))
        ends = np.searchsorted(rows_before, len(times) * np.arange(1, PARTS + 1) // PARTS)
        ranges = list(enumerate(pairwise(np.unique([0, *ends]).tolist())))
        starts = np.empty(len(times), dtype=np.int64)
        partials = [forest.room_for(len(times)) for forest in forests]
        spans = np.empty((2, len(keys[0])), dtype=np.int64)

        def cut(some: tuple[int, tuple[int, int]]) -> None:
            part, (low, high) = some
            room = slice(int(rows_before[low]), int(rows_before[high]))
            quick, many = self.quick, room.stop - room.start
            given = None if quick is None else quick.rows(low, high, many)
            if given is None:
                own = np.flatnonzero((codes >= low) & (codes < high))
                when = times[own]
                ties = None if finer is None else finer[own]
                at, bounds = self.order(codes[own] - low, high - low, when, ties)
                given = own[at], self.marks(when[at]), bounds
            for forest, (columns, _), into in zip(forests, read, partials, strict=True):
                where = starts[room], into[room]
                bounds = forest.cut_some(part, columns, *given, where, whole=self.whole)
            spans[:, low:high] = bounds[:-1] + room.start, bounds[1:] + room.start

        side_by_side(cut, ranges, threads)
        if self.spread and not any(forest.group.labelled for forest in forests):
            return _Spread(keys, spans[0], starts, partials, ends=spans[1])
        # only what is there gets labels
        counts = spans[1] - spans[0]
        made = [slice(int(spans[0, low]), int(spans[1, high - 1])) for _, (low, high) in ranges]
        own = [np.concatenate([words[some] for some in made]) for words in partials]
        return Slices(
            keys,
            np.append(0, np.cumsum(counts)),
            np.concatenate([starts[some] for some in made]),
            [
                Numbered(words, values) if forest.group.labelled else words
                for forest, words, (_, values) in zip(forests, own, read, strict=True)
            ],
        )
