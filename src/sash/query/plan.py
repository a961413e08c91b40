"""A query tied to the types of a table: which operators run over which columns, and what the
columns of the result are.

Aggregates over numbers, times and bools run compiled, all together in one partial; those over
anything else run on Python objects, together as well.  Aggregates that are computed from the same
partial share it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from ..operators.contract import Operator, Part, _join
from ..operators.decimals import SMALL, adds_decimals
from ..windows import Aligned, Driven, Window
from .aggregates import Aggregate
from .conditions import Condition
from .over import Over, Represented, represented
from .query import RESERVED, Query, column_kept
from .registry import (
    REGISTRY,
    Which,
    check_columns,
    for_decimals,
    picks_values,
    read_numbered,
    reads_floats,
    result_type,
    value_of,
    which_of_range,
)
from .types import How, column_type, in_ticks, value_type

__all__ = ["NO_NAME", "Group", "Plan", "Ranged", "column_type", "make_plan"]

#: The name of an aggregate that no result has.
NO_NAME = ""

#: Types that become numbers by a cast, and what to call them.
_TO_CAST = {"decimal": "decimals", "string": "text"}


@dataclass(frozen=True)
class Group:
    """Aggregates that run as one operator."""

    names: tuple[str, ...]  # of the result's columns
    columns: tuple[str, ...]  # that are read
    operator: Operator  # tied to the columns' types
    hows: tuple[How, ...]  # for each column: how it is read
    exact: tuple[bool, ...]  # for each name: its answers have nanoseconds as whole numbers
    values_of: tuple[int | None, ...]  # for each name: the column whose values it has by number
    conditions: tuple[Condition, ...] = ()  # behind the columns, whether rows satisfy each
    over: Over | None = None  # where windows of a row have several sizes
    labelled: bool = False  # numbers of values become labels in partials that outlive their rows

    def alone(self, size: int) -> Group:
        """The group over windows of one of its sizes, by its number, where each aggregate has all
        sizes."""
        assert self.over is not None
        return dataclasses.replace(self, names=self.over.at(size), over=None)


@dataclass(frozen=True)
class Ranged:
    """An aggregate over a whole table where windows are ranges of its rows, which are values of a
    column there: all of them, so many of the first or last, the n-th from the end, a quantile."""

    name: str
    column: str
    which: Which
    count: float  # of the first or last, which one from the end, or the quantile's rank
    skips: bool  # nulls are left out
    where: Condition | None = None  # which rows count

    @property
    def ordered(self) -> bool:
        """True if its answer depends on the order of events."""
        return self.which != "quantile"


@dataclass(frozen=True)
class Plan:
    """A query for one schema."""

    query: Query
    schema: pa.Schema  # of the columns that are read
    groups: tuple[Group, ...]
    types: dict[str, pa.DataType | None]  # of the result's values; None where only answers tell
    extra: tuple[str, ...] = ()  # columns that are keys besides those of the query
    ranged: tuple[Ranged, ...] = ()  # aggregates that need no operator over a whole table

    def __deepcopy__(self, memo: Any) -> Plan:
        """The plan itself, which never changes."""
        return self

    @property
    def keys(self) -> list[pa.Field]:
        return [self.schema.field(name) for name in (*self.query.by, *self.extra)]

    @cached_property
    def ordered(self) -> bool:
        """True if an aggregate needs events in order.  Then the events of a slice are not kept as
        one partial, as more events may come between them."""
        return bool(self.ranged) or not all(g.operator.commutative for g in self.groups)

    @cached_property
    def time_type(self) -> pa.DataType:
        return self.schema.field(self.query.time).type


def make_plan(
    query: Query,
    schema: pa.Schema,
    extra: tuple[str, ...] = (),
    *,
    whole: bool = False,
    labelled: bool = False,
    by_sizes: bool = False,
) -> Plan:
    """The plan, or an error that says what is wrong with the table's columns.

    With `whole` it is for a whole table, where values of any type can be numbers by their row or
    their place, and lists are ranges of rows; without, partials are kept longer than their rows.
    With `labelled` it is for a stream that has dictionaries: values of any type are labels there.
    Where windows have several sizes, a group's aggregates have the same ones if they are to be
    grouped `by_sizes`, as they are where events drive the windows of a whole table; else all groups
    have all sizes, and hold the same slices.
    """
    fields = {}
    for name in (*query.columns, *extra):
        at = schema.get_all_field_indices(name)
        if len(at) != 1:
            have = ", ".join(schema.names) or "none"
            what = "is there more than once" if at else "is not there"
            raise KeyError(f"the query reads column {name!r}, which {what}; the table has: {have}")
        fields[name] = schema.field(at[0])
    _check_time(query.time, fields[query.time].type)
    if isinstance(query.window, Driven):
        for name in (*query.select, *RESERVED):
            if name in schema.names:
                raise column_kept(name, query.window)
    typed: list[tuple[str, Aggregate]] = []
    #: With labels: always compiled, so not grouped with operators of users, which numba may refuse.
    apart: list[tuple[str, Aggregate]] = []
    objects: list[tuple[str, Aggregate]] = []
    ranged: list[Ranged] = []
    types: dict[str, pa.DataType | None] = {}
    for condition in dict.fromkeys(a.where for a in query.select.values() if a.where):
        condition.check(pa.schema(fields.values()))
    several = represented(query) if query.several else None
    for name, asked in (several.aggregates if several else query.select).items():
        chosen = _over_decimals(asked, fields)
        read = _reads(chosen, query.time, fields, whole=whole, labelled=labelled)
        given = [value_type(fields[c].type) for c, _ in read]
        try:
            check_columns(asked.operator, given)
            tied = chosen.operator.of(*(_read_as(given[i], h) for i, (_, h) in enumerate(read)))
        except TypeError as error:
            have = ", ".join(f"{c!r} has {t}" for (c, _), t in zip(read, given, strict=True))
            wrong = [word for kind, word in _TO_CAST.items() if kind in have]
            hint = f"; cast {wrong[0]} to numbers first" if wrong and "number" in str(error) else ""
            raise TypeError(f"{name} = {chosen}: {error} (column {have}){hint}") from None
        types[name] = result_type(asked, given)
        which = which_of_range(chosen.operator)
        known = whole and several is None and chosen.returns is None
        if known and which and _of_ranges(query.window, which, given):
            number = chosen.operator.parameters[0] if chosen.operator.parameters else 0
            if chosen.operator.ready == "median":
                number = 0.5
            skips = chosen.operator.skips[0]
            ranged.append(Ranged(name, read[0][0], which, number, skips, chosen.where))
            continue
        compiled = tied.compile and tied.shape != "object"
        held_as_labels = labelled and any(how in ("rows", "places") for _, how in read)
        (apart if held_as_labels else typed if compiled else objects).append((name, chosen))
    if not typed and not apart and not objects:  # something has to tell which windows there are
        typed.append((NO_NAME, Aggregate(REGISTRY["count"].make, ())))  # type: ignore[arg-type]
        types[NO_NAME] = pa.int64()
    if several:
        for name, names in several.names.items():
            types |= dict.fromkeys(names.values(), types[name])
    if all(aggregate.operator.ready for _, aggregate in typed):
        typed, apart = typed + apart, []
    parts = [part for part in (typed, apart, objects) if part]
    by_sizes = by_sizes or (whole and isinstance(query.window, Driven))
    if several and by_sizes:
        parts = [some for part in parts for some in several.by_sizes(part)]
    ways = {"whole": whole, "labelled": labelled}
    groups = [_group(query, sorted(part, key=_place), fields, **ways) for part in parts]
    if several:
        groups = [_sized(group, several, every=not by_sizes) for group in groups]
    schema = pa.schema(fields.values())
    return Plan(query, schema, tuple(groups), types, extra, tuple(ranged))


def _of_ranges(window: Window, which: Which, given: Sequence[pa.DataType]) -> bool:
    """True if an aggregate is answered from ranges of a table's rows: lists where windows are
    aligned, quantiles of numbers but where a window is a range with a hole."""
    if which != "quantile":
        return isinstance(window, Aligned)
    hole = isinstance(window, Driven) and window.excluded in ("row", "ties")
    number = column_type(given[0]) != "object" or pa.types.is_decimal(given[0])
    return number and not hole


def _over_decimals(chosen: Aggregate, fields: dict[str, pa.Field]) -> Aggregate:
    """An aggregate with the operator for decimals, where it adds them up."""
    kinds = [value_type(fields[c].type) for c in chosen.columns]
    operator = for_decimals(chosen.operator, kinds) if kinds else None
    return chosen if operator is None else dataclasses.replace(chosen, operator=operator)


def _reads(
    chosen: Aggregate, time: str, fields: dict[str, pa.Field], *, whole: bool, labelled: bool
) -> tuple[tuple[str, How], ...]:
    """The columns an aggregate reads, and how; what only counts rows reads their times."""
    reads = chosen.columns or (time,)
    kinds = [value_type(fields[c].type) for c in reads]
    hows = read_numbered(chosen.operator, kinds) if whole or labelled else None
    picks = picks_values(chosen.operator)
    made: list[tuple[str, How]] = []
    for i, (column, kind) in enumerate(zip(reads, kinds, strict=True)):
        how: How = hows[i] if hows else "values"
        if labelled and column_type(in_ticks(kind)) != "object":
            how = "values"  # which are numbers, and need no labels
        if how == "values" and picks and in_ticks(kind) != kind:
            how = "ticks"
        elif adds_decimals(chosen.operator) and kind.precision <= SMALL:
            how = "unscaled"
        elif reads_floats(chosen.operator) and pa.types.is_decimal(kind):
            how = "floats"
        made.append((column, how))
    return tuple(made)


def _read_as(kind: pa.DataType, how: How) -> str:
    """What operators call the type of a column as it is read."""
    if how in ("rows", "places", "unscaled"):
        return "int64"
    if how == "floats":
        return "float64"
    return column_type(in_ticks(kind) if how == "ticks" else kind)


def _group(
    query: Query,
    chosen: Sequence[tuple[str, Aggregate]],
    fields: dict[str, pa.Field],
    *,
    whole: bool,
    labelled: bool,
) -> Group:
    reads = [_reads(a, query.time, fields, whole=whole, labelled=labelled) for _, a in chosen]
    columns = list(dict.fromkeys(c for read in reads for c in read))
    conditions = list(dict.fromkeys(a.where for _, a in chosen if a.where))
    types = tuple(_read_as(value_type(fields[c].type), how) for c, how in columns)
    types += ("bool",) * len(conditions)
    parts, values_of = [], []
    for (_, a), read in zip(chosen, reads, strict=True):
        at = tuple(columns.index(c) for c in read)
        where = len(columns) + conditions.index(a.where) if a.where else None
        parts.append(Part(a.operator.of(*(types[c] for c in at)), at, where=where))
        source = value_of(a.operator)
        numbered = source is not None and read[source][1] in ("rows", "places")
        values_of.append(at[source] if numbered else None)  # type: ignore[index]
    names, hows = tuple(name for name, _ in chosen), tuple(how for _, how in columns)
    return Group(
        names,
        tuple(c for c, _ in columns),
        _joined(shared(parts), names, types),
        hows,
        tuple(picks_values(a.operator) for _, a in chosen),
        tuple(values_of),
        tuple(conditions),
        labelled=labelled and not {"rows", "places"}.isdisjoint(hows),
    )


def _sized(group: Group, several: Represented, *, every: bool) -> Group:
    return dataclasses.replace(group, over=several.over(group.names, every=every))


@lru_cache(maxsize=256)
def _joined(parts: tuple[Part, ...], names: tuple[str, ...], types: tuple[str, ...]) -> Operator:
    """Parts as one operator: the same for the same parts, because kernels are kept with it."""
    return _join(parts, len(types), name=", ".join(names), types=types)


@lru_cache(maxsize=256)
def _served(server: Operator, name: str, lower: Callable[[Any], Any]) -> Operator:
    """What another operator's partial tells."""
    return dataclasses.replace(server, name=name, lower=lower)


