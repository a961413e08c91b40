"""The cost of an allowed lateness: `sash.lateness`.

    rows in order of arrival → when the windows of each close → counts for each allowance

Each row is a batch.  The watermark that the rows before it reached, which is stream time less the
allowance, decides whether the row is late.  So each row has a greatest allowance at which it misses
its first window, and a greatest at which it misses its last.  This module computes both once for
all allowances.  From the time when each slice comes, and the time when its last window closes, it
counts the slices that a stream keeps at most.

Only sessions need a pass for each allowance: which rows are in a closed session depends on the rows
that came before and were not late.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..kernels.core import shared_core
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import edges_of
from ..state.lateness_kernel import NONE, WHAT_IF
from ..state.measures import gaps_of
from ..tables import threads as pieces
from ..tables.arrow import (
    as_arrow,
    as_given,
    check_index,
    check_times,
    filtered,
    flat,
    kind_of,
    times_of,
)
from ..tables.keys import key_codes
from ..tables.threads import rise
from ..windows import Aligned, Driven, Merging, Ticked, duration
from ..windows.contract import LATEST
from .bundles import bundle_alone
from .measured import unmeasurable
from .sizes import reach_of
from .supported import Asked, check

__all__ = ["LEVELS", "Arrivals", "arrivals", "judged", "lateness"]

#: The default allowances are these quantiles of the lateness of rows that came out of order.
LEVELS = (
    *(k / 10 for k in range(10)),
    *(0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999, 1.0),
)

_NEVER = -(2**62)  # less than any allowance


def lateness(
    table: Any,
    query: Query,
    arrived: str | None = None,
    *,
    allowances: Sequence[Any] | None = None,
) -> Any:
    """What allowed latenesses would cost a stream of the query: for each, how many rows would be
    late, and how much the stream would keep.

    The rows of the table (pandas, Polars or Arrow) arrive in the table's order, or in the order of
    the column `arrived`, and each row is a batch of its own.  Without `allowances`, there are up to
    20: quantiles of how late rows come that are out of order, from 0, with which the stream waits
    for no row, to the largest lateness, with which it waits for all rows.

    The result is the same kind of table, with a row for each allowance.  Of all `rows`, it counts
    the `late` rows, which are in none of their windows, and the `partly_late` rows, which are in
    only some of them.  `kept` is the most that the stream keeps at a time: slices of all keys; or
    where events make the windows, rows that wait for the watermark, or open sessions.  `rows` does
    not count rows that `where` leaves out, nor rows that would not count at any allowance.

    >>> import pyarrow as pa, sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    >>> came = pa.table({"t": [1, 12, 8, 25, 3, 31]})
    >>> for row in sash.lateness(came, q, allowances=[0, 5, 25]).to_pylist():
    ...     print(row["allowance"].microseconds, row["late"], row["kept"])
    0 2 1
    5 1 2
    25 0 4
    """
    if not isinstance(query, Query):
        raise TypeError(
            "sash.lateness takes a table and then a sash.Query, and the second is of type "
            f"{type(query).__name__}"
        )
    check("Query.stream", Asked(query))
    came = arrivals(table, query, arrived)
    if allowances is None:
        asked = np.unique(np.append(0, _quantiles(came.delays())))
    else:
        asked = np.array([duration(a, "an allowance") for a in allowances], dtype=np.int64)
        if len(asked) and not (asked.min() >= 0 and asked.max() <= LATEST):
            raise ValueError(f"allowances are lengths of time from 0 on, not {allowances!r}")
    judge = judged(came)
    made = pieces.side_by_side(judge.at, asked.tolist(), pieces.how_many(None))
    columns = {
        "allowance": pa.array(asked).cast(pa.duration("us")),
        "rows": pa.array(np.full(len(asked), len(came.times))),
    }
    for i, name in enumerate(("late", "partly_late", "kept")):
        columns[name] = pa.array([found[i] for found in made], pa.int64())
    return as_given(pa.table(columns), kind_of(table))


def _quantiles(late: Array) -> Array:
    """The values at the `LEVELS`; between two values, the higher one."""
    if not len(late):
        return late
    places = np.ceil(np.array(LEVELS[1:]) * (len(late) - 1)).astype(np.int64)
    found: Array = np.partition(late, np.unique(places))[places]
    return found


@dataclass(frozen=True)
class Arrivals:
    """The rows of a table in order of arrival: their times, and stream time before the first row
    and after each row."""

    plan: Plan
    table: pa.Table  # the columns of keys, ties and gaps
    times: Array
    known: Array

    @classmethod
    def of(cls, plan: Plan, table: pa.Table, times: Array) -> Arrivals:
        """Rows with these times, in this order."""
        known = np.empty(len(times) + 1, dtype=np.int64)
        known[0] = _NEVER
        np.maximum.accumulate(times, out=known[1:])
        return cls(plan, table, times, known)

    @property
    def before(self) -> Array:
        """Stream time when each row comes; for the first row, so early that the row is not late."""
        return self.known[:-1]

    @property
    def tops(self) -> Array:
        """Stream time after each row."""
        return self.known[1:]

    def delays(self) -> Array:
        """How late rows come that are out of order; no other row can be late."""
        late = self.before - self.times
        return late[late > 0]

    def keys(self, *more: str) -> tuple[Array, int]:
        """The number of each row's key, and how many keys there are; columns in `more` are part of
        the key."""
        names = [*self.plan.query.by, *more]
        codes, keys = key_codes([flat(self.table.column(name)) for name in names], len(self.times))
        return codes, len(keys[0]) if keys else 1


def arrivals(table: Any, query: Query, arrived: str | None = None) -> Arrivals:
    """The rows of a table that a stream of the query could use, in order of arrival."""
    wanted = [*query.columns, *([arrived] if arrived is not None else [])]
    check_index(table, query.time, query.columns)
    given = as_arrow(table, None if query.where is not None else list(dict.fromkeys(wanted)))
    plan = make_plan(query, given.schema, () if arrived is None else (arrived,))
    check("Query.stream", Asked(query, plan))
    if query.where is not None:
        given = filtered(given, query.where)
    if arrived is not None:
        given = _in_order(given, arrived)
    window = query.window
    if isinstance(window, Merging) and isinstance(window.reach, str):
        given = given.filter(pa.array(gaps_of(given, window.reach) > 0))
    elif isinstance(window, Driven | Ticked):
        useless = unmeasurable(window, given)
        if useless:
            there = np.ones(given.num_rows, dtype=bool)
            there[list(useless)] = False
            given = given.filter(pa.array(there))
    column = flat(given.column(query.time))
    times, bad = times_of(column, window.clock)
    check_times(query.time, column, bad, window.clock)
    read = [*query.by, *([query.tie] if query.tie else []), *window.columns]
    return Arrivals.of(plan, given.select(list(dict.fromkeys(read))), times)


def _in_order(table: pa.Table, arrived: str) -> pa.Table:
    """Sort the rows by a column; rows with equal values keep their order."""
    column = flat(table.column(arrived))
    if column.null_count:
        raise ValueError(
            f"{column.null_count} row(s) have no value in {arrived!r}, which says when rows "
            "arrived; leave out such rows first"
        )
    try:
        order = pc.array_sort_indices(column)
    except pa.ArrowNotImplementedError:
        raise TypeError(
            f"the column {arrived!r} has type {column.type}, which has no order; give one of "
            "times or numbers"
        ) from None
    return table if rise(np.asarray(order)) else table.take(order)


class Judged(ABC):
    """Judges the rows for any allowance."""

    @abstractmethod
    def at(self, allowance: int) -> tuple[int, int, int]:
        """How many rows are late, how many are partly late, and how much the stream keeps at
        most."""

    @abstractmethod
    def rows(self, allowance: int) -> tuple[Array, Array]:
        """The rows that miss at least one of their windows, and the rows that miss all of them."""


def judged(came: Arrivals) -> Judged:
    """Judge rows as a stream of their query does."""
    window = came.plan.query.window
    if isinstance(window, Aligned):
        return _of_slices(came)
    if isinstance(window, Merging) and isinstance(window.reach, int) and window.longest is None:
        return _BySessions(came, window.reach)
    ends = came.times + 1
    late = came.before - ends
    return _ByClosing(np.arange(len(ends)), late, late, _Kept(came.tops, ends, late))


def _of_slices(came: Arrivals) -> Judged:
    """Judge rows by when the first and the last of their windows close."""
    window, times = reach_of(came.plan.query), came.times
    threads = pieces.how_many(None)

    def at_risk(piece: tuple[int, int]) -> list[Array]:
        """The rows of a piece that may miss a window, with the greatest allowance at which each
        misses its first window, and its last.  The work is done in blocks, whose intermediate
        arrays stay in the cache."""
        found: list[list[Array]] = [[], [], []]
        for first in range(*piece, pieces.BLOCK):
            some = slice(first, min(first + pieces.BLOCK, piece[1]))
            rows = first + np.flatnonzero(times[some] < came.before[some])
            partly = came.before[rows] - window.end(window.first(times[rows]))
            rows, partly = rows[partly >= 0], partly[partly >= 0]
            wholly = came.before[rows] - window.end(window.last(times[rows]))
            for parts, new in zip(found, (rows, partly, wholly), strict=True):
                parts.append(new)
        return [np.concatenate(parts) if parts else times[:0] for parts in found]

    made = pieces.side_by_side(at_risk, pieces.cut_rows(len(times)), threads)
    rows, partly, wholly = (np.concatenate(parts) for parts in zip(*made, strict=True))
    firsts = _first_of_slices(came)
    ends = window.end(window.last(times[firsts]))
    kept = _Kept(came.tops[firsts], ends, came.before[firsts] - ends)
    return _ByClosing(rows, partly, wholly, kept)


def _first_of_slices(came: Arrivals) -> Array:
    """The first row of each key and slice; if the order of events matters, of each key, time and
    tie."""
    query = came.plan.query
    if came.plan.ordered:
        codes, many = came.keys(*([query.tie] if query.tie else []))
        numbers = came.times
    else:
        codes, many = came.keys()
        edges = edges_of(query.aligned)
        if query.several:
            composite = bundle_alone(query).composite
            assert composite is not None
            edges = composite.edges
        numbers = edges.number(came.times)
    if not len(numbers):
        return numbers
    low, high = int(numbers.min()), int(numbers.max())
    width = high - low + 1
    if width * many >= 2**62:
        numbers, _ = key_codes([pa.array(numbers)], len(numbers))
        low, width = 0, len(numbers)
    places = codes * width + (numbers - low)
    rows = np.arange(len(places))
    if width * many <= 4 * len(places) + 2**16:  # a table has a place for each
        first = np.full(width * many, NONE)
        first[places[::-1]] = rows[::-1]
        found = first[first != NONE]
    else:
        rising, order = _sorted(places)
        found = order[np.append(True, rising[1:] != rising[:-1])]
    is_first = np.zeros(len(places), dtype=bool)
    is_first[found] = True
    return np.flatnonzero(is_first)


class _ByClosing(Judged):
    """Judges rows by the greatest allowance at which each misses a window, and at which it misses
    all of them; rows that are not in `rows` never miss a window."""

    def __init__(self, rows: Array, some: Array, all_: Array, kept: _Kept) -> None:
        self._rows, self._some, self._all, self._kept = rows, some, all_, kept

    def at(self, allowance: int) -> tuple[int, int, int]:
        some, all_ = (int(np.count_nonzero(a >= allowance)) for a in (self._some, self._all))
        return all_, some - all_, self._kept.most(allowance)

    def rows(self, allowance: int) -> tuple[Array, Array]:
        return self._rows[self._some >= allowance], self._rows[self._all >= allowance]


class _Kept:
    """Counts the entries of a state: an entry comes with a row, unless the row is late, and leaves
    when the watermark reaches the entry's end."""

    def __init__(self, tops: Array, ends: Array, late: Array) -> None:
        """For each entry, in order of arrival: stream time after its row, its end, and the greatest
        allowance at which the row is late."""
        rising, order = _sorted(ends)
        firsts, highs = _runs(tops)
        self._coming, self._going = (late, firsts, highs), (rising, late[order])

    def most(self, allowance: int) -> int:
        """The largest number of entries after a row."""
        core = shared_core(WHAT_IF)
        with core.call() as call:
            coming, going = ([call.integers(a) for a in s] for s in (self._coming, self._going))
            runs, entries = len(self._coming[2]), len(self._coming[0])
            return int(core.run.most_kept(core.m, *coming, runs, *going, entries, allowance))


