"""How queries that share slices run as one, what is kept for them, and the combines they take."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..engine.bundle_plans import BundlePlan
from ..engine.bundles import Bundle
from ..engine.pyramids import QUERIES
from ..kernels.layout import words_of
from ..slicing.composite import Composite
from .costs import costs_of_stream, costs_of_table
from .explanation import Costs, Kept, Step
from .streams import kept_text, stream_steps

__all__ = ["costs_of_bundle", "kept_by_bundle", "on_spark", "steps_of_bundle"]

_PYRAMID = Step(
    "queries that have few windows among many slices are answered from one pyramid of the slices",
    "a queue would read all slices for each of them",
)


_LAID_OUT = Step(
    "where a batch lets many windows fall due, they are answered from a pyramid of the slices",
    "the tree would be searched for each of them",
)


def steps_of_bundle(bundle: Bundle, plan: BundlePlan | None, mode: str | None) -> tuple[Step, ...]:
    """What is done with a table, or with a batch of a stream in a mode."""
    first = next(iter(bundle.queries.values()))
    if mode is not None:
        cut, tree, when = stream_steps(first, None if plan is None else plan.union, mode)
        once = Step(f"{cut.what}, once for all queries", cut.why)
        ranges = Step(
            "the windows of all queries are ranges of that tree",
            "events may come in any order, and one copy of the slices serves all windows",
        )
        return once, tree, ranges, *((_LAID_OUT,) if mode == "final" else ()), when
    return (
        Step("rows are combined into slices once for all queries", "they have the same keys"),
        Step(
            "each query takes the slices through two stacks in one queue",
            "they are in order, so the oldest leaves first; any associative operator will do",
        ),
        *((_PYRAMID,) if len(bundle.queries) >= QUERIES else ()),
    )


def kept_by_bundle(bundle: Bundle, plan: BundlePlan | None, lateness: int | None) -> Kept:
    """The slices that are kept, once for all queries."""
    assert bundle.composite is not None
    if lateness is None:
        size = None if plan is None else 8 * sum(_words(plan))
        known = "" if size is None else f", {size:,} bytes each"
        return Kept("slice", None, size, None, f"all slices of the table{known}, in one copy")
    longest = bundle.composite.longest
    union = None if plan is None else plan.union
    if union is not None and union.ordered:
        held = f"a partial for each distinct time in open windows of {longest}, in one copy"
        return kept_text(union, "time", None, held)
    many = _slices_between(bundle.composite, lateness)
    held = f"the slices of {longest}, whose windows are longest, in one copy"
    return kept_text(union, "slice", many, held if many is None else f"at most {many:,}: {held}")


def _words(plan: BundlePlan) -> list[int]:
    return [words_of(group.operator) for group in plan.union.groups]


def _slices_between(composite: Composite, lateness: int) -> int | None:
    """How many slices there are at most in the longest window and the lateness."""
    held = composite.held(composite.longest)
    if held is None or composite.slices is None:
        return None
    late = -(-lateness * composite.slices // composite.slide)
    return held + int(late)


def costs_of_bundle(
    bundle: Bundle, plan: BundlePlan | None, kept: Kept, lateness: int | None
) -> Costs:
    """Combines for an event, a slice and a row of any of the queries."""
    assert bundle.composite is not None
    windows = [query.aligned for query in bundle.queries.values()]
    if lateness is None:
        entry = sum(1 + max(costs_of_table(window).per_entry, 0.5) for window in windows) - 1
        less = ", or less from a pyramid" if len(windows) >= QUERIES else ""
        words = (
            f"1 an event (into its slice), at most {entry + 1:.2g} a slice (the queues of "
            f"{len(windows)} queries{less}) and 1 a row"
        )
        return Costs(1, entry, 1, words)
    held = 16 if kept.entries is None else kept.entries
    longest = bundle.composite.windows[bundle.composite.longest]
    late = held * lateness / (longest.cycle.longest + lateness)
    union = None if plan is None else plan.union
    made = costs_of_stream(longest, union, held=held, inside=held - late, late=late)
    words = f"{made.words} of {bundle.composite.longest}, whose windows are longest"
    return dataclasses.replace(made, words=words)


def on_spark(steps: tuple[Step, ...], kept: Kept, costs: Costs) -> tuple[Any, Kept, Costs]:
    """The steps, state and combines of a stream in memory for one on Spark, whose state is
    records."""
    cut, *_, when = steps
    records = Step(
        "slices of all queries are small records in Spark's state store, of one stateful operator",
        "a micro-batch reads and writes those that it touches, or that are due",
    )
    ranges = Step(
        "the windows of all queries are made of the records at their edges",
        "one copy of the slices serves all windows",
    )
    words = kept.words.partition("; about")[0]  # what trees in memory take: records are packed
    text = f"in memory {costs.words}; records in Spark's state store are combined one by one"
    return (
        (cut, records, ranges, when),
        dataclasses.replace(kept, entry_bytes=None, bytes=None, words=words),
        dataclasses.replace(costs, words=text),
    )
