"""The functions of `frames_kernel` for partials that are vectors: they stay in their slots, and are
never in local variables."""

from __future__ import annotations

from typing import Any

from ..aggregators.two_stacks_lite import query
from ..kernels.slots import CAPACITY, END, START, Columns, Memory, Outputs, get, item, put
from .frame_steps import FRAME, GROUP, HOLDS, answer, begin_at, end_at

__all__ = ["frames", "frames_in_time", "frames_of_rows"]


def frames(
    m: Memory, columns: Columns, first: Any, last: Any, count: int, outputs: Outputs, to: int
) -> None:
    """Answer the frames `[first[f], last[f])` into the outputs from `to` on."""
    for f in range(count):
        put(m, FRAME, f)
        begin_at(m, item(first, f))
        end_at(m, columns, item(last, f))
        answer(m, query(m), outputs, to + f)


def frames_in_time(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    older: int,
    younger: int,
    outputs: Outputs,
    to: int,
) -> int:
    """Answer one frame for each row of `count` groups, which are in order of time: the rows of its
    group whose times are at most `older` and more than `younger` before the row's own time.  The
    first row to answer is the one in the header's FRAME.  Return 1 when done, 0 if there is no room
    for a row; the next call goes on from there."""
    g = get(m, GROUP)
    while g < count:
        n = item(bounds, g + 1)
        i = max(get(m, FRAME), item(bounds, g))
        low = max(get(m, START), item(bounds, g))
        high = max(get(m, END), low)
        while i < n:
            t = item(times, i)
            while low < n and item(times, low) < t - older:
                low += 1
            begin_at(m, low)
            high = max(high, low)
            while high < n and item(times, high) < t - younger:
                if high - low == get(m, CAPACITY) and get(m, HOLDS):
                    put(m, FRAME, i)
                    put(m, GROUP, g)
                    return 0
                high += 1
                end_at(m, columns, high)
            put(m, FRAME, i)
            answer(m, query(m), outputs, to + i)
            i += 1
        g += 1
    return 1


def frames_of_rows(
    m: Memory, columns: Columns, bounds: Any, count: int, size: int, outputs: Outputs, to: int
) -> None:
    """Answer one frame for each row of `count` groups: the row and the rows of its group before it,
    at most `size` in all.  The first row to answer is the one in the header's FRAME."""
    for g in range(count):
        begin = item(bounds, g)
        for i in range(max(get(m, FRAME), begin), item(bounds, g + 1)):
            put(m, FRAME, i)
            begin_at(m, max(begin, i + 1 - size))
            end_at(m, columns, i + 1)
            answer(m, query(m), outputs, to + i)
