"""The sinks of a run in this process: they publish all results when the run ends, or none.

Rows have the same columns as on Spark, so one program can read the results of both.  A folder gets
one file, which appears when the run is over.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from ..engine.late import ADDED
from ..query import Query
from ..tables.arrow import flat
from ..tables.keys import key_codes
from ..windows import Driven, Merging, Window
from .errors import RunError

if TYPE_CHECKING:
    from ..sql.statement import Statement

__all__ = ["ConsoleSink", "FolderSink", "Kept", "Sink", "late_as_on_spark", "result_as_on_spark"]

RESULTS, LATE = "results.parquet", "late.parquet"


class Sink(Protocol):
    """Collects tables, and publishes them at the end."""

    def add(self, table: pa.Table) -> None:
        """Add rows."""

    def finish(self) -> None:
        """Publish all rows."""

    def drop(self) -> None:
        """Discard all rows."""


class FolderSink:
    """A Parquet file in a folder; it has another name until it is complete."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = Path(folder), name
        _check_free(self._folder, name)
        self._writer: Any = None
        self._part = self._folder / f".{name}.{os.getpid()}"

    def add(self, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._writer = pq.ParquetWriter(self._part, table.schema)
            except OSError as error:
                raise RunError(f"{self._folder} cannot be written to: {error.strerror}") from None
        self._writer.write_table(table.cast(self._writer.schema))

    def finish(self) -> None:
        place = self._folder / self._name
        if self._writer is None:
            place.unlink(missing_ok=True)  # of an earlier run
        else:
            self._writer.close()
            os.replace(self._part, place)

    def drop(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._part.unlink(missing_ok=True)


def _check_free(folder: Path, name: str) -> None:
    """Refuse a folder that holds anything but this file of an earlier run."""
    if not folder.is_dir():
        return
    others = [p.name for p in folder.iterdir() if p.name != name and p.name[0] not in "._"]
    if others:
        raise RunError(
            f"{folder} holds {others[0]} already, which --local did not write; give the job "
            "another path, or remove what is there"
        )


class ConsoleSink:
    """Prints the rows for people, at the end."""

    def __init__(self, title: str, show: Callable[[str, pa.Table], None]) -> None:
        self._title, self._show = title, show
        self._tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        self._tables.append(table)

    def finish(self) -> None:
        if self._tables:
            self._show(self._title, pa.concat_tables(self._tables, promote_options="default"))

    def drop(self) -> None:
        self._tables.clear()


class Kept:
    """Passes only the last revision of each window to another sink."""

    def __init__(self, sink: Sink, query: Query | Statement) -> None:
        self._sink, self._query = sink, query
        self._tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        self._tables.append(table)

    def finish(self) -> None:
        if self._tables:
            table = pa.concat_tables(self._tables)
            self._sink.add(last_revisions(table, self._query))
        self._sink.finish()

    def drop(self) -> None:
        self._sink.drop()


def last_revisions(table: pa.Table, given: Query | Statement) -> pa.Table:
    """The last row of each window, without withdrawn windows.  Equal events keep one row each."""
    if isinstance(given, Query):
        window, ids = given.window, _ids(table, given.window)
        withdraws = isinstance(window, Merging)
    else:
        window, ids = given.query.window, given.identity(table)
        withdraws = given.withdraws
    codes, _ = key_codes(ids, table.num_rows)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes)) if len(codes) else np.zeros(0, np.int64)
    many = np.ones(len(ends), np.int64)
    if isinstance(window, Driven):
        many = np.bincount(codes[np.asarray(table["revision"]) == 0], minlength=len(ends))
    place = np.arange(len(order))
    code = codes[order]
    made = table.take(pa.array(order[place >= ends[code] - many[code]]))
    if withdraws:
        made = made.filter(pa.compute.invert(made["deleted"]))
    return made


def _ids(table: pa.Table, of: Window) -> list[pa.Array]:
    """The columns that identify a window: those before the window, and the window; for a session,
    whose end moves, only its start."""
    at = table.column_names.index("window")
    window = flat(table.column(at))
    edges = [window.field("start")]
    if not isinstance(of, Merging):
        edges.append(window.field("end"))
    return [*(flat(table.column(i)) for i in range(at)), *edges]


def result_as_on_spark(table: pa.Table) -> pa.Table:
    """Results with the window as a struct of start and end."""
    return _spanned(table, "window_start", "window_end", "window")


def late_as_on_spark(table: pa.Table, query: Query | Statement) -> pa.Table:
    """Late rows with the columns that they have on Spark."""
    kept = [name for name in table.column_names if name not in ADDED]
    if isinstance(query, Query) and not isinstance(query.window, Driven):
        kept = [name for name in kept if name in query.columns]
    made = table.select([*kept, "reason", "missed_start", "missed_end"])
    made = made.rename_columns([*kept, "late_reason", "missed_start", "missed_end"])
    return _spanned(made, "missed_start", "missed_end", "late_missed")


def _spanned(table: pa.Table, start: str, end: str, name: str) -> pa.Table:
    at = table.column_names.index(start)
    edges = [flat(table.column(start)), flat(table.column(end))]
    nulls = edges[0].is_null()
    span = pa.StructArray.from_arrays(edges, ["start", "end"], mask=nulls)
    return table.drop_columns([start, end]).add_column(at, name, span)
