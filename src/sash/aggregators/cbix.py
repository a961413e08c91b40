"""CBiX, the checkpoint-based bidirectional index: late values anywhere in a window of partitions.

    order      any, as far back as the window reaches
    operator   commutative
    time       on average (p1 + 1)·log2(n/k) + p1 + 1 + (k² - 2k)/n + 3·p2 combines a slide by one
               partition that brings p1 values for the oldest checkpoint and p2 others; one a query
    space      n + k + 3 partials, and 2·⌈n/k⌉ for the tree
    paper      Bou, Kitagawa, Amagasa: CBiX: incremental sliding-window aggregation for real-time
               analytics over out-of-order data streams (DEIM 2019)

The window is a ring of n partitions (p-values) in k checkpoints (c-values):

    oldest checkpoint           all others, and the oldest one's places that are taken again
    a tree of its partitions    one aggregate
    its root is the b-value     the g-value                         the answer is b with g

A partition that expires leaves the small tree.  A new value, late or not, goes into g, and into its
p- and c-value; a value of the oldest checkpoint goes into the tree instead.  When the tree is
empty, the next checkpoint becomes the oldest and gets a tree, and g becomes the aggregate of the
others.  (The paper's equation 7 adds
that checkpoint too, which would count it twice, and its algorithm does not reset g.)

What that costs, with n/k a power of two: a partition that expires, the log2(n/k) nodes above its
leaf; a value in the tree, those and its leaf; any other value, its p-, c- and g-value; and once in
n/k partitions n/k - 1 nodes and k - 1 checkpoints.  (The paper's average, (p1 + 2)·log2(n/k) +
k²/n + 3·p2, leaves out the leaf and takes the building of the tree for a path.)
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ..kernels.columns import Array, Table, read
from ..kernels.core import BufferCore, ObjectCore, make_core
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
)
from ..operators.contract import Operator, same
from .checkpoints import best_checkpoints
from .flat_fat import build, check_tree, climb
from .guard import alone
from .snapshot import Copyable, as_told, check_told, describe, open_bytes, seal
from .timed import as_span, as_time, as_times, check_count, check_operator

__all__ = ["Cbix"]

ANSWER, RIGHT, TREE = 0, 1, 2  # slots, as in FlatFat; after the tree p-values, c-values, g

#: Header: n and k; whether there is a window yet; its newest partition; the tree's first partition
#: and the one after its last; the oldest and the newest partition that got a value; the row that
#: `slide` has come to.  Partitions have numbers that only grow: number q is at place q mod n.
PARTITIONS, CHECKPOINTS, BEGUN, NEWEST, TREE_START, TREE_END, FIRST, LAST, ROW = range(3, 12)

_FAR = 2**62  # partition numbers stay below, so that none of the arithmetic overflows


def p_value(m: Memory, q: int) -> int:
    """The slot of a partition's own aggregate."""
    return TREE + 2 * get(m, CAPACITY) + q % get(m, PARTITIONS)


def c_value(m: Memory, c: int) -> int:
    """The slot of a checkpoint's aggregate."""
    return TREE + 2 * get(m, CAPACITY) + get(m, PARTITIONS) + c


def g_value(m: Memory) -> int:
    """The slot of the aggregate of all that is not in the tree."""
    return TREE + 2 * get(m, CAPACITY) + get(m, PARTITIONS) + get(m, CHECKPOINTS)


def oldest(m: Memory) -> int:
    """The window's oldest partition."""
    return get(m, NEWEST) - get(m, PARTITIONS) + 1


def checkpoint(m: Memory, q: int) -> int:
    """The checkpoint that a partition is in."""
    n = get(m, PARTITIONS)
    return (q % n) * get(m, CHECKPOINTS) // n


def first_place(m: Memory, c: int) -> int:
    """Where a checkpoint starts; their sizes differ by one where k does not divide n."""
    k = get(m, CHECKPOINTS)
    return (c * get(m, PARTITIONS) + k - 1) // k


def take_oldest(m: Memory) -> None:
    """Let the tree be for the checkpoint of the oldest partition."""
    q = oldest(m)
    c = checkpoint(m, q)
    start = q - (q % get(m, PARTITIONS) - first_place(m, c))
    put(m, TREE_START, start)
    put(m, TREE_END, start + first_place(m, c + 1) - first_place(m, c))


def turn(m: Memory) -> None:
    """The tree has run empty, each leaf cleared as it expired: make one of the checkpoint that
    is the oldest now, and g of the others."""
    take_oldest(m)
    leaf = TREE + get(m, CAPACITY)
    for q in range(get(m, TREE_START), get(m, TREE_END)):
        copy(m, leaf, p_value(m, q))
        clear(m, p_value(m, q))
        leaf += 1
    build(m)
    clear(m, c_value(m, checkpoint(m, oldest(m))))  # it is in the tree, so not in g
    g = g_value(m)
    copy(m, g, c_value(m, 0))
    for c in range(1, get(m, CHECKPOINTS)):
        combine(m, g, g, c_value(m, c))


