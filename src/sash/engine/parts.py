"""The windows of all keys in a table, by parts.

table → keys and times ─→ rows by place, in pieces of the table ──────────────→ slices → windows
                       ↘ parts, by ranges of keys ─→ rows by place, or in order ↗

No part needs anything from another, so each part goes from rows to windows by itself, in any
thread.  The rows alone decide which parts there are, not the number of threads.  A part with a
large share of all rows is cut again, into pieces whose partials are combined in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ..kernels.columns import Array, Table
from ..kernels.program import specialise
from ..query.plan import NO_NAME, Group, Plan
from ..slicing.edges import edges_of
from ..slicing.techniques import Slicing
from ..state.answers import Sources, columns_of
from ..state.contract import Slices
from ..state.long_keys import slices_in_order
from ..state.places import slices_by_place
from ..state.ranges import answers_of_ranges, check_lengths, window_ranges
from ..state.scan import NoAnswer, Scan, Windows
from ..state.scan_kernel import SCAN
from ..state.trace import note_step
from ..tables.rows import Ordered, Parts, Rows, put_in_order
from ..tables.threads import cut_groups, side_by_side

__all__ = [
    "add_ranged",
    "divisible",
    "typed",
    "windows_of_slices",
    "windows_of_table",
]

_ROWS_OF_SLICE = 2  # answering windows takes as long for a slice as combining for so many rows
_LARGE = 4  # a part with more than 1 / _LARGE of all rows may use all threads by itself


def windows_of_table(
    plan: Plan,
    table: pa.Table,
    read: Rows,
    first: Array,
    last: Array,
    threads: int,
    slicing: Slicing | None = None,
) -> Windows:
    """The windows of a table's rows: for key k, the windows numbered from first[k] to last[k].
    Without a `slicing`, slices are pairs."""
    groups = [columns_of(group, table) for group in plan.groups]
    columns, sources = [c for c, _ in groups], [s for _, s in groups]
    if not divisible(plan, columns):
        return _Work(plan, table, columns, sources, first, last, slicing).of_part(read)
    columns = [typed(group, c) for group, c in zip(plan.groups, columns, strict=True)]
    work = _Work(plan, table, columns, sources, first, last, slicing)
    found = None if read.rise(threads) else work.by_place(read, threads, few=True)
    if found is not None:
        return found
    made = _by_parts(work, read, threads)
    for chosen in plan.ranged:
        check_lengths(chosen, [part.values[chosen.name] for part in made])
    return Windows.one_after_another(made, threads)


def _by_parts(work: _Work, read: Rows, threads: int) -> list[Windows]:
    """The windows of each range of keys."""
    parts = Parts(read, work.columns, threads)
    work = replace(work, columns=parts.columns)
    if len(parts) == 1:
        return [work.of_part(parts[0], threads)]
    large = parts.larger_than(max(len(read) // _LARGE, 2 * len(read) // len(parts)))
    made = {i: work.of_part(parts[i], threads) for i in large}
    rest = [i for i in range(len(parts)) if i not in made]
    made |= zip(rest, side_by_side(lambda i: work.of_part(parts[i]), rest, threads), strict=True)
    return [made[i] for i in range(len(parts))]


def divisible(plan: Plan, columns: list[Table]) -> bool:
    """True if the windows of some keys can be computed without the other keys.  That is false if
    answers are Python objects, because their common type depends on all answers."""
    known = all(plan.types[name] is not None for name in plan.query.select)
    typed = all("object" not in table.types for table in columns)
    return (
        known
        and typed
        and all(specialise(SCAN, g.operator).layout is not None for g in plan.groups)
    )


def typed(group: Group, columns: Table) -> Table:
    """Cast columns to the types that kernels read, once instead of for each piece."""
    layout = specialise(SCAN, group.operator).layout
    assert layout is not None
    made = (c.as_type(t) for c, t in zip(columns.columns, layout.types, strict=True))
    return Table(tuple(made), columns.kind, columns.rows)


@dataclass(frozen=True)
class _Work:
    """The work over a table: the columns that each group of aggregates reads, the values of the
    columns that it reads by number, and the first and last wanted window of each key."""

    plan: Plan
    table: pa.Table
    columns: list[Table]
    sources: list[Sources]
    first: Array
    last: Array
    slicing: Slicing | None = None

    def of_part(self, part: Rows, threads: int | None = None) -> Windows:
        """The windows of some keys; with `threads`, in pieces."""
        found = None if part.rise() else self.by_place(part, threads)
        return self._in_order(part, threads) if found is None else found

    def by_place(self, part: Rows, threads: int | None, *, few: bool = False) -> Windows | None:
        """The windows of some keys, from slices combined by place; None if that is not possible, or
        with `few`, if there are too many slices."""
        cut = self.slicing
        if cut is not None and cut.reads_open:
            return None
        edges = None if cut is None else cut.on_clock(self.plan.query.aligned)
        given = self.plan, self.columns, part, threads or 1
        between = None if edges is None else lambda low, high: edges
        slices = slices_by_place(*given, few=few, edges_between=between)
        if slices is None:
            return None
        note_step("rows combined by place, in the order in which they come")
        wanted = self._wanted(part)
        try:
            return windows_of_slices(self.plan, slices, self.sources, *wanted, threads=threads)
        except NoAnswer as error:
            error.group += part.first
            raise

    def _wanted(self, part: Rows) -> tuple[Array, Array]:
        keys = slice(part.first, part.first + part.groups)
        return self.first[keys], self.last[keys]

    def _in_order(self, part: Rows, threads: int | None) -> Windows:
        """The windows of some keys, from their events in order."""
        plan = self.plan
        number = None
        if self.slicing is None and not plan.ordered:
            number = edges_of(plan.query.aligned).number
        ordered, order = put_in_order(plan, self.table, part, number)
        by = "time" if number is None else "slice"
        note_step("rows in order" if order is None else f"rows sorted by key and {by}")
        columns = [c if part.runs is None else c.runs(part.runs) for c in self.columns]
        wanted = self._wanted(part)
        try:
            slices = None
            if threads is not None and self.slicing is None:
                slices = slices_in_order(plan, columns, ordered, order, threads)
            if slices is None:
                made = self._of_events(ordered, order, columns, *wanted)
            else:
                made = windows_of_slices(plan, slices, self.sources, *wanted, threads=threads)
        except NoAnswer as error:
            error.group += part.first
            raise
        add_ranged(plan, made, ordered)
        return made

    def _of_events(
        self,
        ordered: Ordered,
        order: Array | None,
        columns: list[Table],
        first: Array,
        last: Array,
    ) -> Windows:
        """The windows of some keys, scanned from events; all groups of aggregates answer the same
        windows."""
        plan, query = self.plan, self.plan.query
        times, bounds = ordered.times, ordered.bounds
        found = []
        for group, table, sources in zip(plan.groups, columns, self.sources, strict=True):
            scan = Scan(
                group,
                query.aligned,
                plan.types,
                changes=query.emit == "changes",
                slicing=self.slicing,
            )
            given = table, sources, order, times, bounds
            found.append(scan.windows_of_events(*given, first, last))
        return _together(found)


def add_ranged(
    plan: Plan, made: Windows, ordered: Ordered, spans: tuple[Array, Array] | None = None
) -> None:
    """Add the answers that come from ranges of the ordered rows, over the windows or over other
    spans of time."""
    made.values.pop(NO_NAME, None)
    if not plan.ranged:
        return
    if spans is None:
        aligned, numbers = plan.query.aligned, made.numbers
        spans = aligned.start(numbers), aligned.end(numbers)
    ranges = window_ranges(ordered.times, ordered.bounds, made.groups, *spans)
    for chosen in plan.ranged:
        made.values[chosen.name] = answers_of_ranges(chosen, ordered, *ranges)


def windows_of_slices(
    plan: Plan,
    slices: Slices,
    sources: list[Sources],
    first: Array,
    last: Array,
    *,
    threads: int | None = None,
) -> Windows:
    """The windows from first[k] to last[k] of key k, from slices; with `threads`, by ranges of
    keys."""

    def some(keys: tuple[int, int]) -> Windows:
        try:
            return _of_slices(plan, slices, sources, first, last, *keys)
        except NoAnswer as error:
            error.group += keys[0]
            raise

    if threads is None:
        return some((0, len(first)))
    made = side_by_side(some, cut_groups(_ROWS_OF_SLICE * slices.bounds), threads)
    return Windows.one_after_another(made, threads)


def _of_slices(
    plan: Plan,
    slices: Slices,
    sources: list[Sources],
    first: Array,
    last: Array,
    low: int,
    high: int,
) -> Windows:
    """The windows of the keys `[low, high)`; all groups of aggregates answer the same windows."""
    query, changes = plan.query, plan.query.emit == "changes"
    bounds = slices.bounds[low : high + 1]
    begin, end = int(bounds[0]), int(bounds[-1])
    wanted = first[low:high], last[low:high]
    found = []
    for group, held, values in zip(plan.groups, slices.partials, sources, strict=True):
        scan = Scan(group, query.aligned, plan.types, changes=changes)
        given = held[begin:end], slices.starts[begin:end], bounds - begin
        made = scan.windows_of_slices(*given, *wanted, values)
        for row, why in made.lacking.items():
            raise NoAnswer(why, int(made.groups[row]), int(made.numbers[row]))
        found.append(made)
    return _together(found)


def _together(found: list[Windows]) -> Windows:
    """Join the answers of several groups of aggregates for the same windows."""
    made = found[0]
    for more in found[1:]:
        made.join(more)
    return made
