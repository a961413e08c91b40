"""Names of SQL types, as Spark spells them."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["PLAIN"]

#: The names that mean the same type in a query and in a list of columns; `timestamp` does not.
PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
}
