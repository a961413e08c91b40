"""Pyramids for those queries of a bundle that have few windows among many slices.

Slices of a table are cut at the edges of all queries.  A scan reads them all for each query; from a
pyramid of them (`state.pyramid`), built once for all queries that read the same partials, a window
takes a few combines.  Counting says for which queries that is less:

    scan       2 combines a slice, and 1 a row
    pyramid    3 a slice to build it, once for all; and for a row some 2 for each level, and 3
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..query.plan import Plan
from ..state.answers import Sources
from ..state.contract import Slices
from ..state.pyramid import Ask, Pyramid, PyramidFailed
from ..state.scan import NoAnswer, Windows
from ..state.trace import note_step
from ..tables.threads import side_by_side
from ..windows.contract import Aligned
from .bundle_plans import BundlePlan

__all__ = ["QUERIES", "few_windows", "windows_by_pyramids"]

_WORTH = 2_000_000  # slices that scans would read, as another kernel is needed
QUERIES = 3  # that read the same partials, for a pyramid
_SLICES = 4  # a window, at least


def few_windows(window: Aligned, slices: Slices) -> bool:
    """True if a query has so few windows among these slices that each may take several combines."""
    count, keys = len(slices.starts), len(slices.bounds) - 1
    if not count or slices.ties is not None:
        return False
    cycle = window.cycle
    span = int(slices.starts.max()) - int(slices.starts.min())
    return ((span + cycle.longest) // cycle.length + 1) * cycle.windows * keys * _SLICES <= count


def windows_by_pyramids(
    plan: BundlePlan,
    read: Mapping[str, Slices],
    sources: list[Sources],
    threads: int,
) -> dict[str, Windows | NoAnswer]:
    """The windows of those queries that are better answered by pyramids of the slices that they
    read, or the answer that does not exist."""
    asked: dict[Any, list[str]] = {}
    for name, one in plan.plans.items():
        if few_windows(one.query.aligned, read[name]) and not plan.sizes[name]:
            asked.setdefault((id(read[name]), plan.reads[name]), []).append(name)
    made: dict[str, Windows | NoAnswer] = {}
    for (_, reads), names in asked.items():
        slices = read[names[0]]
        if len(names) < QUERIES or len(names) * len(slices.starts) < _WORTH:
            continue
        pyramids = _pyramids(plan.plans[names[0]], reads.slices(slices))
        if pyramids is None:
            continue
        note_step("windows of queries that have few from a pyramid of the slices")
        portions = [names[i::threads] for i in range(min(threads, len(names)))]
        asking = partial(_windows, pyramids, plan, reads.sources(sources))
        for found in side_by_side(asking, portions, threads):
            made |= found
    return made


def _windows(
    pyramids: list[Pyramid], plan: BundlePlan, sources: list[Sources], names: list[str]
) -> dict[str, Windows | NoAnswer]:
    """The windows of some queries; each group of aggregates answers the same ones."""
    made: dict[str, Windows | NoAnswer] = {}
    for i, (pyramid, values) in enumerate(zip(pyramids, sources, strict=True)):
        plans = [plan.plans[name] for name in names]
        asks = [
            Ask(p.groups[i], p.query.aligned, p.query.emit == "changes", p.types, values)
            for p in plans
        ]
        for name, found in zip(names, pyramid.windows(asks), strict=True):
            for row, why in found.lacking.items():
                made[name] = NoAnswer(why, int(found.groups[row]), int(found.numbers[row]))
                break
            known = made.setdefault(name, found)
            if isinstance(known, Windows) and known is not found:
                known.join(found)
    return made


def _pyramids(plan: Plan, slices: Slices) -> list[Pyramid] | None:
    """A pyramid for each group of aggregates; None if `combine` raises, maybe of slices that no
    window holds together."""
    try:
        return [Pyramid(group, slices, i) for i, group in enumerate(plan.groups)]
    except PyramidFailed:
        return None
