"""Where a forest's kernel writes the windows that it answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore

__all__ = ["Out"]

_FEWEST = 1024


class Out:
    """The arrays that a kernel writes windows to: answers, and columns of integers with these
    names.

    Answers leave with the results.  The columns of integers stay, and the next step writes over
    them, so a step's windows can be used only until then: new memory for each batch would cost as
    much as answering the windows.
    """

    def __init__(self, core: BufferCore | ObjectCore, names: tuple[str, ...]) -> None:
        self._core, self._names = core, names
        self._changes = False
        self._take(_FEWEST)

    def begin(self, rows: int, *, changes: bool) -> None:
        """Drop all rows, and make room for about this many; the column `covered` has room only with
        `changes`."""
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
        """The handles that the kernel writes to."""
        return self._at, *self._at_columns

    def read(self, rows: int) -> dict[str, Array]:
        """The first rows of all columns of integers."""
        return {name: np.asarray(c[:rows], dtype=np.int64) for name, c in self._columns.items()}

    def end(self) -> None:
        """Drop the answers."""
        self.kept = self._at = None

    def grow(self, rows: int) -> None:
        """Make room for more rows, and keep the rows written so far."""
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
