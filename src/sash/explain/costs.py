"""Combines that are expected, for each way to run a query.

The figures are of one partial, whatever it holds: aggregates that run together are combined at
once.  `tests/explain` counts the combines of samples and holds them against these.
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
    """Over a table: two stacks over slices in order, or over rows in order; or the chunks of rows
    that windows of several sizes share."""
    if isinstance(window, Aligned):
        return _of_scan(window, cut or pairs(window))
    if isinstance(window, Merging):
        return Costs(1, 0, 0, "at most 1 an event: the events of a session are folded")
    if sizes > 1 and not _excludes(window):
        return Costs(
            2,
            0,
            2 * sizes,
            "at most 2 an event (into its chunk, and when the chunk closes) and, for a row, 2 for "
            f"each of {sizes} sizes, or 3 where a window is shorter than a chunk",
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
    """Each event is folded into its slice; a slice enters the queue, and is taken over once when
    the queue turns; a row combines the queue's two halves.  Slices leave when the window after
    theirs is answered, so the queue turns with one slice more than a window has, and the combine
    that enters the first event of a slice is saved when the slice is folded."""
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
) -> Costs:
    """Over a stream: a finger B-tree for each key, which holds so many entries, so many of them
    inside a window, and so many behind a late event; so many leave together."""
    if isinstance(window, Merging):
        return Costs(1, 0, 0, "about 1 an event: the parts of a session are folded")
    leaf = 16 if plan is None else max(leaf_entries(g.operator) for g in plan.groups)
    entry, row = _in_tree(leaf, held, inside, late, together)
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
    """Combines for an entry of a tree and for a row, as they were counted.  A tree that is one leaf
    is folded anew when its oldest entry leaves, and a row folds what is inside its window.  In a
    larger one the oldest leaf is folded, and a row combines what the spines have.  A late entry
    changes a path.  Of entries that leave together, those of a leaf are one."""
    leave = min(max(together, 1.0), leaf / 2)
    climbs = leaf / 2 * log2(2 * late / leaf) if late > leaf / 2 else 0.0
    row = max(inside - 1, 0.0)
    if held < leaf:
        return 1 + max(held - 1, 0.0) / leave + climbs, row
    entry = 2 + (0.9 * leaf - 2 + 1.25 * log2(held / leaf)) / leave
    return entry + climbs, min(row, 2.0)


def by_pyramid(costs: Costs) -> Costs:
    """The same where windows are answered from a pyramid of the slices: some two partials a level,
    of which few levels differ, and two combines a slice to build it."""
    return replace(costs, per_entry=costs.per_entry + 2.3, per_row=min(costs.per_row, 3.0))
