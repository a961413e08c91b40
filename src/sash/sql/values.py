"""Columns of values that are computed by expressions, and the rows for which that failed.

A failure belongs to a row: a division by zero is none where CASE takes another branch.  So kernels
never raise for a whole column; they note which rows failed, and why, and the caller decides: an
error over a table, a late row on a stream.
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

#: Rows that failed, and why: the first reason of a row counts.
Failures = tuple[tuple[Array, str], ...]


class Unusable(TypeError):
    """An expression that cannot be computed over columns of these types."""


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
        """The failures of the rows that a mask chooses."""
        return tuple((failed & mask, why) for failed, why in self.failed)


def plain(column: Any) -> pa.Array:
    """A column as one array of one of the types that expressions know: no dictionaries, views or
    unsigned integers, and times in microseconds, as Spark has them."""
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
    """Where a boolean column is true."""
    if isinstance(data, pa.Scalar):
        return np.full(rows, bool(data.as_py()))
    return np.asarray(data.fill_null(False))


def checked(
    kernel: Callable[..., Any], inputs: Sequence[Any], rows: int, why: Callable[..., str]
) -> Value:
    """What a kernel makes of columns; rows that it refuses are null and noted, with the reason that
    `why` gives for their values."""
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
    """The rows that failed, and why."""
    found: dict[int, str] = {}
    for mask, why in failed:
        for row in np.flatnonzero(mask).tolist():
            found.setdefault(row, why)
    return found
