"""The intake of a shared stream: it reads a batch once for all members, and refuses an unfit batch
before any member has inserted it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..query.names import check_column
from ..query.plan import make_plan
from ..query.query import Query
from ..tables.arrow import as_arrow, filtered
from ..tables.intake import Prepared, conform, given_table, is_columns, lacks_types
from .failures import for_query
from .late import check_names
from .stream import Stream

__all__ = ["check_fits", "read_once"]


def read_once(batch: Any) -> Any:
    """Read a batch so that several streams can read it again."""
    if hasattr(batch, "__arrow_c_stream__") or hasattr(type(batch), "columns"):
        return as_arrow(batch)
    if isinstance(batch, Iterable) and not isinstance(batch, Mapping | str | bytes):
        return list(batch)
    return batch


def check_fits(
    stream: Stream, queries: Mapping[str, Query], given: Any, schema: pa.Schema | None
) -> None:
    """Refuse a batch that a stream of these queries would refuse.  If the stream knows the types
    of its columns, an event that does not fit is late, and its batch is not refused."""
    new, read = stream._plan is None, None
    for name, query in queries.items():
        table = given
        if isinstance(given, Prepared):
            table = given.table
        elif not isinstance(given, pa.Table):
            if not new and not is_columns(given, query.time):
                continue
            table, _ = given_table(given, query, schema, {})
        if new and not len(table.schema):
            continue
        for column in query.columns:
            check_column(column, table.column_names, reader=f"query {name!r}", what="the batch")
        if new and not lacks_types(table, query):
            with for_query(name):
                make_plan(query, table.schema)
        if query.where is not None and (not new or not lacks_types(table, query)):
            with for_query(name):
                filtered(table.schema.empty_table(), query.where)
        read = table
    if read is not None:  # its columns and their types are the same for all queries
        _check_batch(stream, read)


def _check_batch(stream: Stream, table: pa.Table) -> None:
    """Refuse a table whose columns have names of late rows, or types that cannot become those of
    the batches before."""
    check_names(table.column_names, stream._late.added)
    if stream._plan is None:
        return
    known: pa.Schema = getattr(stream, "_read", stream._schema)
    there = set(table.column_names)
    other = [f for f in known if f.name in there and table.schema.field(f.name).type != f.type]
    conform(table.schema.empty_table(), pa.schema(other), stream._only_time)
