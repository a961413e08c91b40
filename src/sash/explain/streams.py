"""How a query runs over a stream, by `Query.stream`."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..aggregators.choose import choose
from ..engine.aligned_stream import AlignedStream
from ..engine.driven_stream import DrivenStream, TickStream
from ..engine.session_stream import SessionStream
from ..engine.stream import Stream
from ..engine.supported import Asked, Place, check
from ..engine.trailing_stream import TrailingStream
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..state.tree_size import tree_bytes
from ..tables.arrow import as_arrow
from ..windows import Trailing
from ..windows.contract import Aligned, Count, Driven, Span, Ticked, Window
from ..windows.durations import duration_text
from .cautions import cautions
from .costs import costs_of_stream
from .explanation import Costs, Explanation, Kept, Step
from .measured_stream import measured_stream
from .partials import partials_of, select_only
from .sizes import slices_between, windows_of, with_sizes
from .tables import byte_text, query_text, schema_of

__all__ = ["explain_stream", "in_records", "kept_by_stream", "kept_text", "stream_steps"]


def explain_stream(
    query: Query,
    schema: Any = None,
    data: Any = None,
    *,
    lateness: int = 0,
    mode: Mode = "final",
    early: bool = False,
    batch: int = 1000,
    place: Place = "Query.stream",
) -> Explanation:
    """Explain how a query runs over a stream with these columns; `data` is a sample to push.  For a
    stream in a store, the sample is pushed into a stream in memory."""
    if place != "Query.stream":
        more: dict[str, Any] = {"lateness": lateness, "mode": mode, "early": early, "batch": batch}
        return _stored(query, schema, data, more, place)
    sample = None if data is None else as_arrow(data)
    plan = given = None
    if sample is not None or schema is not None:
        given = schema_of(schema) if sample is None else sample.schema
        plan = make_plan(query, given, labelled=True)
    check("Query.stream", Asked(query, plan, mode, early))
    kept = kept_by_stream(query, plan, lateness, mode)
    made = Explanation(
        query_text(query),
        f"Query.stream, batch by batch, mode={mode!r}, lateness={duration_text(lateness)!r}",
        with_sizes(windows_of(query.window), query),
        select_only(query) if plan is None else partials_of(plan),
        stream_steps(query, plan, mode),
        kept,
        _costs(query.window, plan, kept, lateness, mode),
        cautions(query, plan, "Query.stream", lateness),
    )
    if query.several and isinstance(query.window, Aligned):
        from .sized import sized_stream  # here, because `sized` imports this module

        settings: Any = {"lateness": lateness, "mode": mode, "early": early, "batch": batch}
        return sized_stream(made, query, given, sample, **settings)
    if sample is None:
        return made
    return measured_stream(made, query, sample, batch, lateness, mode, early=early)


def _stored(
    query: Query, schema: Any, data: Any, more: dict[str, Any], place: Place
) -> Explanation:
    """Explain how a query runs over a stream whose state is in a store."""
    known = schema if data is None else as_arrow(data)
    plan = None if known is None else make_plan(query, schema_of(known), labelled=True)
    check(place, Asked(query, plan, more["mode"], more["early"]))
    # a stream in memory uses the order of arrival, not `tie`
    plain = dataclasses.replace(query, tie=None)
    made = explain_stream(plain, schema, data, **more)
    made = in_records(made, query, "the store", "a batch")
    return dataclasses.replace(
        made,
        query=query_text(query),
        place=made.place.replace("Query.stream", place, 1),
        steps=(*made.steps, Step("`sync` makes all up to then durable", "a restart goes on there")),
        warnings=cautions(query, plan, place, more["lateness"]),
    )


def in_records(made: Explanation, query: Query, where: str, batch: str) -> Explanation:
    """Change the explanation of a stream in memory into that of a stream whose state consists of
    records in a store."""
    aligned = isinstance(query.window, Aligned)
    held = "the slices of keys are small records" if aligned else "what windows hold are records"
    why = f"{batch} reads and writes those that it touches, or that are due"
    state, kept, costs = Step(f"{held} in {where}", why), made.kept, made.costs
    # the bytes are those of trees in memory; records are packed
    words = kept.words.partition("; about")[0]
    if aligned:
        text = f"in memory {costs.words}; tiles in {where} combine by the record"
        costs = dataclasses.replace(costs, words=text)
    return dataclasses.replace(
        made,
        steps=(made.steps[0], state, made.steps[-1]),
        kept=dataclasses.replace(kept, entry_bytes=None, bytes=None, words=words),
        costs=costs,
    )


def _costs(window: Window, plan: Plan | None, kept: Kept, lateness: int, mode: Mode) -> Costs:
    """The expected combines if windows are full; if events decide how many entries a window has,
    for a tree of one leaf, whose entries are spread evenly over windows and lateness."""
    late: float = _late_slices(window, lateness)
    if kept.entries is None or kept.entry == "key":
        held = 16
        if isinstance(window, Aligned):
            late = held * lateness / (window.cycle.longest + lateness)
    else:
        held = kept.entries
    older = mode == "live"  # late events may change windows before
    return costs_of_stream(window, plan, held=held, inside=held - late, late=late, older=older)


def stream_steps(query: Query, plan: Plan | None, mode: str) -> tuple[Step, ...]:
    """The steps over a batch."""
    kind = Stream._for(query)
    if kind is SessionStream:
        return (
            Step(
                "events that touch become parts of a session, which are folded",
                "a session is a list of a few parts, in order of time",
            ),
            _when(query.window, mode),
        )
    tree = "a finger B-tree for each key"
    if issubclass(kind, AlignedStream):
        cut = Step("events of a batch are folded into slices", "all events of one slice are alike")
        if plan is not None and plan.ordered:
            cut = Step(
                "events of a batch are folded by time, not by slice",
                "the order of events matters, and a late one may come between two of a slice",
            )
        return (
            cut,
            Step(f"slices go into {tree}", _tree_why(query, plan)),
            _when(query.window, mode),
        )
    wait = Step(
        "events wait until the watermark has passed them",
        "what an event's window holds is settled then, and events are put in order",
    )
    if kind is TrailingStream and mode == "live":
        wait = Step("events are inserted at once", "each event names its own window")
    held = "partials go by time" if kind is TrailingStream else "partials go by number of event"
    return wait, Step(f"{held} into {tree}", _tree_why(query, plan)), _when(query.window, mode)


def _tree_why(query: Query, plan: Plan | None) -> str:
    """Why the state is a tree: the reason that `choose` states for events out of order."""
    operator = (
        next(iter(query.select.values())).operator if plan is None else plan.groups[0].operator
    )
    return choose(operator, in_order=False).reason.partition(": ")[2]


def _when(window: Window, mode: str) -> Step:
    if isinstance(window, Aligned):
        if mode == "live":
            what = "a window is emitted when stream time passes its end, and when it changes"
            return Step(what, "mode='live'")
        return Step("a window is emitted once, when the watermark passes its end", "mode='final'")
    if mode == "live":
        return Step("rows are emitted at once, and again when they change", "mode='live'")
    return Step("rows are emitted when the watermark has passed them", "mode='final'")


def kept_by_stream(query: Query, plan: Plan | None, lateness: int, mode: Mode) -> Kept:
    """The state that a stream keeps for each key."""
    window, kind = query.window, Stream._for(query)
    if kind is SessionStream:
        text = (
            "an open session is one partial, and a partial for each time that a late event may "
            "still come before; the end of a key's last session is kept for a gap"
        )
        return Kept("part of a session", None, _entry_bytes(plan), None, text)
    if isinstance(window, Aligned):
        return _aligned(window, plan, lateness)
    if kind in (DrivenStream, TickStream) or isinstance(window, Ticked):
        return _driven(window, plan, lateness)
    assert isinstance(window, Driven)
    keeps = window.keeps
    assert isinstance(keeps, Span)
    waiting = _waiting(lateness)
    older, lasts = keeps.older, keeps.older is None
    if query.several:  # events are kept once, for the longest size
        assert isinstance(window, Trailing)
        lasts = lasts or None in query.sizes.values()
        spans = [window.of_length(size).keeps.older for size in query.sizes.values()]
        older = max((span for span in spans if span is not None), default=None)
    if older is None:
        return _settled(plan, waiting)
    if mode == "live":  # events are inserted at once, and a late one has a window of its own
        older += lateness
    before = ", and one of all before" if lasts else ""
    held = f"a partial for each distinct time of the last {duration_text(older)}{before}"
    return kept_text(plan, "time", None, f"{held}; {waiting}")


def _aligned(window: Aligned, plan: Plan | None, lateness: int) -> Kept:
    span = window.cycle.longest + lateness
    if plan is not None and plan.ordered:
        held = f"a partial for each distinct time in open windows of {_span(window, lateness)}"
        return kept_text(plan, "time", None, held)
    many = slices_between(window, span)
    late = f", {_late_slices(window, lateness):,} of them for late events" if lateness else ""
    return kept_text(plan, "slice", many, f"at most {many:,} slices a key{late}")


def _late_slices(window: Window, lateness: int) -> int:
    """The number of slices that a key keeps only for late events."""
    if not isinstance(window, Aligned):
        return 0
    longest = window.cycle.longest
    return slices_between(window, longest + lateness) - slices_between(window, longest)


def _span(window: Aligned, lateness: int) -> str:
    late = f" and {duration_text(lateness)} of lateness" if lateness else ""
    return f"{window!r}{late}"


def _driven(window: Window, plan: Plan | None, lateness: int) -> Kept:
    keeps = window.keeps  # type: ignore[attr-defined]
    waiting = _waiting(lateness)
    if isinstance(keeps, Count):
        many = f"{keeps.rows:,} event{'s' if keeps.rows > 1 else ''}"
        return kept_text(
            plan, "event", keeps.rows, f"the last {many} a key, a partial each; {waiting}"
        )
    if isinstance(keeps, Span) and keeps.older is None:
        return _settled(plan, waiting)
    return kept_text(plan, "event", None, f"a partial for each event that is kept; {waiting}")


def _settled(plan: Plan | None, waiting: str) -> Kept:
    return kept_text(plan, "key", 1, f"one partial a key, of all that is settled; {waiting}")


def _waiting(lateness: int) -> str:
    if not lateness:
        return "events wait, with their columns, until one with a later time comes"
    return f"events of the last {duration_text(lateness)} wait, with their columns"


def _entry_bytes(plan: Plan | None) -> int | None:
    """The bytes of an entry in the trees of all groups of aggregates."""
    if plan is None:
        return None
    many = 1024
    return round(sum(tree_bytes(g.operator, many) for g in plan.groups) / many)


def kept_text(plan: Plan | None, entry: str, many: int | None, text: str) -> Kept:
    """The state of `many` entries of a key in trees, with the bytes that they take."""
    size = _entry_bytes(plan)
    total = None
    if plan is not None and many is not None:
        total = sum(tree_bytes(g.operator, many) for g in plan.groups)
    if total is not None:
        text += f"; about {byte_text(total)} a key"
    elif size is not None:
        text += f"; about {size:,} bytes each"
    return Kept(entry, many, size, total, text)
