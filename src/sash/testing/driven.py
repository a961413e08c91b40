"""The judge of windows that events make: what each window holds, by brute force.

Each definition looks at all events of a key, for each event anew.  Nothing is shared with what is
judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..query import Query
from ..windows import Rows, Session, Trailing

__all__ = ["Fired", "fired", "sessions"]

Row = dict[str, Any]
#: The number of the event that fires, the start and end of its window, and the numbers of the
#: events that the window holds, in order.
Fired = tuple[int, int | None, int, list[int]]


def fired(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[Fired]:
    """The events that fire, in order of arrival, and what their windows hold.  `key` says what
    events are of one key by, `tie` what ties are in order by."""
    made: list[Fired] = []
    for _, ordered in _by_key(query, events, key, tie):
        times = {n: math.floor(events[n][query.time]) for n in ordered}
        made += _of_key(query.window, ordered, times)
    return sorted(made)


def _by_key(
    query: Query, events: Sequence[Row], key: Callable[[Row], Any], tie: Callable[[Any], Any]
) -> list[tuple[Any, list[int]]]:
    """Keys in order, and the numbers of each one's events in order of time."""
    keys: dict[Any, list[int]] = {}
    for number, row in enumerate(events):
        keys.setdefault(key(row), []).append(number)

    def place(n: int) -> Any:
        row = events[n]
        return row[query.time], () if query.tie is None else tie(row[query.tie]), n

    return [(name, sorted(keys[name], key=place)) for name in sorted(keys)]


def _of_key(window: Any, ordered: list[int], times: dict[int, int]) -> list[Fired]:
    """The events of one key that fire, in order of time."""
    if isinstance(window, Trailing):
        return [_trailing(window, n, ordered, times) for n in ordered]
    assert isinstance(window, Rows), f"the judge does not know {window!r}"
    made: list[Fired] = []
    for i, n in enumerate(ordered):
        if (i + 1) % window.every == 0:
            held = ordered[: i + 1][-window.size :]
            made.append((n, times[held[0]], times[n], held))
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
