"""Tables as they come from users, as Arrow, and results on their way back.

The same kind comes back as went in.  A table is anything that speaks Arrow's C stream
interface: pandas, Polars, DuckDB, Arrow itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..windows.contract import LATEST, UTC, Clock
from .threads import extremes, rise

__all__ = [
    "as_arrow",
    "as_given",
    "as_time",
    "check_times",
    "filtered",
    "flat",
    "from_ipc",
    "has_tie_number",
    "kind_of",
    "no_rows",
    "one_array",
    "plain_type",
    "tie_numbers",
    "time_text",
    "times_between",
    "times_of",
    "to_ipc",
]


def as_arrow(table: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """A table as Arrow, with no more than these columns if they are given."""
    kind = kind_of(table)
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif kind == "pandas" and type(table).__name__ == "DataFrame":
        # one that is missing is for the plan to tell, of all that are there
        some = columns is not None and set(columns) <= set(table.columns)
        table = pa.Table.from_pandas(
            table[list(columns or ())] if some else table, preserve_index=False
        )
    elif not isinstance(table, pa.Table):
        if hasattr(table, "collect") and kind == "polars":
            table = table.collect()
        if not isinstance(table, dict) and not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(
                "a table is a pandas or Polars DataFrame, an Arrow table, or anything with "
                f"__arrow_c_stream__, not {type(table).__name__}"
            )
        table = pa.table(table)
    if columns is not None and all(table.column_names.count(c) == 1 for c in columns):
        table = table.select(list(columns))
    return pa.table([_plain(c) for c in table.columns], names=table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Views and runs of values as what they stand for."""
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
    """A table without rows.  That of `Schema.empty_table` imports pandas, which takes a while."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without views and, in what is nested, without dictionaries."""
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
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)  # combining would copy it
    made = column.combine_chunks()
    return made if isinstance(made, pa.Array) else pa.array([], type=made.type)


def kind_of(table: Any) -> str:
    """Which library a table is of."""
    return type(table).__module__.split(".")[0]


def as_given(result: pa.Table, kind: str, like: Any = None) -> Any:
    """A result as a table of a library; in pandas, columns that another frame has keep the types
    that they have there, so that integers with nulls do not become floats."""
    if kind == "pandas":
        made = result.to_pandas()
        for name in [] if like is None else like.columns:
            back = getattr(like[name].dtype, "__from_arrow__", None)
            if back is not None:
                made[name] = back(result.column(name))
        return made
    if kind == "polars":
        import polars

        return polars.from_arrow(result)
    return result


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of plain values."""
    made = one_array(column)
    return made.dictionary_decode() if pa.types.is_dictionary(made.type) else made


def times_of(column: pa.Array, clock: Clock = UTC) -> tuple[Array, Array]:
    """A time column in int64 microseconds, and which rows cannot be used: a null, or a time beyond
    what the clock of the windows can show."""
    times, bad, *_ = times_between(column, clock)
    return times, np.zeros(len(times), dtype=bool) if bad is None else bad


def times_between(
    column: pa.Array, clock: Clock = UTC, threads: int = 1
) -> tuple[Array, Array | None, tuple[int, int] | None, bool]:
    """The same, None if all rows can be used; the least and the greatest time, if there are some
    and all can be used; and whether it is known that they are in order."""
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
    """True if a tie column of this type can be kept as numbers."""
    types = pa.types
    plain = (types.is_floating, types.is_boolean, types.is_integer, types.is_temporal)
    return any(is_a(kind) for is_a in plain)


def tie_numbers(column: pa.Array) -> Array:
    """A tie column as int64 in the same order, null last, so that it can be kept beside times."""
    given = column.type
    if pa.types.is_floating(given):
        plain = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        plain[np.isnan(plain)] = np.nan  # whatever its sign
        bits = plain.view(np.int64)
        numbers: Array = bits ^ ((bits >> 63) & (2**63 - 1))
    elif pa.types.is_boolean(given) or pa.types.is_integer(given):
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        whole = pa.int32() if given.bit_width == 32 else pa.int64()
        numbers = column.cast(whole).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(np.asarray(column.is_valid()), numbers, 2**63 - 1)


def time_text(time: pa.Scalar) -> str:
    """A time as a person would write it, as far as there are dates."""
    try:
        return str(time)
    except (OverflowError, ValueError):
        return f"{time.value} {time.type.unit} from 1970"


def check_times(name: str, column: pa.Array, bad: Array | None, clock: Clock = UTC) -> None:
    """Refuse a table with times that cannot be used, before any work."""
    if bad is None or not bad.any():
        return
    row = int(np.flatnonzero(bad)[0])
    found = column[row]
    what = f"is {time_text(found)}, {clock.beyond}" if found.is_valid else "is null"
    raise ValueError(
        f"row {row}: its time, in column {name!r}, {what} ({int(bad.sum())} such row(s)); leave "
        f"out such rows first"
    )


def filtered(table: pa.Table, where: Any) -> pa.Table:
    """The rows that satisfy a condition; where it is null, a row does not."""
    try:
        return table.filter(where)
    except pa.ArrowTypeError as error:  # "… must evaluate to bool, but … evaluates to double"
        raise ValueError(
            f"where, {where}, is no condition ({error}); compare it with something, as in "
            "pyarrow.compute.field('x') > 0"
        ) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"where, {where}, cannot be used on this table: {error}") from None


def as_time(micros: Array, wanted: pa.DataType) -> pa.Array:
    """Times as the table has them: timestamps with the same zone, in microseconds, or integers."""
    if pa.types.is_timestamp(wanted):
        return pa.array(micros).view(pa.timestamp("us", wanted.tz))
    return pa.array(micros)


def to_ipc(table: pa.Table) -> bytes:
    """A table as Arrow's own bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_ipc(data: bytes) -> pa.Table:
    """The table again, each column in one piece."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all().combine_chunks()
