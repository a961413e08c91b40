"""What an allowed lateness would cost: `sash.lateness`.

    rows in order of arrival → when the windows of each close → counts for each allowance

Each row is a batch.  It is judged by the watermark that the rows before it have reached, stream
time less the allowance, so for each row there is a greatest allowance at which it misses its first
window, and one at which it misses its last.  These are computed once for all allowances.  What is
kept at most follows from when each slice comes and when its last window closes.

Only sessions need a pass for each allowance: which rows are in a session that is closed depends on
the rows that came before and were not late.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..operators import count
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import edges_of
from ..state.lateness_kernel import NONE, WHAT_IF
from ..state.measures import gaps_of
from ..tables import threads as pieces
from ..tables.arrow import as_arrow, as_given, check_times, filtered, flat, kind_of, times_of
from ..tables.keys import key_codes
from ..tables.rows import rise
from ..windows import Aligned, Driven, Merging, Ticked, duration
from ..windows.contract import LATEST
from .measured import unmeasurable
from .supported import Asked, check

__all__ = ["LEVELS", "Arrivals", "arrivals", "judged", "lateness"]

#: The quantiles of the lateness of rows that came out of order that become allowances.
LEVELS = (
    *(k / 10 for k in range(10)),
    *(0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999, 1.0),
)

_NEVER = -(2**62)  # an allowance that is less than any


def lateness(
    table: Any,
    query: Query,
    arrived: str | None = None,
    *,
    allowances: Sequence[Any] | None = None,
) -> Any:
    """What each of 20 allowed latenesses would cost a stream of the query: how many rows would be
    too late, and how much the stream would keep.

    The rows of the table (pandas, Polars or Arrow) arrive in the table's order, or in that of the
    column `arrived`, and each is a batch of its own.  Allowances are quantiles of how late the rows
    come that are out of order, from 0, which waits for none, to the largest, which waits for all;
    or those in `allowances`.

    The result is the same kind of table, with a row for each allowance: of all `rows`, how many
    would be `late`, in none of their windows, and `partly_late`, in some of them; and what is
    `kept` at most at a time: slices of keys, or where events make the windows the rows that wait
    for the watermark, or open sessions.  Rows that `where` leaves out, and those that no allowance
    would let count, are not among the rows.

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
        raise TypeError(f"lateness is of a sash.Query, not {query!r}")
    check("Query.stream", Asked(query))
    came = arrivals(table, query, arrived)
    if allowances is None:
        late = came.before[came.old] - came.times[came.old]
        found = np.quantile(late, LEVELS[1:], method="higher") if len(late) else late[:0]
        asked = np.unique(np.append(0, found)).astype(np.int64)
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


@dataclass(frozen=True)
class Arrivals:
    """The rows of a table in order of arrival: their times, and stream time after each."""

    plan: Plan
    table: pa.Table  # the columns that tell keys, ties and gaps
    times: Array
    tops: Array

    @cached_property
    def before(self) -> Array:
        """Stream time when each row comes; before the first row, so early that none is late."""
        return np.append(_NEVER, self.tops[:-1])[: len(self.tops)]

    @cached_property
    def old(self) -> Array:
        """The rows that come out of order: no other can be late."""
        return np.flatnonzero(self.times < self.before)

    def keys(self, *more: str) -> tuple[Array, int]:
        """The number of each row's key, and how many there are; with further columns in the key."""
        names = [*self.plan.query.by, *more]
        codes, keys = key_codes([flat(self.table.column(name)) for name in names], len(self.times))
        return codes, len(keys[0]) if keys else 1


def arrivals(table: Any, query: Query, arrived: str | None = None) -> Arrivals:
    """The rows of a table that a stream of the query could use, in order of arrival."""
    wanted = [*query.columns, *([arrived] if arrived is not None else [])]
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
    return Arrivals(plan, given.select(list(dict.fromkeys(read))), times, _tops(times))


def _in_order(table: pa.Table, arrived: str) -> pa.Table:
    """The rows in the order of a column, those with equal values as they were."""
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


def _tops(times: Array) -> Array:
    return np.maximum.accumulate(times) if len(times) else times


class Judged(ABC):
    """Rows judged for any allowance."""

    @abstractmethod
    def at(self, allowance: int) -> tuple[int, int, int]:
        """How many rows are late, how many partly late, and how much is kept at most."""

    @abstractmethod
    def rows(self, allowance: int) -> tuple[Array, Array]:
        """Which rows miss some window, and which miss all of theirs."""


def judged(came: Arrivals) -> Judged:
    """Judge rows as the streams of their query's window do."""
    window = came.plan.query.window
    if isinstance(window, Aligned):
        return _of_slices(came)
    if isinstance(window, Merging) and isinstance(window.reach, int) and window.longest is None:
        return _BySessions(came, window.reach)
    ends = came.times + 1
    late = came.before - ends
    rows = np.arange(len(ends))
    return _ByClosing(rows, late, late, _Kept(came.tops, rows, ends, late))


