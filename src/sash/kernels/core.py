"""A kernel's functions and the memory they work on, for one aggregator.

`BufferCore` keeps everything in one flat buffer, `ObjectCore` in Python lists.  To an aggregator
they look the same: `run` has the kernel's functions, `m` is the memory to give them,
`cell` a table of one input row and `answer` a place for one answer.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..operators.codec import decode_value, encode_value
from ..operators.contract import Operator
from .call import Call
from .columns import Array, Table, answers_from_columns, answers_from_list, checked_value
from .layout import Answer, Layout
from .objects import ObjectMemory
from .program import Kernel, Program, specialise
from .slots import BUSY, CAPACITY, END, HEADER, START

__all__ = ["BufferCore", "Core", "ObjectCore", "decoder", "encoder", "make_core"]

_VECTORS: dict[str, Any] = {"i": np.int64, "u": np.uint64, "f": np.float64}


class Core:
    """What both kinds of memory have in common."""

    m: Any  # the memory, as the kernel's functions take it
    header: Any  # its header fields, by index
    cell: Any  # a table of one input row
    answer: Any  # a place for one answer
    fill: Callable[[Any], None]  # put a value, or a tuple of them, into the cell
    read: Callable[[], Any]  # what the answer is

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel = kernel
        self.program = program
        self.run: Any = program.run
        self.operator = program.operator

    def give_up_if_unsound(self) -> None:
        """After an error out of a kernel: refuse further use if it came in the middle of a change,
        when only combine can have raised it."""
        if self.header[BUSY]:
            self.run = _Unsound(self.operator.name)

    @property
    def width(self) -> int:
        """How many words a partial takes."""
        layout = self.program.layout
        return layout.words if layout else 1

    def call(self) -> Call:
        """A context that owns the arrays of a call of the kernel."""
        return Call(self)  # type: ignore[arg-type]

    def get(self, field: int) -> int:
        """A header field."""
        return self.header[field]  # type: ignore[no-any-return]

    def slots(self, capacity: int) -> int:
        """How many slots a memory with this capacity has."""
        if self.kernel.own:
            return capacity
        beside = capacity.bit_length() + 1 if self.kernel.beside else 0
        return self.kernel.scratch + self.kernel.each * capacity + beside

    def ring_blocks(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """Which runs of slots (to, from, how many) move when a ring of elements changes its
        capacity, so that each position is again at its place."""
        scratch, each = self.kernel.scratch, self.kernel.each
        blocks = [(0, 0, scratch)] if scratch else []
        for j, i, n in self.places(old, new):
            blocks.append((scratch + each * j, scratch + each * i, each * n))
        return blocks

    def places(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """Runs of places (new one, old one, how many) of the elements, for two capacities."""
        runs, at, end = [], self.get(START), self.get(END)
        while at < end:
            i, j = at & (old - 1), at & (new - 1)
            n = min(end - at, old - i, new - j)
            runs.append((j, i, n))
            at += n
        return runs


class BufferCore(Core):
    """Typed partials in one flat buffer; compiled kernels, or the same text checked."""

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        super().__init__(kernel, program)
        assert program.layout is not None
        self.layout: Layout = program.layout
        self._checked = program.mode == "checked"
        self.stride = self.layout.words + kernel.link
        self._identity = self._identity_words()
        self._allocate(capacity)
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
        """An array that kernels may touch."""
        if self._checked:
            from . import checked

            checked.register(array)
        return array

    def __copy__(self) -> BufferCore:
        """The same with a memory of its own."""
        made = BufferCore(self.kernel, self.program, self.get(CAPACITY))
        made.run = self.run
        made.buffer[:] = self.buffer
        return made

    def _identity_words(self) -> Array:
        """The identity as it lies in a slot."""
        made = np.zeros(self.layout.words, dtype=np.int64)
        for leaf in self.layout.leaves:
            span = made[leaf.offset : leaf.offset + leaf.words]
            if leaf.vector:
                span[:] = leaf.operator.identity.view(np.int64)
            else:
                span[:] = _pack(leaf.operator.identity, leaf.kinds)
        return made

    def _allocate(self, capacity: int) -> None:
        if self.kernel.own:
            self.buffer = self._keep(np.zeros(capacity, dtype=np.int64))
        else:
            count = self.slots(capacity)
            self.buffer = self._keep(np.zeros(HEADER + self.stride * (1 + count), dtype=np.int64))
            self.pool = self.buffer[HEADER + self.stride :].reshape(count, self.stride)
            self.pool[:, self.kernel.link :] = self._identity
        self.header = _cells(self.buffer[:HEADER], "int64")
        self.m = _address(self.buffer)
        self.header[CAPACITY] = capacity

    def resize(self, capacity: int, blocks: list[tuple[int, int, int]]) -> None:
        """A new memory of another capacity, with these runs of slots copied."""
        old = self.buffer
        if self.kernel.own:
            self._allocate(capacity)
            used = min(len(old), capacity)
            self.buffer[1:used] = old[1:used]
            return
        pool = self.pool
        self._allocate(capacity)
        self.buffer[1:HEADER] = old[1:HEADER]
        for to, start, n in blocks:
            self.pool[to : to + n] = pool[start : start + n]

    def _filler(self) -> Callable[[Any], None]:
        """How a value gets into the input cell."""
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
        """A table of addresses, data and validity of each column."""
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
                data = np.zeros((rows, int(length)), dtype=_VECTORS[kind])
            else:
                data = np.empty(rows, dtype=np.uint8 if a.type == "bool" else np.int64)
                if a.type == "float64":
                    data = data.view(np.float64)
            made.append((data, np.ones(rows, dtype=np.uint8) if a.nullable else None))
        return made

    def take(self, table: Table) -> tuple[Any, Any]:
        """Input columns for a run over many rows: what keeps them alive, and the handle."""
        columns = [c.as_type(t) for c, t in zip(table.columns, self.layout.types, strict=True)]
        made = self._table([(c.data, c.valid) for c in columns])
        return (columns, made), _address(made)

    def outputs(self, rows: int) -> tuple[Any, Any]:
        """A place for as many answers: what keeps it alive, and the handle."""
        if not self.layout.answers:
            out: list[Any] = [None] * rows
            return out, out
        columns = self._new_outputs(rows)
        table = self._table(columns)
        return (columns, table), _address(table)

    def give(self, kept: Any, kind: str) -> Any:
        """The answers of a run, as the kind that went in."""
        if not self.layout.answers:
            rows = [_with_times(self.operator.shown, x) for x in kept]
            return answers_from_list(rows, kind, self.operator.fields)
        return answers_from_columns(self.layout.answer, list(kept[0]), kind)

    def integers(self, values: Array) -> tuple[Any, Any]:
        """Integers for a kernel: what keeps them alive, and the handle."""
        made = self._keep(np.ascontiguousarray(values, dtype=np.int64))
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
                parts.append(span.view(_VECTORS[leaf.kinds]).copy())
            else:
                fields = _unpack(span, leaf.kinds)
                parts.append(fields[0] if leaf.operator.shape == "scalar" else fields)
        return _nest(self.operator, parts)

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
        """The whole memory as bytes."""
        return self.buffer.tobytes()

    def restore(self, data: bytes) -> None:
        """Take back what `dump` gave."""
        header = np.frombuffer(data[: 8 * HEADER], dtype=np.int64)
        self._allocate(int(header[CAPACITY]))
        if len(data) != self.buffer.nbytes:
            raise ValueError(
                f"a memory of {self.buffer.nbytes} bytes was expected, not {len(data)}"
            )
        self.buffer[:] = np.frombuffer(data, dtype=np.int64)


class ObjectCore(Core):
    """Partials of any kind in Python lists."""

    m: ObjectMemory

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        super().__init__(kernel, program)
        self._allocate(capacity)
        # Appending to a full deque of one replaces what is in it, in a quarter of the time
        # that a list's __setitem__ takes when called like that.
        self.cell = [deque([None], maxlen=1) for _ in self.operator.skips]
        self.answer = [None]
        self.fill = self.cell[0].append if len(self.cell) == 1 else self._fill
        self.read = partial(self.answer.__getitem__, 0)

    def _allocate(self, capacity: int) -> None:
        self.m = ObjectMemory(self.slots(capacity), self.operator.identity, link=self.kernel.link)
        self.header = self.m.header
        self.header[CAPACITY] = capacity

    def __copy__(self) -> ObjectCore:
        """The same with a memory of its own."""
        made = ObjectCore(self.kernel, self.program, self.get(CAPACITY))
        made.run = self.run
        for mine, its in zip(made.m.lists(), self.m.lists(), strict=True):
            mine[:] = its
        return made

    def resize(self, capacity: int, blocks: list[tuple[int, int, int]]) -> None:
        """A new memory of another capacity, with these runs of slots copied."""
        old = self.m
        self._allocate(capacity)
        self.m.header[1:] = old.header[1:]
        if self.kernel.own:
            used = min(len(old.slots), capacity)
            self.m.slots[:used] = old.slots[:used]
            return
        for to, start, n in blocks:
            self.m.slots[to : to + n] = old.slots[start : start + n]
            if self.kernel.link:
                self.m.links[to : to + n] = old.links[start : start + n]

    def _fill(self, value: Any) -> None:
        """Put a tuple of values into the input cell."""
        if not isinstance(value, tuple | list) or len(value) != len(self.cell):
            raise TypeError(f"{self.operator.name} takes {len(self.cell)} values, not {value!r}")
        for column, x in zip(self.cell, value, strict=True):
            column[0] = x

    def take(self, table: Table) -> tuple[Any, Any]:
        """Input columns for a run over many rows: what keeps them alive, and the handle."""
        columns = [c.as_list() for c in table.columns]
        return columns, columns

    def outputs(self, rows: int) -> tuple[Any, Any]:
        """A place for as many answers: what keeps it alive, and the handle."""
        out: list[Any] = [None] * rows
        return out, out

    def give(self, kept: Any, kind: str) -> Any:
        """The answers of a run, as the kind that went in."""
        return answers_from_list(kept, kind, self.operator.fields)

    def integers(self, values: Array) -> tuple[Any, Any]:
        """Integers for a kernel: what keeps them alive, and the handle."""
        made = values.tolist()
        return made, made

    def peek(self, slot: int) -> Any:
        """A slot's partial."""
        return self.m.slots[slot]

    def peek_link(self, slot: int) -> int:
        """The integer beside a slot's partial."""
        return self.m.links[slot]

    def peek_word(self, at: int) -> int:
        """An integer in a memory that the kernel lays out itself."""
        return self.m.slots[at]  # type: ignore[no-any-return]

    def poke_word(self, at: int, value: int) -> None:
        """Set an integer in a memory that the kernel lays out itself."""
        self.m.slots[at] = value

    def poke_identity(self, at: int) -> None:
        """Clear a slot in a memory that the kernel lays out itself."""
        self.m.slots[at] = self.operator.identity

    def dump(self) -> bytes:
        """The whole memory as bytes, each partial encoded by the operator."""
        encode = encoder(self.operator)
        encoded = [encode(p) for p in self.m.slots]
        sizes = np.array([len(e) for e in encoded], dtype="<u8").tobytes()
        header = np.array([*self.m.header, len(encoded)], dtype="<i8").tobytes()
        links = np.array(self.m.links, dtype="<i8").tobytes()
        return header + links + sizes + b"".join(encoded)

    def restore(self, data: bytes) -> None:
        """Take back what `dump` gave."""
        decode = decoder(self.operator)
        *header, count = np.frombuffer(data[: 8 * (HEADER + 1)], dtype="<i8").tolist()
        self._allocate(header[CAPACITY])
        if count != len(self.m.slots):
            raise ValueError(f"a memory of {len(self.m.slots)} slots was expected, not {count}")
        self.m.header[:] = header
        at = 8 * (HEADER + 1)
        if self.kernel.link:
            self.m.links = np.frombuffer(data[at : at + 8 * count], dtype="<i8").tolist()
            at += 8 * count
        sizes = np.frombuffer(data[at : at + 8 * count], dtype="<u8").tolist()
        at += 8 * count
        for i, size in enumerate(sizes):
            self.m.slots[i] = decode(data[at : at + size])
            at += size


