"""FlatFAT, the flat fixed-sized aggregator: a complete binary tree of partials in an array.

    order      any location, at any time
    operator   any associative
    time       new: n - 1 combines; update of m locations: at most m(1 + ⌈log2(n/m)⌉);
               prefix and suffix: at most log2 n; a range: at most 2·log2 n; the whole: none
    space      2n partials
    paper      Tangwongsan, Hirzel, Schneider, Wu: General incremental sliding-window
               aggregation (VLDB 2015)

Node v has the children 2v and 2v + 1, the root is node 1, and location i is leaf n + i.
`FlatFatFifo` makes a first-in, first-out window of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..kernels.columns import read
from ..kernels.core import make_core
from ..kernels.program import Kernel
from ..kernels.slots import (
    BUSY,
    CAPACITY,
    Columns,
    Memory,
    Outputs,
    clear,
    combine,
    copy,
    get,
    item,
    lift,
    lower,
    put,
    set_item,
)
from ..operators.contract import Operator, same
from .guard import alone, sound_after
from .snapshot import Copyable, as_told, check_told, describe, open_bytes, seal

__all__ = ["FlatFat"]

ANSWER, RIGHT, TREE = 0, 1, 2  # slots: an answer, its younger half, the nodes
WRITTEN = 3  # header: the row that `write` has come to


def build(m: Memory) -> None:
    """Compute all inner nodes from the leaves."""
    v = get(m, CAPACITY) - 1
    while v > 0:
        combine(m, TREE + v, TREE + 2 * v, TREE + 2 * v + 1)
        v -= 1


def climb(m: Memory, location: int) -> None:
    """Recompute the inner nodes above one leaf."""
    v = (get(m, CAPACITY) + location) >> 1
    while v > 0:
        combine(m, TREE + v, TREE + 2 * v, TREE + 2 * v + 1)
        v >>= 1


def write(m: Memory, columns: Columns, locations: Any, rows: int) -> None:
    """Lift rows into leaves."""
    for row in range(rows):
        put(m, WRITTEN, row)
        lift(m, TREE + get(m, CAPACITY) + item(locations, row), columns, row)


def refresh(m: Memory, nodes: Any, count: int) -> None:
    """Recompute the inner nodes above some leaves, given by number, sorted and different.

    Level by level: parents of a sorted list are sorted, so equal ones are neighbours, and
    each is computed once, after all its children.
    """
    put(m, BUSY, 1)
    while item(nodes, 0) > 1:
        parents = 0
        for i in range(count):
            v = item(nodes, i) >> 1
            if parents == 0 or item(nodes, parents - 1) != v:
                combine(m, TREE + v, TREE + 2 * v, TREE + 2 * v + 1)
                set_item(nodes, parents, v)
                parents += 1
        count = parents
    put(m, BUSY, 0)


def prefix(m: Memory, location: int) -> int:
    """The slot with the aggregate from location 0 up to and including this one."""
    v = get(m, CAPACITY) + location
    found = TREE + v
    while v > 1:
        if v & 1:
            combine(m, ANSWER, TREE + v - 1, found)
            found = ANSWER
        v >>= 1
    return found


def suffix(m: Memory, location: int, into: int) -> int:
    """The slot with the aggregate from this location on; `into` is written if need be."""
    v = get(m, CAPACITY) + location
    found = TREE + v
    while v > 1:
        if not v & 1:
            combine(m, into, found, TREE + v + 1)
            found = into
        v >>= 1
    return found


def between(m: Memory, first: int, last: int) -> int:
    """The slot with the aggregate of two locations and all between."""
    left = get(m, CAPACITY) + first
    right = get(m, CAPACITY) + last + 1
    older = -1
    younger = -1
    while left < right:
        if left & 1:
            if older < 0:
                copy(m, ANSWER, TREE + left)
            else:
                combine(m, ANSWER, ANSWER, TREE + left)
            older = ANSWER
            left += 1
        if right & 1:
            right -= 1
            if younger < 0:
                copy(m, RIGHT, TREE + right)
            else:
                combine(m, RIGHT, TREE + right, RIGHT)
            younger = RIGHT
        left >>= 1
        right >>= 1
    if older < 0:
        return RIGHT
    if younger >= 0:
        combine(m, ANSWER, ANSWER, RIGHT)
    return ANSWER


def ask_prefix(m: Memory, outputs: Outputs, location: int) -> None:
    lower(m, prefix(m, location), outputs, 0)


def ask_suffix(m: Memory, outputs: Outputs, location: int) -> None:
    lower(m, suffix(m, location, ANSWER), outputs, 0)


def ask_between(m: Memory, outputs: Outputs, first: int, last: int) -> None:
    found = ANSWER
    if first > last:
        clear(m, ANSWER)
    else:
        found = between(m, first, last)
    lower(m, found, outputs, 0)


class FlatFat(Copyable):
    """A fixed number of locations, with the aggregate of any run of them.

    Locations count from 0, and ranges are half-open, as slices in Python are.  The number of
    locations is rounded up to a power of two, and the rest stays empty.

    >>> from sash.operators import concat
    >>> tree = FlatFat(concat, ["a", "b", "c", "d"])
    >>> tree.aggregate(), tree.prefix(2), tree.suffix(2), tree.range(1, 3)
    ('abcd', 'ab', 'cd', 'bc')
    >>> tree.update([1, 3], ["B", "D"])
    >>> tree.aggregate()
    'aBcD'
    """

    _kernel = Kernel(
        "flat_fat",
        (build, write, refresh, prefix, suffix, between, ask_prefix, ask_suffix, ask_between),
        ("build", "write", "refresh", "ask_prefix", "ask_suffix", "ask_between"),
        ("ask_prefix", "ask_suffix", "ask_between"),
        scratch=2,
        each=2,
    )

    def __init__(self, operator: Operator, values: Any) -> None:
        if not isinstance(operator, Operator):
            raise TypeError(f"FlatFat needs an operator, not {operator!r}")
        table = read(values, len(operator.skips))
        if not table.rows:
            raise ValueError("a FlatFat has at least one location: give at least one value")
        if not operator.types and "object" not in table.types:
            operator = operator.of(*table.types)
        self._count = table.rows
        capacity = 1 << (table.rows - 1).bit_length()
        self._core = core = make_core(self._kernel, operator, capacity)
        self._write(range(table.rows), table)
        core.run.build(core.m)

    @property
    def operator(self) -> Operator:
        """The operator, tied to types if it is."""
        return self._core.operator

    def __len__(self) -> int:
        return self._count

    @alone
    def update(self, locations: Sequence[int], values: Any) -> None:
        """Replace the values at some locations; of one location given twice the later counts.

        If the operator's `lift` refuses a value, those before it are replaced.
        """
        table = read(values, len(self.operator.skips))
        known = [self._known(location, self._count - 1) for location in locations]
        if len(known) != table.rows:
            raise ValueError(f"{len(known)} locations were given for {table.rows} values")
        where = np.array(known, dtype=np.int64)
        if not table.rows:
            return
        core = self._core
        self._changing = True
        try:
            self._write(where, table)
        except BaseException as error:
            if sound_after(core, error):
                self._refresh(where[: core.get(WRITTEN) + 1])
            raise
        self._refresh(where)

    def _refresh(self, locations: Any) -> None:
        """Bring the nodes above some leaves up to date, with which a change is complete."""
        core = self._core
        nodes = np.unique(locations) + core.get(CAPACITY)
        with core.call() as call:
            core.run.refresh(core.m, call.integers(nodes), len(nodes))
        self._changing = False

    @alone
    def aggregate(self) -> Any:
        """The answer over all locations."""
        core = self._core
        core.run.ask_between(core.m, core.answer, 0, core.get(CAPACITY) - 1)
        return core.read()

    @alone
    def prefix(self, stop: int) -> Any:
        """The answer over the locations before `stop`: `[0, stop)`."""
        if self._edge(stop) == 0:
            return self._range(0, 0)
        core = self._core
        core.run.ask_prefix(core.m, core.answer, stop - 1)
        return core.read()

    @alone
    def suffix(self, start: int) -> Any:
        """The answer over the locations from `start` on: `[start, len)`."""
        if self._edge(start) == self._count:
            return self._range(start, start)
        core = self._core
        core.run.ask_suffix(core.m, core.answer, start)
        return core.read()

    @alone
    def range(self, start: int, stop: int) -> Any:
        """The answer over the locations `[start, stop)`: from `start` up to but not including
        `stop`."""
        if self._edge(start) > self._edge(stop):
            raise ValueError(f"a range goes from an older to a younger location, not {start, stop}")
        return self._range(start, stop)

    def _range(self, start: int, stop: int) -> Any:
        core = self._core
        core.run.ask_between(core.m, core.answer, start, stop - 1)
        return core.read()

    def _write(self, locations: Any, table: Any) -> None:
        core = self._core
        with core.call() as call:
            where = call.integers(np.asarray(locations, dtype=np.int64))
            core.run.write(core.m, call.columns(table), where, table.rows)

    def _edge(self, location: int) -> int:
        """A location, or the end of the last one."""
        return self._known(location, self._count)

    def _known(self, location: int, most: int) -> int:
        if isinstance(location, bool) or not isinstance(location, int | np.integer):
            raise TypeError(f"a location is a whole number, not {location!r}")
        if not 0 <= location <= most:
            raise IndexError(f"location {location} is not one of 0 … {most}")
        return int(location)

    @alone
    def to_bytes(self) -> bytes:
        """The whole tree as bytes, with a version and a checksum."""
        return seal((*describe(self, self._core), str(self._count)), self._core.dump())

    @classmethod
    def from_bytes(cls, data: bytes, operator: Operator) -> Self:
        """The tree again, from what `to_bytes` gave and the same operator."""
        said, body = open_bytes(data)
        made = cls.__new__(cls)
        made._core = make_core(cls._kernel, as_told(said, operator), 1)
        made._count = int(said[4]) if len(said) > 4 else 0
        check_told(said, (*describe(made, made._core), str(made._count)))
        made._core.restore(body)
        return made

    def _check(self) -> None:
        """Raise AssertionError if an inner node is not the aggregate of its children."""
        check_tree(self._core, self.operator)


def check_tree(core: Any, operator: Operator) -> None:
    """Every inner node is the aggregate of its children."""
    join = operator.python_combine()
    for v in range(1, core.get(CAPACITY)):
        wanted = join(core.peek(TREE + 2 * v), core.peek(TREE + 2 * v + 1))
        assert (operator.equal or same)(core.peek(TREE + v), wanted), f"node {v} is wrong"
