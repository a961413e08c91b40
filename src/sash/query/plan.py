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
from ..windows import Driven
from .aggregates import Aggregate
from .query import RESERVED, Query, column_kept
from .registry import check_columns, picks_values, result_type
from .types import column_type, in_ticks, value_type

__all__ = ["Group", "Plan", "column_type", "make_plan"]

#: Types that become numbers by a cast, and what to call them.
_TO_CAST = {"decimal": "decimals", "string": "text"}


@dataclass(frozen=True)
class Group:
    """Aggregates that run as one operator."""

    names: tuple[str, ...]  # of the result's columns
    columns: tuple[str, ...]  # that are read
    operator: Operator  # tied to the columns' types
    ticks: tuple[bool, ...]  # for each column: its nanoseconds are read as whole numbers
    exact: tuple[bool, ...]  # for each name: its answers have nanoseconds as whole numbers


@dataclass(frozen=True)
class Plan:
    """A query for one schema."""

    query: Query
    schema: pa.Schema  # of the columns that are read
    groups: tuple[Group, ...]
    types: dict[str, pa.DataType | None]  # of the result's values; None where only answers tell
    extra: tuple[str, ...] = ()  # columns that are keys besides those of the query

    def __deepcopy__(self, memo: Any) -> Plan:
        """The plan itself, which never changes."""
        return self

    @property
    def keys(self) -> list[pa.Field]:
        return [self.schema.field(name) for name in (*self.query.by, *self.extra)]

    @cached_property
    def ordered(self) -> bool:
        """True if the order of events matters to an aggregate.  Then the events of a slice are not
        kept as one partial, as more events may come between them."""
        return not all(group.operator.commutative for group in self.groups)

    @cached_property
    def time_type(self) -> pa.DataType:
        return self.schema.field(self.query.time).type


def make_plan(query: Query, schema: pa.Schema, extra: tuple[str, ...] = ()) -> Plan:
    """The plan, or an error that says what is wrong with the table's columns."""
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
    objects: list[tuple[str, Aggregate]] = []
    types: dict[str, pa.DataType | None] = {}
    for name, chosen in query.select.items():
        read = _reads(chosen, query.time, fields)
        given = [value_type(fields[c].type) for c, _ in read]
        try:
            check_columns(chosen.operator, given)
            tied = chosen.operator.of(*(_read_as(given[i], t) for i, (_, t) in enumerate(read)))
        except TypeError as error:
            have = ", ".join(f"{c!r} has {t}" for (c, _), t in zip(read, given, strict=True))
            wrong = [word for kind, word in _TO_CAST.items() if kind in have]
            hint = f"; cast {wrong[0]} to numbers first" if wrong and "number" in str(error) else ""
            raise TypeError(f"{name} = {chosen}: {error} (column {have}){hint}") from None
        compiled = tied.compile and tied.shape != "object"
        (typed if compiled else objects).append((name, chosen))
        types[name] = result_type(chosen, given)
    groups = [_group(query, sorted(part, key=_place), fields) for part in (typed, objects) if part]
    return Plan(query, pa.schema(fields.values()), tuple(groups), types, extra)


def _reads(
    chosen: Aggregate, time: str, fields: dict[str, pa.Field]
) -> tuple[tuple[str, bool], ...]:
    """The columns an aggregate reads, and whether it reads nanoseconds as whole numbers; what only
    counts rows reads their times."""
    picks = picks_values(chosen.operator)
    kinds = {c: value_type(fields[c].type) for c in chosen.columns or (time,)}
    reads = chosen.columns or (time,)
    return tuple((c, picks and in_ticks(kinds[c]) != kinds[c]) for c in reads)


def _read_as(kind: pa.DataType, ticks: bool) -> str:
    """What operators call the type of a column as it is read."""
    return column_type(in_ticks(kind) if ticks else kind)


def _group(
    query: Query, chosen: Sequence[tuple[str, Aggregate]], fields: dict[str, pa.Field]
) -> Group:
    columns = list(dict.fromkeys(c for _, a in chosen for c in _reads(a, query.time, fields)))
    types = tuple(_read_as(value_type(fields[c].type), ticks) for c, ticks in columns)
    parts = []
    for _, a in chosen:
        reads = tuple(columns.index(c) for c in _reads(a, query.time, fields))
        parts.append(Part(a.operator.of(*(types[c] for c in reads)), reads))
    names = tuple(name for name, _ in chosen)
    return Group(
        names,
        tuple(c for c, _ in columns),
        _joined(shared(parts), names, types),
        tuple(ticks for _, ticks in columns),
        tuple(picks_values(a.operator) for _, a in chosen),
    )


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

    Operators over the same columns share if they lift and combine alike (sum and mean of integers,
    all that follows from moments), or if one serves the other (mean of floats serves sum).
    """
    alike: dict[Any, list[int]] = {}
    for i, part in enumerate(parts):
        op = part.operator
        # by identity: a callable object may not be hashable, and may equal another one
        made_by = (id(op.lift), id(op.combine), repr(op.identity), op.skips)
        alike.setdefault((part.columns, made_by), []).append(i)
    made = list(parts)
    for (columns, _), members in alike.items():
        owner = members[0]
        op = parts[owner].operator
        for (others, _), (server, *_) in alike.items():
            serves = parts[server].operator.serves
            lower = next((lower for lift, lower in serves if lift is op.lift), None)
            if lower and others == columns and parts[server].operator.skips == op.skips:
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
    return aggregate.operator.name, aggregate.columns, name


def _check_time(name: str, given: pa.DataType) -> None:
    if pa.types.is_timestamp(given) or pa.types.is_integer(given):
        return
    raise TypeError(
        f"the time column {name!r} has type {given}; it must hold timestamps, or whole numbers of "
        "microseconds since 1970"
    )
