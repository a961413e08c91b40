"""The oracle of driven windows and sessions: find the events of each window by brute force.

For each event, a definition looks at all events of its key again.  It shares no code with the
engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..query import Query
from ..windows import Delta, Kept, KeptByClock, Punctuated, Rows, Ruled, Session, Trailing
from ..windows.contract import Change, Count, Mark, Rule, Span

__all__ = ["Fired", "fired", "fired_over", "sessions", "ticked"]

Row = dict[str, Any]
#: The number of the event that fires, the start and end of its window, and the numbers of the
#: events in the window, in order.
Fired = tuple[int, int | None, int, list[int]]


def fired(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[Fired]:
    """The events that fire, in order of arrival, and the events in their windows.  `key` returns
    the key of an event, `tie` its rank among events of one time."""
    made: list[Fired] = []
    for _, ordered in _by_key(query, events, key, tie):
        times = {n: math.floor(events[n][query.time]) for n in ordered}
        made += _of_key(query.window, ordered, times, events)
    return sorted(made)


def fired_over(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[tuple[Fired, dict[str, list[int]]]]:
    """The result of `fired`, with the numbers of the events in each aggregate's own window."""
    own = fired(query, events, key, tie)
    held = {name: [numbers for *_, numbers in own] for name in query.select}
    for name, chosen in query.select.items():
        if chosen.size is not None:
            assert isinstance(query.window, Trailing), f"the judge does not know {query.window!r}"
            window = replace(query.window, size=None if chosen.size == "lifetime" else chosen.size)
            alone = replace(query, window=window, select={name: replace(chosen, size=None)})
            held[name] = [numbers for *_, numbers in fired(alone, events, key, tie)]
    return [(one, {name: held[name][i] for name in held}) for i, one in enumerate(own)]


