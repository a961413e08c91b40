"""Windows whose slide over a long array goes in pieces, each from an empty window of its own.

A piece begins where the window is as if its values had come into an empty one, or soon will be: so
the pieces can go side by side, and all but the first and the last, which leave only answers behind,
by an operator of fewer words (`narrow`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..kernels.columns import Table
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.slots import CAPACITY, END, Columns, Memory
from ..kernels.threads import how_many, side_by_side
from .in_order import InOrder, insert
from .narrow import narrow

__all__ = ["InPieces", "fill"]

PIECE = 2**18  # the least rows that are worth a thread: some 1 ms of work


def fill(m: Memory, columns: Columns, first: int, rows: int) -> None:
    """Insert the rows from `first` on."""
    for row in range(first, rows):
        insert(m, columns, row)


class InPieces(InOrder):
    """A first-in, first-out window that slides over long arrays in pieces; its kernel has `fill`.

    >>> from sash.aggregators import DabaLite, TwoStacksLite
    >>> issubclass(DabaLite, InPieces), issubclass(TwoStacksLite, InPieces)
    (True, True)
    """

    _positions: ClassVar[tuple[int, ...]]  # the header fields that are equal in an empty window
    #: Whether a piece combines values in the order of one slide over all.  If not, pieces are for
    #: operators of one word, which have the same answers in any order.
    _same_order: ClassVar[bool] = False

    def _like_filled(self, size: int) -> tuple[int, int]:
        """How many rows until a window of this size is like one that was just filled, and every how
        many rows it is again.  If not all is alike at once, it is after as many rows."""
        raise NotImplementedError

    def _slide(self, columns: Any, outputs: Any, table: Table, size: int) -> None:
        """Let the kernel slide over columns, in pieces if that is of use."""
        core, rows, threads = self._core, table.rows, how_many()
        compiled = core.program.mode == "compiled"
        small = narrow(core.operator, table, size) if compiled and rows >= 2 * PIECE else None
        pieces = self._pieces(rows, size, ends=small is not None)
        if len(pieces) < 2 or not compiled or (threads < 2 and small is None):
            core.run.slide(core.m, columns, outputs, 0, rows, size)
            return
        assert isinstance(core, BufferCore)
        position, last, begun = core.get(END), pieces[-1], False

        def work(piece: tuple[int, int]) -> BufferCore | ObjectCore | None:
            nonlocal begun
            first, end = piece
            if not first:
                core.run.slide(core.m, columns, outputs, 0, end, size)
                begun = True
                return None
            if small is None or piece == last:
                made: BufferCore | ObjectCore = core.empty()
            else:
                made = make_core(self._kernel, small, core.get(CAPACITY))
            for field in self._positions:
                made.header[field] = position + first - size
            made.run.fill(made.m, columns, first - size, first)
            made.run.slide(made.m, columns, outputs, first, end, size)
            return made if piece == last else None

        try:
            made = side_by_side(work, pieces, threads)[-1]
        except Exception:
            if begun:
                # a later piece raised: the row at which it did must be the last that is in
                core.run.slide(core.m, columns, outputs, pieces[0][1], rows, size)
            raise
        assert made is not None
        made.hasten(False)
        self._core = made  # to copy 2^20 values, into pages that are new, took a third of the time

    def _pieces(self, rows: int, size: int, *, ends: bool = False) -> list[tuple[int, int]]:
        """Ranges of rows of which the last begins where a window is like one that was just filled,
        and so do the others if the order counts; with `ends`, the first and the last are as short
        as can be."""
        core = self._core
        if self._length() > size or not (ends or self._same_order):
            return [(0, rows)]
        filled, period = self._like_filled(size)
        length = period * -(-max(PIECE, 4 * size) // period)
        cuts = list(range(filled + length, rows - length // 2, length)) if self._same_order else []
        least = core.get(CAPACITY) + size  # rows that go through all slots of the ring
        if ends and rows - filled > 4 * least:
            last = filled + (rows - filled - least) // period * period
            cuts = [*range(size, last, 4 * length), last]
        return list(zip([0, *cuts], [*cuts, rows], strict=True))
