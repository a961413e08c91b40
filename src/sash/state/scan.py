"""Compute windows from groups of events or slices: the Python side of the scan kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.layout import Answer
from ..kernels.slots import CAPACITY
from ..kernels.spans import room
from ..operators import count as counted
from ..query.plan import Group
from ..slicing.cut import cut_events
from ..slicing.slices import slices_held, specify
from ..slicing.techniques import Slicing
from ..tables import threads as pieces
from ..tables.threads import side_by_side
from ..windows import Aligned
from ..windows.contract import Cycle
from .answers import Apart, Sources, answers_apart, answers_of, columns_of, joined_reasons
from .cutty_kernel import CUTTY
from .numbered import Numbered
from .scan_kernel import (
    ANSWERS,
    CHANGES,
    COUNTS,
    GROUP,
    MADE,
    NEW,
    NEXT,
    RING,
    SCAN,
    SLICE,
    UNBOUNDED,
)
from .trace import note_room

__all__ = [
    "NoAnswer",
    "Out",
    "Scan",
    "ScanFailed",
    "Windows",
    "partials_handle",
    "room_for",
    "unlimited",
]

# before and after all windows; the distance fits int64
_BEFORE, _AFTER = np.int64(-UNBOUNDED), np.int64(UNBOUNDED - 2)


def unlimited(groups: int) -> tuple[Array, Array]:
    """The first and the last window to answer for each group, if all windows are wanted."""
    return np.broadcast_to(_BEFORE, groups), np.broadcast_to(_AFTER, groups)


def room_for(slices: int) -> int:
    """The capacity of a queue that must hold this many slices.

    >>> room_for(60)
    64
    """
    return 1 << max(3, int(slices).bit_length())


class NoAnswer(OverflowError):
    """An answer does not exist, for the window of this group with this number."""

    def __init__(self, reason: str, group: int, number: int) -> None:
        super().__init__(reason)
        self.group = group
        self.number = number


class ScanFailed(RuntimeError):
    """`combine` raised an error in a scan, in this group, before this window was answered."""

    def __init__(self, error: Exception, group: int, window: int) -> None:
        super().__init__(f"combine raised {type(error).__name__}: {error}")
        self.error, self.group, self.window = error, group, window


@dataclass
class Windows:
    """The windows of groups, in order: the place after each group's windows, the number of each
    window, and its answers by name.  A row in `lacking` has nulls for answers that do not exist;
    `lacking` says why.

    If only changes are wanted, a window with the same slices as the window before has no row;
    `covered` is the last window with the same slices as a row's window.
    """

    ends: Array
    numbers: Array
    covered: Array
    values: dict[str, pa.Array]
    lacking: dict[int, str]

    @property
    def groups(self) -> Array:
        """The group of each window."""
        return np.repeat(np.arange(len(self.ends), dtype=np.int32), np.diff(self.ends, prepend=0))

    def where(self, keep: Array) -> Windows:
        """The windows for which `keep` is True."""
        at = pa.array(np.flatnonzero(keep))
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return Windows(
            kept_before[self.ends],
            self.numbers[keep],
            self.covered[keep] if len(self.covered) else self.covered,
            {name: values.take(at) for name, values in self.values.items()},
            {int(kept_before[row]): why for row, why in self.lacking.items() if keep[row]},
        )

    @staticmethod
    def one_after_another(parts: list[Windows], threads: int = 1) -> Windows:
        """Concatenate the windows of several ranges of groups.  `parts` lose their windows."""
        if len(parts) == 1:
            return parts[0]
        counts = [len(part.numbers) for part in parts]
        before = list(zip(parts, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))

        def numbers(name: str) -> Array:
            made = np.concatenate([getattr(part, name) for part in parts])
            for part in parts:
                setattr(part, name, np.empty(0, dtype=np.int64))
            return made

        def answers(name: str) -> pa.Array:
            return pa.concat_arrays([part.values.pop(name) for part in parts])

        def places() -> Array:
            return np.concatenate([part.ends + n for part, n in before])

        names = list(parts[0].values)
        work: list[Callable[[], Any]]
        work = [partial(numbers, "numbers"), partial(numbers, "covered"), places]
        work += [partial(answers, name) for name in names]
        many = threads if sum(counts) >= 4 * pieces.PIECE else 1
        made, covered, ends, *joined = side_by_side(lambda join: join(), work, many)
        return Windows(
            ends,
            made,
            covered,
            dict(zip(names, joined, strict=True)),
            {row + n: why for part, n in before for row, why in part.lacking.items()},
        )

    def join(self, more: Windows) -> None:
        """Add further answers of the same windows."""
        self.values |= more.values
        self.lacking = joined_reasons(self.lacking, more.lacking)


class Scan:
    """The scan kernel for one group of aggregates, one window and one slicing technique, which is
    pairs by default."""

    def __init__(
        self,
        group: Group,
        window: Aligned,
        types: dict[str, Any],
        *,
        changes: bool = False,
        slicing: Slicing | None = None,
    ) -> None:
        self._edges = slicing.edges if slicing else None
        self._kernel = CUTTY if slicing and slicing.reads_open else SCAN
        self.group = group
        self.window = window
        self.changes = changes
        self._types = types
        self._core: BufferCore | ObjectCore = make_core(self._kernel, group.operator, 8)
        self._specify()

    def _specify(self) -> None:
        specify(self._core.header, self.window, edges=self._edges)
        self._core.header[CHANGES] = self.changes

    def _reserve(self, slices: int) -> None:
        """Make room for this many slices in the queue."""
        capacity = room_for(slices)
        if capacity > self._core.get(CAPACITY):
            self._core = make_core(self._kernel, self.group.operator, capacity)
            self._specify()
        note_room(self._core)

    def answer_types(self) -> dict[str, pa.DataType]:
        """The Arrow types of the answers that compiled code computes."""
        core = self._core
        if isinstance(core, ObjectCore) or not core.layout.answers:
            return {}
        fields = core.layout.answer.fields
        return {n: arrow_type(a) for n, (_, a) in zip(self.group.names, fields, strict=True)}

    def cut(
        self, table: pa.Table, rows: Array | None, times: Array, bounds: Array, whole: bool
    ) -> tuple[Array, Any, Array]:
        """Cut groups of a table's events into slices or, unless `whole`, into distinct times; see
        `slicing.cut.cut_events`."""
        columns, values = columns_of(self.group, table)
        clock, slots = self.window.clock, (RING, NEW)
        starts, partials, ends = cut_events(
            self._core, columns, rows, clock.reading(times), bounds, whole=whole, slots=slots
        )
        if self.group.labelled:
            partials = Numbered(partials, values)
        return clock.time(starts), partials, ends

    def cut_columns(
        self, columns: Table, times: Array, bounds: Array, room: int
    ) -> tuple[Array, Any, Array]:
        """Cut groups of events, whose columns are in the events' order, into at most `room`
        slices."""
        clock = self.window.clock
        given = self._core, columns, None, clock.reading(times), bounds
        starts, partials, ends = cut_events(*given, whole=True, slots=(RING, NEW), room=room)
        return clock.time(starts), partials, ends

    @property
    def divisible(self) -> bool:
        """True if threads can work with several scans of the group side by side."""
        return isinstance(self._core, BufferCore)

    def columns(self, table: pa.Table) -> tuple[Table, Sources]:
        """The columns that the group reads, and the values of those that are read by number."""
        return columns_of(self.group, table)

    def room_for(self, slices: int) -> Array:
        """A place for so many partials, where threads cut events."""
        return np.empty((slices, self._core.width), dtype=np.int64)

    def cut_piece(
        self,
        columns: Table,
        rows: Array | None,
        marks: Array,
        bounds: Array,
        into: tuple[Array, Array],
    ) -> None:
        """Cut some events wherever their marks rise, and write where there is room."""
        given = self._core, columns, rows, marks, bounds
        cut_events(*given, whole=False, slots=(RING, NEW), into=into)

    def cut_where(
        self, columns: Table, rows: Array | None, marks: Array, bounds: Array
    ) -> tuple[Array, Any, Array]:
        """Cut groups of events wherever their `marks` rise; marks never fall within a group.
        Return the mark of each slice instead of its start."""
        return cut_events(self._core, columns, rows, marks, bounds, whole=False, slots=(RING, NEW))

    def windows_of_events(
        self,
        columns: Table,
        sources: Sources,
        rows: Array | None,
        times: Array,
        bounds: Array,
        first: Array | None = None,
        last: Array | None = None,
    ) -> Windows:
        """The windows of groups of events, which are in order of time.  `rows` has the places of
        the events in the columns; None means that the columns are in the events' order.  `first`
        and `last` are the first and the last window to answer for each group.  `sources` has the
        values of columns that the kernel reads as numbers.  An answer that does not exist is an
        error."""
        count = len(bounds) - 1
        every = unlimited(count)
        first = every[0] if first is None else first
        last = every[1] if last is None else last
        most = int(np.diff(bounds).max(initial=0))
        self._reserve(min(most, slices_held(self.window) + 2))
        core = self._core
        shown = self.window.clock.reading(times)
        kept = [core.integers(a) for a in (shown, bounds, first, last)]
        taken, handle = core.take(columns if rows is None else columns.take(rows))
        out = self._out(kept, first, last)
        try:
            made = core.run.windows_of_events(
                core.m, handle, *(h for _, h in kept), count, *out.handles
            )
        except OverflowError as error:
            made, slot = core.get(MADE), core.get(ANSWERS)
            at = made - 1 if made > 0 else -1 - made
            reason = answers_apart(core, self.group, slot - 1).reason if slot else ""
            raise NoAnswer(reason or str(error), core.get(GROUP), int(out.numbers[at])) from error
        del taken, kept
        return self._windows(out, made, None, sources)

    def windows_of_slices(
        self,
        partials: Any,
        starts: Array,
        bounds: Array,
        first: Array,
        last: Array,
        sources: Sources | None = None,
    ) -> Windows:
        """The windows from first[g] to last[g], by number, of groups of slices; none if last[g] is
        less than first[g].  Answers that do not exist are null.

        `starts` has the slices' starts, or a time in each slice.  A slice may be longer than the
        window's edges would cut it, if none of these windows starts or ends within it.  `sources`
        has the values of columns that the kernel reads as numbers.
        """
        self._reserve(int(np.diff(bounds).max(initial=0)) + 1)
        core = self._core
        shown = self.window.clock.reading(starts)
        kept = [core.integers(a) for a in (shown, bounds, first, last)]
        held, at = partials_handle(core, partials)
        out = self._out(kept, first, last)
        header = core.header
        header[GROUP], header[SLICE], header[MADE], header[ANSWERS] = 0, -1, 0, 0
        apart: dict[int, Apart] = {}
        made = -1
        while made < 0:
            try:
                made = core.run.windows_of_slices(
                    core.m, at, *(h for _, h in kept), len(first), *out.handles
                )
            except Exception as error:
                if not core.get(ANSWERS):
                    raise ScanFailed(error, core.get(GROUP), core.get(NEXT)) from error
                apart[core.get(MADE) - 1] = answers_apart(core, self.group, core.get(ANSWERS) - 1)
                header[ANSWERS] = 0
        del held, kept
        return self._windows(out, made, apart, sources)

    def spans_of_slices(
        self,
        partials: Any,
        starts: Array,
        bounds: Array,
        asked: tuple[Array, Array, Array],
        sources: Sources | None = None,
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """The answers over spans of time, by name, and why rows lack answers.  `asked` has the
        bounds of each group's spans, and the start and the end of each span.  Within a group,
        neither starts nor ends fall from one span to the next."""
        self._reserve(int(np.diff(bounds).max(initial=0)) + 1)
        core, count = self._core, len(bounds) - 1
        kept = [core.integers(np.ascontiguousarray(a)) for a in (starts, bounds, *asked)]
        held, at = partials_handle(core, partials)
        out, at_out = core.outputs(len(asked[1]))
        header = core.header
        header[GROUP], header[SLICE], header[MADE], header[ANSWERS] = 0, -1, 0, 0
        apart: dict[int, Apart] = {}
        made = -1
        while made < 0:
            try:
                made = core.run.spans_of_slices(core.m, at, *(h for _, h in kept), count, at_out)
            except Exception as error:
                if not core.get(ANSWERS):
                    raise ScanFailed(error, core.get(GROUP), 0) from error
                apart[core.get(MADE) - 1] = answers_apart(core, self.group, core.get(ANSWERS) - 1)
                header[ANSWERS] = 0
        del held, kept
        return answers_of(core, self.group, self._types, out, made, apart, sources)

    def _out(self, kept: list[tuple[Any, Any]], first: Array, last: Array) -> Out:
        """Room for the windows from `first` to `last` of groups with these times and bounds."""
        most = self.most_windows(kept[0][0], kept[1][0])
        return Out.of(self._core, kept[0], kept[1], (first, last), changes=self.changes, most=most)

    def most_windows(self, times: Any, bounds: Any) -> int | None:
        """A bound of the number of windows that hold these times of groups: all windows from a
        group's first time to its last.  None if it is not much less than the number of times, as
        where events have long gaps: then the windows must be counted."""
        cycle = self.window.cycle
        if self._kernel is CUTTY or not isinstance(self._core, BufferCore):
            return None
        if type(cycle) is not Cycle or cycle.windows > 1:
            return None
        begins, ends = bounds[:-1], bounds[1:]
        if not (begins < ends).all():
            begins, ends = begins[begins < ends], ends[begins < ends]
        found = cycle.last(times[ends - 1]) - cycle.first(times[begins]) + 1
        most = int(found.clip(0).sum())
        if cycle.longest <= cycle.length:  # no window overlaps another
            most = min(most, len(times))
        return most if 8 * most <= 9 * len(times) else None

    def _windows(
        self,
        out: Out,
        made: int,
        apart: dict[int, Apart] | None,
        sources: Sources | None = None,
    ) -> Windows:
        """The first `made` windows; see `Out.windows`."""
        return out.windows(self.group, self._types, made, apart, sources)


@cache
def _counter() -> BufferCore | ObjectCore:
    """The core that counts windows for all scans of compiled operators."""
    return make_core(COUNTS, counted.of("int64"), 1)


class Out:
    """The arrays that a kernel writes windows to."""

    def __init__(
        self, core: BufferCore | ObjectCore, rows: int, groups: int, *, changes: bool
    ) -> None:
        self._core = core
        self._answers, at = core.outputs(rows)
        self._ends, at_ends = _empty(core, groups)
        self.numbers, at_numbers = _empty(core, rows)
        self._covered, at_covered = _empty(core, rows if changes else 0)
        self.handles = (at, at_ends, at_numbers, at_covered)

    @staticmethod
    def of(
        core: BufferCore | ObjectCore,
        times: tuple[Any, Any],
        bounds: tuple[Any, Any],
        wanted: tuple[Array, Array],
        *,
        changes: bool,
        most: int | None = None,
    ) -> Out:
        """Room for windows of groups with these times and bounds.  `wanted` has the first and the
        last window of each group.  The core's header must have the window's fields.  If at most
        `most` windows hold the times, they are not counted."""
        first, last = wanted
        rows = most
        if rows is None:
            shared = core.kernel is not CUTTY and isinstance(core, BufferCore)
            run = _counter().run if shared else core.run
            rows = run.count_windows(core.m, times[1], bounds[1], len(first))
        asked = (last - first + 1).clip(0)
        rows = min(rows, int(np.minimum(asked, rows).sum()))
        if changes:
            rows = min(rows, 2 * len(times[0]) + len(first))
        return Out(core, rows, len(first), changes=changes)

    def windows(
        self,
        group: Group,
        types: dict[str, Any],
        made: int,
        apart: dict[int, Apart] | None,
        sources: Sources | None,
    ) -> Windows:
        """The first `made` windows that the kernel wrote.  An answer that does not exist or does
        not fit its type is null; if `apart` is None, it is an error."""
        values, lacking = answers_of(self._core, group, types, self._answers, made, apart, sources)
        return Windows(
            np.asarray(self._ends, dtype=np.int64),
            np.asarray(self.numbers[:made], dtype=np.int64),
            np.asarray(self._covered[:made], dtype=np.int64),
            values,
            lacking,
        )


def _empty(core: BufferCore | ObjectCore, rows: int) -> tuple[Any, Any]:
    """An array of integers for a kernel to write, and its handle."""
    return core.integers(room(rows, np.int64))


def partials_handle(core: BufferCore | ObjectCore, partials: Any) -> tuple[Any, Any]:
    """Partials for a kernel: the object that keeps them alive, and their handle."""
    if isinstance(core, ObjectCore):
        return partials, partials
    return core.integers(partials.reshape(-1))


def arrow_type(answer: Answer) -> pa.DataType:
    """The Arrow type of an answer that compiled code computes."""
    if answer.fields:
        return pa.struct([(name, arrow_type(a)) for name, a in answer.fields])
    if answer.type.startswith("vector"):
        _, kind, length = answer.type.split(":")
        item = {"i": pa.int64(), "u": pa.uint64(), "f": pa.float64()}[kind]
        return pa.list_(item, int(length))
    types = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
    return types.get(answer.type, pa.timestamp("us"))
