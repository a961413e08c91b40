"""One operator's pass over groups of events or slices, as seen from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array, Table, answers_from_columns, read
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.layout import Answer
from ..kernels.slots import CAPACITY
from ..query.plan import Group
from ..slicing.slices import EVERY, OFFSET, REST, SIZE
from ..tables.answers import as_wanted, from_objects, object_answers, typed_answers
from ..tables.arrow import flat
from ..windows import Sliding
from .scan_kernel import CHANGES, GROUP, MADE, SLICE, SWEEP, UNBOUNDED

__all__ = ["NoAnswer", "Pass", "Windows"]


_BEFORE, _AFTER = -UNBOUNDED, UNBOUNDED - 2  # all windows; their distance fits into int64


class NoAnswer(OverflowError):
    """A window's answer does not exist: whose it is, and where the window starts."""

    def __init__(self, reason: str, group: int, start: int) -> None:
        super().__init__(reason)
        self.group = group
        self.start = start


@dataclass
class Windows:
    """Windows that were given, group by group: where those of each group end, the start of each
    window, whether the one before it was empty (where only changes are wanted), and its answers by
    name.  Of `lacking` some answers do not exist, and are null."""

    ends: Array
    starts: Array
    fresh: Array
    values: dict[str, pa.Array]
    lacking: Array

    @property
    def groups(self) -> Array:
        """The group of each window."""
        return np.repeat(np.arange(len(self.ends), dtype=np.int32), np.diff(self.ends, prepend=0))

    def where(self, keep: Array) -> Windows:
        """Some of them."""
        at = pa.array(np.flatnonzero(keep))
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return Windows(
            kept_before[self.ends],
            self.starts[keep],
            self.fresh[keep] if len(self.fresh) else self.fresh,
            {name: values.take(at) for name, values in self.values.items()},
            self.lacking[keep],
        )

    def join(self, more: Windows) -> None:
        """Further answers of the same windows."""
        self.values |= more.values
        self.lacking |= more.lacking


