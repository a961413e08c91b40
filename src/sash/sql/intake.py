"""What comes before the queries of statements on a stream: a batch as a table, with the columns
that are computed, and the rows that cannot be used."""

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
    """Makes what is pushed into what the queries of some statements read.  Several statements are
    aligned to the clock, and compute the same columns under the same condition."""

    statements: Sequence[tuple[Planned, str | None]]  # with the time zone of each
    mode: Mode
    early: bool
    known: pa.Schema | None = None  # the columns that are read, once there is a batch
    place: Place = "Query.stream"

    def taken(self, batch: Any) -> Prepared | None:
        """A batch for the queries; None for one without columns before any other."""
        table, reasons = given_table(batch, self._reading(), self.known, {})
        if self.known is None:
            if not len(table.schema):
                return None
            self.learn(table.schema)
        ready, failed = self._computed(table)
        return Prepared(ready, failed | reasons)

    def learn(self, schema: pa.Schema) -> pa.Schema:
        """Take the names and types of the columns from the first batch, and tie the statements to
        them; the columns that the queries read then."""
        schema = pa.schema([f.with_type(plain_type(f.type)) for f in schema], schema.metadata)
        fields: dict[str, pa.Field] = {}
        for planned, zone in self.statements:
            found = columns_read(planned, schema.names)
            fields |= {schema.field(i).name: schema.field(i) for i in found.values()}
            tied = tie(planned, schema, zone, self.place, self.mode, early=self.early)
        self.known = with_names(pa.schema(fields.values()), schema.names)
        if len(self.statements) == 1:
            return tied.columns
        return self._computed(schema.empty_table())[0].schema

    def takes_events(self) -> bool:
        """True if a query can take events as they are: the types of their columns are known, they
        have the names that the query uses, and none is to be computed or dropped."""
        ((planned, _),) = self.statements
        if self.known is None or planned.before or (planned.driven and not planned.stars):
            return False
        return bool(list(planned.read) == self.known.names)

    def _reading(self) -> Query:
        """A query that reads the columns which the statements read, by the names that events have
        for them, for taking in events."""
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

    def _computed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """The table with the columns that are computed, and the rows that an expression has no
        value for, with the reason."""
        (planned, zone), *others = self.statements
        ready, noted = prepared(planned, table, zone, whole=not planned.driven)
        for other, _ in others:  # which compute the same, of columns spelt in another way perhaps
            for name, i in columns_read(other, table.column_names).items():
                if name not in ready.column_names:
                    ready = ready.append_column(name, table.column(i))
        text = planned.source.text
        return ready, {
            n.row: f"{' '.join(text[n.at[0] : n.at[1]].split())}: {n.why}" for n in reversed(noted)
        }
