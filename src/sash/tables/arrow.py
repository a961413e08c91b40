"""Turns tables of any library into Arrow tables, and results into tables of the user's library.

A table is anything that implements Arrow's C stream interface: pandas, Polars, DuckDB, Arrow
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array, arrow_words
from ..query.names import did_you_mean
from ..windows.contract import LATEST, UTC, Clock
from .threads import extremes, rise

__all__ = [
    "as_arrow",
    "as_given",
    "as_time",
    "check_index",
    "check_times",
    "filtered",
    "flat",
    "from_ipc",
    "has_tie_number",
    "kind_name",
    "kind_of",
    "no_rows",
    "numbered",
    "one_array",
    "plain_type",
    "tie_numbers",
    "time_text",
    "times_between",
    "times_of",
    "to_ipc",
    "with_columns",
]


def as_arrow(table: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Turn a table into an Arrow table, with only these columns.  If some are missing or occur
    twice, keep all columns."""
    kind = kind_of(table)
    if kind == "pyspark":
        raise TypeError(
            "this is a DataFrame of Spark; give it to sash.spark.aggregate(df, query), or, if it "
            "is small, bring it here first with df.toArrow()"
        )
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif kind == "pandas" and type(table).__name__ == "DataFrame":
        # if a column is missing, the plan raises, and its error lists all columns of the table
        some = columns is not None and set(columns) <= set(table.columns)
        table = pa.Table.from_pandas(
            table[list(columns or ())] if some else table, preserve_index=False
        )
    elif kind == "polars" and type(table).__name__ in ("DataFrame", "LazyFrame"):
        table = _from_polars(table, columns)
    elif not isinstance(table, pa.Table):
        readable = isinstance(table, dict) or hasattr(table, "__arrow_c_stream__")
        if kind == "polars" or not readable:
            instead = ""
            if isinstance(table, str | PathLike):
                instead = "; read the file first, with pyarrow.parquet.read_table for example"
            elif isinstance(table, Sequence | Iterator):
                instead = "; pyarrow.Table.from_pylist makes a table of a list of dicts"
            raise TypeError(
                "a table is a pandas or Polars DataFrame, an Arrow table, a dict of columns, or "
                f"anything with __arrow_c_stream__, not {kind_name(table)}{instead}"
            )
        table = pa.table(table)
    if columns is not None and all(table.column_names.count(c) == 1 for c in columns):
        table = table.select(list(columns))
    return pa.table([_plain(c) for c in table.columns], names=table.column_names)


def _from_polars(frame: Any, columns: Sequence[str] | None) -> pa.Table:
    """Turn a Polars frame into an Arrow table, with only these columns if it has them all."""
    types = frame.collect_schema()
    if columns is not None and set(columns) <= set(types):
        frame = frame.select(list(columns))
        types = {name: types[name] for name in columns}
    for name, given in types.items():
        # Polars would hand over the addresses of the objects, in place of the objects
        if str(given) == "Object":
            raise TypeError(
                f"column {name!r} of the Polars frame holds Python objects, which Arrow does not "
                "have; turn them into text or numbers first, or leave the column out"
            )
    frame = frame.collect() if hasattr(frame, "collect") else frame
    try:
        return pa.table(frame)
    except pa.ArrowInvalid as error:
        raise TypeError(
            f"Arrow does not take this Polars frame ({error}); cast the column in question first, "
            f"or leave it out; the columns are: {', '.join(f'{n} {t}' for n, t in types.items())}"
        ) from None


def kind_name(table: Any) -> str:
    """The name of a table's class, with its library: many of them are called DataFrame."""
    kind = type(table)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def check_index(table: Any, time: str, columns: Sequence[str]) -> None:
    """Raise if a frame of pandas has a column of a query in its index."""
    if kind_of(table) != "pandas" or type(table).__name__ != "DataFrame":
        return
    names, there = list(table.index.names), set(table.columns)
    for name in columns:
        if name in there:
            continue
        if name in names:
            raise KeyError(
                f"the query reads column {name!r}, which is in the index of the frame; make it a "
                "column first: frame.reset_index()"
            )
        if name == time and type(table.index).__name__ == "DatetimeIndex":
            raise KeyError(
                f"the query reads column {name!r}, which is not there; if it is the frame's index "
                f"of times, make it a column first: frame.rename_axis({name!r}).reset_index()"
            )


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to a plain type: without views, and without run-end encoding."""
    kind = column.type
    if pa.types.is_primitive(kind):
        return column
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    wanted = plain_type(kind)
    if wanted == kind:
        return column
    if pa.types.is_dictionary(kind):
        chunks = [
            pa.DictionaryArray.from_arrays(
                c.indices, c.dictionary.cast(wanted.value_type), ordered=kind.ordered
            )
            for c in column.chunks
        ]
        return pa.chunked_array(chunks, wanted)
    return column.cast(wanted)


def no_rows(schema: pa.Schema) -> pa.Table:
    """Make a table without rows.  `Schema.empty_table` would import pandas, which takes a while."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without views and run-end encoding; inside nested types also without
    dictionaries."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return _WITHOUT_VIEWS.get(kind, kind)


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type
    return field.with_type(plain_type(kind.value_type if pa.types.is_dictionary(kind) else kind))


