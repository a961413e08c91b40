"""How a query runs over a table, by `Query.run`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pyarrow as pa

from ..engine.run import slicing_for
from ..engine.supported import Asked, check
from ..kernels.layout import words_of
from ..kernels.program import Kernel
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..slicing.slices import slices_held
from ..slicing.techniques import Slicing
from ..state.frames_kernel import FRAMES
from ..state.over_steps import CHUNK
from ..state.places import in_order_only
from ..state.scan import room_for
from ..state.scan_kernel import SCAN
from ..tables.arrow import as_arrow, plain_type
from ..windows import Trailing
from ..windows.contract import Aligned, Count, Driven, Merging, Span, Window
from .cautions import cautions
from .costs import costs_of_table
from .explanation import Explanation, Kept, Step
from .measured import measured_table
from .partials import partials_of, select_only
from .sizes import windows_of, with_sizes

__all__ = ["algorithm", "byte_text", "explain_table", "query_text", "schema_of"]


_FEW = 1_000  # rows to read, to find the types of a table's columns


def explain_table(
    query: Query, schema: Any = None, data: Any = None, slicing: str = "auto"
) -> Explanation:
    """Explain how a query runs over a table with these columns; `data` is a sample to run."""
    check("Query.run", Asked(query))
    cut = slicing_for(query, slicing)
    sample = None if data is None else as_arrow(data)
    plan = given = None
    if sample is not None or schema is not None:
        given = schema_of(schema) if sample is None else sample.schema
        plan = make_plan(query, given, whole=True)
    window = query.window
    made = Explanation(
        query_text(query),
        "Query.run, over a table",
        with_sizes(windows_of(window, cut), query),
        select_only(query) if plan is None else partials_of(plan),
        _steps(query, plan, cut),
        _kept(plan, window, cut),
        costs_of_table(window, cut, len(set(query.sizes.values())) if query.several else 1),
        cautions(query, plan, "Query.run"),
    )
    if query.several and isinstance(window, Aligned):
        from .sized import sized_table  # here, because `sized` imports this module

        return sized_table(made, query, given, sample)
    return made if sample is None else measured_table(made, query, sample, cut)


def schema_of(given: Any) -> pa.Schema:
    """The Arrow schema of a schema, or of a table of any kind, from its first rows if possible."""
    if isinstance(getattr(given, "schema", None), pa.Schema):
        given = given.schema
    if isinstance(given, pa.Schema):
        return pa.schema([f.with_type(plain_type(f.type)) for f in given])
    if hasattr(given, "head"):  # a table of pandas or Polars
        few = as_arrow(given.head(_FEW)).schema
        if not any(pa.types.is_null(f.type) for f in few):
            return few
    return as_arrow(given).schema


def query_text(query: Query) -> str:
    """The query in one line."""
    chosen = ", ".join(f"{name} = {chosen!r}" for name, chosen in query.select.items())
    by = f" for each {', '.join(query.by)}" if query.by else ""
    where = f" where {query.where}" if query.where is not None else ""
    changes = ", only where they change" if query.emit == "changes" else ""
    return f"{chosen}{by}{where}{changes}"


def algorithm(kernel: Kernel) -> str:
    """The name of the aggregator whose functions a kernel uses: the first line of its file."""
    import sys

    for function in kernel.functions:
        module: ModuleType = sys.modules[function.__module__]
        if module.__name__.startswith("sash.aggregators."):
            title = (module.__doc__ or "").partition("\n")[0].rstrip(".")
            return title[:1].lower() + title[1:]
    raise ValueError(f"{kernel.name} has no aggregator's function")


def _steps(query: Query, plan: Plan | None, cut: Slicing | None) -> tuple[Step, ...]:
    window = query.window
    if not isinstance(window, Aligned):
        sort = Step("rows are sorted by key and time", "events make the windows, in that order")
        if isinstance(window, Merging):
            return sort, Step("each session's rows are folded", "no row is in two sessions")
        if query.several and isinstance(window, Trailing) and not window.excludes_some:
            why = "windows of all sizes end together, so a row is lifted once for all of them"
            return sort, Step(f"rows go through chunks of {CHUNK}, and windows share these", why)
        why = "neither end of the windows of a key goes back, so the oldest row leaves first"
        return sort, Step(f"rows go through {algorithm(FRAMES)}", why)
    return (
        _first_step(plan, cut),
        Step(
            f"slices go through {algorithm(SCAN)}",
            "they are in order, so the oldest leaves first; any associative operator will do",
        ),
    )


def _first_step(plan: Plan | None, cut: Slicing | None) -> Step:
    """How rows become slices."""
    why = "" if plan is None else in_order_only(plan)
    if cut is not None and cut.reads_open:
        why = "Cutty's windows read open slices, which is sound only in order"
    if why:
        return Step("rows are sorted by key and time, and folded into slices", why)
    commute = "the aggregates commute" if plan is not None else "if the aggregates commute"
    return Step(
        "rows in order of key and time are folded into slices as they come, others are combined "
        "into the place of their slice",
        f"{commute}, so nothing is sorted, unless there would be more slices than rows",
    )


def _kept(plan: Plan | None, window: Window, cut: Slicing | None) -> Kept:
    """The state that a run keeps at one time."""
    if isinstance(window, Merging):
        return Kept("partial", 1, None, None, "the session that is being folded")
    if isinstance(window, Aligned):
        held = slices_held(window) if cut is None else cut.per_window(window) + 1
        return _queue(plan, SCAN, "slice", held)
    keeps = window.keeps  # type: ignore[attr-defined]
    if isinstance(keeps, Count):
        return _queue(plan, FRAMES, "row", keeps.rows)
    if isinstance(window, Driven) and isinstance(keeps, Span) and keeps.older is None:
        return Kept("partial", 1, None, None, "one partial for the key at hand")
    return _queue(plan, FRAMES, "row", None)


def _queue(plan: Plan | None, kernel: Kernel, entry: str, held: int | None) -> Kept:
    """The state of a queue of entries, for one key at a time."""
    words = None
    compiled = [] if plan is None else [g.operator for g in plan.groups if g.operator.compile]
    if compiled:
        words = sum(words_of(operator) + kernel.link for operator in compiled)
    size = None if words is None else 8 * words
    room = None if held is None else room_for(held)
    total = None if size is None or room is None else size * room
    many = f"a queue of as many {entry}s as a window holds"
    if held is not None:
        many = f"a queue of at most {held:,} {entry}{'s' if held != 1 else ''}"
    text = many + ", for one key at a time"
    if size is not None:
        text += f"; {size:,} bytes each"
        text += f", {byte_text(total)} with room to spare" if total is not None else ""
    return Kept(entry, held, size, total, text)


def byte_text(count: int) -> str:
    """Write a number of bytes in words."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,} bytes"
