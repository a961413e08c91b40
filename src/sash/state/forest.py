"""The slices of all keys in memory, for one group of aggregates: the Python side of a forest."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from ..aggregators.forest import RECORD, UNBOUNDED
from ..aggregators.guard import raised_by_operator
from ..aggregators.nodes import COUNT, LEFT, RIGHT, ROOT, SLOTS, TOP
from ..aggregators.snapshot import describe
from ..aggregators.tree_check import TreeCheck
from ..aggregators.tree_window import TreeWindow
from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, decoder, encoder, make_core
from ..kernels.program import Kernel
from ..kernels.slots import BUSY, CAPACITY, HEADER
from ..query.plan import Group
from ..slicing.cut import cut_events
from ..slicing.slices import specify
from ..tables.answers import object_answers, warn_of
from ..windows import Aligned
from .answers import Apart, Sources, answers_apart, answers_over, columns_of
from .contract import Step
from .forest_fields import (
    AT,
    BEGUN,
    CALL,
    COVERED,
    EXPIRES,
    FIELDS,
    GONE,
    MADE,
    NEXT,
    NOW,
    PART,
    ROWS,
    SLOT,
    VISIT,
    WANTED,
)
from .forest_kernel import forest_kernel
from .forest_out import Out
from .forest_slots import slots_of
from .labels import Borrowed, Labels, Partials, Values
from .numbered import Numbered
from .range_answers import Found, Inserted, Ranges
from .tree_size import FEWEST, leaf_entries, node_words

__all__ = ["Answered", "AnsweredRanges", "CombineRaised", "Forest", "memories_of"]

#: Windows hold times of less than 2^60, and are not longer: they lie between these times.
_FAR = 2**61


class CombineRaised(Exception):
    """An operator's `combine` raised an error for the key and the window with these numbers."""

    def __init__(self, key: int, window: int) -> None:
        super().__init__(key, window)
        self.key, self.window = key, window


@dataclass
class Answered:
    """The windows that a step answered.  Each row has the numbers of its key and window, the reason
    why it is emitted, its answers by name and, if the query emits changes only, the last window
    with the same slices.  `failed` says why rows lack answers; `gone` has the numbers of the keys
    that hold no slices any more."""

    keys: Array
    windows: Array
    reasons: Array
    covered: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]
    gone: Array


#: Of ranges, those whose answers do not exist; and the numbers of keys that hold nothing any more.
AnsweredRanges: TypeAlias = tuple[dict[int, Apart], Array]


