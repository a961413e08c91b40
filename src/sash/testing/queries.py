"""The oracle of queries: compute their rows by brute force, for a table or a stream of batches.

It shares no code with the engine: for each event it lists the windows that hold it, one by one,
sorts the events of each window, and folds them with the operator's plain functions.  It uses
operators only in their generic form, so it also checks the typed form.

A row is a dict: keys, or for driven windows all columns of the event (`testing.driven` finds the
events of its window), then `window_start`, `window_end` and the values.  All times are int64
microseconds, so that rows from tables of any kind can be compared (`rows_of`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from ..query import Query
from ..windows import Driven, Merging, Session, Ticked, duration
from .aligned import (
    FARTHEST,
    Span,
    closed_windows_of,
    empty_between,
    events_over,
    usable,
    window_before,
    windows_of,
)
from .driven import fired_over, sessions, ticked
from .rows import Row, arrow_of, equal, order_of, plain, rows_of, shown

__all__ = ["answers", "differences", "replay", "rows_of"]

#: Computes the values of a row from the events of each aggregate.
Answer = Callable[[dict[str, Sequence[Row]]], Row]


def answers(query: Query, table: Any) -> list[Row]:
    """The rows of a query over a table, or over a list of events as dicts.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.sliding(4, 2), select={"all": sash.collect("x")})
    >>> for row in answers(q, {"t": [3, 1], "x": ["b", "a"]}):
    ...     print(row)
    {'window_start': -2, 'window_end': 2, 'all': ['a']}
    {'window_start': 0, 'window_end': 4, 'all': ['a', 'b']}
    {'window_start': 2, 'window_end': 6, 'all': ['b']}
    """
    if isinstance(query.window, Driven):
        events = _events(query, table)
        return [{**events[n], **row} for n, row in answers_by_event(query, events)]
    if isinstance(query.window, Merging | Ticked):
        return rows_made_by_events(query, _events(query, table))
    held = _Held(query)
    for row in _events(query, table):
        held.add(row, windows_of(query.window, math.floor(row[query.time])), None)
    return held.rows()


def answers_by_event(
    query: Query, events: Sequence[Row], answer: Answer | None = None
) -> list[tuple[int, Row]]:
    """For a driven window: the number of each event that fires, in order of arrival, and the
    columns that its row adds to the event's own; `answer` computes the values over events."""
    made = []
    for one, numbers in fired_over(query, events, lambda row: key_of(query, row)[0], _tie):
        n, start, end, _ = one
        held: dict[str, Sequence[Row]] = {a: [events[i] for i in of] for a, of in numbers.items()}
        values = answer(held) if answer else _values(query, held)
        made.append((n, {"window_start": start, "window_end": end, **values}))
    return made


def _values(query: Query, events: dict[str, Sequence[Row]]) -> Row:
    return {name: fold(a, events[name]) for name, a in query.select.items()}


def _replay_by_event(
    query: Query, batches: Iterable[Any], allowed: int, behind: int
) -> tuple[list[Row], list[tuple[Row, list[Span]]]]:
    """`replay` for driven windows and sessions.  An event before the watermark is late.  For
    sessions with one gap and no greatest size, an event is late if its gap ends before the
    watermark, or if it touches an emitted session."""
    merging = isinstance(query.window, Merging)
    gap = _one_gap(query)
    accepted: list[Row] = []
    late: list[tuple[Row, list[Span]]] = []
    newest: int | None = None
    reached = [-FARTHEST] * (behind + 1)
    for batch in batches:
        reached.append(-FARTHEST if newest is None else newest - allowed)
        watermark = reached[-1 - behind]
        emitted: list[tuple[Any, int]] = []
        if gap:
            found = sessions(query, accepted, lambda row: key_of(query, row)[0], _tie)
            emitted = [(key, end) for key, _, end, _ in found if end < watermark]
        for row in _events(query, batch):
            time = row[query.time]
            gaps = [row[c] for c in query.window.columns] if merging else []
            outside = any(g is None or g <= 0 for g in gaps)
            if not usable(query.window, time) or outside:
                late.append((row, []))
                continue
            at, key = math.floor(time), key_of(query, row)[0]
            if at + gap < watermark or any(key == k and at <= end for k, end in emitted):
                late.append((row, []))
                continue
            accepted.append(row)
            newest = at if newest is None else max(newest, at)
    if not isinstance(query.window, Driven):
        return rows_made_by_events(query, accepted), late
    return [{**accepted[n], **row} for n, row in answers_by_event(query, accepted)], late


def _one_gap(query: Query) -> int:
    """The gap, if all sessions have the same gap and no greatest size; otherwise 0."""
    window = query.window
    if isinstance(window, Session) and isinstance(window.gap, int) and window.max_size is None:
        return window.gap
    return 0


