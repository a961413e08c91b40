"""Turns answers into columns of results.

In a table, an answer that does not fit its type is an error.  In a stream, whose state has already
moved on, such an answer is null, and the stream reports the reason.
"""

from __future__ import annotations

import warnings
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array, to_micros
from ..kernels.outside import level_outside
from .numbers import from_words

__all__ = [
    "as_wanted",
    "changed",
    "common_type",
    "concat_all",
    "concat_answers",
    "differ_from_before",
    "from_objects",
    "object_answers",
    "typed_answers",
    "warn_of",
]


def typed_answers(values: pa.Array, wanted: pa.DataType | None, failed: dict[int, str]) -> pa.Array:
    """Cast compiled answers to the type `wanted`.  Answers that do not fit become null, and
    `failed` gets their row numbers and the reasons."""
    try:
        return as_wanted(values, wanted)
    except pa.ArrowNotImplementedError:
        raise TypeError(
            f"answers of {values.type} cannot be made {wanted}; let `returns` have another type"
        ) from None
    except pa.ArrowInvalid:
        pass
    rows: list[int | None] = list(range(len(values)))
    for i in range(len(values)):
        try:
            as_wanted(values.slice(i, 1), wanted)
        except pa.ArrowInvalid as error:
            failed[i], rows[i] = str(error), None
    return as_wanted(values.take(pa.array(rows, pa.int64())), wanted)


