"""Converts between Spark's types and Arrow's, and gets values out of a Python operator unchanged.

On its way out of a stateful operator, a column passes through pandas.  There, times would be
converted by the session's time zone, and maps would become dicts, whose keys Python must be able to
hash.  So times and dates travel as integers, and maps as lists of their entries, and expressions in
Spark turn them back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

__all__ = [
    "Carried",
    "arrow_schema",
    "carried",
    "from_entries",
    "has_map",
    "micros",
    "normal",
    "quoted",
    "quoted_name",
    "spark_type",
    "time_from",
]


# By default, times have the zone UTC in PySpark 4.1, and no zone in later versions.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def quoted(name: str) -> Column:
    """A column by its name, which may contain any characters."""
    return F.col(quoted_name(name))


def quoted_name(name: str) -> str:
    """A name, which may contain any characters, quoted for Spark."""
    return "`" + name.replace("`", "``") + "`"


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame's columns; times are in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)


def spark_type(given: pa.DataType) -> DataType:
    """The Spark type for an Arrow type."""
    if pa.types.is_timestamp(given):
        return TimestampType() if given.tz else TimestampNTZType()
    if pa.types.is_list(given) or pa.types.is_large_list(given):
        return ArrayType(spark_type(given.value_type))
    if pa.types.is_fixed_size_list(given):
        return ArrayType(spark_type(given.value_type))
    if pa.types.is_uint64(given):
        return LongType()
    return from_arrow_type(given, prefer_timestamp_ntz=True)


@dataclass(frozen=True)
class Carried:
    """How values of a type travel out of Python: in the type `travels`; `back` converts them."""

    type: DataType
    travels: DataType

    def back(self, column: Column) -> Column:
        if isinstance(self.type, TimestampType | TimestampNTZType):
            return time_from(column, self.type)
        if isinstance(self.type, DateType):
            return F.date_from_unix_date(column)
        return from_entries(column, self.type)


def carried(given: DataType) -> Carried:
    """How a type travels."""
    if isinstance(given, TimestampType | TimestampNTZType):
        return Carried(given, LongType())
    if isinstance(given, DateType):
        return Carried(given, IntegerType())
    return Carried(given, _as_entries(given))


def time_from(micros: Column, wanted: DataType) -> Column:
    """Turn microseconds since 1970 into a time, in UTC or without a zone; a number stays as it
    is."""
    if isinstance(wanted, TimestampNTZType):
        start = F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00"))
        return F.timestamp_add("MICROSECOND", micros, start)
    if isinstance(wanted, TimestampType):
        return F.timestamp_micros(micros)
    return micros


def micros(time: Column, given: DataType) -> Column:
    """Turn a time into microseconds since 1970; a number stays as it is."""
    if isinstance(given, TimestampNTZType):  # most functions would assume the session's zone
        days = F.unix_date(time.cast("date")).cast("long")
        minutes = (days * 24 + F.hour(time)) * 60 + F.minute(time)
        seconds = F.date_part(F.lit("SECOND"), time)  # a decimal, with its fraction
        # null for the first moments that Spark knows, which are out of range in any case
        whole = F.try_multiply(minutes, F.lit(60_000_000))
        return F.try_add(whole, (seconds * 1_000_000).cast("long"))
    if isinstance(given, TimestampType):
        return F.unix_micros(time)
    return time.cast("long")


def normal(column: Column, given: DataType, name: str) -> Column:
    """Normalise a key column so that equal keys have equal bits: only one NaN and one zero, and
    maps as sorted lists of their entries, also within structs, lists and maps."""
    if isinstance(given, DoubleType | FloatType):
        return F.when(F.isnan(column), F.lit(float("nan")).cast(given)).otherwise(
            column + F.lit(0.0).cast(given)
        )
    if isinstance(given, StringType) and given.simpleString() != "string":
        raise TypeError(
            f"key column {name!r} has a collation, {given.simpleString()}, by which different "
            "texts are equal; make it plain text before, with F.lower or cast('string')"
        )
    if isinstance(given, MapType):
        return F.array_sort(normal(F.map_entries(column), _entries(given), name))
    return _inside(column, given, lambda part, kind: normal(part, kind, name))


def has_map(given: DataType) -> bool:
    """True if a type is a map, or has one inside."""
    return _as_entries(given) != given


def from_entries(column: Column, wanted: DataType) -> Column:
    """Turn the lists of entries in a column into maps, where the type `wanted` has maps."""
    if not has_map(wanted):
        return column
    if isinstance(wanted, MapType):
        return F.map_from_entries(from_entries(column, _entries(wanted)))
    return _inside(column, wanted, from_entries)


def _inside(
    column: Column, given: DataType, change: Callable[[Column, DataType], Column]
) -> Column:
    """Change the fields of a struct, or the elements of a list; leave other columns as they are."""
    if isinstance(given, ArrayType):
        inner = given.elementType
        return F.transform(column, lambda element: change(element, inner))
    if isinstance(given, StructType):
        parts = [change(column.getField(f.name), f.dataType).alias(f.name) for f in given.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    return column


def _entries(given: MapType) -> ArrayType:
    """The type of the entries of a map."""
    key = StructField("key", given.keyType, nullable=False)
    value = StructField("value", given.valueType, given.valueContainsNull)
    return ArrayType(StructType([key, value]), containsNull=False)


def _as_entries(given: DataType) -> DataType:
    """The type with lists of entries instead of maps."""
    if isinstance(given, MapType):
        return _as_entries(_entries(given))
    if isinstance(given, ArrayType):
        return ArrayType(_as_entries(given.elementType), given.containsNull)
    if isinstance(given, StructType):
        return StructType(
            [
                StructField(f.name, _as_entries(f.dataType), f.nullable, f.metadata)
                for f in given.fields
            ]
        )
    return given
