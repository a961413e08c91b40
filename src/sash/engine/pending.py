"""Noted events, which wait for a batch to enter the state with.

    events one by one ─→ noted ─→ … ─→ noted ─→ one batch through the lifecycle

A batch has a fixed cost, however few events are in it.  An event that is in no closed or emitted
window, and makes no window due, changes nothing that is emitted.  So the stream only notes such an
event, and passes all noted events through the lifecycle together before it emits, answers or saves
anything.  Times from `low` on are in no closed or emitted window; times before `high` make no
window due.  The stream notes only events that are certain to be in some window: events whose
values fit its own types, for operators that refuse none.

Times are noted in microseconds.  Nanoseconds order the rows of one batch only.  So the stream
notes events without them if they are in that order, and inserts other events at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
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
from .event_values import FIT, PLAIN, RANGES, fits, odd_reader, plain_reader
from .late import ADDED

__all__ = ["MOST", "Noted", "Pending"]

#: At so many noted events, the stream inserts them.
MOST = 1 << 15
#: A larger table is inserted at once: its rows cost more than the fixed cost of a batch.
_LARGE = 1 << 12
_FAR = 2**62
#: A stream remembers so many combinations of types of values that fit.
_SOUND = 64
#: Microseconds in a tick of a column of times; a tick of nanoseconds is shorter.
_TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_TAKEN = frozenset(ADDED)  # names that events cannot have
_Row: TypeAlias = tuple[Any, ...]


class Noted:
    """Events that can be noted, with their oldest and newest time: a table, or rows with a list of
    their times."""

    __slots__ = ("count", "newest", "oldest", "part", "times")

    def __init__(
        self, part: list[_Row] | pa.Table, times: list[int], oldest: int, newest: int
    ) -> None:
        self.part, self.times, self.oldest, self.newest = part, times, oldest, newest
        self.count = len(part)


class Pending:
    """The noted events of a stream."""

    def __init__(
        self, schema: pa.Schema, time: str, limits: tuple[int, int], *, only_time: bool
    ) -> None:
        self._limits = limits  # the stream cannot use times beyond them
        self._time = schema.names.index(time)
        kind = self._given = schema.field(time).type
        self._floors = only_time  # no one reads the times but the stream
        self._tick = 1
        if pa.types.is_timestamp(kind):
            if only_time:
                kind = pa.timestamp("us", kind.tz)
                schema = schema.set(self._time, schema.field(time).with_type(kind))
            else:
                self._tick = _TICKS[kind.unit]
                if kind.unit == "ns":
                    most = 2**63 // 1000 - 1
                    self._limits = (max(limits[0], -most), min(limits[1], most))
        self._schema = schema
        self._at, self._odd = plain_reader(kind), odd_reader(kind)
        plain = datetime if pa.types.is_timestamp(kind) else int
        self._types = tuple(plain if f.name == time else PLAIN[f.type] for f in schema)
        self._whole = [(i, *RANGES[f.type]) for i, f in enumerate(schema) if f.type in RANGES]
        self._text = [i for i, kind in enumerate(self._types) if kind is str]
        stamped = [pa.types.is_timestamp(f.type) for f in schema]
        readers = ((i, plain_reader(f.type)) for i, f in enumerate(schema) if stamped[i])
        self._stamps = [(i, reader) for i, reader in readers if i != self._time]
        own = self._time if stamped[self._time] else None
        self._kinds = [f.type if i != own else None for i, f in enumerate(schema)]
        self._sound = {self._types}
        names = schema.names
        self._pick: Callable[[Any], _Row]
        self._pick = itemgetter(*names) if len(names) > 1 else lambda event: (event[names[0]],)
        self._empty = [pa.array([], field.type) for field in schema]
        self.note_nothing()
        self.clear()

    @classmethod
    def of(cls, plan: Plan, schema: pa.Schema, *, only_time: bool) -> Pending | None:
        """Make room for the noted events of a plan; None if it never notes events.  `only_time` is
        true if no aggregate reads the column of times."""
        query = plan.query
        time = schema.field(query.time).type
        if query.where is not None or not (pa.types.is_timestamp(time) or time in RANGES):
            return None
        if not all(f.type in PLAIN for f in schema if f.name != query.time):
            return None
        if not all(_refuses_none(group.operator) for group in plan.groups):
            return None
        return cls(schema, query.time, query.window.clock.limits, only_time=only_time)

    def note_nothing(self) -> None:
        """Note no event until `low` and `high` are set again."""
        self.low, self.high = _FAR, _FAR

    def clear(self) -> None:
        """Drop all noted events."""
        self._parts: list[tuple[list[_Row], list[int]] | pa.Table] = []
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
        types, whole, text, at, tick = self._types, self._whole, self._text, self._time, self._tick
        stamps = self._stamps
        plain, finer = types[at], False
        times = []
        exact: list[int] = []
        for row in rows:
            kinds = tuple(map(type, row))
            if kinds != types and kinds not in self._sound and not self._fits(row, kinds):
                return None
            for i, least, greatest in whole:
                value = row[i]
                if value is not None and not least <= value <= greatest:
                    return None
            for i in text:
                value = row[i]
                if value is not None and not value.isascii() and not _is_text(value):
                    return None
            for i, reader in stamps:
                if row[i] is not None and reader(row[i]) is None:
                    return None
            if kinds[at] is plain:
                when = self._at(row[at])
            else:
                nanos = self._odd(row[at])
                if nanos is None:
                    return None
                when, rest = divmod(nanos, 1000)
                finer = finer or rest > 0
                exact.append(nanos)
            if when is None or (tick != 1 and when % tick):
                return None
            times.append(when)
        if finer and not (self._floors and len(exact) == len(rows) and _in_time(exact)):
            return None
        return Noted(rows, times, min(times), max(times))

    def _fits(self, row: _Row, kinds: tuple[type, ...]) -> bool:
        """True if each value is null or fits its column, and the time is not null.  Nothing is said
        about a timestamp."""
        if row[self._time] is None:
            return False
        given = list(zip(row, kinds, self._kinds, strict=True))
        if all(x is None or to is None or kind in FIT[to] for x, kind, to in given):
            if len(self._sound) < _SOUND:
                self._sound.add(kinds)
            return True
        return all(x is None or to is None or fits(to, x) for x, _, to in given)

    def _table(self, table: pa.Table) -> Noted | None:
        if not _TAKEN.isdisjoint(table.column_names):
            return None
        columns: list[pa.Array] = []
        for field, none in zip(self._schema, self._empty, strict=True):
            if table.column_names.count(field.name) != 1:
                return None
            column = table.column(field.name)
            if column.type != (none.type if len(columns) != self._time else self._given):
                return None
            # a copy, because the caller may change its own memory
            copied = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
            if PLAIN.get(field.type) is str and not is_utf8(copied):
                return None
            columns.append(copied)
        given = columns[self._time]
        times, beyond = times_of(given)
        if beyond.any() or not (
            _in_micros(given) or (self._floors and _in_time(_ticks(given).tolist()))
        ):
            return None
        if self._floors and pa.types.is_timestamp(given.type):
            columns[self._time] = self._column(times, self._time)
        made = pa.Table.from_arrays(columns, schema=self._schema)
        return Noted(made, [], int(times.min()), int(times.max()))

    def add(self, noted: Noted) -> None:
        """Note events."""
        self._came.append((noted.count, self.newest))
        self.newest = max(self.newest, noted.newest)
        self.count += noted.count
        part, parts = noted.part, self._parts
        if not isinstance(part, list):
            parts.append(part)
        elif parts and isinstance(parts[-1], tuple):
            rows, times = parts[-1]
            rows.extend(part)
            times.extend(noted.times)
        else:
            parts.append((part, noted.times))

    def table(self, last: Noted | None = None) -> pa.Table:
        """All noted events, and more events behind them, as one batch."""
        tables = [self._columns(*p) if isinstance(p, tuple) else p for p in self._parts]
        if last is not None:
            tables.append(self.whole(last))
        return pa.concat_tables(tables).combine_chunks()

    def came(self, stream_time: int | None, last: Noted | None = None) -> Array:
        """The stream time at which each event came, from the stream time before all of them."""
        pushes = [*self._came, *([] if last is None else [(last.count, self.newest)])]
        counts, newest = np.array(pushes, dtype=np.int64).reshape(-1, 2).T
        before = newest if stream_time is None else np.maximum(newest, stream_time)
        return np.repeat(before, counts)

    def whole(self, noted: Noted) -> pa.Table:
        """Events as a table with the columns of the schema."""
        rows = noted.part
        return self._columns(rows, noted.times) if isinstance(rows, list) else rows

    def _columns(self, rows: Sequence[_Row], times: list[int]) -> pa.Table:
        columns = enumerate(zip(zip(*rows, strict=True), self._schema, strict=True))
        made = [
            self._column(times, i) if i == self._time else pa.array(values, field.type)
            for i, (values, field) in columns
        ]
        return pa.Table.from_arrays(made, schema=self._schema)

    def _column(self, times: Any, number: int) -> pa.Array:
        """The column of times, from microseconds."""
        kind = self._schema.field(number).type
        if not pa.types.is_timestamp(kind):
            return pa.array(times, kind)
        return pa.array(times, pa.int64()).view(pa.timestamp("us", kind.tz)).cast(kind)


def _in_micros(times: pa.Array) -> bool:
    """True if no time is between two microseconds."""
    if not pa.types.is_timestamp(times.type) or times.type.unit != "ns":
        return True
    return not (_ticks(times) % 1000).any()


def _ticks(times: pa.Array) -> Array:
    return times.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def _in_time(nanos: list[int]) -> bool:
    """True if the times of each microsecond are in order."""
    ordered = sorted(nanos)
    return ordered == nanos or sorted(nanos, key=lambda n: n // 1000) == ordered


def _is_event(event: Any) -> bool:
    return type(event) is dict and _TAKEN.isdisjoint(event)


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
