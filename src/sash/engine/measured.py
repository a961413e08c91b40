"""The columns that windows of a stream measure: which of their values cannot be used."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..state.measures import values_of, values_range
from ..tables.arrow import flat, one_array, times_of
from ..windows import Driven, Ticked, Window
from ..windows.contract import Change

__all__ = ["Measured"]


class Measured:
    """The columns whose changes are measured.  Whole numbers that are so far apart that their
    difference leaves int64 have no change, so a row with such a value cannot be used."""

    def __init__(self, window: Window) -> None:
        assert isinstance(window, Driven | Ticked)
        given = (window.keeps, window.fires if isinstance(window, Driven) else None)
        changes = [measure for measure in given if isinstance(measure, Change)]
        self._changes = {change.column: change for change in changes}
        self._ranges: dict[str, tuple[int, int]] = {}  # of the values that are accepted

    def __bool__(self) -> bool:
        """True if there is something to measure."""
        return bool(self._changes)

    def unusable(self, table: pa.Table, time: str, watermark: int | None) -> dict[int, str]:
        """Rows whose values cannot be used, and why."""
        reasons: dict[int, str] = {}
        if not self._changes:
            return reasons
        times, bad = times_of(one_array(table.column(time)))
        may = ~bad if watermark is None else ~bad & (times >= watermark)
        for name, change in self._changes.items():
            column = flat(table.column(name))
            if pa.types.is_uint64(column.type):
                large = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())).fill_null(False)
                rows = np.flatnonzero(np.asarray(large))
                reasons |= dict.fromkeys(rows.tolist(), f"column {name!r}: it does not fit int64")
                column = pc.if_else(large, pa.scalar(None, column.type), column)
            values, there = values_of(change, column)
            for row in self._too_far(name, values, there & may):
                reasons[row] = f"column {name!r}: it is too far from other values for int64"
        return reasons

    def _too_far(self, name: str, values: Array, there: Array) -> list[int]:
        """Rows whose values are too far from those of earlier ones."""
        low, high = self._joined(name, values, there)
        if high - low < 2**63:
            return []
        found = []
        within = self._ranges.get(name)
        for row in np.flatnonzero(there).tolist():
            value = int(values[row])
            least, most = within or (value, value)
            if max(most, value) - min(least, value) >= 2**63:
                found.append(row)
            else:
                within = min(least, value), max(most, value)
        return found

    def _joined(self, name: str, values: Array, there: Array) -> tuple[int, int]:
        """The least and the greatest value with these."""
        low, high = values_range(values, there)
        if name not in self._ranges or not there.any():
            return self._ranges.get(name, (low, high))
        return min(low, self._ranges[name][0]), max(high, self._ranges[name][1])

    def note(self, table: pa.Table) -> None:
        """Rows are accepted."""
        for name, change in self._changes.items():
            values, there = values_of(change, flat(table.column(name)))
            if there.any():
                self._ranges[name] = self._joined(name, values, there)

    def dump(self) -> bytes:
        """All of it as bytes."""
        return json.dumps(self._ranges).encode()

    def load(self, data: bytes) -> None:
        """Take back what `dump` gave."""
        self._ranges = {name: (low, high) for name, (low, high) in json.loads(data).items()}
