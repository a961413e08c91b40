"""Several queries over a whole table: `Shared.run`.

    table → rows of a bundle, read and ordered once → slices, cut at the edges of all its queries
          → windows of each query → a table for each

If there are more edges than rows, each time is a slice, so there are at most as many slices as
rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, Table
from ..query.plan import NO_NAME, Plan
from ..query.query import Query
from ..query.shared import Shared
from ..slicing.edges import Edges
from ..state.answers import Sources, columns_of
from ..state.contract import Slices
from ..state.places import slices_by_place
from ..state.ranges import check_lengths
from ..state.scan import NoAnswer, Scan, ScanFailed, Windows, unlimited
from ..tables.arrow import as_arrow, as_given, check_index, filtered, kind_of
from ..tables.rows import Ordered, Parts, Rows, put_in_order, read_rows
from ..tables.threads import how_many, side_by_side
from ..tables.whole_times import lasts_seconds, warn_of_whole
from ..windows import Driven
from . import oracle
from .bundle_plans import BundlePlan, Sized, plan_bundle
from .bundles import ALONE, Bundle, bundle_alone
from .coarser import coarser_slices
from .failures import noting_failure
from .parts import add_ranged, divisible, typed, windows_of_slices
from .pyramids import windows_by_pyramids
from .run import emitted, explained, results, run_arrow
from .supported import Asked, check

__all__ = ["results_of_bundle", "run", "sized_results"]

_FAR = 2**61  # `-_FAR` is before all times
_FEW = 1 << 16  # list up to this many edges, however few rows there are
_MANY = 8  # from this many queries on, joining the slices of parts beats answering part by part


def run(shared: Shared, table: Any, threads: int | None = None) -> dict[str, Any]:
    """The results of each query over a table, as the same kind of table."""
    queries = shared.queries
    if oracle.asked_for():
        return {name: oracle.run(query, table) for name, query in queries.items()}
    for query in queries.values():
        check("Query.run", Asked(query))
    many, kind = how_many(threads), kind_of(table)
    # a condition may read any column, and the rows of driven windows keep all columns
    some = not any(isinstance(q.window, Driven) or q.where is not None for q in queries.values())
    read = dict.fromkeys(c for query in queries.values() for c in query.columns)
    for query in queries.values():
        check_index(table, query.time, query.columns)
    given = as_arrow(table, tuple(read) if some else None)
    for query in [q for q in queries.values() if lasts_seconds(q)][:1]:
        warn_of_whole(query, given)
    made: dict[str, pa.Table] = {}
    for bundle in shared.plan.bundles:
        made |= _results(bundle, given, many, kind)
    return {
        name: as_given(made[name], kind, table if isinstance(q.window, Driven) else None)
        for name, q in queries.items()
    }


def _results(bundle: Bundle, given: pa.Table, threads: int, kind: str) -> dict[str, pa.Table]:
    """The results of a bundle's queries."""
    if len(bundle.queries) == 1:
        ((name, query),) = bundle.queries.items()
        keep = kind == "pandas" and isinstance(query.window, Driven)
        return {name: run_arrow(query, given, threads, keep_numbers=keep)}
    return results_of_bundle(plan_bundle(bundle, given.schema, whole=True), given, threads)


def results_of_bundle(plan: BundlePlan, given: pa.Table, threads: int = 1) -> dict[str, pa.Table]:
    """The results of the queries of a bundle, which share slices."""
    union = plan.union
    table = given if union.query.where is None else filtered(given, union.query.where)
    table = table.select([field.name for field in union.schema])
    read = read_rows(union, table, threads)
    try:
        with ExitStack() as each:
            for one in plan.plans.values():
                each.enter_context(noting_failure(one, table))
            found = _windows(plan, table, read, threads)
    except _NoAnswerFor as failed:
        text = explained(plan.plans[failed.name], read.keys, failed.error)
        whose = f"query {failed.name!r}: " if failed.name else ""
        raise OverflowError(f"{whose}{text}") from None
    except ScanFailed as failure:
        raise failure.error from None
    return {
        name: results(one, read.keys, emitted(one, found[name]), threads)
        for name, one in plan.plans.items()
    }


def sized_results(query: Query, given: pa.Table, threads: int) -> pa.Table:
    """The results of one query with aggregates of several sizes."""
    plan = plan_bundle(bundle_alone(query), given.schema, whole=True)
    return results_of_bundle(plan, given, threads)[ALONE]


class _NoAnswerFor(Exception):
    """A window's answer does not exist; names the query, and the window."""

    def __init__(self, name: str, error: NoAnswer) -> None:
        super().__init__(name)
        self.name, self.error = name, error


def _windows(plan: BundlePlan, table: pa.Table, read: Rows, threads: int) -> dict[str, Windows]:
    """The windows of each query over a table's rows."""
    union = plan.union
    groups = [columns_of(group, table) for group in union.groups]
    columns, sources = [c for c, _ in groups], [s for _, s in groups]
    if not divisible(union, columns):
        return _Work(plan, table, columns, sources).of_part(read)
    columns = [typed(group, c) for group, c in zip(union.groups, columns, strict=True)]
    work = _Work(plan, table, columns, sources)
    found = None if read.rise(threads) else work.by_place(read, threads, few=True)
    if found is not None:
        return work.of_slices(found, read.first, None, threads)
    parts = Parts(read, columns, threads)
    work = replace(work, columns=parts.columns)
    if len(plan.plans) >= _MANY and not union.ranged:
        some = side_by_side(lambda i: work.slices(parts[i])[0], range(len(parts)), threads)
        return work.of_slices(_one_after_another(some), 0, None, threads)
    each = side_by_side(lambda i: work.of_part(parts[i]), range(len(parts)), threads)
    made = {}
    for name, one in plan.plans.items():
        own = [part[name] for part in each]
        for chosen in one.ranged:
            check_lengths(chosen, [part.values[chosen.name] for part in own])
        made[name] = Windows.one_after_another(own, threads)
    return made


