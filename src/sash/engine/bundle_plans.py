"""The plan of a bundle for a schema: one plan with the aggregates of all its queries, and for each
query the words of the partials that it reads."""

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
from ..state.projection import Projection
from ..state.scan_kernel import SCAN
from ..state.shared_tiles import Sight, Size
from .bundles import Bundle, same_aggregate
from .failures import for_query
from .sizes import of_size, reach_of, sizes_of

__all__ = ["BundlePlan", "Sized", "plan_alone", "plan_bundle", "union_query"]


@dataclass(frozen=True)
class Sized:
    """The columns of a query's result over another size than its windows.  The size is None for a
    lifetime.  For a whole table, and for slices in a store, `plan` is the plan of these columns,
    and `reads` picks its words of the partials."""

    size: int | None
    columns: tuple[str, ...]
    plan: Plan | None = None
    reads: Projection | None = None


@dataclass(frozen=True)
class BundlePlan:
    """A bundle bound to one schema.  `union` is the plan of all aggregates, each once.  `plans` has
    the plan of each query; `columns` maps each column of a query's result to an aggregate of the
    union; `sizes` has the columns over other sizes than the query's windows.
    For a whole table, and for slices in a store, a query's plan runs over the union's partials, and
    `reads` picks its words of them."""

    bundle: Bundle
    union: Plan
    plans: Mapping[str, Plan]
    reads: Mapping[str, Projection]
    columns: Mapping[str, Mapping[str, str]]
    sizes: Mapping[str, tuple[Sized, ...]]

    def __deepcopy__(self, memo: Any) -> BundlePlan:
        """The plan itself, which never changes."""
        return self

    def sights(self) -> dict[str, Sight]:
        """Each query's view of slices in a store."""
        made = {}
        for name, plan in self.plans.items():
            sizes = []
            for one in self.sizes[name]:
                assert one.plan is not None
                assert one.reads is not None
                sizes.append(Size(of_size(plan.query.aligned, one.size), one.plan, one.reads))
            made[name] = Sight(
                plan, self.reads[name], self.columns[name], reach_of(plan.query), tuple(sizes)
            )
        return made

    @property
    def composite(self) -> Composite:
        """The edges of all windows."""
        assert self.bundle.composite is not None
        return self.bundle.composite


def plan_bundle(
    bundle: Bundle, schema: pa.Schema, *, whole: bool = False, stored: bool = False
) -> BundlePlan:
    """Make the plan of a bundle: with `whole`, for a whole table (see `query.plan.make_plan`); with
    `stored`, for slices in a store; else for a stream in memory.  If the columns do not fit a
    query, the error names the query."""
    labelled = not whole
    alone: dict[str, Plan] = {}
    alike: dict[Any, Plan] = {}  # by the selection, because plans do not depend on the window
    for name, query in bundle.queries.items():
        selected = tuple((column, same_aggregate(a)) for column, a in query.select.items())
        if selected in alike:
            alone[name] = dataclasses.replace(alike[selected], query=query)
            continue
        with for_query(name):
            made_plan = plan_alone(query, schema, whole=whole, labelled=labelled)
            alone[name] = alike[selected] = made_plan
    sizes = {
        name: tuple(Sized(size, some) for size, some in sizes_of(query).items())
        for name, query in bundle.queries.items()
    }
    rowless = [
        name
        for name, plan in alone.items()
        if (whole or stored) and _needs_count(plan, sizes[name])
    ]
    query, columns = union_query(bundle, rowless)
    union = make_plan(query, schema, whole=whole, labelled=labelled)
    if not whole and not stored:
        return BundlePlan(bundle, union, alone, {}, columns, sizes)
    plans, reads, sized = {}, {}, {}
    projected = _Projected(union)
    for name, plan in alone.items():
        others = {column for size in sizes[name] for column in size.columns}
        own = {column: of for column, of in columns[name].items() if column not in others}
        if NO_NAME in columns[name]:
            plan = dataclasses.replace(plan, types=plan.types | {NO_NAME: pa.int64()})
        plans[name], reads[name] = projected.plan(plan, own)
        made = []
        for size in sizes[name]:
            some = {column: columns[name][column] for column in size.columns}
            made.append(Sized(size.size, size.columns, *projected.plan(plan, some)))
        sized[name] = tuple(made)
    return BundlePlan(bundle, union, plans, reads, columns, sized)


def plan_alone(
    query: Query, schema: pa.Schema, *, whole: bool = False, labelled: bool = False
) -> Plan:
    """Make the plan of one aligned query.  All its aggregates have the partials that they have over
    its own windows, whatever their sizes."""
    if not query.several:
        return make_plan(query, schema, whole=whole, labelled=labelled)
    select = {name: dataclasses.replace(a, size=None) for name, a in query.select.items()}
    plain = dataclasses.replace(query, select=select)
    made = make_plan(plain, schema, whole=whole, labelled=labelled)
    return dataclasses.replace(made, query=query)