def object_answers(
    items: list[Any], wanted: pa.DataType | None, fields: Any, failed: dict[int, str]
) -> pa.Array:
    """Turn answers that are Python values into an array of the type `wanted`, or, if that is None,
    of a type common to all answers.  An answer that does not fit that type, or the common type of
    the answers before it, becomes null, and `failed` gets its row number and the reason."""
    try:
        return from_objects(items, wanted, fields)
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"answers cannot be made {wanted}: {error}") from None
    except Exception:  # the user's functions return any values, so conversion may raise anything
        pass
    kind = pa.null() if wanted is None else wanted
    parts = []
    for i, item in enumerate(items):
        try:
            one = from_objects([item], wanted, fields)
            common = common_type(kind, one.type)
            if common is None:
                raise TypeError(f"an answer is {one.type}, and others are {kind}")
            kind = common
        except Exception as error:
            failed[i] = str(error)
            one = pa.nulls(1)
        parts.append(one)
    for i, part in enumerate(parts):
        try:
            parts[i] = part.cast(kind)
        except pa.ArrowException as error:
            failed[i], parts[i] = str(error), pa.nulls(1, kind)
    return pa.concat_arrays(parts)


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A type that holds the values of both types; None if there is none."""
    if one == other:
        return one
    schemas = [pa.schema({"": kind}) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def as_wanted(values: pa.Array, wanted: pa.DataType | None) -> pa.Array:
    """Cast values to the type `wanted`; None leaves them as they are.  Decimals come as structs of
    words (`from_words`)."""
    if wanted is not None and pa.types.is_struct(values.type) and pa.types.is_decimal(wanted):
        return from_words(values, wanted)
    return values if wanted is None or values.type == wanted else values.cast(wanted)


def from_objects(items: list[Any], wanted: pa.DataType | None, fields: Any) -> pa.Array:
    """Turn answers that are Python values into an Arrow array.  Numbers that stand for times are in
    microseconds."""
    if wanted is not None:
        made = pa.array([_shaped(x, wanted) for x in items], type=_in_micros(wanted))
        return as_wanted(made, wanted)
    first = next((x for x in items if x is not None), None)
    if fields and isinstance(first, tuple):
        columns = [
            from_objects([None if x is None else x[i] for x in items], None, ())
            for i in range(len(first))
        ]
        mask = pa.array([x is None for x in items])
        return pa.StructArray.from_arrays(columns, names=list(fields), mask=mask)
    if isinstance(first, np.ndarray):  # the same Arrow type as for compiled answers
        kind = pa.list_(pa.from_numpy_dtype(first.dtype), len(first))
        return pa.array([None if x is None else x.tolist() for x in items], type=kind)
    return pa.array(items, from_pandas=False)


def _shaped(value: Any, wanted: pa.DataType) -> Any:
    """Turn a value into one from which Arrow makes this type."""
    if value is None:
        return None
    if pa.types.is_timestamp(wanted) and wanted.unit == "ns":
        if isinstance(value, np.datetime64):
            return int(value.astype("M8[ns]").view(np.int64))
        if isinstance(value, int | np.integer | Fraction):
            return int(value * 1000)
    if isinstance(value, np.datetime64):
        return to_micros(value)
    if pa.types.is_decimal(wanted) and isinstance(value, tuple):  # two words, see `from_words`
        return Decimal((int(value[0]) << 62) + int(value[1])).scaleb(
            -wanted.scale, Context(prec=76)
        )
    if isinstance(value, float) and pa.types.is_integer(wanted) and not value.is_integer():
        raise ValueError(f"an answer is {value!r}, and should be {wanted}")  # Arrow would truncate
    if pa.types.is_struct(wanted) and isinstance(value, tuple):
        return {f.name: _shaped(x, f.type) for f, x in zip(wanted, value, strict=True)}
    if pa.types.is_struct(wanted) and isinstance(value, dict):
        return {f.name: _shaped(value.get(f.name), f.type) for f in wanted}
    if pa.types.is_map(wanted) and isinstance(value, dict | tuple | list):
        pairs = value.items() if isinstance(value, dict) else value
        kinds = wanted.key_type, wanted.item_type
        return [tuple(map(_shaped, pair, kinds)) for pair in pairs]
    if pa.types.is_list(wanted) and isinstance(value, tuple | list):
        return [_shaped(x, wanted.value_type) for x in value]
    return value


def _in_micros(wanted: pa.DataType) -> pa.DataType:
    """The type with all its timestamps in microseconds, except those in nanoseconds."""
    if pa.types.is_timestamp(wanted) and wanted.unit != "ns":
        return pa.timestamp("us", wanted.tz)
    if pa.types.is_struct(wanted):
        return pa.struct([f.with_type(_in_micros(f.type)) for f in wanted])
    if pa.types.is_list(wanted):
        return pa.list_(_in_micros(wanted.value_type))
    return wanted


def changed(groups: Array, numbers: Array, covered: Array, values: dict[str, pa.Array]) -> Array:
    """Mark the rows that `emit="changes"` keeps: the windows whose values differ from those of the
    same key's window before.  `groups` has the number of each row's key.

    Rows are in order of key and window number.  A row stands for all windows from its own number up
    to `covered`, which consist of the same slices.  The first row of a key is kept, and so is a row
    that follows an empty window.
    """
    keep = np.ones(len(groups), dtype=bool)
    keep[1:] = (groups[1:] != groups[:-1]) | (numbers[1:] - 1 > covered[:-1])
    for column in values.values():
        keep[1:] |= differ_from_before(column)
    return keep


def differ_from_before(values: pa.Array) -> Array:
    """For each value but the first: True if it differs from the value before.  NaN equals NaN."""
    old, new = values[:-1], values[1:]
    differ: Array = np.asarray(old.is_null()) != np.asarray(new.is_null())
    try:
        differ = differ | np.asarray(pc.fill_null(pc.not_equal(old, new), False))
    except pa.ArrowNotImplementedError:
        items = values.to_pylist()
        return np.array([not _equal(a, b) for a, b in pairwise(items)], dtype=bool)
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(old), pc.is_nan(new))
        differ &= ~np.asarray(pc.fill_null(both, False))
    return differ


def _equal(a: Any, b: Any) -> bool:
    """True if two values are equal, where NaN equals NaN, also inside lists and structs."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(x, b[k]) for k, x in a.items())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b or (a != a and b != b))


def concat_answers(a: pa.Array, b: pa.Array) -> pa.Array:
    """Join answers of two batches for a comparison: in a common type, or as text if there is no
    common type."""
    if a.type != b.type:
        kind = common_type(a.type, b.type)
        try:
            a, b = (_texts(a), _texts(b)) if kind is None else (a.cast(kind), b.cast(kind))
        except pa.ArrowInvalid:  # no float equals a certain large integer, say
            a, b = _texts(a), _texts(b)
    return pa.concat_arrays([a, b])


def concat_all(columns: list[pa.Array]) -> pa.Array:
    """Join answers of several parts.  Their types can differ only where sash infers them from the
    values."""
    if len({column.type for column in columns}) == 1:
        return pa.concat_arrays(columns)
    return reduce(concat_answers, columns)


def _texts(values: pa.Array) -> pa.Array:
    return pa.array([None if x is None else repr(x) for x in values.to_pylist()], pa.string())


def warn_of(failed: dict[int, str]) -> None:
    """Warn of rows in which answers are null because they failed."""
    if failed:
        reasons = ", ".join(sorted(set(failed.values())))
        warnings.warn(
            f"{len(failed)} window(s) have no answer to some aggregates, and null instead: "
            f"{reasons}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
