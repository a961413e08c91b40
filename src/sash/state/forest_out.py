"""Where a forest's kernel writes the windows that it answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore

__all__ = ["Out"]

_FEWEST = 1024


class Out:
    """Where a kernel writes windows: answers, and columns of integers with these names.

    Answers leave with the results.  The columns of integers stay for the next step, up to which
    what a step emitted can be used: to take memory anew for each batch, and give it back, costs as
    much as to answer the windows.
    """

    def __init__(self, core: BufferCore | ObjectCore, names: tuple[str, ...]) -> None:
        self._core, self._names = core, names
        self._changes = False
        self._take(_FEWEST)

    def begin(self, rows: int, *, changes: bool) -> None:
        """Have room for about so many rows, none of which is there; `covered` only if `changes`
        are asked for."""
        rows = max(_FEWEST, rows)
        if changes != self._changes or not rows <= self.rows <= 4 * rows:
            self._changes = changes
            self._take(rows)
        self.kept, self._at = self._core.outputs(self.rows)

    def _take(self, rows: int) -> None:
        self.rows = rows
        made = {}
        for name in self._names:
            wanted = rows if self._changes or name != "covered" else 0
            made[name] = self._core.integers(np.empty(wanted, dtype=np.int64))
        self._columns = {name: column for name, (column, _) in made.items()}
        self._at_columns = [handle for _, handle in made.values()]

    @property
    def handles(self) -> tuple[Any, ...]:
        """What the kernel is given."""
        return self._at, *self._at_columns

    def read(self, rows: int) -> dict[str, Array]:
        """The first rows of all integers."""
        return {name: np.asarray(c[:rows], dtype=np.int64) for name, c in self._columns.items()}

    def end(self) -> None:
        """Let go of the answers."""
        self.kept = self._at = None

    def grow(self, rows: int) -> None:
        """Room for more rows, with all that is there at its place."""
        had, answers, before = self.rows, self.kept, self._columns
        self._take(rows)
        self.kept, self._at = self._core.outputs(rows)
        for name, old in before.items():
            self._columns[name][: len(old)] = old
        if isinstance(self.kept, list):
            self.kept[:had] = answers
            return
        for (data, valid), (from_data, from_valid) in zip(self.kept[0], answers[0], strict=True):
            data[:had] = from_data
            if valid is not None:
                valid[:had] = from_valid
