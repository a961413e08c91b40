"""Prepare batches for the queries of statements on a stream: a table with the computed columns, and
the rows that the queries cannot use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..engine.supported import Place
from ..query.aggregates import first
from ..query.query import Query
from ..query.signatures import Mode
from ..tables.arrow import plain_type
from ..tables.intake import Prepared, given_table, with_names
from ..windows import tumbling
from .nodes import Column
from .planned import Planned
from .tabled import columns_read, prepared
from .tying import tie

__all__ = ["Intake"]


@dataclass
class Intake:
    """Turns pushed batches into tables for the queries of some statements.  If there are several
    statements, all are aligned to the clock, and compute the same columns under the same
    condition."""

    statements: Sequence[tuple[Planned, str | None]]  # with the time zone of each
    mode: Mode
    early: bool
    known: pa.Schema | None = None  # the columns that the queries read, after the first batch
    place: Place = "Query.stream"

    def taken(self, batch: Any) -> Prepared | list[Any]:
        """The batch as a table for the queries; no events if the first batches have no rows, and no
        columns or types."""
        table, reasons = given_table(batch, self._reading(), self.known, {})
        if self.known is None:
            if not len(table.schema) or self._untyped(table):
                return []
            self.learn(table.schema)
        ready, failed = self.computed(table)
        return Prepared(ready, failed | reasons)

    def _untyped(self, table: pa.Table) -> bool:
        """True if a batch has no rows, and a column that the statements read has no type, or the
        times have the type that pandas gives columns without rows."""
        if table.num_rows:
            return False
        read: set[int] = set()
        for planned, _ in self.statements:
            found = columns_read(planned, table.column_names)
            time = found.get(planned.query.time)
            if time is not None and pa.types.is_floating(table.schema.field(time).type):
                return True
            read |= set(range(table.num_columns)) if planned.stars else set(found.values())
        return any(pa.types.is_null(table.schema.field(i).type) for i in read)

    def learn(self, schema: pa.Schema) -> pa.Schema:
        """Take the names and types of the columns from the first batch, and tie the statements to
        them; returns the columns that the queries read."""
        schema = pa.schema([f.with_type(plain_type(f.type)) for f in schema], schema.metadata)
        fields: dict[str, pa.Field] = {}
        for planned, zone in self.statements:
            found = columns_read(planned, schema.names)
            fields |= {schema.field(i).name: schema.field(i) for i in found.values()}
            tied = tie(planned, schema, zone, self.place, self.mode, early=self.early)
        self.known = with_names(pa.schema(fields.values()), schema.names)
        if len(self.statements) == 1:
            return tied.columns
        return self.computed(schema.empty_table())[0].schema

    def takes_events(self) -> bool:
        """True if the query can take events unchanged: the column types are known, the names are
        those of the query, and there is no column to compute and no row to drop."""
        ((planned, _),) = self.statements
        if self.known is None or planned.before or (planned.driven and not planned.stars):
            return False
        return bool(list(planned.read) == self.known.names)

    def _reading(self) -> Query:
        """A query that reads the statements' columns, under their names in the events, to take in
        events."""
        (planned, _), *_ = self.statements
        read = list(planned.read)
        names = read if self.known is None else self.known.names
        if self.known is None:
            for other, _ in self.statements[1:]:
                lower = {n.lower() for n in names}
                names = [*names, *(n for n in other.read if n.lower() not in lower)]
        plain = isinstance(planned.timed, Column)
        time = names[read.index(planned.query.time) if plain else 0]
        select = {f"column {i}": first(name) for i, name in enumerate(names)}
        return Query(time=time, window=tumbling(1), select=select)

    def computed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """The table with the computed columns, and the rows for which an expression fails, with the
        reason."""
        (planned, zone), *others = self.statements
        ready, noted = prepared(planned, table, zone, whole=not planned.driven)
        for other, _ in others:  # they compute the same, perhaps from columns in another spelling
            for name, i in columns_read(other, table.column_names).items():
                if name not in ready.column_names:
                    ready = ready.append_column(name, table.column(i))
        text = planned.source.text
        return ready, {
            n.row: f"{' '.join(text[n.at[0] : n.at[1]].split())}: {n.why}" for n in reversed(noted)
        }
