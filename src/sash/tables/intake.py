"""Turns batches and events that users push into tables with the column types of the stream's plan.

One bad row must not stop a stream.  So these functions return the rows that sash cannot use with
the reasons, and the stream goes on with the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..query.names import check_column
from ..query.query import Query
from ..windows.contract import LATEST, Driven
from .arrow import as_arrow, check_index, filtered, flat, times_of
from .python_values import how_to_push, inferred, with_nulls

__all__ = [
    "CANNOT_BE",
    "Prepared",
    "bad_rows",
    "chosen",
    "conform",
    "given_table",
    "is_columns",
    "is_utf8",
    "known_names",
    "lacks_types",
    "one_of_type",
    "some_rows",
    "with_names",
]

#: The errors that Arrow and Python raise for a value that is not of a type.
CANNOT_BE = (pa.ArrowException, TypeError, ValueError, ArithmeticError, LookupError)
Reasons = dict[int, str]
_TEXT = {
    kind.id
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(1))
}
#: The metadata key for the names of all columns of a stream's first batch, for snapshots.
_NAMES = b"sash names"


@dataclass(frozen=True)
class Prepared:
    """A batch that already is an Arrow table, and the reasons for its unusable rows, by row."""

    table: pa.Table
    reasons: Reasons


def given_table(
    given: Any, query: Query, known: pa.Schema | None, optional: dict[str, pa.DataType]
) -> tuple[pa.Table, Reasons]:
    """Turn a table, one event or several events into an Arrow table.  Events get the `known` types;
    a value that does not fit becomes null, and the second result has the reason by row.  Columns
    in `optional` that no event has are null."""
    if isinstance(given, Prepared):
        return given.table, given.reasons
    if isinstance(given, Mapping):
        if is_columns(given, query.time):
            return as_arrow(given), {}
        given = [given]
    elif hasattr(given, "__arrow_c_stream__") or hasattr(type(given), "columns"):
        check_index(given, query.time, query.columns)
        return as_arrow(given), {}
    elif not isinstance(given, Iterable) or isinstance(given, str | bytes) or how_to_push(given):
        raise TypeError(
            "a stream takes a table (pandas, Polars, Arrow), an event that is a dict, or several "
            f"of them, not {type(given).__name__}{how_to_push(given)}"
        )
    events = list(given)
    for event in events:
        if not isinstance(event, Mapping):
            raise TypeError(f"an event is a dict of columns and values, not {event!r}")
    table, reasons = _from_events(events, query, known)
    odd, names = _misspelt(events, query, known, optional)
    reasons |= odd
    if known is None:
        table = table.cast(with_names(table.schema, names))
    for name, kind in optional.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(events), kind))
    return table, reasons


def is_columns(given: Any, time: str) -> bool:
    """True for a dict of columns, which is a table; an event is a dict of values."""
    whole = given.get(time) if isinstance(given, Mapping) else None
    return hasattr(whole, "__len__") and not isinstance(whole, str | bytes)


def lacks_types(table: pa.Table, query: Query) -> bool:
    """True if a batch has no rows, and a column that the query reads or keeps has no type, or the
    times have the type that pandas gives columns without rows."""
    if table.num_rows:
        return False
    read = table.column_names if isinstance(query.window, Driven) else query.columns
    return pa.types.is_floating(table.schema.field(query.time).type) or any(
        pa.types.is_null(table.schema.field(name).type) for name in read
    )


def _misspelt(
    events: list[Any], query: Query, known: pa.Schema | None, optional: dict[str, pa.DataType]
) -> tuple[Reasons, list[str]]:
    """Find the events with a misspelt column: they lack a column that the query reads, and have one
    that is not known.  Return the reasons by event, and the names of the known columns.

    Known are the columns of the first batch; in the first batch itself, the columns of the events
    that lack no column.
    """
    whole = [event for event in events if all(c in event for c in query.columns)]
    if known is not None:
        names = [*known_names(known), *query.columns]
    elif whole:
        names = list(dict.fromkeys(name for event in whole for name in event))
    else:
        return {}, list(dict.fromkeys(name for event in events for name in event))
    seen, reasons = set(names), {}
    for i, event in enumerate(events):
        odd = next((name for name in event if name not in seen), None)
        if odd is None:
            continue
        lacks = (c for c in (*query.columns, *optional) if c not in event)
        lost = next((c for c in lacks if c in query.columns or _asks(query, optional, c)), None)
        if lost is not None:
            reasons[i] = (
                f"column {lost!r} is not there, and {odd!r} is no column of the first batch; if "
                "that is no mistake, give None for what is not there"
            )
    return reasons, names


def _asks(query: Query, optional: dict[str, pa.DataType], name: str) -> bool:
    """True if `where` reads a column."""
    others = {c: kind for c, kind in optional.items() if c != name}
    empty = pa.schema(others | dict.fromkeys(query.columns, pa.null())).empty_table()
    try:
        empty.filter(query.where)
    except pa.ArrowInvalid as error:
        return "No match for FieldRef" in str(error) and f"({name})" in str(error)
    except pa.ArrowException:
        pass
    return False


def known_names(schema: pa.Schema) -> list[str]:
    """The names of all columns of a stream's first batch, as `with_names` keeps them."""
    kept = (schema.metadata or {}).get(_NAMES)
    return json.loads(kept) if kept else list(schema.names)