def rows_made_by_events(
    query: Query, events: Sequence[Row], answer: Answer | None = None
) -> list[Row]:
    """The rows of windows that events form but that belong to no single event, such as sessions;
    `answer` computes the values over events."""
    made: list[Row] = []
    windows = sessions if isinstance(query.window, Merging) else ticked
    for _, start, end, numbers in windows(query, events, lambda r: key_of(query, r)[0], _tie):
        held: dict[str, Sequence[Row]] = {a: [events[n] for n in numbers] for a in query.select}
        values = answer(held) if answer else _values(query, held)
        keys = key_of(query, events[numbers[0]])[1]
        made.append({**keys, "window_start": start, "window_end": end, **values})
    return made


def replay(
    query: Query, batches: Iterable[Any], lateness: Any = 0, *, behind: int = 0
) -> tuple[list[Row], list[tuple[Row, list[Span]]]]:
    """The final rows of a stream of batches, and the late events, each with the windows that it
    missed, as pairs of start and end (none, if its time is unusable).

    After each batch the watermark is the largest time so far, over all keys, minus the lateness.  A
    window is closed once its end is at or before the watermark.  Rows that `where` leaves out are
    no events.  The watermark of the batch before decides which rows are late, or with `behind` that
    of an earlier batch: Spark uses the batch before that.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    >>> rows, late = replay(q, [[{"t": 3}, {"t": 12}], [{"t": 4}, {"t": 13}]])
    >>> [(row["window_start"], row["n"]) for row in rows], late
    ([(0, 1), (10, 2)], [({'t': 4}, [(0, 10)])])
    """
    allowed = duration(lateness, "the lateness")
    if isinstance(query.window, Driven | Merging | Ticked):
        return _replay_by_event(query, batches, allowed, behind)
    held = _Held(query)
    late: list[tuple[Row, list[Span]]] = []
    newest: int | None = None
    reached: list[int | None] = [None] * (behind + 1)
    for batch in batches:
        reached.append(None if newest is None else newest - allowed)
        watermark = reached[-1 - behind]
        for row in _events(query, batch):
            time = row[query.time]
            if not usable(query.window, time):
                late.append((row, []))
                continue
            at = math.floor(time)
            missed = closed_windows_of(query, at, watermark)
            spans = windows_of(query.window, at)
            held.add(row, [span for span in spans if span not in missed], watermark)
            if missed:
                late.append((row, missed))
            newest = at if newest is None else max(newest, at)
    return held.rows(), late


class _Held:
    """The events of each window, by key, and all events of each key."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._keys: dict[Any, Row] = {}  # a key's columns, by its value for comparisons
        self._events: dict[tuple[Any, Span], list[tuple[Any, Row]]] = {}
        self._all: dict[Any, list[tuple[Any, Row, int | None]]] = {}
        self._arrived = 0

    def add(self, row: Row, spans: Iterable[Span], watermark: int | None) -> None:
        """Add an event to its open windows: those that end after the watermark."""
        query = self._query
        key, shown = key_of(query, row)
        tie = () if query.tie is None else _tie(row[query.tie])
        self._arrived += 1
        place = (row[query.time], tie, self._arrived)
        self._all.setdefault(key, []).append((place, row, watermark))
        for span in spans:
            self._keys.setdefault(key, shown)
            self._events.setdefault((key, span), []).append((place, row))

    def _values(self, key: Any, span: Span) -> Row:
        """The values in a window's row."""
        own = [row for _, row in sorted(self._events.get((key, span), []), key=lambda e: e[0])]
        over: dict[str, Sequence[Row]] = {}
        for name, chosen in self._query.select.items():
            over[name] = own
            if chosen.size is not None:
                there = [e for e in self._all[key] if e[2] is None or span[1] > e[2]]
                times = sorted(((place, row) for place, row, _ in there), key=lambda e: e[0])
                over[name] = events_over(chosen, span[1], times)
        return _values(self._query, over)

    def rows(self) -> list[Row]:
        query = self._query
        made: list[Row] = []
        before: dict[Any, tuple[Span, Row]] = {}  # the last window of each key
        for key, span in sorted(self._events):
            values = self._values(key, span)
            last = before.get(key)
            before[key] = (span, values)
            follows = last is not None and last[0] == window_before(query.window, span)
            if query.emit == "changes" and last and follows and equal(values, last[1]):
                continue
            spans = empty_between(query.window, last[0] if last else None, span)
            made += [row_of(self._keys[key], s, self._values(key, s)) for s in spans]
            made.append(row_of(self._keys[key], span, values))
        return made


def row_of(keys: Row, span: Span, values: Row) -> Row:
    """The row of a window."""
    return {**keys, "window_start": span[0], "window_end": span[1], **values}


def same_values(a: Row, b: Row) -> bool:
    """True if two windows have the same values, where NaN equals NaN."""
    return equal(a, b)


