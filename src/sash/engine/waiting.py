"""Rows that wait for the watermark, with all their columns.

    older        newer
    [........]                 runs, each in order of time
       [....]                  the rows that the watermark has passed are at the front of each run
          [..]

A new run is joined with the runs before it that are at most twice as long, so there are few runs,
and a row seldom moves to another run.  So the cost of a push depends on its own rows and on the
rows that the watermark passes, not on how many rows wait.  The rows of the last pushes are not in a
run yet, so that small pushes make one run together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.arrow import from_ipc, one_array, times_of, to_ipc

__all__ = ["Waiting"]

_PUSHES = 32  # as many make a run
_FIRST = pa.array([0])
_NO_SPAN = 2**62, -(2**62)


@dataclass(frozen=True)
class _Part:
    """A run: rows in order of time, their times, and how many rows came before each.  The rows up
    to `begin` have left."""

    table: pa.Table
    times: Array
    numbers: Array
    begin: int = 0

    def __len__(self) -> int:
        return len(self.times) - self.begin

    def within(self, low: int, high: int) -> bool:
        """True if times of the run may lie from `low` to `high`, both included."""
        return bool(self.times[self.begin] <= high and self.times[-1] >= low)

    def rest(self) -> _Part:
        """The run without the rows that have left."""
        return _Part(
            self.table.slice(self.begin), self.times[self.begin :], self.numbers[self.begin :]
        )


class Waiting:
    """The waiting rows of a stream."""

    def __init__(self, schema: pa.Schema, time: str) -> None:
        self._schema, self._time = schema, time
        self._none = schema.empty_table()
        self._parts: list[_Part] = []
        self._last: list[_Part] = []  # the rows of the last pushes, each push in order of time
        self._span = _NO_SPAN  # the least and the greatest of their times
        self.arrived = 0  # how many rows have come

    def __deepcopy__(self, memo: Any) -> Waiting:
        """A copy that shares the runs, which never change."""
        made = Waiting(self._schema, self._time)
        made._parts, made.arrived = list(self._parts), self.arrived
        made._last, made._span = list(self._last), self._span
        return made

    def __len__(self) -> int:
        return sum(map(len, self._parts)) + sum(map(len, self._last))

    def pass_by(
        self, table: pa.Table, times: Array, watermark: int | None
    ) -> tuple[pa.Table, Array]:
        """Add new rows, then remove and return all rows that the watermark has passed, in order of
        arrival, with how many rows came before each."""
        before = self._take(watermark)
        numbers = np.arange(self.arrived, self.arrived + len(times))
        self.arrived += len(times)
        over = np.zeros(len(times), bool) if watermark is None else times < watermark
        if not over.any():
            self._add(_Part(table, times, numbers))
            table, numbers = table.slice(0, 0), numbers[:0]
        elif not over.all():
            table, rest = table.filter(pa.array(over)), table.filter(pa.array(~over))
            self._add(_Part(rest, times[~over], numbers[~over]))
            numbers = numbers[over]
        if before is None:
            return table.combine_chunks(), numbers
        rows = pa.concat_tables([before.table, table])
        return rows.combine_chunks(), np.append(before.numbers, numbers)

    def _add(self, part: _Part) -> None:
        if len(part):
            part = _in_time([part])
            (low, high), times = self._span, part.times
            self._span = min(low, int(times[0])), max(high, int(times[-1]))
            self._last.append(part)
        if len(self._last) == _PUSHES:
            self._make_run()

    def _make_run(self) -> None:
        """Make the rows of the last pushes a run."""
        if not self._last:
            return
        self._parts.append(_in_time(self._last))
        self._last, self._span = [], _NO_SPAN
        while len(self._parts) > 1 and len(self._parts[-2]) <= 2 * len(self._parts[-1]):
            self._parts[-2:] = [_in_time(self._parts[-2:])]

    def _take(self, watermark: int | None) -> _Part | None:
        """Remove and return the rows that the watermark has passed, in order of arrival."""
        if watermark is None or not self._any_within(-(2**62), watermark - 1):
            return None
        taken: list[_Part] = []
        left: list[_Part] = []
        for part in self._parts:
            end = int(np.searchsorted(part.times, watermark))
            if end > part.begin:
                span = slice(part.begin, end)
                table = part.table.slice(part.begin, end - part.begin)
                taken.append(_Part(table, part.times[span], part.numbers[span]))
                part = _Part(part.table, part.times, part.numbers, end)
                if 2 * end > len(part.times) and len(part):  # free the rows that have left
                    part = _in_time([part])
            if len(part):
                left.append(part)
        self._parts = left
        if len(taken) == 1 and len(taken[0]) == 1:
            return taken[0]
        numbers = np.concatenate([part.numbers for part in taken])
        order = np.argsort(numbers)
        rows = pa.concat_tables([part.table for part in taken]).take(pa.array(order))
        return _Part(rows, numbers[:0], numbers[order])

    def _any_within(self, low: int, high: int) -> bool:
        """True if rows may have times from `low` to `high`, both included; they are then in
        runs."""
        if self._span[0] <= high and self._span[1] >= low:
            self._make_run()
        return any(part.within(low, high) for part in self._parts)

    def all(self) -> tuple[pa.Table, Array]:
        """All waiting rows, in order of arrival, and how many rows came before each."""
        return self.between(-(2**62), 2**62)

    def between(self, low: int, high: int) -> tuple[pa.Table, Array]:
        """The waiting rows with times from `low` to `high`, both included, in order of arrival, and
        how many rows came before each."""
        found = []
        if not self._any_within(low, high):
            return self._none, np.zeros(0, np.int64)
        for part in self._parts:
            begin = max(int(np.searchsorted(part.times, low)), part.begin)
            end = int(np.searchsorted(part.times, high, side="right"))
            if end > begin:
                found.append((part.table.slice(begin, end - begin), part.numbers[begin:end]))
        numbers = np.concatenate([np.zeros(0, np.int64), *(part for _, part in found)])
        order = np.argsort(numbers)
        rows = pa.concat_tables([self._none, *(table for table, _ in found)])
        return rows.take(pa.array(order)), numbers[order]

    def restore(self, rows: pa.Table, numbers: Array, arrived: int) -> None:
        """Replace the waiting rows.  `numbers` has how many rows came before each, `arrived` how
        many rows have come in all."""
        self.arrived, self._parts = arrived, []
        self._last, self._span = [], _NO_SPAN
        if len(numbers):
            order = np.argsort(numbers)
            rows = rows.take(pa.array(order))
            times = times_of(one_array(rows.column(self._time)))[0]
            self._parts = [_in_time([_Part(rows, times, numbers[order])])]

    @property
    def nbytes(self) -> int:
        """How many bytes the rows take."""
        runs = [*self._parts, *self._last]
        return sum(part.table.nbytes + 16 * len(part.times) for part in runs)

    def dump(self) -> list[bytes]:
        """Write all rows as bytes."""
        parts = [part.rest() for part in (*self._parts, *self._last)]
        numbers = [part.numbers for part in parts] or [np.zeros(0, np.int64)]
        tables = [self._none, *(part.table for part in parts)]
        count = np.array([self.arrived])
        kept = np.concatenate([count, *numbers]).astype("<i8")
        return [to_ipc(pa.concat_tables(tables)), kept.tobytes()]

    def load(self, blobs: list[bytes]) -> None:
        """Restore the rows from the bytes of `dump`."""
        rows = from_ipc(blobs[0]).cast(self._schema)
        arrived, *_ = numbers = np.frombuffer(blobs[1], "<i8").astype(np.int64)
        self.arrived = int(arrived)
        times = times_of(one_array(rows.column(self._time)))[0]
        self._last, self._span = [], _NO_SPAN
        self._parts = [_in_time([_Part(rows, times, numbers[1:])])] if rows.num_rows else []


def _in_time(parts: list[_Part]) -> _Part:
    """Join runs into one, in order of time, without the rows that have left, in memory of their
    own: the caller may write over the memory of a batch."""
    if len(parts) == 1 and len(parts[0].times) == 1:
        return replace(parts[0], table=parts[0].table.take(_FIRST))
    parts = [part.rest() for part in parts]
    times = np.concatenate([part.times for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(times, kind="stable")
    table = pa.concat_tables([part.table for part in parts]).take(pa.array(order))
    return _Part(table.combine_chunks(), times[order], numbers[order])
