"""Run several queries of a job over one shared plan; each query sees its own stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import sash

from .check import Ready

__all__ = ["View", "views"]

_QUERIES = "queries"  # the column of late rows with the names of the queries that they missed


def views(ready: Ready) -> dict[str, View]:
    """The streams of a job's queries, which share slices where possible."""
    tables = ready.job.tables
    stream = sash.share(ready.queries).stream(
        lateness=tables.source.lateness,
        mode=ready.mode,
        schema=ready.source.schema,
        keep_late=None,
    )
    turn = _Turn(stream)
    return {name: View(turn, name) for name in ready.queries}


class _Turn:
    """The shared stream, and the results of its last batch until each query has taken its own."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._batch: Any = None
        self._made: dict[str, pa.Table] = {}
        self._late = pa.table({})

    def push(self, name: str, batch: pa.Table) -> pa.Table:
        if self._batch is not batch:
            self._batch, self._made = batch, self.stream.push(batch)
            self._late = self.stream.take_late()
        return self._made[name]

    def close(self, name: str) -> pa.Table:
        if self._batch is not self.stream:  # the stream itself stands for the end
            self._batch, self._made = self.stream, self.stream.close()
            self._late = self.stream.take_late()
        return self._made[name]

    def late(self, name: str) -> pa.Table:
        """The late rows of the last batch that missed windows of one query."""
        if not self._late.num_rows:
            return self._late
        missed = [name in names for names in self._late[_QUERIES].to_pylist()]
        return self._late.filter(pa.array(missed)).drop_columns(_QUERIES)


class View:
    """One query of a shared stream, with the interface of `Stream`."""

    def __init__(self, turn: _Turn, name: str) -> None:
        self._turn, self._name = turn, name

    def push(self, batch: pa.Table) -> pa.Table:
        return self._turn.push(self._name, batch)

    def close(self) -> pa.Table:
        return self._turn.close(self._name)

    def take_late(self) -> pa.Table:
        return self._turn.late(self._name)

    @property
    def counts(self) -> dict[str, int]:
        counts: dict[str, dict[str, int]] = self._turn.stream.counts
        return counts[self._name]

    @property
    def delays(self) -> list[int]:
        delays: dict[str, list[int]] = self._turn.stream.delays
        return delays[self._name]

    @property
    def watermark(self) -> int | None:
        watermark: int | None = self._turn.stream.watermark
        return watermark

    def state_size(self) -> dict[str, int]:
        """The size of the whole state that the queries share."""
        size: dict[str, int] = self._turn.stream.state_size()
        return size