class Forest:
    """The slices of all keys for one group of aggregates, a tree for each key."""

    part = 0  # the number of this forest's memory, if there are several
    _fields: ClassVar[int] = CALL  # the number of a call's fields
    _columns: ClassVar[tuple[str, ...]] = ("keys", "windows", "reasons", "covered")  # of a row

    def __init__(self, group: Group, window: Aligned, types: dict[str, Any]) -> None:
        self.group = group
        self._types = types
        self._windows = window.first(-_FAR), window.first(_FAR)
        self._entries = leaf_entries(group.operator)
        core = make_core(self._kernel_of(self._entries // 2), group.operator, HEADER)
        self._core: BufferCore | ObjectCore = core
        self._reserve = 33 * node_words(self._entries, core.width)[1]
        first = HEADER + SLOTS * core.width
        core.lay_out(first + 2 * self._reserve)
        core.hasten()  # a stream's calls have many rows
        core.header[TOP] = first
        specify(core.header, window, FIELDS)
        self._call, self._at_call = core.integers(np.zeros(self._fields, dtype=np.int64))
        self._records, self._at_records = core.integers(np.zeros(0, dtype=np.int64))
        self._out = Out(core, self._columns)
        self._rows = 0  # an estimate of the rows of the next step
        self._plain = _plain_answers(core, group, types)
        self._labels: Labels | Borrowed | None = Labels(group) if group.labelled else None
        self.swept = 0  # how often labels were given anew
        # the slots of a new partial, and of a part of an answer, are free before a step
        self._spare = HEADER + core.width, HEADER + 3 * core.width

    def __deepcopy__(self, memo: Any) -> Forest:
        """A copy with a memory of its own."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._core = core = copy.copy(self._core)
        made._out = Out(core, self._columns)
        made._labels = copy.deepcopy(self._labels, memo)
        made._call, made._at_call = core.integers(np.array(self._call, dtype=np.int64))
        made._records, made._at_records = core.integers(np.array(self._records, dtype=np.int64))
        return made

    def _kernel_of(self, arity: int) -> Kernel:
        return forest_kernel(arity)

    def cut(
        self, table: pa.Table, rows: Array | None, times: Array, bounds: Array, *, whole: bool
    ) -> tuple[Array, Any, Array]:
        """Cut groups of rows into slices or, unless `whole`, into distinct times; see
        `slicing.cut.cut_events`.  The slices in the forest stay as they are."""
        known = None if self._labels is None else self._labels.calm()
        columns, values = columns_of(self.group, table, known)
        given = columns, rows, times, bounds
        starts, partials, ends = cut_events(self._core, *given, whole=whole, slots=self._spare)
        if self.group.labelled:
            partials = Numbered(partials, values)
        return starts, partials, ends

    def _to_insert(self, partials: Any) -> Any:
        """The partials of a batch in the form that the kernel takes: one array, with labels for
        values."""
        if isinstance(partials, Numbered):
            assert self._labels is not None
            partials = self._labels.insert(partials, self._sweep)
        return partials if isinstance(self._core, ObjectCore) else partials.reshape(-1)

    def borrow(self) -> None:
        """Take all partials with values of their own: the forest lasts for one step."""
        if self._labels is not None:
            self._labels = Borrowed(self.group)

    def _sweep(self, more: Values | None = None) -> None:
        """Drop the values that no slice holds any more, and give the others new labels, with room
        for `more` values."""
        if isinstance(self._labels, Labels):
            self.swept += 1
            self._labels.sweep(self._swept(), more)

    def _swept(self) -> list[Partials]:
        """Where all partials are."""
        records, core = self._records, self._core
        assert isinstance(core, BufferCore)
        own = (records[::RECORD] > 0) & (records[PART::RECORD] == self.part)
        roots = records[::RECORD][own]
        return [(core.buffer, *slots_of(core.buffer, roots, self._entries, core.width))]

    def let_go(self) -> None:
        """Sweep, if there are many more values than after the last sweep."""
        if self._labels is not None and self._labels.grown():
            self._sweep()

    @property
    def sources(self) -> Sources | None:
        """The values of the columns that the kernel reads as numbers."""
        return None if self._labels is None else self._labels.sources

    def make_room(self, numbers: int) -> None:
        """Make records for keys with numbers below this."""
        have = len(self._records) // RECORD
        if numbers <= have:
            return
        made = np.zeros((max(numbers, 2 * have, FEWEST), RECORD), dtype=np.int64)
        made[:have] = np.asarray(self._records, dtype=np.int64).reshape(-1, RECORD)
        made[have:] = _fresh_record()
        self._records, self._at_records = self._core.integers(made.reshape(-1))

    def renumber(self, kept: Array) -> None:
        """Renumber the keys; `kept` has the old number of each new number."""
        records = np.asarray(self._records, dtype=np.int64).reshape(-1, RECORD)
        self._records, self._at_records = self._core.integers(records[kept].reshape(-1))

    def step(
        self,
        step: Step,
        visits: Array,
        spans: tuple[Array, Array],
        starts: Array,
        partials: Any,
        threads: int = 1,
    ) -> Answered:
        """Insert slices, answer windows, evict.  `visits` has the numbers of the keys to visit; the
        slices of key visits[v] are those from spans[0][v] up to spans[1][v].  A forest in one
        memory uses one thread only."""
        found = self._step(step, visits, spans, starts, self._to_insert(partials), [self])
        self.let_go()
        return found

    def _step(
        self,
        step: Step,
        visits: Array,
        spans: tuple[Array, Array],
        starts: Array,
        inserted: Any,
        parts: Sequence[Forest],
    ) -> Answered:
        """Do a step for keys whose trees are in the memories of these parts."""
        core, call = self._core, self._call
        low, high = self._windows
        numbers = [min(max(n, low), high) for n in (step.opened, step.fresh, step.due, step.keep)]
        asked = [*numbers, int(step.again), int(step.early), int(step.changes)]
        call[: len(asked)] = np.array(asked) if isinstance(call, np.ndarray) else asked
        call[VISIT] = call[BEGUN] = call[MADE] = call[GONE] = call[WANTED] = 0
        call[AT] = -1
        kept = [core.integers(a) for a in (visits, *spans, starts)]
        at_visits, *at_slices = (handle for _, handle in kept)
        held = at_partials = inserted
        if isinstance(core, BufferCore):
            held, at_partials = core.integers(inserted)
        gone, at_gone = core.integers(np.empty(len(visits), dtype=np.int64))
        out = self._out
        out.begin(self._rows, changes=step.changes)

        def run() -> int:
            if call[MADE] + call[WANTED] >= out.rows:
                out.grow(max(2 * out.rows, int(call[MADE] + 2 * call[WANTED])))
                call[WANTED] = 0
            call[ROWS] = out.rows
            memories, at_memories = memories_of(parts)
            given = at_memories, at_visits, len(visits), *at_slices, at_partials
            done: int = core.run.step(
                core.m, self._at_call, self._at_records, *given, *out.handles, at_gone
            )
            del memories
            return done

        with ExitStack() as calls:
            for part in parts:
                calls.enter_context(part._core.call(len(starts)))
            apart = self._completed(run, visits, parts)
        del held  # the kernel does not read it any more
        made = int(call[MADE])
        self._rows = made + made // 4
        values, failed = self._answers(out.kept, made, apart)
        out.end()
        left = np.asarray(gone[: int(call[GONE])], dtype=np.int64)
        return Answered(**out.read(made), values=values, failed=failed, gone=left)

    def ranges(
        self, visits: Array, inserted: Inserted, asked: Ranges, edges: Array, threads: int = 1
    ) -> Found:
        """Insert entries and answer ranges of them, then forget what is before each key's edge; see
        `range_kernel.ranges`.  A forest in one memory needs no more than one thread."""
        kept, outputs = self._core.outputs(len(asked.lows))
        given = replace(inserted, partials=self._to_insert(inserted.partials))
        answered = self._ranges(visits, given, asked, edges, outputs, [self])
        return self._found(kept, asked, [answered])

    def _ranges(
        self,
        visits: Array,
        inserted: Inserted,
        asked: Ranges,
        edges: Array,
        outputs: Any,
        parts: Sequence[Forest],
        at: Array | None = None,
    ) -> AnsweredRanges:
        """The same for some of the keys to visit, whose trees are in the memories of some parts;
        answers go where the kernel's outputs are."""
        core, call = self._core, self._call
        call[VISIT] = call[BEGUN] = call[GONE] = 0
        call[AT] = -1
        own = [inserted.bounds[:-1], inserted.bounds[1:], asked.bounds[:-1], asked.bounds[1:]]
        if at is not None:
            visits, edges, own = visits[at], edges[at], [bounds[at] for bounds in own]
        given = (visits, *own, edges, inserted.numbers, asked.lows, asked.highs)
        ints = [core.integers(a) for a in (*given, *(asked.holes or ()))]
        at_visits, *at_bounds, at_edges, at_numbers, at_lows, at_highs = (h for _, h in ints[:9])
        at_holes = [h for _, h in ints[9:]] or [at_lows, at_lows]
        held = at_partials = inserted.partials
        if isinstance(core, BufferCore):
            held, at_partials = core.integers(held)
        gone, at_gone = core.integers(np.empty(len(visits), dtype=np.int64))

        def run() -> int:
            memories, at_memories = memories_of(parts)
            entered = at_visits, len(visits), *at_bounds[:2], at_numbers, at_partials
            asking = *at_bounds[2:], at_lows, at_highs, int(asked.holes is not None), *at_holes
            then = at_edges, int(asked.merges), asked.each, outputs, at_gone
            done: int = core.run.ranges(
                core.m, self._at_call, self._at_records, at_memories, *entered, *asking, *then
            )
            del memories
            return done

        with ExitStack() as calls:
            for part in parts:
                calls.enter_context(part._core.call(len(inserted.numbers)))
            apart = self._completed(run, visits, parts)
        del held  # the kernel needs it no more
        return apart, np.asarray(gone[: int(call[GONE])], dtype=np.int64)

    def _found(self, kept: Any, asked: Ranges, answered: Sequence[AnsweredRanges]) -> Found:
        """The answers of ranges, out of a core's outputs."""
        apart = {row: one for some, _ in answered for row, one in some.items()}
        values, failed = self._answers(kept, len(asked.lows) // asked.each, apart)
        self.let_go()
        return Found(values, failed, np.concatenate([gone for _, gone in answered]))

    def _completed(
        self, run: Callable[[], int], visits: Array, parts: Sequence[Forest] = ()
    ) -> dict[int, Apart]:
        """Call a function of the kernel until it is done, and make room in memory before each call.
        `parts` are the forests whose memories the kernel works on, if not only this one's.  Returns
        the answers of the rows in which an answer does not exist, by row."""
        call = self._call
        apart: dict[int, Apart] = {}
        done = 0
        before: tuple[Any, ...] = ()
        while not done:
            capacity = sum(part._with_room() for part in parts or (self,))
            now = (*map(int, call), capacity, len(apart))
            self._check_progress(before, now)
            before = now
            try:
                done = run()
            except Exception as error:
                at = int(call[VISIT])
                key = int(visits[at]) if at < len(visits) else 0
                core = self._core_of(key)
                if not raised_by_operator(core, error):
                    raise
                row = int(call[AT])
                if core.header[BUSY] or row < 0 or row in apart:
                    core.give_up_if_unsound()
                    raise CombineRaised(key, int(call[NOW])) from error
                # this answer does not exist: lower the row's aggregates one by one
                apart[row] = answers_apart(core, self.group, int(call[SLOT]))
        return apart

    def _core_of(self, number: int) -> BufferCore | ObjectCore:
        """The core whose memory holds a key's tree."""
        return self._core

    def _with_room(self) -> int:
        """Make room for the nodes that the kernel may need next, and return the capacity."""
        core = self._core
        if core.get(CAPACITY) - core.get(TOP) < self._reserve:
            core.resize(max(2 * core.get(CAPACITY), core.get(TOP) + 2 * self._reserve), [])
        return int(core.get(CAPACITY))

    def _check_progress(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> None:
        """Raise an error if a call of the kernel changed nothing: the next call would not
        either."""
        if now == before:
            raise RuntimeError(
                "internal error of sash: a stream's kernel made no progress, and the stream cannot "
                "be used any more; restore it from a snapshot, and please report the query, the "
                f"batch if you can, and this: group {self.group.names}, call {list(now[:-2])}, "
                f"capacity {now[-2]}, top {self._core.get(TOP)}, reserve {self._reserve}"
            )

    def _answers(
        self, kept: Any, rows: int, apart: dict[int, Apart]
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """The first rows of the kernel's outputs as answers by name, and why rows lack answers."""
        given = self._core, self.group, self._types
        return answers_over(*given, kept, rows, apart, self.sources)

    def no_values(self) -> dict[str, pa.Array]:
        """The columns of answers by name, without rows."""
        kept, _ = self._core.outputs(0)
        return self._answers(kept, 0, {})[0]

    def partial(self, number: int | None, lo: int, hi: int) -> Any:
        """The partial over a range of a key's times, both ends inclusive."""
        if number is None or not self._records[RECORD * number]:
            return self.group.operator.identity
        core = self._core_of(number)
        _, at = core.outputs(1)
        try:
            core.run.ask(core.m, self._at_call, self._at_records, number, at, lo, hi)
        except Exception:
            if self._call[AT] < 0:  # else only the answer does not exist, and the partial does
                raise
        return core.peek(int(self._call[SLOT]))

    def of_rows(self, table: pa.Table, rows: Array | None) -> Any:
        """The partial of all rows of a table, combined in the order `rows`."""
        core, count = self._core, table.num_rows
        at = np.zeros(count, np.int64), np.array([0, count])
        partials = self._to_insert(self.cut(table, rows, *at, whole=False)[1])
        if isinstance(core, ObjectCore):
            return partials[0]
        slot = HEADER + core.width  # of a new partial
        core.buffer[slot : slot + core.width] = partials
        return core.peek(slot)

    def ask(self, number: int | None, lo: int, hi: int) -> dict[str, Any]:
        """The answers over a range of a key's times, both ends inclusive.  The number is None if
        the state does not hold the key."""
        if number is not None and self._records[RECORD * number]:
            core = self._core_of(number)
            if self._plain:
                with suppress(Exception):  # if an answer does not exist, compute the others below
                    at = core.answer
                    core.run.ask(core.m, self._at_call, self._at_records, number, at, lo, hi)
                    return dict(zip(self.group.names, core.read(), strict=True))
            kept, at = core.outputs(1)
            apart: dict[int, Apart] = {}
            try:
                core.run.ask(core.m, self._at_call, self._at_records, number, at, lo, hi)
            except Exception:
                if self._call[AT] < 0:
                    raise
                apart[0] = answers_apart(core, self.group, int(self._call[SLOT]))
            values, failed = self._answers(kept, 1, apart)
            warn_of(failed)
            return {name: value[0].as_py() for name, value in values.items()}
        empty = self.group.operator.python_lower()(self.group.operator.identity)
        parts = zip(self.group.names, self.group.operator.parts, empty, strict=True)
        return {
            name: object_answers([x], self._types[name], part.operator.fields, {})[0].as_py()
            for name, part, x in parts
        }

    def oldest_of(self, numbers: Array) -> Array:
        """The lowest number of an entry that `ranges` ever inserted, for each of these keys."""
        return self._noted(numbers, NEXT)

    def expires(self, numbers: Array) -> Array:
        """The largest edge at which `ranges` has nothing to evict or merge, for each of these
        keys."""
        return self._noted(numbers, EXPIRES)

    def _noted(self, numbers: Array, field: int) -> Array:
        if isinstance(self._records, list):
            return np.array([self._records[RECORD * n + field] for n in numbers.tolist()], np.int64)
        found: Array = self._records[RECORD * numbers + field]
        return found

    def holds(self, numbers: Array) -> Array:
        """True for each key that holds slices."""
        counts: Array = np.asarray(self._records, dtype=np.int64)[3::RECORD]
        return counts[numbers] > 0

    def held(self) -> list[tuple[int, int]]:
        """The number of each key that holds slices, and its count of slices."""
        counts = np.asarray(self._records, dtype=np.int64)[3::RECORD]
        keys = np.flatnonzero(counts)
        return list(zip(keys.tolist(), counts[keys].tolist(), strict=True))

    def slices(self) -> int:
        """The number of slices."""
        return int(np.asarray(self._records, dtype=np.int64)[3::RECORD].sum())

    def size(self) -> int:
        """The bytes that the slices take, including free nodes."""
        values = 0 if self._labels is None else self._labels.nbytes
        return 8 * (int(self._core.get(TOP)) + len(self._records)) + values

    def describe(self) -> list[str]:
        """The operator, types, partials and arity, as text."""
        return [*describe(self, self._core), str(self._entries // 2)]

    def dump(self) -> list[bytes]:
        """Records, memory and the values of labels as bytes; objects as the operator encodes
        them."""
        core = self._core
        self._sweep()
        labelled = self._labels.dump() if isinstance(self._labels, Labels) else b""
        records = np.asarray(self._records, dtype="<i8")
        if isinstance(core, BufferCore):
            return [records.tobytes(), core.buffer[: core.get(TOP)].tobytes(), labelled]
        encode, parts = encoder(core.operator), []
        for number, tree in self.trees():
            for t, partial in tree._partials():
                raw = encode(partial)
                parts.append(struct.pack("<qqQ", number, t, len(raw)) + raw)
        return [records.tobytes(), b"".join(parts), labelled]

    def load(self, records: bytes, memory: bytes, labelled: bytes) -> None:
        """Restore what `dump` returned."""
        core = self._core
        if isinstance(self._labels, Labels):
            self._labels.load(labelled)
        saved = np.frombuffer(records, dtype="<i8").copy()
        if isinstance(core, BufferCore):
            self._load_memory(np.frombuffer(memory, dtype="<i8"))
            self._records, self._at_records = core.integers(saved)
            return
        decode, at = decoder(core.operator), 0
        numbers, times, partials = [], [], []
        while at < len(memory):
            number, t, size = struct.unpack_from("<qqQ", memory, at)
            at += 24 + size
            numbers.append(number)
            times.append(t)
            partials.append(decode(memory[at - size : at]))
        self.make_room(len(saved) // RECORD)
        self.plant(np.array(numbers, dtype=np.int64), np.array(times, dtype=np.int64), partials)
        for i in range(NEXT, len(saved), RECORD):
            self._records[i : i + RECORD - NEXT] = saved[i : i + RECORD - NEXT].tolist()

    def plant(self, numbers: Array, times: Array, partials: Any) -> None:
        """Insert slices of keys with these numbers, in order of number and time."""
        visits, many = np.unique(numbers, return_counts=True)
        self._plant(visits, np.append(0, np.cumsum(many)), times, partials)

    def _load_memory(self, words: Array) -> None:
        """Restore the words of a memory."""
        core = self._core
        assert isinstance(core, BufferCore)
        core.resize(len(words) + 2 * self._reserve, [])
        core.buffer[1 : len(words)] = words[1:]

    def _plant(self, visits: Array, bounds: Array, starts: Array, partials: Any) -> None:
        """Insert slices, and do nothing else."""
        low = self._windows[0]
        nothing = Step(opened=low, fresh=low, due=low, keep=low)
        self.step(nothing, visits, (bounds[:-1], bounds[1:]), starts, partials)

    def trees(self) -> Iterator[tuple[int, _Tree]]:
        """For each key with a tree in this memory, load the tree into the header, and yield the
        key's number and the tree."""
        tree, header = _Tree(self), self._core.header
        for number in range(len(self._records) // RECORD):
            root, left, right, count = self._records[RECORD * number : RECORD * number + 4]
            if root and self._records[RECORD * number + PART] == self.part:
                header[ROOT], header[LEFT], header[RIGHT], header[COUNT] = root, left, right, count
                yield number, tree

    def _check(self) -> None:
        """Raise AssertionError if a tree is not sound, or a node is lost."""
        check = TreeCheck(_Tree(self))
        get = self._core.get
        for _, tree in self.trees():
            check.depths.clear()
            check.node(get(ROOT), -(2**63) - 1, 2**63, left=True, right=True)
            held = [t for t, _ in tree._slots()]
            assert held == sorted(set(held)), "times are out of order"
            assert len(held) == get(COUNT) > 0, "the count is wrong"
            assert check.fingers == [get(LEFT), get(RIGHT)], "a finger points elsewhere"
        check.free_lists()


class _Tree(TreeWindow):
    """The tree in the header as a window."""

    _fingers = 1

    def __init__(self, forest: Forest) -> None:
        self._core, self._entries = forest._core, forest._entries


def memories_of(parts: Sequence[Forest]) -> tuple[Any, Any]:
    """Where the memory of each part is, by its number, for the kernel."""
    core = parts[-1]._core
    if isinstance(core, ObjectCore):
        return [core.m], [core.m]
    made = [0] * (parts[-1].part + 1)
    for one in parts:
        made[one.part] = one._core.m  # type: ignore[assignment]
    return core.integers(np.array(made))


def _fresh_record() -> list[int]:
    """The record of a key that has had no slices yet."""
    made = [0] * RECORD
    made[NEXT] = made[EXPIRES] = UNBOUNDED
    made[COVERED] = -UNBOUNDED
    return made


def _plain_answers(core: BufferCore | ObjectCore, group: Group, types: dict[str, Any]) -> bool:
    """True if the kernel computes all answers as numbers of the result's types."""
    if not isinstance(core, BufferCore) or not core.layout.answers:
        return False
    kinds = [answer.type for _, answer in core.layout.answer.fields]
    plain = {pa.int64(): "int64", pa.float64(): "float64"}
    return all(plain.get(types[n]) == kind for n, kind in zip(group.names, kinds, strict=True))
