"""Where a forest's kernel writes the windows that it answers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..kernels.core import BufferCore, ObjectCore

__all__ = ["Out"]


class Out:
    """Where a kernel writes windows."""

    NAMES: ClassVar[tuple[str, ...]] = ("keys", "windows", "reasons", "covered")

    def __init__(self, core: BufferCore | ObjectCore, rows: int, *, changes: bool) -> None:
        self._core, self.rows, self._changes = core, rows, changes
        self.kept, at = core.outputs(rows)
        self.keys, at_keys = self._integers(rows)
        self.windows, at_windows = self._integers(rows)
        self.reasons, at_reasons = self._integers(rows)
        self.covered, at_covered = self._integers(rows if changes else 0)
        self.handles = (at, at_keys, at_windows, at_reasons, at_covered)

    def _integers(self, rows: int) -> tuple[Any, Any]:
        return self._core.integers(np.empty(rows, dtype=np.int64))

    def grow(self, rows: int) -> None:
        """Room for more rows, with all that is there at its place."""
        old = Out.__new__(Out)
        old.__dict__.update(self.__dict__)
        self.__init__(self._core, rows, changes=self._changes)  # type: ignore[misc]
        for name in self.NAMES:
            before = getattr(old, name)
            getattr(self, name)[: len(before)] = before
        if isinstance(self.kept, list):
            self.kept[: old.rows] = old.kept
            return
        for (data, valid), (from_data, from_valid) in zip(self.kept[0], old.kept[0], strict=True):
            data[: old.rows] = from_data
            if valid is not None:
                valid[: old.rows] = from_valid
