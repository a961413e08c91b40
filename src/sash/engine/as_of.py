"""The values of a query as of the times of questions: `Query.at`.

questions → a frame for each, which is a range of ordered events → answers, in the questions' order

If a column says when each event became known, a question sees only the events that were known by
its time.  Then a tree holds the events of a key by their place in order.  Events enter the tree in
the order in which they became known, and the answer to a question is a range of places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregators import Fiba
from ..kernels.columns import Array
from ..kernels.core import BufferCore, make_core
from ..query.names import check_column, did_you_mean
from ..query.plan import Group, Plan, make_plan
from ..query.query import Query
from ..query.types import check_time
from ..state.answers import answers_of, columns_of
from ..state.frame_answers import answers_of_frames, in_order
from ..state.frames import NoFrameAnswer, Ranges
from ..state.frames_kernel import FRAMES
from ..state.measures import held_at
from ..state.ranges import answers_over
from ..tables.answers import from_objects
from ..tables.arrow import (
    as_arrow,
    as_given,
    check_index,
    check_times,
    filtered,
    flat,
    kind_of,
    numbered,
    one_array,
    time_text,
    times_of,
)
from ..tables.counting_sort import inverse
from ..tables.keys import key_codes
from ..tables.rows import Ordered, Parts, Rows, put_in_order, read_rows
from ..tables.threads import how_many, side_by_side
from ..windows import Trailing, Window
from .supported import Asked, check

__all__ = ["at", "check_window", "values_at"]

_FAR = 2**61  # after all times


def at(
    query: Query,
    events: Any,
    questions: Any,
    time: str,
    known: str | None = None,
    threads: int | None = None,
) -> Any:
    """The rows of `questions`, with the values of the query as of their times."""
    check("Query.run", Asked(query))
    check_window(query)
    check_index(events, query.time, query.columns)
    check_index(questions, time, [time, *query.by])
    given = as_arrow(events)
    asked = as_arrow(questions)
    for name in query.select:
        if name in asked.column_names:
            raise ValueError(f"the questions have a column {name!r} of their own; choose another")
    values = values_at(query, given, asked, time, known, how_many(threads))
    kind = kind_of(questions)
    made = numbered(asked) if kind == "pandas" else asked
    for name, column in values.items():
        made = made.append_column(name, column)
    return as_given(made, kind, questions)


def check_window(query: Query) -> None:
    """Refuse windows that a time alone does not determine."""
    window = query.window
    if not isinstance(window, Trailing) or window.excludes_some:
        raise ValueError(
            f"a question is about the time up to a moment: the query's window must be "
            f"sash.trailing(…) or sash.lifetime() without exclude='row' or 'ties', not {window!r}"
        )


def values_at(
    query: Query,
    events: pa.Table,
    questions: pa.Table,
    time: str,
    known: str | None = None,
    threads: int = 1,
) -> dict[str, pa.Array]:
    """The values of a query as of each question's time, by name."""
    if query.where is not None:
        events = filtered(events, query.where)
    plan = make_plan(query, events.schema, whole=known is None, by_sizes=True)
    read = events.select([f.name for f in plan.schema])
    rows = read_rows(plan, read, threads)
    moments = _moments(questions, time, "question")
    groups = _groups(query, rows, questions)
    order = _order(groups, moments)
    back = inverse(order, threads)
    asked = _Asked(query.window, groups[order], moments[order])
    try:
        if known is None:
            return _answers(plan, read, rows, asked, back, threads)
        arrived = _moments(events, known, "event", nulls=True)
        return _known(plan, read, rows, asked, arrived, back)
    except NoFrameAnswer as error:
        row = int(order[error.frame])
        said = time_text(questions.column(time)[row])
        raise OverflowError(f"{error} as of {said}, in row {row} of the questions") from None


def _moments(table: pa.Table, name: str, what: str, *, nulls: bool = False) -> Array:
    """A column of times.  With `nulls`, a null becomes a time after all others; without, it is
    refused."""
    if name not in table.column_names:
        have = ", ".join(table.column_names) or "none"
        meant = did_you_mean(name, table.column_names)
        raise KeyError(
            f"there is no column {name!r} of times of each {what}; there are: {have}{meant}"
        )
    column = one_array(table.column(name))
    check_time(name, column.type)
    times, bad = times_of(column)
    if not nulls:
        check_times(name, column, bad)
    return np.where(bad, _FAR, times)


