"""Combine runs of partials: places in an array of partials, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.partials import decoder, encoder
from ..kernels.program import Kernel
from ..kernels.slots import Memory, Partials, combine, item, load, store
from ..operators.contract import Operator
from ..query.plan import Group
from .contract import StepFailed
from .lanes import objects

__all__ = ["FoldFailed", "Folds", "KeyRuns"]

SUM, NEW = 0, 1  # slots


def fold_runs(
    m: Memory, partials: Partials, order: Any, bounds: Any, count: int, out: Partials
) -> None:
    """Combine the partials order[bounds[r]] … order[bounds[r + 1] - 1] into out[r]."""
    for r in range(count):
        i = item(bounds, r)
        n = item(bounds, r + 1)
        load(m, SUM, partials, item(order, i))
        i += 1
        while i < n:
            load(m, NEW, partials, item(order, i))
            combine(m, SUM, SUM, NEW)
            i += 1
        store(m, SUM, out, r)


class FoldFailed(RuntimeError):
    """`combine` raised an error in a run."""

    def __init__(self, error: Exception, run: int) -> None:
        super().__init__(f"combine raised in run {run}")
        self.error, self.run = error, run


class Folds:
    """Combines runs of an operator's partials, which are rows of words, or a list of objects."""

    _kernel = Kernel("folds", (fold_runs,), ("fold_runs",), scratch=2)

    def __init__(self, operator: Operator) -> None:
        self._core: BufferCore | ObjectCore = make_core(self._kernel, operator, 1)

    @property
    def width(self) -> int:
        """The number of words of a partial; 0 if it is an object."""
        return 0 if isinstance(self._core, ObjectCore) else self._core.width

    @property
    def kinds(self) -> str:
        """The types of a partial's words; empty if it is an object."""
        layout = self._core.program.layout
        return layout.kinds if layout else ""

    def partial(self, words: Array) -> Any:
        """The Python value of a partial with these words."""
        self._core.load_slots(SUM, 1, words.tobytes())
        return self._core.peek(SUM)

    def fold(self, partials: Any, order: Array, bounds: Array) -> Any:
        """Combine each run into one partial.  No run may be empty."""
        try:
            return self._fold(partials, order, bounds)
        except Exception as error:
            for run in range(len(bounds) - 1):
                rows = order[bounds[run] : bounds[run + 1]]
                try:
                    self._fold(partials, rows, np.array([0, len(rows)]))
                except Exception as found:
                    raise FoldFailed(found, run) from found
            raise error

    def _fold(self, partials: Any, order: Array, bounds: Array) -> Any:
        core, count = self._core, len(bounds) - 1
        with core.call() as call:
            at_order, at_bounds = call.integers(order), call.integers(bounds)
            if isinstance(core, ObjectCore):
                out: Any = [None] * count
                core.run.fold_runs(core.m, partials, at_order, at_bounds, count, out)
                return out
            made, at_made = call.space(count * core.width)
            at = call.integers(partials.reshape(-1))
            core.run.fold_runs(core.m, at, at_order, at_bounds, count, at_made)
            return made.reshape(count, core.width)

    def take(self, partials: Any, order: Array) -> Any:
        """The partials at these places, in this order."""
        if self.width:
            return partials[order]
        return [partials[i] for i in order.tolist()]

    def join(self, many: list[Any]) -> Any:
        """The partials of several arrays, one after the other."""
        if self.width:
            empty = [np.empty((0, self.width), dtype=np.int64)]
            return np.concatenate(many or empty)
        return [p for part in many for p in part]

    def array(self, partials: Any) -> Array:
        """Partials as an array with one partial in each row."""
        return partials if self.width else objects(partials)

    def as_column(self, partials: Any) -> pa.Array:
        """Partials as an Arrow column of bytes; objects as the operator encodes them."""
        if self.width:
            data = pa.py_buffer(np.ascontiguousarray(partials, dtype="<i8"))
            kind = pa.binary(8 * self.width)
            return pa.Array.from_buffers(kind, len(partials), [None, data])
        encode = encoder(self._core.operator)
        return pa.array([encode(p) for p in partials], pa.binary())

    def from_column(self, column: pa.Array) -> Any:
        """The partials of a column that `as_column` returned."""
        if self.width:
            _, data = column.buffers()
            words = np.frombuffer(data, "<i8", (column.offset + len(column)) * self.width)
            return words.reshape(-1, self.width)[column.offset :].astype(np.int64)
        decode = decoder(self._core.operator)
        return [decode(p) for p in column.to_pylist()]


@dataclass(frozen=True)
class KeyRuns:
    """Runs of partials, none of which is empty: the order of the partials, and the bounds of the
    runs in that order.  For error messages, `keys` are the columns of keys, and each run has the
    number of its key and of its entry."""

    order: Array
    bounds: Array
    keys: list[pa.Array]
    codes: Array
    entries: Array

    def fold(
        self, groups: Sequence[Group], folds: Sequence[Folds], partials: Sequence[Any]
    ) -> list[Any]:
        """Combine each run into one partial, for each group of aggregates.  An error names the key
        and the entry of the run."""
        made = []
        for group, each, some in zip(groups, folds, partials, strict=True):
            try:
                made.append(each.fold(some, self.order, self.bounds))
            except FoldFailed as at:
                code, entry = int(self.codes[at.run]), int(self.entries[at.run])
                raise StepFailed(at.error, group.names, self.keys, code, entry) from at.error
        return made
