"""Values of any type as whole numbers, over a whole table.

Compiled code knows numbers, times and bools.  An operator that only picks a value needs to know no
more of it than its row; one that compares values needs their places in order.  Its answers are such
numbers too, and the values come back by them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["places_in_order", "row_numbers"]


def row_numbers(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The number of each row, null where a value is, and the values by number.

    >>> row_numbers(pa.array(["b", None, "a"]))[0].to_pylist()
    [0, None, 2]
    """
    return _numbers(np.arange(len(column)), column), column


def places_in_order(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The place of each value among the distinct ones, and these in order.

    >>> numbers, values = places_in_order(pa.array(["b", None, "a", "b"]))
    >>> numbers.to_pylist(), values.to_pylist()
    ([1, None, 0, 1], ['a', 'b'])
    """
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    codes = encoded.indices
    filled = (codes.fill_null(0) if codes.null_count else codes).to_numpy(zero_copy_only=False)
    made = places[filled] if len(places) else np.zeros(len(column), np.int64)
    return _numbers(made, column), encoded.dictionary.take(pa.array(order))


def _numbers(made: np.ndarray[tuple[int], np.dtype[np.int64]], column: pa.Array) -> pa.Array:
    mask = np.asarray(column.is_null()) if column.null_count else None
    return pa.array(made, pa.int64(), mask=mask)