def _runs(tops: Array) -> tuple[Array, Array]:
    """Runs of rows with the same stream time after each: where each run begins, followed by where
    the last run ends; and the stream time of each run."""
    rises = np.append(True, tops[1:] != tops[:-1])[: len(tops)]
    firsts = np.flatnonzero(rises)
    return np.append(firsts, len(tops)), tops[firsts]


def _sorted(values: Array) -> tuple[Array, Array]:
    """The sorted values, and the place from which each came; equal values keep their order.
    numpy's `sort` is several times as fast as its `argsort`, so if a value and its place fit into
    one integer, this sorts such integers."""
    bits = len(values).bit_length()
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if (high - low).bit_length() + bits > 62:
        order = np.argsort(values, kind="stable")
        return values[order], order
    packed = np.sort((values - low << bits) | np.arange(len(values)))
    return (packed >> bits) + low, packed & ((1 << bits) - 1)


class _BySessions(Judged):
    """Judges the rows of sessions that are a fixed gap apart."""

    def __init__(self, came: Arrivals, gap: int) -> None:
        self._came, self._gap = came, gap
        self._codes, self._many = came.keys()
        self._firsts, self._highs = _runs(came.tops)

    def at(self, allowance: int) -> tuple[int, int, int]:
        late, most = self._pass(allowance)
        return late, 0, most

    def rows(self, allowance: int) -> tuple[Array, Array]:
        marks = np.zeros(len(self._codes), dtype=np.int64)
        self._pass(allowance, marks)
        late = np.flatnonzero(marks)
        return late, late

    def _pass(self, allowance: int, marks: Array | None = None) -> tuple[int, int]:
        """How many rows are late, and how many sessions are open at most; set `marks` at late
        rows."""
        came, many, runs = self._came, len(self._codes), len(self._highs)
        if not many:
            return 0, 0
        found = np.zeros(2, dtype=np.int64)
        core = shared_core(WHAT_IF)
        with core.call() as call:
            given = [call.integers(a) for a in (came.times, self._codes, self._firsts, self._highs)]
            lists = [call.integers(np.full(self._many, a)) for a in (NONE, NONE, _NEVER)]
            links = [call.space(many)[1] for _ in range(4)]
            closed = call.integers(np.zeros(runs, dtype=np.int64))
            counts = [closed, *(call.space(runs)[1] for _ in range(2))]
            late = call.integers(found if marks is None else marks)
            settings = runs, self._many, self._gap, allowance
            core.run.late_sessions(
                *(core.m, *given, *settings, *lists, *links, *counts),
                *(late, int(marks is not None), call.integers(found)),
            )
        return int(found[0]), int(found[1])
