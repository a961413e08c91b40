"""How one query of aligned windows runs whose rows have aggregates of several sizes: as a bundle of
one, whose sizes share slices."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa

from ..engine.bundle_plans import plan_bundle
from ..engine.bundles import bundle_alone
from ..query.query import Query
from ..query.signatures import Mode
from .bundles import costs_of_bundle, kept_by_bundle, steps_of_bundle
from .explanation import Explanation
from .measured_shared import measured_bundle, measured_bundle_of_table

__all__ = ["sized_stream", "sized_table"]


def sized_table(
    made: Explanation, query: Query, schema: pa.Schema | None, sample: pa.Table | None
) -> Explanation:
    """The explanation of a query over a table, with what several sizes make of it."""
    made = _as_bundle(made, query, schema, None, None)
    if sample is None:
        return made
    plan = plan_bundle(bundle_alone(query), sample.schema, whole=True)
    expected, measured = measured_bundle_of_table(plan, sample)
    taken = ("slices made once for all sizes, and read by a queue for each",)
    return dataclasses.replace(made, expected=expected, measured=measured, taken=taken)


def sized_stream(
    made: Explanation,
    query: Query,
    schema: pa.Schema | None,
    sample: pa.Table | None,
    *,
    lateness: int,
    mode: Mode,
    early: bool,
    batch: int,
) -> Explanation:
    """The explanation of a query over a stream, with what several sizes make of it."""
    made = _as_bundle(made, query, schema, lateness, mode)
    if sample is None:
        return made
    given: Any = (bundle_alone(query), sample, batch, lateness, mode)
    expected, measured = measured_bundle(*given, early=early)
    taken = (f"{-(-sample.num_rows // batch):,} batches of {batch:,} rows",)
    return dataclasses.replace(made, expected=expected, measured=measured, taken=taken)


def _as_bundle(
    made: Explanation,
    query: Query,
    schema: pa.Schema | None,
    lateness: int | None,
    mode: Mode | None,
) -> Explanation:
    bundle = bundle_alone(query)
    plan = None if schema is None else plan_bundle(bundle, schema, whole=lateness is None)
    kept = kept_by_bundle(bundle, plan, lateness)
    return dataclasses.replace(
        made,
        steps=steps_of_bundle(bundle, plan, mode),
        kept=kept,
        costs=costs_of_bundle(bundle, plan, kept, lateness),
    )