def _needs_count(plan: Plan, sizes: tuple[Sized, ...]) -> bool:
    """True if no aggregate with a partial is over the query's own windows.  Then the plan needs a
    count, from which the engine knows which windows hold events."""
    others = {column for size in sizes for column in size.columns}
    others |= {chosen.name for chosen in plan.ranged}
    return all(name in others for name in plan.query.select)


def union_query(
    bundle: Bundle, rowless: Sequence[str] = ()
) -> tuple[Query, dict[str, dict[str, str]]]:
    """A query with the aggregates of all queries, each once; and for each query and column of its
    result, the name of its aggregate.  For each query in `rowless`, add a count of rows."""
    names: dict[Any, str] = {}
    select: dict[str, Aggregate] = {}
    columns: dict[str, dict[str, str]] = {name: {} for name in bundle.queries}
    first = next(iter(bundle.queries.values()))
    for name, query in bundle.queries.items():
        counted = {NO_NAME: count()} if name in rowless else {}
        for column, aggregate in (dict(query.select) | counted).items():
            known = same_aggregate(aggregate)
            if known not in names:
                plain = dataclasses.replace(aggregate, size=None)
                made = repr(plain)  # a name that does not depend on the order of the queries
                while made in first.by or made in select:
                    made += "'"
                names[known] = made
                select[made] = plain
            columns[name][column] = names[known]
    return dataclasses.replace(first, select=select, emit="all"), columns


class _Projected:
    """Makes plans of queries over the partials of a bundle; the same columns share one result."""

    def __init__(self, union: Plan) -> None:
        self._union = union
        self._made: dict[Any, tuple[tuple[Group, ...], Projection]] = {}

    def plan(self, plan: Plan, columns: Mapping[str, str]) -> tuple[Plan, Projection]:
        """A query's plan over the bundle's partials, and the words of them that it reads."""
        known = tuple(columns.items())
        if known not in self._made:
            self._made[known] = self._of(columns)
        groups, reads = self._made[known]
        ranged = tuple(chosen for chosen in plan.ranged if chosen.name in columns)
        return dataclasses.replace(plan, groups=groups, ranged=ranged), reads

    def _of(self, columns: Mapping[str, str]) -> tuple[tuple[Group, ...], Projection]:
        groups, at, items, read = [], [], [], []
        for g, group in enumerate(self._union.groups):
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
        return tuple(groups), Projection(tuple(at), tuple(items), tuple(read))


def _some_of(
    group: Group, wanted: list[tuple[str, int]]
) -> tuple[Group, tuple[int, ...] | None, tuple[int, ...]]:
    """Some aggregates of a group as a group of their own; its words of a partial, or items of a
    tuple (None: all); and the columns that it reads, by their places in the whole group."""
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
    many = len(group.columns)  # conditions follow them
    whole = places == list(range(total)) and len(used) == many + len(group.conditions)
    as_it_is = whole and [i for _, i in wanted] == list(range(len(parts)))
    joined = operator
    if not as_it_is:
        types = tuple(operator.types[c] for c in used)
        names = tuple(group.names[i] for _, i in wanted)
        joined = _joined(tuple(made), names, types, layout is not None)
    values_of = [group.values_of[i] for _, i in wanted]
    hows = tuple(group.hows[c] for c in used if c < many)
    sub = Group(
        tuple(column for column, _ in wanted),
        tuple(group.columns[c] for c in used if c < many),
        joined,
        hows,
        tuple(group.exact[i] for _, i in wanted),
        tuple(None if c is None else used.index(c) for c in values_of),
        tuple(group.conditions[c - many] for c in used if c >= many),
        labelled=group.labelled and not {"rows", "places"}.isdisjoint(hows),
    )
    return sub, None if places == list(range(total)) else tuple(places), used


def _owner(parts: tuple[Part, ...], i: int) -> int:
    """The part that owns the partial from which part `i` is lowered."""
    shares = parts[i].shares
    return i if shares is None else shares


@lru_cache(maxsize=1024)
def _joined(
    parts: tuple[Part, ...], names: tuple[str, ...], types: tuple[str, ...], compiled: bool
) -> Operator:
    """Join parts into one operator.  The same parts give the same object, because compiled kernels
    are kept by operator."""
    made = _join(parts, len(types), name=", ".join(names), types=types)
    return made if compiled else dataclasses.replace(made, compile=False)


def _words(operator: Operator) -> dict[int, range]:
    """The words of a slot that hold each part of an operator."""
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
