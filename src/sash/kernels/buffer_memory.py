"""A kernel's memory as one flat buffer of 8-byte words, for typed partials."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..operators.contract import Operator
from .columns import Array, Table, answers_from_columns, answers_from_list, checked_value
from .layout import Answer, Layout
from .memory import Core
from .partials import VECTORS, nested, pack, unpack
from .program import Kernel, Program
from .slots import CAPACITY, HEADER
from .spans import LARGE, MODERATE, Span, reserve, room

__all__ = ["BufferCore"]

TRIMMED = 1 << 15  # words that `trim` gives back at a time, in 10 µs


class BufferCore(Core):
    """Typed partials in one flat buffer.  Compiled kernels work on it, or checked ones."""

    buffer: Array  # the memory
    pool: Array  # the memory's slots; missing if the kernel lays out the memory itself

    def __init__(
        self, kernel: Kernel, program: Program, capacity: int, *, roomy: bool = False
    ) -> None:
        super().__init__(kernel, program, capacity)
        assert program.layout is not None
        self.layout: Layout = program.layout
        self._checked = program.mode == "checked"
        self.stride = self.layout.words + kernel.link
        self._identity = self._identity_words()
        self._span: Span | None = None
        self._ahead: Span | None = None  # for the memory that comes after this one
        self._hasty = False
        self._allocate(capacity, roomy=roomy)
        if kernel.brief:
            self._make_cells()

    def _make_cells(self) -> None:
        """Make the places of one input row and of one answer.  Only brief entries use them; a run
        makes a core of another kernel for each of its pieces, and holds the interpreter's lock."""
        types = self.layout.types
        self._in = [np.zeros(1, dtype=np.uint8 if t == "bool" else np.int64) for t in types]
        self._in_valid = [np.ones(1, dtype=np.uint8) for _ in types]
        self._in_table = self._table(list(zip(self._in, self._in_valid, strict=True)))
        self.cell = _address(self._in_table)
        self.fill = self._filler()
        if self.layout.answers:
            self._out = self._new_outputs(1)
            self._out_table = self._table(self._out)
            self.answer = _address(self._out_table)
            self.read = _reader(self.layout.answer, list(self._out))
        else:
            self.answer = [None]
            self.read = lambda: _with_times(self.operator.shown, self.answer[0])

    def _keep(self, array: Array) -> Array:
        """Return the array, and let kernels touch it."""
        if self._checked:
            from . import checked

            return checked.register(array)
        return array

    def empty(self) -> BufferCore:
        """Make an empty core of the same kernel, operator and capacity."""
        capacity, roomy = self.get(CAPACITY), self._span is not None
        made = BufferCore(self.kernel, self.program, capacity, roomy=roomy)
        made.run, made.floor = self.run, self.floor
        if self._hasty:
            made.hasten()
        made.set_bounds()
        return made

    def __copy__(self) -> BufferCore:
        """Copy the core and its memory."""
        made, capacity = self.empty(), self.get(CAPACITY)
        if self.kernel.ring:
            made.buffer[:HEADER] = self.buffer[:HEADER]
            for to, start, n in self.ring_blocks(capacity, capacity):
                made.pool[to : to + n] = self.pool[start : start + n]
        else:
            used = self._in_use()
            made.buffer[:used] = self.buffer[:used]
        made.set_bounds()
        return made

    def _identity_words(self) -> Array:
        """The words of a slot that holds the identity."""
        made = np.zeros(self.layout.words, dtype=np.int64)
        for leaf in self.layout.leaves:
            span = made[leaf.offset : leaf.offset + leaf.words]
            if leaf.vector:
                span[:] = leaf.operator.identity.view(np.int64)
            else:
                span[:] = pack(leaf.operator.identity, leaf.kinds)
        return made

    def _words(self, capacity: int) -> int:
        """The number of words of a memory with this capacity."""
        if self.kernel.own:
            return capacity
        return HEADER + self.stride * (1 + self.slots(capacity))

    def _in_use(self) -> int:
        """The number of words in use; all of them lie at the start of the memory."""
        if self.kernel.own:
            return max(HEADER, self.get(self.kernel.top))
        return self._words(self.get(CAPACITY))

    def _allocate(self, capacity: int, *, roomy: bool) -> None:
        """Make a new memory.  A `roomy` memory gets a span if it can grow in a span and is not
        small."""
        words, span = self._words(capacity), None
        if roomy and (self.kernel.own or self.kernel.ring) and 8 * words > MODERATE:
            span = self._ahead
            if span is None or 8 * words > span.size:
                span = reserve(8 * words)
        self._ahead = None
        found = None if span is None else span.words(words)
        self._see(np.zeros(words, dtype=np.int64) if found is None else found)
        self._span = span
        self._choose_pages()
        if not self.kernel.own:
            filled = self.kernel.scratch if self.kernel.ring else None
            self.pool[:filled, self.kernel.link :] = self._identity
        self.header = _cells(self.buffer[:HEADER], "int64")
        self.m = _address(self.buffer)
        self.header[CAPACITY] = capacity
        self.set_bounds()

    def reserve_ahead(self) -> None:
        """Reserve the span of the next memory, so that the operation which moves there need not: to
        do either takes tens of microseconds, as the code for it is in no cache."""
        if self._span is None and self._outgrown(self._in_use()):
            self._ahead = reserve(16 * self._words(self.get(CAPACITY)))

    def _outgrown(self, words: int) -> bool:
        """True if a memory that uses so many words has grown beyond its first size and so may get a
        span.  A tree starts with room for many nodes; a ring starts with only what it needs."""
        return not self.kernel.own or 8 * words > MODERATE

    def _see(self, buffer: Array) -> None:
        """Make this array the memory.  Both attributes change in one step, so an interrupt leaves a
        sound memory."""
        made = {}
        if not self.kernel.own:
            made["pool"] = buffer[HEADER + self.stride :].reshape(-1, self.stride)
        vars(self).update(made, buffer=self._keep(buffer))

    @property
    def gradual(self) -> bool:
        return self._span is not None and self.kernel.ring is not None

    def hasten(self, wanted: bool = True) -> None:
        self._hasty = wanted
        self._choose_pages()

    def _choose_pages(self) -> None:
        """Ask for large pages if they are wanted and the memory is large."""
        if self._span is not None:
            self._span.use_large_pages(self._hasty and self.buffer.nbytes >= LARGE)

    def lay_out(self, words: int) -> None:
        """Make the first memory of a kernel that lays out its memory itself."""
        self._allocate(words, roomy=False)

    def resize(
        self, capacity: int, blocks: list[tuple[int, int, int]], *, roomy: bool = False
    ) -> None:
        """Change the capacity, and copy these runs of slots (to, from, how many) into the new
        memory.  If the kernel lays out the memory itself, its words keep their places: the memory
        becomes longer inside its span, or a new memory gets all words that are in use.  `roomy`
        means that the memory will be large, however little of it is in use now."""
        old, used = self.buffer, self._in_use()
        if self.kernel.own:
            longer = None
            if self._span is not None and capacity >= len(old):
                longer = self._span.words(capacity)
            if longer is not None:
                self._see(longer)
                self.header[CAPACITY] = capacity
                self._choose_pages()
                return
            self._allocate(capacity, roomy=roomy or self._outgrown(used))
            self.buffer[1:used] = old[1:used]
            return
        pool = self.pool
        self._allocate(capacity, roomy=roomy or self._outgrown(used))
        self.buffer[1:HEADER] = old[1:HEADER]
        for to, start, n in blocks:
            self.pool[to : to + n] = pool[start : start + n]

    def can_become(self, capacity: int) -> bool:
        """True if a ring can change to this capacity inside its span.  A ring that becomes small
        keeps its span, since to give back a used span takes some 0.5 ms."""
        return self._span is not None and 8 * self._words(capacity) <= self._span.size

    def stretch(self, capacity: int) -> None:
        """Make the memory long enough for this capacity."""
        words = self._words(capacity)
        if words > len(self.buffer):
            assert self._span is not None
            longer = self._span.words(words)
            assert longer is not None
            self._see(longer)

    def trim(self, pieces: int) -> bool:
        """Give back so many pieces of the words beyond the capacity.  Return True if none are left
        there."""
        words, end = self._words(self.get(CAPACITY)), len(self.buffer)
        piece = -(-pieces * TRIMMED // self.stride) * self.stride
        start = max(words, end - piece)
        assert self._span is not None
        self._span.give_back(start, end)
        shorter = self._span.words(start)
        assert shorter is not None
        self._see(shorter)
        return start == words

    def copy_slots(self, to: int, start: int, count: int) -> None:
        """Copy a run of slots to another place in the memory; the two places do not overlap."""
        self.pool[to : to + count] = self.pool[start : start + count]

    def _filler(self) -> Callable[[Any], None]:
        """Make the function that puts a value into the input cell."""
        types, name = self.layout.types, self.operator.name
        views = [_cells(a, t) for a, t in zip(self._in, types, strict=True)]
        valid = [_cells(a, "bool") for a in self._in_valid]

        def put(x: Any, i: int = 0) -> None:
            if x is None:
                valid[i][0] = 0
                return
            valid[i][0] = 1
            views[i][0] = checked_value(x, types[i])

        def fill(value: Any) -> None:
            if not isinstance(value, tuple | list) or len(value) != len(types):
                raise TypeError(f"{name} takes {len(types)} values, not {value!r}")
            for i, x in enumerate(value):
                put(x, i)

        if len(types) > 1:
            return fill
        if types[0] != "float64":
            return put
        view, present = views[0], valid[0]

        def fill_float(x: Any) -> None:
            if type(x) is float:
                view[0] = x
                present[0] = 1
            else:
                put(x)

        return fill_float

    def _table(self, columns: list[tuple[Array, Array | None]]) -> Array:
        """Make the table of addresses that a kernel reads: data and validity of each column."""
        made = []
        for data, valid in columns:
            made.append(_address(self._keep(data)))
            made.append(0 if valid is None else _address(self._keep(valid)))
        return self._keep(np.array(made, dtype=np.int64))

    def _new_outputs(self, rows: int) -> list[tuple[Array, Array | None]]:
        made: list[tuple[Array, Array | None]] = []
        for a in self.layout.answer.columns():
            if a.type.startswith("vector"):
                _, kind, length = a.type.split(":")
                data = np.zeros((rows, int(length)), dtype=VECTORS[kind])
            else:
                data = room(rows, np.uint8 if a.type == "bool" else np.int64)
                if a.type == "float64":
                    data = data.view(np.float64)
            made.append((data, np.ones(rows, dtype=np.uint8) if a.nullable else None))
        return made

    def take(self, table: Table) -> tuple[Any, Any]:
        """Prepare input columns for a kernel.  Return the objects that keep them alive, and the
        handle that the kernel takes."""
        columns = [c.as_type(t) for c, t in zip(table.columns, self.layout.types, strict=True)]
        made = self._table([(c.data, c.valid) for c in columns])
        return (columns, made), _address(made)

    def outputs(self, rows: int) -> tuple[Any, Any]:
        """Make room for the answers of so many rows.  Return the objects that keep it alive, and
        the handle that the kernel takes."""
        if not self.layout.answers:
            out: list[Any] = [None] * rows
            return out, out
        columns = self._new_outputs(rows)
        table = self._table(columns)
        return (columns, table), _address(table)

    def give(self, kept: Any, kind: str) -> Any:
        """The answers that the kernel wrote into `outputs`, in the kind of container that the user
        passed."""
        if not self.layout.answers:
            rows = [_with_times(self.operator.shown, x) for x in kept]
            return answers_from_list(rows, kind, self.operator.fields)
        return answers_from_columns(self.layout.answer, list(kept[0]), kind)

    def integers(self, values: Array) -> tuple[Any, Any]:
        """Prepare integers for a kernel.  Return the object that keeps them alive, and the handle
        that the kernel takes."""
        made = self._keep(np.ascontiguousarray(values, dtype=np.int64))
        return made, _address(made)

    def halves(self, values: Array) -> tuple[Any, Any]:
        """The same for an array of integers of 32 bits."""
        made = self._keep(np.ascontiguousarray(values, dtype=np.int32))
        return made, _address(made)

    def raw(self, values: Array) -> tuple[Any, Any]:
        """Prepare an array of any type for a kernel that reads it word by word; see `integers`."""
        made = self._keep(values)
        return made, _address(made)

    def peek(self, slot: int) -> Any:
        """A slot's partial as a Python value."""
        if self.kernel.own:
            row = self.buffer[slot : slot + self.layout.words]
        else:
            row = self.pool[slot, self.kernel.link :]
        parts: list[Any] = []
        for leaf in self.layout.leaves:
            span = row[leaf.offset : leaf.offset + leaf.words]
            if leaf.vector:
                parts.append(span.view(VECTORS[leaf.kinds]).copy())
            else:
                fields = unpack(span, leaf.kinds)
                # a partial that compiles and is no vector is a tuple or a scalar
                parts.append(fields if isinstance(leaf.operator.identity, tuple) else fields[0])
        return nested(self.operator, parts)

    def dump_slots(self, first: int, count: int) -> bytes:
        """A run of slots as bytes."""
        return self.pool[first : first + count].tobytes()

    def load_slots(self, first: int, count: int, data: bytes | memoryview) -> None:
        """Fill a run of slots from the bytes of `dump_slots`."""
        self.pool[first : first + count] = np.frombuffer(data, dtype=np.int64).reshape(count, -1)

    def pack_slots(self, first: int, count: int) -> list[Any]:
        """A run of slots as pieces of bytes, which the caller must join before the memory changes.
        A word that is equal in all slots comes once; the other words come for each slot."""
        run = self.pool[first : first + count]
        ends = run[:: max(count - 1, 1)].tolist()
        same = [word for word, some in enumerate(zip(*ends, strict=True)) if len({*some}) == 1]
        same = [word for word in same if (run[:, word] == ends[0][word]).all()]
        if not same:
            return [bytes(self.stride), run]
        if len(same) == self.stride:
            return [b"\1" * self.stride, run[0]]
        vary = np.ones(self.stride, dtype=bool)
        vary[same] = False
        return [(~vary).tobytes(), run[0, same], np.compress(vary, run, axis=1)]

    def unpack_slots(self, first: int, count: int, data: bytes | memoryview) -> None:
        """Fill a run of slots from the bytes of `pack_slots`."""
        run, marks = self.pool[first : first + count], bytes(data[: self.stride])
        words = np.frombuffer(data, dtype=np.int64, offset=self.stride)
        if all(marks) or not any(marks):
            run[:] = words.reshape(-1, self.stride)  # one row, or all
            return
        same = np.frombuffer(marks, dtype=bool)
        once = sum(marks)
        run[:, same] = words[:once]
        run[:, ~same] = words[once:].reshape(count, -1)

    def peek_link(self, slot: int) -> int:
        """The integer beside a slot's partial."""
        return int(self.pool[slot, 0])

    def peek_word(self, at: int) -> int:
        """An integer in a memory that the kernel lays out itself."""
        return int(self.buffer[at])

    def poke_word(self, at: int, value: int) -> None:
        """Set an integer in a memory that the kernel lays out itself."""
        self.buffer[at] = value

    def poke_identity(self, at: int) -> None:
        """Clear a slot in a memory that the kernel lays out itself."""
        self.buffer[at : at + self.layout.words] = self._identity

    def dump(self) -> bytes:
        """The words in use, as bytes."""
        return self.buffer[: self._in_use()].tobytes()

    def restore(self, data: bytes) -> None:
        """Fill the memory from the bytes of `dump`."""
        header = np.frombuffer(data[: 8 * HEADER], dtype=np.int64)
        words = np.frombuffer(data, dtype=np.int64)
        self._allocate(int(header[CAPACITY]), roomy=self._outgrown(len(words)))
        if len(words) != len(self.buffer) and not (
            self.kernel.own and header[self.kernel.top] <= len(words) <= len(self.buffer)
        ):
            raise ValueError(
                f"a memory of {self.buffer.nbytes} bytes was expected, not {len(data)}"
            )
        self.buffer[: len(words)] = words


def _address(array: Array) -> int:
    """The address of an array's data.  `array.ctypes.data` takes four times as long."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # it is empty or cannot be written
        return array.ctypes.data


def _cells(array: Array, type_: str) -> Any:
    """A view of an array that Python reads and writes fast."""
    formats: Any = {"int64": "q", "timestamp": "q", "float64": "d", "bool": "B"}
    return memoryview(array).cast("B").cast(formats[type_])  # type: ignore[arg-type]


def _reader(answer: Answer, columns: list[tuple[Array, Array | None]]) -> Callable[[], Any]:
    """Make a function that reads one answer from the first row of its output columns, and take
    these columns off the list."""
    if answer.fields:
        readers = [_reader(a, columns) for _, a in answer.fields]
        nullable = answer.nullable

        def read_struct() -> Any:
            row = tuple(read() for read in readers)
            return None if nullable and row[0] is None else row

        return read_struct
    data, valid = columns.pop(0)
    if data.ndim == 2:
        return partial(np.copy, data[0])
    cell = _cells(data, answer.type)
    plain: Callable[[], Any] = partial(cell.__getitem__, 0)
    if answer.type == "bool":
        plain = lambda: bool(cell[0])  # noqa: E731
    elif answer.type == "timestamp":
        plain = lambda: np.datetime64(cell[0], "us")  # noqa: E731
    if valid is None:
        return plain
    present = _cells(valid, "bool")
    return lambda: plain() if present[0] else None


def _with_times(operator: Operator, answer: Any) -> Any:
    """Turn the timestamps of an answer from integers, as kernels write them, into datetime64."""
    if operator.parts and answer is not None:
        parts = zip(operator.parts, answer, strict=True)
        return tuple(_with_times(p.operator, x) for p, x in parts)
    if answer is None or "timestamp" not in operator.returns:
        return answer
    fields = answer if isinstance(answer, tuple) else (answer,)
    made = tuple(
        np.datetime64(x, "us") if type_ == "timestamp" else x
        for type_, x in zip(operator.returns, fields, strict=True)
    )
    return made if isinstance(answer, tuple) else made[0]
