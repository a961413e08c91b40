"""Times out of order, and schedules of timed operations, for an aggregator and an oracle.

A timed schedule is a list of steps:

    ("insert", time, value)         insert a value at a time
    ("evict", time)                 evict the value at a time; the time may be absent
    ("bulk_insert", times, values)  insert many values at once
    ("bulk_evict", time)            evict all values up to and including a time
    ("query",)                      the answer over the window
    ("query", lo, hi)               the answer over the times from lo up to, not including, hi
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..operators.contract import Operator
from .schedules import Step, value_source

__all__ = ["DISORDERS", "arrivals", "timed_replay", "timed_schedule", "timed_windows"]

#: Orders in which times can arrive.
DISORDERS = ("in order", "uniform", "bursts", "at a distance", "duplicates", "all late")


def arrivals(kind: str, count: int, *, seed: int = 0, distance: int = 16) -> list[int]:
    """Times in the order of their arrival.

    uniform: each time comes up to `distance` places too late; bursts: runs of `distance` times,
    each run backwards; at a distance: a block of `distance` young times first, then all older
    times; duplicates: many equal times; all late: from the youngest to the oldest.

    >>> arrivals("at a distance", 6, distance=2)
    [1000004, 1000005, 0, 1, 2, 3]
    """
    source = random.Random(f"{kind} {seed}")
    if kind == "in order":
        return list(range(count))
    if kind == "uniform":
        return sorted(range(count), key=lambda t: t + source.uniform(0, distance))
    if kind == "bursts":
        runs = [range(i, min(i + distance, count)) for i in range(0, count, distance)]
        return [t for run in runs for t in (reversed(run) if source.random() < 0.7 else run)]
    if kind == "at a distance":
        young = [1_000_000 + t for t in range(count - distance, count)]
        return young + list(range(count - distance))
    if kind == "duplicates":
        return [source.randrange(-(-count // 4)) for _ in range(count)]
    if kind == "all late":
        return list(range(count))[::-1]
    raise ValueError(f"{kind!r} is no kind of disorder; give one of {', '.join(DISORDERS)}")


def timed_schedule(
    kind: str,
    values: Operator | Callable[[random.Random], Any] | None = None,
    *,
    size: int = 60,
    seed: int = 0,
    evict_inside: bool = True,
) -> list[Step]:
    """Operations on a window whose times arrive in one of the `DISORDERS`.

    The window grows, keeps its size for a while, and shrinks.  In between come single and bulk
    evictions of old, inner (with `evict_inside`) and absent times, bulk insertions of any size, and
    queries.

    >>> timed_schedule("in order", size=1)[:2]
    [('query',), ('insert', 0, 11)]
    """
    source = random.Random(f"{kind} {seed} {size}")
    if values is None:
        draw: Callable[[random.Random], Any] = lambda r: r.randint(-20, 20)  # noqa: E731
    else:
        draw = value_source(values) if isinstance(values, Operator) else values
    queue = arrivals(kind, 3 * size, seed=seed)
    steps: list[Step] = [("query",)]
    held: set[int] = set()

    def some_time() -> int:
        return source.choice(sorted(held)) if held else 0

    while queue:
        growing = len(held) < size
        what = source.random()
        if what < (0.6 if growing else 0.35) or not held:
            t = queue.pop(0)
            steps.append(("insert", t, draw(source)))
            held.add(t)
        elif what < 0.7:
            n = source.choice((1, 2, source.randint(1, size), len(queue)))
            times = [queue.pop(0) for _ in range(min(n, len(queue)))]
            steps.append(("bulk_insert", times, [draw(source) for _ in times]))
            held.update(times)
        elif what < 0.8:
            t = min(held)
            if evict_inside:
                t = source.choice((t, t, some_time(), some_time(), some_time() + 1))
            steps.append(("evict", t))
            held.discard(t)
        elif what < (0.83 if growing else 0.9):
            t = sorted(held)[source.choice((0, len(held) // 8, len(held) // 2, -1))]
            steps.append(("bulk_evict", t))
            held = {x for x in held if x > t}
        else:
            lo, hi = sorted((some_time() + source.randint(-2, 2), some_time()))
            steps.append(("query", lo, hi))
        steps.append(("query",))
    while held:
        t = min(held) if source.random() < 0.8 or not evict_inside else some_time()
        steps += [("evict", t), ("query",)]
        held.discard(t)
    return steps


def timed_windows(steps: Sequence[Step]) -> list[list[Any]]:
    """The raw values behind each query of a timed schedule, by time, then arrival.

    >>> timed_windows([("insert", 5, "b"), ("insert", 1, "a"), ("query",), ("query", 2, 9)])
    [['a', 'b'], ['b']]
    """
    held: dict[int, list[Any]] = {}
    made: list[list[Any]] = []
    for step in steps:
        if step[0] == "insert":
            held.setdefault(step[1], []).append(step[2])
        elif step[0] == "bulk_insert":
            for time, value in zip(step[1], step[2], strict=True):
                held.setdefault(time, []).append(value)
        elif step[0] == "evict":
            held.pop(step[1], None)
        elif step[0] == "bulk_evict":
            held = {t: v for t, v in held.items() if t > step[1]}
        else:
            lo, hi = step[1:] if len(step) > 1 else (-math.inf, math.inf)
            made.append([v for t in sorted(held) if lo <= t < hi for v in held[t]])
    return made


def timed_replay(
    window: Any, steps: Sequence[Step], *, after: Callable[[], None] | None = None
) -> list[Any]:
    """Run a schedule on a timed aggregator; returns its answer to each query.

    >>> from sash.aggregators import Fiba
    >>> from sash.operators import sum
    >>> steps = [("insert", 5, 1), ("insert", 3, 2), ("query",), ("query", 4, 9)]
    >>> timed_replay(Fiba(sum), steps)
    [3, 1]
    """
    answers: list[Any] = []
    for step in steps:
        if step[0] == "query":
            try:
                answers.append(window.query(*step[1:]))
            except OverflowError as error:
                answers.append(error)
        elif step[0] == "bulk_insert":
            times, rows = step[1:]
            several = bool(rows) and isinstance(rows[0], tuple)
            window.bulk_insert(times, tuple(map(list, zip(*rows))) if several else rows)
        else:
            getattr(window, step[0])(*step[1:])
        if after is not None:
            after()
    return answers
