"""Which of a key's events a driven window keeps, and which events fire, step by step.

A step has the events of some keys that settle now, in order, and before them the events that each
key keeps.  So a measure looks at few events, with the same result as over all of them:

    a key's events     . . . . . . x x x x | y y y
                                   kept    | new

The events before the first kept one have left the window, and do not come back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, Column, Table
from ..tables.arrow import flat
from ..tables.rows import Ordered
from ..windows.contract import Change, Count, Fires, Keeps, Mark, Rule, Span
from .lanes import objects
from .measures import (
    held_in_time,
    marks_in,
    policy_columns,
    since_changed,
    since_ruled,
    values_of,
    without_gaps,
)
from .ragged import ragged

__all__ = ["Firing", "Keeping", "Settled", "firing", "keeping", "mixed"]


@dataclass(frozen=True)
class Settled:
    """Rows of some keys in order: the bounds of each key's rows, the first new row of each key, the
    places of all new rows, and the times."""

    bounds: Array
    fresh: Array
    new: Array
    times: Array


def mixed(counts: Array, more: Array) -> tuple[Array, Array]:
    """The places of old rows and of new rows, if each key has `counts` old rows and after them
    `more` new ones."""
    ends = np.cumsum(counts + more)
    begins = ends - counts - more
    return ragged(begins, counts), ragged(begins + counts, more)


class Keeping(ABC):
    """A measure: which events are kept when an event comes."""

    @abstractmethod
    def read(self, columns: list[pa.Array]) -> list[Array]:
        """The values of events to keep besides their times, from the columns that it measures."""

    @abstractmethod
    def frames(self, rows: Settled, columns: list[Array]) -> tuple[Array, Array]:
        """For each new row, and for the row before each key's first new one, the rows that are kept
        when it has come.  The method may change the columns."""

    def edges(self, rows: Settled, first: Array, columns: list[Array], watermark: int) -> Array:
        """For each key the first row that a later event may keep."""
        some = rows.bounds[1:] > rows.bounds[:-1]
        edges = rows.bounds[1:].copy()
        edges[some] = first[edges[some] - 1]
        return edges

    def arrow(self, columns: list[Array], types: list[pa.DataType]) -> list[pa.Array]:
        """The columns for a snapshot, from those that `read` returned; `types` are the types of the
        measured columns."""
        return [pa.array(column) for column in columns]

    def restored(self, columns: list[pa.Array]) -> list[Array]:
        """The columns that `arrow` was called with, from those that it returned."""
        return [column.to_numpy(zero_copy_only=False) for column in columns]


class KeepCount(Keeping):
    """Keeps the last n events."""

    def __init__(self, count: Count) -> None:
        self._rows = count.rows

    def read(self, columns: list[pa.Array]) -> list[Array]:
        return []

    def frames(self, rows: Settled, columns: list[Array]) -> tuple[Array, Array]:
        last = np.arange(1, len(rows.times) + 1)
        begins = np.repeat(rows.bounds[:-1], np.diff(rows.bounds))
        return np.maximum(last - self._rows, begins), last


class KeepSpan(Keeping):
    """Keeps a span of time; without `older`, all earlier events."""

    def __init__(self, span: Span) -> None:
        self.span = span

    def read(self, columns: list[pa.Array]) -> list[Array]:
        return []

    def frames(self, rows: Settled, columns: list[Array]) -> tuple[Array, Array]:
        return held_in_time(self.span, rows.times, rows.bounds)

    def edges(self, rows: Settled, first: Array, columns: list[Array], watermark: int) -> Array:
        if self.span.older is None:
            return rows.bounds[1:]
        gone = np.append(0, np.cumsum(rows.times < watermark - self.span.older))
        edges: Array = rows.bounds[:-1] + gone[rows.bounds[1:]] - gone[rows.bounds[:-1]]
        return edges


class KeepMark(Keeping):
    """Keeps the events since the last mark; a column has the marks."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark

    def read(self, columns: list[pa.Array]) -> list[Array]:
        return [marks_in(self._mark, columns[0])]

    def frames(self, rows: Settled, columns: list[Array]) -> tuple[Array, Array]:
        last = np.arange(1, len(rows.times) + 1)
        since = np.maximum.accumulate(np.append(0, np.where(columns[0], last, 0)))[:-1]
        return np.maximum(since, np.repeat(rows.bounds[:-1], np.diff(rows.bounds))), last

    def edges(self, rows: Settled, first: Array, columns: list[Array], watermark: int) -> Array:
        edges = super().edges(rows, first, columns, watermark)
        some = rows.bounds[1:] > rows.bounds[:-1]
        ends = rows.bounds[1:]
        marked = np.zeros(len(ends), dtype=bool)
        marked[some] = columns[0][ends[some] - 1]
        return np.where(marked, ends, edges)


