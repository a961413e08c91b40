"""What streams have in common whose events wait for the watermark: each is put in order, and takes
part, when the watermark has passed its time, so that no more events can come before it."""

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
    """A stream whose events wait until the watermark has passed them."""

    _waiting: Waiting

    def _keyed_events(
        self, events: pa.Table, arrived: Array, more: dict[str, pa.Array], *, due: bool
    ) -> Keyed:
        """Events, how many arrived before each, and further columns; something must be done with
        each event when the watermark has passed it, if they are `due`."""
        # columns of events may have any name
        made = {str(i): column for i, column in enumerate(events.columns)}
        when = times_of(one_array(events.column(self._query.time)))[0]
        keys = [one_array(events.column(name)) for name in self._query.by]
        ones = np.ones(len(when), dtype=np.int64)
        at = when + 1 if due else np.full(len(when), NEVER)
        made["arrived"] = pa.array(arrived, pa.int64())
        return Keyed(pa.table(made | more), keys, at, when + 1, ones)

    def _hold_events(self, table: pa.Table) -> None:
        """Hold the events of such a table, in the order in which they arrived."""
        events = pa.table(table.columns[: len(self._schema)], schema=self._schema)
        arrived = one_array(table.column("arrived")).to_numpy()
        self._waiting.restore(events, arrived, self._progress.rows)


class KeepingStream(WaitingStream):
    """A stream whose events wait with all their columns, which their rows keep.  A column that the
    query does not read is null where it does not have its type."""

    @abstractmethod
    def _make_states(self, plan: Plan) -> None:
        """Make what holds the state."""

    def _set_up(self, schema: pa.Schema) -> None:
        """Tie the query to the types of its columns; all of them are kept."""
        query = self._query
        plan = self._planned(schema)
        read = {f.name for f in schema if f.name in plan.schema.names or self._asks(schema, f.name)}
        fields = []
        for field in schema:
            kind = value_type(field.type)
            if pa.types.is_null(kind) and field.name in read:
                raise untyped(field.name)
            # one that is only kept is text until more is known of it
            fields.append(field.with_type(pa.string() if pa.types.is_null(kind) else kind))
        check(self._place, Asked(query, plan, self._mode, self._early))
        self._only_time = None
        self._schema = with_names(pa.schema(fields), schema.names)
        self._read = with_names(pa.schema([f for f in fields if f.name in read]), schema.names)
        self._make_states(plan)
        self._waiting = Waiting(self._schema, query.time)
        self._plan = plan

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
        """A batch as a table, and the rows that cannot be used: what the query does not read is
        null where it does not fit."""
        if isinstance(batch, Iterator) and not hasattr(batch, "__arrow_c_stream__"):
            batch = list(batch)
        table, reasons = super()._tabled(batch)
        if reasons and self._plan:
            _, reasons = given_table(batch, self._query, self._read, self._optional)
        return table, reasons

    def _conformed(self, table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """All columns in their types, and the rows of which one that is read does not fit; others
        are null where they do not fit, or are not there."""
        given, misfits = conform(table, self._read, None)
        columns = []
        for field in self._schema:
            column = pa.nulls(table.num_rows, field.type)
            if field.name in self._read.names:
                column = given.column(field.name)
            elif field.name in table.column_names:
                # values of another kind are nulls, all of them
                with suppress(TypeError):
                    column = conform(table, pa.schema([field]), None)[0].column(0)
            columns.append(column)
        return pa.table(columns, names=self._schema.names), misfits
