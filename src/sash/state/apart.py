"""Partials of one window by plain Python: rows are added to them, and they are lowered one by one,
for a question now and then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..kernels.columns import Column
from ..query.plan import Plan
from ..query.types import in_ticks
from ..tables.answers import as_wanted, object_answers
from ..tables.rows import rows_in_order
from .answers import columns_of

__all__ = ["lowered", "with_rows"]


def with_rows(plan: Plan, partials: list[Any], rows: pa.Table) -> list[Any]:
    """The partials of each group of aggregates, with rows of one key that come after all that they
    have."""
    if not rows.num_rows:
        return partials
    read = rows.select([f.name for f in plan.schema])
    order = rows_in_order(plan, read).rows
    made = []
    for group, partial in zip(plan.groups, partials, strict=True):
        columns, _ = columns_of(group, read)
        columns = columns if order is None else columns.take(order)
        values = list(zip(*map(_items, columns.columns), strict=True))
        several = len(group.operator.skips) > 1
        more = group.operator.fold(values if several else [row[0] for row in values])
        made.append(group.operator.python_combine()(partial, more))
    return made


def _items(column: Column) -> list[Any]:
    """The values of a column as typed operators take them: times are microseconds."""
    if column.type != "timestamp":
        return column.as_list()
    return Column("int64", column.data, column.valid).as_list()


def lowered(plan: Plan, partials: list[list[Any]]) -> tuple[dict[str, Any], str]:
    """The answers of the partials of each group of aggregates by name, None for those that do not
    exist, and why they do not.  There are partials for each size that windows have."""
    values: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for g, group in enumerate(plan.groups):
        parts = group.operator.parts
        own = [i for i, part in enumerate(parts) if part.shares is None]
        picked: Sequence[tuple[str, int, int]] = [
            (name, i, 0) for i, name in enumerate(group.names)
        ]
        for name, i, size in picked if group.over is None else group.over.picked:
            part = parts[i]
            held = partials[size][g][own.index(i if part.shares is None else part.shares)]
            wanted, found = plan.types[name], None
            if wanted is not None and group.exact[i]:
                wanted = in_ticks(wanted)
            try:
                found = part.operator.python_lower()(held)
            except Exception as error:
                failed[name] = str(error) or type(error).__name__
            wrong: dict[int, str] = {}
            column = object_answers([found], wanted, part.operator.fields, wrong)
            if wrong:
                failed[name] = wrong[0]
            values[name] = as_wanted(column, plan.types[name])[0].as_py()
    said = "; ".join(f"{name}: {why}" for name, why in failed.items())
    return {name: values[name] for name in plan.query.select}, said
