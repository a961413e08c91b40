"""What every in-order aggregator can do: the contract, and the work they share.

Values come in at the young end (`insert`) and leave at the old end (`evict`); `query` gives
the answer over what is in between.  An aggregator is a kernel of a few functions, of which
`insert`, `evict` and `query` stand in the algorithm's own file, and the rest here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import index
from typing import Any, ClassVar

import numpy as np

from ..kernels.columns import Table, read
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.moving import tend
from ..kernels.program import Kernel
from ..kernels.slots import CAPACITY, END, START, Columns, Memory, Outputs, get, item, lower
from ..operators.contract import Operator
from .guard import alone
from .snapshot import Snapshots

__all__ = ["InOrder", "kernel"]

SMALLEST = 8  # the least capacity
#: When more than so many values leave at once, and so many words of memory are behind them, it is
#: given back later: pages to unmap and values to move would take longer than the eviction.
FEW, MUCH = 64, 1 << 14


def insert(m: Memory, columns: Columns, row: int) -> None:
    """Add one row at the young end (declared here, made by each algorithm)."""


def evict(m: Memory) -> None:
    """Drop the oldest element (declared here, made by each algorithm)."""


def query(m: Memory) -> int:
    """The slot with the partial of the whole window (declared here, made by each algorithm)."""
    return 0


def ask(m: Memory, outputs: Outputs, row: int) -> None:
    """The answer over the whole window."""
    lower(m, query(m), outputs, row)


def slide(m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int) -> None:
    """For each row from `first` on: make room, insert, answer."""
    for row in range(first, rows):
        while get(m, END) - get(m, START) >= size:
            evict(m)
        insert(m, columns, row)
        lower(m, query(m), outputs, row)


def slide_by(
    m: Memory,
    columns: Columns,
    outputs: Outputs,
    first: int,
    rows: int,
    times: Any,
    limits: Any,
    count: int,
    answers: int,
) -> int:
    """For each row: evict what is before its limit, by the times of all from the oldest on, and the
    oldest of more than `count`; insert, and answer if answers are wanted.  Returns the row for
    which there was no room."""
    start = get(m, START)
    while get(m, END) - get(m, START) > count:
        evict(m)
    for row in range(first, rows):
        limit = item(limits, row)
        while get(m, START) < get(m, END) and item(times, get(m, START) - start) < limit:
            evict(m)
        while get(m, END) - get(m, START) >= count:
            evict(m)
        if get(m, END) - get(m, START) == get(m, CAPACITY):
            return row
        insert(m, columns, row)
        if answers:
            lower(m, query(m), outputs, row)
    return rows


def kernel(
    name: str,
    *functions: Any,
    entries: tuple[str, ...] = (),
    brief: tuple[str, ...] = (),
    **shape: Any,
) -> Kernel:
    """An in-order algorithm's kernel, from its own functions, and the ones above that it has no
    other way for."""
    own = ("insert", "evict", "ask", *brief)
    names = {function.__name__ for function in functions}
    common = tuple(f for f in (ask, slide, slide_by) if f.__name__ not in names)
    return Kernel(
        name,
        (*functions, *common),
        (*own, "slide", "slide_by", *entries),
        own,
        **shape,
    )


class InOrder(Snapshots):
    """A first-in, first-out window.

    An operator tied to types (`operator.of(float)`) runs compiled.  One that is not takes
    any Python value, in plain Python, unless the first thing an empty window is given is an
    array to `slide` over, which then says the types.

    The memory grows and shrinks with the window.  `capacity` reserves room for as many values,
    which is kept for as long as the window lives: up to there no value is ever moved.

    >>> from sash.aggregators import DabaLite
    >>> from sash.operators import max
    >>> isinstance(DabaLite(max, capacity=1000), InOrder)
    True
    """

    _kernel: ClassVar[Kernel]
    _owes: bool  # whether memory must still be given back

    def __init__(self, operator: Operator, *, capacity: int | None = None) -> None:
        if not isinstance(operator, Operator):
            raise TypeError(
                f"{type(self).__name__} needs an operator (one of sash.operators, or made by "
                f"sash.operator), not {operator!r}"
            )
        self._accept(operator)
        self._given = operator
        self._owes = False
        self._floor = self._capacity_for(check_capacity(capacity, "values"))
        self._core: BufferCore | ObjectCore = self._make(operator)

    def _make(self, operator: Operator, kernel: Kernel | None = None) -> BufferCore | ObjectCore:
        """An empty memory."""
        core = make_core(kernel or self._kernel, operator, SMALLEST)
        reserve_room(core, self._floor)
        return core

    @classmethod
    def _accept(cls, operator: Operator) -> None:
        """Refuse an operator that lacks what the algorithm needs."""

    @alone
    def insert(self, value: Any) -> None:
        """Add a value at the young end; None is null, a tuple has a value for each column."""
        if self._owes:
            self._settle()
        core = self._core
        header = core.header
        if header[END] - header[START] >= core.high:
            self._tend()
        core.fill(value)
        core.run.insert(core.m, core.cell, 0)

    @alone
    def evict(self) -> None:
        """Drop the oldest value."""
        if self._owes:
            self._settle()
        core = self._core
        header = core.header
        length = header[END] - header[START]
        if not length:
            raise IndexError("evict from an empty window: insert a value first")
        core.run.evict(core.m)
        if length <= core.low:
            self._tend()

    @alone
    def query(self) -> Any:
        """The answer over all values in the window."""
        core = self._core
        core.run.ask(core.m, core.answer, 0)
        return core.read()

    @alone
    def __len__(self) -> int:
        return self._length()

    def _length(self) -> int:
        header = self._core.header
        return header[END] - header[START]  # type: ignore[no-any-return]

    @alone
    def slide(self, values: Any, size: int) -> Any:
        """Insert each value in turn, with at most `size` in the window, and answer after each.

        `values` is a numpy array, an Arrow array or a list (for several columns a tuple of
        them); answers come back in the same kind.
        """
        size = check_size(size)
        table = read(values, len(self._given.skips))
        self._tie(table)
        core, length = self._core, self._length()
        self._reserve(max(length, min(size, length + table.rows)))
        before = core.get(END)
        with core.call(table.rows) as call:
            columns, outputs = call.columns(table), call.outputs(table.rows)
            try:
                self._slide(columns, outputs, table, size)
            except BaseException as error:
                self._catch_up()
                if isinstance(error, OverflowError):
                    raise call.at_row(error, core.get(END) - before - 1) from None
                raise
            finally:
                self._shrink()
            return call.answers(table.kind)

    def _slide(self, columns: Any, outputs: Any, table: Table, size: int) -> None:
        """Let the kernel slide over the columns of a table."""
        self._core.run.slide(self._core.m, columns, outputs, 0, table.rows, size)

    def _catch_up(self) -> None:
        """Bring the header up to what was done, after a call that raised."""

    def _tie(self, table: Table) -> None:
        """Let the first array that an empty window is given say the types."""
        if not self._length() and not self._given.types and "object" not in table.types:
            self._core = self._make(self._given.of(*table.types))

    def _leave(self, count: int) -> None:
        """Evict so many in one call."""
        core, left = self._core, self._length() - count
        with core.call() as call:
            none = call.integers(np.zeros(0, dtype=np.int64))
            core.run.slide_by(core.m, core.cell, core.answer, 0, 0, none, none, left, 0)
        if not core.gradual:
            self._shrink()
        elif left < core.low:
            self._tend(count)

    def _settle(self) -> None:
        """Give back the memory that is owed."""

    def _tend(self, operations: int = 1) -> None:
        """See to the memory, which is full or mostly empty, or on its way to another capacity."""
        core = self._core
        capacity = core.get(CAPACITY)
        if isinstance(core, BufferCore) and core.gradual:
            wanted = tend(core, operations)
        elif self._length() == capacity:
            wanted = self._larger(capacity)
        else:
            wanted = max(capacity // 2, core.floor)
        if wanted:
            self._resize(wanted)

    def _resize(self, capacity: int) -> None:
        """Move to a memory of another capacity."""
        self._replace(self._move, capacity)

    def _move(self, capacity: int) -> None:
        """Replace the memory (each algorithm says which of its slots go where)."""
        core = self._core
        core.resize(capacity, core.ring_blocks(core.get(CAPACITY), capacity))

    @staticmethod
    def _capacity_for(elements: int) -> int:
        """The least capacity for this many elements: places are positions modulo a power of two,
        unless the algorithm has another way."""
        return capacity_for(elements)

    @staticmethod
    def _larger(capacity: int) -> int:
        """The capacity that comes after this one as the window grows."""
        return 2 * capacity

    def _reserve(self, elements: int) -> None:
        """Make room for this many elements."""
        capacity = self._capacity_for(elements)
        if capacity > self._core.get(CAPACITY):
            self._resize(capacity)

    def _keep_room(self, capacity: int) -> None:
        """Have a capacity that is kept, as one that was reserved."""
        self._floor, self._core.floor = capacity, max(capacity, SMALLEST)
        self._reserve(self._core.floor)
        self._core.set_bounds()

    def _shrink(self) -> None:
        """Give back memory that is no longer needed."""
        wanted = self._core.smaller(self._length())
        if wanted < self._core.get(CAPACITY):
            self._resize(wanted)

    def _check(self) -> None:
        """Raise AssertionError if the structure is not as the algorithm needs it."""
        core = self._core
        capacity = core.get(CAPACITY)
        assert capacity >= core.floor >= SMALLEST
        assert capacity == self._capacity_for(capacity), f"there is no capacity {capacity}"
        assert 0 <= core.get(START) <= core.get(END) <= core.get(START) + capacity
        owes = self._owes or core.moving is not None
        assert capacity == core.floor or 4 * len(self) >= capacity // 2 or owes, (
            "memory was not given back"
        )
        assert core.high <= capacity, "the window would overflow"


def capacity_for(elements: int) -> int:
    """The least power of two with room for this many elements."""
    return 1 << max(elements - 1, SMALLEST - 1).bit_length()


def check_capacity(capacity: Any, what: str) -> int:
    """How many values or times to reserve room for; 0 if nothing is said."""
    if capacity is None:
        return 0
    whole = whole_number(capacity, f"capacity is a number of {what} to reserve room for")
    if whole < 1:
        raise ValueError(
            f"capacity is a number of {what} to reserve room for, at least 1, not {capacity!r}; "
            "leave it out if the memory is to grow by itself"
        )
    return whole


def reserve_room(core: BufferCore | ObjectCore, capacity: int) -> None:
    """Give an empty memory a capacity that it keeps."""
    if capacity > SMALLEST:
        core.floor = capacity
        with room_for(capacity, "values"):
            core.resize(capacity, [])


@contextmanager
def room_for(capacity: int, what: str) -> Iterator[None]:
    """Say what a memory is for if there is none of its size."""
    try:
        yield
    except (MemoryError, ValueError, OverflowError) as error:
        raise MemoryError(
            f"there is no memory for a capacity of {capacity:,} {what}; give a smaller capacity, "
            "or none: the memory grows by itself"
        ) from error


def check_size(size: Any) -> int:
    """A window size, a whole number of at least one, as an integer that kernels can count to."""
    whole = whole_number(size, "size is a number of values")
    if whole < 1:
        raise ValueError(f"a window holds at least one value, so size cannot be {size}")
    return whole


def whole_number(given: Any, what: str) -> int:
    """A whole number, cut to what kernels can count to; `what` says what it must be."""
    try:
        whole = index(given) if not isinstance(given, bool) else None
    except TypeError:
        whole = None
    if whole is None:
        raise TypeError(f"{what}, not {given!r}")
    return min(whole, 2**62)
