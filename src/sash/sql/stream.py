"""A statement over a stream that is fed batch by batch: `Statement.stream`.

batch → before: expressions, WHERE → Stream of the query → after: SELECT list, HAVING → rows
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..engine import oracle
from ..engine.stream import Stream
from ..engine.supported import Asked
from ..query.aggregates import first
from ..query.query import Query
from ..query.signatures import Mode
from ..tables.arrow import as_given, kind_of, plain_type
from ..tables.intake import Prepared, given_table, with_names
from ..windows import tumbling
from .nodes import Column
from .planned import Planned
from .tabled import columns_read, prepared, projected
from .tying import check_place, tie

if TYPE_CHECKING:
    from .statement import Statement

__all__ = ["SqlStream"]

_LENGTH = struct.Struct("<q")


class SqlStream:
    """A statement over a stream; made by `Statement.stream`.

    It has what `sash.Stream` has.  `push` takes a batch and returns the rows that are then due: the
    columns of the SELECT list, then `revision` in live mode, and `deleted` where rows can be
    withdrawn.  In live mode a revision that HAVING rejects is marked deleted.  `late` has rows that
    missed windows or could not be used, also because an expression failed, with the reason.

    >>> import sash
    >>> s = sash.sql("SELECT max(x) AS m FROM t GROUP BY window(ts, '5 microseconds')")
    >>> stream = s.stream()
    >>> stream.push([{"ts": 1, "x": 3}, {"ts": 6, "x": 4}]).to_pylist()
    [{'m': 3}]
    """

    def __init__(
        self,
        planned: Planned,
        zone: str | None,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
        keep_late: int | None = None,
    ) -> None:
        self._planned, self._zone, self._mode = planned, zone, mode
        self._known: pa.Schema | None = None
        self._early = bool(early)
        made: pa.Schema | None = None
        if schema is not None:
            if not isinstance(schema, pa.Schema):
                raise TypeError(f"schema is a pyarrow.Schema, not {schema!r}")
            schema = pa.schema([f.with_type(plain_type(f.type)) for f in schema])
            made = self._learn(schema)
        else:
            asked = Asked(planned.query, mode=mode, early=self._early)
            check_place(planned, asked, "Query.stream")
        self._stream = planned.query.stream(
            lateness=lateness, mode=mode, early=early, schema=made, keep_late=keep_late
        )

    def push(self, batch: Any) -> Any:
        """Insert a batch (a table of any kind, an event that is a dict, or several), and return the
        rows that are then due, as the same kind of table."""
        kind = kind_of(batch)
        if kind == "builtins" and self._takes_events():
            return self._emitted(self._stream.push(batch), kind)
        table, reasons = given_table(batch, self._reading(), self._known, {})
        if self._known is None and not len(table.schema):
            return self._emitted(self._stream.push(batch), kind)
        if self._known is None:
            self._learn(table.schema)
        ready, failed = self._prepared(table)
        return self._emitted(self._stream.push(Prepared(ready, failed | reasons)), kind)

    def _takes_events(self) -> bool:
        """True if the query's stream can take events as they are: it has learnt the types of their
        columns, which have the names that the query uses, and none is to be computed or dropped."""
        planned = self._planned
        if self._known is None or planned.before or (planned.driven and not planned.stars):
            return False
        return bool(list(planned.read) == self._known.names)

    def advance(self, watermark: Any) -> Any:
        """Close all windows that end by a time, as `Stream.advance`."""
        return self._emitted(self._stream.advance(watermark), "")

    def close(self) -> Any:
        """Close all windows and return what is left, as `Stream.close`."""
        return self._emitted(self._stream.close(), "")

    @property
    def late(self) -> pa.Table:
        """Rows that missed windows or could not be used, as `Stream.late`."""
        return self._shown(self._stream.late)

    def take_late(self) -> pa.Table:
        """The rows in `late`, which is empty afterwards."""
        return self._shown(self._stream.take_late())

    @property
    def late_dropped(self) -> int:
        """How many late rows were dropped unread."""
        return self._stream.late_dropped

    @property
    def counts(self) -> dict[str, int]:
        """Rows so far, as `Stream.counts`."""
        return self._stream.counts

    @property
    def delays(self) -> list[int]:
        """How late rows came, as `Stream.delays`."""
        return self._stream.delays

    @property
    def time(self) -> int | None:
        """Stream time, in microseconds."""
        return self._stream.time

    @property
    def watermark(self) -> int | None:
        """Windows that end by this time, in microseconds, are closed."""
        return self._stream.watermark

    def state_size(self) -> dict[str, int]:
        """How much state there is, as `Stream.state_size`."""
        return self._stream.state_size()

    def to_bytes(self) -> bytes:
        """The whole stream as bytes, for `from_bytes`."""
        known = b"" if self._known is None else self._known.serialize().to_pybytes()
        return _LENGTH.pack(len(known)) + known + self._stream.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, statement: Statement, trust: Sequence[str] = ()) -> SqlStream:
        """The stream again, from the bytes of `to_bytes` and the same statement."""
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size
        made = object.__new__(cls)
        made._planned, made._zone = statement._planned, statement._zone
        made._known = None
        if length:
            made._known = pa.ipc.read_schema(pa.py_buffer(data[start : start + length]))
        kind = oracle.OracleStream if oracle.asked_for() else Stream
        query = statement.query
        made._stream = kind._for(query).from_bytes(data[start + length :], query, trust)
        made._mode, made._early = made._stream._mode, made._stream._early
        return made

    def _reading(self) -> Query:
        """A query that reads the columns which the statement reads, by the names that events have
        for them, for taking in events."""
        read = list(self._planned.read)
        names = read if self._known is None else self._known.names
        plain = isinstance(self._planned.timed, Column)
        time = names[read.index(self._planned.query.time) if plain else 0]
        select = {f"column {i}": first(name) for i, name in enumerate(names)}
        return Query(time=time, window=tumbling(1), select=select)

    def _learn(self, schema: pa.Schema) -> pa.Schema:
        """Take the names and types of the columns from the first batch, and tie the statement to
        them; the columns that the query reads then."""
        at = columns_read(self._planned, schema.names)
        fields = [schema.field(i) for i in at.values()]
        tied = tie(self._planned, schema, self._zone, "Query.stream", self._mode, early=self._early)
        self._known = with_names(pa.schema(fields), schema.names)
        return tied.columns

    def _prepared(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        planned = self._planned
        ready, noted = prepared(planned, table, self._zone, whole=not planned.driven)
        text = planned.source.text
        return ready, {
            n.row: f"{' '.join(text[n.at[0] : n.at[1]].split())}: {n.why}" for n in reversed(noted)
        }

    def _emitted(self, found: pa.Table, kind: str) -> Any:
        if not found.num_columns:
            return as_given(found, kind)
        live = self._mode == "live"
        made, noted = projected(self._planned, found, self._zone, live=live)
        for left_out in (False, True):
            some = [n for n in noted if n.left_out == left_out]
            if some:
                what = (
                    "have no value for HAVING, and are left out"
                    if left_out
                    else "have no value for some expressions, and null instead"
                )
                reasons = ", ".join(sorted({n.why for n in some}))
                warnings.warn(
                    f"{len({n.row for n in some})} row(s) {what}: {reasons}",
                    RuntimeWarning,
                    stacklevel=3,
                )
        self._kind = kind or getattr(self, "_kind", "")
        return as_given(made, self._kind)

    def _shown(self, late: pa.Table) -> pa.Table:
        """Late rows without the columns that were computed."""
        computed = [n for n in self._planned.before if n in late.column_names]
        return late.drop_columns(computed) if computed else late
