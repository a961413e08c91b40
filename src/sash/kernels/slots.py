"""The primitives that kernels are written in.

A kernel is a handful of plain functions over a memory `m`: a header of integers, and numbered
slots that each hold one partial (and, if the kernel asks for it, one integer link).  What a
primitive does depends on the operator, so it is bound when the kernel is specialised: to generated
code on a flat buffer (`text`), or to Python lists for object partials (`objects`).  The functions
here only declare the primitives; `fold`, `splice`, `weave` and `accumulate` are kernel functions
themselves, written in `partial`, `combined` and `set_partial` (`chains`).
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

Memory: TypeAlias = Any  # an address for compiled kernels, an object for others
Columns: TypeAlias = Any  # the input columns
Outputs: TypeAlias = Any  # where answers go
Partials: TypeAlias = Any  # an array of partials outside the memory

#: Header fields that every kernel has.  Positions in the stream only ever grow: an element
#: at position p of a window with room for CAPACITY (a power of two) has p & (CAPACITY - 1)
#: for its place, and START <= p < END.  Fields from 3 on are the kernel's own.
CAPACITY, START, END = 0, 1, 2
HEADER = 24  # words

#: A kernel says so in this field while its structure is not sound: if combine raises just then, the
#: window can no longer be used.
BUSY = HEADER - 1

#: While `advance` runs, the other fields stand still, and this one counts what it has done: 2 for
#: each row, and 1 more when an element has left for the next.
AHEAD = HEADER - 2

#: In a kernel that lays out its memory itself (`Kernel.own`), a slot's number is where it starts,
#: in words, and a partial takes this many: as many as it needs in a buffer, one in a list.
WIDTH = 1

#: Whether slots hold Python objects, which must be let go of: 0 in a buffer.
OBJECTS = 1


def _declared() -> NoReturn:
    raise RuntimeError("this primitive has a meaning only inside a specialised kernel")


def get(m: Memory, field: int) -> int:
    """A field of the header."""
    _declared()


def put(m: Memory, field: int, value: int) -> None:
    """Set a field of the header."""
    _declared()


def combine(m: Memory, dst: int, left: int, right: int) -> None:
    """slot[dst] = slot[left] combined with slot[right]; dst may be either of them."""
    _declared()


def fold(m: Memory, dst: int, first: int, count: int) -> None:
    """slot[dst] = `count` neighbouring slots from `first` on, at least one, combined; in a memory
    that the kernel lays out itself."""
    _declared()


def splice(m: Memory, dst: int, first: int, count: int, at: int, new: int) -> None:
    """The same with slot[new] before the one that is `at` places after `first`."""
    _declared()


def weave(
    m: Memory, dst: int, between: int, first: int, count: int, head: int, tail: int, at: int
) -> None:
    """slot[dst] = between[0], first[0], between[1], first[1], …, first[count - 1], between[count],
    combined; without the first of them if head is 0, and without the last if tail is.  between[at]
    is one that is there, and may have changed just now."""
    _declared()


def accumulate(m: Memory, ring: int, mask: int, first: int, last: int) -> None:
    """Each slot of the positions from `first` to `last`, at least one, = all from it to `last`
    combined; position p is in slot `ring + (p & mask)`."""
    _declared()


def advance(
    m: Memory,
    ring: int,
    mask: int,
    total: int,
    answer: int,
    columns: Columns,
    outputs: Outputs,
    row: int,
    rows: int,
) -> None:
    """For each of so many rows, from `row` on: drop the oldest position of a ring, add the row's as
    the youngest and to slot[total], and answer the oldest slot that is left combined with
    slot[total].  slot[answer] is used on the way.  No position that is added becomes the oldest."""
    _declared()


def partial(m: Memory, src: int) -> Any:
    """The partial in slot[src] as a value, for chains that keep it in registers; not for vectors,
    which have a place instead of a value."""
    _declared()


def set_partial(m: Memory, dst: int, value: Any) -> None:
    """slot[dst] = a partial."""
    _declared()


def combined(a: Any, b: Any) -> Any:
    """Two partials combined."""
    _declared()


def short(i: int) -> int:
    """The index of a loop of few turns, as it is.  The compiler does not see through it, and so
    neither unrolls the loop nor makes vectors of its values."""
    _declared()


def inverse(m: Memory, dst: int, total: int, old: int) -> None:
    """slot[dst] = slot[total] without its oldest part slot[old]."""
    _declared()


def copy(m: Memory, dst: int, src: int) -> None:
    """slot[dst] = slot[src]."""
    _declared()


def alike(m: Memory, a: int, b: int) -> bool:
    """Whether two slots hold the very same; partials that are equal may still not be alike."""
    _declared()


def clear(m: Memory, dst: int) -> None:
    """slot[dst] = identity."""
    _declared()


def drop(m: Memory, dst: int) -> None:
    """The slot is not needed any more: let go of the objects it holds, if it holds any."""
    _declared()


def lift(m: Memory, dst: int, columns: Columns, row: int) -> None:
    """slot[dst] = the partial of one row of the input."""
    _declared()


def fold_rows(m: Memory, dst: int, new: int, columns: Columns, first: int, last: int) -> None:
    """slot[dst] = the rows from `first` up to `last`, at least one, lifted and combined; slot[new]
    may be used on the way."""
    _declared()


def lower(m: Memory, src: int, outputs: Outputs, row: int) -> None:
    """One row of the output = the answer of slot[src]."""
    _declared()


def load(m: Memory, dst: int, partials: Partials, row: int) -> None:
    """slot[dst] = a partial out of an array of them."""
    _declared()


def store(m: Memory, src: int, partials: Partials, row: int) -> None:
    """A partial in an array of them = slot[src]."""
    _declared()


def holds(m: Memory, total: int, old: int) -> bool:
    """Whether the operator's rule holds: of all that is in the window, slot[total], at least the
    oldest part, slot[old], must go."""
    _declared()


def link(m: Memory, slot: int) -> int:
    """The integer beside a slot's partial."""
    _declared()


