"""Turns conditions of aggregates into Spark's columns, so that Spark can make slices of the rows
that satisfy them.

Arrow and Spark differ in NaN, which to Spark is equal to itself and greater than all numbers, and
in the comparison of values of two types.  A condition that may not mean the same to both has no
column, and then Python makes the slices.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from ..query.conditions import Condition
from .types import quoted

__all__ = ["spark_condition"]

_Kind: TypeAlias = Literal["whole", "float", "text", "bool"]
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), "whole"),
    "double": "float",
    "string": "text",
    "boolean": "bool",
}
_COMPARED: dict[str, Callable[[Column, Column], Column]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_JOINED: dict[str, Callable[[Column, Column], Column]] = {
    "and_kleene": operator.and_,
    "or_kleene": operator.or_,
}


@dataclass(frozen=True)
class _Made:
    """A part of a condition: its column, and the kind of its values."""

    column: Column
    kind: _Kind


class _Unknown(Exception):
    """A condition has no column."""


def spark_condition(condition: Condition, types: dict[str, DataType]) -> Column | None:
    """Turn a condition over columns of these types into a column; None if it has none."""
    held = pa.ipc.open_file(pa.py_buffer(condition.data)).get_batch(0)
    try:
        made = _part(iter(condition.words()), held, types)
    except _Unknown:
        return None
    return made.column if isinstance(made, _Made) and made.kind == "bool" else None


def _part(
    words: Iterator[tuple[str, str]], held: pa.RecordBatch, types: dict[str, DataType]
) -> _Made | str | None:
    """Read the next part of a condition.  Return None after the last argument of a call, and a
    string, the number of a batch's column, for the options of a call."""
    word, said = next(words)
    if word == "field_ref":
        kind = _KINDS.get(types[said].typeName())
        if kind is None or (kind == "text" and types[said].simpleString() != "string"):
            raise _Unknown
        return _Made(quoted(said), kind)
    if word == "literal":
        return _literal(held.column(int(said))[0].as_py())
    if word == "options":
        return said
    if word == "end":
        return None
    if word != "call":
        raise _Unknown
    made, options = [], None
    while (part := _part(words, held, types)) is not None:
        if isinstance(part, str):
            options = held.column(int(part))[0].as_py()
        else:
            made.append(part)
    return _Made(_called(said, made, options), "bool")


def _literal(value: Any) -> _Made:
    kinds: dict[type, _Kind] = {int: "whole", float: "float", str: "text", bool: "bool"}
    if type(value) not in kinds or value != value:
        raise _Unknown
    return _Made(F.lit(value), kinds[type(value)])


def _called(name: str, given: list[_Made], options: Any) -> Column:
    kinds = {part.kind for part in given}
    columns = [part.column for part in given]
    if name in _COMPARED and len(kinds) == 1:
        made = _COMPARED[name](*columns)
        if kinds == {"float"}:
            odd = F.isnan(columns[0]) | F.isnan(columns[1])
            return odd | made if name == "not_equal" else ~odd & made
        return made
    if name in _JOINED and kinds == {"bool"}:
        return _JOINED[name](*columns)
    if name == "invert" and kinds == {"bool"}:
        return ~columns[0]
    if name == "is_valid":
        return columns[0].isNotNull()
    if name == "is_null" and not options["nan_is_null"]:
        return columns[0].isNull()
    if name == "is_in" and kinds <= {"whole", "text", "bool"}:
        values = [_literal(value) for value in options["value_set"]]
        if {value.kind for value in values} == kinds:
            return F.coalesce(columns[0].isin(*[v.column for v in values]), F.lit(False))
    raise _Unknown
