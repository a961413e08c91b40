"""The rows that a step emits for several queries, as columns of all of them.

    codes    k1 k1 k2 | k1 k2 k2 | …        keys by number, windows by number, answers
             fast       daily               each query has a range of the rows

Keys, and the starts and ends of windows, are computed for all rows at once, which costs little for
each query.  The table of one query is a range of the table of all queries, without a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..slicing.cycles import Cycles
from ..tables.arrow import as_time
from ..windows.contract import Clock
from .answers import told

__all__ = ["SharedRows"]

_Sized: TypeAlias = tuple[tuple[str, ...], dict[str, pa.Array], dict[int, dict[str, str]]]


@dataclass
class SharedRows:
    """The rows of several queries.  The query at place q has the rows from bounds[q] up to
    bounds[q + 1].  `failed` has the reason for each answer that does not exist, by row and name."""

    keys: list[pa.Array]  # a column for each key column
    codes: Array  # the place of each row's key in those columns
    windows: Array  # numbers
    reasons: Array
    covered: Array  # the last window with the same slices, if only changes are wanted
    values: dict[str, pa.Array]
    failed: dict[int, dict[str, str]]
    bounds: list[int]
    clock: Clock
    cycles: Cycles  # of the windows of each query
    # other sizes of a query: the columns of its result, their answers by name, and reasons
    sized: dict[int, list[_Sized]] = field(default_factory=dict)
    _shared: list[pa.Array] | None = None
    _tables: dict[tuple[tuple[str, str], ...], pa.Table] = field(default_factory=dict)

    def own(self, query: int) -> slice:
        """The rows of a query."""
        return slice(self.bounds[query], self.bounds[query + 1])

    def values_of(self, query: int, columns: Mapping[str, str]) -> Mapping[str, pa.Array]:
        """The answers of one query by column; `columns` has the name of each column's values."""
        made = _Values(self, query, columns)
        if query not in self.sized:
            return made
        sized = {n: values[columns[n]] for names, values, _ in self.sized[query] for n in names}
        return {**made, **sized}

    def failed_of(self, query: int, columns: Mapping[str, str]) -> dict[int, str]:
        """For each row of one query that lacks answers, why."""
        if not self.failed and not self.sized:
            return {}
        own, sized = self.own(query), self.sized.get(query, ())
        found = {r - own.start: why for r, why in self.failed.items() if own.start <= r < own.stop}
        others = {name: reasons for names, _, reasons in sized for name in names}
        made: dict[int, dict[str, str]] = {}
        for column, of in columns.items():
            for row, reasons in others.get(column, found).items():
                if of in reasons:
                    made.setdefault(row, {})[column] = reasons[of]
        return {row: told(reasons) for row, reasons in made.items()}

    def table(
        self, query: int, by: Sequence[str], columns: Mapping[str, str], time: pa.DataType
    ) -> pa.Table:
        """The table of one query; `columns` has the name of each column's values."""
        layout = tuple(columns.items())  # all queries have the same keys
        if layout not in self._tables:
            names = [*by, "window_start", "window_end", *columns]
            arrays = [*self._keys_and_spans(time), *(self.values[of] for of in columns.values())]
            self._tables[layout] = pa.Table.from_arrays(arrays, names)
        begin = self.bounds[query]
        return self._tables[layout].slice(begin, self.bounds[query + 1] - begin)

    def _keys_and_spans(self, time: pa.DataType) -> list[pa.Array]:
        """The columns that all queries have: keys, and the starts and ends of windows."""
        if self._shared is None:
            at = pa.array(self.codes)
            edges = self.cycles.spans(np.diff(self.bounds), self.windows)
            self._shared = [column.take(at) for column in self.keys]
            self._shared += [as_time(self.clock.time(edge), time) for edge in edges]
        return self._shared


class _Values(Mapping[str, pa.Array]):
    """The answers of one query by column, sliced from those of all queries only when they are read:
    for most queries, only the table is."""

    def __init__(self, rows: SharedRows, query: int, columns: Mapping[str, str]) -> None:
        self._rows, self._query, self._columns = rows, query, columns

    def __getitem__(self, column: str) -> pa.Array:
        return self._rows.values[self._columns[column]][self._rows.own(self._query)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