def _groups(query: Query, rows: Rows, questions: pa.Table) -> Array:
    """For each question, the number of its key among the keys of the events; if no event has the
    key, the number of keys."""
    count = rows.groups
    if not query.by:
        return np.zeros(questions.num_rows, dtype=np.int64)
    columns, known = [], np.ones(questions.num_rows, dtype=bool)
    for name, keys in zip(query.by, rows.keys, strict=True):
        check_column(name, questions.column_names, what="the table of questions")
        asked = flat(questions.column(name))
        keys = flat(pa.chunked_array([keys]))
        if pa.types.is_null(keys.type):
            keys = pa.nulls(len(keys), asked.type)
        try:
            asked, fits = _as_keys(asked, keys.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TypeError(f"the key {name!r} of questions is no {keys.type}: {error}") from None
        columns.append(pa.concat_arrays([keys, asked]))
        known &= fits
    codes, _ = key_codes(columns, count + questions.num_rows)
    number = np.full(int(codes.max(initial=-1)) + 1, count)
    number[codes[:count]] = np.arange(count)
    found: Array = np.where(known, number[codes[count:]], count)
    return found


def _as_keys(asked: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Array]:
    """Cast the keys of questions to the type of the events' keys; and a mask of those that fit it,
    because no event has a key that does not."""
    try:
        return asked.cast(kind), np.ones(len(asked), dtype=bool)
    except pa.ArrowInvalid:
        made = asked.cast(kind, safe=False)
        same = pc.fill_null(pc.equal(made.cast(asked.type, safe=False), asked), True)
        return made, same.to_numpy(zero_copy_only=False)


def _order(groups: Array, moments: Array) -> Array:
    """The places of questions in order of key, then time."""
    if not len(moments):
        return np.zeros(0, dtype=np.int64)
    low = int(moments.min())
    width = int(moments.max()) - low + 1
    if width * (int(groups.max()) + 1) >= 2**62:
        return np.lexsort((moments, groups))
    return np.argsort(groups * width + (moments - low))


@dataclass(frozen=True)
class _Asked:
    """Questions in order of key and time: the number of each question's key, and its time."""

    window: Window
    groups: Array
    times: Array

    def __len__(self) -> int:
        return len(self.groups)

    def part(self, begin: int, end: int, first: int) -> _Asked:
        """A range of the questions, with keys numbered from key `first` on."""
        some = slice(begin, end)
        return replace(self, groups=self.groups[some] - first, times=self.times[some])


class _Frames:
    """The ranges of ordered rows that answer questions, for each size of windows; computed at
    first use."""

    def __init__(self, ordered: Ordered, asked: _Asked) -> None:
        self._ordered, self._asked = ordered, asked
        self._found: dict[int | None, Ranges] = {}

    def own(self) -> Ranges:
        """The ranges of the query's own windows."""
        assert isinstance(self._asked.window, Trailing)
        return self._of(self._asked.window, self._asked.window.length)

    def each(self, group: Group) -> list[tuple[Ranges, Group]]:
        """The ranges for a group of aggregates, longest size first, each with the aggregates of
        that size as a group."""
        window = self._asked.window
        assert isinstance(window, Trailing)
        if group.over is None:
            return [(self.own(), group)]
        return [(self._of(window, size), group.alone(i)) for i, size in enumerate(group.over.sizes)]

    def _of(self, window: Trailing, size: int | None) -> Ranges:
        """The ranges of one size.  Within a key, starts and ends rise or stay; a question about a
        key that no event has gets an empty range."""
        if size not in self._found:
            ordered, asked = self._ordered, self._asked
            edges = np.searchsorted(asked.groups, np.arange(len(ordered.bounds)))
            many = int(edges[-1])
            first = np.full(len(asked), len(ordered))
            last = first.copy()
            span, when = window.of_length(size).keeps, asked.times[:many]
            held = held_at(span, ordered.times, ordered.bounds, when, edges)
            first[:many], last[:many] = held
            self._found[size] = Ranges(first, last)
        return self._found[size]


def _answers(
    plan: Plan, read: pa.Table, rows: Rows, asked: _Asked, back: Array, threads: int
) -> dict[str, pa.Array]:
    """The answers, in the order of the questions.  If answers are numbers, parts of the keys go
    from rows to answers in parallel."""
    values: dict[str, pa.Array] = {}
    columns = [columns_of(group, read) for group in plan.groups]
    cores = [make_core(FRAMES, group.operator, 8) for group in plan.groups]
    typed = all(isinstance(core, BufferCore) and core.layout.answers for core in cores)
    if plan.ranged or not typed or any("object" in c.types for c, _ in columns):
        ordered, _ = put_in_order(plan, read, rows)
        frames = _Frames(ordered, asked)
        cuts = [((0, len(asked)), (0, len(ordered)))]
        for group in plan.groups:
            given = plan.types, read, ordered, back, cuts, threads
            values |= answers_of_frames(frames.each(group), *given)
        values |= answers_over(plan, ordered, frames.own(), back)
        return {name: values[name] for name in plan.query.select}
    parts = Parts(rows, [c for c, _ in columns], threads)
    sizes = [1 if group.over is None else len(group.over.sizes) for group in plan.groups]
    kept = [
        [core.outputs(len(asked)) for _ in range(many)]
        for core, many in zip(cores, sizes, strict=True)
    ]

    def give(i: int) -> None:
        part = parts[i]
        begin, end = np.searchsorted(asked.groups, [part.first, part.first + part.groups]).tolist()
        end = len(asked) if i == len(parts) - 1 else end  # at the end: keys that no event has
        ordered, order = put_in_order(plan, read, part)
        frames = _Frames(ordered, asked.part(begin, end, part.first))
        for group, table, outputs in zip(plan.groups, parts.columns, kept, strict=True):
            given = table if part.runs is None else table.runs(part.runs)
            given = given if order is None else given.take(order)
            for (ranges, named), (_, out) in zip(frames.each(group), outputs, strict=True):
                ranges.answer(named, given, out, begin)

    side_by_side(give, range(len(parts)), threads)
    for core, group, (_, sources), outputs in zip(cores, plan.groups, columns, kept, strict=True):
        for i in range(len(outputs)):
            named = group if group.over is None else group.alone(i)
            found = in_order(outputs[i][0], back, threads, [])
            values |= answers_of(core, named, plan.types, found, len(asked), None, sources)[0]
    return {name: values[name] for name in plan.query.select}


def _known(
    plan: Plan, read: pa.Table, rows: Rows, asked: _Asked, arrived: Array, back: Array
) -> dict[str, pa.Array]:
    """The answers, in the order of the questions, over those rows of each range that had arrived by
    the time of its question."""
    ordered, _ = put_in_order(plan, read, rows)
    arrived = arrived if ordered.rows is None else arrived[ordered.rows]
    frames, groups, when = _Frames(ordered, asked), asked.groups, asked.times
    bounds = ordered.bounds
    edges = np.searchsorted(groups, np.arange(len(bounds) + 1))
    edges[-1] = len(groups)
    values: dict[str, pa.Array] = {}
    for group in plan.groups:
        columns, _ = columns_of(group, read)
        columns = columns if ordered.rows is None else columns.take(ordered.rows)
        sized = frames.each(group)
        longest = sized[0][0].first
        found: list[list[Any]] = [[] for _ in sized]
        for key in range(len(bounds)):
            tree = Fiba(group.operator)
            begin = int(bounds[key]) if key < len(bounds) - 1 else len(ordered)
            end = int(bounds[key + 1]) if key < len(bounds) - 1 else len(ordered)
            coming = begin + np.argsort(arrived[begin:end], kind="stable")
            times = arrived[coming]
            at = 0
            for q in range(int(edges[key]), int(edges[key + 1])):
                until = int(np.searchsorted(times, when[q], side="right"))
                new = np.sort(coming[at:until])
                at = max(at, until)
                new = new[new >= longest[q]]
                if len(new):
                    some = columns.take(new)
                    given = [
                        c.as_list() if c.type == "object" else _values(c) for c in some.columns
                    ]
                    tree.bulk_insert(new, tuple(given) if len(given) > 1 else given[0])
                for (ranges, _), answers in zip(sized, found, strict=True):
                    try:
                        answers.append(tree.query(int(ranges.first[q]), int(ranges.last[q])))
                    except OverflowError as error:
                        raise NoFrameAnswer(str(error), q) from None
        for (_, named), answers in zip(sized, found, strict=True):
            for i, name in enumerate(named.names):
                items = [answers[n][i] for n in back.tolist()]
                fields = group.operator.parts[i].operator.fields
                values[name] = from_objects(items, plan.types[name], fields)
    return {name: values[name] for name in plan.query.select}


def _values(column: Any) -> Any:
    """A column's values in the form that an aggregator reads."""
    if column.type == "object":
        return column.as_list()
    data = column.data.astype(bool) if column.type == "bool" else column.data
    if column.type == "timestamp":
        data = data.view("M8[us]")
    return data if column.valid is None else np.ma.MaskedArray(data, mask=column.valid == 0)
