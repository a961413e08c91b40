"""Streams whose events wait for the watermark.  When the watermark has passed an event's time, no
more events can come before it; then the stream puts the event in order, and inserts it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.types import value_type
from ..state.keyed import Keyed
from ..state.part_index import NEVER
from ..tables.arrow import filtered, one_array, times_of
from ..tables.intake import conform, given_table, with_names
from ..windows import Driven
from .event_stream import EventStream
from .results import untyped
from .supported import Asked, check
from .waiting import Waiting

__all__ = ["KeepingStream", "WaitingStream"]


class WaitingStream(EventStream):
    """A stream whose events wait until the watermark has passed their times."""

    _waiting: Waiting

    def _keyed_events(
        self, events: pa.Table, arrived: Array, more: dict[str, pa.Array], *, due: bool
    ) -> Keyed:
        """The table of waiting events, with how many arrived before each, and further columns, as
        a store keeps it.  If `due`, a step must visit each event when the watermark has passed
        it."""
        # events may have columns of any name, so the table names these columns by number
        made = {str(i): column for i, column in enumerate(events.columns)}
        when = times_of(one_array(events.column(self._query.time)))[0]
        keys = [one_array(events.column(name)) for name in self._query.by]
        ones = np.ones(len(when), dtype=np.int64)
        at = when + 1 if due else np.full(len(when), NEVER)
        made["arrived"] = pa.array(arrived, pa.int64())
        return Keyed(pa.table(made | more), keys, at, when + 1, ones)

    def _hold_events(self, table: pa.Table) -> None:
        """Replace the waiting events by those of a table laid out as in `_keyed_events`."""
        events = pa.table(table.columns[: len(self._schema)], schema=self._schema)
        arrived = one_array(table.column("arrived")).to_numpy()
        self._waiting.restore(events, arrived, self._progress.rows)


class KeepingStream(WaitingStream):
    """A stream whose events wait with all their columns, and whose results have all these columns
    too.  In a column that the query does not read, values of another type become null."""

    @abstractmethod
    def _make_states(self, plan: Plan) -> None:
        """Make the state."""

    def _set_up(self, schema: pa.Schema) -> None:
        """Bind the query to the types of its columns, and make the state; keep all columns."""
        query = self._query
        plan = self._planned(schema)
        read = {f.name for f in schema if f.name in plan.schema.names or self._asks(schema, f.name)}
        fields = []
        for field in schema:
            kind = value_type(field.type)
            if pa.types.is_null(kind) and field.name in read:
                raise untyped(field.name)
            # a column of nulls that the query does not read becomes text
            fields.append(field.with_type(pa.string() if pa.types.is_null(kind) else kind))
        check(self._place, Asked(query, plan, self._mode, self._early))
        self._only_time = None
        self._schema = with_names(pa.schema(fields), schema.names)
        self._read = with_names(pa.schema([f for f in fields if f.name in read]), schema.names)
        self._make_states(plan)
        self._waiting = Waiting(self._schema, query.time)
        self._begin(plan)

    def _asks(self, schema: pa.Schema, name: str) -> bool:
        """True if `where` reads a column."""
        if self._query.where is None:
            return False
        try:
            filtered(schema.remove(schema.get_field_index(name)).empty_table(), self._query.where)
        except Exception:
            return True
        return False

    def _ends(self, times: Array) -> tuple[Array, Array]:
        assert isinstance(self._query.window, Driven)
        start, end = self._query.window.spans(times)
        return end if start is None else start, end

    def _tabled(self, batch: Any) -> tuple[pa.Table, dict[int, str]]:
        """A batch as a table, and reasons by row for those that cannot be used.  Values that do not
        fit make a row unusable only in columns that the query reads; elsewhere they are null."""
        if isinstance(batch, Iterator) and not hasattr(batch, "__arrow_c_stream__"):
            batch = list(batch)
        table, reasons = super()._tabled(batch)
        if reasons and self._plan:
            _, reasons = given_table(batch, self._query, self._read, self._optional)
        return table, reasons

    def _conformed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """All columns cast to their types, and reasons for rows that do not fit in a column that
        the query reads.  Other columns are null where they do not fit, or are missing."""
        given, misfits = conform(table, self._read, None)
        columns = []
        for field in self._schema:
            column = pa.nulls(table.num_rows, field.type)
            if field.name in self._read.names:
                column = given.column(field.name)
            elif field.name in table.column_names:
                # a column of another kind becomes all nulls
                with suppress(TypeError):
                    column = conform(table, pa.schema([field]), None)[0].column(0)
            columns.append(column)
        return pa.table(columns, names=self._schema.names), misfits
