"""A query tied to the types of a table: the operators, the columns that they read, and the columns
of the result.

Aggregates over numbers, times and bools run compiled, all together in one partial.  Aggregates over
other types run on Python objects, in a second partial.  Aggregates that need the same partial share
it.
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
from .names import check_column
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
from .types import How, check_time, column_type, in_ticks, value_type

__all__ = ["NO_NAME", "Group", "Plan", "Ranged", "column_type", "make_plan"]

#: The name of an aggregate that is not in the result.
NO_NAME = ""

#: Types that a cast turns into numbers, and their names in messages.
_TO_CAST = {"decimal": "decimals", "string": "text"}


@dataclass(frozen=True)
class Group:
    """Aggregates that run as one operator."""

    names: tuple[str, ...]  # of the result's columns
    columns: tuple[str, ...]  # that are read
    operator: Operator  # tied to the columns' types
    hows: tuple[How, ...]  # for each column: how it is read
    exact: tuple[bool, ...]  # for each name: its answers are nanoseconds, as whole numbers
    values_of: tuple[int | None, ...]  # for each name: the column whose values its answers number
    conditions: tuple[Condition, ...] = ()  # each is one more input, behind the columns
    over: Over | None = None  # if the windows of a row have several sizes
    labelled: bool = False  # partials hold labels of values, because they outlive the rows

    def alone(self, size: int) -> Group:
        """The same group over windows of one size, given by its index.  Every aggregate must have
        that size."""
        assert self.over is not None
        return dataclasses.replace(self, names=self.over.at(size), over=None)


@dataclass(frozen=True)
class Ranged:
    """An aggregate that `run` answers from a window's range of rows, without partials.

    The answer is all values of a column in that range, the first or last `count` of them, the n-th
    from the end, or a quantile.
    """

    name: str
    column: str
    which: Which
    count: float  # how many of the first or last, which one from the end, or the quantile's rank
    skips: bool  # leave out nulls
    where: Condition | None = None  # which rows count

    @property
    def ordered(self) -> bool:
        """True if the answer depends on the order of events."""
        return self.which != "quantile"


@dataclass(frozen=True)
class Plan:
    """A query tied to one schema."""

    query: Query
    schema: pa.Schema  # of the columns that the query reads
    groups: tuple[Group, ...]
    types: dict[str, pa.DataType | None]  # of the result's values; None if only the answers show it
    extra: tuple[str, ...] = ()  # key columns besides those of the query
    ranged: tuple[Ranged, ...] = ()  # aggregates that need no operator over a whole table

    def __deepcopy__(self, memo: Any) -> Plan:
        """The plan itself, which never changes."""
        return self

    @property
    def keys(self) -> list[pa.Field]:
        return [self.schema.field(name) for name in (*self.query.by, *self.extra)]

    @cached_property
    def ordered(self) -> bool:
        """True if an aggregate needs events in order.  Then a stream cannot keep the events of a
        slice as one partial, because late events may come between them."""
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
    """Plan a query for the columns of a table; raise an error if they do not fit.

    `whole` is for `run`, where partials do not outlive the table: a number, the row or the rank,
    can stand for a value of any type, and a range of rows for a list.  `labelled` is for a stream
    with dictionaries, where a label stands for a value of any type.  `by_sizes` is for windows of
    several sizes: each group has aggregates of the same sizes, as `run` needs them for driven
    windows.  Without `by_sizes` all groups have all sizes, and hold the same slices.
    """
    fields = {}
    for name in (*query.columns, *extra):
        check_column(name, schema.names)
        fields[name] = schema.field(name)
    check_time(query.time, fields[query.time].type)
    if isinstance(query.window, Driven):
        for name in (*query.select, *RESERVED):
            if name in schema.names:
                raise column_kept(name, query.window)
    typed: list[tuple[str, Aggregate]] = []
    #: Aggregates with labels.  They must compile, and numba may refuse an operator of a user, so
    #: they do not share a group with one.
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
            if any(map(pa.types.is_null, given)):
                hint = "; all its values are null, so it has no type: cast the column to one first"
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
    if not typed and not apart and not objects:  # a group must find out which windows exist
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
    """True if `run` answers an aggregate from ranges of rows: lists if the window is aligned, and
    quantiles of numbers unless `exclude` makes a hole in the window's range."""
    if which != "quantile":
        return isinstance(window, Aligned)
    hole = isinstance(window, Driven) and window.excluded in ("row", "ties")
    number = column_type(given[0]) != "object" or pa.types.is_decimal(given[0])
    return number and not hole


def _over_decimals(chosen: Aggregate, fields: dict[str, pa.Field]) -> Aggregate:
    """Replace the operator by the one for decimals, if the aggregate sums or averages decimals."""
    kinds = [value_type(fields[c].type) for c in chosen.columns]
    operator = for_decimals(chosen.operator, kinds) if kinds else None
    return chosen if operator is None else dataclasses.replace(chosen, operator=operator)


def _reads(
    chosen: Aggregate, time: str, fields: dict[str, pa.Field], *, whole: bool, labelled: bool
) -> tuple[tuple[str, How], ...]:
    """The columns that an aggregate reads, and how; one that only counts rows reads the times."""
    reads = chosen.columns or (time,)
    kinds = [value_type(fields[c].type) for c in reads]
    hows = read_numbered(chosen.operator, kinds) if whole or labelled else None
    picks = picks_values(chosen.operator)
    made: list[tuple[str, How]] = []
    for i, (column, kind) in enumerate(zip(reads, kinds, strict=True)):
        how: How = hows[i] if hows else "values"
        if labelled and column_type(in_ticks(kind)) != "object":
            how = "values"  # numbers need no labels
        if how == "values" and picks and in_ticks(kind) != kind:
            how = "ticks"
        elif adds_decimals(chosen.operator) and kind.precision <= SMALL:
            how = "unscaled"
        elif reads_floats(chosen.operator) and pa.types.is_decimal(kind):
            how = "floats"
        made.append((column, how))
    return tuple(made)


def _read_as(kind: pa.DataType, how: How) -> str:
    """The name, for operators, of a column's type as it is read."""
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
    """Join parts into one operator; equal parts give the same object, because it holds the
    kernels."""
    return _join(parts, len(types), name=", ".join(names), types=types)


@lru_cache(maxsize=256)
def _served(server: Operator, name: str, lower: Callable[[Any], Any]) -> Operator:
    """The operator `server` under another name, with another `lower`."""
    return dataclasses.replace(server, name=name, lower=lower)


def shared(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Let parts share a partial where one part's answer follows from another's partial.

    Two operators over the same columns and rows share if they lift and combine alike (sum and mean
    of integers; variance, stddev and other moments), or if one serves the other (mean of floats
    serves sum).
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
    """The sort key of an aggregate in its group.  It depends on the aggregate alone, so a query
    that selects the same aggregates in another order runs on the same kernels."""
    name, aggregate = chosen
    return aggregate.operator.name, aggregate.columns, repr(aggregate.where), name
