"""Names of types in SQL, as Spark has them."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["PLAIN"]

#: Those that mean the same in a query and in a list of columns: timestamps do not.
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