def with_names(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """A schema that keeps the names of all columns of a stream's first batch."""
    kept = json.dumps(list(dict.fromkeys(names))).encode()
    return schema.with_metadata({**(schema.metadata or {}), _NAMES: kept})


def _from_events(
    events: list[Any], query: Query, known: pa.Schema | None
) -> tuple[pa.Table, Reasons]:
    names = dict.fromkeys(name for event in events for name in event)
    types = {} if known is None else {f.name: f.type for f in known}
    columns: dict[str, pa.Array] = {}
    reasons: Reasons = {}
    if events and not names:
        names = {query.time: None}  # the events are empty, so their times are null
    for name in types | names:
        items = with_nulls([event.get(name) for event in events])
        bad: Reasons = {}
        if name not in types:
            columns[name] = _untyped(items, name, name in query.columns)
        elif name == query.time:
            columns[name], bad = _times(items, name, types[name])
        else:
            columns[name], bad = _typed(items, name, types[name])
        reasons = bad | reasons
    return pa.table(columns), reasons


def _untyped(items: list[Any], name: str, read: bool) -> pa.Array:
    """Make a column of the type that Arrow infers from Python's own values: a number of numpy has
    a narrow type by chance, which would be that of all later events.  If the values have no common
    type, or some of them are no valid text, make a column of text, or raise if the query reads the
    column."""
    try:
        return inferred([x.item() if _is_number(x) else x for x in items])
    except CANNOT_BE as error:
        if read:
            raise TypeError(
                f"column {name!r} has values of no common Arrow type: {error}"
            ) from None
        text = (None if x is None else str(x).encode(errors="backslashreplace") for x in items)
        return pa.array(list(text), pa.string())


def _is_number(item: Any) -> bool:
    """True for a number of numpy, of whose numbers a length of time is one."""
    return isinstance(item, np.number) and not isinstance(item, np.timedelta64)


def _times(items: list[Any], name: str, wanted: pa.DataType) -> tuple[pa.Array, Reasons]:
    """Make a column of times, in the unit that Arrow infers, or in microseconds if Arrow finds no
    common type of the wanted kind.  A value that is no time becomes null, with a reason."""
    try:
        made = inferred(items)
        if same_kind(made.type, wanted):
            return made, {}
    except CANNOT_BE:
        pass
    reasons: Reasons = {}
    micros: list[int | None] = [None] * len(items)
    for i, item in enumerate(items):
        if item is None:
            continue
        try:
            one = inferred([item])
            one = one if same_kind(one.type, wanted) else _whole([item], wanted)
            (at,), (beyond,) = times_of(one)
            micros[i] = LATEST if beyond else int(at)
        except CANNOT_BE:
            reasons[i] = _no(name, item, wanted)
    made = pa.array(micros, pa.int64())
    zone = wanted.tz if pa.types.is_timestamp(wanted) else None
    return made if pa.types.is_integer(wanted) else made.cast(pa.timestamp("us", zone)), reasons


def same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    """True if both types are timestamps, of any unit, or both are integers."""
    return any(is_a(one) and is_a(other) for is_a in (pa.types.is_timestamp, pa.types.is_integer))


def _no(name: str, item: Any, wanted: pa.DataType) -> str:
    return f"column {name!r}: {item!r} is no {wanted}"


def _typed(items: list[Any], name: str, wanted: pa.DataType) -> tuple[pa.Array, Reasons]:
    """Make a column of a type.  A value that is not of the type becomes null, with a reason."""
    try:
        return _whole(items, wanted), {}
    except CANNOT_BE:
        pass
    reasons: Reasons = {}
    made = []
    for i, item in enumerate(items):
        try:
            made.append(one_of_type(item, wanted))
        except CANNOT_BE:
            reasons[i] = _no(name, item, wanted)
            made.append(pa.nulls(1, wanted))
    return pa.concat_arrays(made), reasons


def _whole(items: list[Any], wanted: pa.DataType) -> pa.Array:
    """Make a column of a type; raise if a value would change."""
    given = inferred(items)
    if given.type == wanted:
        return given
    number = pa.types.is_integer(wanted) or pa.types.is_floating(wanted)
    if number and pa.types.is_decimal(given.type):  # Arrow only casts them
        return unchanged(given, wanted)
    made = pa.array(items, type=wanted)
    unchanged(given, wanted)
    return made


def one_of_type(item: Any, wanted: pa.DataType) -> pa.Array:
    """Make an array with one value of a type; raise if the value would change.  A nested value is
    checked part by part, as a struct may come as a tuple, and a map as a list of pairs."""
    if pa.types.is_map(wanted) and isinstance(item, Mapping | list | tuple):
        made = pa.array([item], type=wanted)
        for key, value in item.items() if isinstance(item, Mapping) else item:
            one_of_type(key, wanted.key_type)
            one_of_type(value, wanted.item_type)
        return made
    if not pa.types.is_nested(wanted):
        return _whole([item], wanted)
    made = pa.array([item], type=wanted)
    if pa.types.is_struct(wanted) and isinstance(item, Mapping | tuple):
        named = item if isinstance(item, Mapping) else dict(zip(wanted.names, item, strict=True))
        for name, part in named.items():
            if part is not None:
                one_of_type(part, wanted.field(name).type)
    elif pa.types.is_nested(wanted) and isinstance(item, list | tuple):
        for part in item:
            one_of_type(part, wanted.value_type)
    else:
        _whole([item], wanted)
    return made


def conform(table: pa.Table, schema: pa.Schema, time: str | None) -> tuple[pa.Table, Reasons]:
    """Pick the columns of a schema from a table, and cast them to its types.  A value that does not
    fit becomes null, and the second result has the reason by row.  The column `time` may keep its
    own unit."""
    columns: list[Any] = []
    reasons: Reasons = {}
    for field in schema:
        check_column(field.name, table.column_names, what="the batch")
        column = flat(table.column(field.name))
        as_it_is = field.name == time and same_kind(column.type, field.type)
        if _is_text(column.type) and not is_utf8(column):
            column, bad = _only_text(column, field.name)
            reasons = bad | reasons
        if column.type != field.type and not as_it_is:
            column, bad = _cast(column, field)
            reasons = bad | reasons
        columns.append(column)
    return pa.table(columns, names=schema.names), reasons


def is_utf8(column: pa.Array) -> bool:
    """True if a column's text is valid UTF-8: Arrow itself does not check."""
    if _is_ascii(column):
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_ascii(column: pa.Array) -> bool:
    """True if all bytes of a text column are below 128, which makes it valid UTF-8.  This test
    takes a tenth of the time of Arrow's full check, which takes as long as all other work on short
    texts."""
    large = pa.types.is_large_string(column.type)
    if not (large or pa.types.is_string(column.type)) or not len(column):
        return False
    _, ends, data = column.buffers()
    if data is None:
        return False
    ends = np.frombuffer(ends, np.int64 if large else np.int32)
    first, last = ends[column.offset], ends[column.offset + len(column)]
    return last > first and bool(np.frombuffer(data, np.uint8)[first:last].max() < 128)


def _only_text(column: pa.Array, name: str) -> tuple[pa.Array, Reasons]:
    """Replace values that are not valid UTF-8 by null, with a reason by row."""
    reasons: Reasons = {}
    rows: list[int | None] = list(range(len(column)))
    for i in range(len(column)):
        if not is_utf8(column.slice(i, 1)):
            reasons[i] = f"column {name!r}: its bytes are no text in UTF-8"
            rows[i] = None
    return column.take(pa.array(rows, pa.int64())), reasons


def _cast(column: pa.Array, field: pa.Field) -> tuple[pa.Array, Reasons]:
    """Cast a column.  A value that does not fit becomes null, with a reason by row."""
    try:
        return unchanged(column, field.type), {}
    except pa.ArrowInvalid:
        pass
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise TypeError(
            f"column {field.name!r} has type {column.type}; the batches before had {field.type}"
        ) from None
    reasons: Reasons = {}
    rows: list[int | None] = list(range(len(column)))
    for i in range(len(column)):
        try:
            unchanged(column.slice(i, 1), field.type)
        except pa.ArrowInvalid:
            reasons[i] = _no(field.name, _item(column[i]), field.type)
            rows[i] = None
    return unchanged(column.take(pa.array(rows, pa.int64())), field.type), reasons


def _item(value: pa.Scalar) -> Any:
    """A value as a Python object; the Arrow scalar if Python has no such object."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # a date after the year 9999, say
        return value


def unchanged(given: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values; raise if the cast would change a value."""
    if pa.types.is_integer(given.type) and pa.types.is_decimal(wanted):
        given = given.cast(pa.decimal128(20, 0))  # an integer has at most 20 digits
    elif pa.types.is_decimal(given.type) and pa.types.is_integer(wanted):
        return given.cast(pa.decimal256(76, max(given.type.scale, 0))).cast(wanted)
    made = given.cast(wanted)
    if _changed(given, made):
        raise pa.ArrowInvalid(f"not all values are {wanted}")
    return made


def _changed(given: pa.Array, made: pa.Array) -> bool:
    """True if a cast changed values.  Arrow checks only some types itself: it does not check times
    that become dates, for instance."""
    old, new = given.type, made.type
    if old == new or pa.types.is_null(old):
        return False
    if pa.types.is_struct(old):
        parts = dict(zip(new.names, made.flatten(), strict=True))
        fields = zip(old.names, given.flatten(), strict=True)
        return any(
            _changed(part, parts[name]) if name in parts else part.null_count < len(part)
            for name, part in fields
        )
    if pa.types.is_map(old):
        return _changed(given.keys, made.keys) or _changed(given.items, made.items)
    if pa.types.is_nested(old):
        return _changed(pc.list_flatten(given), pc.list_flatten(made))
    if _is_text(old) or _is_text(new):
        return False
    if pa.types.is_floating(old) and pa.types.is_floating(new):  # rounded, but not to infinity
        return bool(pc.any(pc.and_not(pc.is_inf(made), pc.is_inf(given))).as_py())
    if pa.types.is_temporal(old) != pa.types.is_temporal(new):
        raise pa.ArrowTypeError(f"{old} and {new} are not of one kind")
    return bool(pc.any(pc.not_equal(made.cast(old), given)).as_py())


def _is_text(kind: pa.DataType) -> bool:
    return kind.id in _TEXT or isinstance(kind, pa.BaseExtensionType)


def chosen(table: pa.Table, where: Any, reasons: Reasons) -> tuple[pa.Table, Reasons]:
    """The rows that satisfy a condition, and all unusable rows; and the reasons by their new row
    numbers."""
    number = "row number"
    while number in table.column_names:
        number += "'"
    numbered = table.append_column(number, pa.array(np.arange(table.num_rows)))
    kept = np.asarray(filtered(numbered, where)[number])
    if reasons:
        kept = np.union1d(kept, list(reasons))
    places = np.searchsorted(kept, list(reasons)).tolist()
    return some_rows(table, kept), dict(zip(places, reasons.values(), strict=True))


def some_rows(table: pa.Table, rows: Array) -> pa.Table:
    """Some of the rows, in order."""
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def bad_rows(use: Callable[[pa.Table], Any], table: pa.Table) -> Reasons:
    """Find the rows for which `use` raises, with the reasons, by halving the table again and
    again."""
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
