"""Types of columns as operators know them."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["column_type", "value_type"]


def column_type(given: pa.DataType) -> str:
    """What operators call the type of an Arrow column."""
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
    """The type of a column's values, however they are encoded."""
    return given.value_type if pa.types.is_dictionary(given) else given
