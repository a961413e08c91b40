"""What the two kinds of memory that a kernel works on have in common.

To an aggregator they look the same: `run` has the kernel's functions, `m` is the memory to pass to
them, `cell` a table of one input row and `answer` a place for one answer.
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
    """What both kinds of memory have in common."""

    m: Any  # the memory, as the kernel's functions take it
    header: Any  # its header fields, by index
    cell: Any  # a table of one input row
    answer: Any  # a place for one answer
    fill: Callable[[Any], None]  # put a value, or a tuple of them, into the cell
    read: Callable[[], Any]  # what the answer is

    #: The aggregator sees to the memory (`tend`) before it inserts into a window of `high` or more
    #: elements, and after it evicts from one of `low` or fewer.
    high: int
    low: int
    moving: Move | None = None  # a ring's way to another capacity

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        self.floor = capacity  # the least capacity
        self.kernel = kernel
        self.program = program
        self.run: Any = program.run
        self.operator = program.operator

    def give_up_if_unsound(self) -> None:
        """After an error out of a kernel: refuse further use if it came in the middle of a change,
        when only combine can have raised it."""
        if self.header[BUSY]:
            self.run = _Unsound(self.operator.name)

    @property
    def width(self) -> int:
        """How many words a partial takes."""
        layout = self.program.layout
        return layout.words if layout else 1

    def call(self, rows: int = 0) -> Call:
        """A context that owns the arrays of a call of the kernel for so many rows."""
        return Call(self, rows)  # type: ignore[arg-type]

    def hasten(self, wanted: bool = True) -> None:
        """Say whether a good part of the memory will be used for the first time at once."""

    @property
    def gradual(self) -> bool:
        """Whether the memory is a ring that changes its capacity bit by bit."""
        return False

    def set_bounds(self) -> None:
        """Say when the aggregator must see to its memory, which is not on its way any more."""
        capacity = self.get(CAPACITY)
        self.high = capacity - capacity // 4 if self.gradual else capacity
        self.low = capacity // 4 if capacity > self.floor else -1
        self.moving = None  # last: what interrupts this finds a move that is done

    def smaller(self, length: int) -> int:
        """The capacity that a window of this length shrinks to."""
        wanted = self.get(CAPACITY)
        while 4 * length < wanted and wanted > self.floor:
            wanted = max(wanted // 2, self.floor)
        return wanted

    def get(self, field: int) -> int:
        """A header field."""
        return self.header[field]  # type: ignore[no-any-return]

    def slots(self, capacity: int) -> int:
        """How many slots a memory with this capacity has."""
        if self.kernel.own:
            return capacity
        beside = capacity.bit_length() + 1 if self.kernel.beside else 0
        return self.kernel.scratch + self.kernel.each * capacity + beside

    def ring_blocks(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """Which runs of slots (to, from, how many) move when a ring of elements changes its
        capacity, so that each position is again at its place."""
        scratch, each = self.kernel.scratch, self.kernel.each
        blocks = [(0, 0, scratch)] if scratch else []
        for j, i, n in self.places(old, new):
            blocks.append((scratch + each * j, scratch + each * i, each * n))
        return blocks

    def places(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """Runs of places (new one, old one, how many) of the elements, for two capacities."""
        runs, at, end = [], self.get(START), self.get(END)
        while at < end:
            i, j = at & (old - 1), at & (new - 1)
            n = min(end - at, old - i, new - j)
            runs.append((j, i, n))
            at += n
        return runs


class _Unsound:
    """Stands for the functions of a kernel that broke off."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        raise RuntimeError(
            f"combine of {self._name} raised in the middle of a change, and this window is not "
            "sound any more: make a new one, or restore it from its bytes"
        )
