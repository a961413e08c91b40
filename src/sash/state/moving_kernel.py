"""Sums of squared deviations from the mean over the last rows of each row, where all have a value,
which is no infinity.

How many rows a partial stands for follows from where they are, and so do the weights of all merges:
they are looked up in a table, where the operators divide.  Rows go through two stacks as in
`frames_kernel`, with the same merges in the same order, so that answers are the same to the bit.
While frames are full, a front has one row less than a frame:

    rows      | first frame   |   block      |   block      |   block   …
    a frame              [-------------]
                          front   back

So a frame is the rest of one block and the beginning of the next.  A block is gone through once,
from both ends: its rows so far are the back of the frames that are answered, and what is from each
row to its end becomes the front of those that follow.  A block of the first half of a group's rows
and one of the second are gone through at once: a merge waits for the one before it, so a processor
has four chains of merges to work on.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, number, set_number

__all__ = ["MOVING", "PER_COUNT"]

PER_COUNT = 4  # numbers in the table for each count of rows: see `state.moving.table_of`


def first_frame(
    m: Memory, values: Any, row: int, count: int, skip: int, table: Any, to: int, squares: Any
) -> None:
    """Answer the frames of so many rows, which hold all rows so far, from row `skip` on; here and
    below, the answer of row r goes to place r + `to`."""
    p, p2 = number(values, row), 0.0
    if row >= skip:
        set_number(squares, row + to, p2)
    for j in range(1, count):
        d = number(values, row + j) - p
        p += d * number(table, PER_COUNT * j)
        p2 += d * d * number(table, PER_COUNT * j + 1)
        if row + j >= skip:
            set_number(squares, row + j + to, p2)


def fold_front(m: Memory, values: Any, row: int, count: int, table: Any, front: Any) -> None:
    """Merge the rows of a block from its end: means and squares from each row on."""
    s, s2 = number(values, row + count - 1), 0.0
    set_number(front, 2 * count - 2, s)
    set_number(front, 2 * count - 1, s2)
    for j in range(1, count):
        x = number(values, row + count - 1 - j)
        d = s - x
        rest = number(table, PER_COUNT * j + 2)
        s = x + d * rest
        s2 += d * d * rest
        set_number(front, 2 * (count - 1 - j), s)
        set_number(front, 2 * (count - 1 - j) + 1, s2)


def fold_back(
    m: Memory, values: Any, row: int, count: int, table: Any, front: Any, to: int, squares: Any
) -> None:
    """Answer the frames of so many rows, with the front of the block before theirs."""
    p, p2 = number(values, row), 0.0
    d = p - number(front, 0)
    set_number(squares, row + to, number(front, 1) + p2 + d * d * number(table, 3))
    for j in range(1, count):
        d = number(values, row + j) - p
        p += d * number(table, PER_COUNT * j)
        p2 += d * d * number(table, PER_COUNT * j + 1)
        d = p - number(front, 2 * j)
        answer = number(front, 2 * j + 1) + p2 + d * d * number(table, PER_COUNT * j + 3)
        set_number(squares, row + j + to, answer)


def fold_two(
    m: Memory,
    values: Any,
    row: int,
    other: int,
    count: int,
    table: Any,
    front: Any,
    new: Any,
    front2: Any,
    new2: Any,
    to: int,
    squares: Any,
) -> None:
    """`fold_back` for two whole blocks, and `fold_front` for the new fronts that they make, side by
    side."""
    top, top2 = row + count - 1, other + count - 1
    p, p2 = number(values, row), 0.0
    d = p - number(front, 0)
    set_number(squares, row + to, number(front, 1) + p2 + d * d * number(table, 3))
    q, q2 = number(values, other), 0.0
    d = q - number(front2, 0)
    set_number(squares, other + to, number(front2, 1) + q2 + d * d * number(table, 3))
    s, s2 = number(values, top), 0.0
    set_number(new, 2 * count - 2, s)
    set_number(new, 2 * count - 1, s2)
    t, t2 = number(values, top2), 0.0
    set_number(new2, 2 * count - 2, t)
    set_number(new2, 2 * count - 1, t2)
    for j in range(1, count):
        share, weight = number(table, PER_COUNT * j), number(table, PER_COUNT * j + 1)
        rest, both = number(table, PER_COUNT * j + 2), number(table, PER_COUNT * j + 3)
        d = number(values, row + j) - p
        e = number(values, other + j) - q
        p += d * share
        q += e * share
        p2 += d * d * weight
        q2 += e * e * weight
        d = p - number(front, 2 * j)
        e = q - number(front2, 2 * j)
        set_number(squares, row + j + to, number(front, 2 * j + 1) + p2 + d * d * both)
        set_number(squares, other + j + to, number(front2, 2 * j + 1) + q2 + e * e * both)
        x, y = number(values, top - j), number(values, top2 - j)
        d, e = s - x, t - y
        s, t = x + d * rest, y + e * rest
        s2 += d * d * rest
        t2 += e * e * rest
        set_number(new, 2 * (count - 1 - j), s)
        set_number(new, 2 * (count - 1 - j) + 1, s2)
        set_number(new2, 2 * (count - 1 - j), t)
        set_number(new2, 2 * (count - 1 - j) + 1, t2)


def squares_of_rows(
    m: Memory,
    values: Any,
    bounds: Any,
    groups: int,
    size: int,
    skip: int,
    table: Any,
    front: Any,
    new: Any,
    front2: Any,
    new2: Any,
    to: int,
    squares: Any,
) -> None:
    """For each row of so many groups, from `skip` on, the squares over it and the rows of its group
    before it, `size` in all.  No row before `skip` is behind the first full frame of its group.
    Fronts have room for two numbers a row of a block."""
    block = size - 1
    for g in range(groups):
        row, end = item(bounds, g), item(bounds, g + 1)
        if row < end:
            first_frame(m, values, row, min(size, end - row), skip, table, to, squares)
            row += size
            half = (end - row) // block // 2
            if half > 0:
                other = row + half * block
                fold_front(m, values, row - block, block, table, front)
                fold_front(m, values, other - block, block, table, front2)
                for _ in range(half):
                    fold_two(
                        m, values, row, other, block, table, front, new, front2, new2, to, squares
                    )
                    front, new = new, front
                    front2, new2 = new2, front2
                    row += block
                    other += block
                row = other
            while row < end:
                fold_front(m, values, row - block, block, table, front)
                fold_back(m, values, row, min(block, end - row), table, front, to, squares)
                row += block


#: The kernel, for no operator in particular.
MOVING = Kernel(
    "moving",
    (first_frame, fold_front, fold_back, fold_two, squares_of_rows),
    ("squares_of_rows",),
)