class Pass:
    """The sweep kernel for one group of aggregates over one window."""

    def __init__(
        self, group: Group, window: Sliding, types: dict[str, Any], *, changes: bool = False
    ) -> None:
        self.group = group
        self.window = window
        self.changes = changes
        self._types = types
        self._core: BufferCore | ObjectCore = make_core(SWEEP, group.operator, 8)
        self._specify()

    def _specify(self) -> None:
        header, window = self._core.header, self.window
        header[SIZE], header[EVERY] = window.size, window.every
        header[OFFSET], header[REST] = window.offset, window.rest
        header[CHANGES] = self.changes

    def _reserve(self, slices: int) -> None:
        """Room for so many slices in the queue."""
        capacity = 1 << max(3, int(slices).bit_length())
        if capacity > self._core.get(CAPACITY):
            self._core = make_core(SWEEP, self.group.operator, capacity)
            self._specify()

    def answer_types(self) -> dict[str, pa.DataType]:
        """The types of the answers that compiled code gives."""
        core = self._core
        if isinstance(core, ObjectCore) or not core.layout.answers:
            return {}
        fields = core.layout.answer.fields
        return {n: arrow_type(a) for n, (_, a) in zip(self.group.names, fields, strict=True)}

    def columns(self, table: pa.Table) -> Table:
        """The columns this group reads."""
        arrays = tuple(flat(table.column(c)) for c in self.group.columns)
        return read(arrays if len(arrays) > 1 else arrays[0], len(arrays))

    def windows_of_events(
        self,
        columns: Table,
        rows: Array | None,
        times: Array,
        bounds: Array,
        first: Array | None = None,
        last: Array | None = None,
    ) -> Windows:
        """The windows of groups of events, which are in order of time; `rows` says where in the
        columns each is, None that they are in that order as well; `first` and `last`, which
        windows of each group are wanted."""
        count = len(bounds) - 1
        first = np.full(count, _BEFORE) if first is None else first
        last = np.full(count, _AFTER) if last is None else last
        most = int(np.diff(bounds).max(initial=0))
        self._reserve(min(most, 2 * (self.window.size // self.window.every) + 4))
        core = self._core
        kept = [core.integers(a) for a in (times, bounds, first, last)]
        taken, handle = core.take(columns if rows is None else columns.take(rows))
        out = self._out(kept, first, last)
        try:
            made = core.run.windows_of_events(
                core.m, handle, *(h for _, h in kept), count, *out.handles
            )
        except OverflowError as error:
            at = core.get(MADE) - 1
            raise NoAnswer(str(error), core.get(GROUP), int(out.starts[at])) from error
        del taken, kept
        return self._windows(out, made, None)

    def windows_of_slices(
        self, partials: Any, slices: Array, bounds: Array, first: Array, last: Array
    ) -> Windows:
        """The windows from `first` to `last` of groups of slices; answers that do not exist are
        null."""
        self._reserve(int(np.diff(bounds).max(initial=0)) + 1)
        core = self._core
        kept = [core.integers(a) for a in (slices, bounds, first, last)]
        held, at = _partials_handle(core, partials)
        out = self._out(kept, first, last)
        header = core.header
        header[GROUP], header[SLICE], header[MADE] = 0, -1, 0
        lacking: list[int] = []
        made = -1
        while made < 0:
            try:
                made = core.run.windows_of_slices(
                    core.m, at, *(h for _, h in kept), len(first), *out.handles
                )
            except Exception:
                at_row = core.get(MADE) - 1
                if at_row < 0 or at_row in lacking:  # not an answer's
                    raise
                lacking.append(at_row)
        del held, kept
        return self._windows(out, made, lacking)

    def _out(self, kept: list[tuple[Any, Any]], first: Array, last: Array) -> _Out:
        """Room for the windows from `first` to `last` of groups of these times and bounds."""
        core, count = self._core, len(first)
        times, bounds = kept[0], kept[1]
        wanted = core.run.count_windows(core.m, times[1], bounds[1], count)
        asked = (last - first) // self.window.every + 1
        wanted = min(wanted, int(np.minimum(asked.clip(0), wanted).sum()))
        if self.changes:
            wanted = min(wanted, 2 * len(times[0]) + count)
        return _Out(core, wanted, count, changes=self.changes)

    def slices_of_events(
        self, columns: Table, rows: Array | None, times: Array, bounds: Array
    ) -> tuple[Array, Array, Any]:
        """The slices of groups of events: the group and start of each, and its partial."""
        core = self._core
        kept_times, at_times = core.integers(times)
        kept_bounds, at_bounds = core.integers(bounds)
        kept, handle = core.take(columns if rows is None else columns.take(rows))
        groups, at_groups = _empty(core, len(times))
        starts, at_starts = _empty(core, len(times))
        partials, at_partials = _empty_partials(core, len(times))
        made = core.run.slices_of_events(
            core.m,
            handle,
            at_times,
            at_bounds,
            len(bounds) - 1,
            at_groups,
            at_starts,
            at_partials,
        )
        del kept, kept_times, kept_bounds
        return np.asarray(groups[:made]), np.asarray(starts[:made]), partials[:made]

    def _windows(self, out: _Out, made: int, lacking: list[int] | None) -> Windows:
        """What was given; where answers may lack, those that cannot be had in their type do."""
        none = np.zeros(made, dtype=bool)
        none[lacking or []] = True
        values = self._values(out, made, None if lacking is None else none)
        return Windows(
            np.asarray(out.ends, dtype=np.int64),
            np.asarray(out.starts[:made], dtype=np.int64),
            np.asarray(out.fresh[:made], dtype=np.int64),
            values,
            none,
        )

    def _values(self, out: _Out, made: int, none: Array | None) -> dict[str, pa.Array]:
        """The answers by name, in the types the result has for them; `none` says which are null,
        and gets those that do not fit."""
        names, core = self.group.names, self._core
        values: dict[str, pa.Array] = {}
        failed: dict[int, str] = {}
        if isinstance(core, BufferCore) and core.layout.answers:
            columns = [
                (data[:made], None if valid is None else valid[:made])
                for data, valid in out.kept[0]
            ]
            for name, (_, answer) in zip(names, core.layout.answer.fields, strict=True):
                # a call takes its columns off the list
                found, wanted = answers_from_columns(answer, columns, "arrow"), self._types[name]
                if none is None:
                    values[name] = as_wanted(found, wanted)
                    continue
                if none.any():
                    found = pc.if_else(pa.array(none), pa.nulls(made, found.type), found)
                values[name] = typed_answers(found, wanted, failed)
        else:
            rows = out.kept[:made]
            if none is not None:
                nothing = (None,) * len(names)
                rows = [nothing if lacks else row for row, lacks in zip(rows, none, strict=True)]
            for i, (name, part) in enumerate(zip(names, self.group.operator.parts, strict=True)):
                items, wanted, fields = (
                    [r[i] for r in rows],
                    self._types[name],
                    part.operator.fields,
                )
                if none is None:
                    values[name] = from_objects(items, wanted, fields)
                else:
                    values[name] = object_answers(items, wanted, fields, failed)
        if none is not None:
            none[list(failed)] = True
        return values


class _Out:
    """Where a kernel writes windows."""

    def __init__(
        self, core: BufferCore | ObjectCore, rows: int, groups: int, *, changes: bool
    ) -> None:
        self.kept, at = core.outputs(rows)
        self.ends, at_ends = _empty(core, groups)
        self.starts, at_starts = _empty(core, rows)
        self.fresh, at_fresh = _empty(core, rows if changes else 0)
        self.handles = (at, at_ends, at_starts, at_fresh)


def _empty(core: BufferCore | ObjectCore, rows: int) -> tuple[Any, Any]:
    """Integers that a kernel writes, and their handle."""
    return core.integers(np.empty(rows, dtype=np.int64))


def _empty_partials(core: BufferCore | ObjectCore, rows: int) -> tuple[Any, Any]:
    if isinstance(core, ObjectCore):
        made: list[Any] = [None] * rows
        return made, made
    words, at = core.integers(np.empty(rows * core.width, dtype=np.int64))
    return words.reshape(rows, core.width), at


def _partials_handle(core: BufferCore | ObjectCore, partials: Any) -> tuple[Any, Any]:
    if isinstance(core, ObjectCore):
        return partials, partials
    return core.integers(partials.reshape(-1))


def arrow_type(answer: Answer) -> pa.DataType:
    """The Arrow type of compiled answers."""
    if answer.fields:
        return pa.struct([(name, arrow_type(a)) for name, a in answer.fields])
    if answer.type.startswith("vector"):
        _, kind, length = answer.type.split(":")
        item = {"i": pa.int64(), "u": pa.uint64(), "f": pa.float64()}[kind]
        return pa.list_(item, int(length))
    types = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
    return types.get(answer.type, pa.timestamp("us"))