def turn_if_empty(m: Memory) -> None:
    """Turn to the next checkpoint, if all of the tree's partitions have expired."""
    if get(m, BEGUN) and oldest(m) == get(m, TREE_END):
        turn(m)


def begin(m: Memory, q: int) -> None:
    """An empty window up to this partition."""
    for slot in range(TREE, g_value(m) + 1):
        clear(m, slot)
    put(m, BEGUN, 1)
    put(m, NEWEST, q)
    put(m, FIRST, q + 1)
    put(m, LAST, oldest(m) - 1)
    take_oldest(m)


def advance(m: Memory, q: int) -> None:
    """Move the window on, so that this partition is the newest."""
    if not get(m, BEGUN) or q - get(m, NEWEST) >= get(m, PARTITIONS):
        begin(m, q)
        return
    put(m, BUSY, 1)
    while get(m, NEWEST) < q:
        turn_if_empty(m)
        leaf = oldest(m) - get(m, TREE_START)
        clear(m, TREE + get(m, CAPACITY) + leaf)
        climb(m, leaf)
        put(m, NEWEST, get(m, NEWEST) + 1)
    put(m, BUSY, 0)


def insert(m: Memory, q: int, columns: Columns, row: int) -> int:
    """Fold a row into its partition; 0 if that is before the window."""
    if get(m, BEGUN) and q < oldest(m):
        return 0
    lift(m, ANSWER, columns, row)  # first, so that a value refused does not move the window
    if not get(m, BEGUN) or q > get(m, NEWEST):
        advance(m, q)
    put(m, BUSY, 1)
    if get(m, LAST) < oldest(m):  # all values have expired
        put(m, FIRST, q)
        put(m, LAST, q)
    if q < get(m, FIRST):
        put(m, FIRST, q)
    if q > get(m, LAST):
        put(m, LAST, q)
    if q < get(m, TREE_END):
        at = q - get(m, TREE_START)
        leaf = TREE + get(m, CAPACITY) + at
        combine(m, leaf, leaf, ANSWER)
        climb(m, at)
        put(m, BUSY, 0)
        return 1
    p = p_value(m, q)
    c = c_value(m, checkpoint(m, q))
    g = g_value(m)
    combine(m, p, p, ANSWER)
    combine(m, c, c, ANSWER)
    combine(m, g, g, ANSWER)
    put(m, BUSY, 0)
    return 1


def query(m: Memory) -> int:
    combine(m, ANSWER, TREE + 1, g_value(m))
    return ANSWER


def ask(m: Memory, outputs: Outputs, row: int) -> None:
    lower(m, query(m), outputs, row)


def slide(
    m: Memory, partitions: Any, columns: Columns, outputs: Outputs, rows: int, answers: int
) -> None:
    """Insert each row, and answer if answers are wanted."""
    for row in range(rows):
        put(m, ROW, row)
        insert(m, item(partitions, row), columns, row)
        if answers:
            lower(m, query(m), outputs, row)


