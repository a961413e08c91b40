"""Values of expressions, and the rows for which an expression failed.

A failure belongs to a row: a division by zero does not count if CASE takes another branch.  So
kernels never raise for a whole column.  They record which rows failed, and why, and the caller
decides: `run` raises an error, and a stream makes the row late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array

__all__ = ["Failures", "Unusable", "Value", "as_mask", "checked", "plain", "reasons"]

#: The rows that failed, and the first reason of each.
Failures = tuple[tuple[Array, str], ...]


class Unusable(TypeError):
    """Raised for an expression that cannot be computed over columns of these types."""


@dataclass(frozen=True)
class Value:
    """A column, or one value for all rows (a scalar), and the rows that failed."""

    data: Any  # pa.Array or pa.Scalar
    failed: Failures = ()

    @property
    def type(self) -> pa.DataType:
        return self.data.type

    def array(self, rows: int) -> pa.Array:
        """The column, as long as the table."""
        if isinstance(self.data, pa.Scalar):
            return pa.repeat(self.data, rows)
        return self.data

    def within(self, mask: Array) -> Failures:
        """The failures among the rows that a mask selects."""
        return tuple((failed & mask, why) for failed, why in self.failed)


def plain(column: Any) -> pa.Array:
    """Convert a column to one array of a type that expressions know: no dictionaries, views or
    unsigned integers, and times in microseconds, as on Spark."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.array([], column.type)
    given = column.type
    if pa.types.is_dictionary(given):
        return plain(column.dictionary_decode())
    wanted = _PLAIN.get(given, given)
    if pa.types.is_timestamp(given) and given.unit != "us":
        if given.unit == "ns":
            column = pc.floor_temporal(column, unit="microsecond")
        wanted = pa.timestamp("us", given.tz)
    return column if wanted == given else column.cast(wanted)


_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.date64(): pa.date32(),
}


def as_mask(data: Any, rows: int) -> Array:
    """True where a boolean column is true."""
    if isinstance(data, pa.Scalar):
        return np.full(rows, bool(data.as_py()))
    return np.asarray(data.fill_null(False))


def checked(
    kernel: Callable[..., Any], inputs: Sequence[Any], rows: int, why: Callable[..., str]
) -> Value:
    """Apply a kernel to columns; a row that it refuses becomes null and is recorded as failed, with
    the reason that `why` returns for its values."""
    try:
        return Value(kernel(*inputs))
    except (pa.ArrowInvalid, OverflowError):
        pass
    arrays = [x if not isinstance(x, pa.Scalar) else pa.repeat(x, rows) for x in inputs]
    bad = np.zeros(rows, dtype=bool)
    noted: dict[str, Array] = {}

    def search(start: int, end: int) -> None:
        try:
            kernel(*(a.slice(start, end - start) for a in arrays))
        except (pa.ArrowInvalid, OverflowError):
            if end - start == 1:
                bad[start] = True
                reason = why(*(a[start].as_py() for a in arrays))
                noted.setdefault(reason, np.zeros(rows, dtype=bool))[start] = True
                return
            middle = (start + end) // 2
            search(start, middle)
            search(middle, end)

    search(0, rows)
    good = pa.array(~bad)
    held = [pc.if_else(good, a, pa.scalar(None, a.type)) for a in arrays]
    return Value(kernel(*held), tuple((mask, reason) for reason, mask in noted.items()))


def reasons(failed: Failures) -> dict[int, str]:
    """The failed rows, and the reason of each."""
    found: dict[int, str] = {}
    for mask, why in failed:
        for row in np.flatnonzero(mask).tolist():
            found.setdefault(row, why)
    return found
