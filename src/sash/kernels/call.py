"""The arrays that a kernel works on during one call, besides its memory.

A compiled kernel gets addresses, which keep no array alive.  A `Call` owns the arrays at these
addresses until the call is over:

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

MANY = 1024  # from so many rows on, large pages are worth the two system calls that ask for them


class Call:
    """Owns the arrays for one call of a kernel until the `with` ends.  A core's `call()` makes it.

    If the kernel raises in the middle of a change, the core refuses every further call.
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
        """The handle of input columns."""
        return self._keep(self._core.take(table))

    def integers(self, values: Array) -> Any:
        """The handle of integers."""
        return self._keep(self._core.integers(values))

    def halves(self, values: Array) -> Any:
        """The handle of integers of 32 bits."""
        return self._keep(self._core.halves(values))  # type: ignore[union-attr]

    def space(self, count: int) -> tuple[Any, Any]:
        """An array or a list of integers for the kernel to write, and its handle."""
        made, handle = self._core.integers(np.empty(count, dtype=np.int64))
        return made, self._keep((made, handle))

    def outputs(self, rows: int) -> Any:
        """The handle of room for the answers of so many rows; `answers` returns them after the
        kernel has run."""
        self._out, handle = self._core.outputs(rows)
        return handle

    def answers(self, kind: str) -> Any:
        """The answers that the kernel wrote, as a container of this kind."""
        return self._core.give(self._out, kind)

    def at_row(self, error: OverflowError, row: int) -> OverflowError:
        """Add the row to the error of an answer.  If the core was in the middle of a change, then
        combine raised the error, and it stays as it is."""
        if self._core.get(BUSY):
            return error
        return OverflowError(f"row {row}: {error}; the window holds all rows up to it")

    def _keep(self, made: tuple[Any, Any]) -> Any:
        kept, handle = made
        self._kept.append(kept)
        return handle
