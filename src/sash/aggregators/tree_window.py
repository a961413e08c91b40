"""A window in a B-tree of times and partials, as seen from Python: `fiba` and `b_tree`."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from ..kernels.columns import read
from ..kernels.core import BufferCore, ObjectCore, decoder, encoder, make_core
from ..kernels.layout import words_of
from ..kernels.program import Kernel, specialise
from ..kernels.slots import CAPACITY, HEADER
from ..operators.contract import Operator, itself
from .guard import alone, sound_after
from .in_order import check_capacity, room_for
from .nodes import (
    COUNT,
    DROPPED,
    FEW,
    LEAF,
    LEFT,
    MERGES,
    MOVES,
    RIGHT,
    ROOT,
    ROW,
    SLOTS,
    SPLITS,
    TOP,
    VISITS,
)
from .snapshot import Copyable, as_told, check_told, describe, open_bytes, seal
from .timed import as_range, as_span, as_time, as_times, check_count, check_operator, keep
from .tree_check import TreeCheck

__all__ = ["TreeWindow"]

_BRIEF = ("insert", "evict", "ask", "ask_between")
_ENTRY_POINTS = (
    *_BRIEF,
    "bulk_evict",
    "bulk_insert",
    "clean",
    "slide_count",
    "slide_span",
    "reclaim_all",
)


#: What a round at any distance goes through: calls would cost it a third of its time.  The rest,
#: inlined as well, would gain nothing and take longer to compile.
_INLINE = (
    "set_hint",
    "open_entry",
    "close_entries",
    "copy_entries",
    "seek",
    "up_right",
    "up_left",
    "settle",
    "carry",
    "spread_left",
    "spread_right",
    "evict_oldest",
    "query",
    "fix_own_here",
)


class TreeWindow(Copyable):
    """A window of times in a B-tree.

    `min_arity` is the least number of children of an inner node (the most is twice that).  It is
    chosen by the size of a partial if it is not given: combining large ones costs more than
    walking the tree, and fewer of them are combined in small nodes.

    The memory grows with the window, and nothing in it is moved for that.  `capacity` reserves room
    for as many times from the start.
    """

    _name: ClassVar[str]
    _functions: ClassVar[tuple[Callable[..., Any], ...]]
    _fingers: ClassVar[int]

    def __init__(
        self, operator: Operator, *, min_arity: int | None = None, capacity: int | None = None
    ) -> None:
        self._given = check_operator(type(self), operator)
        if min_arity is not None and not (isinstance(min_arity, int) and 2 <= min_arity <= 1024):
            raise ValueError(f"min_arity is a whole number from 2 to 1024, not {min_arity!r}")
        self._min_arity = min_arity
        self._times = check_capacity(capacity, "times")
        self._core = self._make(operator)

    def _make(self, operator: Operator) -> BufferCore | ObjectCore:
        """An empty tree."""
        arity = self._min_arity or _arity_for(operator)
        kernel = Kernel(
            f"{self._name}{arity}",
            self._functions,
            _ENTRY_POINTS,
            _BRIEF,
            own=True,
            top=TOP,
            inline=_INLINE,
            constants=(("ENTRIES", 2 * arity), ("FINGERS", self._fingers)),
        )
        self._entries = 2 * arity
        core = make_core(kernel, operator, HEADER)
        leaf = 2 + self._entries + core.width * (self._entries + 2)
        inner = leaf + (1 + core.width) * (self._entries + 1)
        self._reserve = self._least = 33 * inner
        first = HEADER + SLOTS * core.width
        core.lay_out(first + leaf + self._reserve)
        if self._times:
            leaves = self._times // (arity - 1) + 1  # at most: a leaf has arity - 1 times or more
            with room_for(self._times, "times"):
                words = core.get(CAPACITY) + leaves * (leaf + inner // (arity - 1))
                core.resize(words, [], roomy=True)
        header = core.header
        header[ROOT] = header[LEFT] = header[RIGHT] = first
        header[TOP] = first + leaf
        core.poke_word(first, 0)
        core.poke_word(first + 1, LEAF)
        core.poke_identity(self._own_at(core, first))
        return core

    @property
    def operator(self) -> Operator:
        """The operator, tied to types if it is."""
        return self._core.operator

    @property
    def min_arity(self) -> int:
        """The least number of children of an inner node that is not the root."""
        return self._entries // 2

    @alone
    def insert(self, time: Any, value: Any) -> None:
        """Add a value at a time; at a time already there, the two are combined."""
        core = self._core
        at = as_time(time)
        header = core.header
        if header[CAPACITY] - header[TOP] < self._least:
            self._grow()
        core.fill(value)
        core.run.insert(core.m, at, core.cell, 0)

    @alone
    def evict(self, time: Any) -> None:
        """Drop what is at a time; a time that is not there is no error."""
        core = self._core
        core.run.evict(core.m, as_time(time))

    @alone
    def query(self, lo: Any = None, hi: Any = None) -> Any:
        """The answer over the whole window, or over the times `[lo, hi)`: from `lo` up to but not
        including `hi`.  Without one of them, the range is open to that side."""
        core = self._core
        if lo is None and hi is None:
            core.run.ask(core.m, core.answer, 0)
        else:
            core.run.ask_between(core.m, core.answer, *as_range(lo, hi))
        return core.read()

    @alone
    def bulk_insert(self, times: Any, values: Any) -> None:
        """Add many values at once; times in any order, equal ones combined in the order given."""
        table, at = read(values, len(self._given.skips)), as_times(times)
        check_count(at, table)
        self._tie(table)
        core = self._core
        row = 0
        with core.call(table.rows) as call:
            columns, handle = call.columns(table), call.integers(at)
            try:
                while row < table.rows:
                    if row > 0 and at[row] < at[row - 1]:  # what is left is not sorted
                        order = row + np.argsort(at[row:], kind="stable")
                        at, table, row = at[order], table.take(order), 0
                        columns, handle = call.columns(table), call.integers(at)
                    if self._short():
                        self._grow()
                    row = core.run.bulk_insert(core.m, handle, columns, row, table.rows)
            except BaseException as error:
                if not self._changing and sound_after(core, error):
                    core.run.clean(core.m)  # a value was refused: what came before it is in
                raise

    @alone
    def bulk_evict(self, time: Any) -> None:
        """Drop everything up to and including a time."""
        core = self._core
        if self._fingers:
            if self._short():
                self._grow()
            core.run.bulk_evict(core.m, as_time(time))
            return
        last = as_time(time)
        while (oldest := self._oldest()) is not None and oldest <= last:
            core.run.evict(core.m, oldest)

    @alone
    def slide(self, times: Any, values: Any, *, span: Any = None, count: int | None = None) -> Any:
        """Insert each value in turn and answer after each.

        With `span`, what is older than the youngest time less the span is evicted before
        the answer; with `count`, the oldest times beyond so many are.
        """
        table, at = read(values, len(self._given.skips)), as_times(times)
        check_count(at, table)
        _, limit = keep(at, span, count)
        if span is not None:
            limit = as_span(span)
        if limit >= 2**63:
            raise OverflowError(f"a span of {span} does not fit int64")
        self._tie(table)
        self._length()  # what was dropped in bulk is counted off
        core = self._core
        run = core.run.slide_count if span is None else core.run.slide_span
        row = 0
        with core.call(table.rows) as call:
            handle, columns = call.integers(at), call.columns(table)
            outputs = call.outputs(table.rows)
            try:
                while row < table.rows:
                    if self._short():
                        self._grow()
                    row = run(core.m, handle, columns, outputs, row, table.rows, limit)
            except OverflowError as error:
                raise call.at_row(error, core.get(ROW)) from None
            return call.answers(table.kind)

    @alone
    def oldest(self) -> int | None:
        """The oldest time, or None if the window is empty."""
        return self._oldest()

    def _oldest(self) -> int | None:
        n = self._core.get(LEFT)
        return self._core.peek_word(n + 2) if self._count_of(n) else None

    @alone
    def youngest(self) -> int | None:
        """The youngest time, or None if the window is empty."""
        n = self._core.get(RIGHT)
        count = self._count_of(n)
        return self._core.peek_word(n + 1 + count) if count else None

    @alone
    def __len__(self) -> int:
        return self._length()

    def _length(self) -> int:
        core = self._core
        if core.get(DROPPED):
            core.run.reclaim_all(core.m)
        return core.get(COUNT)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """The times in order, each with its answer."""
        lower = self.operator.python_lower()
        return ((t, lower(p)) for t, p in self._entries_now())

    @alone
    def _entries_now(self) -> list[tuple[int, Any]]:
        return list(self._partials())

    @alone
    def work(self) -> dict[str, int]:
        """How many nodes were visited, split, merged, and moved between, since the start."""
        fields = {"visits": VISITS, "splits": SPLITS, "merges": MERGES, "moves": MOVES}
        return {name: self._core.get(field) for name, field in fields.items()}

    @alone
    def to_bytes(self) -> bytes:
        """The whole window as bytes, with a version and a checksum."""
        core = self._core
        self._length()
        if core.program.layout is not None:
            body = core.dump()
        else:
            encode = encoder(self.operator)
            rows = [struct.pack("<q", t) + encode(p) for t, p in self._partials()]
            body = b"".join(struct.pack("<Q", len(r)) + r for r in rows)
        return seal((*describe(self, core), str(self.min_arity)), body)

    @classmethod
    def from_bytes(cls, data: bytes, operator: Operator) -> Self:
        """The window again, from what `to_bytes` gave and the same operator."""
        said, body = open_bytes(data)
        arity = int(said[4]) if len(said) > 4 else None
        made = cls(as_told(said, operator), min_arity=arity)
        made._given = operator
        check_told(said, (*describe(made, made._core), str(made.min_arity)))
        made._restore(body)
        return made

    def _restore(self, rest: bytes) -> None:
        core = self._core
        if core.program.layout is not None:
            core.restore(rest)
            return
        decode = decoder(self.operator)
        lift = _into if self.operator.shape == "vector" else itself
        ready = dataclasses.replace(
            self.operator, lift=lift, skips=(False,), parts=(), types=(), compile=False
        )
        run = specialise(core.kernel, ready).run
        at = 0
        while at < len(rest):
            (size,) = struct.unpack_from("<Q", rest, at)
            row = rest[at + 8 : at + 8 + size]
            at += 8 + size
            if self._short():
                self._grow()
            run.insert(core.m, struct.unpack_from("<q", row)[0], [[decode(row[8:])]], 0)

    def _tie(self, table: Any) -> None:
        """Let the first array that an empty window is given say the types."""
        if not self._given.types and "object" not in table.types and self._oldest() is None:
            self._core = self._make(self._given.of(*table.types))

    def _short(self) -> bool:
        return self._core.get(CAPACITY) - self._core.get(TOP) < self._least

    def _grow(self) -> None:
        """A longer memory, with all at its place; or the span for it, when it will be needed a few
        nodes later."""
        core = self._core
        if self._least > self._reserve:
            self._least = self._reserve
            if isinstance(core, BufferCore):
                core.reserve_ahead()
            if not self._short():
                return
        size = core.get(TOP) + 2 * self._reserve
        if isinstance(core, BufferCore):  # a list has its own way to grow by and by
            size = max(size, 2 * core.get(CAPACITY))
        self._replace(core.resize, size, [])
        self._least = self._reserve + self._reserve // 8

    def _own_at(self, core: Any, n: int) -> int:
        return n + 2 + self._entries + core.width * self._entries  # type: ignore[no-any-return]

    def _count_of(self, n: int) -> int:
        return self._core.peek_word(n + 1) & FEW

    def _partials(self) -> Iterator[tuple[int, Any]]:
        """The times in order, each with its partial."""
        for time, slot in self._slots():
            yield time, self._core.peek(slot)

    def _slots(self) -> Iterator[tuple[int, int]]:
        """The times in order, each with the slot of its partial."""
        yield from self._walk(self._core.get(ROOT))

    def _child(self, n: int, i: int) -> int:
        width = self._core.width
        return self._core.peek_word(n + 2 + self._entries + width * (self._entries + 2) + i)

    def _walk(self, n: int) -> Iterator[tuple[int, int]]:
        core = self._core
        count = self._count_of(n)
        leaf = core.peek_word(n + 1) & LEAF
        for i in range(count):
            if not leaf:
                yield from self._walk(self._child(n, i))
            yield core.peek_word(n + 2 + i), n + 2 + self._entries + core.width * i
        if not leaf:
            yield from self._walk(self._child(n, count))

    def _check(self) -> None:
        """Raise AssertionError if the tree's shape or one of its aggregates is not right."""
        core = self._core
        root = core.get(ROOT)
        assert core.peek_word(root) == 0, "the root has a parent"
        check = TreeCheck(self)
        check.node(root, -(2**63) - 1, 2**63, left=True, right=True, depth=0, above=None)
        held = [t for t, _ in self._partials()]
        assert held == sorted(set(held)), "times are out of order"
        if not core.get(DROPPED):
            assert core.get(COUNT) == len(held), "the count is wrong"
        assert check.fingers == [core.get(LEFT), core.get(RIGHT)], "a finger points elsewhere"
        check.free_lists()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.operator!r}{self._said_length('times')}>"


def _arity_for(operator: Operator) -> int:
    """The least arity that suits an operator's partials."""
    if operator.shape == "object":
        return 4
    words = words_of(operator)
    return 8 if words <= 12 else 4 if words <= 64 else 2


def _into(out: Any, partial: Any) -> None:
    out[:] = partial
