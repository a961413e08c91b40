"""Coarser slices for some of the queries that share slices over a table: factor windows.

Slices are cut at the edges of all queries, and a query of long windows reads many that are finer
than it needs.  Where counting says that it pays (`slicing.factors`), they are combined once into
the slices of a window that several queries can be computed from, of their own or one that is added:

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

_WORTH = 1_000_000  # combines to be saved, as another kernel is needed for it


def coarser_slices(plan: BundlePlan, slices: Slices, names: Sequence[str]) -> dict[str, Slices]:
    """The slices to read for those of some queries that better read coarser ones."""
    count, keys = len(slices.starts), len(slices.bounds) - 1
    if count < 2 or slices.ties is not None:
        return {}
    asked = {name: plan.plans[name].query.window for name in names}
    windows = tuple(dict.fromkeys(asked.values()))
    if 2 * count * len(windows) < _WORTH:  # what all scans take but for their rows
        return {}
    span = int(slices.starts.max()) - int(slices.starts.min()) + 1
    # by powers of two, so that the parts of a table have the same plan
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
    """The slices of a tumbling window, out of finer ones."""
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
