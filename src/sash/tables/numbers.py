"""Turns the values of a table's column, of any type, into whole numbers, and numbers into values.

Compiled code knows only numbers, times and bools.  An operator that picks values works on their row
numbers; an operator that compares values works on their places in order.  Its answers are such
numbers too, by which sash finds the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_floats", "from_words", "places_in_order", "row_numbers", "unscaled"]


def row_numbers(column: pa.Array, first: int = 0) -> tuple[pa.Array, pa.Array]:
    """Number the rows from `first` on, with null where a value is null.  Return the numbers, and
    the values.

    >>> row_numbers(pa.array(["b", None, "a"]))[0].to_pylist()
    [0, None, 2]
    """
    return _numbers(np.arange(first, first + len(column)), column), column


def places_in_order(
    column: pa.Array, first: int = 0, known: pa.Array | None = None
) -> tuple[pa.Array, pa.Array]:
    """The place of each value among the distinct values, counted from `first` on, and the distinct
    values in order.  If `known`, which is in order, contains all values, the places are those in
    `known`: then no values need be compared.

    >>> numbers, values = places_in_order(pa.array(["b", None, "a", "b"]))
    >>> numbers.to_pylist(), values.to_pylist()
    ([1, None, 0, 1], ['a', 'b'])
    >>> numbers, values = places_in_order(pa.array(["b"]), known=pa.array(["a", "b"]))
    >>> numbers.to_pylist(), values.to_pylist()
    ([1], ['a', 'b'])
    """
    encoded = column.dictionary_encode()
    places, values = _places(encoded.dictionary, known)
    codes = encoded.indices
    filled = (codes.fill_null(0) if codes.null_count else codes).to_numpy(zero_copy_only=False)
    made = (places + first)[filled] if len(places) else np.zeros(len(column), np.int64)
    return _numbers(made, column), values


def _places(distinct: pa.Array, known: pa.Array | None) -> tuple[np.ndarray[Any, Any], pa.Array]:
    """The place in order of each distinct value, and the values in order."""
    if known is not None and len(known) <= 8 * len(distinct):  # each call reads all known values
        found = pc.index_in(distinct, value_set=known)
        if not found.null_count:
            return found.to_numpy().astype(np.int64), known
    order = pc.sort_indices(distinct).to_numpy()
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places, distinct.take(pa.array(order))


def unscaled(column: pa.Array) -> pa.Array:
    """Turn decimals of up to 18 digits into whole numbers: the decimal without its point.

    >>> unscaled(pa.array(["1.50", None, "-0.01"]).cast(pa.decimal128(5, 2))).to_pylist()
    [150, None, -1]
    """
    if not pa.types.is_decimal128(column.type):
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    words = np.frombuffer(column.buffers()[1] or b"", dtype="<i8")
    made = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
    return _numbers(np.ascontiguousarray(made, dtype=np.int64), column)


def as_floats(column: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Turn numbers into the closest floats, of 64 bits unless `kind` is another type.

    Arrow's own cast of decimals multiplies by a power of ten, and half of its results for
    decimal(15, 5) are not the closest floats.  A cast through text is correct.  If both are exact
    as floats, the quotient of the unscaled number and a power of ten is correct too, as it is
    rounded only once, and takes a twentieth of the time.

    >>> as_floats(pa.array(["0.35", None, "-4.35"]).cast(pa.decimal128(5, 2))).to_pylist()
    [0.35, None, -4.35]
    """
    kind = kind or pa.float64()
    given = column.type
    if not pa.types.is_decimal(given):
        return column.cast(kind, safe=False)
    if given.precision > 15 or not 0 <= given.scale <= 22 or kind != pa.float64():
        return column.cast(pa.string()).cast(kind)
    return pc.divide(unscaled(column).cast(kind), 10.0**given.scale)


def from_words(words: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Make decimals of a type from a struct of their upper words, and their lower 62 bits.

    >>> words = pa.array([{"high": 0, "low": 150}, None, {"high": -1, "low": 2**62 - 1}])
    >>> from_words(words, pa.decimal128(5, 2)).to_pylist()
    [Decimal('1.50'), None, Decimal('-0.01')]
    """
    high, low = (
        part.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        for part in words.flatten()
    )
    made = np.empty((len(words), 2), dtype="<i8")
    made[:, 0] = (high << 62) | low
    made[:, 1] = high >> 2
    valid = None
    if words.null_count:
        valid = words.is_valid().buffers()[1]
    return pa.Array.from_buffers(wanted, len(words), [valid, pa.py_buffer(made)])


def _numbers(made: np.ndarray[tuple[int], np.dtype[np.int64]], column: pa.Array) -> pa.Array:
    mask = np.asarray(column.is_null()) if column.null_count else None
    return pa.array(made, pa.int64(), mask=mask)
