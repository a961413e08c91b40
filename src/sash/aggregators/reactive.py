"""The Reactive Aggregator: in-order insertion, eviction anywhere, on FlatFAT.

    order      inserts in order of time, evictions in any order
    operator   any associative
    time       m changes since the last query: at most m(1 + ⌈log2(n/m)⌉) combines at the next,
               and at most 2·log2 n + 1 more where the buffer is inverted; none a change;
               a range: at most 2·log2 n
    space      2c partials and 2c integers for a capacity of c, between n and 4n
    paper      Tangwongsan, Hirzel, Schneider, Wu: General incremental sliding-window
               aggregation (VLDB 2015), section 5

The leaves of the tree are a circular buffer of locations, in order of time:

    START                      END
      | 4:07 | 4:08 | hole | 4:11 | 4:11 |   a hole is empty, but keeps its time for the search

A change only writes a leaf and notes its parent; a query, the paper's trigger, brings the tree
up to date, level by level.  What is noted are linked lists through the nodes themselves: sorting
m locations, as `FlatFat` does, would take longer than the paper allows where they come
in any order.  A full buffer is compacted if at most three quarters of it are in use, and else
doubled; with less than a quarter in use it is halved.  All of that only moves leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array, Table, read
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.program import Kernel
from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    clear,
    combine,
    copy,
    get,
    item,
    lift,
    link,
    lower,
    put,
    set_link,
)
from ..operators.contract import Operator, same
from .flat_fat import between, prefix, suffix
from .guard import alone
from .in_order import SMALLEST, capacity_for, check_capacity, reserve_room, whole_number
from .snapshot import Snapshots
from .timed import LEAST, MANY, as_range, as_time, as_times, check_operator, check_rows, keep, late

__all__ = ["Reactive"]

ANSWER, RIGHT, TREE = 0, 1, 2  # slots, as in FlatFat

#: Header: how many locations are in use; the nodes to recompute, of this level and of the next;
#: the row that `slide` has come to.
COUNT, DIRTY, ABOVE, ROW = 3, 4, 5, 6

#: The integer beside leaf i is its time.  The one beside node i has in bit 0 whether location i
#: is in use, and above it the next node of the list that node i is in: 0 if in none, LAST if
#: it is the last (the root is alone on its level, so it never comes after another).
LAST = 1

DONE, LATE, FULL = 0, 1, 2  # what `insert` returns
ALL = -1  # events of a time


def leaf(m: Memory, position: int) -> int:
    """The slot of a location."""
    capacity = get(m, CAPACITY)
    return TREE + capacity + (position & (capacity - 1))


def used(m: Memory, position: int) -> int:
    """Whether a location is in use; else it is a hole."""
    return link(m, TREE + (position & (get(m, CAPACITY) - 1))) & 1


def use(m: Memory, position: int, value: int) -> None:
    """Mark a location as in use (1) or as a hole (0), and its parent for recomputation."""
    capacity = get(m, CAPACITY)
    location = position & (capacity - 1)
    set_link(m, TREE + location, (link(m, TREE + location) >> 1 << 1) | value)
    v = (capacity + location) >> 1
    mine = link(m, TREE + v)
    if mine >> 1 == 0:
        after = get(m, DIRTY)
        set_link(m, TREE + v, ((after if after > 0 else LAST) << 1) | mine)
        put(m, DIRTY, v)


def renew(m: Memory) -> None:
    """Bring the tree up to date: one level's list makes the next.

    A node leaves its list only when it is computed, so that nothing is lost if `combine` raises.
    """
    v = get(m, DIRTY)
    while v > 0:
        combine(m, TREE + v, TREE + 2 * v, TREE + 2 * v + 1)
        mine = link(m, TREE + v)
        set_link(m, TREE + v, mine & 1)
        p = v >> 1
        if p > 0:
            theirs = link(m, TREE + p)
            if theirs >> 1 == 0:
                after = get(m, ABOVE)
                set_link(m, TREE + p, ((after if after > 0 else LAST) << 1) | theirs)
                put(m, ABOVE, p)
        v = mine >> 1
        if v == LAST:
            v = get(m, ABOVE)
            put(m, ABOVE, 0)
        put(m, DIRTY, v)


def insert(m: Memory, t: int, columns: Columns, row: int) -> int:
    end = get(m, END)
    if get(m, COUNT) > 0 and t < link(m, leaf(m, end - 1)):
        return LATE
    if not room(m):
        return FULL
    end = get(m, END)
    lift(m, ANSWER, columns, row)  # first, so that a value refused leaves nothing in the tree
    copy(m, leaf(m, end), ANSWER)
    set_link(m, leaf(m, end), t)
    use(m, end, 1)
    put(m, END, end + 1)
    put(m, COUNT, get(m, COUNT) + 1)
    return DONE


def room(m: Memory) -> int:
    """Whether there is room for one more, after compacting if that pays."""
    capacity = get(m, CAPACITY)
    if get(m, END) - get(m, START) < capacity:
        return 1
    if 4 * get(m, COUNT) > 3 * capacity:
        return 0
    compact(m)
    return 1


def compact(m: Memory) -> None:
    """Close all holes."""
    to = get(m, START)
    for i in range(get(m, START), get(m, END)):
        if used(m, i):
            if to < i:
                copy(m, leaf(m, to), leaf(m, i))
                set_link(m, leaf(m, to), link(m, leaf(m, i)))
                use(m, to, 1)
                clear(m, leaf(m, i))
                use(m, i, 0)
            to += 1
    put(m, END, to)


def settle(m: Memory) -> None:
    """Make the tree anew over leaves without holes that came from another memory."""
    put(m, DIRTY, 0)
    put(m, ABOVE, 0)
    for i in range(get(m, START), get(m, END)):
        use(m, i, 1)


def evict_at(m: Memory, position: int) -> None:
    """Empty a location.  Both ends of the buffer stay in use, so holes there are left out."""
    clear(m, leaf(m, position))
    use(m, position, 0)
    put(m, COUNT, get(m, COUNT) - 1)
    start = get(m, START)
    end = get(m, END)
    while start < end and not used(m, start):
        start += 1
    while end > start and not used(m, end - 1):
        end -= 1
    put(m, START, start)
    put(m, END, end)


def search(m: Memory, t: int, after: int) -> int:
    """The first position with at least this time, or (`after`) with a later one."""
    low = get(m, START)
    high = get(m, END)
    while low < high:
        middle = (low + high) >> 1
        at = link(m, leaf(m, middle))
        if at < t or (after == 1 and at == t):
            low = middle + 1
        else:
            high = middle
    return low


def evict(m: Memory, t: int, nth: int) -> None:
    """Evict the nth event of a time, from 0 on, or (`nth` is ALL) every one."""
    at = search(m, t, 0)
    end = search(m, t, 1)
    while at < end:
        if used(m, at):
            if nth <= 0:
                evict_at(m, at)
            if nth == 0:
                return
            if nth > 0:
                nth -= 1
        at += 1


def evict_before(m: Memory, t: int, after: int) -> None:
    """Evict all before a time, or (`after`) up to and including it."""
    while get(m, COUNT) > 0:
        at = link(m, leaf(m, get(m, START)))
        if at > t or (after == 0 and at == t):
            return
        evict_at(m, get(m, START))


def query(m: Memory) -> int:
    renew(m)
    mask = get(m, CAPACITY) - 1
    start = get(m, START)
    end = get(m, END)
    if start == end or (start & mask) <= ((end - 1) & mask):
        return TREE + 1
    older = suffix(m, start & mask, RIGHT)
    combine(m, ANSWER, older, prefix(m, (end - 1) & mask))
    return ANSWER


def ask(m: Memory, outputs: Outputs, row: int) -> None:
    lower(m, query(m), outputs, row)


def ask_range(m: Memory, outputs: Outputs, lo: int, hi: int) -> None:
    renew(m)
    mask = get(m, CAPACITY) - 1
    first = search(m, lo, 0)
    last = search(m, hi, 1) - 1
    found = ANSWER
    if first > last:
        clear(m, ANSWER)
    elif (first & mask) <= (last & mask):
        found = between(m, first & mask, last & mask)
    else:
        older = suffix(m, first & mask, RIGHT)
        combine(m, ANSWER, older, prefix(m, last & mask))
    lower(m, found, outputs, 0)


def slide(
    m: Memory,
    times: Any,
    limits: Any,
    columns: Columns,
    outputs: Outputs,
    first: int,
    rows: int,
    count: int,
    answers: int,
) -> int:
    """For each row: evict what is before its limit, and the oldest of more than `count`; insert,
    and answer if answers are wanted.  Returns the row for which there was no room."""
    for row in range(first, rows):
        put(m, ROW, row)
        t = item(times, row)
        evict_before(m, item(limits, row), 0)
        while get(m, COUNT) >= count:
            evict_at(m, get(m, START))
        if insert(m, t, columns, row) == FULL:
            return row
        if answers:
            lower(m, query(m), outputs, row)
    return rows


class Reactive(Snapshots):
    """A window that takes values in order of time and lets go of any of them.

    A time is an integer, a datetime or a numpy datetime64.  Values of one time stay elements of
    their own, in order of arrival; a value older than the youngest is refused.

    >>> from sash.operators import concat
    >>> window = Reactive(concat)
    >>> for time, value in [(1, "a"), (2, "b"), (5, "c"), (5, "d"), (9, "e")]:
    ...     window.insert(time, value)
    >>> window.query(), window.query(2, 5)
    ('abcde', 'b')
    >>> window.evict(2)
    >>> window.query(), len(window), window.oldest(), window.youngest()
    ('acde', 4, 1, 9)
    >>> window.evict(5, 0)
    >>> window.query()
    'ade'
    >>> Reactive(concat).slide([1, 2, 4, 5], ["a", "b", "c", "d"], span=2)
    ['a', 'ab', 'bc', 'cd']
    """

    _kernel = Kernel(
        "reactive",
        (
            *(leaf, used, use, renew, insert, room, compact, settle, evict_at, search, evict),
            *(evict_before, prefix, suffix, between, query, ask, ask_range, slide),
        ),
        ("insert", "evict", "evict_before", "ask", "ask_range", "slide", "compact", "settle"),
        ("insert", "evict", "ask", "ask_range"),
        scratch=2,
        each=2,
        link=True,
    )

    def __init__(self, operator: Operator, *, capacity: int | None = None) -> None:
        self._given = check_operator(type(self), operator)
        self._floor = capacity_for(check_capacity(capacity, "values"))
        self._core: BufferCore | ObjectCore = self._make(operator)

    def _make(self, operator: Operator) -> BufferCore | ObjectCore:
        """An empty memory."""
        core = make_core(self._kernel, operator, SMALLEST)
        reserve_room(core, self._floor)
        return core

    @alone
    def insert(self, time: Any, value: Any) -> None:
        """Add a value at a time that is not older than the youngest."""
        t = as_time(time)
        core = self._core
        core.fill(value)
        refused = core.run.insert(core.m, t, core.cell, 0)
        if refused == FULL:
            self._resize(2 * core.get(CAPACITY))
            core.run.insert(core.m, t, core.cell, 0)
        elif refused:
            raise late(type(self), t, self._youngest())

    @alone
    def evict(self, time: Any, nth: int | None = None) -> None:
        """Drop all values of a time, or the `nth` that came, from 0 on; one that is not there is no
        error.  At most 2·log2 n steps, and one for each place of that time."""
        which = ALL if nth is None else _check_nth(nth)
        core = self._core
        core.run.evict(core.m, as_time(time), which)
        self._shrink()

    @alone
    def query(self, lo: Any = None, hi: Any = None) -> Any:
        """The answer over the whole window, or over the times `[lo, hi)`: from `lo` up to but not
        including `hi`.  Without one of them, the range is open to that side."""
        core = self._core
        if lo is None and hi is None:
            core.run.ask(core.m, core.answer, 0)
        else:
            core.run.ask_range(core.m, core.answer, *as_range(lo, hi))
        return core.read()

    @alone
    def bulk_insert(self, times: Any, values: Any) -> None:
        """Add values in order of time; the tree is brought up to date once for all of them."""
        made, table = self._read(times, values)
        self._run(made, table, np.full(len(made), LEAST), MANY, answers=0)

    @alone
    def bulk_evict(self, time: Any) -> None:
        """Drop all times up to and including this one."""
        core = self._core
        core.run.evict_before(core.m, as_time(time), 1)
        self._shrink()

    @alone
    def oldest(self) -> int | None:
        """The oldest time, None if there is none."""
        return self._time(self._core.get(START)) if self._length() else None

    @alone
    def youngest(self) -> int | None:
        """The youngest time, None if there is none."""
        return self._youngest()

    def _youngest(self) -> int | None:
        return self._time(self._core.get(END) - 1) if self._length() else None

    @alone
    def __len__(self) -> int:
        return self._length()

    def _length(self) -> int:
        return self._core.get(COUNT)

    @alone
    def slide(self, times: Any, values: Any, *, span: Any = None, count: int | None = None) -> Any:
        """Insert each value in turn and answer after each, over the values that are at most `span`
        older than it, or over the youngest `count` values.

        Answers come back as the kind of container that the values came in.
        """
        made, table = self._read(times, values)
        limits, most = keep(made, span, count)
        return self._run(made, table, limits, most, answers=1)

    def _run(self, times: Array, table: Table, limits: Array, most: int, *, answers: int) -> Any:
        core, rows = self._core, table.rows
        row = 0
        with core.call(rows) as call:
            columns, outputs = call.columns(table), call.outputs(rows if answers else 0)
            handle, limit = call.integers(times), call.integers(limits)
            try:
                while row < rows:
                    row = core.run.slide(
                        core.m, handle, limit, columns, outputs, row, rows, most, answers
                    )  # fmt: skip
                    if row < rows:
                        self._resize(2 * core.get(CAPACITY))
            except OverflowError as error:
                raise call.at_row(error, core.get(ROW)) from None
            finally:
                self._shrink()
            return call.answers(table.kind) if answers else None

    def _read(self, times: Any, values: Any) -> tuple[Array, Table]:
        """Rows to insert, checked before anything is done with them."""
        made, table = as_times(times), read(values, len(self._given.skips))
        check_rows(type(self), made, table, self._youngest())
        if not self._length() and not self._given.types and "object" not in table.types:
            self._core = self._make(self._given.of(*table.types))
        return made, table

    def _time(self, position: int) -> int:
        core = self._core
        capacity = core.get(CAPACITY)
        return core.peek_link(TREE + capacity + (position & (capacity - 1)))

    def _resize(self, capacity: int) -> None:
        """Move to a memory of another capacity, without the holes."""
        self._core.run.compact(self._core.m)
        self._replace(self._move, capacity)

    def _move(self, capacity: int) -> None:
        core = self._core
        old = core.get(CAPACITY)
        leaves = [
            (TREE + capacity + j, TREE + old + i, n) for j, i, n in core.places(old, capacity)
        ]
        core.resize(capacity, leaves)
        core.run.settle(core.m)

    def _shrink(self) -> None:
        """Halve the capacity until a quarter of it is in use."""
        capacity = wanted = self._core.get(CAPACITY)
        while 4 * self._length() < wanted and wanted > self._core.floor:
            wanted //= 2
        if wanted < capacity:
            self._resize(wanted)

    def _check(self) -> None:
        """Raise AssertionError if the structure is not as the algorithm needs it."""
        core, op = self._core, self.operator
        alike, join = op.equal or same, op.python_combine()
        capacity, start, end = core.get(CAPACITY), core.get(START), core.get(END)
        assert capacity >= core.floor >= SMALLEST
        assert capacity & (capacity - 1) == 0, f"capacity {capacity} is no power of two"
        assert 0 <= start <= end <= start + capacity
        assert capacity == core.floor or 4 * len(self) >= capacity, "memory was not given back"
        places = [i & (capacity - 1) for i in range(start, end)]
        in_use = [i for i in range(capacity) if core.peek_link(TREE + i) & 1]
        assert set(in_use) <= set(places), "a location outside of the buffer is in use"
        assert len(in_use) == len(self)
        assert not places or {places[0], places[-1]} <= set(in_use), "the buffer ends in a hole"
        times = [self._time(i) for i in range(start, end)]
        assert times == sorted(times), "times are not in order"
        for i in set(range(capacity)) - set(in_use):
            assert alike(core.peek(TREE + capacity + i), op.identity), f"hole {i} is not empty"
        noted: set[int] = set()
        for head in (DIRTY, ABOVE):
            v = core.get(head)
            while v:
                assert v not in noted, f"node {v} is noted twice"
                noted.add(v)
                after = core.peek_link(TREE + v) >> 1
                v = 0 if after == LAST else after
        listed = {v for v in range(1, capacity) if core.peek_link(TREE + v) >> 1}
        assert noted == listed, "the lists of changed nodes are broken"
        stale = {v >> k for v in noted for k in range(v.bit_length())}
        for v in set(range(1, capacity)) - stale:
            wanted = join(core.peek(TREE + 2 * v), core.peek(TREE + 2 * v + 1))
            assert alike(core.peek(TREE + v), wanted), f"node {v} is wrong, and not noted"


def _check_nth(nth: Any) -> int:
    """The number of an event among those of its time."""
    whole = whole_number(nth, "nth is a number of values of one time, from 0 on")
    if whole < 0:
        raise ValueError(f"values of one time are counted from 0 on, so nth cannot be {nth}")
    return whole
