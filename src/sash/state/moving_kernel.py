"""Variances and standard deviations over the last rows of each row, where all have a value, which
is no infinity.

How many rows a partial stands for follows from where they are, and so do the weights of all merges:
they are looked up in a table, where the operators divide.  Rows go through two stacks as in
`frames_kernel`, with the same merges in the same order, so that answers are the same to the bit.
While frames are full, a front has one row less than a frame:

    rows      | first frame   |   block      |   block      |   block   …
    a frame              [-------------]
                          front   back

So a frame is the rest of one block and the beginning of the next.  A block is gone through once,
from both ends: its rows so far are the back of the frames that are answered, and what is from each
row to its end becomes the front of those that follow.

A merge waits for the one before it, so eight runs of blocks are gone through at once, one in each
lane.  Where fewer are left, lanes run on into the rows behind: what they answer there is written
over, as rows are answered in order.  Where there are no more rows, lanes answer some blocks again.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import (
    Memory,
    item,
    lanes,
    lanes_by,
    number,
    root,
    set_lanes,
    set_lanes_by,
    set_number,
)

__all__ = ["MOVING", "PER_COUNT", "PER_ROW"]

PER_COUNT = 4  # numbers in the table for each count of rows: see `state.moving.table_of`
LANES = 8
PER_ROW = 2 * LANES  # numbers for each row of eight fronts: means and squares


def answered(m: Memory, squares: Any, count: int, rooted: int) -> Any:
    """The answer out of a sum of squared deviations, or out of those of eight lanes."""
    found = squares / float(count)
    if rooted:
        found = root(found)
    return found


def first_frame(
    m: Memory,
    values: Any,
    row: int,
    count: int,
    skip: int,
    table: Any,
    less: int,
    rooted: int,
    to: int,
    found: Any,
) -> None:
    """Answer the frames of so many rows, which hold all rows so far, from row `skip` on; here and
    below, the answer of row r goes to place r + `to`.  Over a single row there is one only if
    nothing is subtracted from the count."""
    p, p2 = number(values, row), 0.0
    if row >= skip:
        set_number(found, row + to, p - p)
    for j in range(1, count):
        d = number(values, row + j) - p
        p += d * number(table, PER_COUNT * j)
        p2 += d * d * number(table, PER_COUNT * j + 1)
        if row + j >= skip:
            set_number(found, row + j + to, answered(m, p2, j + 1 - less, rooted))


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
    m: Memory,
    values: Any,
    row: int,
    count: int,
    table: Any,
    front: Any,
    divisor: int,
    rooted: int,
    to: int,
    found: Any,
) -> None:
    """Answer the frames of so many rows, with the front of the block before theirs."""
    p, p2 = number(values, row), 0.0
    d = p - number(front, 0)
    squares = number(front, 1) + d * d * number(table, 3)
    set_number(found, row + to, answered(m, squares, divisor, rooted))
    for j in range(1, count):
        d = number(values, row + j) - p
        p += d * number(table, PER_COUNT * j)
        p2 += d * d * number(table, PER_COUNT * j + 1)
        d = p - number(front, 2 * j)
        squares = number(front, 2 * j + 1) + p2 + d * d * number(table, PER_COUNT * j + 3)
        set_number(found, row + j + to, answered(m, squares, divisor, rooted))


def fold_fronts(
    m: Memory, values: Any, row: int, stride: int, count: int, table: Any, front: Any
) -> None:
    """`fold_front` for eight blocks, of which each begins `stride` rows behind the one before."""
    s = lanes_by(values, row + count - 1, stride)
    s2 = s - s
    set_lanes(front, PER_ROW * (count - 1), s)
    set_lanes(front, PER_ROW * (count - 1) + LANES, s2)
    for j in range(1, count):
        x, rest = lanes_by(values, row + count - 1 - j, stride), number(table, PER_COUNT * j + 2)
        d = s - x
        s = x + d * rest
        s2 = s2 + d * d * rest
        set_lanes(front, PER_ROW * (count - 1 - j), s)
        set_lanes(front, PER_ROW * (count - 1 - j) + LANES, s2)


def fold_lanes(
    m: Memory,
    values: Any,
    row: int,
    stride: int,
    count: int,
    table: Any,
    front: Any,
    new: Any,
    divisor: int,
    rooted: int,
    to: int,
    found: Any,
) -> None:
    """`fold_back` for eight such blocks, and `fold_front` for the new fronts that they make, side
    by side."""
    top = row + count - 1
    p, s = lanes_by(values, row, stride), lanes_by(values, top, stride)
    p2, s2 = p - p, s - s
    d = p - lanes(front, 0)
    squares = lanes(front, LANES) + d * d * number(table, 3)
    set_lanes_by(found, row + to, stride, answered(m, squares, divisor, rooted))
    set_lanes(new, PER_ROW * (count - 1), s)
    set_lanes(new, PER_ROW * (count - 1) + LANES, s2)
    for j in range(1, count):
        d = lanes_by(values, row + j, stride) - p
        p = p + d * number(table, PER_COUNT * j)
        p2 = p2 + d * d * number(table, PER_COUNT * j + 1)
        d = p - lanes(front, PER_ROW * j)
        squares = lanes(front, PER_ROW * j + LANES) + p2 + d * d * number(table, PER_COUNT * j + 3)
        set_lanes_by(found, row + j + to, stride, answered(m, squares, divisor, rooted))
        x, rest = lanes_by(values, top - j, stride), number(table, PER_COUNT * j + 2)
        d = s - x
        s = x + d * rest
        s2 = s2 + d * d * rest
        set_lanes(new, PER_ROW * (count - 1 - j), s)
        set_lanes(new, PER_ROW * (count - 1 - j) + LANES, s2)


def answers_of_rows(
    m: Memory,
    values: Any,
    bounds: Any,
    groups: int,
    size: int,
    skip: int,
    table: Any,
    front: Any,
    new: Any,
    less: int,
    rooted: int,
    to: int,
    found: Any,
) -> None:
    """For each row of so many groups, from `skip` on, the answer over it and the rows of its group
    before it, `size` in all: their squares by their count, less `less`, and the root of that if
    `rooted`.  No row before `skip` is behind the first full frame of its group.  Fronts have room
    for `PER_ROW` numbers a row of a block."""
    block, rows = size - 1, item(bounds, groups)
    for g in range(groups):
        row, end = item(bounds, g), item(bounds, g + 1)
        if row < end:
            count = min(size, end - row)
            first_frame(m, values, row, count, skip, table, less, rooted, to, found)
            row += size
            first = row
            while row + block < end:
                beyond = row + LANES * block - rows
                back = max((beyond + block - 1) // block, 0) * block
                if row - back < first:
                    break
                row -= back
                each = max((end - row) // block // LANES, 1)  # blocks of a lane
                stride = each * block
                fold_fronts(m, values, row - block, stride, block, table, front)
                for k in range(each):
                    at = row + k * block
                    fold_lanes(
                        m, values, at, stride, block, table, front, new, size - less, rooted,
                        to, found
                    )  # fmt: skip
                    front, new = new, front
                row += LANES * stride
            while row < end:
                count = min(block, end - row)
                fold_front(m, values, row - block, block, table, front)
                fold_back(m, values, row, count, table, front, size - less, rooted, to, found)
                row += block


#: The kernel, for no operator in particular.
MOVING = Kernel(
    "moving",
    (answered, first_frame, fold_front, fold_back, fold_fronts, fold_lanes, answers_of_rows),
    ("answers_of_rows",),
)