def _by_key(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[tuple[Any, list[int]]]:
    """The keys in order, each with the numbers of its events in order of time."""
    keys: dict[Any, list[int]] = {}
    for number, row in enumerate(events):
        keys.setdefault(key(row), []).append(number)

    def place(n: int) -> Any:
        row = events[n]
        return row[query.time], () if query.tie is None else tie(row[query.tie]), n

    return [(name, sorted(keys[name], key=place)) for name in sorted(keys)]


def _of_key(
    window: Any, ordered: list[int], times: dict[int, int], events: Sequence[Row]
) -> list[Fired]:
    """The events of one key that fire, in order of time."""
    if isinstance(window, Trailing):
        return [_trailing(window, n, ordered, times) for n in ordered]
    keep, every = _measures(window)
    held: list[int] = []
    made: list[Fired] = []
    last = ordered[0]  # the event that fired last, or the first
    for i, n in enumerate(ordered):
        held = _held(keep, [*held, n], ordered, times, events, window)
        if _fires(every, i, n, last, ordered, events):
            last = n
            made.append((n, times[held[0]] if held else None, times[n], held))
    return made


def _measures(window: Any) -> tuple[Any, Any]:
    """The two measures of a window: what it keeps, and what fires."""
    if isinstance(window, Rows):
        return Count(window.size), Count(window.every)
    if isinstance(window, Delta):
        every = Count(1) if window.every is None else Change(window.column, window.every)
        return Change(window.column, window.size), every
    if isinstance(window, Punctuated):
        return Mark(window.column), Mark(window.column)
    if isinstance(window, Ruled):
        return Rule(window.policy), Count(1)
    assert isinstance(window, Kept), f"the judge does not know {window!r}"
    return window.keep, window.every


def _held(
    keep: Any,
    held: list[int],
    ordered: list[int],
    times: dict[int, int],
    events: Sequence[Row],
    window: Any,
) -> list[int]:
    """The events that the window keeps after a new event.  `held` has the events that it kept
    before, then the new event."""
    newest = held[-1]
    if isinstance(keep, Span):
        assert keep.older is not None
        return [n for n in ordered if 0 <= times[newest] - times[n] <= keep.older]
    if isinstance(keep, Count):
        return held[-keep.rows :]
    if isinstance(keep, Mark):
        marks = [i for i, n in enumerate(held[:-1]) if events[n][keep.column]]
        return held[marks[-1] + 1 :] if marks else held
    if isinstance(keep, Change):
        while _difference(keep.column, newest, held[0], ordered, events) > keep.by:
            held = held[1:]
        return held
    policy = keep.policy

    def over(numbers: list[int]) -> Any:
        rows = [tuple(events[n][c] for c in window.read) for n in numbers]
        partial = policy.over.fold([row if len(row) > 1 else row[0] for row in rows])
        return policy.over.python_lower()(partial)

    while held and policy.rule(over(held), over(held[:1])):
        held = held[1:]
    return held


def _fires(
    every: Any, i: int, n: int, last: int, ordered: list[int], events: Sequence[Row]
) -> bool:
    """True if the key's i-th event, whose number is n, fires."""
    if isinstance(every, Count):
        return (i + 1) % every.rows == 0
    if isinstance(every, Mark):
        return bool(events[n][every.column])
    return bool(_difference(every.column, n, last, ordered, events) >= every.by)


def _difference(column: str, a: int, b: int, ordered: list[int], events: Sequence[Row]) -> Any:
    """The difference of two events of a key.  A null or NaN counts as the value before it, and at
    the beginning as the first value."""

    def value(n: int) -> Any:
        at = ordered.index(n)
        for other in [*reversed(ordered[: at + 1]), *ordered]:
            found = events[other][column]
            if found is not None and found == found:
                return found
        return 0

    x, y = value(a), value(b)
    return 0 if x == y else abs(x - y)


def ticked(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[tuple[Any, int, int, list[int]]]:
    """Like `sessions`, for windows that fire at ticks of the clock."""
    window = query.window
    assert isinstance(window, KeptByClock), f"the judge does not know {window!r}"
    made: list[tuple[Any, int, int, list[int]]] = []
    for name, ordered in _by_key(query, events, key, tie):
        times = {n: math.floor(events[n][query.time]) for n in ordered}
        tick = (times[ordered[0]] // window.every + 1) * window.every
        while tick <= times[ordered[-1]] + window.every:
            held: list[int] = []
            for n in ordered:
                if times[n] < tick:
                    held = _held(window.keep, [*held, n], ordered, times, events, window)
            marked = isinstance(window.keep, Mark) and held and events[held[-1]][window.keep.column]
            if held and not marked:
                made.append((name, times[held[0]], tick, held))
            tick += window.every
    return made


def sessions(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[tuple[Any, int, int, list[int]]]:
    """The sessions in order of key and time: the key, start, end, and the numbers of the events."""
    window = query.window
    assert isinstance(window, Session), f"the judge does not know {window!r}"
    made: list[tuple[Any, int, int, list[int]]] = []
    for name, ordered in _by_key(query, events, key, tie):
        found: list[tuple[Any, int, int, list[int]]] = []
        for n in ordered:
            gap = events[n][window.gap] if isinstance(window.gap, str) else window.gap
            if gap is None or gap <= 0:
                continue
            start = math.floor(events[n][query.time])
            end = start + gap
            if found and start <= found[-1][2]:
                _, since, until, held = found[-1]
                if window.max_size is None or max(end, until) - since <= window.max_size:
                    found[-1] = (name, since, max(end, until), [*held, n])
                    continue
            found.append((name, start, end, [n]))
        made += found
    return made


def _trailing(window: Trailing, n: int, ordered: list[int], times: dict[int, int]) -> Fired:
    end = times[n] - window.delay
    start = None if window.size is None else end - window.size
    held = []
    for other in ordered:
        t = times[other]
        after_start = start is None or t > start or (t == start and window.closed in _LEFT)
        before_end = t < end or (t == end and window.closed in _RIGHT)
        if not after_start or not before_end:
            continue
        peer, itself = t == times[n], other == n
        if peer and window.exclude == "group":
            continue
        if peer and window.exclude == "row" and itself:
            continue
        if peer and window.exclude == "ties" and not itself:
            continue
        held.append(other)
    if start is None and held:
        start = times[held[0]]
    return n, start, end, held


_LEFT, _RIGHT = ("both", "left"), ("both", "right")
