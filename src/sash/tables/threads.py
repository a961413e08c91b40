"""Cuts tables into pieces, on which threads work at the same time.

The number and the bounds of the pieces depend on the table alone, and their results are joined in
the order of the pieces: so a result is the same to the bit however many threads there are.  Only
tables of many rows are cut, as it takes time to start a thread (`kernels.threads`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..kernels.threads import how_many, side_by_side

__all__ = [
    "BLOCK",
    "MOST",
    "PIECE",
    "blocks",
    "cut_groups",
    "cut_rows",
    "extremes",
    "how_many",
    "rise",
    "side_by_side",
]

PIECE = 2**16  # the least number of rows of a piece: some 0.5 ms of work
BLOCK = 2**15  # the intermediate results of so many rows stay in the processor's cache
MOST = 32  # the most pieces; more threads than that have nothing to do


def cut_rows(
    rows: int, least: int = 0, most: int = MOST, *, weight: int = 1
) -> list[tuple[int, int]]:
    """Cut rows into pieces of about the same length.  A piece has at least `least` rows (never
    less than `PIECE`), and there are at most `most` pieces; their number is a power of two.
    `weight` is the work per row, compared to usual work: more weight allows shorter pieces.

    >>> cut_rows(1_000_000, most=2)
    [(0, 500000), (500000, 1000000)]
    """
    pieces = 1 << max(min(rows * weight // max(least, PIECE), most), 1).bit_length() - 1
    return [(rows * i // pieces, rows * (i + 1) // pieces) for i in range(pieces)]


def blocks(first: int, last: int, rows: int = BLOCK) -> Iterator[slice]:
    """Cut a range of rows into blocks; each includes the first row of the next block."""
    return (slice(i, min(i + rows + 1, last)) for i in range(first, last, rows))


def rise(values: Array, threads: int = 1) -> bool:
    """True if values are in order.  If they are not, the first block mostly shows it.

    >>> rise(np.array([1, 1, 2])), rise(np.array([1, 0]))
    (True, False)
    """

    def rises(piece: tuple[int, int]) -> bool:
        some = (values[block] for block in blocks(*piece, 4 * BLOCK))
        return all((block[1:] >= block[:-1]).all() for block in some)

    rows = len(values)
    if not rises((0, min(BLOCK, rows))):
        return False
    if rows <= BLOCK:
        return True
    # long pieces: two threads that wait for the interpreter's lock between two calls took longer
    # for two million rows than one
    pieces = [(first, min(last + 1, rows)) for first, last in cut_rows(rows, 2**20)]
    return all(side_by_side(rises, pieces, threads))


def extremes(values: Array, threads: int = 1) -> tuple[int, int]:
    """The least and the greatest of at least one integer.

    >>> extremes(np.array([3, 1, 2]))
    (1, 3)
    """
    # few pieces: a short piece takes less time than the wait for the interpreter's lock
    pieces = [values[first:last] for first, last in cut_rows(len(values), most=8)]
    ends = side_by_side(_extremes, pieces, threads)
    return min(low for low, _ in ends), max(high for _, high in ends)


def _extremes(values: Array) -> tuple[int, int]:
    """The same in one thread."""
    if len(values) < 8 * BLOCK:
        return int(values.min()), int(values.max())
    # one pass over what is not in the processor's cache: two threads share one memory
    found = pc.min_max(pa.array(values))
    return found["min"].as_py(), found["max"].as_py()


def cut_groups(bounds: Array, *, weight: int = 1) -> list[tuple[int, int]]:
    """Ranges of groups with about as many rows each; the rows of group g are those from bounds[g]
    to bounds[g + 1].  A group is in one range.  For the weight of rows see `cut_rows`.

    >>> cut_groups(np.array([0, 10_000, 80_000, 100_000, 150_000]))
    [(0, 2), (2, 4)]
    """
    groups, first = len(bounds) - 1, int(bounds[0])
    wanted = [first + end for _, end in cut_rows(int(bounds[-1]) - first, weight=weight)]
    ends = np.unique(np.append(np.searchsorted(bounds[1:-1], wanted[:-1]) + 1, groups))
    ends = ends[ends <= groups].tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True)) if groups else [(0, 0)]
