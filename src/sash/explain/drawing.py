"""Draw windows in characters: the edges that cut a stream into slices, and a few windows.

    0   2   4   6   8  10  min
    |   |   |   |   |   |          edges
    [-----------)
        [-----------)
            [-----------)

A long window has a gap in the drawing: `⋯` stands for the slices that are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from ..slicing.edges import Periodic
from ..slicing.techniques import Slicing, pairs
from ..windows.calendars import CalendarClock
from ..windows.contract import (
    Aligned,
    Change,
    Count,
    Driven,
    Fires,
    Keeps,
    Mark,
    Merging,
    Rule,
    Span,
    Ticked,
    Window,
)
from ..windows.durations import duration_text
from ..windows.trailing import Trailing

__all__ = ["draw", "draw_several"]

_DRAWN = 3  # windows in a drawing
_WHOLE = 14  # the most slices to draw without a gap
_NEAR = 3  # slices to draw before a gap, and after it
_SLICE, _LONGEST, _GAP, _WIDE = 4, 6, 5, 84  # widths, in characters
_UNITS = (
    ("days", 86_400_000_000),
    ("hours", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("µs", 1),
)

#: The columns of the events in a drawing, and which of the events are marked, or differ from the
#: event before.
_EVENTS = (0, 5, 8, 17, 20, 26, 29, 38)
_SPECIAL = (2, 4, 7)
_SHOWN = 3  # the most events to draw in a window


def draw(window: Window, cut: Slicing | None = None) -> list[str]:
    """Draw a few of the windows, as lines, with the edges of a slicing; pairs by default."""
    if isinstance(window, Aligned):
        return _aligned(window, cut or pairs(window))
    if isinstance(window, Merging):
        return _merging(window)
    if isinstance(window, Ticked):
        return _ticked(window)
    assert isinstance(window, Driven)
    return _driven(window)


def _aligned(window: Aligned, cut: Slicing) -> list[str]:
    cycle, cuts = window.cycle, cut.edges
    if cut.reads_open:  # windows end within slices
        cuts = pairs(window).edges
    last = max(_DRAWN, min(cycle.windows, 4)) - 1
    spans = [(cycle.start(n), cycle.end(n)) for n in range(last + 1)]
    shown, columns = _shown(cuts, spans)
    lines = _ruler(window, cuts, shown, columns, spans[0][0], cut.edges)
    return lines + [_bar(cuts, shown, columns, *span) for span in spans]


def draw_several(windows: Mapping[str, Aligned], cuts: Periodic) -> list[str]:
    """Draw two windows of each query, below the edges of all."""
    spans = {
        name: [(w.cycle.start(n), w.cycle.end(n)) for n in range(2)] for name, w in windows.items()
    }
    every = [span for some in spans.values() for span in some]
    shown, columns = _shown(cuts, every)
    first = min(start for start, _ in every)
    one = next(iter(windows.values()))
    lines = _ruler(one, cuts, shown, columns, first, cuts)
    wide = columns[shown[-1]] + 4
    for name, some in spans.items():
        for i, (start, stop) in enumerate(some):
            line = _bar(cuts, shown, columns, start, stop)
            lines.append(f"{line:<{wide}}{name if not i else ''}".rstrip())
    return lines


def _ruler(
    window: Aligned,
    cuts: Periodic,
    shown: list[int],
    columns: dict[int, int],
    first: int,
    edges: Periodic,
) -> list[str]:
    """The line of times, counted from the start of the first window, and the line of edges."""
    unit, scale = _unit(window, [int(cuts.time(n)) - first for n in shown])
    labels = [(columns[n], f"{(int(cuts.time(n)) - first) // scale:,}") for n in shown]
    return [f"{_labelled(labels)}  {unit}", _edges(columns, shown, cuts, edges)]


def _bar(cuts: Periodic, shown: list[int], columns: dict[int, int], start: int, stop: int) -> str:
    """The line of a window, from one edge to another."""
    low, high = columns[int(cuts.number(start))], columns[int(cuts.number(stop))]
    inner = "".join(_gap_at(columns, shown, x) for x in range(low + 1, high))
    return " " * low + "[" + inner + ")"


def _shown(cuts: Periodic, spans: list[tuple[int, int]]) -> tuple[list[int], dict[int, int]]:
    """The edges to draw, and the column of each: all edges, or as many next to the windows' starts
    and ends as fit."""
    starts, ends = ([int(cuts.number(span[i])) for span in spans] for i in (0, 1))
    first, last = min(starts), max(ends)
    few = last - first <= _WHOLE
    shown = list(range(first, last + 1)) if few else []
    columns = _places(cuts, shown) if few else {}
    for near in range(_NEAR, -1, -1):
        if few and columns[last] <= _WIDE:
            break
        few = True
        beside = {m for n in starts for m in range(n, n + near + 1)}
        beside |= {m for n in ends for m in range(n - near, n + 1)}
        shown = sorted(m for m in beside if first <= m <= last)
        columns = _places(cuts, shown)
    return shown, columns


def _places(cuts: Periodic, shown: Sequence[int]) -> dict[int, int]:
    """The column of each edge in the drawing."""
    lengths = {n: int(cuts.time(n + 1)) - int(cuts.time(n)) for n in shown}
    least = min(lengths.values())
    made, at = {}, 0
    for i, n in enumerate(shown):
        made[n] = at
        wide = min(max(round(_SLICE * lengths[n] / least), _SLICE), _LONGEST)
        at += wide if i + 1 < len(shown) and shown[i + 1] == n + 1 else _GAP
    return made


def _edges(columns: dict[int, int], shown: Sequence[int], cuts: Periodic, edges: Periodic) -> str:
    """The line of edges, with a dot where a window ends within a slice."""
    line = [" "] * (columns[shown[-1]] + 1)
    for n in shown:
        time = int(cuts.time(n))
        line[columns[n]] = "|" if edges.time(edges.number(time)) == time else "."
    for n in _before_gaps(shown):
        line[columns[n] + 2] = "⋯"
    return "".join(line) + "   edges; a slice is what lies between two"


def _before_gaps(shown: Sequence[int]) -> list[int]:
    return [n for n, after in pairwise(shown) if after != n + 1]


def _gap_at(columns: dict[int, int], shown: Sequence[int], x: int) -> str:
    """The character of a window's line at a column."""
    return "⋯" if any(x == columns[n] + 2 for n in _before_gaps(shown)) else "-"


