"""How a bundle runs: its steps, the state that it keeps, and its combines.

One query with aggregates of several sizes (`Aggregate.over`) is a bundle too.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..engine.bundle_plans import BundlePlan
from ..engine.bundles import Bundle
from ..engine.pyramids import QUERIES
from ..engine.sizes import of_size, sizes_of
from ..kernels.layout import words_of
from ..windows.contract import Aligned
from ..windows.durations import duration_text
from .costs import costs_of_stream, costs_of_table
from .explanation import Costs, Kept, Step
from .streams import kept_text, stream_steps

__all__ = ["costs_of_bundle", "in_shared_records", "kept_by_bundle", "steps_of_bundle"]

_PYRAMID = Step(
    "queries that have few windows among many slices are answered from one pyramid of the slices",
    "a queue would read all slices for each of them",
)


_LAID_OUT = Step(
    "where a batch lets many windows fall due, they are answered from a pyramid of the slices",
    "the tree would be searched for each of them",
)


def steps_of_bundle(bundle: Bundle, plan: BundlePlan | None, mode: str | None) -> tuple[Step, ...]:
    """The steps over a table, or, with a `mode`, over a batch of a stream."""
    first = next(iter(bundle.queries.values()))
    if mode is not None:
        cut, tree, when = stream_steps(first, None if plan is None else plan.union, mode)
        once = Step(f"{cut.what}, once for all queries", cut.why)
        ranges = Step(
            "the windows of all queries are ranges of that tree",
            "events may come in any order, and one copy of the slices serves all windows",
        )
        if len(bundle.queries) == 1:
            once = Step(f"{cut.what}, once for all sizes", cut.why)
            ranges = Step(
                "each window that holds something is answered over the other sizes too",
                "all sizes are ranges of that tree that end together",
            )
        pyramids = mode == "final" and not any(map(sizes_of, bundle.queries.values()))
        return once, tree, ranges, *((_LAID_OUT,) if pyramids else ()), when
    what, why, whose = "queries", "they have the same keys", "query"
    if len(bundle.queries) == 1:
        what, why, whose = "sizes", "all windows of a row end together", "size"
    return (
        Step(f"rows are combined into slices once for all {what}", why),
        Step(
            f"each {whose} takes the slices through two stacks in one queue",
            "they are in order, so the oldest leaves first; any associative operator will do",
        ),
        *((_PYRAMID,) if len(bundle.queries) >= QUERIES else ()),
    )


@dataclass(frozen=True)
class _Reach:
    """The windows that hold events for the longest time, `over` windows included, and a text that
    names them.  `ever` says whether the stream keeps all older events too, as one partial."""

    window: Aligned
    words: str
    ever: bool

    @classmethod
    def of(cls, bundle: Bundle) -> _Reach:
        assert bundle.composite is not None
        name = bundle.composite.longest
        window, words = bundle.composite.windows[name], f"{name}, whose windows are longest"
        alone, ever = len(bundle.queries) == 1, False
        for name, query in bundle.queries.items():
            for size in sizes_of(query):
                ever |= size is None
                if size is not None and size > window.cycle.longest:
                    window = of_size(query.aligned, size)
                    words = f"the last {duration_text(size)}, the longest size"
                    words += "" if alone else f" of {name}"
        if alone and window is next(iter(bundle.composite.windows.values())):
            words = "the query's own windows, the longest size"
        return cls(window, words, ever)


def kept_by_bundle(bundle: Bundle, plan: BundlePlan | None, lateness: int | None) -> Kept:
    """The state: the slices, in one copy for all queries."""
    assert bundle.composite is not None
    if lateness is None:
        size = None if plan is None else 8 * sum(_words(plan))
        known = "" if size is None else f", {size:,} bytes each"
        return Kept("slice", None, size, None, f"all slices of the table{known}, in one copy")
    reach = _Reach.of(bundle)
    union = None if plan is None else plan.union
    before = ", and one partial of all before" if reach.ever else ""
    if union is not None and union.ordered:
        held = f"a partial for each distinct time in open windows of {reach.words}, in one copy"
        return kept_text(union, "time", None, held + before)
    many = bundle.composite.slices_in(reach.window, lateness)
    held = f"the slices of {reach.words}, in one copy{before}"
    return kept_text(union, "slice", many, held if many is None else f"at most {many:,}: {held}")


def _words(plan: BundlePlan) -> list[int]:
    return [words_of(group.operator) for group in plan.union.groups]


def costs_of_bundle(
    bundle: Bundle, plan: BundlePlan | None, kept: Kept, lateness: int | None
) -> Costs:
    """The expected combines for an event, for a slice, and for a row of any query, in each of the
    row's sizes."""
    windows = [query.aligned for query in bundle.queries.values()]
    sizes = [size for query in bundle.queries.values() for size in sizes_of(query)]
    if lateness is None:
        entry = sum(1 + max(costs_of_table(window).per_entry, 0.5) for window in windows) - 1
        entry += sum(1 if size is None else 2 for size in sizes)
        less = ", or less from a pyramid" if len(windows) >= QUERIES else ""
        queues = f"{len(windows)} queries" if len(windows) > 1 else ""
        if sizes:
            queues += f"{' and ' if queues else ''}{len(sizes) + (not queues)} sizes"
        words = (
            f"1 an event (into its slice), at most {entry + 1:.2g} a slice (the queues of "
            f"{queues}{less}) and 1 a row{' and size' if sizes else ''}"
        )
        return Costs(1, entry, 1, words)
    held = 16 if kept.entries is None else kept.entries
    reach = _Reach.of(bundle)
    late = held * lateness / (reach.window.cycle.longest + lateness)
    union = None if plan is None else plan.union
    made = costs_of_stream(reach.window, union, held=held, inside=held - late, late=late)
    words = f"{made.words} of {reach.words}"
    return dataclasses.replace(made, words=words)


def in_shared_records(
    steps: tuple[Step, ...], kept: Kept, costs: Costs, where: str, batch: str, whose: str = ""
) -> tuple[tuple[Step, ...], Kept, Costs]:
    """Change the steps, state and combines of a stream in memory into those of a stream whose state
    consists of records in a store, of whatever `whose` says."""
    cut, *_, when = steps
    records = Step(
        f"slices of all queries are small records in {where}{whose}",
        f"{batch} reads and writes those that it touches, or that are due",
    )
    ranges = Step(
        "the windows of all queries are made of the records at their edges",
        "one copy of the slices serves all windows",
    )
    # the bytes are those of trees in memory; records are packed
    words = kept.words.partition("; about")[0]
    text = f"in memory {costs.words}; records in {where} are combined one by one"
    return (
        (cut, records, ranges, when),
        dataclasses.replace(kept, entry_bytes=None, bytes=None, words=words),
        dataclasses.replace(costs, words=text),
    )
