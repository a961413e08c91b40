"""The state of keys as a table with one row for each key: values of the key, and lists of rows.

key     known            rows of the key, as lists
"a"     3   -1           [5, 8]    [b"…", b"…"]
"b"     1   12           []        []
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..tables.arrow import one_array

__all__ = ["ByKey", "Listed"]


@dataclass(frozen=True)
class Listed:
    """Rows of keys: the number of each key's rows, and their columns, one key after the other."""

    counts: Array
    columns: Sequence[pa.Array]


@dataclass(frozen=True)
class ByKey:
    """The columns of keys, columns with a value for each key (`known`), and the rows of each key,
    of one or more kinds (`lists`).

    >>> one = Listed(np.array([2, 0]), [pa.array([5, 8])])
    >>> made = ByKey([pa.array(["a", "b"])], [pa.array([3, 1])], [one])
    >>> back = ByKey.of(made.table(), 1, 1, [1])
    >>> back.known[0].to_pylist(), back.lists[0].counts, back.lists[0].columns[0].to_pylist()
    ([3, 1], array([2, 0]), [5, 8])
    """

    keys: Sequence[pa.Array]
    known: Sequence[pa.Array]
    lists: Sequence[Listed]

    def table(self) -> pa.Table:
        """The table with a row for each key."""
        made = [*self.keys, *self.known]
        for some in self.lists:
            ends = pa.array(np.append(0, np.cumsum(some.counts)), pa.int32())
            made += [pa.ListArray.from_arrays(ends, column) for column in some.columns]
        return pa.table(made, names=[str(i) for i in range(len(made))])

    @classmethod
    def of(cls, table: pa.Table, keys: int, known: int, lists: Sequence[int]) -> ByKey:
        """Read a table that `table` returned.  `keys` and `known` are the numbers of these columns,
        `lists` the number of columns of each kind of rows."""
        columns = [one_array(column) for column in table.columns]
        at, made = keys + known, []
        for many in lists:
            some = columns[at : at + many]
            counts = pc.list_value_length(some[0]).to_numpy().astype(np.int64)
            made.append(Listed(counts, [column.flatten() for column in some]))
            at += many
        return cls(columns[:keys], columns[keys : keys + known], made)