def _labelled(labels: list[tuple[int, str]]) -> str:
    """A line with texts at columns, without the texts that do not fit."""
    line = ""
    for at, text in labels:
        if at == 0 or at > len(line):
            line = line.ljust(at) + text
    return line


def _unit(window: Aligned, offsets: Sequence[int]) -> tuple[str, int]:
    """The longest unit of which every time is a whole number."""
    if isinstance(window.clock, CalendarClock):
        return ("months" if window.clock.monthly else "days"), window.clock.unit
    return next((n, size) for n, size in _UNITS if not any(t % size for t in offsets))


def _driven(window: Driven) -> list[str]:
    kept = _kept(window.keeps)
    chosen = _fired(window.fires)
    marked = isinstance(window.keeps, Mark) or isinstance(window.fires, Mark)
    letters = "".join(
        ("!" if marked and i in _SPECIAL else "x").ljust(_gap_behind(i))
        for i in range(len(_EVENTS))
    )
    lines = [f"{letters.rstrip()}   events of a key{', ! are marked' if marked else ''}"]
    for i in [i for i in range(len(_EVENTS)) if chosen(i)][-_DRAWN:]:
        if isinstance(window, Trailing):
            lines.append(_trailing(window, _EVENTS[i]))
            continue
        low, high = kept(i), _EVENTS[i]
        lines.append(" " * low + "[" + "-" * (high - low - 1) + "]")
    lines[-1] += "   " + _holds(window)
    return lines


