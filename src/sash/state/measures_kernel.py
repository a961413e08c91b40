"""The frames of windows that are spans of time, of sessions, and of policies.

`spans`, `spans_at`, `longest` and `sessions` use no operator, so they are one kernel that is
compiled once.  `kept` is compiled for each policy's operator and rule.
"""

from __future__ import annotations

from typing import Any

from ..aggregators.two_stacks_lite import query
from ..kernels.program import Kernel
from ..kernels.slots import START, Columns, Memory, get, holds, item, lift, set_item
from .frame_steps import NEW, RING, begin_at, end_at, place

__all__ = ["KEPT", "SPANS"]


def spans(
    m: Memory,
    times: Any,
    bounds: Any,
    count: int,
    older: int,
    younger: int,
    first: Any,
    last: Any,
) -> None:
    """For each row of `count` groups, which are in order of time, find the rows of its group whose
    times are at most `older` and more than `younger` before its own time."""
    for g in range(count):
        begin = item(bounds, g)
        n = item(bounds, g + 1)
        low = begin
        high = begin
        for i in range(begin, n):
            t = item(times, i)
            while low < n and item(times, low) < t - older:
                low += 1
            while high < n and item(times, high) < t - younger:
                high += 1
            set_item(first, i, low)
            set_item(last, i, high)


def spans_at(
    m: Memory,
    times: Any,
    bounds: Any,
    asked: Any,
    asked_bounds: Any,
    count: int,
    older: int,
    younger: int,
    first: Any,
    last: Any,
) -> None:
    """The same for the times `asked` of each group, which are in order, instead of its rows'
    times."""
    for g in range(count):
        n = item(bounds, g + 1)
        low = item(bounds, g)
        high = low
        for i in range(item(asked_bounds, g), item(asked_bounds, g + 1)):
            t = item(asked, i)
            while low < n and item(times, low) < t - older:
                low += 1
            while high < n and item(times, high) < t - younger:
                high += 1
            set_item(first, i, low)
            set_item(last, i, max(low, high))


def longest(m: Memory, times: Any, bounds: Any, count: int, older: int, younger: int) -> int:
    """A number of rows that none of the ranges exceeds that `spans` finds, by looking at every
    eighth row only: at most 80 more than the longest has."""
    most = 0
    for g in range(count):
        begin = item(bounds, g)
        n = item(bounds, g + 1)
        low = begin
        high = begin
        for i in range(begin, n, 64):  # all ranges of 64 rows, together
            oldest = item(times, i) - older
            youngest = item(times, min(i + 63, n - 1)) - younger
            while low + 8 <= n and item(times, low + 7) < oldest:
                low += 8
            while high < n and item(times, high) < youngest:
                high += 8
            most = max(most, min(high, n) - low)
    return most


def sessions(
    m: Memory,
    times: Any,
    reaches: Any,
    bounds: Any,
    count: int,
    longest: int,
    groups: Any,
    first: Any,
    ends: Any,
) -> int:
    """Find the sessions of `count` groups of rows, which are in order of time and cover the spans
    from their times to `reaches`.  Write the group, the first row and the end of each session, and
    return the number of sessions.  A row begins another session if no row before it reaches it, or
    if it would make the session longer than `longest`."""
    made = 0
    for g in range(count):
        begin = item(bounds, g)
        start = 0
        end = 0
        for i in range(begin, item(bounds, g + 1)):
            t = item(times, i)
            reach = max(end, item(reaches, i))
            if i == begin or t > end or reach - start > longest:
                set_item(groups, made, g)
                set_item(first, made, i)
                made += 1
                start = t
                reach = item(reaches, i)
            end = reach
            set_item(ends, made - 1, end)
    return made


#: The kernel that finds frames; it works with any operator.
SPANS = Kernel(
    "spans",
    (spans, spans_at, longest, sessions),
    ("spans", "spans_at", "longest", "sessions"),
)


def kept(
    m: Memory, columns: Columns, bounds: Any, count: int, fresh: Any, anew: int, first: Any
) -> None:
    """For each row of `count` groups find the first row that is kept when it has come.  While the
    rule is true of the oldest row, that row goes; with `anew`, all rows before the new row go at
    once.  The rows of a group before its `fresh` row stay until that row comes."""
    for g in range(count):
        begin = item(bounds, g)
        begin_at(m, begin)
        for i in range(begin, item(bounds, g + 1)):
            end_at(m, columns, i + 1)
            start = get(m, START)
            goes = i >= item(fresh, g)
            while goes and start <= i:
                total = query(m)
                lift(m, NEW, columns, start)
                goes = holds(m, total, NEW)
                if goes:
                    start += 1
                    if anew:
                        start = i
                        goes = False
                    begin_at(m, start)
            set_item(first, i, start)


#: The kernel for an operator with a rule.
KEPT = Kernel(
    "kept",
    (query, place, begin_at, end_at, kept),
    ("kept",),
    scratch=4,
    constants=(("RING", RING),),
)
