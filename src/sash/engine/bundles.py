"""What several queries share: bundles of queries, and the plan of a bundle for a schema.

A bundle is made of aligned queries with the same keys, condition, tie and clock.  They share one
copy of the slices, cut wherever one of them has an edge, and each aggregate that several select has
one partial.  A query that fits into no bundle is a bundle of its own: it shares the intake only.

Queries whose aggregates depend on the order of events keep each time apart, where others keep one
partial for a slice; so that they do not make others keep more, they have bundles of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ..kernels.layout import leaf_operators
from ..kernels.program import specialise
from ..operators.contract import Operator, Part, _join
from ..query.aggregates import Aggregate, count
from ..query.plan import NO_NAME, Group, Plan, make_plan
from ..query.query import Query
from ..slicing.composite import Composite
from ..state.answers import Sources
from ..state.contract import Slices
from ..state.scan_kernel import SCAN
from ..windows import Aligned

__all__ = ["Bundle", "BundlePlan", "SharedPlan", "plan_bundle", "shared_plan", "union_query"]


@dataclass(frozen=True)
class Bundle:
    """Queries that share one copy of the slices, or one query that shares only the intake."""

    queries: Mapping[str, Query]
    composite: Composite | None  # the edges of all, where windows are aligned
    why: str  # why it shares slices with no other query

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries."""
        return tuple(self.queries)

    @property
    def aggregates(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """The aggregates of all queries, each once, and where each is selected: the names of a
        query and of a column of its result."""
        made: dict[str, tuple[tuple[str, str], ...]] = {}
        for names in _alike(self.queries).values():
            query, column = names[0]
            made[repr(self.queries[query].select[column])] = names
        return made


@dataclass(frozen=True)
class SharedPlan:
    """Which of several queries share slices."""

    bundles: tuple[Bundle, ...]

    def bundle_of(self, name: str) -> Bundle:
        """The bundle of a query."""
        return next(bundle for bundle in self.bundles if name in bundle.queries)


def shared_plan(queries: Mapping[str, Query]) -> SharedPlan:
    """Put queries into bundles."""
    bundles: list[dict[str, Query]] = []
    for name, query in queries.items():
        for members in bundles:
            if _fits(query, next(iter(members.values()))):
                members[name] = query
                break
        else:
            bundles.append({name: query})
    return SharedPlan(tuple(_bundle(members, queries) for members in bundles))


def _fits(one: Query, other: Query) -> bool:
    """True if two queries share slices."""
    return not _differs(one, other)


def _differs(one: Query, other: Query) -> str:
    """Why two queries do not share slices."""
    if not isinstance(one.window, Aligned) or not isinstance(other.window, Aligned):
        driven = one if not isinstance(one.window, Aligned) else other
        return f"events make the windows of {driven.window!r}, so they have no common edges"
    if tuple(one.by) != tuple(other.by):
        return f"keys are {_listed(one.by)} here and {_listed(other.by)} there"
    if not _same_condition(one.where, other.where):
        return f"`where` is {one.where} here and {other.where} there"
    if one.tie != other.tie:
        return f"`tie` is {one.tie} here and {other.tie} there"
    if one.window.clock != other.window.clock:
        return f"{one.window!r} goes by another calendar than {other.window!r}"
    if _ordered(one) != _ordered(other):
        return "only one depends on the order of events, so that each time is kept apart"
    return ""


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"


def _same_condition(one: Any, other: Any) -> bool:
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
        composite = Composite({name: query.aligned for name, query in members.items()})
    return Bundle(members, composite, why)


def _alike(queries: Mapping[str, Query]) -> dict[Any, tuple[tuple[str, str], ...]]:
    """Where each distinct aggregate is selected, by what it is."""
    made: dict[Any, tuple[tuple[str, str], ...]] = {}
    for name, query in queries.items():
        for column, chosen in query.select.items():
            known = _identity(chosen)
            made[known] = (*made.get(known, ()), (name, column))
    return made


def _identity(chosen: Aggregate) -> Any:
    """What makes two aggregates the same: the columns, and a ready operator's name and parameters,
    or the very operator."""
    operator = chosen.operator
    what: Any = id(operator)
    if operator.ready:
        what = operator.ready, repr(operator.parameters), operator.types, operator.skips
    return what, chosen.columns, str(chosen.returns)


@dataclass(frozen=True)
class Projection:
    """The part of a bundle's partials that a query reads: for each group of its plan, the group of
    the bundle's plan, and there the words, or the items of a tuple, and the columns, by the places
    they have in the query's group."""

    groups: tuple[int, ...]
    items: tuple[tuple[int, ...] | None, ...]  # None: all of them, as they are
    columns: tuple[tuple[int, ...], ...]

    def slices(self, slices: Slices) -> Slices:
        """The slices with the partials that the query reads."""
        partials = []
        for group, items in zip(self.groups, self.items, strict=True):
            held = slices.partials[group]
            if items is not None and isinstance(held, list):
                held = [tuple(partial[i] for i in items) for partial in held]
            elif items is not None:
                held = held[:, list(items)]
            partials.append(held)
        return dataclasses.replace(slices, partials=partials)

    def sources(self, sources: list[Sources]) -> list[Sources]:
        """The values of columns that are read by number."""
        return [
            {new: sources[g][old] for new, old in enumerate(columns) if old in sources[g]}
            for g, columns in zip(self.groups, self.columns, strict=True)
        ]


@dataclass(frozen=True)
class BundlePlan:
    """A bundle for one schema.  `union` is the plan of all aggregates, each once.  `plans` has the
    plan of each query, and `columns` for each column of its result the aggregate of the union.
    For a whole table a query's plan is over the union's partials, and `reads` has what it reads of
    them."""

    bundle: Bundle
    union: Plan
    plans: Mapping[str, Plan]
    reads: Mapping[str, Projection]
    columns: Mapping[str, Mapping[str, str]]

    def __deepcopy__(self, memo: Any) -> BundlePlan:
        """The plan itself, which never changes."""
        return self

    @property
    def composite(self) -> Composite:
        """The edges of all windows."""
        assert self.bundle.composite is not None
        return self.bundle.composite


def plan_bundle(bundle: Bundle, schema: pa.Schema, *, whole: bool = False) -> BundlePlan:
    """The plan of aligned queries, or an error that names the query and says what is wrong with
    the table's columns; with `whole`, for a whole table (see `query.plan.make_plan`)."""
    alone: dict[str, Plan] = {}
    for name, query in bundle.queries.items():
        try:
            alone[name] = make_plan(query, schema, whole=whole)
        except (KeyError, TypeError, ValueError) as error:
            text = error.args[0] if error.args else error
            raise type(error)(f"query {name!r}: {text}") from None
    rowless = [name for name, plan in alone.items() if NO_NAME in plan.types]
    query, columns = union_query(bundle, rowless)
    union = make_plan(query, schema, whole=whole)
    if not whole:
        return BundlePlan(bundle, union, alone, {}, columns)
    plans, reads = {}, {}
    for name, plan in alone.items():
        plans[name], reads[name] = _projected(plan, union, columns[name])
    return BundlePlan(bundle, union, plans, reads, columns)


def union_query(
    bundle: Bundle, rowless: Sequence[str] = ()
) -> tuple[Query, dict[str, dict[str, str]]]:
    """A query with the aggregates of all, each once; and for each query and column of its result
    the aggregate there.  Queries in `rowless` need another one that counts rows."""
    names: dict[Any, str] = {}
    select: dict[str, Aggregate] = {}
    columns: dict[str, dict[str, str]] = {name: {} for name in bundle.queries}
    first = next(iter(bundle.queries.values()))
    for name, query in bundle.queries.items():
        counted = {NO_NAME: count()} if name in rowless else {}
        for column, aggregate in (dict(query.select) | counted).items():
            known = _identity(aggregate)
            if known not in names:
                made = f"{name}.{column}"
                while made in first.by or made in select:
                    made += "'"
                names[known] = made
                select[made] = aggregate
            columns[name][column] = names[known]
    return dataclasses.replace(first, select=select, emit="all"), columns


def _projected(plan: Plan, union: Plan, columns: Mapping[str, str]) -> tuple[Plan, Projection]:
    """A query's plan over the partials of the bundle's, and what it reads of them."""
    groups, at, items, read = [], [], [], []
    for g, group in enumerate(union.groups):
        wanted = [
            (column, group.names.index(name))
            for column, name in columns.items()
            if name in group.names
        ]
        if not wanted:
            continue
        made, parts, used = _some_of(group, sorted(wanted, key=lambda pair: pair[1]))
        groups.append(made)
        at.append(g)
        items.append(parts)
        read.append(used)
    made_plan = dataclasses.replace(plan, groups=tuple(groups))
    return made_plan, Projection(tuple(at), tuple(items), tuple(read))


def _some_of(
    group: Group, wanted: list[tuple[str, int]]
) -> tuple[Group, tuple[int, ...] | None, tuple[int, ...]]:
    """Some aggregates of a group as a group of their own: its words of a partial, or items of a
    tuple; and the columns it reads, by their places in the whole group."""
    operator, parts = group.operator, group.operator.parts
    owners = [_owner(parts, i) for _, i in wanted]
    own = list(dict.fromkeys(owners))
    used = tuple(sorted({c for _, i in wanted for c in parts[i].columns}))
    made: list[Part] = []
    for (_, i), owner in zip(wanted, owners, strict=True):
        columns = tuple(used.index(c) for c in parts[i].columns)
        first = owners.index(owner)
        shares = None if first == len(made) else first
        made.append(Part(parts[i].operator, columns, shares))
    layout = specialise(SCAN, operator).layout
    places: list[int] = []
    if layout is None:
        everyone = [i for i, part in enumerate(parts) if part.shares is None]
        places = [everyone.index(owner) for owner in own]
        total = len(everyone)
    else:
        words = _words(operator)
        places = [word for owner in own for word in words[owner]]
        total = layout.words
    whole = places == list(range(total)) and len(used) == len(group.columns)
    as_it_is = whole and [i for _, i in wanted] == list(range(len(parts)))
    joined = operator
    if not as_it_is:
        types = tuple(operator.types[c] for c in used)
        names = tuple(group.names[i] for _, i in wanted)
        joined = _joined(tuple(made), names, types, layout is not None)
    values_of = [group.values_of[i] for _, i in wanted]
    sub = Group(
        tuple(column for column, _ in wanted),
        tuple(group.columns[c] for c in used),
        joined,
        tuple(group.hows[c] for c in used),
        tuple(group.exact[i] for _, i in wanted),
        tuple(None if c is None else used.index(c) for c in values_of),
    )
    return sub, None if places == list(range(total)) else tuple(places), used


def _owner(parts: tuple[Part, ...], i: int) -> int:
    """The part whose partial a part lowers."""
    shares = parts[i].shares
    return i if shares is None else shares


@lru_cache(maxsize=1024)
def _joined(
    parts: tuple[Part, ...], names: tuple[str, ...], types: tuple[str, ...], compiled: bool
) -> Operator:
    """Parts as one operator: the same for the same parts, because kernels are kept with it."""
    made = _join(parts, len(types), name=", ".join(names), types=types)
    return made if compiled else dataclasses.replace(made, compile=False)


def _words(operator: Operator) -> dict[int, range]:
    """The words of a slot that each part of an operator has."""
    layout = specialise(SCAN, operator).layout
    assert layout is not None
    made: dict[int, range] = {}
    leaf = 0
    for i, part in enumerate(operator.parts):
        if part.shares is None:
            leaves = layout.leaves[leaf : leaf + len(leaf_operators(part.operator))]
            leaf += len(leaves)
            made[i] = range(leaves[0].offset, leaves[-1].offset + leaves[-1].words)
    return made