def set_link(m: Memory, slot: int, value: int) -> None:
    """Set the integer beside a slot's partial."""
    _declared()


def word(m: Memory, at: int) -> int:
    """An integer in a memory that the kernel lays out itself."""
    _declared()


def set_word(m: Memory, at: int, value: int) -> None:
    """Set an integer in a memory that the kernel lays out itself."""
    _declared()


def move_words(m: Memory, to: int, start: int, count: int) -> None:
    """Move a run of words, integers or partials; where they were and are may overlap."""
    _declared()


def item(array: Any, i: int) -> int:
    """An integer of an array that the caller passes to the kernel."""
    _declared()


def set_item(array: Any, i: int, value: int) -> None:
    """Set an integer of an array that the caller passes to the kernel."""
    _declared()


def below(array: Any, i: int, bound: int) -> int:
    """How many of the eight integers of an array from `i` on are less than a bound: in compiled
    kernels, one comparison of eight."""
    _declared()


def number(array: Any, i: int) -> float:
    """A float of an array that the caller passes to the kernel as integers with the same bits."""
    _declared()


def set_number(array: Any, i: int, value: float) -> None:
    """Set a float of such an array."""
    _declared()


def root(value: Any) -> Any:
    """The square root of a float, or of each of eight."""
    _declared()


def lanes(array: Any, i: int) -> Any:
    """Eight floats of such an array, from `i` on, as one value: they are added, subtracted,
    multiplied and divided each by itself, with other lanes or a float, in compiled kernels at
    once."""
    _declared()


def set_lanes(array: Any, i: int, values: Any) -> None:
    """Set eight floats of such an array."""
    _declared()


def lanes_by(array: Any, i: int, stride: int) -> Any:
    """Eight floats of such an array, from `i` on, each `stride` behind the one before."""
    _declared()


def set_lanes_by(array: Any, i: int, stride: int, values: Any) -> None:
    """Set eight floats of such an array, each `stride` behind the one before."""
    _declared()