def shared(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts of tied operators, with those that follow from another's partial sharing it.

    Operators over the same columns and rows share if they lift and combine alike (sum and mean of
    integers, all that follows from moments), or if one serves the other (mean of floats serves
    sum).
    """
    alike: dict[Any, list[int]] = {}
    for i, part in enumerate(parts):
        op = part.operator
        # by identity: a callable object may not be hashable, and may equal another one
        made_by = (id(op.lift), id(op.combine), repr(op.identity), op.skips)
        alike.setdefault(((part.columns, part.where), made_by), []).append(i)
    made = list(parts)
    for (reads, _), members in alike.items():
        owner = members[0]
        op = parts[owner].operator
        for (others, _), (server, *_) in alike.items():
            serves = parts[server].operator.serves
            lower = next((lower for lift, lower in serves if lift is op.lift), None)
            if lower and others == reads and parts[server].operator.skips == op.skips:
                owner = server
                for i in members:
                    served = _served(parts[server].operator, parts[i].operator.name, lower)
                    made[i] = dataclasses.replace(parts[i], operator=served)
                break
        for i in members:
            if i != owner:
                made[i] = dataclasses.replace(made[i], shares=owner)
    return tuple(made)


def _place(chosen: tuple[str, Aggregate]) -> tuple[Any, ...]:
    """Where an aggregate stands in its group: by what it is, so that the same ones selected in
    another order run on the same kernels."""
    name, aggregate = chosen
    return aggregate.operator.name, aggregate.columns, repr(aggregate.where), name


def _check_time(name: str, given: pa.DataType) -> None:
    if pa.types.is_timestamp(given) or pa.types.is_integer(given):
        return
    raise TypeError(
        f"the time column {name!r} has type {given}; it must hold timestamps, or whole numbers of "
        "microseconds since 1970"
    )
