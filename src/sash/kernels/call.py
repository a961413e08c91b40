"""What a kernel works on besides its memory, for as long as a call of it takes.

A compiled kernel sees addresses, which keep nothing alive.  A `Call` owns the arrays behind them:

    with core.call() as call:
        columns, outputs = call.columns(table), call.outputs(table.rows)
        core.run.slide(core.m, columns, outputs, 0, table.rows, size)
        return call.answers(table.kind)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .columns import Array, Table
from .slots import BUSY

if TYPE_CHECKING:
    from .core import BufferCore, ObjectCore

__all__ = ["Call"]

MANY = 1024  # rows for which it pays to ask the system for large pages, in two calls


class Call:
    """Arrays for a call of a kernel, until the `with` ends; made by a core's `call()`.

    If the kernel raises in the middle of a change, the core is not used again.
    """

    def __init__(self, core: BufferCore | ObjectCore, rows: int) -> None:
        self._core = core
        self._many = rows >= MANY
        self._kept: list[Any] = []
        self._out: Any = None

    def __enter__(self) -> Self:
        if self._many:
            self._core.hasten()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._kept.clear()
        self._out = None
        if self._many:
            self._core.hasten(False)
        if error is not None:
            self._core.give_up_if_unsound()

    def columns(self, table: Table) -> Any:
        """A handle for input columns."""
        return self._keep(self._core.take(table))

    def integers(self, values: Array) -> Any:
        """A handle for integers."""
        return self._keep(self._core.integers(values))

    def space(self, count: int) -> tuple[Any, Any]:
        """Integers for the kernel to set, an array or a list, and their handle."""
        made, handle = self._core.integers(np.empty(count, dtype=np.int64))
        return made, self._keep((made, handle))

    def outputs(self, rows: int) -> Any:
        """A handle for a place for so many answers; `answers` has them afterwards."""
        self._out, handle = self._core.outputs(rows)
        return handle

    def answers(self, kind: str) -> Any:
        """The answers that the kernel gave, as a kind of container."""
        return self._core.give(self._out, kind)

    def at_row(self, error: OverflowError, row: int) -> OverflowError:
        """An answer's error with its row, unless combine raised it, in the middle of a change."""
        if self._core.get(BUSY):
            return error
        return OverflowError(f"row {row}: {error}; the window holds all rows up to it")

    def _keep(self, made: tuple[Any, Any]) -> Any:
        kept, handle = made
        self._kept.append(kept)
        return handle
