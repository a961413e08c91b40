"""Turns the values that users pass into columns for kernels, and output columns into answers.

Answers come in the kind of container that the user passed: a numpy array for a numpy array, Arrow
for Arrow, a list for a list.  A null is None in a list and null in Arrow; in numpy it is NaN in a
float array, and any other array with nulls is a masked array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .layout import Answer

__all__ = [
    "Column",
    "Table",
    "answers_from_columns",
    "answers_from_list",
    "arrow_words",
    "plain_words",
    "read",
    "to_micros",
]

Array = np.ndarray[Any, Any]

_DTYPES = {"int64": np.int64, "float64": np.float64, "bool": np.uint8, "timestamp": np.int64}


def joined(values: Array, ranges: Sequence[tuple[int, int]]) -> Array:
    """Join ranges of an array, one after the other.  A single range is a view, without a copy."""
    parts = [values[first:last] for first, last in ranges]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def plain_words(column: pa.Array) -> Array | None:
    """The words of a column of 64-bit values without nulls, as integers and without a copy; None if
    it has no rows, or nulls.  Unlike `to_numpy`, this keeps the interpreter's lock, so that no
    other thread can take it and let this one wait.

    >>> plain_words(pa.array([7, 8, 9]).slice(1))
    array([8, 9])
    """
    data = column.buffers()[1]
    if data is None or not len(column) or column.null_count:
        return None
    return np.frombuffer(data, np.int64, len(column), 8 * column.offset)


def arrow_words(data: Array, kind: pa.DataType) -> pa.Array:
    """An Arrow array of a type of 64 bits, without nulls, that shares the memory of the data.
    Unlike `pa.array`, this keeps the interpreter's lock; see `plain_words`.

    >>> arrow_words(np.array([1, 2]), pa.timestamp("us")).type
    TimestampType(timestamp[us])
    """
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)], null_count=0)


@dataclass(slots=True)
class Column:
    """One input column: typed data with validity bytes, or Python values."""

    type: str
    data: Any
    valid: Array | None = None

    def as_type(self, wanted: str) -> Column:
        """Convert the column to another type, which must hold all its values exactly."""
        if wanted == self.type:
            return self
        if wanted == "float64" and self.type in ("int64", "bool"):
            return Column(wanted, np.ascontiguousarray(self.data, dtype=np.float64), self.valid)
        if wanted == "int64" and self.type == "bool":
            return Column(wanted, np.ascontiguousarray(self.data, dtype=np.int64), self.valid)
        if self.type == "object":
            return _column_from_list(self.data, wanted)
        raise TypeError(
            f"this window holds {wanted} values, and a column of {self.type} was given; convert "
            f"it, or make the window with operator.of({self.type!r})"
        )

    def extremes(self) -> tuple[int, int]:
        """The least and the greatest value of a column of integers without nulls, found in one
        pass."""
        found = pc.min_max(pa.array(self.data))
        return found["min"].as_py(), found["max"].as_py()

    def take(self, order: Array) -> Column:
        """The rows with these numbers, in this order."""
        if self.type == "object":
            return Column(self.type, [self.data[i] for i in order.tolist()])
        return Column(
            self.type, self.data[order], None if self.valid is None else self.valid[order]
        )

    def runs(self, ranges: Sequence[tuple[int, int]]) -> Column:
        """Join ranges of rows of typed data, one after the other.  A single range is a view."""
        valid = None if self.valid is None else joined(self.valid, ranges)
        return Column(self.type, joined(self.data, ranges), valid)

    def as_list(self) -> list[Any]:
        """The values as Python objects, None for null."""
        if self.type == "object":
            return list(self.data)
        if self.type == "timestamp":
            values: list[Any] = list(self.data.view("M8[us]"))
        else:
            values = (self.data.astype(bool) if self.type == "bool" else self.data).tolist()
        if self.valid is None:
            return values
        return [v if ok else None for v, ok in zip(values, self.valid.tolist(), strict=True)]


@dataclass(slots=True)
class Table:
    """Input columns of one length, and the kind of container in which the user passed them."""

    columns: tuple[Column, ...]
    kind: str  # numpy, arrow or list
    rows: int

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(c.type for c in self.columns)

    def take(self, order: Array) -> Table:
        """The rows with these numbers, in this order."""
        return Table(tuple(c.take(order) for c in self.columns), self.kind, len(order))

    def runs(self, ranges: Sequence[tuple[int, int]]) -> Table:
        """Join ranges of rows, one after the other.  A single range is a view, without a copy."""
        columns = tuple(c.runs(ranges) for c in self.columns)
        return Table(columns, self.kind, sum(last - first for first, last in ranges))


def read(values: Any, width: int) -> Table:
    """Turn a user's values into a table: one array-like, or for several columns a tuple of
    array-likes."""
    if width == 1:
        given = [values]
    else:
        if not isinstance(values, tuple | list) or len(values) != width:
            raise TypeError(
                f"this operator reads {width} columns: give a tuple of {width} arrays, not "
                f"{type(values).__name__}"
            )
        given = list(values)
    made = [_read(v) for v in given]
    if width == 1:
        return Table((made[0][0],), made[0][1], len(made[0][0].data))
    lengths = {len(c.data) for c, _ in made}
    if len(lengths) > 1:
        raise ValueError(f"the columns have different lengths: {sorted(lengths)}")
    return Table(tuple(c for c, _ in made), made[0][1], lengths.pop())


def _read(values: Any) -> tuple[Column, str]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return _column_from_arrow(values), "arrow"
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise TypeError(f"values must have one dimension, not shape {values.shape}")
        return _column_from_numpy(values), "numpy"
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return Column("object", list(values)), "list"
    raise TypeError(
        f"values must be a numpy array, an Arrow array or a list, not {type(values).__name__}; "
        "a pandas or Polars series gives one with .to_numpy() or .to_arrow()"
    )


def _column_from_numpy(values: Array) -> Column:
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        valid = np.ascontiguousarray(~mask, dtype=np.uint8) if mask.any() else None
        values = values.data
    kind = values.dtype.kind
    if kind == "u" and values.dtype.itemsize == 8 and (values > np.uint64(2**63 - 1)).any():
        raise OverflowError("a uint64 value does not fit int64; convert the column to float64")
    if kind == "M":
        micros = floor_micros(values)
        empty = np.isnat(values)
        if empty.any():
            valid = np.ascontiguousarray(~empty & (True if valid is None else valid.astype(bool)))
            valid = valid.view(np.uint8)
        return Column("timestamp", micros, valid)
    if kind == "m":
        raise TypeError(
            "values cannot be lengths of time (timedelta64); give them as integers of a unit: "
            "values.astype('m8[us]').astype('int64')"
        )
    if kind in "iufb":
        type_ = {"i": "int64", "u": "int64", "f": "float64", "b": "bool"}[kind]
        return Column(type_, np.ascontiguousarray(values, dtype=_DTYPES[type_]), valid)
    items = values.tolist()
    if valid is not None:
        items = [v if ok else None for v, ok in zip(items, valid.tolist(), strict=True)]
    return Column("object", items)


def floor_micros(values: Array) -> Array:
    """Turn datetime64 of any unit into int64 microseconds; round finer units down."""
    unit = np.datetime_data(values.dtype)[0]
    if unit in ("ns", "ps", "fs", "as"):
        finer = values.astype("M8[ns]").view(np.int64)
        return np.ascontiguousarray(np.floor_divide(finer, 1000))
    made = values.astype("M8[us]")
    if (made.astype(values.dtype) != values)[~np.isnat(values)].any():
        raise OverflowError("a time does not fit int64 microseconds")
    return np.ascontiguousarray(made.view(np.int64))


def _column_from_arrow(values: pa.Array) -> Column:
    valid = None
    if values.null_count:
        valid = np.ascontiguousarray(values.is_valid().to_numpy(zero_copy_only=False))
        valid = valid.view(np.uint8)
    t = values.type
    if t == pa.int64() or t == pa.float64():
        words = plain_words(values)
        if words is not None:
            whole = t == pa.int64()
            return Column("int64" if whole else "float64", words if whole else words.view(float))
    if pa.types.is_timestamp(t):
        plain = _filled(values.cast(pa.int64()), 0)
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(t.unit)
        if scale and scale > 1 and len(plain) and int(np.abs(plain).max()) > (2**63 - 1) // scale:
            raise OverflowError("a time does not fit int64 microseconds")
        micros = plain
        if scale != 1:
            micros = np.floor_divide(plain, 1000) if scale is None else plain * scale
        return Column("timestamp", np.ascontiguousarray(micros, dtype=np.int64), valid)
    if pa.types.is_boolean(t):
        plain = _filled(values, False)
        return Column("bool", np.ascontiguousarray(plain, dtype=np.uint8), valid)
    if pa.types.is_integer(t):
        plain = _filled(values.cast(pa.int64()), 0)
        return Column("int64", np.ascontiguousarray(plain, dtype=np.int64), valid)
    if pa.types.is_floating(t):
        plain = _filled(values.cast(pa.float64()), 0.0)
        return Column("float64", np.ascontiguousarray(plain, dtype=np.float64), valid)
    return Column("object", values.to_pylist())


def _filled(values: pa.Array, null: Any) -> Array:
    """An Arrow array's values as a numpy array, with `null` in the places of nulls."""
    made: Array = (values.fill_null(null) if values.null_count else values).to_numpy(
        zero_copy_only=False
    )
    return made