def _of_slices(came: Arrivals) -> Judged:
    """Judge rows by when the first and the last of their windows close."""
    window, times = came.plan.query.aligned, came.times
    old, before = times[came.old], came.before[came.old]
    some = before - window.end(window.first(old))
    all_ = before - window.end(window.last(old))
    firsts = _first_of_slices(came)
    ends = window.end(window.last(times[firsts]))
    kept = _Kept(came.tops, firsts, ends, came.before[firsts] - ends)
    return _ByClosing(came.old, some, all_, kept)


def _first_of_slices(came: Arrivals) -> Array:
    """The rows that are the first of their key and slice; where the order of events matters, of
    their key, time and tie."""
    query = came.plan.query
    if came.plan.ordered:
        codes, many = came.keys(*([query.tie] if query.tie else []))
        numbers = came.times
    else:
        codes, many = came.keys()
        numbers = edges_of(query.aligned).number(came.times)
    if not len(numbers):
        return numbers
    low, high = int(numbers.min()), int(numbers.max())
    width = high - low + 1
    if width * many >= 2**62:
        numbers, _ = key_codes([pa.array(numbers)], len(numbers))
        low, width = 0, len(numbers)
    places = codes * width + (numbers - low)
    rows = np.arange(len(places))
    if width * many <= 4 * len(places) + 2**16:  # each has a place in a table
        first = np.full(width * many, NONE)
        first[places[::-1]] = rows[::-1]
        found = first[first != NONE]
    else:
        order = _order(places)
        found = order[np.append(True, np.diff(places[order]) > 0)]
    is_first = np.zeros(len(places), dtype=bool)
    is_first[found] = True
    return np.flatnonzero(is_first)


class _ByClosing(Judged):
    """Rows of which it is known up to which allowance each misses some window, and all; others
    never do."""

    def __init__(self, rows: Array, some: Array, all_: Array, kept: _Kept) -> None:
        self._rows, self._some, self._all, self._kept = rows, some, all_, kept

    def at(self, allowance: int) -> tuple[int, int, int]:
        some, all_ = (int(np.count_nonzero(a >= allowance)) for a in (self._some, self._all))
        return all_, some - all_, self._kept.most(allowance)

    def rows(self, allowance: int) -> tuple[Array, Array]:
        return self._rows[self._some >= allowance], self._rows[self._all >= allowance]


class _Kept:
    """Entries of a state: each comes with a row, unless it is late, and leaves when the watermark
    comes to its end."""

    def __init__(self, tops: Array, rows: Array, ends: Array, late: Array) -> None:
        """The rows of entries rise; `late` has the greatest allowance at which each is late."""
        order = _order(ends)
        self._arrays = tops, rows, late, ends[order], late[order]

    def most(self, allowance: int) -> int:
        """How many entries there are at most, after a row."""
        tops, *entries = self._arrays
        core = _what_if()
        with core.call() as call:
            given = [call.integers(a) for a in entries]
            at_tops, many = call.integers(tops), len(entries[0])
            return int(core.run.most_kept(core.m, at_tops, len(tops), *given, many, allowance))


def _order(values: Array) -> Array:
    """The order of values.  numpy sorts several times as fast as it finds an order, so where value
    and place fit into one integer, these are sorted."""
    if not len(values):
        return values
    low = int(values.min())
    bits = len(values).bit_length()
    if (int(values.max()) - low).bit_length() + bits > 62:
        return np.argsort(values, kind="stable")
    packed = np.sort((values - low << bits) | np.arange(len(values)))
    order: Array = packed & ((1 << bits) - 1)
    return order


class _BySessions(Judged):
    """Rows of sessions that are a fixed gap apart."""

    def __init__(self, came: Arrivals, gap: int) -> None:
        self._came, self._gap = came, gap
        self._codes, self._many = came.keys()

    def at(self, allowance: int) -> tuple[int, int, int]:
        late, opened = self._pass(allowance)
        return int(late.sum()), 0, int(np.cumsum(opened).max(initial=0))

    def rows(self, allowance: int) -> tuple[Array, Array]:
        late = np.flatnonzero(self._pass(allowance)[0])
        return late, late

    def _pass(self, allowance: int) -> tuple[Array, Array]:
        """Which rows are late, and how many sessions each opens."""
        came, many = self._came, len(self._codes)
        if not many:
            return came.times, came.times
        core = _what_if()
        with core.call() as call:
            given = [call.integers(a) for a in (came.times, self._codes, came.tops)]
            lists = [call.integers(np.full(self._many, a)) for a in (NONE, NONE, _NEVER)]
            links = [call.space(many)[1] for _ in range(4)]
            late, opened = (np.zeros(many, dtype=np.int64) for _ in range(2))
            out = [call.integers(a) for a in (late, opened)]
            core.run.late_sessions(
                core.m, *given, many, self._many, self._gap, allowance, *lists, *links, *out
            )
        return late, opened


@cache
def _what_if() -> BufferCore | ObjectCore:
    return make_core(WHAT_IF, count.of("int64"), 1)
