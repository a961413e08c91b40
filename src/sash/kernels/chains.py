"""Functions that combine many slots, for partials that are values: scalars, tuples, objects.

`slots` specifies these functions.  They keep the combined partial in registers.  If each step
loaded the partial that the step before has stored, it would wait for memory, and two stacks would
be slower by half (mean: 7.1 ns a row instead of 4.4).  Within a node they combine in two chains,
which a processor works on at once.
"""

from __future__ import annotations

from collections.abc import Callable

from .slots import (
    AHEAD,
    END,
    START,
    WIDTH,
    Columns,
    Memory,
    Outputs,
    combined,
    drop,
    get,
    lift,
    lower,
    partial,
    put,
    set_partial,
    short,
)

__all__ = ["accumulate", "advance", "chains", "fold", "splice", "weave"]


def chains(*, own: bool, vectors: bool = False) -> tuple[Callable[..., None], ...]:
    """The functions for a kernel that lays out its memory itself (`own`), or for a kernel with a
    ring."""
    if vectors:
        from . import vector_chains as by_place

        return (
            (by_place.fold, by_place.splice, by_place.weave)
            if own
            else (by_place.accumulate, by_place.advance)
        )
    return (fold, splice, weave) if own else (accumulate, advance)


def accumulate(m: Memory, ring: int, mask: int, first: int, last: int) -> None:
    """Replace each slot of a ring from `first` to `last` by the aggregate of it and all slots
    after it up to `last`."""
    x = partial(m, ring + (last & mask))
    for i in range(last - 1, first - 1, -1):
        at = ring + (i & mask)
        x = combined(partial(m, at), x)
        set_partial(m, at, x)


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
    """Evict, insert and answer for each row.  The answer combines the oldest slot with slot
    `total`, the partial of all rows inserted since that slot was computed."""
    x = partial(m, total)
    start = get(m, START) + 1
    end = get(m, END)
    for i in range(rows):
        drop(m, ring + ((start + i - 1) & mask))
        put(m, AHEAD, 2 * i + 1)
        at = ring + ((end + i) & mask)
        lift(m, at, columns, row + i)
        x = combined(x, partial(m, at))
        put(m, AHEAD, 2 * i + 2)
        set_partial(m, answer, combined(partial(m, ring + ((start + i) & mask)), x))
        lower(m, answer, outputs, row + i)
    set_partial(m, total, x)
    put(m, START, start + rows - 1)
    put(m, END, end + rows)
    put(m, AHEAD, 0)


def fold(m: Memory, dst: int, first: int, count: int) -> None:
    """Combine neighbouring slots: the older and the younger half in two chains at once."""
    half = count >> 1
    x = partial(m, first)
    if half < 2:
        for j in range(1, count):
            x = combined(x, partial(m, first + WIDTH * short(j)))
    else:
        y = partial(m, first + WIDTH * half)
        for j in range(1, half):
            i = short(j)
            x = combined(x, partial(m, first + WIDTH * i))
            y = combined(y, partial(m, first + WIDTH * (half + i)))
        if count & 1:
            y = combined(y, partial(m, first + WIDTH * (count - 1)))
        x = combined(x, y)
    set_partial(m, dst, x)


def splice(m: Memory, dst: int, first: int, count: int, at: int, new: int) -> None:
    """Combine neighbouring slots with a new one between them.

    The new slot is combined last: it was computed just now, and the chains of the slots before and
    after it need not wait for it.
    """
    z = partial(m, new)
    if at < count:
        y = partial(m, first + WIDTH * at)
        for j in range(at + 1, count):
            y = combined(y, partial(m, first + WIDTH * short(j)))
        z = combined(z, y)
    if at > 0:
        x = partial(m, first)
        for j in range(1, at):
            x = combined(x, partial(m, first + WIDTH * short(j)))
        z = combined(x, z)
    set_partial(m, dst, z)


def weave(
    m: Memory, dst: int, between: int, first: int, count: int, head: int, tail: int, at: int
) -> None:
    """Combine two runs of slots, one slot of each run in turn.

    The slot `between[at]` has changed just now, so it is combined last, as in `splice`.
    """
    z = partial(m, between + WIDTH * at)
    if at < count:
        y = partial(m, first + WIDTH * at)
        for j in range(at + 1, count):
            i = short(j)
            y = combined(y, partial(m, between + WIDTH * i))
            y = combined(y, partial(m, first + WIDTH * i))
        if tail != 0:
            y = combined(y, partial(m, between + WIDTH * count))
        z = combined(z, y)
    if at > 0:
        x = partial(m, first)
        for j in range(1, at):
            i = short(j)
            x = combined(x, partial(m, between + WIDTH * i))
            x = combined(x, partial(m, first + WIDTH * i))
        if head != 0:
            x = combined(partial(m, between), x)
        z = combined(x, z)
    set_partial(m, dst, z)