def _column_from_list(items: list[Any], wanted: str) -> Column:
    """Turn Python values into a typed column.  The error for a value that does not fit names it."""
    data = np.zeros(len(items), dtype=_DTYPES[wanted])
    valid = np.ones(len(items), dtype=np.uint8)
    for i, item in enumerate(items):
        if item is None:
            valid[i] = 0
        else:
            data[i] = checked_value(item, wanted)
    return Column(wanted, data, None if valid.all() else valid)


def checked_value(value: Any, wanted: str) -> Any:
    """Turn a Python value into the number that a column of a type stores, or raise."""
    if wanted == "timestamp":
        return to_micros(value)
    fits: Any = {"float64": (int, float, np.number), "int64": (int, np.integer), "bool": ()}
    if not isinstance(value, (*fits[wanted], np.bool_, bool)):
        raise TypeError(
            f"this window holds {wanted} values, and {value!r} ({type(value).__name__}) was "
            "given; convert it, or make the window with operator.of(…) for another type"
        )
    number: Any = value
    if wanted == "float64":
        return float(number)
    if wanted == "int64" and not -(2**63) <= int(number) < 2**63:
        raise OverflowError(f"{number} does not fit int64; use a window over float64")
    return int(number)


def to_micros(value: Any) -> int:
    """Turn a time into int64 microseconds since 1970 in UTC.  A time without a zone is in UTC."""
    if isinstance(value, np.datetime64):
        return int(floor_micros(np.array([value]))[0])
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = at - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if not -(2**63) <= int(value) < 2**63:
            raise OverflowError(f"time {value} does not fit int64")
        return int(value)
    raise TypeError(f"{value!r} is no time; give a datetime, a numpy datetime64 or microseconds")


