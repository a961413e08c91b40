"""Push a sample into a stream batch by batch, and count its combines."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.lifecycle import latest
from ..engine.stream import Stream
from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.query import Query
from ..query.signatures import Mode
from ..slicing.edges import edges_of
from ..state.tree_size import forest_bytes
from ..windows.contract import Aligned
from .costs import costs_of_stream
from .counted import Counter, counted
from .explanation import Counts, Explanation
from .measured import Events, windows_of_slices

__all__ = ["measured_stream"]


def measured_stream(
    made: Explanation,
    query: Query,
    sample: pa.Table,
    batch: int,
    lateness: int,
    mode: Mode,
    *,
    early: bool,
) -> Explanation:
    """Push a sample, and add its expected and measured counts to the explanation."""
    if batch < 1:
        raise ValueError(f"a batch has at least one row, not {batch}")
    counter = Counter()
    given: Any = {"lateness": lateness, "mode": mode, "early": early, "schema": sample.schema}
    stream = _counting(Stream._for(query), counter)(query, **given)
    most_bytes = keys = 0
    sizes: list[int] = []
    for at in range(0, sample.num_rows, batch):
        stream.push(sample.slice(at, batch))
        size = stream.state_size()
        sizes.append(size["slices"])
        most_bytes, keys = max(most_bytes, size["bytes"]), max(keys, size["keys"])
    stream.close()
    counts = stream.counts
    most = max(sizes, default=0)
    measured = Counts(counts["counted"], 0, counts["emitted"], counter.combines, most, most_bytes)
    plan = stream._plan
    assert plan is not None
    expected = dataclasses.replace(measured, entries=measured.events)
    held = float(np.mean(sizes or [0])) / max(keys, 1) / len(plan.groups)
    late = 0.0
    if isinstance(query.window, Aligned):
        expected, held, late = _expected(
            plan, sample, batch, lateness, measured, live=mode == "live"
        )
    elif made.kept.entry == "event" and made.kept.entries is not None:
        held = made.kept.entries
    elif made.kept.entry == "key":  # after a batch, all its events are one partial
        held = batch / max(keys, 1)
    inside = held - late
    if mode == "live":  # entries of a batch leave after all its windows are answered
        held += batch / max(keys, 1) * expected.entries / max(expected.events, 1) / 2
    costs = costs_of_stream(
        query.window, plan, held=held, inside=inside, late=late, older=mode == "live"
    )
    expected = dataclasses.replace(expected, combines=costs.combines(expected))
    measured = dataclasses.replace(measured, entries=expected.entries)
    pushes = -(-sample.num_rows // batch)
    taken = (f"{pushes:,} batches of {batch:,} rows",)
    return dataclasses.replace(made, expected=expected, measured=measured, taken=taken)


def _counting(kind: type[Stream], counter: Counter) -> type[Stream]:
    """A stream class whose plans count their combines."""

    def planned(self: Stream, schema: pa.Schema) -> Plan:
        return counted(kind._planned(self, schema), counter)

    return type(kind.__name__, (kind,), {"_planned": planned})


def _expected(
    plan: Plan, sample: pa.Table, batch: int, lateness: int, measured: Counts, *, live: bool
) -> tuple[Counts, float, float]:
    """The expected counts for aligned windows, from the keys and times of a sample: the entries
    that each batch makes, the entries in open windows after it, and the windows that hold events.
    Also the mean number of entries that a key has in its windows, and how many of them are newer
    than a late event."""
    window, events = plan.query.aligned, Events.of(plan, sample)
    edges, held = edges_of(window), (np.zeros(0, np.int64), np.zeros(0, np.int64))
    every: list[tuple[Array, Array]] = [held]
    watermark: int | None = None
    most_entries = most_bytes = entries = 0
    each: list[int] = []
    for at in range(0, sample.num_rows, batch):
        some = events.where((events.rows >= at) & (events.rows < at + batch))
        if watermark is not None:  # an event whose windows are all closed is late
            some = some.where(np.asarray(window.last(some.times)) >= window.first(watermark))
        found = some.entries(edges, times=plan.ordered)
        every.append(found)
        entries += len(found[0])
        newest = int(some.times.max()) if len(some) else None
        if newest is not None:
            watermark = latest(watermark, newest - lateness)
        held = _distinct(held, found)
        if watermark is not None:
            start = window.start(window.first(watermark))
            oldest = start if plan.ordered else edges.number(start)
            keep = held[1] >= oldest
            held = held[0][keep], held[1][keep]
        of_keys = np.unique(held[0], return_counts=True)[1].tolist()
        size = sum(forest_bytes(g.operator, of_keys) for g in plan.groups)
        each.extend(of_keys)
        most_entries = max(most_entries, len(held[0]) * len(plan.groups))
        most_bytes = max(most_bytes, size)
    codes, at_ = _all(every)
    starts = at_ if plan.ordered else np.asarray(edges.time(at_))
    rows = windows_of_slices(codes, starts, window)
    if live or window.empty or plan.query.emit == "changes":
        rows = measured.rows
    counts = Counts(measured.events, entries, rows, 0, most_entries, most_bytes)
    held_by_key = float(np.mean(each)) if each else 1.0
    share = lateness / (window.cycle.longest + lateness)
    return counts, held_by_key, held_by_key * share


def _distinct(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return _all([a, b])


def _all(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The distinct entries of several lists, in order of key and time."""
    found = np.unique(np.concatenate([np.stack(p) for p in parts], axis=1), axis=1)
    return found[0], found[1]
