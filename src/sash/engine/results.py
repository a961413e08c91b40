"""Emitted windows as a table: keys, the window's start and end, values, and the revision."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array, arrow_words
from ..query.plan import Plan
from ..query.signatures import Mode
from ..query.types import value_type
from ..state.contract import Emitted
from ..state.scan import Scan
from ..tables.arrow import as_time
from ..tables.threads import PIECE, how_many, side_by_side
from ..windows import Driven, Merging, tumbling
from .passes import spans_of

__all__ = ["check_answers", "check_typed", "result_schema", "result_table", "untyped", "with_types"]


def check_typed(plan: Plan) -> None:
    """Refuse columns of a stream whose type is unknown."""
    for field in plan.schema:
        if pa.types.is_null(field.type):
            raise untyped(field.name)


def untyped(name: str) -> TypeError:
    """The error for a column of a stream whose type is unknown."""
    return TypeError(
        f"column {name!r} has nothing but nulls, so its type is not known; give the stream a "
        "schema, or push a batch with types first"
    )


def with_types(plan: Plan) -> Plan:
    """The plan, with the types of all answers whose type does not depend on their values."""
    if None not in plan.types.values():
        return plan
    types = dict(plan.types)
    for group in plan.groups:
        # any window will do: answer types do not depend on it
        found = Scan(group, tumbling(1), plan.types).answer_types()
        types |= {name: t for name, t in found.items() if types[name] is None}
        if group.over is not None:
            types |= {name: types[group.names[part]] for name, part, _ in group.over.picked}
    return dataclasses.replace(plan, types=types)


def check_answers(plan: Plan) -> None:
    """Refuse, for Spark, answers whose type depends on their values."""
    for name, chosen in plan.query.select.items():
        if plan.types[name] is None:
            raise TypeError(
                f"{name} = {chosen}: Spark needs the type of its answers beforehand; say it with "
                "sash.aggregate(…, returns=pyarrow.float64()), or another Arrow type"
            )


def result_schema(plan: Plan, given: pa.Schema, mode: Mode = "final") -> pa.Schema:
    """The schema of a query's results over a table with the schema `given`, or over a stream in
    this mode.  Answers whose type depends on their values have the type null."""
    kept = given if isinstance(plan.query.window, Driven) else plan.keys
    fields = [pa.field(f.name, value_type(f.type)) for f in kept]
    fields += [pa.field(f"window_{end}", plan.time_type) for end in ("start", "end")]
    fields += [pa.field(name, plan.types[name] or pa.null()) for name in plan.query.select]
    if mode == "live":
        fields.append(pa.field("revision", pa.int64()))
        if isinstance(plan.query.window, Merging):
            fields.append(pa.field("deleted", pa.bool_()))
    return pa.schema(fields)


def result_table(plan: Plan, emitted: Emitted, revisions: Array | None = None) -> pa.Table:
    """The table of emitted windows."""
    query = plan.query
    if emitted.table is not None:
        table = emitted.table()
        return table if revisions is None else table.append_column("revision", pa.array(revisions))

    def spans() -> list[pa.Array]:
        return [as_time(edge, plan.time_type) for edge in spans_of(query.aligned, emitted.windows)]

    # a call of `key.take` looks the function up each time, and takes the interpreter's lock for it
    take, without = pc.get_function("array_take"), pc.TakeOptions(boundscheck=False)
    at = arrow_words(np.ascontiguousarray(emitted.codes, dtype=np.int64), pa.int64())
    made: list[Callable[[], list[pa.Array]]] = [
        *(lambda key=key: [take.call([key, at], without)] for key in emitted.keys),
        spans,
    ]
    threads = how_many() if len(emitted.windows) >= 4 * PIECE else 1
    found = side_by_side(lambda make: make(), made, threads)
    names = [*query.by, "window_start", "window_end"]
    columns = dict(zip(names, (one for some in found for one in some), strict=True))
    columns |= {name: emitted.values[name] for name in query.select}
    if revisions is not None:
        columns["revision"] = pa.array(revisions)
    return pa.Table.from_arrays([*columns.values()], [*columns])
