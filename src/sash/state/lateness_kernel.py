"""Simulate a stream with one allowed lateness, row by row: how much state it holds at most, and
which rows come too late for their sessions.  The kernel needs no operator."""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import Memory, item, set_item

__all__ = ["NONE", "WHAT_IF"]

NONE = -1


def most_kept(
    m: Memory,
    late: Any,
    firsts: Any,
    highs: Any,
    runs: int,
    ends: Any,
    late_by_end: Any,
    entries: int,
    allowance: int,
) -> int:
    """The largest number of entries that a state holds at a time.

    Entries come in this order, in runs during which stream time stays the same: run r begins at
    entry firsts[r], at stream time highs[r].  An entry leaves when stream time is the allowance or
    more after its end; an entry that comes later than that never enters.  `late` has, for each
    entry, the largest allowance at which it comes too late; `late_by_end` has the same in the order
    of `ends`, which rise.  Entries leave when a run begins, so there are most of them at the end of
    a run."""
    there = 0
    most = 0
    left = 0
    for r in range(runs):
        top = item(highs, r) - allowance
        while left < entries and item(ends, left) <= top:
            there -= int(item(late_by_end, left) < allowance)
            left += 1
        for i in range(item(firsts, r), item(firsts, r + 1)):
            there += int(item(late, i) < allowance)  # no branch, because it would be unpredictable
        most = max(most, there)
    return most


def first_above(values: Any, high: int, bound: int) -> int:
    """The place of the first value greater than a bound, among the rising values before place
    `high`; `high` if there is none.  The search begins near `high`."""
    step = 1
    low = high - 1
    while low >= 0 and item(values, low) > bound:
        high = low
        low -= step
        step += step
    low = max(low + 1, 0)
    while low < high:
        middle = (low + high) >> 1
        if item(values, middle) > bound:
            high = middle
        else:
            low = middle + 1
    return low


def closed_by(highs: Any, high: int, time: int, closed: Any) -> None:
    """Count a session as closed by the first run that moves stream time beyond this time."""
    run = first_above(highs, high, time)
    set_item(closed, run, item(closed, run) + 1)


def late_sessions(
    m: Memory,
    times: Any,
    codes: Any,
    firsts: Any,
    highs: Any,
    runs: int,
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
    closed: Any,
    risen: Any,
    peaks: Any,
    late: Any,
    marked: int,
    out: Any,
) -> None:
    """Go through rows in order of arrival, as if each were a batch.  Write the number of late rows,
    and the largest number of open sessions, to `out`.  Rows come in runs during which stream time
    stays the same: run r begins at row firsts[r], and stream time after its rows is highs[r].

    The open sessions of a key are a list from `oldest` to `newest`, linked by `before` and `after`;
    the places of closed sessions are used again.  `ended` has the end of the key's last closed
    session.  For each run, `closed` counts the sessions that it closes, `risen` is the number of
    sessions that its rows open minus those that they merge away, and `peaks` the largest value of
    that number after any of the rows.  If `marked` is not 0, `late` is set to 1 for late rows."""
    many = 0
    used = 0
    free = NONE
    for r in range(runs):
        first = item(firsts, r)
        more = 0
        peak = 0
        for i in range(first, item(firsts, r + 1)):
            t = item(times, i)
            k = item(codes, i)
            is_late = 0
            joins = False
            if i > 0:
                passed = r + int(i > first)
                watermark = item(highs, passed - 1) - allowance
                s = item(newest, k)
                if s != NONE and item(starts, s) <= t and t + gap >= watermark:
                    end = item(ends, s)
                    if t <= end and end >= watermark:  # most rows join the newest session
                        set_item(ends, s, max(end, t + gap))
                        joins = True
            if i > 0 and not joins:
                s = item(oldest, k)
                while s != NONE and item(ends, s) < watermark:
                    set_item(ended, k, item(ends, s))
                    closed_by(highs, passed, item(ends, s) + allowance, closed)
                    younger = item(after, s)
                    set_item(after, s, free)
                    free = s
                    s = younger
                    set_item(oldest, k, s)
                    if s == NONE:
                        set_item(newest, k, NONE)
                    else:
                        set_item(before, s, NONE)
                is_late = int(t + gap < watermark or t <= item(ended, k))
                if is_late != 0:
                    many += 1
                    if marked != 0:
                        set_item(late, i, 1)
            if is_late == 0 and not joins:
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
                        set_item(after, s, free)
                        free = s
                        more -= 1
                else:
                    new = free
                    if new == NONE:
                        new = used
                        used += 1
                    else:
                        free = item(after, new)
                    set_item(starts, new, t)
                    set_item(ends, new, t + gap)
                    set_item(before, new, s)
                    set_item(after, new, younger)
                    if s == NONE:
                        set_item(oldest, k, new)
                    else:
                        set_item(after, s, new)
                    if younger == NONE:
                        set_item(newest, k, new)
                    else:
                        set_item(before, younger, new)
                    more += 1
            peak = more if i == first else max(peak, more)
        set_item(risen, r, more)
        set_item(peaks, r, peak)
    for k in range(keys):  # sessions that close after their keys' last rows
        s = item(oldest, k)
        while s != NONE and item(ends, s) + allowance < item(highs, runs - 1):
            closed_by(highs, runs, item(ends, s) + allowance, closed)
            s = item(after, s)
    there = 0
    most = 0
    for r in range(runs):
        there -= item(closed, r)
        most = max(most, there + item(peaks, r))
        there += item(risen, r)
    set_item(out, 0, many)
    set_item(out, 1, most)


#: The kernel; it works with any operator.
WHAT_IF = Kernel(
    "what_if",
    (most_kept, first_above, closed_by, late_sessions),
    ("most_kept", "late_sessions"),
)
