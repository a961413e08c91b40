"""Spark's types and Arrow's, and how values get out of a Python operator unharmed.

On its way out of a stateful operator a column passes through pandas, where times would be
converted by the session's zone.  So times and dates travel as integers, and are made what they are
by expressions in Spark.
"""

from __future__ import annotations

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
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

__all__ = [
    "Carried",
    "arrow_schema",
    "carried",
    "micros",
    "normal",
    "quoted",
    "spark_type",
    "time_from",
]


# PySpark 4.1 has times in UTC unless it is told otherwise; later ones have no zone unless told.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def quoted(name: str) -> Column:
    """A column by its name, whatever is in it."""
    return F.col("`" + name.replace("`", "``") + "`")


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
    """A type on its way out of Python: as what it travels, and how it becomes itself again."""

    type: DataType
    travels: DataType

    def back(self, column: Column) -> Column:
        if isinstance(self.type, TimestampType | TimestampNTZType):
            return time_from(column, self.type)
        if isinstance(self.type, DateType):
            return F.date_from_unix_date(column)
        return column


def carried(given: DataType) -> Carried:
    """How a type travels."""
    if isinstance(given, TimestampType | TimestampNTZType):
        return Carried(given, LongType())
    if isinstance(given, DateType):
        from pyspark.sql.types import IntegerType

        return Carried(given, IntegerType())
    return Carried(given, given)


def time_from(micros: Column, wanted: DataType) -> Column:
    """A time from microseconds since 1970: in UTC, or on a clock without a zone."""
    if isinstance(wanted, TimestampNTZType):
        start = F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00"))
        return F.timestamp_add("MICROSECOND", micros, start)
    if isinstance(wanted, TimestampType):
        return F.timestamp_micros(micros)
    return micros


def micros(time: Column, given: DataType) -> Column:
    """Microseconds since 1970 from a time; a number of them is taken as it is."""
    if isinstance(given, TimestampNTZType):  # most functions would take it for the session's zone
        days = F.unix_date(time.cast("date")).cast("long")
        minutes = (days * 24 + F.hour(time)) * 60 + F.minute(time)
        seconds = F.date_part(F.lit("SECOND"), time)  # a decimal, with its fraction
        return minutes * 60_000_000 + (seconds * 1_000_000).cast("long")
    if isinstance(given, TimestampType):
        return F.unix_micros(time)
    return time.cast("long")


def normal(column: Column, given: DataType, name: str) -> Column:
    """A key column such that equal keys have equal bits: one NaN, one zero."""
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
        raise TypeError(f"key column {name!r} is a map, which Spark does not group by either")
    if isinstance(given, StructType | ArrayType) and _has_floats(given):
        raise TypeError(
            f"key column {name!r} has floating-point numbers inside {given.simpleString()}; make "
            "them columns of their own"
        )
    return column


def _has_floats(given: Any) -> bool:
    if isinstance(given, StructType):
        return any(_has_floats(f.dataType) for f in given.fields)
    if isinstance(given, ArrayType):
        return _has_floats(given.elementType)
    return isinstance(given, DoubleType | FloatType)
