"""The answers of a group of aggregates, out of where a kernel wrote them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Table, answers_from_columns, read
from ..kernels.core import BufferCore, ObjectCore
from ..query.plan import Group
from ..tables.answers import as_wanted, from_objects, object_answers, typed_answers
from ..tables.arrow import flat

__all__ = ["answers_of", "columns_of"]


def columns_of(group: Group, table: pa.Table) -> Table:
    """The columns that a group of aggregates reads."""
    arrays = tuple(flat(table.column(c)) for c in group.columns)
    return read(arrays if len(arrays) > 1 else arrays[0], len(arrays))


def answers_of(
    core: BufferCore | ObjectCore,
    group: Group,
    types: dict[str, Any],
    kept: Any,
    rows: int,
    lacking: dict[int, str] | None,
) -> dict[str, pa.Array]:
    """The first rows of a core's outputs as answers by name, in the types that results have.

    Rows in `lacking` have no answer, and become null; rows with an answer that does not fit its type
    become null and are put there, with the reason.  With None, such an answer is an error.
    """
    values: dict[str, pa.Array] = {}
    misfits: dict[int, str] = {}
    if isinstance(core, BufferCore) and core.layout.answers:
        columns = [
            (data[:rows], None if valid is None else valid[:rows]) for data, valid in kept[0]
        ]
        none = np.zeros(rows, dtype=bool)
        none[list(lacking or {})] = True
        for name, (_, answer) in zip(group.names, core.layout.answer.fields, strict=True):
            # a call takes its columns off the list
            found = answers_from_columns(answer, columns, "arrow")
            if lacking is None:
                values[name] = as_wanted(found, types[name])
                continue
            if lacking:
                found = pc.if_else(pa.array(none), pa.nulls(rows, found.type), found)
            values[name] = typed_answers(found, types[name], misfits)
    else:
        answers, nothing = kept[:rows], (None,) * len(group.names)
        for row in lacking or {}:
            answers[row] = nothing
        for i, (name, part) in enumerate(zip(group.names, group.operator.parts, strict=True)):
            items, fields = [answer[i] for answer in answers], part.operator.fields
            if lacking is None:
                values[name] = from_objects(items, types[name], fields)
            else:
                values[name] = object_answers(items, types[name], fields, misfits)
    if lacking is not None:
        lacking |= misfits
    return values
