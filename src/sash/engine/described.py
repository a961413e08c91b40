"""One line about a stream, for `repr`: its query, how it runs, its counts of rows, and its time.

    <sash.Stream of rows(3) by k, final, lateness 0 seconds; rows: 5 in, 0 late, 2 out; closed>

A debugger or a log may ask at any moment, so the line waits for no turn.  While another thread
pushes, its counts may be those before the push, or those after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tables.arrow import as_time, time_text
from ..windows import duration, duration_text
from .lifecycle import UNBOUNDED, Progress, latest

if TYPE_CHECKING:
    from .shared_stream import SharedStream
    from .stream import Stream

__all__ = [
    "counts_of",
    "line_of",
    "names_text",
    "shared_line",
    "stream_line",
    "stream_time",
    "streams_of",
]

#: A line has the counts of so many queries.
_QUERIES = 3


def stream_line(stream: Stream, name: str = "sash.Stream", what: str = "") -> str:
    """The line of a stream of one query."""
    if "_delays" not in vars(stream):  # making it failed
        return object.__repr__(stream)
    query = stream._as_given()
    keys = f" by {', '.join(query.by)}" if query.by else ""
    return line_of(
        name,
        what or f"{query.window!r}{keys}",
        (stream._mode, stream._lateness),
        {"rows": _counts(stream, stream._progress)},
        stream_time([stream]),
        where="" if stream._journal is None else f", {stream._journal!r}",
        closed=stream._closed,
        broken=stream._turns.broken,
    )


def shared_line(stream: SharedStream) -> str:
    """The line of a stream of several queries."""
    if "_members" not in vars(stream):  # making it failed
        return object.__repr__(stream)
    names = list(stream._queries)
    return line_of(
        "sash.SharedStream",
        names_text(names),
        (stream._settings["mode"], stream._settings["lateness"]),
        counts_of(names, stream),
        stream_time(streams_of([stream])),
        where="" if stream._journal is None else f", {stream._journal!r}",
        closed=stream._closed,
        broken=stream._turns.broken,
    )


def line_of(
    name: str,
    what: str,
    settings: tuple[str, Any],
    counts: Mapping[str, str],
    time: str,
    *,
    where: str = "",
    closed: bool = False,
    broken: str = "",
) -> str:
    """Put a line together."""
    each = [f"{query}: {said}" for query, said in list(counts.items())[:_QUERIES]]
    mode, lateness = settings
    state = "closed" if closed else time
    if broken:
        state = "not usable any more"
    about = f"{what}, {mode}, lateness {duration_text(duration(lateness))}{where}"
    return f"<{name} of {about}; {'; '.join(each)}{state and '; ' + state}>"


def streams_of(streams: Iterable[Stream | SharedStream]) -> list[Stream]:
    """The streams themselves, or the members of shared ones."""
    from .shared_stream import SharedStream

    made: list[Stream] = []
    for stream in streams:
        if isinstance(stream, SharedStream):
            made += [member.stream for member in list(stream._members)]
        else:
            made.append(stream)
    return made


def counts_of(names: Sequence[str], stream: Stream | SharedStream) -> dict[str, str]:
    """The counts of the queries of a stream, by their names."""
    from .shared_stream import SharedStream

    if not isinstance(stream, SharedStream):
        return {names[0]: _counts(stream, stream._progress)}
    made: dict[str, str] = {}
    for member in list(stream._members):
        each: dict[str, Progress] = getattr(member.stream, "_each", {})
        for name in member.names:
            made[name] = _counts(member.stream, each.get(name, member.stream._progress))
    return made


def stream_time(streams: Iterable[Stream]) -> str:
    """The latest of the streams' times, or an empty text."""
    newest, kind = None, None
    for stream in streams:
        time = latest(stream._progress.stream_time, stream._noted_time())
        if time is not None and time < UNBOUNDED and (newest is None or time > newest):
            newest, kind = time, stream._plan and stream._plan.time_type
    if newest is None:
        return ""
    if kind is None:
        return f"stream time {newest}"
    return f"stream time {time_text(as_time(np.array([newest]), kind)[0])}"


def _counts(stream: Stream, at: Progress) -> str:
    noted = stream._pending.count if stream._pending is not None else 0
    return f"{at.rows + noted:,} in, {at.late:,} late, {at.emitted:,} out"


def names_text(names: Sequence[str]) -> str:
    """The names of the first few queries, and how many more there are."""
    more = len(names) - _QUERIES
    return ", ".join(names[:_QUERIES]) + (f" and {more} more" if more > 0 else "")
