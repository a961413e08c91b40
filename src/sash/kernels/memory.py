"""The base class of the two kinds of cores.

An aggregator uses both kinds in the same way: `run` has the kernel's functions, `m` is the memory
to pass to them, `cell` a table of one input row, and `answer` a place for one answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .call import Call
from .moving import Move
from .program import Kernel, Program
from .slots import BUSY, CAPACITY, END, START

__all__ = ["Core"]


class Core:
    """A kernel's functions and a memory; the base class of `BufferCore` and `ObjectCore`."""

    m: Any  # the memory, as the kernel's functions take it
    header: Any  # the memory's header fields, by index
    cell: Any  # a table of one input row
    answer: Any  # a place for one answer
    fill: Callable[[Any], None]  # put a value, or a tuple of them, into the cell
    read: Callable[[], Any]  # return the answer as a Python value

    #: The aggregator must check the capacity (`tend`) before it inserts into a window of `high` or
    #: more elements, and after it evicts from a window of `low` or fewer.
    high: int
    low: int
    moving: Move | None = None  # a ring's move to another capacity

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        self.floor = capacity  # the least capacity
        self.kernel = kernel
        self.program = program
        self.run: Any = program.run
        self.operator = program.operator

    def give_up_if_unsound(self) -> None:
        """Call this after a kernel raised.  If it was in the middle of a change, where only combine
        can raise, the core refuses every further call."""
        if self.header[BUSY]:
            self.run = _Unsound(self.operator.name)

    @property
    def width(self) -> int:
        """The number of words of a partial; 1 for a Python object."""
        layout = self.program.layout
        return layout.words if layout else 1

    def call(self, rows: int = 0) -> Call:
        """A context that owns the arrays of one call of the kernel, for so many rows."""
        return Call(self, rows)  # type: ignore[arg-type]

    def hasten(self, wanted: bool = True) -> None:
        """Ask for large pages while a call touches much new memory; a core without a span ignores
        it."""

    @property
    def gradual(self) -> bool:
        """True if the memory is a ring that changes its capacity in small steps."""
        return False

    def set_bounds(self) -> None:
        """Set `high` and `low` for the present capacity, and end a move."""
        capacity = self.get(CAPACITY)
        self.high = capacity - capacity // 4 if self.gradual else capacity
        self.low = capacity // 4 if capacity > self.floor else -1
        self.moving = None  # last: an interrupt before it leaves a move that `done` recognises

    def smaller(self, length: int) -> int:
        """The capacity to which a window of this length shrinks."""
        wanted = self.get(CAPACITY)
        while 4 * length < wanted and wanted > self.floor:
            wanted = max(wanted // 2, self.floor)
        return wanted

    def get(self, field: int) -> int:
        """A header field."""
        return self.header[field]  # type: ignore[no-any-return]

    def slots(self, capacity: int) -> int:
        """The number of slots of a memory with this capacity."""
        if self.kernel.own:
            return capacity
        beside = capacity.bit_length() + 1 if self.kernel.beside else 0
        return self.kernel.scratch + self.kernel.each * capacity + beside

    def ring_blocks(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """The runs of slots (to, from, how many) to copy when a ring of elements changes its
        capacity, so that each position gets its new place."""
        scratch, each = self.kernel.scratch, self.kernel.each
        blocks = [(0, 0, scratch)] if scratch else []
        for j, i, n in self.places(old, new):
            blocks.append((scratch + each * j, scratch + each * i, each * n))
        return blocks

    def places(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """The runs of places (new place, old place, how many) of all elements, for two capacities
        of a ring."""
        runs, at, end = [], self.get(START), self.get(END)
        while at < end:
            i, j = at & (old - 1), at & (new - 1)
            n = min(end - at, old - i, new - j)
            runs.append((j, i, n))
            at += n
        return runs


class _Unsound:
    """Stands for the kernel's functions after one of them raised in the middle of a change."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        raise RuntimeError(
            f"combine of {self._name} raised in the middle of a change, and this window is not "
            "sound any more: make a new one, or restore it from its bytes"
        )