_WITHOUT_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array.  It has plain values if the dictionaries of its chunks cannot be one:
    Arrow does not unite dictionaries with nulls inside, nor more values than their indices count.
    """
    if column.num_chunks == 1:
        return column.chunk(0)  # combining would copy it
    try:
        made = column.combine_chunks()
    except pa.ArrowInvalid:
        if not pa.types.is_dictionary(column.type):
            raise
        made = pa.concat_arrays([chunk.dictionary_decode() for chunk in column.chunks])
    return made if isinstance(made, pa.Array) else pa.array([], type=made.type)


def kind_of(table: Any) -> str:
    """The name of the library that a table comes from."""
    return type(table).__module__.split(".")[0]


def numbered(table: pa.Table) -> pa.Table:
    """The table with a column more: the numbers of its rows, for `as_given`."""
    return table.append_column(_NUMBER, pa.array(np.arange(table.num_rows)))


_NUMBER = "\0 row"


def as_given(result: pa.Table, kind: str, like: Any = None) -> Any:
    """Turn a result into a table of a library.  Columns that the frame `like` has get the types
    that they have there: in pandas, integers with nulls do not become floats.  Other integers with
    nulls do, as pandas has it, but only if no float is rounded.  Rows of a `numbered` table keep
    the index that they have in a frame `like` of pandas."""
    rows = None
    if _NUMBER in result.column_names:
        rows, result = result.column(_NUMBER), result.drop_columns([_NUMBER])
    if kind == "pandas":
        made = result.to_pandas()
        for place, column in enumerate(result.columns):
            if _rounds(one_array(column) if pa.types.is_nested(column.type) else column):
                exact = column.to_pandas(integer_object_nulls=True)
                if pa.types.is_integer(column.type):
                    unsigned = pa.types.is_unsigned_integer(column.type)
                    exact = exact.astype("UInt64" if unsigned else "Int64")
                made.isetitem(place, exact)
        for name in [] if like is None else like.columns:
            back = getattr(like[name].dtype, "__from_arrow__", None)
            if back is not None:
                made[name] = back(result.column(name))
        if rows is not None:
            made.index = like.index if len(made) == len(like) else like.index.take(rows.to_numpy())
        return made
    if kind == "polars":
        import polars

        made = polars.from_arrow(result)
        own = {} if like is None else like.collect_schema()
        return made.cast({name: own[name] for name in made.columns if own.get(name) == polars.Enum})
    return result


def _rounds(values: pa.Array | pa.ChunkedArray) -> bool:
    """True if there are nulls among integers, also within lists and structs, and a float would
    round one of the integers."""
    types, kind = pa.types, values.type
    if types.is_struct(kind):
        return any(map(_rounds, values.flatten()))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _rounds(values.flatten())
    if not types.is_integer(kind) or not values.null_count:
        return False
    ends = pc.min_max(values).as_py()
    return ends["min"] is not None and (ends["min"] < -(2**53) or ends["max"] > 2**53)


def with_columns(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The table with more columns behind its own, and without metadata.  `append_column` makes a
    table for each column, which takes longer than all else that a small push does."""
    fields = [*table.schema, *(pa.field(name, column.type) for name, column in columns.items())]
    return pa.Table.from_arrays([*table.columns, *columns.values()], schema=pa.schema(fields))


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of plain values."""
    made = one_array(column)
    return made.dictionary_decode() if pa.types.is_dictionary(made.type) else made


def times_of(column: pa.Array, clock: Clock = UTC) -> tuple[Array, Array]:
    """Turn a time column into int64 microseconds, and mark the rows that sash cannot use: their
    time is null, or beyond the range of the windows' clock."""
    times, bad, *_ = times_between(column, clock)
    return times, np.zeros(len(times), dtype=bool) if bad is None else bad


