"""Windows in words and numbers: how many windows hold an event, and how slices cut them."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from ..query.query import Query
from ..slicing.edges import cuts_of
from ..slicing.techniques import Slicing, Technique, pairs, panes
from ..windows.calendars import CalendarClock
from ..windows.contract import Aligned, Driven, Merging, Ticked, Window
from ..windows.durations import duration_text
from ..windows.months import Months
from .drawing import draw
from .explanation import Windows

__all__ = ["slices_between", "windows_of", "with_sizes"]


def windows_of(window: Window, cut: Slicing | None = None) -> Windows:
    """Describe the windows and the slicing that cuts them; pairs by default."""
    drawing = tuple(draw(window, cut))
    if not isinstance(window, Aligned):
        by = f"{window!r}: {_by_events(window)}"
        return Windows(repr(window), window.kind, None, None, None, None, (by,), drawing)
    cut = cut or pairs(window)
    cuts, cycle = cut.edges, window.cycle
    slices = cut.per_window(window)
    held = int(cycle.last(cycle.start(0)) - cycle.first(cycle.start(0)) + 1)
    calendar = isinstance(window.clock, CalendarClock)
    ends = (*cuts.cuts, cuts.cycle)
    lengths = tuple(b - a for a, b in pairwise(ends))
    technique: Technique = cut.name
    if technique == "pairs" and len(cuts.cuts) == 1:  # then pairs and panes are the same
        technique = "panes"
    each = "a day" if calendar else " and ".join(duration_text(n) for n in lengths)
    if calendar and window.clock.unit == cuts.cycle and window.clock.monthly:  # type: ignore[attr-defined]
        each = "a month"
    how = _how(window, technique, slices)
    words = (
        f"{window!r}: an event is in {_many(held, 'window')}",
        f"a window has {'up to ' if calendar or cycle.windows > 1 else ''}"
        f"{_many(slices, 'slice')} of {each} ({technique}: {how})",
    )
    return Windows(
        repr(window),
        "aligned",
        held,
        slices,
        None if calendar else lengths,
        technique,
        words,
        drawing,
    )


def with_sizes(windows: Windows, query: Query) -> Windows:
    """Add the window sizes of the aggregates, if they differ from the query's size.

    >>> import sash
    >>> select = {"n": sash.count(), "ever": sash.count().over(sash.lifetime())}
    >>> q = sash.Query(time="t", window=sash.trailing("5 min"), select=select)
    >>> with_sizes(windows_of(q.window), q).words[1]
    'in one row: n over 5 minutes, ever over all since the beginning'
    """
    if not query.several:
        return windows
    each = [
        f"{name} over {'all since the beginning' if size is None else duration_text(size)}"
        for name, size in query.sizes.items()
    ]
    words = (*windows.words, f"in one row: {', '.join(each)}")
    return dataclasses.replace(windows, words=words)


def _how(window: Aligned, technique: Technique, slices: int) -> str:
    """Why a window has this number of slices."""
    if technique == "cutty":
        return "slices begin where windows do, and a window reads the open one that it ends in"
    if technique == "pairs":
        return "windows begin and end at different times, so there are two slices a slide"
    if slices == 1:
        return "a slice is a window"
    if isinstance(window.cycle, Months):
        return "windows of months may end on any day"
    if panes(window).edges != pairs(window).edges:
        return "slices are all alike, so they are as short as size and slide have in common"
    return "every window begins and ends where others do, so there is one slice a slide"


def slices_between(window: Aligned, span: int) -> int:
    """The largest number of slices in a span of readings that begins at a window's start."""
    cycle, cuts = window.cycle, cuts_of(window)
    starts = [cycle.start(n * cycle.windows) for n in range(2)]
    return max(int(cuts.number(t + span - 1) - cuts.number(t)) + 1 for t in starts)


def _by_events(window: Window) -> str:
    if isinstance(window, Merging):
        return "the gaps between a key's events decide where windows begin and end"
    if isinstance(window, Ticked):
        return "a key's events decide what a window holds, and the clock when it fires"
    assert isinstance(window, Driven)
    return "a key's events decide what a window holds, and when it fires"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"
