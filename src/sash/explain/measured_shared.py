"""Run a bundle of queries over a sample, as a table or as a stream, and count the combines."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from ..engine.bundle_plans import BundlePlan
from ..engine.bundle_stream import BundleStream
from ..engine.bundles import Bundle
from ..engine.late import LateOutput
from ..engine.shared_late import NamedLate
from ..engine.shared_run import results_of_bundle
from ..engine.sizes import sizes_of
from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.signatures import Mode
from ..slicing.composite import Composite
from ..state.shared import SharedState
from ..state.trace import tracing
from ..windows.contract import Aligned
from .bundles import costs_of_bundle, kept_by_bundle
from .costs import by_pyramid, costs_of_stream
from .counted import Counter, counted
from .explanation import Costs, Counts
from .measured import Events, windows_of_slices

__all__ = ["measured_bundle", "measured_bundle_of_table"]


def _slices_of(composite: Composite, events: Events) -> tuple[Array, Array]:
    """The key and the start of each slice that holds events, cut at the edges of all windows."""
    if not len(events):
        return events.codes, events.times
    shown = composite.starts(composite.clock.reading(events.times))
    found = np.unique(np.stack([events.codes, shown]), axis=1)
    return found[0], composite.clock.time(found[1])


def measured_bundle_of_table(plan: BundlePlan, sample: pa.Table) -> tuple[Counts, Counts]:
    """The expected counts of a sample of a table, an upper bound, and the measured counts."""
    counters: list[Counter] = []

    def count(one: Plan) -> Plan:
        counters.append(Counter())
        return counted(one, counters[-1])

    counting = dataclasses.replace(
        plan,
        union=count(plan.union),
        plans={name: count(one) for name, one in plan.plans.items()},
        sizes={
            name: tuple(
                dataclasses.replace(one, plan=None if one.plan is None else count(one.plan))
                for one in sizes
            )
            for name, sizes in plan.sizes.items()
        },
    )
    found = results_of_bundle(counting, sample)
    events = Events.of(plan.union, sample)
    codes, starts = _slices_of(plan.composite, events)
    asked = sum(
        windows_of_slices(codes, starts, one.query.aligned) * (1 + len(sizes_of(one.query)))
        for one in plan.plans.values()
    )
    entries = len(starts)
    costs = costs_of_bundle(plan.bundle, plan, kept_by_bundle(plan.bundle, plan, None), None)
    combines = costs.combines(Counts(len(events), entries, asked, 0, 0, 0))
    rows = sum(table.num_rows for table in found.values())
    spent = sum(counter.combines for counter in counters)
    counts = Counts(len(events), entries, rows, spent, 0, 0)
    return dataclasses.replace(counts, combines=combines), counts


def measured_bundle(
    bundle: Bundle, sample: pa.Table, batch: int, lateness: int, mode: Mode, *, early: bool
) -> tuple[Counts, Counts]:
    """The expected and the measured counts of a sample of a stream."""
    if batch < 1:
        raise ValueError(f"a batch has at least one row, not {batch}")
    counter = Counter()

    class Counting(BundleStream):
        """A stream that counts its combines."""

        def _shared_state(self, made: BundlePlan) -> SharedState:
            self.plan = made
            union = counted(made.union, counter)
            return super()._shared_state(BundlePlan(**vars(made) | {"union": union}))

    stream = Counting(
        bundle,
        late=NamedLate(LateOutput(), bundle.names),
        lateness=lateness,
        mode=mode,
        early=early,
        schema=sample.schema,
    )
    plan = stream.plan
    events = Events.of(plan.union, sample)
    entries = most = most_bytes = 0
    each: list[float] = []
    pyramids = False
    for at in range(0, sample.num_rows, batch):
        with tracing() as trace:
            stream.push(sample.slice(at, batch))
        pyramids |= bool(trace.steps)
        some = events.where((events.rows >= at) & (events.rows < at + batch))
        entries += len(_slices_of(plan.composite, some)[0])
        size = stream.state_size()
        most, most_bytes = max(most, size["slices"]), max(most_bytes, size["bytes"])
        each.append(size["slices"] / max(size["keys"], 1) / len(plan.union.groups))
    stream.close()
    batches, keys = max(-(-sample.num_rows // batch), 1), max(len(np.unique(events.codes)), 1)
    together = entries / batches / keys
    held = float(np.mean(each or [0]))

    def costs(window: Aligned, one: Plan, size: int | None) -> Costs:
        late = 0.0 if size is None else held * lateness / (size + lateness)
        found = costs_of_stream(
            window, one, held=held, inside=held - late, late=late, together=together
        )
        return by_pyramid(found) if pyramids else found

    combines: float = len(events) - entries
    rows = 0
    for i, (name, one) in enumerate(plan.plans.items()):
        window = one.query.aligned
        made = stream.counts_of(name)["emitted"]
        sizes = window.cycle.longest, *sizes_of(one.query)
        each_row = [costs(window, one, size) for size in sizes]
        combines += made * sum(cost.per_row for cost in each_row)
        combines += 0 if i else entries * each_row[0].per_entry
        rows += made
    counts = {"events": len(events), "entries": entries, "rows": rows}
    kept = {"most_entries": most, "most_bytes": most_bytes}
    return (
        Counts(**counts, combines=combines, **kept),
        Counts(**counts, combines=counter.combines, **kept),
    )
