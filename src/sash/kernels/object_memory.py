"""A kernel's memory as Python lists, for partials of any kind."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np

from .columns import Array, Table, answers_from_list
from .memory import Core
from .objects import ObjectMemory
from .partials import decoder, encoder
from .program import Kernel, Program
from .slots import CAPACITY, HEADER

__all__ = ["ObjectCore"]


class ObjectCore(Core):
    """Partials of any kind in Python lists."""

    m: ObjectMemory

    def __init__(self, kernel: Kernel, program: Program, capacity: int) -> None:
        super().__init__(kernel, program, capacity)
        self._allocate(capacity)
        # To append to a full deque of length one replaces its item, and takes a quarter of the
        # time of calling a list's __setitem__.
        self.cell = [deque([None], maxlen=1) for _ in self.operator.skips]
        self.answer = [None]
        self.fill = self.cell[0].append if len(self.cell) == 1 else self._fill
        self.read = partial(self.answer.__getitem__, 0)

    def _allocate(self, capacity: int) -> None:
        self.m = ObjectMemory(self.slots(capacity), self.operator.identity, link=self.kernel.link)
        self.header = self.m.header
        self.header[CAPACITY] = capacity
        self.set_bounds()

    def __copy__(self) -> ObjectCore:
        """Copy the core and its memory."""
        made = ObjectCore(self.kernel, self.program, self.get(CAPACITY))
        made.run, made.floor = self.run, self.floor
        for mine, its in zip(made.m.lists(), self.m.lists(), strict=True):
            mine[:] = its
        made.set_bounds()
        return made

    def lay_out(self, words: int) -> None:
        """Make the first memory of a kernel that lays out its memory itself."""
        self._allocate(words)

    def resize(
        self, capacity: int, blocks: list[tuple[int, int, int]], *, roomy: bool = False
    ) -> None:
        """Change the capacity, and copy these runs of slots (to, from, how many) into new lists.
        If the kernel lays out the memory itself, the list becomes longer and keeps its items."""
        old = self.m
        if self.kernel.own and capacity >= len(old.slots):
            old.slots.extend([self.operator.identity] * (capacity - len(old.slots)))
            self.header[CAPACITY] = capacity
            return
        self._allocate(capacity)
        self.m.header[1:] = old.header[1:]
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
        """Prepare input columns for a kernel; both items of the pair are the columns."""
        columns = [c.as_list() for c in table.columns]
        return columns, columns

    def outputs(self, rows: int) -> tuple[Any, Any]:
        """Make a list for the answers of so many rows; both items of the pair are the list."""
        out: list[Any] = [None] * rows
        return out, out

    def give(self, kept: Any, kind: str) -> Any:
        """The answers that the kernel wrote into `outputs`, in the kind of container that the user
        passed."""
        return answers_from_list(kept, kind, self.operator.fields)

    def integers(self, values: Array) -> tuple[Any, Any]:
        """Prepare integers for a kernel; both items of the pair are the list of them."""
        made = values.tolist()
        return made, made

    def peek(self, slot: int) -> Any:
        """A slot's partial."""
        return self.m.slots[slot]

    def dump_slots(self, first: int, count: int) -> bytes:
        """A run of slots as bytes, each partial encoded by the operator."""
        encode = encoder(self.operator)
        encoded = [encode(p) for p in self.m.slots[first : first + count]]
        return np.array([len(e) for e in encoded], dtype="<u8").tobytes() + b"".join(encoded)

    def load_slots(self, first: int, count: int, data: bytes | memoryview) -> None:
        """Fill a run of slots from the bytes of `dump_slots`."""
        decode = decoder(self.operator)
        sizes = np.frombuffer(data[: 8 * count], dtype="<u8").tolist()
        at = 8 * count
        for i, size in enumerate(sizes):
            self.m.slots[first + i] = decode(bytes(data[at : at + size]))
            at += size

    def pack_slots(self, first: int, count: int) -> list[Any]:
        """A run of slots as pieces of bytes, which the caller joins."""
        return [self.dump_slots(first, count)]

    def unpack_slots(self, first: int, count: int, data: bytes | memoryview) -> None:
        """Fill a run of slots from the bytes of `pack_slots`."""
        self.load_slots(first, count, data)

    def copy_slots(self, to: int, start: int, count: int) -> None:
        """Copy a run of slots to another place; the two places do not overlap."""
        self.m.slots[to : to + count] = self.m.slots[start : start + count]

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
        """Fill the memory from the bytes of `dump`."""
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
