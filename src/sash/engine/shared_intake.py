"""The intake of a shared stream: it reads a batch once for all members, and refuses an unfit batch
before any member has inserted it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..query.names import check_column
from ..query.plan import make_plan
from ..query.query import Query
from ..tables.arrow import as_arrow, filtered
from ..tables.intake import given_table, lacks_types
from .failures import for_query

__all__ = ["check_fits", "read_once"]


def read_once(batch: Any) -> Any:
    """Read a batch so that several streams can read it again."""
    if hasattr(batch, "__arrow_c_stream__") or hasattr(type(batch), "columns"):
        return as_arrow(batch)
    if isinstance(batch, Iterable) and not isinstance(batch, Mapping | str | bytes):
        return list(batch)
    return batch


def check_fits(
    queries: Mapping[str, Query], new: Collection[str], given: Any, schema: pa.Schema | None
) -> None:
    """Refuse a batch that a query would refuse.  The queries in `new` do not know the types of
    their columns yet; for other queries, an event that does not fit is late, and its batch is not
    refused."""
    for name, query in queries.items():
        table = given
        if not isinstance(given, pa.Table):
            if name not in new:
                continue
            table, _ = given_table(given, query, schema, {})
        if name in new and not len(table.schema):
            continue
        for column in query.columns:
            check_column(column, table.column_names, reader=f"query {name!r}", what="the batch")
        if name in new and not lacks_types(table, query):
            with for_query(name):
                make_plan(query, table.schema)
                if query.where is not None:
                    filtered(table.schema.empty_table(), query.where)
