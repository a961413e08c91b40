"""Noted events, which wait for a batch to enter the state with.

    events one by one ─→ noted ─→ … ─→ noted ─→ one batch through the lifecycle

A batch has a fixed cost, however few events are in it.  An event that is in no closed or emitted
window, and makes no window due, changes nothing that is emitted.  So the stream only notes such an
event, and passes all noted events through the lifecycle together before it emits, answers or saves
anything.  Times from `low` on are in no closed or emitted window; times before `high` make no
window due.  The stream notes only events that are certain to be in some window: events of its own
types, for operators that refuse none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..operators.contract import Operator
from ..query.plan import Plan
from ..query.types import value_type
from ..tables.arrow import times_of
from ..tables.intake import is_utf8
from ..windows.contract import LATEST
from .late import ADDED

__all__ = ["MOST", "Noted", "Pending"]

#: At so many noted events, the stream inserts them.
MOST = 1 << 15
#: A larger table is inserted at once: its rows cost more than the fixed cost of a batch.
_LARGE = 1 << 12
_FAR = 2**62
_MINUTE = timedelta(minutes=1)
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_TYPES = {
    pa.int64(): int,
    pa.float64(): float,
    pa.string(): str,
    pa.large_string(): str,
    pa.bool_(): bool,
}
_TAKEN = frozenset(ADDED)  # names that events cannot have
_Row: TypeAlias = tuple[Any, ...]


class Noted:
    """Events that can be noted, as rows or as a table, with their oldest and newest time."""

    __slots__ = ("count", "newest", "oldest", "part")

    def __init__(self, part: list[_Row] | pa.Table, oldest: int, newest: int) -> None:
        self.part, self.oldest, self.newest, self.count = part, oldest, newest, len(part)


class Pending:
    """The noted events of a stream."""

    def __init__(self, schema: pa.Schema, time: str, limits: tuple[int, int]) -> None:
        self._limits = limits  # the stream cannot use times beyond them
        self._schema, self._time = schema, schema.names.index(time)
        self._at = _reader(schema.field(time).type)
        self._types = tuple(
            (int if pa.types.is_integer(f.type) else datetime) if f.name == time else _TYPES[f.type]
            for f in schema
        )
        self._whole = [i for i, kind in enumerate(self._types) if kind is int]
        self._text = [i for i, kind in enumerate(self._types) if kind is str]
        names = schema.names
        self._pick: Callable[[Any], _Row]
        self._pick = itemgetter(*names) if len(names) > 1 else lambda event: (event[names[0]],)
        self._empty = [pa.array([], field.type) for field in schema]
        self.note_nothing()
        self.clear()

    @classmethod
    def of(cls, plan: Plan, schema: pa.Schema) -> Pending | None:
        """Make room for the noted events of a plan; None if it never notes events."""
        query = plan.query
        time = schema.field(query.time).type
        # nanoseconds order rows within a batch only, so joining pushes would change their order
        fixed = pa.types.is_int64(time) or (pa.types.is_timestamp(time) and time.unit == "us")
        if not fixed or query.where is not None:
            return None
        if not all(f.type in _TYPES for f in schema if f.name != query.time):
            return None
        if not all(_refuses_none(group.operator) for group in plan.groups):
            return None
        return cls(schema, query.time, query.window.clock.limits)

    def note_nothing(self) -> None:
        """Note no event until `low` and `high` are set again."""
        self.low, self.high = _FAR, _FAR

    def clear(self) -> None:
        """Drop all noted events."""
        self._parts: list[list[_Row] | pa.Table] = []
        self._came: list[tuple[int, int]] = []  # rows of a push, newest time before it
        self.count = 0
        self.newest = -_FAR

    def read(self, batch: Any) -> Noted | None:
        """Read the events of a batch; None if they cannot be noted."""
        noted, (low, high) = self._read(batch), self._limits
        return noted if noted is not None and low < noted.oldest <= noted.newest < high else None

    def _read(self, batch: Any) -> Noted | None:
        kind = type(batch)
        try:
            if kind is dict:
                return self._rows([self._pick(batch)]) if _TAKEN.isdisjoint(batch) else None
            if kind is list and 0 < len(batch) <= MOST and all(map(_is_event, batch)):
                return self._rows(list(map(self._pick, batch)))
        except KeyError:
            return None
        if kind is pa.Table and 0 < len(batch) <= _LARGE:
            return self._table(batch)
        return None

    def _rows(self, rows: list[_Row]) -> Noted | None:
        types, whole, text, at = self._types, self._whole, self._text, self._time
        times = []
        for row in rows:
            if tuple(map(type, row)) != types and not self._fits(row):
                return None
            for i in whole:
                value = row[i]
                if value is not None and not _LEAST <= value <= _GREATEST:
                    return None
            for i in text:
                value = row[i]
                if value is not None and not value.isascii() and not _is_text(value):
                    return None
            when = self._at(row[at])
            if when is None:
                return None
            times.append(when)
        return Noted(rows, min(times), max(times))

    def _fits(self, row: _Row) -> bool:
        """True if each value has the type of its column or is null, and the time is not null."""
        pairs = zip(row, self._types, strict=True)
        return row[self._time] is not None and all(x is None or type(x) is t for x, t in pairs)

    def _table(self, table: pa.Table) -> Noted | None:
        if not _TAKEN.isdisjoint(table.column_names):
            return None
        columns = []
        for field, none in zip(self._schema, self._empty, strict=True):
            if table.column_names.count(field.name) != 1:
                return None
            column = table.column(field.name)
            if column.type != field.type:
                return None
            # a copy, because the caller may change its own memory
            columns.append(pa.concat_arrays([*column.chunks, none]))
            if _TYPES.get(field.type) is str and not is_utf8(columns[-1]):
                return None
        times, beyond = times_of(columns[self._time])
        if beyond.any():
            return None
        made = pa.Table.from_arrays(columns, schema=self._schema)
        return Noted(made, int(times.min()), int(times.max()))

    def add(self, noted: Noted) -> None:
        """Note events."""
        self._came.append((noted.count, self.newest))
        self.newest = max(self.newest, noted.newest)
        self.count += noted.count
        part, parts = noted.part, self._parts
        if isinstance(part, list) and parts and isinstance(parts[-1], list):
            parts[-1].extend(part)
        else:
            parts.append(part)

    def table(self, last: Noted | None = None) -> pa.Table:
        """All noted events, and more events behind them, as one batch."""
        parts = [*self._parts, *([] if last is None else [last.part])]
        tables = [self._columns(p) if isinstance(p, list) else p for p in parts]
        return pa.concat_tables(tables).combine_chunks()

    def came(self, stream_time: int | None, last: Noted | None = None) -> Array:
        """The stream time at which each event came, from the stream time before all of them."""
        pushes = [*self._came, *([] if last is None else [(last.count, self.newest)])]
        counts, newest = np.array(pushes, dtype=np.int64).reshape(-1, 2).T
        before = newest if stream_time is None else np.maximum(newest, stream_time)
        return np.repeat(before, counts)

    def whole(self, noted: Noted) -> pa.Table:
        """Events as a table with the columns of the schema."""
        return self._columns(noted.part) if isinstance(noted.part, list) else noted.part

    def _columns(self, rows: Sequence[_Row]) -> pa.Table:
        columns = zip(zip(*rows, strict=True), self._schema, strict=True)
        made = [pa.array(values, field.type) for values, field in columns]
        return pa.Table.from_arrays(made, schema=self._schema)


def _is_event(event: Any) -> bool:
    return type(event) is dict and _TAKEN.isdisjoint(event)


def _reader(kind: pa.DataType) -> Callable[[Any], int | None]:
    """The function from a time to microseconds; it returns None if the time cannot be noted."""
    if pa.types.is_integer(kind):
        return lambda time: time if -LATEST < time < LATEST else None
    epoch = datetime(1970, 1, 1, tzinfo=UTC if kind.tz else None)
    aware = kind.tz is not None

    def micros(time: datetime) -> int | None:
        offset = time.utcoffset()
        if (offset is not None) != aware or (offset and offset % _MINUTE):
            return None
        since = time - epoch
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    return micros


def _is_text(value: str) -> bool:
    """True if a string is valid text; a string with half a character (a surrogate) is not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuses_none(operator: Operator) -> bool:
    """True if an operator accepts all values of its types."""
    if operator.parts:
        return all(_refuses_none(part.operator) for part in operator.parts)
    return bool(operator.ready)


def refuses_no_row(plan: Plan) -> bool:
    """True if no row of the plan's types makes the query fail, so that none need be tried: ready
    operators over plain columns, without a condition."""
    if any(group.conditions for group in plan.groups):
        return False
    query = plan.query
    read = {name for chosen in query.select.values() for name in chosen.columns}
    # the intake has read the time of each row already
    kinds = [value_type(f.type) for f in plan.schema if f.name != query.time or f.name in read]
    return all(map(_plain, kinds)) and all(_refuses_none(g.operator) for g in plan.groups)


def _plain(kind: pa.DataType) -> bool:
    """True for types of which every value can be read and put in order.  Times in seconds or
    milliseconds may lie beyond int64 microseconds, and dates beyond those of Python."""
    t = pa.types
    if t.is_timestamp(kind):
        return kind.unit in ("us", "ns")
    tests = (t.is_signed_integer, t.is_float32, t.is_float64, t.is_boolean, t.is_string)
    return any(test(kind) for test in (*tests, t.is_large_string))
