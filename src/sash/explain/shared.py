"""How several queries share one pass: `Shared.explain`, `SharedStream.explain`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..engine.bundle_plans import plan_bundle
from ..engine.bundles import Bundle
from ..engine.supported import Place
from ..query.query import Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..slicing.composite import Composite
from ..slicing.edges import Periodic
from ..slicing.factors import factors_of
from ..tables.arrow import as_arrow
from ..windows.durations import duration_text
from .bundles import costs_of_bundle, in_shared_records, kept_by_bundle, steps_of_bundle
from .drawing import draw_several
from .explanation import Costs, Counts, Explanation, Kept, Step, entry_lines, plain
from .measured_shared import measured_bundle, measured_bundle_of_table
from .streams import explain_stream
from .tables import explain_table, schema_of

__all__ = [
    "BundleExplanation",
    "SharedExplanation",
    "explain_shared",
    "explained_alone",
    "explained_together",
]


@dataclass(frozen=True)
class BundleExplanation:
    """Queries that share slices, or one query that shares only the intake, and why.

    `slide` is the composite slide in microseconds; `slices` and `common` count the slices and the
    common edges in it (None if they are too many to list, or if events make the windows).  `held`
    has the slices that each window reads, `shared` the aggregates that several queries have in
    common.  `factors` says which window is computed from which, if a table has many slices: a line
    for each window, with the windows that read its results indented below it.  `steps`, `kept` and
    `costs` describe the whole bundle; the explanation of each query describes the query alone."""

    names: tuple[str, ...]
    why: str
    slide: int | None
    slices: int | None
    common: int | None
    held: dict[str, int | None]
    shared: dict[str, tuple[str, ...]]
    drawing: tuple[str, ...]
    factors: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    kept: Kept | None = None
    costs: Costs | None = None
    expected: Counts | None = None
    measured: Counts | None = None


@dataclass(frozen=True)
class SharedExplanation:
    """How several queries run together, and why: the result of `Shared.explain` and
    `SharedStream.explain`.  `bundles` says which queries share slices; `queries` has the
    explanation of each query alone.

    >>> import sash
    >>> def over(size, every):
    ...     return sash.Query(
    ...         time="t", window=sash.sliding(size, every), select={"n": sash.count()}
    ...     )
    >>> print(sash.share({"fast": over(6, 2), "daily": over(8, 4)}).explain())
    2 queries over a table, in 1 bundle that shares slices
    <BLANKLINE>
    fast, daily  slices are cut once, wherever one of the windows has an edge: 2 in the composite
                   slide of 4 microseconds, 1 of them at a common edge
                 fast reads 3 slices a window, daily 4
                 count() is one partial for fast.n, daily.n
    <BLANKLINE>
                 0   2   4   6   8   10  12  µs
                 |   |   |   |   |   |   |   edges; a slice is what lies between two
                 [-----------)               fast
                     [-----------)
                 [---------------)           daily
                         [---------------)
    <BLANKLINE>
    how          rows are combined into slices once for all queries: they have the same keys
                 each query takes the slices through two stacks in one queue: they are in order,
                   so the oldest leaves first; any associative operator will do
    state        all slices of the table, in one copy
    combines     1 an event (into its slice), at most 3.4 a slice (the queues of 2 queries) and
                   1 a row
    """

    place: str
    bundles: tuple[BundleExplanation, ...]
    queries: Mapping[str, Explanation]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all queries, each with the query's name."""
        return tuple(f"{n}: {text}" for n, one in self.queries.items() for text in one.warnings)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data: dicts, lists, text and numbers."""
        return {
            "place": self.place,
            "bundles": [plain(dataclasses.asdict(bundle)) for bundle in self.bundles],
            "queries": {name: one.to_dict() for name, one in self.queries.items()},
        }

    def __str__(self) -> str:
        many, bundles = len(self.queries), [b for b in self.bundles if len(b.names) > 1]
        said = f"{len(bundles)} bundle{'s' if len(bundles) != 1 else ''} that share slices"
        said = said.replace("bundle that share", "bundle that shares")
        lines = [f"{many} quer{'ies' if many > 1 else 'y'} {self.place}, in {said}"]
        for bundle in self.bundles:
            lines += ["", *_bundle_lines(bundle)]
        if self.warnings:
            lines.append("")
        for i, warning in enumerate(self.warnings):
            lines += entry_lines("warnings" if not i else "", (f"! {warning}",))
        return "\n".join(line.rstrip() for line in lines)


def _bundle_lines(bundle: BundleExplanation) -> list[str]:
    label = ", ".join(bundle.names[:3]) + (", …" if len(bundle.names) > 3 else "")
    texts: list[str] = []
    if len(bundle.names) == 1:
        alone = f"{bundle.why}, so it shares the intake only" if bundle.why else "it runs alone"
        texts.append(alone)
    else:
        slide = duration_text(bundle.slide or 0)
        known = f"in the composite slide of {slide}"
        if bundle.slices is not None:
            edges = f"{bundle.common:,} of them at a common edge"
            known = f"{bundle.slices:,} {known}, {edges}"
        else:
            known = f"too many {known} to write out, so edges are found as events come"
        texts.append(f"slices are cut once, wherever one of the windows has an edge: {known}")
        held = [f"{name} {many:,}" for name, many in bundle.held.items() if many is not None]
        if held:
            first, *rest = held[:8]
            name, many = first.rsplit(" ", 1)
            more = ", …" if len(held) > 8 else ""
            texts.append(f"{', '.join([f'{name} reads {many} slices a window', *rest])}{more}")
        for what, where in bundle.shared.items():
            some = ", ".join(where[:6]) + (", …" if len(where) > 6 else "")
            texts.append(f"{what} is one partial for {some}")
        if bundle.factors:
            texts.append("where slices are many, windows are computed from coarser ones:")
    lines = entry_lines(label if len(label) < 12 else "", tuple(texts))
    if len(label) >= 12:
        lines = [label, *lines]
    lines += [f"{' ' * 15}{line}" for line in bundle.factors]
    if bundle.drawing:
        lines += ["", *(f"{' ' * 13}{line}" for line in bundle.drawing)]
    if bundle.kept is not None and bundle.costs is not None:
        steps = tuple(f"{step.what}: {step.why}" for step in bundle.steps)
        lines += ["", *entry_lines("how", steps)]
        lines += entry_lines("state", (bundle.kept.words,))
        lines += entry_lines("combines", (bundle.costs.words,))
    if bundle.measured is not None and bundle.expected is not None:
        entries = "slices" if bundle.kept is not None else "entries"
        lines += ["", *_counted_lines(bundle.expected, bundle.measured, entries)]
    return lines


def _counted_lines(expected: Counts, measured: Counts, entries: str) -> list[str]:
    text = (
        f"{measured.events:,} events of the sample made {measured.entries:,} {entries} and "
        f"{measured.rows:,} rows, with {measured.combines:,.0f} combines, where "
        f"{expected.combines:,.0f} were expected"
    )
    if measured.most_entries:
        kept = f"{measured.most_entries:,} {entries} of {measured.most_bytes:,} bytes"
        text += f"; {kept} were kept at once"
    else:
        text += " at most"
    return entry_lines("sample", (text,))


def explain_shared(
    shared: Shared,
    schema: Any = None,
    data: Any = None,
    *,
    lateness: int | None = None,
    mode: Mode = "final",
    early: bool = False,
    batch: int = 1000,
    each: Mapping[str, Explanation] | None = None,
    bundles: Sequence[Bundle] | None = None,
    place: Place = "Query.stream",
) -> SharedExplanation:
    """Explain how queries run over a table or, with a `lateness`, over a stream in a place.  `data`
    is a sample to run, with combines counted; a stream takes it in batches of `batch` rows.  `each`
    has the explanations of the queries alone, if the caller has its own; `bundles` has the bundles
    of a running stream."""
    sample = None if data is None else as_arrow(data)
    known = schema if sample is None else sample.schema
    schema = None if known is None else schema_of(known)

    def alone(query: Query, data: Any = None) -> Explanation:
        if lateness is None:
            return explain_table(query, schema, data)
        more: Any = {"lateness": lateness, "mode": mode, "early": early, "batch": batch}
        return explain_stream(query, schema, data, place=place, **more)

    queries = dict(each or {name: alone(query) for name, query in shared.queries.items()})
    explained = []
    for bundle in shared.plan.bundles if bundles is None else bundles:
        if lateness is not None and len(bundle.queries) > 1:
            bundle = _untied(bundle)
        made = _explained(bundle, schema, lateness, mode)
        if sample is not None and len(bundle.queries) == 1:
            ((name, query),) = bundle.queries.items()
            one = alone(query, sample)
            counts: Any = {"expected": one.expected, "measured": one.measured}
            made = dataclasses.replace(made, **counts)
            queries[name] = dataclasses.replace(queries[name], taken=one.taken, **counts)
        elif sample is not None:
            if lateness is None:
                plan = plan_bundle(bundle, sample.schema, whole=True)
                expected, measured = measured_bundle_of_table(plan, sample)
            else:
                expected, measured = measured_bundle(
                    bundle, sample, batch, lateness, mode, early=early
                )
            made = dataclasses.replace(made, expected=expected, measured=measured)
        explained.append(made if place == "Query.stream" else _in_a_store(made))
    where = "over a table"
    if lateness is not None:
        stored = "" if place == "Query.stream" else " in a store"
        where = f"over a stream{stored}, mode={mode!r}"
    return SharedExplanation(where, tuple(explained), queries)


def explained_alone(name: str, why: str, one: Explanation, mode: Mode) -> SharedExplanation:
    """The explanation of one query of a stream that has no other."""
    bundle = BundleExplanation(
        (name,), why, None, None, None, {}, {}, (), expected=one.expected, measured=one.measured
    )
    return SharedExplanation(f"over a stream, mode={mode!r}", (bundle,), {name: one})


def explained_together(
    each: Sequence[SharedExplanation], names: Collection[str], why: str
) -> SharedExplanation:
    """One explanation of several streams that take the same events; `why` says why a query that is
    alone in its stream is alone."""
    bundles = [
        dataclasses.replace(bundle, why=bundle.why or why) if len(each) > 1 else bundle
        for one in each
        for bundle in one.bundles
    ]
    queries = {name: found for one in each for name, found in one.queries.items()}
    return SharedExplanation(each[0].place, tuple(bundles), {name: queries[name] for name in names})


def _untied(bundle: Bundle) -> Bundle:
    """The bundle as a stream in memory runs it, by order of arrival."""
    queries = {name: dataclasses.replace(q, tie=None) for name, q in bundle.queries.items()}
    return dataclasses.replace(bundle, queries=queries)


def _in_a_store(bundle: BundleExplanation) -> BundleExplanation:
    """Adapt the explanation of queries that share slices in memory to a stream in a store."""
    if bundle.kept is None or bundle.costs is None:
        return bundle
    steps, kept, costs = in_shared_records(
        bundle.steps, bundle.kept, bundle.costs, "the store", "a batch"
    )
    durable = Step("`sync` makes all up to then durable", "a restart goes on there")
    return dataclasses.replace(bundle, steps=(*steps, durable), kept=kept, costs=costs)


def _explained(bundle: Bundle, schema: Any, lateness: int | None, mode: Mode) -> BundleExplanation:
    composite, table = bundle.composite, lateness is None
    shared = {
        what: tuple(f"{query}.{column}" for query, column in where)
        for what, where in bundle.aggregates.items()
        if len(where) > 1
    }
    if composite is None or len(bundle.queries) == 1:
        return BundleExplanation(bundle.names, bundle.why, None, None, None, {}, shared, ())
    plan = None if schema is None else plan_bundle(bundle, schema, whole=table)
    kept = kept_by_bundle(bundle, plan, lateness)
    return BundleExplanation(
        bundle.names,
        bundle.why,
        composite.slide,
        composite.slices,
        composite.common,
        {name: composite.held(name) for name in bundle.names},
        shared,
        _drawn(composite),
        _factors(bundle, composite) if table else (),
        steps_of_bundle(bundle, plan, None if table else mode),
        kept,
        costs_of_bundle(bundle, plan, kept, lateness),
    )


def _factors(bundle: Bundle, composite: Composite) -> tuple[str, ...]:
    """The plan of factor windows, if all slices hold events."""
    if composite.slices is None:
        return ()
    rate = Fraction(composite.slices, composite.slide)
    found = factors_of(tuple(query.window for query in bundle.queries.values()), rate)
    return () if found is None else tuple(str(found).splitlines())


def _drawn(composite: Composite) -> tuple[str, ...]:
    """Draw the edges and windows of the queries, if the queries are few."""
    if len(composite.windows) > 4 or not isinstance(composite.cuts, Periodic):
        return ()
    return tuple(draw_several(composite.windows, composite.cuts))
