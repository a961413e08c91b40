"""Combine rows into the partials of one window, and lower the partials one by one, in plain Python:
for questions that are rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..query.plan import Plan
from ..query.types import in_ticks
from ..tables.answers import as_wanted, object_answers
from ..tables.rows import rows_in_order
from .answers import Sources
from .forest import Forest

__all__ = ["lowered", "with_rows"]


def with_rows(
    plan: Plan, forests: Sequence[Forest], partials: list[Any], rows: pa.Table
) -> list[Any]:
    """Combine rows of one key into the partials of each group of aggregates.  The rows come after
    all events of the partials."""
    if not rows.num_rows:
        return partials
    read = rows.select([f.name for f in plan.schema])
    order = rows_in_order(plan, read).rows
    return [
        forest.group.operator.python_combine()(partial, forest.of_rows(read, order))
        for forest, partial in zip(forests, partials, strict=True)
    ]


def lowered(
    plan: Plan, partials: list[list[Any]], sources: Sequence[Sources | None] | None = None
) -> tuple[dict[str, Any], str]:
    """Lower partials: the answers by name, None for an answer that does not exist, and why answers
    do not exist, as text.  `partials` has, for each size of the windows, a partial for each group
    of aggregates.  For each group, `sources` has the values of columns that kernels read as
    numbers."""
    values: dict[str, Any] = {}
    failed: dict[str, str] = {}
    known = [None] * len(plan.groups) if sources is None else sources
    for g, (group, numbered) in enumerate(zip(plan.groups, known, strict=True)):
        parts = group.operator.parts
        own = [i for i, part in enumerate(parts) if part.shares is None]
        picked: Sequence[tuple[str, int, int]] = [
            (name, i, 0) for i, name in enumerate(group.names)
        ]
        for name, i, size in picked if group.over is None else group.over.picked:
            part = parts[i]
            held = partials[size][g][own.index(i if part.shares is None else part.shares)]
            wanted, found = plan.types[name], None
            if wanted is not None and group.exact[i] and group.values_of[i] is None:
                wanted = in_ticks(wanted)
            try:
                found = part.operator.python_lower()(held)
            except Exception as error:
                failed[name] = str(error) or type(error).__name__
            at = group.values_of[i]
            if at is not None and found is not None:
                assert numbered is not None, "answers are by number where values are known"
                found = numbered[at].take(pa.array([found], pa.int64()))[0].as_py()
            wrong: dict[int, str] = {}
            column = object_answers([found], wanted, part.operator.fields, wrong)
            if wrong:
                failed[name] = wrong[0]
            values[name] = as_wanted(column, plan.types[name])[0].as_py()
    said = "; ".join(f"{name}: {why}" for name, why in failed.items())
    return {name: values[name] for name in plan.query.select}, said
