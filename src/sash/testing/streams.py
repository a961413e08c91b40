"""Tables of events for tests of queries, with everything that makes streams hard.

Each kind is a pattern of arrival times.  Keys and values come from small pools, so that ties are
frequent; the pools include values that often break things: null, NaN, infinities, two zeros.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..windows import (
    Aligned,
    Window,
    cumulate,
    delta,
    punctuated,
    rows,
    sliding,
    tumbling,
    window,
)
from .disorder import arrivals

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DRIVEN", "STREAMS", "WINDOWS", "batches", "stream"]

_SECOND = 1_000_000

#: Windows for these streams: with slides that divide the size and slides that do not, with offsets,
#: longer than any stream, of a single microsecond, and with a common start.
WINDOWS: tuple[Aligned, ...] = (
    tumbling("5 seconds"),
    sliding("10 seconds", "2 seconds"),
    sliding("7 seconds", "3 seconds"),
    sliding("5 seconds", "4 seconds", offset="-1.5 seconds"),
    sliding("60 seconds", "1.25 seconds", offset="0.5 seconds"),
    sliding("1 day", "2 hours"),
    tumbling(1),
    cumulate("6 seconds", "2 seconds", offset="-1.5 seconds"),
    cumulate("1 day", "2 hours"),
)

#: Driven windows for these streams, with every pair of measures except time by time.
DRIVEN: tuple[Window, ...] = (
    rows(4),
    rows(1),
    rows(5, every=3),
    rows(1000, every=2),
    delta("x", 3),
    delta("i", 3, every=2),
    delta("x", 2.5, every=0.5),
    punctuated("b"),
    window(keep="5 seconds", every=rows(3)),
    window(keep="5 seconds", every=delta("i", 10)),
    window(keep="5 seconds", every=punctuated("b")),
    window(keep=rows(4), every=delta("x", 1)),
    window(keep=rows(4), every=punctuated("b")),
    window(keep=delta("x", 3), every=rows(2)),
    window(keep=delta("i", 3), every=punctuated("b")),
    window(keep=punctuated("b"), every=rows(1)),
    window(keep=punctuated("b"), every=delta("x", 2)),
)

_KEYS = ("a", "b", "b", "é", "", None)
_FLOAT_KEYS = (0.0, -0.0, 1.5, math.nan, None, math.inf)
_FLOATS = (0.0, -0.0, 1.0, 1.0, 2.5, -0.25, -3.0, 7.75, 24.0, math.nan, math.inf, -math.inf, None)
_INTEGERS = (0, 1, 1, 2, -1, -7, 40, 2**40, -(2**40), None)
_ODD = (None, math.nan, math.inf, -math.inf)  # the very NaN that is drawn
_TEXT = ("", "x", "x", "yy", "é", None)


def stream(kind: str, count: int = 120, *, seed: int = 0, plain: bool = False) -> pa.Table:
    """A table of `count` events, in order of arrival, the same for the same seed.

    Columns: `t`, the time (microseconds, in UTC); `n`, the arrival; keys `k` (text) and `f` (a
    float); values `x` (a float), `i` (an integer), `b` (a bool), `s` (text), `w` (a time).  With
    `plain`, there is no null, NaN or infinity.

    >>> stream("gaps", 3, plain=True)["n"].to_pylist()
    [0, 1, 2]
    """
    import pyarrow as pa

    source = random.Random(f"{kind} {count} {seed}")
    if kind not in STREAMS:
        raise ValueError(f"{kind!r} is no kind of stream; give one of {', '.join(STREAMS)}")
    times = STREAMS[kind](count, source)

    def drawn(pool: tuple[Any, ...]) -> list[Any]:
        kept = [v for v in pool if not plain or v not in _ODD]
        return [source.choice(kept) for _ in range(count)]

    keys = drawn(_KEYS)
    if kind == "keys come and go":
        # a key appears for a stretch of the stream, and some come back
        keys = [f"key {(i * 12 // count) % 5}" for i in range(count)]
    later = [t + source.choice((0, 1, 5)) * _SECOND for t in times]
    at = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "t": pa.array(times, at),
            "n": pa.array(range(count), pa.int64()),
            "k": pa.array(keys, pa.string()),
            "f": pa.array(drawn(_FLOAT_KEYS), pa.float64()),
            "x": pa.array(drawn(_FLOATS), pa.float64()),
            "i": pa.array(drawn(_INTEGERS), pa.int64()),
            "b": pa.array(drawn((True, False, None)), pa.bool_()),
            "s": pa.array(drawn(_TEXT), pa.string()),
            "w": pa.array([t if plain or t % 3 else None for t in later], at),
        }
    )


def batches(
    table: pa.Table, *, seed: int = 0, least: int = 0, most: int = 40
) -> Iterator[pa.Table]:
    """Cut a table into batches of random sizes, including empty ones.

    >>> [b.num_rows for b in batches(stream("ties", 50), seed=2, most=20)]
    [1, 2, 2, 11, 5, 9, 8, 12]
    """
    source = random.Random(seed)
    at = 0
    while at < table.num_rows:
        size = source.randint(least, most)
        yield table.slice(at, size)
        at += size


def _spread(kind: str) -> Callable[[int, random.Random], list[int]]:
    """The times of a disorder, about two per second, not on whole seconds."""

    def times(count: int, source: random.Random) -> list[int]:
        order = arrivals(kind, count, seed=source.randrange(100))
        return [t * _SECOND // 2 + source.randrange(3) * 1000 for t in order]

    return times


def _ties(count: int, source: random.Random) -> list[int]:
    """Few distinct times, many of them edges of windows."""
    return [source.randrange(max(2, count // 8)) * _SECOND for _ in range(count)]


def _gaps(count: int, source: random.Random) -> list[int]:
    """Times with gaps longer than some windows, and a little disorder."""
    at, made = 0, []
    for _ in range(count):
        at += source.choice((0, 0, 1, 1, 2, 3, 8, 15, 400)) * _SECOND // 2
        made.append(at - source.choice((0, 0, 0, 3)) * _SECOND)
    return made


def _before_1970(count: int, source: random.Random) -> list[int]:
    """Times before and after 1970."""
    return [source.randint(-count * _SECOND // 4, count * _SECOND // 4) for _ in range(count)]


def _short(count: int, source: random.Random) -> list[int]:
    """Times within one second."""
    return [1_700_000_000 * _SECOND + source.randrange(_SECOND) for _ in range(count)]


#: The kinds of streams, each with the function that draws its times.
STREAMS: dict[str, Callable[[int, random.Random], list[int]]] = {
    "in order": _spread("in order"),
    "disorder": _spread("uniform"),
    "bursts": _spread("bursts"),
    "all late": _spread("all late"),
    "ties": _ties,
    "gaps": _gaps,
    "keys come and go": _spread("uniform"),
    "before 1970": _before_1970,
    "short": _short,
}
