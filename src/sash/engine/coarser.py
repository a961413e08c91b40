"""Factor windows: coarser slices for some of the queries that share slices over a table.

Slices are cut at the edges of all queries, so a query of long windows reads many slices that are
finer than it needs.  If the count of combines says that it pays (`slicing.factors`), this module
combines slices once into the slices of a factor window, from which several queries are computed.
The factor window is a window of the queries, or an added one:

    slices of a minute → tumbling(1 hour), which is added → sliding(1 day, 1 hour)
                       ↘                                  ↘ sliding(7 days, 6 hours)
                         sliding(1 hour, 1 minute)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log2

import numpy as np

from ..query.plan import Group
from ..slicing.factors import factors_of
from ..state.contract import Slices
from ..state.folds import FoldFailed, Folds
from ..state.ragged import run_starts
from ..windows import Aligned
from .bundle_plans import BundlePlan

__all__ = ["coarser_slices"]

_WORTH = 1_000_000  # combines that coarser slices, another kernel, must save before they pay


def coarser_slices(plan: BundlePlan, slices: Slices, names: Sequence[str]) -> dict[str, Slices]:
    """Coarser slices, by name, for the queries among `names` that save combines with them."""
    count, keys = len(slices.starts), len(slices.bounds) - 1
    if count < 2 or slices.ties is not None:
        return {}
    asked = {name: plan.plans[name].query.window for name in names}
    windows = tuple(dict.fromkeys(asked.values()))
    if 2 * count * len(windows) < _WORTH:  # the combines of all scans, apart from their rows
        return {}
    span = int(slices.starts.max()) - int(slices.starts.min()) + 1
    # rounded to a power of two, so that all parts of a table get the same plan
    found = factors_of(windows, Fraction(2) ** round(log2(count / span / keys)))
    if found is None or (found.apart - found.cost) * span * keys < _WORTH:
        return {}
    made: dict[int, Slices] = {}

    def of(place: int | None) -> Slices:
        """The slices of a window of the plan."""
        if place is None:
            return slices
        if place not in made:
            one = found.windows[place]
            made[place] = _folded(plan.union.groups, of(one.parent), one.window)
        return made[place]

    places = {one.window: one.parent for one in found.windows}
    parents = {name: places.get(window) for name, window in asked.items()}  # type: ignore[call-overload]
    return {name: of(parent) for name, parent in parents.items() if parent is not None}


def _folded(groups: tuple[Group, ...], slices: Slices, window: Aligned) -> Slices:
    """Combine slices into the coarser slices of a tumbling window."""
    owners = np.repeat(np.arange(len(slices.bounds) - 1), np.diff(slices.bounds))
    heads = run_starts(owners, window.last(slices.starts))
    order, bounds = np.arange(len(owners)), np.append(heads, len(owners))
    try:
        partials = [
            Folds(group.operator).fold(some, order, bounds)
            for group, some in zip(groups, slices.partials, strict=True)
        ]
    except FoldFailed as failed:
        raise failed.error from None
    ends = np.searchsorted(heads, slices.bounds)
    return Slices(slices.keys, ends, slices.starts[heads], partials)
