"""What is pushed into a stream, as columns of the types that its query was tied to.

One bad row must not stop a stream: a row that cannot be used is told apart, with the reason, and
the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from .tables import as_arrow

__all__ = ["bad_rows", "conform", "given_table", "in_time"]

_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError, ArithmeticError)
Reasons = dict[int, str]


def given_table(given: Any, time: str, known: pa.Schema | None) -> tuple[pa.Table, Reasons]:
    """A table, one event, or several, as Arrow; events have the known types where there are any,
    and those that do not fit are told, by row, with null for what they had."""
    if isinstance(given, Mapping):
        whole = given.get(time)
        if hasattr(whole, "__len__") and not isinstance(whole, str | bytes):
            return as_arrow(given), {}
        given = [given]
    elif hasattr(given, "__arrow_c_stream__") or hasattr(given, "columns"):
        return as_arrow(given), {}
    elif isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            "a stream takes a table (pandas, Polars, Arrow), an event that is a dict, or several "
            f"of them, not {type(given).__name__}"
        )
    events = list(given)
    for event in events:
        if not isinstance(event, Mapping):
            raise TypeError(f"an event is a dict of columns and values, not {event!r}")
    return _from_events(events, known)


def _from_events(events: list[Any], known: pa.Schema | None) -> tuple[pa.Table, Reasons]:
    names = dict.fromkeys(name for event in events for name in event)
    columns: dict[str, pa.Array] = {}
    reasons: Reasons = {}
    if known is not None:
        names = dict.fromkeys(known.names) | names
    for name in names:
        items = [event.get(name) for event in events]
        if known is not None and name in known.names:
            columns[name], bad = _typed(items, name, known.field(name).type)
            reasons = bad | reasons
        else:
            columns[name] = pa.array(items)
    return pa.table(columns), reasons


def _typed(items: list[Any], name: str, wanted: pa.DataType) -> tuple[pa.Array, Reasons]:
    """Values of a type, with null and a reason for those that are not."""
    try:
        return pa.array(items, type=wanted), {}
    except _ERRORS:
        pass
    reasons, kept = {}, list(items)
    for i, item in enumerate(items):
        try:
            pa.array([item], type=wanted)
        except _ERRORS:
            reasons[i] = f"column {name!r}: {item!r} is no {wanted}"
            kept[i] = None
    return pa.array(kept, type=wanted), reasons


def conform(table: pa.Table, schema: pa.Schema) -> tuple[pa.Table, Reasons]:
    """The columns of a schema, in its types; rows with values that do not fit are told."""
    columns: list[Any] = []
    reasons: Reasons = {}
    for field in schema:
        at = table.schema.get_all_field_indices(field.name)
        if len(at) != 1:
            told = "is there more than once" if at else "is not there"
            have = ", ".join(table.column_names) or "none"
            raise KeyError(
                f"the query reads column {field.name!r}, which {told}; the batch has: {have}"
            )
        column = table.column(at[0])
        if column.type != field.type:
            column, bad = _cast(column, field)
            reasons = bad | reasons
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema), reasons


def _cast(column: pa.ChunkedArray, field: pa.Field) -> tuple[Any, Reasons]:
    try:
        return column.cast(field.type), {}
    except pa.ArrowInvalid:
        return _typed(column.to_pylist(), field.name, field.type)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise TypeError(
            f"column {field.name!r} has type {column.type}; the batches before had {field.type}"
        ) from None


def bad_rows(use: Callable[[pa.Table], Any], table: pa.Table) -> Reasons:
    """The rows that make a use of a table fail, and why."""
    found: Reasons = {}

    def search(start: int, end: int) -> None:
        try:
            use(table.slice(start, end - start))
        except Exception as error:
            if end - start == 1:
                found[start] = str(error) or type(error).__name__
                return
            middle = (start + end) // 2
            search(start, middle)
            search(middle, end)

    if table.num_rows:
        search(0, table.num_rows)
    return found


def in_time(times: Array) -> Array | None:
    """The rows in order of time, ties as they come; None if they are.

    numpy has a radix sort for 16 bits.  Two of them order 10,000 rows that span less than an hour
    in 0.12 ms, where a stable sort of their times takes 0.25 ms, or 0.45 with much disorder.
    """
    if (times[1:] >= times[:-1]).all():
        return None
    since = times - times.min()
    if int(since.max()) >= 1 << 32:
        return np.argsort(times, kind="stable")
    low = np.argsort(since.astype(np.uint16), kind="stable")
    high = np.argsort((since >> 16).astype(np.uint16)[low], kind="stable")
    return low[high]
