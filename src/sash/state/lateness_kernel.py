"""What a stream would do at one allowed lateness, its rows one by one: how much it keeps at most,
and which rows come too late for their sessions.  It knows no operator."""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item

__all__ = ["NONE", "WHAT_IF"]

NONE = -1


def most_kept(
    m: Memory, tops: Any, late: Any, ends: Any, late_by_end: Any, entries: int, allowance: int
) -> int:
    """How many entries a state has at most.  Entries come in this order, with stream time `tops`
    after each; an entry leaves when stream time is the allowance after its end, and one that comes
    later than that is never there.  `late` has the greatest allowance at which each comes too late,
    `late_by_end` the same in the order of `ends`, which rise.  Between two that come, entries can
    only leave, so there are never more than after one has come."""
    there = 0
    most = 0
    left = 0
    for i in range(entries):
        if item(late, i) < allowance:
            there += 1
        top = item(tops, i) - allowance
        while left < entries and item(ends, left) <= top:
            if item(late_by_end, left) < allowance:
                there -= 1
            left += 1
        most = max(most, there)
    return most


def first_above(values: Any, high: int, bound: int) -> int:
    """The first of the values before `high`, which rise, that is greater than a bound."""
    low = 0
    while low < high:
        middle = (low + high) >> 1
        if item(values, middle) > bound:
            high = middle
        else:
            low = middle + 1
    return low


def closed_by(tops: Any, high: int, time: int, opened: Any) -> None:
    """Count a session as closed by the first row that takes stream time beyond a time."""
    row = first_above(tops, high, time)
    set_item(opened, row, item(opened, row) - 1)


def late_sessions(
    m: Memory,
    times: Any,
    codes: Any,
    tops: Any,
    count: int,
    keys: int,
    gap: int,
    allowance: int,
    oldest: Any,
    newest: Any,
    ended: Any,
    ends: Any,
    starts: Any,
    before: Any,
    after: Any,
    late: Any,
    opened: Any,
) -> None:
    """Go through rows in order of arrival, each a batch, with stream time `tops` after each.

    The open sessions of a key are a list from `oldest` to `newest`, linked by `before` and `after`;
    a session has the number of the row that began it.  `ended` has the end of the key's last closed
    session.  `late` is set for rows that are late, and `opened` to how many sessions a row opens,
    less those that it merges and closes."""
    for i in range(count):
        t = item(times, i)
        k = item(codes, i)
        if i > 0:
            watermark = item(tops, i - 1) - allowance
            s = item(oldest, k)
            while s != NONE and item(ends, s) < watermark:
                set_item(ended, k, item(ends, s))
                closed_by(tops, i, item(ends, s) + allowance, opened)
                s = item(after, s)
                set_item(oldest, k, s)
                if s == NONE:
                    set_item(newest, k, NONE)
                else:
                    set_item(before, s, NONE)
            if t + gap < watermark or t <= item(ended, k):
                set_item(late, i, 1)
        if item(late, i) == 0:
            younger = NONE
            s = item(newest, k)
            while s != NONE and item(starts, s) > t + gap:
                younger = s
                s = item(before, s)
            if s != NONE and t <= item(ends, s):
                set_item(starts, s, min(item(starts, s), t))
                set_item(ends, s, max(item(ends, s), t + gap))
                older = item(before, s)
                if older != NONE and t <= item(ends, older):
                    set_item(ends, older, item(ends, s))
                    set_item(after, older, younger)
                    if younger == NONE:
                        set_item(newest, k, older)
                    else:
                        set_item(before, younger, older)
                    set_item(opened, i, item(opened, i) - 1)
            else:
                set_item(starts, i, t)
                set_item(ends, i, t + gap)
                set_item(before, i, s)
                set_item(after, i, younger)
                if s == NONE:
                    set_item(oldest, k, i)
                else:
                    set_item(after, s, i)
                if younger == NONE:
                    set_item(newest, k, i)
                else:
                    set_item(before, younger, i)
                set_item(opened, i, item(opened, i) + 1)
    for k in range(keys):  # sessions that were closed after their keys' last rows
        s = item(oldest, k)
        while s != NONE and item(ends, s) + allowance < item(tops, count - 1):
            closed_by(tops, count, item(ends, s) + allowance, opened)
            s = item(after, s)


#: The kernel, for no operator in particular.
WHAT_IF = Kernel(
    "what_if",
    (most_kept, first_above, closed_by, late_sessions),
    ("most_kept", "late_sessions"),
)
