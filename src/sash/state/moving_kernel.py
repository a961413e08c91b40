"""Variances and standard deviations over the last n rows at each row, if all rows have a finite
value.

The places of rows determine how many rows a partial stands for, and so the weights of all merges:
the kernel looks them up in a table, where the operators divide.  Rows go through two stacks as in
`frames_kernel`, with the same merges in the same order, so the answers are the same to the bit.
While frames are full, a front has one row less than a frame:

    rows      | first frame   |   block      |   block      |   block   …
    a frame              [-------------]
                          front   back

So a frame is the end of one block and the beginning of the next.  The kernel goes through a block
once, from both ends: its rows so far are the back of the frames that are being answered, and the
partials from each row to the block's end become the front of the frames after them.

A merge waits for the merge before it, so the kernel goes through eight runs of blocks at once, one
in each lane.  If fewer blocks are left, lanes run on into the rows after them: their answers are
written over later, because rows are answered in order.  If there are no more rows, lanes answer
some blocks again.
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
    """The answer from a sum of squared deviations, or the answers from the sums of eight lanes."""
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
    """Answer the frames of `count` rows of a group, from row `skip` on; each frame holds all rows
    of the group so far.  Here and below, the answer of row r goes to place r + `to`.  A single row
    has an answer only if nothing is subtracted from the count."""
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
    """Merge the rows of a block from its end backwards: the mean and the squares from each row
    on."""
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
    """Answer the frames of `count` rows of a block, with the front of the block before."""
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
    """`fold_front` for eight blocks; each begins `stride` rows after the one before."""
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
    """`fold_back` for eight such blocks and, side by side with it, `fold_front` for the new fronts
    that these blocks become."""
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
    """For each row of `groups` groups, from row `skip` on, answer the frame of the row and the rows
    of its group before it, at most `size` in all: the squares divided by the count minus `less`,
    and the root of that if `rooted`.  No row before `skip` may come after the first full frame of
    its group.  Fronts have room for `PER_ROW` numbers for each row of a block."""
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


#: The kernel; it uses no operator.
MOVING = Kernel(
    "moving",
    (answered, first_frame, fold_front, fold_back, fold_fronts, fold_lanes, answers_of_rows),
    ("answers_of_rows",),
)
