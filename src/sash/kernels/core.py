"""A kernel's functions and the memory they work on, for one aggregator.

`BufferCore` keeps everything in one flat buffer, `ObjectCore` in Python lists.  To an aggregator
they look the same: `run` has the kernel's functions, `m` is the memory to give them,
`cell` a table of one input row and `answer` a place for one answer.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..operators.codec import decode_value, encode_value
from ..operators.contract import Operator
from .columns import Array, Table, answers_from_columns, answers_from_list, checked_value
from .layout import Answer, Layout
from .objects import ObjectMemory
from .program import Kernel, Program, specialise
from .slots import CAPACITY, END, HEADER, START

__all__ = ["BufferCore", "Core", "ObjectCore", "make_core"]

_FORMATS = {"int64": "q", "timestamp": "q", "float64": "d", "bool": "B"}
_VECTORS: dict[str, Any] = {"i": np.int64, "u": np.uint64, "f": np.float64}


class Core:
    """What both kinds of memory have in common."""

    m: Any
    cell: Any
    answer: Any

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        self.kernel = kernel
        self.program = program
        self.run = program.run
        self.operator = program.operator

    def get(self, field: int) -> int:
        """A header field."""
        raise NotImplementedError

    def set(self, field: int, value: int) -> None:
        """Set a header field."""
        raise NotImplementedError

    def slots(self, capacity: int) -> int:
        """How many slots a memory with this capacity has."""
        return self.kernel.scratch + self.kernel.each * capacity

    def ring_blocks(self, old: int, new: int) -> list[tuple[int, int, int]]:
        """Which runs of slots (to, from, how many) move when a ring of elements changes its
        capacity, so that each position is again at its place."""
        scratch, each = self.kernel.scratch, self.kernel.each
        blocks = [(0, 0, scratch)] if scratch else []
        at, end = self.get(START), self.get(END)
        while at < end:
            i, j = at & (old - 1), at & (new - 1)
            n = min(end - at, old - i, new - j)
            blocks.append((scratch + each * j, scratch + each * i, each * n))
            at += n
        return blocks


class BufferCore(Core):
    """Typed partials in one flat buffer; compiled kernels, or the same text checked."""

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        super().__init__(kernel, program, capacity)
        assert program.layout is not None
        self.layout: Layout = program.layout
        self._checked = program.mode == "checked"
        self.stride = self.layout.words + kernel.link
        self._identity = self._identity_words()
        self._allocate(capacity)
        types = self.layout.types
        self._in = [np.zeros(1, dtype=np.uint8 if t == "bool" else np.int64) for t in types]
        self._in_valid = [np.ones(1, dtype=np.uint8) for _ in types]
        self._in_views = [memoryview(a).cast("B").cast(_FORMATS[t]) for a, t in
                          zip(self._in, types, strict=True)]  # fmt: skip
        self._in_valid_views = [memoryview(a) for a in self._in_valid]
        self._in_table = self._table(list(zip(self._in, self._in_valid, strict=True)))
        self.cell: Any = self._in_table.ctypes.data
        self._plain = [t == "float64" for t in types]
        if self.layout.answers:
            self._out = self._new_outputs(1)
            self._out_table = self._table(self._out)
            self.answer: Any = self._out_table.ctypes.data
            self._out_views = [
                (memoryview(d).cast("B").cast(_FORMATS[a.type]) if a.type in _FORMATS else None,
                 memoryview(v) if v is not None else None)
                for a, (d, v) in zip(self.layout.answer.columns(), self._out, strict=True)
            ]  # fmt: skip
        else:
            self.answer = [None]

    def _keep(self, array: Array) -> Array:
        """An array that kernels may touch."""
        if self._checked:
            from . import checked

            checked.register(array)
        return array

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
        count = self.slots(capacity)
        self.buffer = self._keep(np.zeros(HEADER + self.stride * (1 + count), dtype=np.int64))
        self.pool = self.buffer[HEADER + self.stride :].reshape(count, self.stride)
        self.pool[:, self.kernel.link :] = self._identity
        self.words = memoryview(self.buffer)
        self.m = self.buffer.ctypes.data
        self.words[CAPACITY] = capacity

    def get(self, field: int) -> int:
        return self.words[field]

    def set(self, field: int, value: int) -> None:
        self.words[field] = value

    def resize(self, capacity: int, blocks: list[tuple[int, int, int]]) -> None:
        """A new memory of another capacity, with these runs of slots copied."""
        header, pool = self.buffer[:HEADER].copy(), self.pool
        self._allocate(capacity)
        self.buffer[1:HEADER] = header[1:]
        for to, start, n in blocks:
            self.pool[to : to + n] = pool[start : start + n]

    def fill(self, value: Any) -> None:
        """Put one value, or a tuple of them, into the input cell."""
        views = self._in_views
        row = (value,) if len(views) == 1 else value
        if len(row) != len(views):
            raise TypeError(f"{self.operator.name} takes {len(views)} values, not {value!r}")
        for i, x in enumerate(row):
            if x is None:
                self._in_valid_views[i][0] = 0
                continue
            self._in_valid_views[i][0] = 1
            if type(x) is float and self._plain[i]:
                views[i][0] = x
            else:
                views[i][0] = checked_value(x, self.layout.types[i])

    def read(self) -> Any:
        """The answer in the output cell."""
        if not self.layout.answers:
            return self.answer[0]
        return self._read(self.layout.answer, [0])

    def _read(self, answer: Answer, at: list[int]) -> Any:
        if answer.fields:
            row = tuple(self._read(a, at) for _, a in answer.fields)
            whole = any(a.nullable for _, a in answer.fields)
            flat = not any(a.fields for _, a in answer.fields)
            return None if whole and flat and all(x is None for x in row) else row
        i = at[0]
        at[0] += 1
        data, valid = self._out_views[i]
        if data is None:
            return self._out[i][0][0].copy()
        if valid is not None and not valid[0]:
            return None
        if answer.type == "bool":
            return bool(data[0])
        return np.datetime64(data[0], "us") if answer.type == "timestamp" else data[0]

    def _table(self, columns: list[tuple[Array, Array | None]]) -> Array:
        """A table of addresses, data and validity of each column."""
        made = np.zeros(2 * len(columns), dtype=np.int64)
        for i, (data, valid) in enumerate(columns):
            made[2 * i] = self._keep(data).ctypes.data
            made[2 * i + 1] = 0 if valid is None else self._keep(valid).ctypes.data
        return self._keep(made)

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
        return (columns, made), made.ctypes.data

    def outputs(self, rows: int) -> tuple[Any, Any]:
        """A place for as many answers: what keeps it alive, and the handle."""
        if not self.layout.answers:
            out: list[Any] = [None] * rows
            return out, out
        columns = self._new_outputs(rows)
        table = self._table(columns)
        return (columns, table), table.ctypes.data

    def give(self, kept: Any, kind: str) -> Any:
        """The answers of a run, as the kind that went in."""
        if not self.layout.answers:
            return answers_from_list(kept, kind, self.operator.fields)
        return answers_from_columns(self.layout.answer, list(kept[0]), kind)

    def peek(self, slot: int) -> Any:
        """A slot's partial as a Python value."""
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
        super().__init__(kernel, program, capacity)
        self._allocate(capacity)
        self.cell: Any = [[None] for _ in self.operator.skips]
        self.answer: Any = [None]

    def _allocate(self, capacity: int) -> None:
        self.m = ObjectMemory(self.slots(capacity), self.operator.identity, link=self.kernel.link)
        self.m.header[CAPACITY] = capacity

    def get(self, field: int) -> int:
        return self.m.header[field]

    def set(self, field: int, value: int) -> None:
        self.m.header[field] = value

    def resize(self, capacity: int, blocks: list[tuple[int, int, int]]) -> None:
        """A new memory of another capacity, with these runs of slots copied."""
        old = self.m
        self._allocate(capacity)
        self.m.header[1:] = old.header[1:]
        for to, start, n in blocks:
            self.m.slots[to : to + n] = old.slots[start : start + n]
            if self.kernel.link:
                self.m.links[to : to + n] = old.links[start : start + n]

    def fill(self, value: Any) -> None:
        """Put one value, or a tuple of them, into the input cell."""
        if len(self.cell) == 1:
            self.cell[0][0] = value
            return
        if not isinstance(value, tuple | list) or len(value) != len(self.cell):
            raise TypeError(f"{self.operator.name} takes {len(self.cell)} values, not {value!r}")
        for column, x in zip(self.cell, value, strict=True):
            column[0] = x

    def read(self) -> Any:
        """The answer in the output cell."""
        return self.answer[0]

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

    def peek(self, slot: int) -> Any:
        """A slot's partial."""
        return self.m.slots[slot]

    def peek_link(self, slot: int) -> int:
        """The integer beside a slot's partial."""
        return self.m.links[slot]

    def dump(self) -> bytes:
        """The whole memory as bytes, each partial encoded by the operator."""
        encode = _encoder(self.operator)
        encoded = [encode(p) for p in self.m.slots]
        sizes = np.array([len(e) for e in encoded], dtype="<u8").tobytes()
        header = np.array([*self.m.header, len(encoded)], dtype="<i8").tobytes()
        links = np.array(self.m.links, dtype="<i8").tobytes()
        return header + links + sizes + b"".join(encoded)

    def restore(self, data: bytes) -> None:
        """Take back what `dump` gave."""
        decode = _decoder(self.operator)
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