def _one_after_another(parts: list[Slices]) -> Slices:
    """Join the slices of several ranges of keys; the result has no keys, because no caller needs
    them."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.starts) for part in parts)])
    bounds = [part.bounds[:-1] + n for part, n in zip(parts, before[:-1], strict=True)]
    groups = zip(*(part.partials for part in parts), strict=True)
    partials = [np.concatenate(some) for some in groups]
    return Slices(
        [], np.concatenate([*bounds, before[-1:]]),
        np.concatenate([part.starts for part in parts]), partials,
    )  # fmt: skip


@dataclass(frozen=True)
class _Work:
    """The work over a table: the columns that each group of aggregates reads, and the values of the
    columns that it reads by number."""

    plan: BundlePlan
    table: pa.Table
    columns: list[Table]
    sources: list[Sources]

    def _edges(self, low: int, high: int, rows: int) -> Edges | None:
        return self.plan.composite.numbered(low, high, max(rows, _FEW))

    def of_part(self, part: Rows) -> dict[str, Windows]:
        """The windows of some keys."""
        slices, ordered = self.slices(part)
        return self.of_slices(slices, part.first, ordered, 1 if ordered is None else None)

    def slices(self, part: Rows) -> tuple[Slices, Ordered | None]:
        """The slices of some keys, and their events in order if they had to be put in order."""
        found = None if part.rise() else self.by_place(part, 1)
        return self._in_order(part) if found is None else (found, None)

    def by_place(self, part: Rows, threads: int, *, few: bool = False) -> Slices | None:
        """The slices of some keys, combined by place; None if that is not possible, or with `few`,
        if there are too many slices."""
        return slices_by_place(
            self.plan.union,
            self.columns,
            part,
            threads,
            few=few,
            edges_between=lambda low, high: self._edges(low, high, len(part)),
        )

    def _in_order(self, part: Rows) -> tuple[Slices, Ordered]:
        """The slices of some keys, cut from their events in order, and these events."""
        union = self.plan.union
        ordered, order = put_in_order(union, self.table, part)
        columns = [c if part.runs is None else c.runs(part.runs) for c in self.columns]
        times = ordered.times
        marks, edges = times, None
        if len(times):
            edges = self._edges(int(times.min()), int(times.max()), len(times))
        if edges is not None:
            marks = np.asarray(edges.number(times), dtype=np.int64)
        found = []
        for group, table in zip(union.groups, columns, strict=True):
            scan = Scan(group, union.query.aligned, union.types)
            found.append(scan.cut_where(table, order, marks, ordered.bounds))
        starts, _, bounds = found[0]
        if edges is not None and len(starts):
            starts = edges.time(starts)
        slices = Slices(ordered.keys, bounds, starts, [partials for _, partials, _ in found])
        return slices, ordered

    def of_slices(
        self, slices: Slices, first: int, ordered: Ordered | None, threads: int | None = None
    ) -> dict[str, Windows]:
        """The windows of each query, from the bundle's slices.  Keys are numbered from `first`."""
        wanted: tuple[Array, Array] = unlimited(len(slices.bounds) - 1)
        made = {}
        ready = windows_by_pyramids(self.plan, slices, self.sources, threads or 1)
        coarser = coarser_slices(self.plan, slices, [n for n in self.plan.plans if n not in ready])
        for name, plan in self.plan.plans.items():
            reads = self.plan.reads[name]
            if self.plan.sizes[name]:
                # two windows with the same slices may have different answers over a longer size
                plan = replace(plan, query=replace(plan.query, emit="all"))
            try:
                found = ready.get(name)
                if isinstance(found, NoAnswer):
                    raise found
                if found is None:
                    own = reads.slices(coarser.get(name, slices))
                    values = reads.sources(self.sources)
                    found = windows_of_slices(plan, own, values, *wanted, threads=threads)
                for size in self.plan.sizes[name]:
                    self._add_size(plan, size, found, slices, ordered)
            except NoAnswer as error:
                error.group += first
                raise _NoAnswerFor(name, error) from None
            if ordered is not None:
                add_ranged(plan, found, ordered)
            found.values.pop(NO_NAME, None)
            if self.plan.sizes[name]:
                found.covered = found.numbers
            made[name] = found
        return made

    def _add_size(
        self, own: Plan, size: Sized, found: Windows, slices: Slices, ordered: Ordered | None
    ) -> None:
        """Add the answers over another size, back from the end of each window."""
        ends = own.query.aligned.end(found.numbers)
        spans = (np.full(len(ends), -_FAR) if size.size is None else ends - size.size), ends
        assert size.plan is not None
        assert size.reads is not None
        held, sources = size.reads.slices(slices), size.reads.sources(self.sources)
        asked = np.concatenate([[0], found.ends]), *spans
        for group, partials, values in zip(size.plan.groups, held.partials, sources, strict=True):
            scan = Scan(group, own.query.aligned, size.plan.types)
            made, lacking = scan.spans_of_slices(
                partials, slices.starts, slices.bounds, asked, values
            )
            for row, why in lacking.items():
                raise NoAnswer(why, int(found.groups[row]), int(found.numbers[row]))
            found.values |= made
        if ordered is not None:
            add_ranged(size.plan, found, ordered, spans)
