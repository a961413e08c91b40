"""The functions of `over_kernel` for partials that are vectors: they stay in their slots, and are
never in local variables."""

from __future__ import annotations

from ..kernels.slots import Columns, Memory, Outputs, combine, copy, get, lift, lower, put
from .over_steps import ANSWER, CHUNK, OPEN, PREFIX, TABLE, TABLED, row_slot

__all__ = ["answer_three", "answer_two", "fill", "tabulate"]


def fill(m: Memory, columns: Columns, row: int, last: int) -> int:
    """Lift the rows before `last` into the open chunk."""
    opened = get(m, OPEN)
    while row < last:
        at = row_slot(m, row)
        lift(m, at, columns, row)
        row += 1
        combine(m, PREFIX + row - opened, PREFIX + row - 1 - opened, at)
    return row


def answer_two(m: Memory, a: int, b: int, outputs: Outputs, row: int) -> None:
    """Answer two slots combined."""
    combine(m, ANSWER, a, b)
    lower(m, ANSWER, outputs, row)


def answer_three(m: Memory, a: int, b: int, c: int, outputs: Outputs, row: int) -> None:
    """Answer three slots combined."""
    combine(m, ANSWER, a, b)
    combine(m, ANSWER, ANSWER, c)
    lower(m, ANSWER, outputs, row)


def tabulate(m: Memory, rows: int) -> None:
    """Fill the table of the open chunk, of which the first `rows` rows are there."""
    opened = get(m, OPEN)
    line = TABLE
    half = 1
    while half <= rows:
        for mid in range(half, rows + 1, 2 * half):
            copy(m, line + mid - 1, row_slot(m, opened + mid - 1))
            for p in range(mid - 2, mid - half - 1, -1):
                combine(m, line + p, row_slot(m, opened + p), line + p + 1)
            last = min(mid + half - 1, rows)
            if mid < last:
                copy(m, line + mid + 1, row_slot(m, opened + mid))
                for p in range(mid + 2, last + 1):
                    combine(m, line + p, line + p - 1, row_slot(m, opened + p - 1))
        half *= 2
        line += CHUNK
    put(m, TABLED, rows)
