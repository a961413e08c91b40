"""How a query with aligned windows and aggregates of several sizes runs: as a bundle of one query,
whose sizes share slices."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ..engine.bundle_plans import plan_bundle
from ..engine.bundles import ALONE, bundle_alone
from ..engine.sizes import of_size, sizes_of
from ..query.query import Query
from ..query.signatures import Mode
from ..slicing.composite import Composite
from ..slicing.edges import Periodic
from ..windows.durations import duration_text
from .bundles import costs_of_bundle, kept_by_bundle, steps_of_bundle
from .drawing import draw_several
from .explanation import Explanation, Windows
from .measured_shared import measured_bundle, measured_bundle_of_table

__all__ = ["sized_stream", "sized_table"]

_DRAWN = 4  # sizes in a drawing


def sized_table(
    made: Explanation, query: Query, schema: pa.Schema | None, sample: pa.Table | None
) -> Explanation:
    """The explanation of a query over a table, adapted to several sizes."""
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
    """The explanation of a query over a stream, adapted to several sizes."""
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
    assert bundle.composite is not None
    return dataclasses.replace(
        made,
        windows=_cut_at_all(made.windows, query, bundle.composite),
        steps=steps_of_bundle(bundle, plan, mode),
        kept=kept,
        costs=costs_of_bundle(bundle, plan, kept, lateness),
    )


def _cut_at_all(windows: Windows, query: Query, composite: Composite) -> Windows:
    """The windows, with slices cut where a window of any size starts or ends."""
    slices, cuts = composite.held(ALONE), composite.cuts
    lengths, each, drawing = None, "", windows.drawing
    if isinstance(cuts, Periodic):
        ends = (*cuts.cuts, cuts.cycle)
        lengths = tuple(b - a for a, b in pairwise(ends))
        texts = dict.fromkeys(map(duration_text, lengths))
        each = f" of {' and '.join(texts)}" if len(texts) < 3 else ""
        sizes = [query.aligned.cycle.longest, *(n for n in sizes_of(query) if n is not None)]
        drawn = {f"over {duration_text(n)}": of_size(query.aligned, n) for n in sizes[:_DRAWN]}
        drawing = tuple(draw_several(drawn, cuts))
    many = "too many slices to write out" if slices is None else f"{slices:,} slices{each}"
    cut = f"a window has {many}, cut where one of any size starts or ends"
    words = (windows.words[0], cut, *windows.words[2:])
    return dataclasses.replace(
        windows, slices=slices, lengths=lengths, slicing=None, words=words, drawing=drawing
    )
