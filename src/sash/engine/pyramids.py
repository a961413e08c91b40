"""Pyramids: answer the queries of a bundle that have few windows among many slices.

Slices of a table are cut at the edges of all queries.  A scan reads all slices for each query.  A
pyramid (`state.pyramid`) is built once for all queries that read the same partials; then a window
takes a few combines.  The count of combines decides which queries a pyramid answers:

    scan       2 combines a slice, and 1 a row
    pyramid    3 a slice to build it, once for all; and for a row some 2 for each level, and 3
"""

from __future__ import annotations

from collections.abc import Callable
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

__all__ = ["QUERIES", "windows_by_pyramids"]

_WORTH = 2_000_000  # slices that scans must read before a pyramid, another kernel, pays
QUERIES = 3  # queries that must read the same partials
_WINDOWS = 1 / 4  # windows for each slice, at most


def _few_windows(slices: Slices) -> Callable[[Aligned], bool]:
    """A function that is true for windows that are few among these slices, so that each may take
    several combines."""
    count, keys = len(slices.starts), len(slices.bounds) - 1
    if not count or slices.ties is not None:
        return lambda window: False
    span = int(slices.starts.max()) - int(slices.starts.min())

    def few(window: Aligned) -> bool:
        cycle = window.cycle
        windows = ((span + cycle.longest) // cycle.length + 1) * cycle.windows
        return windows * keys <= _WINDOWS * count

    return few


def windows_by_pyramids(
    plan: BundlePlan, slices: Slices, sources: list[Sources], threads: int
) -> dict[str, Windows | NoAnswer]:
    """The windows of the queries for which pyramids are cheaper than scans; for a query with an
    answer that does not exist, the error."""
    asked: dict[Any, list[str]] = {}
    few = _few_windows(slices)
    for name, one in plan.plans.items():
        if not plan.sizes[name] and few(one.query.aligned):
            asked.setdefault(plan.reads[name], []).append(name)
    made: dict[str, Windows | NoAnswer] = {}
    for reads, names in asked.items():
        if len(names) < QUERIES or len(names) * len(slices.starts) < _WORTH:
            continue
        pyramids = _pyramids(plan.plans[names[0]], reads.slices(slices))
        if pyramids is None:
            continue
        note_step("windows of queries that have few from a pyramid of the slices")
        portions = [names[i::threads] for i in range(min(threads, len(names)))]
        asking = partial(_windows, pyramids, plan, reads.sources(sources))
        try:
            for found in side_by_side(asking, portions, threads):
                made |= found
        except PyramidFailed:  # a scan will raise too, and name the window
            continue
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
    """A pyramid for each group of aggregates; None if `combine` raises, which may be for slices
    that no window holds together."""
    try:
        clock = plan.query.aligned.clock
        return [Pyramid(group, slices, i, clock) for i, group in enumerate(plan.groups)]
    except PyramidFailed:
        return None
