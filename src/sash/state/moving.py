"""Variances and standard deviations over the last n rows at each row, by a kernel of their own.

The general kernel keeps a count, a mean and a sum of squares for each row, and divides four times
for each row.  If no value is null, `moving_kernel` needs neither the counts nor most of the
divisions, and works on eight rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..kernels.columns import Array, Table
from ..kernels.core import shared_core
from ..kernels.program import interpreted
from ..query.plan import Group
from .frames import Frames, LastRows, Range
from .moving_kernel import MOVING, PER_ROW

__all__ = ["Moving", "moving_of"]

#: For each operator: the number to subtract from the count, and whether to take the root.
_ANSWERS = {
    "variance": (1, False),
    "population_variance": (0, False),
    "stddev": (1, True),
    "population_stddev": (0, True),
}
#: The least and the most rows of a frame: the table and the fronts must stay in the cache.
LEAST, MOST = 8, 1 << 15


@dataclass(frozen=True)
class Moving:
    """Variances and standard deviations of one column, by their operators' names, over the last n
    rows at each row."""

    frames: LastRows
    names: tuple[str, ...]

    def part(self, frames: Range, rows: Range) -> Moving:
        """A range of frames, which hold only rows of this range of rows."""
        return replace(self, frames=self.frames.part(frames, rows))

    def answer(self, columns: Table, outputs: list[tuple[Array, Array | None]], to: int) -> None:
        """Answer all frames, over columns that have their order, into outputs from `to` on, where
        all are valid so far."""
        values = _lifted(columns.columns[0].data.astype(np.float64, copy=False))
        some = slice(to, to + len(self.frames))
        begins = self.frames.bounds[:-1][np.diff(self.frames.bounds) > 0] - self.frames.skip
        for name, (data, valid) in zip(self.names, outputs, strict=True):
            less, rooted = _ANSWERS[name]
            _find(self.frames, values, less, rooted, data[some])
            if valid is not None and less:  # over a single row there is no answer
                valid[some][begins[begins >= 0]] = 0


def moving_of(frames: Frames, group: Group, columns: Table) -> Moving | None:
    """The aggregates of a group as a `Moving`; None if they need the general kernel."""
    if not isinstance(frames, LastRows) or not LEAST <= frames.size <= MOST:
        return None
    if group.conditions or len(columns.columns) != 1 or interpreted(group.operator):
        return None
    column, names = columns.columns[0], tuple(p.operator.ready for p in group.operator.parts)
    numbers = column.valid is None and column.type in ("int64", "float64")
    return Moving(frames, names) if numbers and all(n in _ANSWERS for n in names) else None


@lru_cache(maxsize=8)
def table_of(size: int) -> Array:
    """Four numbers for each n: the share and the weight with which a row is merged after n rows;
    the share, which is also the weight, with which n rows are merged after a row; and the weight
    with which a front is merged with n + 1 rows as the back of a full frame."""
    n = np.arange(size)
    share = 1 / (n + 1)
    front = size - 1 - n
    return np.stack([share, n * share, n / (n + 1), front * ((n + 1) / size)], axis=1)


def _lifted(values: Array) -> Array:
    """The values, with NaN for infinities, as in the operators."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values if np.isfinite(values.sum()) else values + (values - values)


def _find(frames: LastRows, values: Array, less: int, rooted: bool, found: Array) -> None:
    """Write the answers of all frames to `found`: squared deviations divided by the count minus
    `less`, and the root of that if `rooted`."""
    core = shared_core(MOVING)
    with core.call() as call, np.errstate(all="ignore"):  # plain Python has lanes of numpy's

        def numbers(array: Array) -> int:
            return call.integers(array.view(np.int64))  # type: ignore[no-any-return]

        bounds, groups = call.integers(frames.bounds), len(frames.bounds) - 1
        given = numbers(values), bounds, groups, frames.size, frames.skip
        table, fronts = numbers(table_of(frames.size)), np.empty((2, PER_ROW * frames.size))
        how = less, int(rooted), -frames.skip, numbers(found)
        core.run.answers_of_rows(core.m, *given, table, *map(numbers, fronts), *how)
