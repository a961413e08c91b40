"""Packs the slices of a bucket into one value for the shuffle, and unpacks values of slices and of
rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..engine.failures import name_failure
from ..engine.lifecycle import Sliced
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.edges import Edges
from ..state.contract import Slices
from ..state.key_hash import hash_keys
from ..tables.arrow import one_array, times_of
from ..tables.intake import bad_rows, some_rows
from .combining import Cut, Cutter, joined_slices
from .payloads import REFUSED, Buckets, by_bucket, record, written

if TYPE_CHECKING:
    from ..engine.bundles import Bundle

__all__ = ["Unpacker", "packed_slices", "sliced_plan"]


def packed_slices(
    query: Query, table: pa.Table, buckets: Buckets, bundle: Bundle | None = None
) -> pa.RecordBatch:
    """Cut rows into slices, and pack the slices of each bucket into one value.  They are slices of
    the query, or those that a bundle of queries shares."""
    if bundle is None:
        plan, edges = make_plan(query, table.schema), None
    else:
        plan, edges = sliced_plan(bundle, table.schema)
    cut, refused = _cut_usable(plan, table, edges)
    if cut is None:
        return record(buckets.called[:1], [written(pa.table({}), refused)])
    of_keys = buckets.of(cut.keys, len(cut.keys[0]) if cut.keys else 1)
    return by_bucket(_as_table(cut), of_keys[cut.codes], refused)


def sliced_plan(bundle: Bundle, schema: pa.Schema) -> tuple[Plan, Edges]:
    """The plan of all aggregates of a bundle, and the edges of its slices."""
    from ..engine.bundle_plans import plan_bundle  # most workers do without

    made = plan_bundle(bundle, schema, stored=True)
    return made.union, made.composite.edges


@dataclass(frozen=True)
class Unpacker:
    """Reads the values of a bucket: rows with this schema, or slices of a plan, at the edges of its
    window or at others."""

    schema: pa.Schema
    query: Query
    plan: Plan | None = None  # None if only rows come
    edges: Edges | None = None

    def read(self, payload: bytes | memoryview) -> tuple[pa.Table, int | None]:
        """The rows of a value; or its slices, and how many rows of theirs were refused."""
        table = _read(payload)
        said = (table.schema.metadata or {}).get(REFUSED)
        if said is None:
            return table.cast(self.schema), None
        if table.num_rows:
            table = self._cast(table)
        return table.replace_schema_metadata(None), int(said)

    def _cast(self, table: pa.Table) -> pa.Table:
        assert self.plan is not None
        return table.cast(_slice_schema(self.plan, table.schema))

    def hashes(self, table: pa.Table, *, sliced: bool) -> Array:
        """The hashes of the keys of rows or slices."""
        by = self.query.by
        names = [f"key_{i}" for i in range(len(by))] if sliced else by
        return hash_keys([one_array(table.column(name)) for name in names], table.num_rows)

    def span(self, table: pa.Table, *, sliced: bool) -> tuple[int, int] | None:
        """The oldest and the newest time of rows or slices, None if none can be used."""
        if sliced:
            times, newest = (one_array(table.column(n)).to_numpy() for n in ("time", "newest"))
        else:
            clock = self.query.window.clock
            found, unusable = times_of(one_array(table.column(self.query.time)), clock)
            times = newest = found[~unusable]
        return (int(times.min()), int(newest.max())) if len(times) else None

    def youngest(self, table: pa.Table, many: int) -> pa.Table:
        """So many rows with the newest times that can be used, or all."""
        if table.num_rows <= many:
            return table
        clock = self.query.window.clock
        times, unusable = times_of(one_array(table.column(self.query.time)), clock)
        at = np.argpartition(np.where(unusable, np.iinfo(np.int64).min, times), -many)[-many:]
        return table.take(pa.array(np.sort(at)))

    def batch(
        self, rows: list[pa.Table], slices: list[pa.Table] | None, refused: int = 0
    ) -> pa.Table | Sliced:
        """Rows as one batch; if `slices` came, a batch of slices, to which rows are cut too."""
        if slices is None:
            return pa.concat_tables(rows or [self.schema.empty_table()])
        assert self.plan is not None
        slices = list(slices)
        if rows:
            cut, more = _cut_usable(self.plan, pa.concat_tables(rows), self.edges)
            refused += more
            if cut is not None:
                slices.append(self._cast(_as_table(cut)))
        if not slices:
            none = np.empty(0, dtype=np.int64)
            return Sliced(Slices([], np.zeros(1, dtype=np.int64), none, []), none, none, refused)
        return joined_slices(self.plan, slices, refused, self.edges)


def _cut_usable(plan: Plan, table: pa.Table, edges: Edges | None = None) -> tuple[Cut | None, int]:
    """Cut all usable rows into slices, and count the others: their time is null or out of range, or
    `lift` refuses a value.  The slices are None if no row is usable."""
    query = plan.query
    times, unusable = times_of(one_array(table.column(query.time)), query.window.clock)
    rows = np.flatnonzero(~unusable)
    cutter = Cutter(plan, edges)
    while len(rows):
        held = some_rows(table, rows)
        try:
            cut = cutter.cut(held, times[rows])
        except Exception as error:
            wrong = bad_rows(lambda part: cutter.cut(part, np.zeros(len(part), np.int64)), held)
            if not wrong:
                raise name_failure(plan, held, times[rows], error) from error
            rows = np.delete(rows, list(wrong))
            continue
        return cut, table.num_rows - len(rows)
    return None, table.num_rows


def _as_table(cut: Cut) -> pa.Table:
    columns = cut.columns() | {"rows": pa.array(cut.rows), "newest": pa.array(cut.newest)}
    return pa.table(columns)


def _slice_schema(plan: Plan, given: pa.Schema) -> pa.Schema:
    """The schema of slices, with the keys in the query's types."""
    keys = {f"key_{i}": plan.schema.field(k).type for i, k in enumerate(plan.query.by)}
    return pa.schema([(f.name, keys.get(f.name, f.type)) for f in given])


def _read(payload: bytes | memoryview) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_all()
