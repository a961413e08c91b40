"""A sample, pushed into a stream of several queries that share slices, and counted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..engine.bundle_plans import BundlePlan
from ..engine.bundle_stream import BundleStream
from ..engine.bundles import Bundle
from ..engine.late import LateOutput
from ..engine.shared_late import NamedLate
from ..kernels.columns import Array
from ..query.signatures import Mode
from ..slicing.composite import Composite
from ..state.shared import SharedState
from ..state.trace import tracing
from .costs import by_pyramid, costs_of_stream
from .counted import Counter, counted
from .explanation import Counts
from .measured import Events

__all__ = ["measured_bundle", "slices_of"]


def slices_of(composite: Composite, events: Events) -> tuple[Array, Array]:
    """The slices that hold events, cut at the edges of all windows: the key and start of each."""
    if not len(events):
        return events.codes, events.times
    shown = composite.starts(composite.clock.reading(events.times))
    found = np.unique(np.stack([events.codes, shown]), axis=1)
    return found[0], composite.clock.time(found[1])


def measured_bundle(
    bundle: Bundle, sample: pa.Table, batch: int, lateness: int, mode: Mode, *, early: bool
) -> tuple[Counts, Counts]:
    """What was expected of a sample, and what it took."""
    if batch < 1:
        raise ValueError(f"a batch has at least one row, not {batch}")
    counter = Counter()

    class Counting(BundleStream):
        """A stream whose combines are counted."""

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
        entries += len(slices_of(plan.composite, some)[0])
        size = stream.state_size()
        most, most_bytes = max(most, size["slices"]), max(most_bytes, size["bytes"])
        each.append(size["slices"] / max(size["keys"], 1) / len(plan.union.groups))
    stream.close()
    batches, keys = max(-(-sample.num_rows // batch), 1), max(len(np.unique(events.codes)), 1)
    together = entries / batches / keys
    held = float(np.mean(each or [0]))
    combines: float = len(events) - entries
    rows = 0
    for i, (name, one) in enumerate(plan.plans.items()):
        window = one.query.aligned
        made = stream.counts_of(name)["emitted"]
        late = held * lateness / (window.cycle.longest + lateness)
        costs = costs_of_stream(
            window, one, held=held, inside=held - late, late=late, together=together
        )
        costs = by_pyramid(costs) if pyramids else costs
        combines += made * costs.per_row + (0 if i else entries * costs.per_entry)
        rows += made
    counts = {"events": len(events), "entries": entries, "rows": rows}
    kept = {"most_entries": most, "most_bytes": most_bytes}
    return (
        Counts(**counts, combines=combines, **kept),
        Counts(**counts, combines=counter.combines, **kept),
    )
