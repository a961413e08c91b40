"""The primitives that kernels are written in.

A kernel is a handful of plain functions over a memory `m`: a header of integers, and numbered
slots that each hold one partial (and, if the kernel asks for it, one integer link).  The functions
here only declare the primitives, since their code depends on the operator.  When sash specialises a
kernel, it replaces them: by generated code on a flat buffer (`text`), or by Python code on lists
for object partials (`objects`).  `fold`, `splice`, `weave`, `accumulate` and `advance` are kernel
functions themselves, written in `partial`, `combined` and `set_partial` (`chains`).
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

Memory: TypeAlias = Any  # an address for compiled and checked kernels, an ObjectMemory for others
Columns: TypeAlias = Any  # the input columns
Outputs: TypeAlias = Any  # the place for answers
Partials: TypeAlias = Any  # an array of partials outside the memory

#: Header fields of every kernel.  Positions in the stream only ever grow: the element at position p
#: of a window with room for CAPACITY elements (a power of two) is at place p & (CAPACITY - 1), and
#: START <= p < END.  Fields from 3 on are the kernel's own.
CAPACITY, START, END = 0, 1, 2
HEADER = 24  # words

#: A kernel sets this field to 1 while its structure is not sound: if combine raises meanwhile, the
#: window is unusable from then on.
BUSY = HEADER - 1

#: While `advance` runs, it leaves the other fields alone, and this field counts its progress: 2 for
#: each row that it has inserted, and 1 more when it has evicted an element for the next row.
AHEAD = HEADER - 2

#: The number of words of a partial: in a list it is 1.  Where a kernel lays out its memory itself
#: (`Kernel.own`), a slot's number is the number of its first word.
WIDTH = 1

#: 1 if slots hold Python objects, to which a kernel must drop its references; 0 in a buffer.
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
    """slot[dst] = `count` neighbouring slots from `first` on combined; `count` is at least 1.  Only
    for a memory that the kernel lays out itself."""
    _declared()


def splice(m: Memory, dst: int, first: int, count: int, at: int, new: int) -> None:
    """Like `fold`, with slot[new] inserted before the slot that is `at` places after `first`."""
    _declared()


def weave(
    m: Memory, dst: int, between: int, first: int, count: int, head: int, tail: int, at: int
) -> None:
    """slot[dst] = between[0], first[0], between[1], first[1], …, first[count - 1], between[count],
    combined; without between[0] if head is 0, and without between[count] if tail is 0.  between[at]
    is never a slot that is left out, and may have changed just now."""
    _declared()


def accumulate(m: Memory, ring: int, mask: int, first: int, last: int) -> None:
    """For each position p from `first` to `last`: slot[p] = all slots from p to `last` combined.
    Position p is in slot `ring + (p & mask)`; there is at least one position."""
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
    """For each of `rows` rows from `row` on: drop the oldest position of a ring, lift the row into
    the youngest position, combine it into slot[total], and answer the oldest slot that is left,
    combined with slot[total].  `advance` uses slot[answer] on the way.  There are so few rows that
    no position that it adds becomes the oldest."""
    _declared()


def partial(m: Memory, src: int) -> Any:
    """The partial in slot[src] as a value, for chains that keep it in registers.  Vectors have
    none: they stay in their slots."""
    _declared()


def gathered(m: Memory, src: int) -> Any:
    """The partial in slot[src] as a value, for loops whose turns do not depend on each other: the
    compiler loads the slots of several turns at once.  In chains `partial` is faster."""
    _declared()


def lowered(m: Memory, value: Any, outputs: Outputs, row: int) -> None:
    """One row of the output = the answer of a partial."""
    _declared()


def set_partial(m: Memory, dst: int, value: Any) -> None:
    """slot[dst] = a partial."""
    _declared()


def combined(a: Any, b: Any) -> Any:
    """Two partials combined."""
    _declared()


def short(i: int) -> int:
    """Return the index of a loop of few turns unchanged.  As the compiler does not see that, it
    neither unrolls the loop nor turns it into vector code."""
    _declared()


def inverse(m: Memory, dst: int, total: int, old: int) -> None:
    """slot[dst] = slot[total] without its oldest part slot[old]."""
    _declared()


def copy(m: Memory, dst: int, src: int) -> None:
    """slot[dst] = slot[src]."""
    _declared()


def alike(m: Memory, a: int, b: int) -> bool:
    """True if two slots hold the same bits or the same object, which is stricter than equality."""
    _declared()


def clear(m: Memory, dst: int) -> None:
    """slot[dst] = identity."""
    _declared()


def drop(m: Memory, dst: int) -> None:
    """Free a slot that the kernel no longer needs: drop its references to Python objects."""
    _declared()


def lift(m: Memory, dst: int, columns: Columns, row: int) -> None:
    """slot[dst] = the partial of one row of the input."""
    _declared()


def fold_rows(m: Memory, dst: int, new: int, columns: Columns, first: int, last: int) -> None:
    """slot[dst] = the rows from `first` up to `last` (at least one row, and `last` is excluded),
    lifted and combined.  `fold_rows` may overwrite slot[new]."""
    _declared()


def lower(m: Memory, src: int, outputs: Outputs, row: int) -> None:
    """One row of the output = the answer of slot[src]."""
    _declared()


def load(m: Memory, dst: int, partials: Partials, row: int) -> None:
    """slot[dst] = partials[row]."""
    _declared()


def store(m: Memory, src: int, partials: Partials, row: int) -> None:
    """partials[row] = slot[src]."""
    _declared()


def holds(m: Memory, total: int, old: int) -> bool:
    """True if the operator's rule says that the oldest part of the window must leave it.  slot[old]
    is the partial of that part, slot[total] the partial of the whole window."""
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
    """Move a run of words, integers or partials; the old and the new place may overlap."""
    _declared()


def item(array: Any, i: int) -> int:
    """An integer of an array that the caller passes to the kernel."""
    _declared()


def set_item(array: Any, i: int, value: int) -> None:
    """Set an integer of an array that the caller passes to the kernel."""
    _declared()


def set_half(array: Any, i: int, value: int) -> None:
    """Set an integer of an array of integers of 32 bits, which must hold it."""
    _declared()


def below(array: Any, i: int, bound: int) -> int:
    """Count how many of the eight integers of an array from `i` on are less than a bound.  Compiled
    kernels compare all eight at once."""
    _declared()


def set_ranks(array: Any, at: int, times: Any, i: int, less: int, low: int) -> None:
    """For each of the eight integers t of `times` from `i` on: set an integer of `array`, from `at`
    on, to the place of the first integer of `times`, from `low` on, that is at least t - less.
    Neither `less` nor i - low is below 0.  The integers from `low` on are in order; there are 15
    after the eight."""
    _declared()


def number(array: Any, i: int) -> float:
    """A float of an array of floats; the caller passes it to the kernel as integers with the same
    bits."""
    _declared()


def set_number(array: Any, i: int, value: float) -> None:
    """Set a float of an array of floats."""
    _declared()


def zeros(i: int) -> int:
    """Count the zero bits below the lowest bit that is one; `i` is not 0."""
    _declared()


def root(value: Any) -> Any:
    """The square root of a float, or of each of eight."""
    _declared()


def lanes(array: Any, i: int) -> Any:
    """Eight floats of an array of floats, from `i` on, as one value.  Arithmetic with other lanes
    works lane by lane, and arithmetic with a float works on each lane; compiled kernels compute all
    eight at once."""
    _declared()


def set_lanes(array: Any, i: int, values: Any) -> None:
    """Set eight floats of an array of floats, from `i` on."""
    _declared()


def lanes_by(array: Any, i: int, stride: int) -> Any:
    """Eight floats of an array of floats, from `i` on, `stride` floats apart."""
    _declared()


def set_lanes_by(array: Any, i: int, stride: int, values: Any) -> None:
    """Set eight floats of an array of floats, from `i` on, `stride` floats apart."""
    _declared()
