"""Bundles: queries that share one copy of the slices.

A bundle consists of aligned queries with the same keys, condition, tie and clock.  Their slices are
cut wherever one of the queries has an edge.  If several queries select the same aggregate, it has
one partial.  A query that fits into no bundle is a bundle of its own: it shares only the intake.

Queries whose aggregates depend on the order of events keep a partial for each time, and other
queries a partial for each slice.  So queries of the two kinds are not in one bundle: the others
would have to keep more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..query.aggregates import Aggregate
from ..query.query import Query
from ..slicing.composite import Composite
from ..slicing.edges import cuts_of
from ..windows import Aligned
from .sizes import further_cuts

__all__ = [
    "ALONE",
    "Bundle",
    "SharedPlan",
    "bundle_alone",
    "bundled",
    "bundles_in",
    "lacks",
    "same_aggregate",
    "same_condition",
    "shared_plan",
    "why_apart",
]

#: The name of a query that is alone in its bundle.
ALONE = ""


@dataclass(frozen=True)
class Bundle:
    """Queries that share one copy of the slices, or one query that shares only the intake."""

    queries: Mapping[str, Query]
    composite: Composite | None  # the edges of all windows; None if windows are not aligned
    why: str  # why the bundle shares no slices with the first query outside it

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries."""
        return tuple(self.queries)

    @property
    def aggregates(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """The aggregates of all queries, each once, and where queries select it: pairs of a query's
        name and a column of its result."""
        made: dict[str, tuple[tuple[str, str], ...]] = {}
        for names in _alike(self.queries).values():
            query, column = names[0]
            made[repr(self.queries[query].select[column])] = names
        return made


@dataclass(frozen=True)
class SharedPlan:
    """Several queries, divided into bundles."""

    bundles: tuple[Bundle, ...]

    def bundle_of(self, name: str) -> Bundle:
        """The bundle of a query."""
        return next(bundle for bundle in self.bundles if name in bundle.queries)


def bundle_alone(query: Query) -> Bundle:
    """A bundle of one query."""
    return bundled({ALONE: query})


def bundled(queries: Mapping[str, Query]) -> Bundle:
    """A bundle of these queries."""
    return _bundle(dict(queries), queries)


def why_apart(query: Query, bundle: Bundle) -> str:
    """Why a query cannot read the slices of a bundle; empty if it can.  Any query can read partials
    of each time."""
    first = next(iter(bundle.queries.values()))
    return _unlike(query, first) if _by_time(bundle) else _differs(query, first)


def _by_time(bundle: Bundle) -> bool:
    """True if a stream of the bundle keeps a partial for each time."""
    return any(_ordered(query) for query in bundle.queries.values())


def lacks(query: Query, bundle: Bundle) -> list[str]:
    """The aggregates and edges that a query needs and the slices of a bundle lack, as texts."""
    assert bundle.composite is not None
    known = _alike(bundle.queries)
    found = [
        f"{name} = {chosen!r} has no partial"
        for name, chosen in query.select.items()
        if same_aggregate(chosen) not in known
    ]
    if not _by_time(bundle):
        for cuts in (cuts_of(query.aligned), *further_cuts(query)):
            if not bundle.composite.has(cuts):
                found.append(f"slices are not cut at all edges of {query.window!r}")
                break
    return found


def shared_plan(queries: Mapping[str, Query]) -> SharedPlan:
    """Divide queries into bundles."""
    bundles: list[dict[str, Query]] = []
    for name, query in queries.items():
        for members in bundles:
            if _fits(query, next(iter(members.values()))):
                members[name] = query
                break
        else:
            bundles.append({name: query})
    return SharedPlan(tuple(_bundle(members, queries) for members in bundles))


def bundles_in(each: Sequence[tuple[str, ...]], queries: Mapping[str, Query]) -> tuple[Bundle, ...]:
    """The bundles of a running stream, from the names of the queries of each.  Queries that would
    fit together, and are apart, did not begin together."""
    made = []
    for names in each:
        bundle = _bundle({name: queries[name] for name in names}, queries)
        other = next((name for name in queries if name not in names), None)
        if other is not None and not bundle.why:
            why = f"{names[0]!r} and {other!r} began at different times and hold different events"
            bundle = replace(bundle, why=why)
        made.append(bundle)
    return tuple(made)


def _fits(one: Query, other: Query) -> bool:
    """True if two queries share slices."""
    return not _differs(one, other)


def _differs(one: Query, other: Query) -> str:
    """Why two queries do not share slices; empty if they do."""
    why = _unlike(one, other)
    if not why and _ordered(one) != _ordered(other):
        return "only one depends on the order of events, so that each time is kept apart"
    return why


def _unlike(one: Query, other: Query) -> str:
    """Why no slices could serve two queries; empty if some could."""
    if not isinstance(one.window, Aligned) or not isinstance(other.window, Aligned):
        driven = one if not isinstance(one.window, Aligned) else other
        return f"events make the windows of {driven.window!r}, so they have no common edges"
    if tuple(one.by) != tuple(other.by):
        return f"keys are {_listed(one.by)} here and {_listed(other.by)} there"
    if not same_condition(one.where, other.where):
        return f"`where` is {one.where} here and {other.where} there"
    if one.tie != other.tie:
        return f"`tie` is {one.tie} here and {other.tie} there"
    if one.window.clock != other.window.clock:
        return f"{one.window!r} goes by another calendar than {other.window!r}"
    return ""


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"


def same_condition(one: Any, other: Any) -> bool:
    """True if two conditions are written alike, and so choose the same rows."""
    if one is None or other is None:
        return one is other
    return bool(one.equals(other))


def _ordered(query: Query) -> bool:
    """True if the order of events matters to an aggregate."""
    return not all(chosen.operator.commutative for chosen in query.select.values())


def _bundle(members: dict[str, Query], queries: Mapping[str, Query]) -> Bundle:
    first = next(iter(members.values()))
    others = [query for name, query in queries.items() if name not in members]
    why = _differs(first, others[0]) if others else ""
    composite = None
    if isinstance(first.window, Aligned):
        more = [cuts for query in members.values() for cuts in further_cuts(query)]
        windows = {name: query.aligned for name, query in members.items()}
        composite = Composite(windows, tuple(dict.fromkeys(more)))
    return Bundle(members, composite, why)


def _alike(queries: Mapping[str, Query]) -> dict[Any, tuple[tuple[str, str], ...]]:
    """Where queries select each distinct aggregate, by its `same_aggregate` key."""
    made: dict[Any, tuple[tuple[str, str], ...]] = {}
    for name, query in queries.items():
        for column, chosen in query.select.items():
            known = same_aggregate(chosen)
            made[known] = (*made.get(known, ()), (name, column))
    return made


def same_aggregate(chosen: Aggregate) -> Any:
    """A key that two aggregates have in common if they have the same partials: the columns, the
    condition, and a ready operator's name and parameters, or the very operator."""
    operator = chosen.operator
    what: Any = id(operator)
    if operator.ready:
        what = operator.ready, repr(operator.parameters), operator.types, operator.skips
    # the size is not in the key, because partials do not depend on it
    return what, chosen.columns, str(chosen.returns), chosen.where
