"""Warnings about a query: what may be slow, large or ambiguous."""

from __future__ import annotations

import pyarrow as pa

from ..engine.supported import Place
from ..query.plan import Plan
from ..query.query import Query
from ..tables.whole_times import lasts_seconds
from ..windows import Trailing
from ..windows.contract import Aligned, Driven, Merging, Span
from ..windows.durations import duration_text
from .partials import in_query
from .sizes import slices_between

__all__ = ["cautions"]

_MANY = 1_000  # warn if one event is in this many windows
_MUCH = 2.0  # warn if lateness keeps this many times the slices that windows need


def cautions(
    query: Query, plan: Plan | None, place: Place, lateness: int = 0, unsplit: str = ""
) -> tuple[str, ...]:
    """Warnings for a query at a place.  `unsplit` says why one task must take all events of a
    key."""
    found = [_lone(query), _tie(query, plan, place), _late(query, lateness), _whole(query, plan)]
    if unsplit:
        found.append(f"a hot key cannot be split: {unsplit}")
    return tuple(text for text in (*found, *_python(plan)) if text)


def _lone(query: Query) -> str:
    """Warn that one event is in very many windows."""
    window = query.window
    if not isinstance(window, Aligned) or query.emit == "changes":
        return ""
    cycle = window.cycle
    many = int(cycle.last(cycle.start(0)) - cycle.first(cycle.start(0)) + 1)
    if many < _MANY:
        return ""
    return (
        f"one lone event has a row in each of {many:,} windows; emit='changes' leaves out windows "
        "that are as the one before"
    )


def _tie(query: Query, plan: Plan | None, place: Place) -> str:
    """Warn that nothing decides the order of events at one time."""
    if query.tie is not None or place.startswith("Query.stream"):  # streams use arrival
        return ""
    names = [n for n, a in query.select.items() if not a.operator.commutative]
    if plan is not None:
        parts = [p for g in plan.groups for p in zip(g.names, g.operator.parts, strict=True)]
        ordered = [n for n, part in parts if not part.operator.commutative]
        names = list(in_query(plan, [*ordered, *(r.name for r in plan.ranged if r.ordered)]))
    if not names:
        return ""
    which = f"{', '.join(names)} depend{'s' if len(names) == 1 else ''} on the order of events"
    if place == "Query.run":
        return (
            f"{which}, and those of one key and time are in the order of the table's rows; name a "
            "column in tie='…' if that order means nothing"
        )
    return (
        f"{which}, and on Spark those of one key and time have none, so results may differ from "
        "run to run: name a column that puts them in order in tie='…'"
    )


def _whole(query: Query, plan: Plan | None) -> str:
    """Warn that times are whole numbers, where windows last seconds or longer."""
    if plan is None or not pa.types.is_integer(plan.time_type) or not lasts_seconds(query):
        return ""
    return (
        f"the times in column {query.time!r} are whole numbers ({plan.time_type}), which sash "
        "reads as microseconds since 1970; if they count seconds or milliseconds, make them "
        "timestamps first"
    )


def _late(query: Query, lateness: int) -> str:
    """Warn that a stream keeps much state only for late events."""
    window = query.window
    if not lateness:
        return ""
    if not isinstance(window, Aligned):
        return _late_by_events(query, lateness)
    need = slices_between(window, window.cycle.longest)
    kept = slices_between(window, window.cycle.longest + lateness)
    if kept < _MUCH * need + 1:
        return ""
    return (
        f"a lateness of {duration_text(lateness)} keeps {kept:,} slices a key, where windows need "
        f"{need:,}"
    )


def _late_by_events(query: Query, lateness: int) -> str:
    """The same for windows that events make, if they are a length of time."""
    window = query.window
    if isinstance(window, Merging):
        gap = window.reach
        if isinstance(gap, str) or gap + lateness < _MUCH * gap:
            return ""
        return (
            f"a lateness of {duration_text(lateness)} keeps a partial for each distinct time of "
            f"the last {duration_text(lateness)}, where sessions need those of "
            f"{duration_text(gap)} at most"
        )
    longest = _longest(query)
    if longest is None or longest + lateness < _MUCH * longest:
        return ""
    return (
        f"a lateness of {duration_text(lateness)} keeps all events of the last "
        f"{duration_text(lateness)}, where windows hold those of {duration_text(longest)}"
    )


def _longest(query: Query) -> int | None:
    """The length of the longest window that ends at an event; None if a window has no length."""
    window = query.window
    if isinstance(window, Trailing):
        lengths = query.sizes.values()
        return None if None in lengths else max(n for n in lengths if n is not None)
    if isinstance(window, Driven) and isinstance(window.keeps, Span):
        return window.keeps.older
    return None


def _python(plan: Plan | None) -> list[str]:
    """Warn about aggregates that are not compiled."""
    if plan is None:
        return []
    python = [
        name
        for group in plan.groups
        if not group.operator.compile or group.operator.shape == "object"
        for name in group.names
    ]
    if not python:
        return []
    names = in_query(plan, python)
    verb = "runs" if len(names) == 1 else "run"
    slow = "where a combine takes microseconds instead of nanoseconds"
    return [f"{', '.join(names)} {verb} in plain Python, {slow}"]
