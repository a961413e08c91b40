"""The expected number of combines, for each way to run a query.

The numbers count combines of whole partials: one combine covers all aggregates that run together.
`tests/explain` counts the combines of samples and compares them with these numbers.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2

from ..query.plan import Plan
from ..slicing.techniques import Slicing, pairs
from ..state.tree_size import leaf_entries
from ..windows.contract import Aligned, Driven, Merging, Span, Window
from .explanation import Costs

__all__ = ["by_pyramid", "costs_of_stream", "costs_of_table"]


def costs_of_table(window: Window, cut: Slicing | None = None, sizes: int = 1) -> Costs:
    """Expected combines over a table: of two stacks over ordered slices or ordered rows, or of the
    chunks of rows that windows of several sizes share."""
    if isinstance(window, Aligned):
        return _of_scan(window, cut or pairs(window))
    if isinstance(window, Merging):
        return Costs(1, 0, 0, "at most 1 an event: the events of a session are folded")
    if sizes > 1 and not _excludes(window):
        return Costs(
            2,
            0,
            2 * sizes,
            "at most 2 an event (into its chunk, and when the chunk closes), with at most 6 more "
            f"where a window is shorter than a chunk, and, for a row, 2 for each of {sizes} sizes",
        )
    keeps = window.keeps if isinstance(window, Driven) else None
    if isinstance(keeps, Span) and keeps.older is None and not _excludes(window):
        return Costs(1, 0, 0, "1 an event: nothing leaves, so the events so far are one partial")
    event, row = (3, 4) if _excludes(window) else (2, 1)
    return Costs(
        event,
        0,
        row,
        f"at most {event} an event (it enters the queue, and is taken over once when the queue "
        f"turns{', and is folded with its peers' if event > 2 else ''}) and {row} a row",
    )


def _excludes(window: Window) -> bool:
    return isinstance(window, Driven) and window.excluded in ("row", "ties")


def _of_scan(window: Aligned, cut: Slicing) -> Costs:
    """Expected combines of two stacks over slices.  Each event is folded into its slice.  A slice
    enters the queue, and is combined once more when the queue turns.  A row combines the two halves
    of the queue.  A slice leaves when the window after its last window is answered, so the queue
    turns with one slice more than a window has.  The first event of a slice needs no combine, which
    pays for the combine by which the slice enters the queue."""
    slices = cut.per_window(window)
    turned = slices / (slices + 1)
    halves = turned if slices == 1 else 1.0
    if cut.reads_open and pairs(window).edges != cut.edges:
        return Costs(
            1,
            turned,
            halves + 1,
            f"1 an event (into its slice), {turned:.2g} a slice (the queue turns) and at most "
            f"{halves + 1:.2g} a row (the two halves of the queue, and the open slice), whatever "
            "size and slide are",
        )
    return Costs(
        1,
        turned,
        halves,
        f"1 an event (into its slice), {turned:.2g} a slice (the queue turns) and {halves:.2g} a "
        "row (the two halves of the queue), whatever size and slide are",
    )


def costs_of_stream(
    window: Window,
    plan: Plan | None,
    *,
    held: float,
    inside: float,
    late: float,
    together: float = 1.0,
    older: bool = False,
) -> Costs:
    """Expected combines over a stream, whose state is a finger B-tree for each key.  A tree holds
    `held` entries, `inside` of them inside a window, and `late` of them newer than a late event;
    `together` entries leave at once.  `older` says that a tree holds entries older than a window
    when the window is answered."""
    if isinstance(window, Merging):
        return Costs(1, 0, 0, "about 1 an event: the parts of a session are folded")
    leaf = 16 if plan is None else max(leaf_entries(g.operator) for g in plan.groups)
    entry, row = _in_tree(leaf, held, inside, late, together)
    if older and held >= leaf and isinstance(window, Aligned):
        row = max(min(inside - 1, _range_in_tree(leaf, held)), 0.0)
    into = "its slice" if isinstance(window, Aligned) else "the partial of its time"
    tail = "" if late < 1 else ", more the later it comes"
    return Costs(
        1,
        entry - 1,
        row,
        f"about 1 an event (into {into}), {entry - 1:.0f} an entry of the tree (it enters and "
        f"leaves near the ends{tail}) and {row:.0f} a row",
    )


def _in_tree(
    leaf: int, held: float, inside: float, late: float, together: float
) -> tuple[float, float]:
    """Combines for an entry of a tree and for a row, fitted to counts.  A tree of one leaf is
    folded again when its oldest entry leaves, and a row folds the entries inside its window.  In a
    larger tree, the oldest leaf is folded again, and a row combines the partials of the spines.  A
    late entry updates the path above it.  Entries of one leaf that leave at once cost as much as
    one."""
    leave = min(max(together, 1.0), leaf / 2)
    climbs = leaf / 2 * log2(2 * late / leaf) if late > leaf / 2 else 0.0
    row = max(inside - 1, 0.0)
    if held < leaf:
        return 1 + max(held - 1, 0.0) / leave + climbs, row
    entry = 2 + (0.9 * leaf - 2 + 1.25 * log2(held / leaf)) / leave
    return entry + climbs, min(row, 2.0)


def _range_in_tree(leaf: int, held: float) -> float:
    """Combines for a window whose ends both lie inside a tree, fitted to counts: parts of the two
    leaves where the window ends, and of the nodes above these leaves."""
    return 0.75 * leaf + 2 * log2(held / leaf)


def by_pyramid(costs: Costs) -> Costs:
    """The same if windows are answered from a pyramid of the slices.  A row combines about two
    partials a level, and only a few levels matter; building the pyramid takes about two combines a
    slice."""
    return replace(costs, per_entry=costs.per_entry + 2.3, per_row=min(costs.per_row, 3.0))
