"""Read, without Spark, the results that a job on Spark has written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

__all__ = ["BATCH", "as_emitted", "as_late", "read_batch", "read_revisions"]

BATCH = "sash_batch"


def read_revisions(path: str) -> pa.Table:
    """All revisions under a path, in the order in which the job wrote them."""
    made = ds.dataset(path, format="parquet", partitioning="hive").to_table()
    order = [(BATCH, "ascending")]
    if "revision" in made.column_names:
        order.append(("revision", "ascending"))
    return _in_micros(made.sort_by(order).drop_columns(BATCH))


def read_batch(path: str, number: int) -> pa.Table | None:
    """The rows of one micro-batch; None if there are none."""
    files = sorted((Path(path) / f"{BATCH}={number}").glob("*.parquet"))
    if not files:
        return None
    return _in_micros(pa.concat_tables([pq.ParquetFile(file).read() for file in files]))


def _in_micros(table: pa.Table) -> pa.Table:
    """Turn INT96 columns back into instants: Spark writes instants as INT96, and Arrow reads INT96
    as nanoseconds without a zone, which no other type of Spark's becomes."""
    return table.cast(pa.schema([field.with_type(_instant(field.type)) for field in table.schema]))


def _instant(kind: pa.DataType) -> pa.DataType:
    if kind == pa.timestamp("ns"):
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_instant(field.type)) for field in kind])
    return kind


def as_emitted(table: pa.Table | None) -> pa.Table | None:
    """Results, with the columns that a stream in this process emits."""
    return None if table is None else _edges(table, "window", "window_start", "window_end")


def as_late(table: pa.Table | None) -> pa.Table | None:
    """Late rows, with the columns that a stream in this process has."""
    if table is None:
        return None
    made = _edges(table, "late_missed", "missed_start", "missed_end")
    return made.rename_columns({"late_reason": "reason"})


def _edges(table: pa.Table, span: str, start: str, end: str) -> pa.Table:
    """Split a column of spans into two columns."""
    if span not in table.column_names:
        return table
    at = table.column_names.index(span)
    edges = [pc.struct_field(table.column(span), edge) for edge in ("start", "end")]
    made = table.remove_column(at).add_column(at, start, edges[0])
    return made.add_column(at + 1, end, edges[1])