class _Unsound:
    """Stands for the functions of a kernel that broke off."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        raise RuntimeError(
            f"combine of {self._name} raised in the middle of a change, and this window is not "
            "sound any more: make a new one, or restore it from its bytes"
        )


def _address(array: Array) -> int:
    """Where an array's data are.  `array.ctypes.data` takes four times as long."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # it is empty or cannot be written
        return array.ctypes.data


def make_core(kernel: Kernel, operator: Operator, capacity: int) -> BufferCore | ObjectCore:
    """The memory and functions for a kernel over an operator."""
    program = specialise(kernel, operator)
    if program.layout is None:
        return ObjectCore(kernel, program, capacity)
    return BufferCore(kernel, program, capacity)


def _cells(array: Array, type_: str) -> Any:
    """An array's cells for quick access from Python."""
    formats: Any = {"int64": "q", "timestamp": "q", "float64": "d", "bool": "B"}
    return memoryview(array).cast("B").cast(formats[type_])  # type: ignore[arg-type]


def _reader(answer: Answer, columns: list[tuple[Array, Array | None]]) -> Callable[[], Any]:
    """A function that reads one answer from its output columns (taken off the list)."""
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
    """An answer with its times as times; kernels know them as integers."""
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


def encoder(operator: Operator) -> Any:
    """A function from a partial to bytes, or an error for objects that cannot leave."""
    if operator.parts:
        encoders = [encoder(p.operator) for p in operator.parts if p.shares is None]

        def encode_parts(value: Any) -> bytes:
            parts = [f(x) for f, x in zip(encoders, value, strict=True)]
            return b"".join(struct.pack("<Q", len(p)) + p for p in parts)

        return encode_parts
    if operator.encode is not None:
        return operator.encode
    if operator.shape == "vector":
        return lambda value: value.tobytes()
    if operator.shape in ("scalar", "tuple"):
        return encode_value
    raise TypeError(
        f"{operator!r} has partials that are Python objects, and they cannot leave the process "
        "without encode and decode; give both to sash.operator(…), or tie a ready operator to "
        "its types with .of(…)"
    )