def make_core(kernel: Kernel, operator: Operator, capacity: int) -> BufferCore | ObjectCore:
    """The memory and functions for a kernel over an operator."""
    program = specialise(kernel, operator)
    if program.layout is None:
        return ObjectCore(kernel, program, capacity)
    return BufferCore(kernel, program, capacity)


def _encoder(operator: Operator) -> Any:
    """A function from a partial to bytes, or an error for objects that cannot leave."""
    if operator.parts:
        encoders = [_encoder(p.operator) for p in operator.parts]

        def encode_parts(partial: Any) -> bytes:
            parts = [f(x) for f, x in zip(encoders, partial, strict=True)]
            return b"".join(struct.pack("<Q", len(p)) + p for p in parts)

        return encode_parts
    if operator.encode is not None:
        return operator.encode
    if operator.shape == "vector":
        return lambda partial: partial.tobytes()
    if operator.shape in ("scalar", "tuple"):
        return encode_value
    raise TypeError(
        f"{operator!r} has partials that are Python objects, and they cannot leave the process "
        "without encode and decode; give both to sash.operator(…), or tie a ready operator to "
        "its types with .over(…)"
    )


def _decoder(operator: Operator) -> Any:
    """The other way round."""
    if operator.parts:
        decoders = [_decoder(p.operator) for p in operator.parts]

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


def _pack(partial: Any, kinds: str) -> list[int]:
    """A scalar or tuple partial as 8-byte words."""
    fields = partial if isinstance(partial, tuple) else (partial,)
    formats = {"i": "q", "b": "q", "u": "Q", "f": "d"}
    raw = b"".join(
        struct.pack("<" + formats[k], float(x) if k == "f" else int(x))
        for k, x in zip(kinds, fields, strict=True)
    )
    return np.frombuffer(raw, dtype=np.int64).tolist()


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
    return tuple(_nest(p.operator, parts) for p in operator.parts)
