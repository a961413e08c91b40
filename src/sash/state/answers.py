"""The answers of a group of aggregates, from the outputs of a kernel.

A kernel lowers all aggregates of a row together, and returns when one of them raises an error, such
as a sum that overflows int64.  Plain Python then lowers the aggregates of that row one by one, so
that only answers that do not exist are null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array, Table, answers_from_columns, read
from ..kernels.core import BufferCore, ObjectCore
from ..query.plan import Group
from ..query.types import in_ticks, value_type
from ..tables.answers import as_wanted, from_objects, object_answers, typed_answers
from ..tables.arrow import flat
from ..tables.keys import key_codes
from ..tables.numbers import as_floats, places_in_order, row_numbers, unscaled

__all__ = [
    "Apart",
    "Sources",
    "answers_and_reasons",
    "answers_apart",
    "answers_of",
    "answers_over",
    "by_key_and_time",
    "columns_of",
    "joined_reasons",
    "told",
]


class Source(Protocol):
    """The values of a column, by number."""

    def take(self, numbers: pa.Array) -> pa.Array:
        """The values with these numbers, null for null."""


#: For each column that a kernel reads as numbers, by its place: the values of the numbers.
Sources = Mapping[int, Source]


@dataclass(frozen=True)
class Apart:
    """The answers of a row whose aggregates were lowered one by one.  An answer is None if that
    raised an error; `reasons` says why, by name."""

    values: tuple[Any, ...]
    reasons: dict[str, str]

    @property
    def reason(self) -> str:
        """The answers that do not exist, and why, as text."""
        return told(self.reasons)


def columns_of(
    group: Group, table: pa.Table, known: Mapping[int, pa.Array] | None = None
) -> tuple[Table, Sources]:
    """The columns that a group of aggregates reads, and the values of the columns that it reads as
    numbers.  Numbers begin with 1 if they become labels, otherwise with 0.  `known` has values of
    some columns, in order."""
    arrays: list[pa.Array | Array] = []
    sources: dict[int, pa.Array] = {}
    for i, name in enumerate(group.columns):
        column = flat(table.column(name))
        if group.hows[i] in ("rows", "places"):
            first = 1 if group.labelled else 0
            if group.hows[i] == "rows":
                column, sources[i] = row_numbers(column, first)
            else:
                column, sources[i] = places_in_order(column, first, (known or {}).get(i))
        else:
            column = _column(group, i, column)
        arrays.append(column)
    arrays += [condition.holds(table) for condition in group.conditions]
    return read(tuple(arrays) if len(arrays) > 1 else arrays[0], len(arrays)), sources


def _column(group: Group, i: int, column: pa.Array) -> pa.Array:
    """Convert a column to the type that the group's operator reads."""
    if group.hows[i] == "ticks":
        return column.cast(in_ticks(value_type(column.type)))
    if group.hows[i] == "unscaled":
        return unscaled(column)
    if group.hows[i] == "floats":
        return as_floats(column)
    if not pa.types.is_uint64(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        if all(p.operator.ready == "count" for p in group.operator.parts if i in p.columns):
            return pa.array(np.zeros(len(column), np.int64), mask=np.asarray(column.is_null()))
    most = pc.max(column).as_py()
    raise OverflowError(
        f"column {group.columns[i]!r}: {most} does not fit int64, in which integers are computed; "
        "cast the column to float64 or decimal128(20, 0) first"
    )


def answers_apart(core: BufferCore | ObjectCore, group: Group, slot: int) -> Apart:
    """Lower the aggregates of the partial in a slot one by one, in Python."""
    partial, parts = core.peek(slot), group.operator.parts
    own = [i for i, part in enumerate(parts) if part.shares is None]
    values: list[Any] = []
    reasons: dict[str, str] = {}
    for i, (name, part) in enumerate(zip(group.names, parts, strict=True)):
        held = partial[own.index(i if part.shares is None else part.shares)]
        try:
            values.append(part.operator.python_lower()(held))
        except Exception as error:
            values.append(None)
            reasons[name] = str(error) or type(error).__name__
    return Apart(tuple(values), reasons)


def answers_of(
    core: BufferCore | ObjectCore,
    group: Group,
    types: dict[str, Any],
    kept: Any,
    rows: int,
    apart: dict[int, Apart] | None,
    sources: Sources | None = None,
) -> tuple[dict[str, pa.Array], dict[int, str]]:
    """The first rows of a core's outputs as answers by name, in the types of the result, and for
    each row that lacks answers why; see `answers_and_reasons`."""
    values, failed = answers_and_reasons(core, group, types, kept, rows, apart, sources)
    return values, {row: told(reasons) for row, reasons in failed.items()}


def answers_and_reasons(
    core: BufferCore | ObjectCore,
    group: Group,
    types: dict[str, Any],
    kept: Any,
    rows: int,
    apart: dict[int, Apart] | None,
    sources: Sources | None = None,
) -> tuple[dict[str, pa.Array], dict[int, dict[str, str]]]:
    """The first rows of a core's outputs as answers by name, in the types of the result, and the
    reason for each answer that does not exist, by row and name.

    The answers of the rows in `apart` are taken from there.  An answer that does not fit its type
    is null; if `apart` is None, it is an error.
    """
    values: dict[str, pa.Array] = {}
    failed: dict[int, dict[str, str]] = {i: dict(a.reasons) for i, a in (apart or {}).items()}
    typed = isinstance(core, BufferCore) and core.layout.answers
    if typed:
        columns = [
            (data[:rows], None if valid is None else valid[:rows]) for data, valid in kept[0]
        ]
        fields = core.layout.answer.fields  # type: ignore[union-attr]
    else:
        lowered = kept[:rows]
        for row, instead in (apart or {}).items():
            lowered[row] = instead.values
    for i, (name, part) in enumerate(zip(group.names, group.operator.parts, strict=True)):
        misfits: dict[int, str] = {}
        wanted = types[name]
        at, source = group.values_of[i], None
        if at is not None:
            assert sources, "answers are by number while their table is at hand"
            source = sources[at]
        elif wanted is not None and group.exact[i]:
            wanted = in_ticks(wanted)
        if typed:
            # each call removes its columns from the list
            found = answers_from_columns(fields[i][1], columns, "arrow")
            if apart:
                answers = {row: a.values[i] for row, a in apart.items()}
                found = _replaced(found, answers, misfits)
            if source is not None:
                found = source.take(found)
            if apart is None:
                found = as_wanted(found, wanted)
            else:
                found = typed_answers(found, wanted, misfits)
        else:
            items, names = [answer[i] for answer in lowered], part.operator.fields
            if source is not None:
                found = as_wanted(source.take(pa.array(items, pa.int64())), wanted)
            elif apart is None:
                try:
                    found = from_objects(items, wanted, names)
                except pa.ArrowException as error:
                    kind = "have no common type" if wanted is None else f"cannot be made {wanted}"
                    error.add_note(f"answers of {name} {kind}: see what its `lower` returns")
                    raise
            else:
                found = object_answers(items, wanted, names, misfits)
        values[name] = as_wanted(found, types[name])
        for row, why in misfits.items():
            failed.setdefault(row, {}).setdefault(name, why)
    return values, failed


def answers_over(
    core: BufferCore | ObjectCore,
    group: Group,
    types: dict[str, Any],
    kept: Any,
    rows: int,
    apart: dict[int, Apart],
    sources: Sources | None = None,
) -> tuple[dict[str, pa.Array], dict[int, str]]:
    """The same if a row may have windows of several sizes: a core's outputs then have, for each row
    of the result, a row for each size of the group, in order."""
    if group.over is None:
        return answers_of(core, group, types, kept, rows, apart, sources)
    many = len(group.over.sizes)
    found, lacking = answers_and_reasons(core, group, types, kept, rows * many, apart, sources)
    values: dict[str, pa.Array] = {}
    failed: dict[int, dict[str, str]] = {}
    for name, part, size in group.over.picked:
        known = group.names[part]
        values[name] = found[known].take(pa.array(np.arange(rows) * many + size))
        for row, reasons in lacking.items():
            if row % many == size and known in reasons:
                failed.setdefault(row // many, {})[name] = reasons[known]
    return values, {row: told(reasons) for row, reasons in failed.items()}


def _replaced(found: pa.Array, apart: dict[int, Any], misfits: dict[int, str]) -> pa.Array:
    """Replace the compiled answers of the rows in `apart` with these Python values."""
    wrong: dict[int, str] = {}
    made = object_answers(list(apart.values()), found.type, (), wrong)
    rows = list(apart)
    misfits |= {rows[i]: why for i, why in wrong.items()}
    order = np.arange(len(found))
    order[rows] = len(found) + np.arange(len(rows))
    return pa.concat_arrays([found, made]).take(pa.array(order))


def joined_reasons(*parts: dict[int, str]) -> dict[int, str]:
    """For each row that lacks answers in any group of aggregates, why."""
    made: dict[int, str] = {}
    for part in parts:
        for row, why in part.items():
            made[row] = f"{made[row]}; {why}" if row in made else why
    return made


def told(reasons: dict[str, str]) -> str:
    """The answers that do not exist, and why, as text."""
    return "; ".join(f"{name}: {why}" for name, why in reasons.items())


def by_key_and_time(
    keys: list[pa.Array],
    times: Array,
    values: dict[str, pa.Array],
    failed: dict[int, str],
    codes: Array | None = None,
) -> tuple[Array, list[pa.Array], dict[str, pa.Array], dict[int, str]]:
    """The order of rows by key, then time, and in that order the columns of their keys, their
    values by name, and those that lack some, and why.  `codes` has the number of each row's key, in
    the order of the keys, if it is known."""
    if codes is None:
        codes = key_codes(keys, len(times))[0]
    order = np.lexsort((times, codes))
    at, place = pa.array(order), np.argsort(order)
    return (
        order,
        [column.take(at) for column in keys],
        {name: column.take(at) for name, column in values.items()},
        {int(place[i]): why for i, why in failed.items()},
    )
