"""Emitted windows as a table: keys, the window's start and end, values, and the revision."""

from __future__ import annotations

import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.contract import Emitted
from ..tables.arrow import as_time

__all__ = ["result_table"]


def result_table(plan: Plan, emitted: Emitted, revisions: Array | None = None) -> pa.Table:
    """The table of some windows."""
    query = plan.query
    at = pa.array(emitted.codes)
    columns = {n: c.take(at) for n, c in zip(query.by, emitted.keys, strict=True)}
    for name, edge in (("window_start", query.aligned.start), ("window_end", query.aligned.end)):
        columns[name] = as_time(edge(emitted.windows), plan.time_type)
    columns |= {name: emitted.values[name] for name in query.select}
    if revisions is not None:
        columns["revision"] = pa.array(revisions)
    return pa.table(columns)