def decoder(operator: Operator) -> Any:
    """The other way round."""
    if operator.parts:
        decoders = [decoder(p.operator) for p in operator.parts if p.shares is None]

        def decode_parts(data: bytes) -> Any:
            at, parts = 0, []
            for f in decoders:
                (size,) = struct.unpack_from("<Q", data, at)
                parts.append(f(data[at + 8 : at + 8 + size]))
                at += 8 + size
            return tuple(parts)

        return decode_parts
    if operator.decode is not None:
        return operator.decode
    if operator.shape in ("scalar", "tuple"):
        return decode_value
    dtype = operator.identity.dtype
    return lambda data: np.frombuffer(data, dtype=dtype).copy()


def _pack(value: Any, kinds: str) -> list[int]:
    """A scalar or tuple partial as 8-byte words."""
    fields = value if isinstance(value, tuple) else (value,)
    formats = {"i": "q", "b": "q", "u": "Q", "f": "d"}
    raw = b"".join(
        struct.pack("<" + formats[k], float(x) if k == "f" else int(x))
        for k, x in zip(kinds, fields, strict=True)
    )
    words: list[int] = np.frombuffer(raw, dtype=np.int64).tolist()
    return words


def _unpack(words: Array, kinds: str) -> tuple[Any, ...]:
    made: list[Any] = []
    for k, word in zip(kinds, words, strict=True):
        if k == "f":
            made.append(float(word.view(np.float64)))
        elif k == "u":
            made.append(int(word.view(np.uint64)))
        else:
            made.append(bool(word) if k == "b" else int(word))
    return tuple(made)


def _nest(operator: Operator, parts: list[Any]) -> Any:
    if not operator.parts:
        return parts.pop(0)
    return tuple(_nest(p.operator, parts) for p in operator.parts if p.shares is None)
