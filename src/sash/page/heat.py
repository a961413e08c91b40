"""The heat map: one value of the largest keys over the last windows.

    key     window 1   window 2   …   window 120
    JFK        12         15              9          a cell has a value, and its revisions
    LGA         3         [4]             7          [corrected]

The size of a key is the sum of the absolute values in its cells.  Memory is bounded: the map keeps
the largest keys so far, twice as many as it shows.  A key that becomes large later lacks the cells
from before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..tables.arrow import flat, times_of
from ..tables.keys import key_codes
from ..windows import Aligned
from .cells import Cells

if TYPE_CHECKING:
    from ..kernels.columns import Array
    from ..query.query import Query

__all__ = ["KEYS", "WINDOWS", "Heat"]

#: The number of keys and windows that the map shows.
KEYS, WINDOWS = 40, 120
_LATE, _LATE_A_BATCH = 100, 1000


@dataclass
class _Key:
    """A key in the map: its number, its text, and its late rows."""

    number: int
    name: str
    late: deque[tuple[int, int, str]] = field(default_factory=lambda: deque(maxlen=_LATE))


class Heat:
    """The heat map of one value of a query.

    >>> heat = Heat(["k"], "n")
    >>> rows = {"k": ["a", "b"], "window_start": [0, 0], "n": [3, 5], "revision": [0, 0]}
    >>> heat.add(pa.table(rows))
    >>> heat.add(pa.table({"k": ["a"], "window_start": [0], "n": [9], "revision": [1]}))
    >>> heat.shown()["keys"], heat.shown()["values"], heat.shown()["corrected"]
    (['a', 'b'], [[9.0], [5.0]], [[0, 0]])
    """

    def __init__(
        self,
        by: Sequence[str],
        value: str,
        *,
        keys: int = KEYS,
        windows: int = WINDOWS,
    ) -> None:
        self._by, self.value, self._most, self._windows = list(by), value, keys, windows
        self._keys: dict[tuple[Any, ...], _Key] = {}
        self._numbered: dict[int, _Key] = {}
        self._starts = np.zeros(0, np.int64)  # of the windows that are shown, in order
        self._cells = Cells()
        self._next = 0

    @classmethod
    def of(cls, query: Query, results: pa.Schema) -> Heat | None:
        """The heat map of the first numeric value in a query's results.  None if there is no such
        value, or if windows are not aligned, because keys then have no windows in common."""
        if not isinstance(query.window, Aligned):
            return None
        for name in query.select:
            kind = results.field(name).type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind):
                return cls(query.by, name)
        return None

    def add(self, table: pa.Table) -> None:
        """Add rows of results; a repeated window adds a revision."""
        starts, _ = times_of(flat(table.column("window_start")))
        known = np.unique(np.append(starts, self._starts))
        self._starts = known[-self._windows :]
        rows = np.flatnonzero(starts >= self._starts[0])
        if len(rows) < table.num_rows:
            table, starts = table.take(pa.array(rows)), starts[rows]
        keys, codes, values = self._read(table)
        many = len(keys[0]) if keys else 1
        kept = self._kept(keys, np.bincount(codes, np.abs(np.nan_to_num(values)), many))
        numbers = np.full(many, -1)
        numbers[list(kept)] = [key.number for key in kept.values()]
        numbers = numbers[codes]
        taken = numbers >= 0
        revisions = np.zeros(len(taken), np.int64)
        if "revision" in table.column_names:
            revisions = flat(table.column("revision")).to_numpy(zero_copy_only=False)
        self._cells.add(numbers[taken], starts[taken], revisions[taken], values[taken])
        self._forget()

    def _read(self, table: pa.Table) -> tuple[list[pa.Array], Array, Array]:
        """The keys of a table, the number of each row's key, and the values as floats, NaN for
        none."""
        codes, keys = key_codes([flat(table.column(name)) for name in self._by], table.num_rows)
        values = pc.cast(flat(table.column(self.value)), pa.float64(), safe=False)
        numbers = values.to_numpy(zero_copy_only=False)
        return keys, codes, np.where(np.isfinite(numbers), numbers, np.nan)

    def _kept(self, keys: list[pa.Array], sizes: Array) -> dict[int, _Key]:
        """The keys of a batch that the map holds already, or that are among the batch's largest."""
        largest = np.argsort(-sizes, kind="stable")[: 2 * self._most]
        looked_at = np.union1d(largest, self._maybe_known(keys, len(sizes)))
        parts = [map(_hashable, key.take(pa.array(looked_at)).to_pylist()) for key in keys]
        large, kept = set(largest.tolist()), {}
        for code, name in zip(looked_at.tolist(), zip(*parts, strict=True) if parts else [()]):
            if name not in self._keys:
                if code not in large:
                    continue
                self._keys[name] = self._numbered[self._next] = _Key(self._next, _text(name))
                self._next += 1
            kept[code] = self._keys[name]
        return kept

    def _maybe_known(self, keys: list[pa.Array], many: int) -> Array:
        """The numbers of the batch's keys that the map may hold.  This drops most other keys
        quickly, because a batch may have a hundred thousand."""
        if len(keys) == 1 and (pa.types.is_integer(keys[0].type) or _is_text(keys[0].type)):
            known = pa.array([name[0] for name in self._keys], keys[0].type)
            return np.flatnonzero(np.asarray(pc.is_in(keys[0], value_set=known)))
        return np.arange(many)

    def _forget(self) -> None:
        """Drop windows that the map no longer shows, and keys beyond twice the shown number."""
        if len(self._keys) > 2 * self._most:
            sizes = self._cells.sizes(self._next)
            order = sorted(self._keys.items(), key=lambda item: -sizes[item[1].number])
            for name, key in order[2 * self._most :]:
                del self._keys[name], self._numbered[key.number]
        self._cells.keep(int(self._starts[0]), np.array(list(self._numbered), np.int64))

    def add_late(self, table: pa.Table) -> None:
        """Add late rows, with the spans that they missed; keep only the last of many."""
        table = table.slice(max(0, table.num_rows - _LATE_A_BATCH))
        bounds = [times_of(flat(table.column(name))) for name in ("missed_start", "missed_end")]
        (starts, none), (ends, _) = bounds
        for row, there, start, end in zip(table.to_pylist(), ~none, starts, ends, strict=True):
            key = self._keys.get(tuple(_hashable(row.get(name)) for name in self._by))
            if there and key is not None and (not len(self._starts) or end > self._starts[0]):
                added = ("missed", "missed_start", "missed_end")
                text = ", ".join(f"{k} = {v}" for k, v in row.items() if k not in added)
                key.late.append((int(start), int(end), text))

    def shown(self) -> dict[str, Any]:
        """The map, for JSON: keys, the starts of windows, a row of values for each key, and the
        positions of the corrected cells."""
        sizes = self._cells.sizes(self._next)
        keys = sorted(self._keys.values(), key=lambda key: (-sizes[key.number], key.name))
        keys = keys[: self._most]
        numbers = [key.number for key in keys]
        values, corrected = self._cells.shown(np.array(numbers, np.int64), self._starts)
        return {
            "value": self.value,
            "by": self._by,
            "keys": [key.name for key in keys],
            "numbers": numbers,
            "starts": self._starts.tolist(),
            "values": [[None if v != v else v for v in row] for row in values.tolist()],
            "corrected": corrected.tolist(),
        }

    def cell(self, key: int, start: int) -> dict[str, Any] | None:
        """A cell's revisions, and the late rows that missed it; None if the map does not hold
        it."""
        found, cell = self._numbered.get(key), self._cells.of(key, start)
        if found is None or not cell:
            return None
        missed = [text for first, end, text in found.late if first <= start < end]
        revisions = [{"revision": r, "value": v} for r, v in cell]
        return {"key": found.name, "start": start, "revisions": revisions, "late": missed}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _hashable(value: Any) -> Any:
    """A key's value for a dict; NaN is one key."""
    if isinstance(value, list | dict):
        return repr(value)
    return "NaN" if value != value else value


def _text(name: tuple[Any, ...]) -> str:
    """A key as a person reads it."""
    return ", ".join("null" if part is None else str(part) for part in name) or "all rows"
