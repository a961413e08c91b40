"""Read from a plan which aggregates run together, how, and which of them share a partial."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..kernels.layout import words_of
from ..query.plan import NO_NAME, Group, Plan
from ..query.query import Query
from ..query.types import column_type, value_type
from .explanation import Partial

__all__ = ["in_query", "partials_of", "select_only"]


def partials_of(plan: Plan) -> tuple[Partial, ...]:
    """The groups of aggregates, and the aggregates that need no operator."""
    made = [_of_group(plan, group) for group in plan.groups if group.names != (NO_NAME,)]
    if plan.ranged:
        names = tuple(r.name for r in plan.ranged)
        ordered = tuple(r.name for r in plan.ranged if r.ordered)
        why = "each is a range of the rows in order of time, taken once as it is written"
        if not ordered:
            why = "a window is a range of the rows in order of time, whose values are ranked"
        made.append(Partial(names, "ranges", None, None, {}, ordered, why))
    return tuple(made)


def select_only(query: Query) -> tuple[Partial, ...]:
    """The aggregates of a query, if the types of its columns are unknown."""
    names = tuple(query.select)
    ordered = tuple(n for n, a in query.select.items() if not a.operator.commutative)
    why = "give a schema or a table, as in q.explain(table), to see how they run"
    return (Partial(names, "unknown", None, None, {}, ordered, why),)


def _of_group(plan: Plan, group: Group) -> Partial:
    parts = group.operator.parts
    named = list(zip(group.names, parts, strict=True))
    sized = {} if group.over is None else {n: group.names[i] for n, i, _ in group.over.picked}
    names = in_query(plan, [*group.names, *sized])
    shares = {n: group.names[p.shares] for n, p in named if p.shares is not None}
    # aggregates that differ in the sizes of their windows alone
    shares |= {n: owner for n, owner in sized.items() if n != owner}
    ordered = in_query(plan, [n for n, p in named if not p.operator.commutative])
    if group.operator.compile and group.operator.shape != "object":
        words = words_of(group.operator)
        why = "their columns are numbers, times and bools" if len(named) > 1 else "it is numbers"
        if group.labelled:
            why = "text and the like are labels here, numbers that a dictionary of the stream has"
        elif any(how in ("rows", "places") for how in group.hows):
            why = "text and the like are numbers here, by row or by place in order"
        return Partial(names, "compiled", words, 8 * words, shares, ordered, why)
    return Partial(names, "python", None, None, shares, ordered, _why_python(plan, group))


def in_query(plan: Plan, names: Sequence[str]) -> tuple[str, ...]:
    """Sort the names of aggregates into the order in which the query selects them."""
    return tuple(name for name in plan.query.select if name in names)


def _why_python(plan: Plan, group: Group) -> str:
    """Why aggregates of a group are not compiled."""
    why, parts = [], dict(zip(group.names, group.operator.parts, strict=True))
    for name in in_query(plan, group.names):
        part = parts[name]
        columns = [group.columns[c] for c in part.columns]
        types = {c: plan.schema.field(c).type for c in columns}
        texts = [f"{c} has {_type(t)}" for c, t in types.items() if _is_object(t)]
        if part.operator.shape == "object" and not texts:
            texts = ["its partials are Python objects"]
        why.append(f"{name}, because {' and '.join(texts) or 'it asks for that'}")
    return "; ".join(why)


def _is_object(kind: pa.DataType) -> bool:
    return column_type(value_type(kind)) == "object"


def _type(kind: pa.DataType) -> str:
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)