def times_between(
    column: pa.Array, clock: Clock = UTC, threads: int = 1
) -> tuple[Array, Array | None, tuple[int, int] | None, bool]:
    """Like `times_of`, but the marks are None if sash can use all rows.  Return also the least and
    the greatest time (None if there are no rows or unusable ones), and True if the times are known
    to be in order."""
    given, scale = column.type, 1
    if pa.types.is_timestamp(given):
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": -1_000}[given.unit]
    if pa.types.is_uint64(given):
        column = pc.min_element_wise(column, pa.scalar(LATEST, given), skip_nulls=False)
    ticks = column.cast(pa.int64())
    plain = (ticks.fill_null(LATEST) if ticks.null_count else ticks).to_numpy()
    if scale < 0:
        plain = np.floor_divide(plain, -scale)
        if column.null_count:
            plain[~np.asarray(column.is_valid())] = LATEST
        scale = 1
    limit, (low, high) = LATEST // scale, clock.limits
    rises = rise(plain, threads)
    ends = None
    if len(plain):
        ends = (int(plain[0]), int(plain[-1])) if rises else extremes(plain, threads)
    span = None if ends is None else (ends[0] * scale, ends[1] * scale)
    bad = None
    if ends is not None and not -limit < ends[0] <= ends[1] < limit:
        bad = (plain >= limit) | (plain <= -limit)
    if scale > 1:
        plain = (plain if bad is None else np.where(bad, 0, plain)) * scale
    if clock is not UTC and (bad is not None or (span and not low < span[0] <= span[1] < high)):
        beyond = (plain <= low) | (plain >= high)
        bad = beyond if bad is None else bad | beyond
    times = np.ascontiguousarray(plain, dtype=np.int64)
    return times, bad, span if bad is None else None, rises and bad is None


def has_tie_number(kind: pa.DataType) -> bool:
    """True if `tie_numbers` can turn a tie column of this type into numbers."""
    types = pa.types
    plain = (types.is_floating, types.is_boolean, types.is_integer, types.is_temporal)
    return any(is_a(kind) for is_a in plain)


def tie_numbers(column: pa.Array) -> Array:
    """Turn a tie column into int64 in the same order, null last, which a state keeps beside the
    times."""
    given = column.type
    if pa.types.is_floating(given):
        plain = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        plain[np.isnan(plain)] = np.nan  # one NaN, without a sign
        bits = plain.view(np.int64)
        numbers: Array = bits ^ ((bits >> 63) & (2**63 - 1))
    elif pa.types.is_boolean(given) or pa.types.is_integer(given):
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        whole = pa.int32() if given.bit_width == 32 else pa.int64()
        numbers = column.cast(whole).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(np.asarray(column.is_valid()), numbers, 2**63 - 1)


def time_text(time: pa.Scalar) -> str:
    """A time as text: a date and time, or a number if Python has no such date."""
    try:
        return str(time)
    except (OverflowError, ValueError):
        return f"{time.value} {time.type.unit} from 1970"


def check_times(name: str, column: pa.Array, bad: Array | None, clock: Clock = UTC) -> None:
    """Raise if a table has times that sash cannot use."""
    if bad is None or not bad.any():
        return
    row = int(np.flatnonzero(bad)[0])
    found = column[row]
    what = f"is {time_text(found)}, {clock.beyond}" if found.is_valid else "is null"
    hint = ""
    if found.is_valid and pa.types.is_integer(found.type):
        hint = "; whole numbers are microseconds since 1970, so cast nanoseconds to timestamp('ns')"
    raise ValueError(
        f"row {row}: its time, in column {name!r}, {what} ({int(bad.sum())} such row(s)); leave "
        f"out such rows first{hint}"
    )


def filtered(table: pa.Table, where: Any) -> pa.Table:
    """The rows for which a condition is true; null is not true."""
    try:
        return table.filter(where)
    except pa.ArrowTypeError as error:  # "… must evaluate to bool, but … evaluates to double"
        raise ValueError(
            f"where, {where}, is no condition ({error}); compare it with something, as in "
            "pyarrow.compute.field('x') > 0"
        ) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        lost = re.match(r"No match for FieldRef\.Name\((.*)\) in ", str(error))
        why = str(error)
        if lost is not None:
            names = [name for name in table.column_names if name not in (_NUMBER, "row number")]
            why = f"there is no column {lost[1]!r}; the table has: {', '.join(names)}"
            why += did_you_mean(lost[1], names)
        raise ValueError(f"where, {where}, cannot be used on this table: {why}") from None


def as_time(micros: Array, wanted: pa.DataType) -> pa.Array:
    """Turn microseconds into the kind of times that the table has: timestamps in microseconds with
    the same zone, or integers."""
    timed = pa.types.is_timestamp(wanted)
    kind = pa.timestamp("us", wanted.tz) if timed else pa.int64()
    return arrow_words(np.ascontiguousarray(micros, dtype=np.int64), kind)


def to_ipc(table: pa.Table) -> bytes:
    """Write a table as bytes in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_ipc(data: bytes) -> pa.Table:
    """Read a table from the bytes of `to_ipc`; each column is one chunk, unless the dictionaries
    of its chunks cannot be one."""
    with pa.ipc.open_stream(data) as reader:
        made = reader.read_all()
    try:
        return made.combine_chunks()
    except pa.ArrowInvalid:
        return made