def fold(chosen: Any, events: Sequence[Row]) -> Any:
    """An aggregate over events in order, by the operator's plain functions."""
    return lowered(chosen, folded(chosen, events))


class Event(dict[str, Any]):
    """A row, and the aggregates' conditions that it satisfies."""

    holds: set[Any]


def events_of(query: Query, table: Any) -> list[Row]:
    """The rows of a table as events of a query."""
    import pyarrow as pa

    rows = [Event(row) for row in rows_of(table)]
    for row in rows:
        row.holds = set()
    conditions = {a.where for a in query.select.values() if a.where}
    if conditions and rows:
        given = pa.Table.from_pylist(table) if isinstance(table, list) else arrow_of(table)
        for condition in conditions:
            for i in _chosen(given, condition.expression):
                rows[i].holds.add(condition)
    return list(rows)


def _chosen(table: Any, where: Any) -> list[int]:
    """The numbers of the rows that satisfy a condition."""
    import pyarrow as pa

    numbered = table.append_column("row number", pa.array(range(table.num_rows)))
    return numbered.filter(where)["row number"].to_pylist()  # type: ignore[no-any-return]


def counted(chosen: Any, events: Sequence[Row]) -> list[Row]:
    """The events that count in an aggregate."""
    if chosen.where is None:
        return list(events)
    return [e for e in events if isinstance(e, Event) and chosen.where in e.holds]


def folded(chosen: Any, events: Sequence[Row]) -> Any:
    """The partial of events in order; their number for an aggregate that only counts rows."""
    events = counted(chosen, events)
    if not chosen.columns:
        return len(events)
    from ..query.registry import picks_values

    rows = [tuple(row[c] for c in chosen.columns) for row in events]
    if not picks_values(chosen.operator):  # only operators that pick values keep nanoseconds
        rows = [tuple(map(_floored, row)) for row in rows]
    several = len(chosen.columns) > 1
    return chosen.operator.fold([row if several else row[0] for row in rows])


def _floored(value: Any) -> Any:
    return math.floor(value) if isinstance(value, Fraction) else value


def lowered(chosen: Any, partial: Any) -> Any:
    """The answer from a partial, as a table would return it."""
    if not chosen.columns:
        return partial
    operator = chosen.operator
    return plain(operator.python_lower()(partial), operator.fields)


# Keys


def key_of(query: Query, row: Row) -> tuple[Any, Row]:
    """A row's key: the value to compare and sort it by, and its columns as a result shows them."""
    key = {name: shown(row[name]) for name in query.by}
    return tuple(order_of(x) for x in key.values()), key


def _tie(value: Any) -> Any:
    """The rank of an event among events of one time; nulls and NaN come last."""
    return (2,) if value is None else (1,) if value != value else (0, value)


def _events(query: Query, table: Any) -> list[Row]:
    """The rows that `where` lets through, in order of arrival."""
    rows = events_of(query, table)
    if query.where is None or not rows:
        return rows
    import pyarrow as pa

    given = pa.Table.from_pylist(table) if isinstance(table, list) else arrow_of(table)
    return [rows[i] for i in _chosen(given, query.where)]


# Judging


def differences(
    query: Query, expected: Iterable[Row], got: Any, *, ordered: bool = True
) -> list[str]:
    """The differences between a query's rows and the expected rows, one line each.

    Sums and the like may differ by rounding, NaN equals NaN, and everything else is exact.  The
    comparison ignores columns that nobody asked for; with `ordered=False`, it also ignores the
    order of rows.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    >>> differences(q, answers(q, {"t": [1, 2]}), q.run({"t": [1]}))
    ["row 0 {'window_start': 0, 'window_end': 10}: n is 1 where 2 is right"]
    """
    wanted, given = list(expected), rows_of(got)
    if not ordered:
        wanted, given = (sorted(rows, key=lambda r: _place(query, r)) for rows in (wanted, given))
    wrong = []
    for i, (right, row) in enumerate(zip(wanted, given, strict=False)):
        # its keys, or all columns of its event, and its window
        names = [name for name in right if name not in query.select]
        where = {name: row.get(name) for name in names}
        if not all(name in row and equal(shown(row[name]), right[name]) for name in names):
            wrong.append(
                f"row {i} is {where} where { {name: right[name] for name in names} } is right"
            )
            break
        for name, chosen in query.select.items():
            slack = 1e-9 if chosen.operator.equal is not None else 0.0
            if name not in row or not equal(right[name], plain(row[name]), slack):
                wrong.append(
                    f"row {i} {where}: {name} is {row.get(name)} where {right[name]} is right"
                )
    if len(wanted) != len(given):
        wrong.append(f"there are {len(given)} rows where {len(wanted)} are right")
    return wrong


def _place(query: Query, row: Row) -> Any:
    names = (*query.by, "window_start", "window_end")
    return tuple(order_of(shown(row[name])) for name in names)