def _trailing(window: Trailing, event: int) -> str:
    """The line of an event's window: a round bracket where the window lacks its end, and the event
    itself if the window ends before it."""
    high = event - 4 if window.delay else event
    low = 0 if window.length is None else max(0, high - 14)
    begin = "[" if window.closed in ("both", "left") else "("
    end = "]" if window.closed in ("both", "right") and window.exclude in (None, "ties") else ")"
    line = " " * low + begin + "-" * (high - low - 1) + end
    return f"{line}   x" if window.delay else line


def _gap_behind(event: int) -> int:
    return _EVENTS[event + 1] - _EVENTS[event] if event + 1 < len(_EVENTS) else 1


def _kept(keeps: Keeps) -> Callable[[int], int]:
    """A function from an event to the column where its window begins."""
    if isinstance(keeps, Span):
        return lambda i: max(0, _EVENTS[i] - 14) if keeps.older is not None else 0
    if isinstance(keeps, Count):
        many = min(keeps.rows, _SHOWN)
        return lambda i: _EVENTS[max(0, i - many + 1)]
    if isinstance(keeps, Mark):
        return lambda i: _EVENTS[max([m + 1 for m in _SPECIAL if m < i], default=0)]
    return lambda i: _EVENTS[(0, 0, 1, 1, 3, 3, 3, 6)[i]]


def _fired(fires: Fires) -> Callable[[int], bool]:
    """A function that says whether an event fires."""
    if isinstance(fires, Count):
        return lambda i: (i + 1) % min(fires.rows, 3) == 0
    return lambda i: i in _SPECIAL


def _holds(window: Driven) -> str:
    keeps, fires = window.keeps, window.fires
    if isinstance(window, Trailing):
        held = "all events" if window.length is None else duration_text(window.length)
        end = f"{duration_text(window.delay)} before it" if window.delay else "it"
        return f"each event has a row, over {held} up to {end}{_WITHOUT[window.exclude]}"
    what = _measure(keeps)
    if isinstance(fires, Count):
        when = "at every event" if fires.rows == 1 else f"at every {fires.rows:,} events"
    else:
        when = f"at every {_change(fires)}"
    return f"{what}, {when}"


_WITHOUT = {
    None: "",
    "row": ", without itself",
    "group": ", without those at its time",
    "ties": ", without others at its time",
}


def _measure(keeps: Keeps) -> str:
    if isinstance(keeps, Span):
        return duration_text(keeps.older or 0)
    if isinstance(keeps, Count):
        drawn = f" ({_SHOWN} are drawn)" if keeps.rows > _SHOWN else ""
        return f"the last {keeps.rows:,} event{'s' if keeps.rows > 1 else ''}{drawn}"
    if isinstance(keeps, Mark):
        return f"what came since a mark in {keeps.column}"
    if isinstance(keeps, Change):
        return f"while {keeps.column} differs by at most {keeps.by}"
    assert isinstance(keeps, Rule)
    return f"what {keeps.policy.name} lets stay"


def _change(fires: Change | Mark) -> str:
    if isinstance(fires, Mark):
        return f"mark in {fires.column}"
    return f"change of {fires.column} by {fires.by}"


def _ticked(window: Ticked) -> list[str]:
    events = "".join("x".ljust(_gap_behind(i)) for i in range(len(_EVENTS)))
    ticks = "".join("|".ljust(15) for _ in range(3)).rstrip()
    kept = _kept(window.keeps)
    lines = [f"{events.rstrip()}   events of a key", f"{ticks}   ticks, every {_tick(window)}"]
    for tick in (15, 30):
        low = kept(max(i for i, at in enumerate(_EVENTS) if at < tick))
        lines.append(" " * low + "[" + "-" * (tick - low - 1) + ")")
    lines[-1] += f"   {_measure(window.keeps)}, at every tick"
    return lines


def _tick(window: Ticked) -> str:
    return duration_text(window.tick)


def _merging(window: Merging) -> list[str]:
    gap = window.reach
    words = f"as long as {gap} says" if isinstance(gap, str) else duration_text(gap)
    longest = "" if window.longest is None else f", at most {duration_text(window.longest)} long"
    return [
        "x   x  x              x    x          events of a key",
        "[--------------)      [------------)",
        f"       ·~~~~~~~            ·~~~~~~~   {words} behind the last{longest}",
    ]
