"""The column types that operators know."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

__all__ = ["How", "check_time", "column_type", "has_order", "has_places", "in_ticks", "value_type"]

#: What an operator reads of a column: its values; nanoseconds as whole numbers; the numbers of its
#: rows; the ranks of its values; decimals as whole multiples of their last digit, or as floats.
How = Literal["values", "ticks", "rows", "places", "unscaled", "floats"]


def column_type(given: pa.DataType) -> str:
    """The name that operators have for the type of an Arrow column."""
    if pa.types.is_boolean(given):
        return "bool"
    if pa.types.is_integer(given):
        return "int64"
    if pa.types.is_floating(given):
        return "float64"
    if pa.types.is_timestamp(given):
        return "timestamp"
    return "object"


def value_type(given: pa.DataType) -> pa.DataType:
    """The type of a column's values, without their dictionary encoding."""
    return given.value_type if pa.types.is_dictionary(given) else given


def in_ticks(given: pa.DataType) -> pa.DataType:
    """The type with each type of nanoseconds replaced by int64, also within structs and lists.

    Operators count times in microseconds, as Spark does.  An operator that only picks or compares
    values reads nanoseconds as whole numbers, and the engine casts its answers back.
    """
    if _counts_nanoseconds(given):
        return pa.int64()
    if pa.types.is_struct(given):
        return pa.struct([field.with_type(in_ticks(field.type)) for field in given])
    if pa.types.is_map(given):
        key, item = given.key_field, given.item_field
        return pa.map_(key.with_type(in_ticks(key.type)), item.with_type(in_ticks(item.type)))
    if pa.types.is_fixed_size_list(given):
        item = given.value_field
        return pa.list_(item.with_type(in_ticks(item.type)), given.list_size)
    if pa.types.is_list(given) or pa.types.is_large_list(given):
        item = given.value_field.with_type(in_ticks(given.value_type))
        return pa.list_(item) if pa.types.is_list(given) else pa.large_list(item)
    return given


def _counts_nanoseconds(given: pa.DataType) -> bool:
    types = pa.types
    timed = types.is_timestamp(given) or types.is_duration(given) or types.is_time64(given)
    return bool(timed and given.unit == "ns")


def has_order(given: pa.DataType) -> bool:
    """True if values of a type can be compared; maps, and types that contain maps, cannot."""
    if pa.types.is_map(given):
        return False
    if pa.types.is_nested(given):
        return all(has_order(given.field(i).type) for i in range(given.num_fields))
    return True


def has_places(given: pa.DataType) -> bool:
    """True if Arrow sorts values of a type in the same order as Python."""
    types = pa.types
    return bool(
        types.is_string(given)
        or types.is_large_string(given)
        or types.is_binary(given)
        or types.is_large_binary(given)
        or types.is_decimal128(given)
        or types.is_decimal256(given)
        or types.is_date(given)
        or types.is_time(given)
        or types.is_duration(given)
    )


def check_time(name: str, given: pa.DataType) -> None:
    """Raise if the values of a column are no times."""
    if not (pa.types.is_timestamp(given) or pa.types.is_integer(given)):
        how = "pandas: to_datetime, Polars: str.to_datetime, Spark: to_timestamp, Python: "
        how += "datetime.fromisoformat"
        if pa.types.is_date(given):
            how = "pandas: to_datetime, Polars: cast(polars.Datetime), Spark: cast('timestamp'), "
            how += "Python: datetime.combine(…, time.min)"
        elif pa.types.is_floating(given):
            how = (
                "if these are seconds, in pandas: to_datetime(…, unit='s'), Polars: "
                "(… * 1_000_000).cast(polars.Int64), Spark: cast('timestamp'), Python: "
                "datetime.fromtimestamp(…, UTC)"
            )
        raise TypeError(
            f"the time column {name!r} has type {given}; it must hold timestamps, or whole numbers "
            f"of microseconds since 1970; convert it first ({how})"
        )