class KeepChange(Keeping):
    """Keeps the events with values close to the youngest one's: columns have the values, and
    whether the key has had a value."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def read(self, columns: list[pa.Array]) -> list[Array]:
        return list(values_of(self._change, columns[0]))

    def frames(self, rows: Settled, columns: list[Array]) -> tuple[Array, Array]:
        columns[:] = without_gaps(columns[0], columns[1], rows.bounds)
        last = np.arange(1, len(rows.times) + 1)
        return since_changed(self._change, columns[0], rows.bounds, rows.fresh, more=True), last


class KeepRule(Keeping):
    """Keeps the events that a policy keeps: for each column that the policy reads, there are the
    data and their validity."""

    def __init__(self, rule: Rule, empty: list[pa.Array]) -> None:
        self._rule = rule
        self._operator, table = policy_columns(rule, empty)
        self._types = table.types

    def read(self, columns: list[pa.Array]) -> list[Array]:
        made: list[Array] = []
        for column in policy_columns(self._rule, columns)[1].columns:
            data = objects(column.data) if column.type == "object" else column.data
            there = np.ones(len(data), np.uint8) if column.valid is None else column.valid
            made += [data, there]
        return made

    def check(self, columns: list[pa.Array]) -> None:
        """Evaluate the policy for each row alone, so that it raises its error for a bad row."""
        count = len(columns[0])
        table = policy_columns(self._rule, columns)[1]
        since_ruled(self._operator, table, np.arange(count + 1), np.arange(count))

    def frames(self, rows: Settled, columns: list[Array]) -> tuple[Array, Array]:
        made = []
        for kind, data, there in zip(self._types, columns[::2], columns[1::2], strict=True):
            held = data.tolist() if kind == "object" else data
            made.append(Column(kind, held, None if kind == "object" or there.all() else there))
        table = Table(tuple(made), "arrow", len(rows.times))
        first = since_ruled(self._operator, table, rows.bounds, rows.fresh)
        return first, np.arange(1, len(rows.times) + 1)

    def arrow(self, columns: list[Array], types: list[pa.DataType]) -> list[pa.Array]:
        made = []
        for i, column in enumerate(columns):
            of_objects = column.dtype == object
            made.append(
                pa.array(column.tolist(), types[i // 2]) if of_objects else pa.array(column)
            )
        return made

    def restored(self, columns: list[pa.Array]) -> list[Array]:
        kinds = [kind for kind in self._types for _ in range(2)]
        return [
            objects(column.to_pylist())
            if kind == "object" and i % 2 == 0
            else column.to_numpy(zero_copy_only=False)
            for i, (kind, column) in enumerate(zip(kinds, columns, strict=True))
        ]


def keeping(keeps: Keeps, columns: list[pa.Array]) -> Keeping:
    """The `Keeping` of a measure; the columns that it reads may be empty."""
    made: Keeping
    if isinstance(keeps, Span):
        made = KeepSpan(keeps)
    elif isinstance(keeps, Count):
        made = KeepCount(keeps)
    elif isinstance(keeps, Mark):
        made = KeepMark(keeps)
    elif isinstance(keeps, Change):
        made = KeepChange(keeps)
    else:
        made = KeepRule(keeps, columns)
    return made


class Firing(ABC):
    """A measure: which events fire.  Columns with a value for each key hold all that it must know
    of the key's earlier events."""

    #: The values of a new key.
    fresh: Sequence[Array] = ()

    @abstractmethod
    def fired(self, rows: Ordered, seen: Array, known: list[Array]) -> tuple[Array, list[Array]]:
        """Which rows fire, and the columns of the keys after these rows.  `seen` is the number of
        events that each key had before, `known` are the columns of the keys before these rows."""

    def neutral(self, seen: Array) -> Array:
        """True for keys that fire as if they had never had an event, by the number of events that
        they had."""
        return np.ones(len(seen), dtype=bool)


class FireCount(Firing):
    """Every n-th event fires."""

    def __init__(self, count: Count) -> None:
        self._rows = count.rows

    def fired(self, rows: Ordered, seen: Array, known: list[Array]) -> tuple[Array, list[Array]]:
        many = np.repeat(seen, np.diff(rows.bounds)) + np.arange(1, len(rows) + 1) - rows.begins
        return many % self._rows == 0, known

    def neutral(self, seen: Array) -> Array:
        found: Array = seen % self._rows == 0
        return found


class FireMark(Firing):
    """Every mark fires."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark

    def fired(self, rows: Ordered, seen: Array, known: list[Array]) -> tuple[Array, list[Array]]:
        return marks_in(self._mark, rows.column(self._mark.column)), known


class FireChange(Firing):
    """An event fires when the value has changed enough: columns have the value of the key's event
    that fired last, or of its first event, and whether there is one."""

    def __init__(self, change: Change, empty: pa.Array) -> None:
        self._change = change
        values, _there = values_of(change, empty)
        self.fresh = [np.zeros(1, values.dtype), np.zeros(1, bool)]

    def fired(self, rows: Ordered, seen: Array, known: list[Array]) -> tuple[Array, list[Array]]:
        given = values_of(self._change, rows.column(self._change.column))
        before, more = (seen > 0).astype(np.int64), np.diff(rows.bounds)
        at, at_new = mixed(before, more)
        both = [np.empty(len(at) + len(at_new), column.dtype) for column in given]
        for whole, old, new in zip(both, known, given, strict=True):
            whole[at], whole[at_new] = old[seen > 0], new
        bounds = np.append(0, np.cumsum(before + more))
        values, there = without_gaps(both[0], both[1], bounds)
        since = since_changed(self._change, values, bounds, bounds[:-1], more=False)
        begins = np.repeat(bounds[:-1], np.diff(bounds))
        every = np.arange(len(values))
        fires = (since == every) & (begins != every)
        last = since[bounds[1:] - 1]  # each key has a row
        return fires[at_new], [values[last], there[last]]

    def neutral(self, seen: Array) -> Array:
        return np.zeros(len(seen), dtype=bool)


def firing(fires: Fires, table: pa.Table) -> Firing:
    """The `Firing` of a measure; `table` has the columns that it reads, and may be empty."""
    if isinstance(fires, Count):
        return FireCount(fires)
    column = flat(table.column(fires.column))
    if isinstance(fires, Mark):
        marks_in(fires, column)
        return FireMark(fires)
    return FireChange(fires, column)
