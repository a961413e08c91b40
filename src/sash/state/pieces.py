"""Ordered rows of a batch cut in threads, by ranges of the slices that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ..kernels.columns import Array, Table
from ..query.plan import Group
from ..tables.rows import Ordered
from ..tables.threads import side_by_side
from .answers import Sources
from .numbered import Numbered
from .ragged import run_starts

__all__ = ["CutPiece", "cut_pieces"]

#: Cuts a piece, by its number, for a group of aggregates, by its place: the columns, the places of
#: the rows there, their marks, the bounds of keys, and the arrays to write starts and words to.
CutPiece: TypeAlias = Callable[
    [int, int, Table, Array | None, Array, Array, tuple[Array, Array]], object
]


def cut_pieces(
    groups: Sequence[Group],
    read: Sequence[tuple[Table, Sources]],
    room_for: Callable[[int], list[Array]],
    given: Ordered,
    marks: Array,
    cut: CutPiece,
    *,
    pieces: int,
    threads: int,
) -> tuple[Array, list[Any], Array]:
    """Cut rows wherever their marks rise, or a key begins, in so many pieces: the mark of each
    slice, the partials of each group of aggregates, the bounds of each key's slices."""
    rows, bounds = given.rows, given.bounds
    heads = run_starts(given.codes, marks)
    ends = np.append(heads, len(marks))
    ranges = pairwise(len(heads) * i // pieces for i in range(pieces + 1))
    starts = np.empty(len(heads), dtype=np.int64)
    words = room_for(len(heads))

    def run(piece: tuple[int, tuple[int, int]]) -> None:
        part, (first, last) = piece
        low, high, into = int(ends[first]), int(ends[last]), slice(first, last)
        own = np.concatenate([[low], bounds[(bounds > low) & (bounds < high)], [high]])
        when, some = marks, rows
        if rows is not None:
            own, when, some = own - low, marks[low:high], rows[low:high]
        for i, (columns, _) in enumerate(read):
            cut(part, i, columns, some, when, own, (starts[into], words[i][into]))

    side_by_side(run, list(enumerate(ranges)), threads)
    partials: list[Any] = [
        Numbered(made, values) if group.labelled else made
        for group, made, (_, values) in zip(groups, words, read, strict=True)
    ]
    return starts, partials, np.searchsorted(heads, bounds)
