"""Answers as columns of a stream's results.

One answer that cannot be converted must not stop a stream, whose state has already moved on: it is
null, and told with the reason.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .passes import as_wanted, from_objects

__all__ = ["common_type", "object_answers", "typed_answers"]


def typed_answers(values: pa.Array, wanted: pa.DataType | None, failed: dict[int, str]) -> pa.Array:
    """Compiled answers in the type that is wanted; `failed` gets the rows that do not fit."""
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
    """Answers that are Python values; `failed` gets the rows that do not fit: the type that is
    wanted or, if none is, that of the answers before."""
    try:
        return from_objects(items, wanted, fields)
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"answers cannot be made {wanted}: {error}") from None
    except Exception:  # functions of the user's have made them
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
    """A type that holds the values of both, None if there is none."""
    if one == other:
        return one
    schemas = [pa.schema({"": kind}) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None
