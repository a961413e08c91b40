"""The state of a stream for one group of aggregates, as seen from Python: a forest of slices."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregators.forest import RECORD, UNBOUNDED
from ..aggregators.nodes import COUNT, LEFT, RIGHT, ROOT, SLOTS, TOP
from ..aggregators.snapshot import describe
from ..aggregators.tree_window import TreeWindow, _arity_for, _Check
from ..kernels.columns import Array, Table, answers_from_columns, read
from ..kernels.core import BufferCore, ObjectCore, decoder, encoder, make_core
from ..kernels.slots import BUSY, CAPACITY, HEADER
from ..query.plan import Group
from ..windows import Sliding
from .answers import object_answers, typed_answers
from .closing import (
    AT,
    BEGUN,
    CALL,
    COVERED,
    EXPIRES,
    FIELDS,
    GONE,
    MADE,
    NEXT,
    ROWS,
    VISIT,
    WANTED,
    closing_kernel,
)
from .tables import flat

__all__ = ["Forest", "Given", "Slices"]


@dataclass
class Slices:
    """Slices of some keys: their starts and partials, and where those of each key begin, with the
    end of the last."""

    starts: Any
    partials: Any
    bounds: Array

    def among(self, places: Array, count: int) -> Slices:
        """The same slices, with bounds for all of `count` keys; theirs have these places, in
        order."""
        many = np.zeros(count + 1, dtype=np.int64)
        many[places + 1] = np.diff(self.bounds)
        return Slices(self.starts, self.partials, np.cumsum(many))


@dataclass
class Given:
    """Windows that were given: the key's number and the start of each, its mark, its answers by
    name; rows without an answer, and why; numbers of keys that left."""

    keys: Array
    starts: Array
    marks: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]
    gone: Array


class Forest:
    """The slices of all keys for one group of aggregates, a tree for each key."""

    def __init__(self, group: Group, window: Sliding, types: dict[str, Any]) -> None:
        self.group = group
        self._types = types
        arity = _arity_for(group.operator)
        self._entries = 2 * arity
        core = make_core(closing_kernel(arity), group.operator, HEADER)
        self._core: BufferCore | ObjectCore = core
        leaf = 2 + self._entries + core.width * (self._entries + 2)
        self._reserve = 33 * (leaf + (1 + core.width) * (self._entries + 1))
        first = HEADER + SLOTS * core.width
        core.resize(first + 2 * self._reserve, [])
        core.header[TOP] = first
        for name, value in zip(
            FIELDS, (window.size, window.every, window.offset, window.rest), strict=True
        ):
            core.header[FIELDS[name]] = value
        self._call, self._at_call = core.integers(np.zeros(CALL, dtype=np.int64))
        self._records, self._at_records = core.integers(np.zeros(0, dtype=np.int64))
        self._rows = 1024
        self._stalled = ""  # why it cannot be used any more

    @property
    def whole(self) -> bool:
        """Whether events of a slice can be combined as they arrive; else their times matter."""
        return self.group.operator.commutative

    def columns(self, table: pa.Table) -> Table:
        """The columns this group reads."""
        arrays = tuple(flat(table.column(c)) for c in self.group.columns)
        return read(arrays if len(arrays) > 1 else arrays[0], len(arrays))

    def cut(self, columns: Table, rows: Array | None, times: Array, bounds: Array) -> Slices:
        """The slices of groups of events, which are in order of time; `rows` says where in the
        columns they are, None that they are in that order as well.  Changes nothing."""
        core, count = self._core, len(bounds) - 1
        kept = [core.integers(a) for a in (times, bounds)]
        held, handle = core.take(columns if rows is None else columns.take(rows))
        starts, at_starts = core.integers(np.empty(len(times), dtype=np.int64))
        ends, at_ends = core.integers(np.empty(count + 1, dtype=np.int64))
        partials, at_partials = self._empty_partials(len(times))
        core.run.cut(
            core.m,
            handle,
            *(h for _, h in kept),
            count,
            int(self.whole),
            at_starts,
            at_partials,
            at_ends,
        )
        del kept, held
        return Slices(starts, partials, np.asarray(ends, dtype=np.int64))

    def _empty_partials(self, rows: int) -> tuple[Any, Any]:
        core = self._core
        if isinstance(core, ObjectCore):
            made: list[Any] = [None] * rows
            return made, made
        return core.integers(np.empty(rows * core.width, dtype=np.int64))

    def make_room(self, numbers: int) -> None:
        """Records for keys up to this number."""
        have = len(self._records) // RECORD
        if numbers <= have:
            return
        made = np.zeros((max(numbers, 2 * have, 16), RECORD), dtype=np.int64)
        made[:have] = np.asarray(self._records, dtype=np.int64).reshape(-1, RECORD)
        made[have:] = _fresh_record()
        self._records, self._at_records = self._core.integers(made.reshape(-1))

    def renumber(self, kept: Array) -> None:
        """Number the keys anew: old numbers by new ones."""
        records = np.asarray(self._records, dtype=np.int64).reshape(-1, RECORD)
        self._records, self._at_records = self._core.integers(records[kept].reshape(-1))

    def step(self, asked: list[int], visits: Array, slices: Slices | None) -> Given:
        """Insert slices, give windows, evict; see `closing`."""
        core, call = self._core, self._call
        call[: len(asked)] = np.array(asked) if isinstance(call, np.ndarray) else asked
        call[VISIT] = call[BEGUN] = call[MADE] = call[GONE] = call[WANTED] = 0
        none = np.zeros(len(visits) + 1, dtype=np.int64)
        bounds = none if slices is None else slices.bounds
        kept = [core.integers(visits), core.integers(bounds)]
        gone, at_gone = core.integers(np.empty(len(visits), dtype=np.int64))
        at_starts, at_partials = self._handles(slices)
        out = _Out(core, self._rows)
        failed: dict[int, str] = {}
        done = 0
        before: tuple[Any, ...] = ()
        while not done:
            if core.get(CAPACITY) - core.get(TOP) < self._reserve:
                core.resize(max(2 * core.get(CAPACITY), core.get(TOP) + 2 * self._reserve), [])
            if call[MADE] + call[WANTED] >= out.rows:
                out.grow(max(2 * out.rows, int(call[MADE] + 2 * call[WANTED])))
                call[WANTED] = 0
            call[ROWS] = out.rows
            now = (*map(int, call), int(core.get(CAPACITY)))
            self._check_progress(before, now)
            before = now
            try:
                done = core.run.step(
                    core.m,
                    self._at_call,
                    self._at_records,
                    kept[0][1],
                    len(visits),
                    kept[1][1],
                    at_starts,
                    at_partials,
                    *out.handles,
                    at_gone,
                )
            except Exception as error:  # an answer that does not exist: it is left out
                if core.header[BUSY]:
                    core.give_up_if_unsound()
                    raise
                failed[int(call[AT])] = str(error)
        made = int(call[MADE])
        self._rows = max(1024, made + made // 4)
        return Given(
            np.asarray(out.keys[:made], dtype=np.int64),
            np.asarray(out.windows[:made], dtype=np.int64),
            np.asarray(out.marks[:made], dtype=np.int64),
            self._values(out, made, failed),
            failed,
            np.asarray(gone[: int(call[GONE])], dtype=np.int64),
        )

    def _check_progress(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> None:
        """Raise if a call of the kernel changed nothing, since the next call would not either."""
        if now == before:
            self._stalled = (
                "internal error of sash: a stream's kernel made no progress, and the stream cannot "
                "be used any more; restore it from a snapshot, and please report the query, the "
                f"batch if you can, and this: group {self.group.names}, call {list(now[:-1])}, "
                f"capacity {now[-1]}, top {self._core.get(TOP)}, reserve {self._reserve}"
            )
        if self._stalled:
            raise RuntimeError(self._stalled)

    def _handles(self, slices: Slices | None) -> tuple[Any, Any]:
        if isinstance(self._core, ObjectCore):
            return ([], []) if slices is None else (slices.starts, slices.partials)
        if slices is None:
            return 0, 0
        return slices.starts.ctypes.data, slices.partials.ctypes.data

    def _values(self, out: _Out, made: int, failed: dict[int, str]) -> dict[str, pa.Array]:
        """The answers by name, in the types the result has for them.  In rows that failed they are
        null, and rows with an answer that does not fit are then among those."""
        misfits: dict[int, str] = {}
        names, core = self.group.names, self._core
        if isinstance(core, BufferCore) and core.layout.answers:
            columns = [
                (data[:made], None if valid is None else valid[:made])
                for data, valid in out.kept[0]
            ]
            values = {
                name: typed_answers(
                    answers_from_columns(a, columns, "arrow"), self._types[name], misfits
                )
                for name, (_, a) in zip(names, core.layout.answer.fields, strict=True)
            }
        else:
            rows, empty = out.kept[:made], (None,) * len(names)
            for row in failed:
                rows[row] = empty
            values = {
                name: object_answers(
                    [r[i] for r in rows], self._types[name], part.operator.fields, misfits
                )
                for i, (name, part) in enumerate(zip(names, self.group.operator.parts, strict=True))
            }
        if failed:
            there = np.ones(made, dtype=bool)
            there[list(failed)] = False
            values = {n: pc.if_else(pa.array(there), v, None) for n, v in values.items()}
        failed |= misfits
        return values

    def no_values(self) -> dict[str, pa.Array]:
        """Answers by name without any row."""
        return self._values(_Out(self._core, 0), 0, {})

    def ask(self, number: int | None, lo: int, hi: int) -> dict[str, Any]:
        """The answers over a range of a key's times, both ends in; None stands for a key that is
        not there."""
        core = self._core
        if number is not None and self._records[RECORD * number]:
            out = _Out(core, 1)
            core.run.ask(core.m, self._at_records, number, out.handles[0], lo, hi)
            values = self._values(out, 1, {})
            return {name: value[0].as_py() for name, value in values.items()}
        empty = self.group.operator.python_lower()(self.group.operator.identity)
        parts = zip(self.group.names, self.group.operator.parts, empty, strict=True)
        return {
            name: object_answers([x], self._types[name], part.operator.fields, {})[0].as_py()
            for name, part, x in parts
        }

    def slices(self) -> int:
        """How many slices there are."""
        return int(np.asarray(self._records, dtype=np.int64)[3::RECORD].sum())

    def size(self) -> int:
        """How many bytes the slices take, with the nodes that are free."""
        return 8 * (int(self._core.get(TOP)) + len(self._records))

    def describe(self) -> list[str]:
        """Which operator, types, partials and arity this is."""
        return [*describe(self, self._core), str(self._entries // 2)]

    def dump(self) -> list[bytes]:
        """Records and memory as bytes; objects as the operator encodes them."""
        core = self._core
        records = np.asarray(self._records, dtype="<i8")
        if isinstance(core, BufferCore):
            return [records.tobytes(), core.buffer[: core.get(TOP)].tobytes()]
        encode, parts = encoder(core.operator), []
        for number, tree in self._trees():
            for t, partial in tree:
                raw = encode(partial)
                parts.append(struct.pack("<qqQ", number, t, len(raw)) + raw)
        return [records.tobytes(), b"".join(parts)]

    def restore(self, records: bytes, memory: bytes) -> None:
        """Have again what `dump` gave."""
        core = self._core
        told = np.frombuffer(records, dtype="<i8").copy()
        if isinstance(core, BufferCore):
            words = np.frombuffer(memory, dtype="<i8")
            core.resize(len(words) + 2 * self._reserve, [])
            core.buffer[1 : len(words)] = words[1:]
            self._records, self._at_records = core.integers(told)
            return
        decode, at = decoder(core.operator), 0
        numbers, times, partials = [], [], []
        while at < len(memory):
            number, t, size = struct.unpack_from("<qqQ", memory, at)
            at += 24 + size
            numbers.append(number)
            times.append(t)
            partials.append(decode(memory[at - size : at]))
        self.make_room(len(told) // RECORD)
        visits, many = np.unique(np.array(numbers, dtype=np.int64), return_counts=True)
        bounds = np.append(0, np.cumsum(many))
        nothing = [-UNBOUNDED, -UNBOUNDED, -UNBOUNDED, -UNBOUNDED, 0, 0, 0]
        self.step(nothing, visits, Slices(times, partials, bounds))
        for i in range(NEXT, len(told), RECORD):
            self._records[i : i + RECORD - NEXT] = told[i : i + RECORD - NEXT].tolist()

    def _trees(self) -> Iterator[tuple[int, Iterator[tuple[int, Any]]]]:
        """Each key's number, and the times and partials in its tree, which is put at hand."""
        tree, header = _Tree(self), self._core.header
        for number in range(len(self._records) // RECORD):
            root, left, right, count = self._records[RECORD * number : RECORD * number + 4]
            if root:
                header[ROOT], header[LEFT], header[RIGHT], header[COUNT] = root, left, right, count
                yield number, tree._partials()

    def _check(self) -> None:
        """Raise AssertionError if a tree is not sound, or a node is lost."""
        check = _Check(_Tree(self))
        get = self._core.get
        for _, entries in self._trees():
            check.depths.clear()
            check.node(get(ROOT), -(2**63) - 1, 2**63, left=True, right=True)
            held = [t for t, _ in entries]
            assert held == sorted(set(held)), "times are out of order"
            assert len(held) == get(COUNT) > 0, "the count is wrong"
            assert check.fingers == [get(LEFT), get(RIGHT)], "a finger points elsewhere"
        check.free_lists()


class _Tree(TreeWindow):
    """The tree at hand as a window, to be checked."""

    _fingers = 1

    def __init__(self, forest: Forest) -> None:
        self._core, self._entries = forest._core, forest._entries


def _fresh_record() -> list[int]:
    """The record of a key that is not there yet."""
    made = [0] * RECORD
    made[NEXT] = made[EXPIRES] = UNBOUNDED
    made[COVERED] = -UNBOUNDED
    return made


class _Out:
    """Where a kernel writes windows."""

    def __init__(self, core: BufferCore | ObjectCore, rows: int) -> None:
        self._core, self.rows = core, rows
        self.kept, at = core.outputs(rows)
        self.keys, at_keys = core.integers(np.empty(rows, dtype=np.int64))
        self.windows, at_windows = core.integers(np.empty(rows, dtype=np.int64))
        self.marks, at_marks = core.integers(np.empty(rows, dtype=np.int64))
        self.handles = (at, at_keys, at_windows, at_marks)

    def grow(self, rows: int) -> None:
        """Room for more rows, with all that is there at its place."""
        old = _Out.__new__(_Out)
        old.__dict__.update(self.__dict__)
        self.__init__(self._core, rows)  # type: ignore[misc]
        for name in ("keys", "windows", "marks"):
            getattr(self, name)[: old.rows] = getattr(old, name)
        if isinstance(self.kept, list):
            self.kept[: old.rows] = old.kept
            return
        for (data, valid), (from_data, from_valid) in zip(self.kept[0], old.kept[0], strict=True):
            data[: old.rows] = from_data
            if valid is not None:
                valid[: old.rows] = from_valid