class Cbix(Copyable):
    """A window over the last `partitions` spans of time, each `size` long, for values in any order.

    Span number q goes from `offset + q·size` up to, and not including, the next.  A value younger
    than the window moves it on, and whole spans expire; a value older than the window is refused.
    `checkpoints` is the paper's k.  Without it, the best one for `late_in_oldest` is taken: the
    paper's p1, how many late values for the oldest checkpoint come while the window moves on by one
    span (on average).

    >>> from sash.operators import sum
    >>> window = Cbix(sum.of(int), partitions=9, checkpoints=3, size=2, offset=5)
    >>> for time in range(5, 23):
    ...     window.insert(time, time)
    >>> window.query(), window.oldest(), window.youngest()
    (243, 5, 21)
    >>> window.slide([19, 23, 24], [19, 23, 24])
    [262, 274, 298]
    >>> window.insert(6, 6)
    Traceback (most recent call last):
    ...
    ValueError: time 6 is before the window, which starts at 7; it has expired
    """

    _kernel = Kernel(
        "cbix",
        (
            *(build, climb, p_value, c_value, g_value, oldest, checkpoint, first_place),
            *(take_oldest, turn, turn_if_empty, begin, advance, insert, query, ask, slide),
        ),
        ("insert", "advance", "turn_if_empty", "ask", "slide"),
        ("insert", "turn_if_empty", "ask"),
        each=2,
    )

    def __init__(
        self,
        operator: Operator,
        partitions: int,
        checkpoints: int | None = None,
        *,
        size: Any = 1,
        offset: Any = 0,
        late_in_oldest: float = 0.0,
    ) -> None:
        self._given = check_operator(type(self), operator)
        if not operator.commutative:
            raise TypeError(
                f"Cbix folds late values in out of order, so it needs a commutative operator, and "
                f"{operator!r} is not; use Fiba, which keeps the order"
            )
        n = _whole("partitions", partitions, 1, _FAR)
        if not 0 <= late_in_oldest < math.inf:
            raise ValueError(f"late_in_oldest is a number of spans, not {late_in_oldest!r}")
        if checkpoints is None:
            checkpoints = best_checkpoints(n, late_in_oldest)
        k = _whole("checkpoints", checkpoints, 1, n)
        self._size = as_span(size)
        if not 1 <= self._size <= _FAR:
            raise ValueError(f"a partition's size is at least 1 and at most 2^62, not {size}")
        self._offset = as_time(offset)
        self._n, self._k = n, k
        self._core = self._make(operator)

    def _make(self, operator: Operator) -> BufferCore | ObjectCore:
        # Of leaves that are no power of two, the youngest lie highest and so come first: with an
        # operator that commutes that is the same, and the tree is no larger than it need be.
        leaves = -(-self._n // self._k)
        kernel = replace(self._kernel, scratch=TREE + self._n + self._k + 1)
        core = make_core(kernel, operator, leaves)
        core.header[PARTITIONS], core.header[CHECKPOINTS] = self._n, self._k
        return core

    @property
    def operator(self) -> Operator:
        """The operator, tied to types if it is."""
        return self._core.operator

    @property
    def partitions(self) -> int:
        """How many spans of time the window has: the paper's n."""
        return self._n

    @property
    def checkpoints(self) -> int:
        """How many checkpoints they are in: the paper's k."""
        return self._k

    @alone
    def insert(self, time: Any, value: Any) -> None:
        """Add a value at any time that has not expired; a young one moves the window on."""
        t = as_time(time)
        core = self._core
        core.fill(value)
        if not core.run.insert(core.m, self._partition(t), core.cell, 0):
            raise self._expired(t, self._oldest())

    @alone
    def bulk_insert(self, times: Any, values: Any) -> None:
        """Add values at any times that have not expired when their turn comes."""
        self._run(times, values, answers=0)

    @alone
    def advance(self, time: Any) -> None:
        """Move the window on, so that this time is in its newest partition; what is then before
        the window leaves it.  A time in or before the window changes nothing."""
        core = self._core
        core.run.advance(core.m, self._partition(as_time(time)))

    @alone
    def query(self) -> Any:
        """The answer over the whole window."""
        core = self._core
        core.run.ask(core.m, core.answer, 0)
        return core.read()

    @alone
    def slide(self, times: Any, values: Any) -> Any:
        """Insert each value in turn and answer after each.

        Answers come back as the kind of container that the values came in.
        """
        return self._run(times, values, answers=1)

    @alone
    def oldest(self) -> int | None:
        """When the oldest partition with a value starts, None if there is none.  (Once it has
        expired, when the window starts.)"""
        if not self._length():
            return None
        return self._starts(max(self._core.get(FIRST), self._oldest()))

    @alone
    def youngest(self) -> int | None:
        """When the youngest partition with a value starts, None if there is none."""
        return self._starts(self._core.get(LAST)) if self._length() else None

    @alone
    def __len__(self) -> int:
        """How many partitions there are from the oldest to the youngest."""
        return self._length()

    def _length(self) -> int:
        core = self._core
        if not core.get(BEGUN):
            return 0
        return max(core.get(LAST) - max(core.get(FIRST), self._oldest()) + 1, 0)

    def _oldest(self) -> int:
        return self._core.get(NEWEST) - self._n + 1

    def _starts(self, q: int) -> int:
        """When a partition starts."""
        return q * self._size + self._offset

    def _partition(self, t: int) -> int:
        """The number of a time's partition."""
        q = (t - self._offset) // self._size
        if not -_FAR + self._n < q < _FAR:
            raise OverflowError(f"time {t} is too far from 0 for partitions of {self._size}")
        return q

    def _expired(self, time: int, oldest: int, row: int | None = None) -> ValueError:
        where = "" if row is None else f"row {row}: "
        return ValueError(
            f"{where}time {time} is before the window, which starts at {self._starts(oldest)}; "
            "it has expired"
        )

    def _run(self, times: Any, values: Any, *, answers: int) -> Any:
        made, table = self._read(times, values)
        core = self._core
        with core.call() as call:
            columns, outputs = call.columns(table), call.outputs(table.rows if answers else 0)
            where = call.integers(made)
            try:
                core.run.slide(core.m, where, columns, outputs, table.rows, answers)
            except OverflowError as error:
                raise call.at_row(error, core.get(ROW)) from None
            return call.answers(table.kind) if answers else None

    def _read(self, times: Any, values: Any) -> tuple[Array, Table]:
        """Rows to insert, with their partitions, checked before anything is done with them."""
        when, table = as_times(times), read(values, len(self._given.skips))
        check_count(when, table)
        if table.rows:
            self._partition(int(when.min()))
            self._partition(int(when.max()))
        # two steps, because times less the offset may not fit
        whole, rest = divmod(self._offset, self._size)
        made = when // self._size - whole - (when % self._size < rest)
        newest = np.maximum.accumulate(made)
        if self._core.get(BEGUN):
            newest = np.maximum(newest, self._core.get(NEWEST))
        expired = np.flatnonzero(made <= newest - self._n)
        if len(expired):
            row = int(expired[0])
            raise self._expired(int(when[row]), int(newest[row]) - self._n + 1, row)
        if not self._length() and not self._given.types and "object" not in table.types:
            core = self._make(self._given.of(*table.types))
            if self._core.get(BEGUN):  # the window stays where it was
                core.run.advance(core.m, self._core.get(NEWEST))
            self._core = core
        return made, table

    def _values(self) -> tuple[Any, Any]:
        """The paper's b-value and g-value, as partials."""
        core = self._core
        at_g = TREE + 2 * core.get(CAPACITY) + self._n + self._k
        return core.peek(TREE + 1), core.peek(at_g)

    def _turn(self) -> None:
        """Turn to the next checkpoint now, if its time has come, and not when the window moves."""
        self._core.run.turn_if_empty(self._core.m)

    def _check(self) -> None:
        """Raise AssertionError if the structure is not as the algorithm needs it."""
        core, op = self._core, self.operator
        alike, join = op.equal or same, op.python_combine()
        assert (core.get(PARTITIONS), core.get(CHECKPOINTS)) == (self._n, self._k)
        leaves = core.get(CAPACITY)
        assert leaves == -(-self._n // self._k)
        check_tree(core, op)
        if not core.get(BEGUN):
            return
        oldest, newest = self._oldest(), core.get(NEWEST)
        start, end = core.get(TREE_START), core.get(TREE_END)
        assert oldest <= end, "a partition is in no checkpoint"
        assert start <= oldest, "the tree is not on the oldest checkpoint"
        ends = [-(-c * self._n // self._k) for c in range(self._k + 1)]
        assert (start % self._n, start % self._n + end - start) in pairwise(ends)
        for q in range(start, start + leaves):
            if not oldest <= q < end:
                partial = core.peek(TREE + leaves + q - start)
                assert alike(partial, op.identity), f"leaf {q - start} is not empty"
        base = TREE + 2 * leaves
        totals = [op.identity] * self._k
        for q in range(max(end, oldest), newest + 1):
            c = q % self._n * self._k // self._n
            totals[c] = join(totals[c], core.peek(base + q % self._n))
        g = op.identity
        for c, total in enumerate(totals):
            assert alike(core.peek(base + self._n + c), total), f"c-value {c} is wrong"
            g = join(g, total)
        assert alike(core.peek(base + self._n + self._k), g), "the g-value is wrong"

    @alone
    def to_bytes(self) -> bytes:
        """The whole window as bytes, with a version and a checksum."""
        return seal(self._told(), self._core.dump())

    def _told(self) -> list[str]:
        shape = (self._n, self._k, self._size, self._offset)
        return [*describe(self, self._core), *map(str, shape)]

    @classmethod
    def from_bytes(cls, data: bytes, operator: Operator) -> Self:
        """The window again, from what `to_bytes` gave and the same operator."""
        said, body = open_bytes(data)
        if said[0] != cls.__name__:
            raise ValueError(f"these bytes hold a {said[0]}; they cannot become a {cls.__name__}")
        n, k, size, offset = map(int, said[4:])
        made = cls(as_told(said, operator), n, k, size=size, offset=offset)
        made._given = operator
        check_told(said, made._told())
        made._core.restore(body)
        return made

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.operator!r}, {self._n} partitions of {self._size} "
            f"in {self._k} checkpoints>"
        )


def _whole(name: str, given: int, least: int, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{name} is a whole number, not {given!r}")
    if not least <= given <= most:
        upper = f" and at most {most}, one for each partition" if most < _FAR else ""
        raise ValueError(f"{name} is at least {least}{upper}, so it cannot be {given}")
    return given