def answers_from_columns(
    answer: Answer, columns: list[tuple[Array, Array | None]], kind: str
) -> Any:
    """Turn output columns, in order, into answers in a container of this kind."""
    if answer.fields:
        made = [(n, answers_from_columns(a, columns, kind)) for n, a in answer.fields]
        if kind == "numpy":
            return tuple(v for _, v in made)
        if kind == "arrow":
            mask = made[0][1].is_null() if answer.nullable else None
            return pa.StructArray.from_arrays(
                [v for _, v in made], names=[n for n, _ in made], mask=mask
            )
        rows = zip(*(v for _, v in made), strict=True)
        return [None if answer.nullable and row[0] is None else row for row in rows]
    data, valid = columns.pop(0)
    # as bytes, numpy would first make them into truth values
    present = None if valid is None else valid.view(bool)
    present = None if present is None or present.all() else present
    if answer.type == "bool":
        data = data.astype(bool)
    elif answer.type == "timestamp":
        data = data.view("M8[us]")
    if kind == "arrow":
        if data.ndim == 2:
            flat_values = pa.array(data.reshape(-1))
            return pa.FixedSizeListArray.from_arrays(flat_values, data.shape[1])
        return _arrow_array(data, present)
    if kind == "numpy":
        if present is None:
            return data
        if answer.type == "float64":
            return np.where(present, data, np.nan)
        return np.ma.MaskedArray(data, mask=~present)
    if data.ndim == 2:
        return list(data)
    items = list(data) if answer.type == "timestamp" else data.tolist()
    if present is not None:
        items = [v if ok else None for v, ok in zip(items, present.tolist(), strict=True)]
    return items


def _arrow_array(data: Array, present: Array | None) -> pa.Array:
    """Make an Arrow array that shares the memory of the data, if their type allows it."""
    if data.dtype == bool:
        return pa.array(data, mask=None if present is None else ~present)
    kind = pa.from_numpy_dtype(data.dtype)
    if present is None:
        return arrow_words(data, kind)
    bits = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(kind, len(data), [bits, pa.py_buffer(data)])


def answers_from_list(items: list[Any], kind: str, fields: Sequence[str] = ()) -> Any:
    """Turn answers, which are Python values, into a container of this kind."""
    if kind == "list":
        return items
    first = next((x for x in items if x is not None), None)
    if isinstance(first, tuple) and fields:
        width = len(first)
        columns = [[None if x is None else x[i] for x in items] for i in range(width)]
        made = [answers_from_list(c, kind) for c in columns]
        if kind == "numpy":
            return tuple(made)
        mask = pa.array([x is None for x in items])
        return pa.StructArray.from_arrays(made, names=list(fields), mask=mask)
    if kind == "arrow":
        return pa.array(items, from_pandas=False)
    return _numpy_from_list(items, first)


def _numpy_from_list(items: list[Any], first: Any) -> Array:
    """Make a typed array if one type holds all values, else an array of objects."""
    if isinstance(first, np.ndarray):
        return np.stack(items)
    types = {type(x) for x in items if x is not None}
    empty = np.array([x is None for x in items])
    if types and types <= {float, int, np.float64} and not types <= {int}:
        return np.array([np.nan if x is None else x for x in items], dtype=np.float64)
    for kinds, dtype in (({bool, np.bool_}, bool), ({int, np.int64}, np.int64)):
        if types and types <= kinds and all(-(2**63) <= x < 2**63 for x in items if x is not None):
            data = np.array([0 if x is None else x for x in items], dtype=dtype)
            return np.ma.MaskedArray(data, mask=empty) if empty.any() else data
    if types == {np.datetime64}:
        return np.array([np.datetime64("NaT") if x is None else x for x in items], dtype="M8[us]")
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made
